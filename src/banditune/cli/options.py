"""Options that commands share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from inspect import Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from banditune.cli.numbers import decimal, share, whole

OWN = "or FILE.py:NAME for your own (this runs that file)"


Policy = Annotated[
    str,
    typer.Option(
        metavar="NAME", help=f"Policy from the shelf, e.g. ucb1, options as ucb1:noise=1 (else the problem's); {OWN}."
    ),
]


Policies = Annotated[
    list[str], typer.Option("--policy", metavar="NAME", help=f"A policy, as for tune; give it twice or more; {OWN}.")
]


Problem = Annotated[
    str,
    typer.Option(
        metavar="NAME", help=f"Problem from the shelf, e.g. bernoulli, options as beta:v=8; FILE.toml; {OWN}."
    ),
]


Tuner = Annotated[str, typer.Option(metavar="NAME", help="Tuner from the shelf, options as notes:precision=0.05.")]


Arms = Annotated[int | None, typer.Option(parser=whole, help="Number of arms.")]


Dims = Annotated[
    int | None, typer.Option(parser=whole, help="Features of an arm, in the linear and logistic problems.")
]


Features = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Features of the arms, a row for each, as .csv or .npy.")
]


Prior = Annotated[
    str | None,
    typer.Option(
        metavar="A,B",
        help="Prior of the mean rewards, one per arm as 'A,B;A,B;...'; of theta (mean, variance) where arms have features.",
    ),
]


Means = Annotated[str | None, typer.Option(metavar="ROWS", help="Mean rewards for the mixture, rows as '.6,.4;.4,.6'.")]


Names = Annotated[str | None, typer.Option(metavar="A,B,...", help="Names of the arms.")]


Steps = Annotated[
    int | None, typer.Option("--horizon", show_default="the problem file's", parser=whole, help="Steps in a run.")
]


Budget = Annotated[int, typer.Option(parser=whole, help="Simulated runs that the search may spend.")]


Spend = Annotated[
    int | None,
    typer.Option("--budget", show_default="1000", parser=whole, help="Simulated runs that the search may spend."),
]


Within = Annotated[
    float | None,
    typer.Option(
        metavar="2%", parser=share, help="Instead of a budget: search until no value is better by more than this share."
    ),
]


Confidence = Annotated[float, typer.Option(parser=share, help="How sure the search must be of that.")]


MaxBudget = Annotated[
    int | None,
    typer.Option(
        show_default="100000", parser=whole, help="With --within: runs after which the search ends in any case."
    ),
]


MaxTime = Annotated[
    float | None, typer.Option(metavar="SECONDS", parser=decimal, help="End the search after so many seconds.")
]


Validate = Annotated[int, typer.Option(parser=whole, help="Fresh instances on which the answer is judged.")]


Judge = Annotated[
    int | None,
    typer.Option(
        "--validate",
        show_default="as many as it takes",
        parser=whole,
        help="Fresh instances on which the answer is judged.",
    ),
]


Runs = Annotated[int, typer.Option(parser=whole, help="Runs for each value.")]


Values = Annotated[
    str | None, typer.Option(metavar="A,B,...", help="Parameter values; without them a grid, denser where it bends.")
]


Ranges = Annotated[
    list[str] | None,
    typer.Option(
        "--range",
        metavar="NAME=LOW:HIGH",
        help="Search this range of a parameter instead of the usual one, e.g. gamma=0:3.",
    ),
]


Seed = Annotated[int, typer.Option(parser=whole, help="Same seed, same answer.")]


Regret = Annotated[str, typer.Option(metavar="expected|realised", help="Which regret to count.")]


Noise = Annotated[str, typer.Option(metavar="shared|own", help="Reward noise of the parameter values on an instance.")]


Jobs = Annotated[int | None, typer.Option(parser=whole, help="Threads or processes; all cores unless told.")]


Where = Annotated[
    str,
    typer.Option(
        "--cluster", metavar="PLACE", help="Where to play: threads, processes, dask://HOST:8786, ray://HOST:10001, ray."
    ),
]


TimeLimit = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        parser=decimal,
        help="End the work if a piece of it takes longer; child processes play it then.",
    ),
]


Shortcut = Annotated[bool, typer.Option(help="Use exact shortcuts where they apply.")]


Device = Annotated[str, typer.Option(metavar="cpu|gpu|auto", help="Where to play; auto takes a GPU if there is one.")]


Wanted = Annotated[
    str,
    typer.Option(
        "--device",
        metavar="cpu|gpu|auto",
        help="What must work, or the exit code is 1; auto: a GPU only if one is there.",
    ),
]


Floor = Annotated[
    bool | None,
    typer.Option(
        "--floor/--no-floor", show_default="where it takes seconds", help="Say what no policy can go below, if known."
    ),
]


Stressed = Annotated[
    bool, typer.Option("--stress", help="Say what the answer loses if another problem comes than was expected.")
]


Left = Annotated[int | None, typer.Option(parser=whole, help="Rounds left.")]


Discount = Annotated[
    float | None, typer.Option(parser=decimal, help="What a reward is worth a round later, instead of rounds left.")
]


PaperRuns = Annotated[int, typer.Option("--runs", parser=whole, help="Runs at each width; 10000 is the paper's scale.")]


Tunings = Annotated[int, typer.Option(parser=whole, help="Tunings of each tuner with each budget.")]


Only = Annotated[
    str | None, typer.Option("--only", "--rows", metavar="A,B,...", help="Rows whose names hold one of these words.")
]


Folder = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FOLDER", help="Write tables, figures and the JSON result.")
]


Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of the table.")]


Output = Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the result as JSON.")]


Plot = Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the figure (.svg, .png, .pdf).")]


Ledger = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Keep every regret in this file; what it holds already is not played again."),
]


Drawn = Annotated[
    bool, typer.Option("--curve", help="Play the regret curve too, on fresh instances; --plot does that by itself.")
]


Result = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="A result that -o wrote, a ledger, or what `ledger export --summary` makes of one."
    ),
]


Html = Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE.html", help="Write the report as HTML.")]


Figures = Annotated[Path | None, typer.Option(metavar="FOLDER", help="Write the figure as .svg, .png and .pdf.")]


Markdown = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the tables as Markdown.")]


Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="assumptions")]


Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no table and no progress, only warnings.")]


LogFile = Annotated[Path, typer.Argument(metavar="FILE", help="Past logs: .csv or .parquet.")]


CampaignColumn = Annotated[str | None, typer.Option("--campaign", metavar="COLUMN", help="Column of the campaigns.")]


ArmColumn = Annotated[str | None, typer.Option("--arm", metavar="COLUMN", help="Column of the arms.")]


RewardColumn = Annotated[
    str | None, typer.Option("--reward", metavar="COLUMN", help="Column of the rewards, where a row is a decision.")
]


PullsColumn = Annotated[
    str | None, typer.Option("--pulls", metavar="COLUMN", help="Column of pulls, where a row is an arm of a campaign.")
]


SuccessesColumn = Annotated[
    str | None, typer.Option("--successes", metavar="COLUMN", help="Column of successes, then.")
]


PropensityColumn = Annotated[
    str | None, typer.Option("--propensity", metavar="COLUMN", help="Column of propensities; checked, not needed.")
]


FeatureColumns = Annotated[
    str | None, typer.Option("--features", metavar="A,B,...", help="Columns of the arms' features; '' for none.")
]


Claimed = Annotated[
    str | None,
    typer.Option("--rewards", metavar="binary|unit|real", help="What rewards are: rows that are not are bad."),
]


Blank = Annotated[
    float | None,
    typer.Option("--blank", metavar="NUMBER", parser=decimal, help="What an empty reward stands for, such as 0."),
]


SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Leave out rows that cannot be read.")]


@dataclass(frozen=True)
class Columns:
    """How logs are read: what `read_logs` takes, each an option."""

    campaign: CampaignColumn = None
    arm: ArmColumn = None
    reward: RewardColumn = None
    pulls: PullsColumn = None
    successes: SuccessesColumn = None
    propensity: PropensityColumn = None
    features: FeatureColumns = None
    rewards: Claimed = None
    blank: Blank = None
    skip_bad: SkipBad = False


GUESSED = Columns()
"""No column was named."""


def reading(command: Callable[..., None]) -> Callable[..., None]:
    """A command that takes `columns`, with an option for each of them in its place."""
    names = [field.name for field in fields(Columns)]

    @wraps(command)
    def told(**given: Any) -> None:
        command(columns=Columns(**{name: given.pop(name) for name in names}), **given)

    own = signature(command, eval_str=True).parameters
    options = signature(Columns, eval_str=True).parameters
    spread = [one for name, found in own.items() for one in (options.values() if name == "columns" else [found])]
    # Typer looks at both.
    told.__signature__ = Signature(spread)  # type: ignore[attr-defined]
    told.__annotations__ = {one.name: one.annotation for one in spread}
    return told


Model = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="auto, beta-binomial, gaussian, beta, linear, logistic, correlated, or campaigns (drawn again).",
    ),
]


PerArm = Annotated[bool, typer.Option("--per-arm", help="A prior for each arm's name instead of one for all arms.")]


Intercept = Annotated[
    bool,
    typer.Option(
        "--intercept/--no-intercept",
        help="Where arms have features: with one that is 1 for every arm, unless they hold a constant.",
    ),
]


PriorFile = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FILE.toml", help="Write the problem as TOML.")
]


SavedFit = Annotated[
    Path | None, typer.Option("--save", metavar="FILE.json", help="Write the fit with its checks, for `report`.")
]


CampaignSteps = Annotated[
    int | None,
    typer.Option(
        "--horizon", show_default="the median campaign's", parser=whole, help="Decisions in a campaign to come."
    ),
]
Certainty = Annotated[float, typer.Option("--confidence", parser=share, help="Confidence of the intervals.")]
Library = Annotated[str, typer.Option("--to", metavar="mabwiser|river", help="The other library.")]
LeftOut = Annotated[
    float, typer.Option("--share", metavar="50%", parser=share, help="Campaigns to tune on; the others judge.")
]


Saved = Annotated[Path, typer.Argument(metavar="FILE", help="A tuning or comparison that -o wrote.")]


SavedTuning = Annotated[Path, typer.Argument(metavar="FILE", help="A tuning that -o wrote.")]


Target = Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="Where the state goes.")]


Deployed = Annotated[Path, typer.Argument(metavar="STATE", help="A state that `deploy` or `Live.save` wrote.")]


Again = Annotated[
    str | None, typer.Option("--policy", metavar="NAME", help="The policy again, if it is your own or plays a table.")
]


Pending = Annotated[
    str | None,
    typer.Option(
        metavar="ignore|mean",
        show_default="the policy's own",
        help="How pulls count whose reward is not there yet: not, or by the mean.",
    ),
]


Book = Annotated[Path, typer.Argument(metavar="FILE", help="A ledger.")]


Table = Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="Where to write it: .csv or .parquet.")]


Summary = Annotated[bool, typer.Option("--summary", help="A line for each value instead of one for each regret.")]
