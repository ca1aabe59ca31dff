"""Command-line options of the commands that read logs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from banditune.cli.number_parsers import parse_integer, parse_number, parse_share
from banditune.cli.option_groups import OptionGroup

LogFileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="Past logs: .csv or .parquet.")]


CampaignColumnOption = Annotated[
    str | None, typer.Option("--campaign", metavar="COLUMN", help="Column of the campaigns.")
]


ArmColumnOption = Annotated[str | None, typer.Option("--arm", metavar="COLUMN", help="Column of the arms.")]


RewardColumnOption = Annotated[
    str | None, typer.Option("--reward", metavar="COLUMN", help="Column of the rewards, if a row is a decision.")
]


PullsColumnOption = Annotated[
    str | None, typer.Option("--pulls", metavar="COLUMN", help="Column of pulls, if a row is an arm of a campaign.")
]


SuccessesColumnOption = Annotated[
    str | None, typer.Option("--successes", metavar="COLUMN", help="Column of successes, with --pulls.")
]


PropensityColumnOption = Annotated[
    str | None, typer.Option("--propensity", metavar="COLUMN", help="Column of propensities, which are only checked.")
]


FeatureColumnsOption = Annotated[
    str | None, typer.Option("--features", metavar="A,B,...", help="Columns of the arms' features; '' for none.")
]


RewardKindOption = Annotated[
    str | None,
    typer.Option("--rewards", metavar="binary|unit|real", help="The kind of rewards. Rows with others are bad."),
]


BlankRewardOption = Annotated[
    float | None,
    typer.Option("--blank", metavar="NUMBER", parser=parse_number, help="The value of an empty reward, such as 0."),
]


SkipBadOption = Annotated[bool, typer.Option("--skip-bad", help="Leave out rows that cannot be read.")]


@dataclass(frozen=True)
class LogReadingOptions(OptionGroup):
    """Options for reading logs: the arguments of `read_logs`."""

    campaign: CampaignColumnOption = None
    arm: ArmColumnOption = None
    reward: RewardColumnOption = None
    pulls: PullsColumnOption = None
    successes: SuccessesColumnOption = None
    propensity: PropensityColumnOption = None
    features: FeatureColumnsOption = None
    rewards: RewardKindOption = None
    blank: BlankRewardOption = None
    skip_bad: SkipBadOption = False

    def read(self, path: Path, progress: Any = None) -> Any:
        """Return the logs in a file."""
        from banditune.logs.io.log_reader import ReadSettings, read_logs

        columns = dict(vars(self))
        rows = {name: columns.pop(name) for name in ("rewards", "blank", "skip_bad")}
        return read_logs(path, settings=ReadSettings(**rows, progress=progress), **columns)


ModelOption = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="auto, beta-binomial, gaussian, beta, linear, logistic, correlated, or campaigns (resampled).",
    ),
]


PerArmOption = Annotated[
    bool, typer.Option("--per-arm", help="A prior for each arm's name instead of one for all arms.")
]


InterceptOption = Annotated[
    bool,
    typer.Option(
        "--intercept/--no-intercept",
        help="If arms have features: add one that is 1 for every arm, unless they include a constant.",
    ),
]


ProblemFileOption = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FILE.toml", help="Write the problem as TOML.")
]


SavedFitOption = Annotated[
    Path | None, typer.Option("--save", metavar="FILE.json", help="Write the fit with its checks, for `report`.")
]


CampaignHorizonOption = Annotated[
    int | None,
    typer.Option(
        "--horizon", show_default="the median campaign's", parser=parse_integer, help="Decisions in a future campaign."
    ),
]


IntervalConfidenceOption = Annotated[
    float, typer.Option("--confidence", parser=parse_share, help="Confidence of the intervals.")
]


TuningShareOption = Annotated[
    float,
    typer.Option(
        "--share",
        metavar="50%",
        parser=parse_share,
        help="Share of campaigns for tuning; the others are for evaluation.",
    ),
]
