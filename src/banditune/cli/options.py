"""Command-line options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from banditune.cli.number_parsers import parse_integer, parse_number, parse_share

OWN_CODE_HINT = "or FILE.py:NAME for your own (this runs that file)"


PolicyOption = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help=f"Registered policy, e.g. ucb1, options as ucb1:noise=1 (default: the problem's); {OWN_CODE_HINT}.",
    ),
]


OptionalPoliciesOption = Annotated[
    list[str] | None,
    typer.Option("--policy", metavar="NAME", help=f"A policy, as for tune; once or more; {OWN_CODE_HINT}."),
]


PoliciesOption = Annotated[
    list[str],
    typer.Option("--policy", metavar="NAME", help=f"A policy, as for tune; give it twice or more; {OWN_CODE_HINT}."),
]


ProblemOption = Annotated[
    str,
    typer.Option(
        metavar="NAME", help=f"Registered problem, e.g. bernoulli, options as beta:v=8; FILE.toml; {OWN_CODE_HINT}."
    ),
]


OptionalProblemOption = Annotated[
    str | None,
    typer.Option(
        "--problem", metavar="NAME", help="Registered problem, as for tune; with FILE only if it is your own."
    ),
]


TunerOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Registered tuner, options as notes:precision=0.05; two-part by default, cma-es for several parameters.",
    ),
]


ArmsOption = Annotated[int | None, typer.Option(parser=parse_integer, help="Number of arms.")]


DimsOption = Annotated[
    int | None, typer.Option(parser=parse_integer, help="Features of an arm, in the linear and logistic problems.")
]


FeaturesOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Features of the arms, a row for each, as .csv or .npy.")
]


PriorOption = Annotated[
    str | None,
    typer.Option(
        metavar="A,B",
        help="Prior of the mean rewards, one per arm as 'A,B;A,B;...'; of theta (mean, variance) if arms have features.",
    ),
]


MeansOption = Annotated[
    str | None, typer.Option(metavar="ROWS", help="Mean rewards for the mixture, rows as '.6,.4;.4,.6'.")
]


NamesOption = Annotated[str | None, typer.Option(metavar="A,B,...", help="Names of the arms.")]


HorizonOption = Annotated[
    int | None,
    typer.Option("--horizon", show_default="the problem file's", parser=parse_integer, help="Steps in a run."),
]


BudgetOption = Annotated[int, typer.Option(parser=parse_integer, help="Simulated runs of the search.")]


OptionalBudgetOption = Annotated[
    int | None,
    typer.Option("--budget", show_default="1000", parser=parse_integer, help="Simulated runs of the search."),
]


PrecisionOption = Annotated[
    float | None,
    typer.Option(
        metavar="2%",
        parser=parse_share,
        help="Instead of a budget: search until no value is better by more than this share.",
    ),
]


ConfidenceOption = Annotated[
    float, typer.Option(parser=parse_share, help="Probability that this precision is reached.")
]


MaxRunsOption = Annotated[
    int | None,
    typer.Option(
        show_default="100000",
        parser=parse_integer,
        help="With --precision: the largest number of runs of the search.",
    ),
]


MaxTimeOption = Annotated[
    float | None, typer.Option(metavar="SECONDS", parser=parse_number, help="End the search after this many seconds.")
]


ValidateOption = Annotated[
    int | None,
    typer.Option(
        show_default="as many as the gain needs; compare: 1000",
        parser=parse_integer,
        help="Fresh instances on which the answer is validated.",
    ),
]


OptionalRunsOption = Annotated[
    int | None,
    typer.Option(
        "--runs",
        show_default="1000, or as many as the validation of the result had",
        parser=parse_integer,
        help="Runs of each series.",
    ),
]


RunsOption = Annotated[int, typer.Option(parser=parse_integer, help="Runs for each value.")]


ValuesOption = Annotated[
    str | None, typer.Option(metavar="A,B,...", help="Parameter values; by default a grid, denser at bends.")
]


SeriesValuesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--values",
        metavar="A,B,...",
        show_default="textbook",
        help="Parameter values of a policy, or the word textbook; once for each --policy, in their order.",
    ),
]


CheckpointsOption = Annotated[
    str | None,
    typer.Option(metavar="A,B,...", show_default="about 70 steps", help="Steps after which the regret is estimated."),
]


LabelsOption = Annotated[
    list[str] | None,
    typer.Option("--label", metavar="NAME", help="Name of a line or a result in the legend; give one for each."),
]


RangesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--range",
        metavar="NAME=LOW:HIGH",
        help="Search this range of a parameter instead of the usual one, e.g. gamma=0:3.",
    ),
]


OptionalSeedOption = Annotated[
    int | None, typer.Option("--seed", show_default="0", parser=parse_integer, help="Same seed, same answer.")
]


SeedOption = Annotated[int, typer.Option(parser=parse_integer, help="Same seed, same answer.")]


RegretOption = Annotated[str, typer.Option(metavar="expected|realised", help="Which regret is computed.")]


CommonRandomNumbersOption = Annotated[
    bool, typer.Option(help="Whether all parameter values have the same reward noise on an instance.")
]


WorkersOption = Annotated[
    int | None, typer.Option(show_default="all cores", parser=parse_integer, help="Threads or processes.")
]


ExecutorOption = Annotated[
    str,
    typer.Option(
        metavar="NAME", help="Where simulations run: threads, processes, dask://HOST:8786, ray://HOST:10001, ray."
    ),
]


TimeLimitOption = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        parser=parse_number,
        help="End the work if one chunk of it takes longer. With this limit it runs in child processes.",
    ),
]


ShortcutsOption = Annotated[bool, typer.Option(help="Use exact shortcuts where they apply.")]


DeviceOption = Annotated[str, typer.Option(metavar="cpu|gpu|auto", help="The device; auto uses a GPU if there is one.")]


RequiredDeviceOption = Annotated[
    str,
    typer.Option(
        "--device",
        metavar="cpu|gpu|auto",
        help="The device that must work, or the exit status is 1; auto: a GPU only if there is one.",
    ),
]


LowerBoundOption = Annotated[
    bool | None,
    typer.Option(
        "--lower-bound/--no-lower-bound",
        show_default="if it takes only seconds",
        help="Compute the lower bound on the regret of every policy.",
    ),
]


RobustnessOption = Annotated[
    bool, typer.Option("--robustness", help="Compute the regret on other problems than the expected one.")
]


RoundsLeftOption = Annotated[int | None, typer.Option(parser=parse_integer, help="Rounds left.")]


DiscountOption = Annotated[
    float | None,
    typer.Option(parser=parse_number, help="Discount of a reward per round, instead of rounds left."),
]


PaperRunsOption = Annotated[
    int, typer.Option("--runs", parser=parse_integer, help="Runs at each value; the paper has 10000.")
]


TuningsOption = Annotated[int, typer.Option(parser=parse_integer, help="Tunings of each tuner with each budget.")]


RowsOption = Annotated[
    str | None, typer.Option("--only", "--rows", metavar="A,B,...", help="Rows whose names contain one of these words.")
]


OutputFolderOption = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FOLDER", help="Write tables, figures and the JSON result.")
]


JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of the table.")]


OutputOption = Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the result as JSON.")]


PlotOption = Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the figure (.svg, .png, .pdf).")]


StoreOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write every regret to this file. Regrets in it are not simulated again."),
]


CurveOption = Annotated[
    bool, typer.Option("--curve", help="Compute the regret curve too, on fresh instances; implied by --plot.")
]


TunedResultArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="FILE",
        show_default=False,
        help="A tuning or a comparison that -o wrote; or give --policy and --problem.",
    ),
]


ResultsArgument = Annotated[
    list[Path],
    typer.Argument(metavar="FILE...", help="Results that -o wrote, a store, or a file from `store export --summary`."),
]


TitleOption = Annotated[str, typer.Option(help="The title of the page.")]


UnitOption = Annotated[
    str,
    typer.Option(metavar="WORD", help="Name of one reward, e.g. clicks. The report begins with the gain in this unit."),
]


PerOption = Annotated[
    int | None,
    typer.Option(metavar="DECISIONS", help="Decisions to which gains in the summary refer; 1,000 by default."),
]


HtmlOption = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FILE.html", help="Write the report as HTML.")
]


FiguresOption = Annotated[Path | None, typer.Option(metavar="FOLDER", help="Write the figure as .svg, .png and .pdf.")]


MarkdownOption = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the tables as Markdown.")]


LatexOption = Annotated[
    Path | None, typer.Option(metavar="FILE.tex", help="Write a table of each result as LaTeX, which needs no package.")
]


FigureOption = Annotated[
    Path, typer.Option("-o", "--output", metavar="FILE", help="Draw the figure into this file (.svg, .png, .pdf).")
]


ScaleOption = Annotated[
    str | None,
    typer.Option("--xscale", metavar="linear|log", show_default="as usual", help="Scale of the horizontal axis."),
]


SizeOption = Annotated[
    str | None,
    typer.Option(
        metavar="column|W,H",
        show_default="7.2,4.2",
        help="Width and height in inches; column fits one of two columns of a page.",
    ),
]


TopicArgument = Annotated[str, typer.Argument(metavar="TOPIC", help="assumptions")]


ExampleNames = Annotated[
    list[str] | None, typer.Argument(metavar="NAME", show_default=False, help="Examples of the list, or a folder.")
]


ExamplesFolderOption = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FOLDER", help="Write the examples into this folder.")
]


QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print no table and no progress, only warnings.")]


StoreArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A store of regrets.")]


TableOption = Annotated[
    Path, typer.Option("-o", "--output", metavar="FILE", help="The file for the table: .csv or .parquet.")
]


SummaryOption = Annotated[bool, typer.Option("--summary", help="A line for each value instead of one for each regret.")]


FixedOption = Annotated[
    list[str] | None,
    typer.Option("--fix", metavar="NAME=VALUE", help="Fix a parameter that is not searched, e.g. epsilon=0.1."),
]


StrictOption = Annotated[
    bool, typer.Option("--strict", help="Exit with status 3 if a precision was not reached or there is a notice.")
]
