"""The command line: parse, call, print."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from banditune import __version__

app = typer.Typer(
    name="banditune",
    help="Find how much a bandit algorithm should explore.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

INTERRUPTED = 130

OWN = "or FILE.py:NAME for your own (this runs that file)"
Policy = Annotated[
    str, typer.Option(metavar="NAME", help=f"Policy from the shelf, e.g. ucb1, with options as ucb1:noise=1; {OWN}.")
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
Arms = Annotated[int | None, typer.Option(help="Number of arms.")]
Dims = Annotated[int | None, typer.Option(help="Features of an arm, in the linear and logistic problems.")]
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
Horizon = Annotated[int, typer.Option(help="Steps in a run.")]
Steps = Annotated[int | None, typer.Option("--horizon", show_default="the problem file's", help="Steps in a run.")]
Budget = Annotated[int, typer.Option(help="Simulated runs that the search may spend.")]
Spend = Annotated[
    int | None, typer.Option("--budget", show_default="1000", help="Simulated runs that the search may spend.")
]
Within = Annotated[
    str | None,
    typer.Option(metavar="2%", help="Instead of a budget: search until no value is better by more than this share."),
]
Confidence = Annotated[float, typer.Option(help="How sure the search must be of that.")]
MaxBudget = Annotated[
    int | None, typer.Option(show_default="100000", help="With --within: runs after which the search ends in any case.")
]
MaxTime = Annotated[float | None, typer.Option(metavar="SECONDS", help="End the search after so many seconds.")]
Validate = Annotated[int, typer.Option(help="Fresh instances on which the answer is judged.")]
Judge = Annotated[
    int | None,
    typer.Option(
        "--validate", show_default="as many as it takes", help="Fresh instances on which the answer is judged."
    ),
]
Runs = Annotated[int, typer.Option(help="Runs for each value.")]
Values = Annotated[
    str | None, typer.Option(metavar="A,B,...", help="Parameter values; without them a grid, denser where it bends.")
]
Seed = Annotated[int, typer.Option(help="Same seed, same answer.")]
Regret = Annotated[str, typer.Option(metavar="expected|realised", help="Which regret to count.")]
Noise = Annotated[str, typer.Option(metavar="shared|own", help="Reward noise of the parameter values on an instance.")]
Jobs = Annotated[int | None, typer.Option(help="Threads or processes; all cores unless told.")]
Where = Annotated[
    str,
    typer.Option(
        "--cluster", metavar="PLACE", help="Where to play: threads, processes, dask://HOST:8786, ray://HOST:10001, ray."
    ),
]
TimeLimit = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", help="End the work if a piece of it takes longer; child processes play it then."),
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
Left = Annotated[int | None, typer.Option(help="Rounds left.")]
Discount = Annotated[float | None, typer.Option(help="What a reward is worth a round later, instead of rounds left.")]
PaperRuns = Annotated[int, typer.Option("--runs", help="Runs at each width; 10000 is the paper's scale.")]
Tunings = Annotated[int, typer.Option(help="Tunings of each tuner with each budget.")]
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
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no table and no progress.")]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"banditune {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


@app.command()
def tune(
    policy: Policy,
    problem: Problem,
    horizon: Steps = None,
    arms: Arms = None,
    dims: Dims = None,
    features: Features = None,
    prior: Prior = None,
    means: Means = None,
    names: Names = None,
    tuner: Tuner = "two-part",
    budget: Spend = None,
    within: Within = None,
    confidence: Confidence = 0.95,
    max_budget: MaxBudget = None,
    max_time: MaxTime = None,
    validate: Judge = None,
    seed: Seed = 0,
    regret: Regret = "expected",
    noise: Noise = "shared",
    jobs: Jobs = None,
    cluster: Where = "threads",
    time_limit: TimeLimit = None,
    shortcut: Shortcut = True,
    device: Device = "cpu",
    curve: Drawn = False,
    floor: Floor = None,
    stress: Stressed = False,
    ledger: Ledger = None,
    json: Json = False,
    output: Output = None,
    plot: Plot = None,
    quiet: Quiet = False,
) -> None:
    """Find the parameter value with the lowest Bayes regret."""
    from banditune import study

    def work(progress: Any) -> Any:
        made, steps = expected(
            problem, horizon, arms=arms, dims=dims, features=features, prior=prior, means=means, names=names
        )
        return study.tune(
            policy_named(policy, made), made, tuner_named(tuner), horizon=steps,
            budget=budget, within=None if within is None else share_of(within),
            confidence=confidence, max_budget=max_budget, max_time=max_time, validate=validate, seed=seed,
            regret=regret, noise=noise, jobs=jobs, cluster=cluster, time_limit=time_limit, shortcut=shortcut, device=device,
            curve=curve or plot is not None, floor=floor, stress=stress, ledger=ledger, progress=progress,
        )  # fmt: skip

    deliver(work, json=json, output=output, plot=plot, quiet=quiet, ledger=ledger)


@app.command()
def curve(
    policy: Policy,
    problem: Problem,
    horizon: Steps = None,
    arms: Arms = None,
    dims: Dims = None,
    features: Features = None,
    prior: Prior = None,
    means: Means = None,
    names: Names = None,
    values: Values = None,
    runs: Runs = 1000,
    seed: Seed = 0,
    regret: Regret = "expected",
    noise: Noise = "shared",
    jobs: Jobs = None,
    cluster: Where = "threads",
    time_limit: TimeLimit = None,
    shortcut: Shortcut = True,
    device: Device = "cpu",
    ledger: Ledger = None,
    json: Json = False,
    output: Output = None,
    plot: Plot = None,
    quiet: Quiet = False,
) -> None:
    """Bayes regret over parameter values."""
    from banditune import study
    from banditune.shelf import parsed

    def work(progress: Any) -> Any:
        made, steps = expected(
            problem, horizon, arms=arms, dims=dims, features=features, prior=prior, means=means, names=names
        )
        return study.curve(
            policy_named(policy, made), made, None if values is None else parsed(values), horizon=steps, runs=runs,
            seed=seed, regret=regret, noise=noise, jobs=jobs, cluster=cluster, time_limit=time_limit, shortcut=shortcut,
            device=device, ledger=ledger, progress=progress,
        )  # fmt: skip

    deliver(work, json=json, output=output, plot=plot, quiet=quiet, ledger=ledger)


@app.command()
def compare(
    policies: Policies,
    problem: Problem,
    horizon: Steps = None,
    arms: Arms = None,
    dims: Dims = None,
    features: Features = None,
    prior: Prior = None,
    means: Means = None,
    names: Names = None,
    tuner: Tuner = "two-part",
    budget: Budget = 1000,
    validate: Validate = 1000,
    seed: Seed = 0,
    regret: Regret = "expected",
    noise: Noise = "shared",
    jobs: Jobs = None,
    cluster: Where = "threads",
    time_limit: TimeLimit = None,
    shortcut: Shortcut = True,
    device: Device = "cpu",
    floor: Floor = None,
    ledger: Ledger = None,
    json: Json = False,
    output: Output = None,
    plot: Plot = None,
    quiet: Quiet = False,
) -> None:
    """Tune several policies and judge them on the same fresh instances."""
    from banditune import study

    made, steps = expected(
        problem, horizon, arms=arms, dims=dims, features=features, prior=prior, means=means, names=names
    )

    def work(progress: Any) -> Any:
        return study.compare(
            [policy_named(policy, made) for policy in policies],
            made,
            tuner_named(tuner),
            horizon=steps, budget=budget, validate=validate, seed=seed, regret=regret, noise=noise, jobs=jobs,
            cluster=cluster, time_limit=time_limit, shortcut=shortcut, device=device, floor=floor, ledger=ledger,
            progress=progress,
        )  # fmt: skip

    deliver(work, json=json, output=output, plot=plot, quiet=quiet, ledger=ledger)


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
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Leave out rows that cannot be read.")]
Model = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="auto, beta-binomial, gaussian, beta, linear, logistic, correlated, or campaigns (drawn again).",
    ),
]
PerArm = Annotated[bool, typer.Option("--per-arm", help="A prior for each arm's name instead of one for all arms.")]
PriorFile = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FILE.toml", help="Write the problem as TOML.")
]
SavedFit = Annotated[
    Path | None, typer.Option("--save", metavar="FILE.json", help="Write the fit with its checks, for `report`.")
]
LeftOut = Annotated[str, typer.Option("--share", metavar="50%", help="Campaigns to tune on; the others judge.")]


@app.command()
def fit(
    logs: LogFile,
    model: Model = "auto",
    per_arm: PerArm = False,
    campaign: CampaignColumn = None,
    arm: ArmColumn = None,
    reward: RewardColumn = None,
    pulls: PullsColumn = None,
    successes: SuccessesColumn = None,
    propensity: PropensityColumn = None,
    features: FeatureColumns = None,
    rewards: Claimed = None,
    skip_bad: SkipBad = False,
    arms: Arms = None,
    horizon: Steps = None,
    confidence: Confidence = 0.95,
    json: Json = False,
    output: PriorFile = None,
    save: SavedFit = None,
    plot: Plot = None,
    quiet: Quiet = False,
) -> None:
    """Fit what to expect to past logs, as a problem for the other commands."""
    from banditune import logs as room
    from banditune.results import check_writable

    if output is not None:
        check_writable(output)

    def work(progress: Any) -> Any:
        found = room.read_logs(
            logs, campaign=campaign, arm=arm, reward=reward, pulls=pulls, successes=successes, propensity=propensity,
            features=features, rewards=rewards, skip_bad=skip_bad, progress=lambda rows: progress(rows, 0),
        )  # fmt: skip
        said.extend(found.told)
        return room.fit(found, model, per_arm=per_arm, arms=arms, horizon=horizon, confidence=confidence)

    said: list[str] = []
    result = deliver(work, json=json, output=save, plot=plot, quiet=quiet, told=rows_read, before=said)
    if output is not None:
        remarks = (
            f"{result.model} fitted to {logs.name}: {result.decisions:,} decisions, {result.campaigns} campaigns",
        )
        room.write_prior(result.problem, output, result.horizon, (*remarks, *result.notes))


@app.command()
def backtest(
    logs: LogFile,
    policy: Policy,
    model: Model = "auto",
    per_arm: PerArm = False,
    share: LeftOut = "50%",
    campaign: CampaignColumn = None,
    arm: ArmColumn = None,
    reward: RewardColumn = None,
    pulls: PullsColumn = None,
    successes: SuccessesColumn = None,
    propensity: PropensityColumn = None,
    features: FeatureColumns = None,
    rewards: Claimed = None,
    skip_bad: SkipBad = False,
    horizon: Steps = None,
    tuner: Tuner = "two-part",
    budget: Budget = 1000,
    seed: Seed = 0,
    jobs: Jobs = None,
    json: Json = False,
    output: Output = None,
    quiet: Quiet = False,
) -> None:
    """Tune a policy on some past campaigns and judge it on the others."""
    from banditune import logs as room

    def work(progress: Any) -> Any:
        found = room.read_logs(
            logs, campaign=campaign, arm=arm, reward=reward, pulls=pulls, successes=successes, propensity=propensity,
            features=features, rewards=rewards, skip_bad=skip_bad,
        )  # fmt: skip
        said.extend(found.told)
        return room.backtest(
            policy_named(policy), found, model, per_arm=per_arm, share=share_of(share), horizon=horizon,
            tuner=tuner_named(tuner), budget=budget, seed=seed, jobs=jobs, progress=progress,
        )  # fmt: skip

    said: list[str] = []
    deliver(work, json=json, output=output, quiet=quiet, before=said)


def rows_read(done: int, total: int) -> str:
    """How many rows were read."""
    return f"{done:,} rows"


exact = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="What is computed rather than simulated.")
app.add_typer(exact, name="exact")


@exact.command()
def optimum(
    problem: Problem,
    horizon: Horizon,
    arms: Arms = None,
    prior: Prior = None,
    means: Means = None,
    names: Names = None,
    json: Json = False,
    output: Output = None,
) -> None:
    """The best that any policy can do: two Bernoulli arms, or a mixture of a few instances."""
    from banditune import study

    made = problem_named(problem, arms=arms, prior=prior, means=means, names=names)
    deliver(lambda told: study.optimum(made, horizon=horizon), json=json, output=output)


@exact.command()
def regret(
    policy: Policy,
    problem: Problem,
    horizon: Horizon,
    values: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="Parameter values; without them theory's.")
    ] = None,
    arms: Arms = None,
    prior: Prior = None,
    means: Means = None,
    names: Names = None,
    json: Json = False,
    output: Output = None,
) -> None:
    """The Bayes regret of a policy on a few arms that pay 0 or 1, to the last digit."""
    from banditune import study
    from banditune.shelf import parsed

    played, made = both_named(policy, problem, arms=arms, prior=prior, means=means, names=names)
    wanted = None if values is None else parsed(values)
    deliver(lambda told: study.exact_regret(played, made, wanted, horizon=horizon), json=json, output=output)


@exact.command()
def bound(
    problem: Problem,
    horizon: Horizon,
    arms: Arms = None,
    prior: Prior = None,
    names: Names = None,
    runs: Annotated[int, typer.Option(help="Instances on which sampled bounds are computed.")] = 1000,
    seed: Seed = 0,
    confidence: Annotated[float, typer.Option(help="How sure the bound must be.")] = 0.95,
    json: Json = False,
    output: Output = None,
) -> None:
    """What no policy can lose less than: Bernoulli or Gaussian arms, any number of them, any horizon."""
    from banditune import study

    made = problem_named(problem, arms=arms, prior=prior, names=names)

    def work(told: Any) -> Any:
        return study.lower_bound(made, horizon=horizon, runs=runs, seed=seed, confidence=confidence)

    deliver(work, json=json, output=output)


@exact.command()
def gittins(
    successes: Annotated[int, typer.Option(help="Pulls of the arm that paid 1.")] = 0,
    failures: Annotated[int, typer.Option(help="Pulls of the arm that paid 0.")] = 0,
    left: Left = None,
    discount: Discount = None,
    prior: Annotated[str, typer.Option(metavar="A,B", help="Beta prior of the mean reward.")] = "1,1",
) -> None:
    """The Gittins index of a Bernoulli arm: the price of a pull at which it just breaks even."""
    from banditune.exact import gittins_index
    from banditune.shelf import parsed

    def work(told: Any) -> float:
        return gittins_index(successes, failures, left=left, discount=discount, prior=parsed(prior))

    typer.echo(f"{attended(work, quiet=False):.8f}")


@app.command()
def report(result: Result, output: Html = None, figures: Figures = None, markdown: Markdown = None) -> None:
    """A saved result, or all that a ledger holds, as a report: one HTML file, figures, or Markdown."""
    from banditune.contracts import BadRequest
    from banditune.report import written

    if output is None and figures is None and markdown is None:
        raise BadRequest("a report must be told where to go, but got no -o FILE.html, no --figures and no --markdown.")
    for path in written(result, output, figures, markdown, books_in):
        typer.echo(f"wrote {path}")


def books_in(path: Path) -> list[Any]:
    """Accounts from a ledger or its summary; parameters have the names that they have on the shelf."""
    from banditune.shelf import every_policy
    from banditune.study.accounts import accounts_in

    shelf = every_policy()

    def names(policy: str) -> tuple[str, ...] | None:
        made = shelf.get(policy)
        return None if made is None else tuple(parameter.name for parameter in getattr(made, "parameters", ()))

    return list(accounts_in(path, names))


@app.command()
def paper(
    runs: PaperRuns = 500,
    tunings: Tunings = 10_000,
    only: Only = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    cluster: Where = "threads",
    device: Device = "cpu",
    ledger: Ledger = None,
    json: Json = False,
    output: Folder = None,
    quiet: Quiet = False,
) -> None:
    """Every experiment of the paper again, our number beside each published one; 1 if one is far off."""
    from banditune.paper import reproduce
    from banditune.report.paper import check_folder, write_folder

    if output is not None:
        check_folder(output)

    def work(progress: Any) -> Any:
        return reproduce(
            only=only, runs=runs, tunings=tunings, seed=seed, jobs=jobs, cluster=cluster, device=device, ledger=ledger,
            progress=progress,
        )  # fmt: skip

    def told(done: int, total: int) -> str:
        return f"{minutes(done)} of about {minutes(total)}"

    result = attended(work, quiet=quiet, told=told, ledger=ledger)
    if output is not None:
        write_folder(result, output)
    if json:
        typer.echo(result.to_json())
    elif not quiet:
        typer.echo(repr(result))
    raise typer.Exit(0 if result.agrees else 1)


def minutes(seconds: int) -> str:
    """A time in words."""
    return f"{seconds} s" if seconds < 100 else f"{seconds / 60:.0f} min"


@app.command()
def doctor(device: Wanted = "auto", json: Json = False) -> None:
    """What this machine has, what works, what to install."""
    from banditune.report.tables import diagnosis
    from banditune.study.doctor import examined
    from banditune.study.door import job_of

    jobs = [
        job_of(policy_named("ucb1"), problem_named("bernoulli", arms=3), horizon=1000),
        job_of(policy_named("linucb"), problem_named("linear", arms=5, dims=3), horizon=100),
    ]
    found = attended(lambda told: examined(jobs, device), quiet=False)
    if json:
        import json as codec

        typer.echo(codec.dumps(found))
    else:
        typer.echo(diagnosis(found))
    raise typer.Exit(0 if found["works"] else 1)


@app.command("list")
def show(json: Json = False) -> None:
    """Every policy, problem and tuner, with parameters and one line of explanation."""
    from banditune.shelf import shelves

    if json:
        import json as codec

        typer.echo(codec.dumps(shelves()))
        return
    for heading, entries in shelves().items():
        typer.echo(f"{heading}")
        width = max(len(name) for name in entries)
        for name, entry in entries.items():
            typer.echo(f"  {name.ljust(width)}  {entry['about']}")
            for parameter in entry["parameters"]:
                whole = ", a whole number" if parameter["integer"] else ""
                span = f"[{parameter['low']}, {parameter['high']}]{whole}"
                typer.echo(f"  {' ' * width}    tunes {parameter['name']} in {span}, theory {parameter['theory']}")
            if entry["options"]:
                told = ", ".join(f"{option}={value}" for option, value in entry["options"].items())
                typer.echo(f"  {' ' * width}    options {told}")
        typer.echo("")


Saved = Annotated[Path, typer.Argument(metavar="FILE", help="A tuning or comparison that -o wrote.")]
Target = Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="Where the state goes.")]
Deployed = Annotated[Path, typer.Argument(metavar="STATE", help="A state that `deploy` or `Live.save` wrote.")]
Again = Annotated[
    str | None, typer.Option("--policy", metavar="NAME", help="The policy again, if it is your own or plays a table.")
]
Pending = Annotated[
    str, typer.Option(metavar="ignore|mean", help="How pulls count whose reward is not there yet: not, or by the mean.")
]


@app.command()
def deploy(
    result: Saved,
    output: Target,
    policy: Again = None,
    names: Names = None,
    features: Features = None,
    seed: Seed = 0,
    pending: Pending = "ignore",
) -> None:
    """Make the state of a policy at work out of a saved tuning."""
    from banditune.live import deploy_tuning
    from banditune.results import check_writable, load
    from banditune.shelf import matrix_from

    check_writable(output)

    def work(told: Any) -> Any:
        return deploy_tuning(
            load(result),
            policy_named(policy) if policy else None,
            names=names.split(",") if names else None,
            features=matrix_from(features) if features else None,
            seed=seed,
            pending=pending,
        )

    made = attended(work, quiet=False)
    made.save(output)
    typer.echo(repr(made))


at_work = typer.Typer(
    help="Work with a deployed policy, one process at a time.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(at_work, name="live")


@at_work.command()
def select(state: Deployed, policy: Again = None) -> None:
    """Select an arm, and print its name."""
    found = at_work_in(state, policy)
    arm = found.select_arm()
    found.save(state)
    typer.echo(arm)


@at_work.command(context_settings={"ignore_unknown_options": True})
def update(
    state: Deployed,
    arm: Annotated[str, typer.Argument(help="The arm's name.")],
    reward: Annotated[float, typer.Argument(help="What it paid.")],
    policy: Again = None,
) -> None:
    """Learn a reward."""
    found = at_work_in(state, policy)
    found.update(found.arm_called(arm), reward)
    found.save(state)


@at_work.command("show")
def live_show(state: Deployed, policy: Again = None) -> None:
    """What is known about each arm."""
    typer.echo(repr(at_work_in(state, policy)))


def at_work_in(state: Path, policy: str | None) -> Any:
    """A deployed policy from its file."""
    from banditune.live import Live

    return attended(lambda told: Live.load(state, policy_named(policy) if policy else None), quiet=False)


books = typer.Typer(help="Look into a ledger.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(books, name="ledger")

Book = Annotated[Path, typer.Argument(metavar="FILE", help="A ledger.")]
Table = Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="Where to write it: .csv or .parquet.")]
Summary = Annotated[bool, typer.Option("--summary", help="A line for each value instead of one for each regret.")]


@books.command("show")
def ledger_show(file: Book, json: Json = False) -> None:
    """What was played, and how much of it."""
    from banditune.report.tables import ledger_words
    from banditune.study.accounts import overview

    tell(overview(file), ledger_words, json=json)


@books.command("verify")
def ledger_verify(file: Book, json: Json = False) -> None:
    """Check every number against its checksum."""
    from banditune.report.tables import verified_words
    from banditune.study.accounts import verified

    tell(verified(file), verified_words, json=json)


@books.command("export")
def ledger_export(file: Book, output: Table, summary: Summary = False) -> None:
    """Write all regrets, or a summary of them, as a table."""
    from banditune.study.accounts import exported

    attended(lambda told: exported(file, output, whole=not summary), quiet=True)


def tell(found: Any, words: Callable[[Any], str], *, json: bool) -> None:
    """Print what was found, as JSON or in words."""
    import json as codec

    typer.echo(codec.dumps(found) if json else words(found))


def share_of(text: str) -> float:
    """2% or 0.02, as a number."""
    from banditune.contracts import BadRequest

    try:
        return float(text.removesuffix("%")) / 100 if text.endswith("%") else float(text)
    except ValueError:
        raise BadRequest(f"a share must be a number such as 2% or 0.02, but got {text!r}.") from None


def policy_named(name: str, problem: Any = None) -> Any:
    """A policy by its name on the shelf, or from a user's file; one that plays a table knows the problem's prior."""
    from banditune.contracts import Policy as Kind
    from banditune.exact import suited
    from banditune.shelf import every_policy, pick

    found = pick("policy", name, every_policy(), Kind)
    return found if problem is None or ":" in name else suited(found, problem)


def both_named(policy: str, problem: str, **options: Any) -> tuple[Any, Any]:
    """A policy and a problem by their names."""
    made = problem_named(problem, **options)
    return policy_named(policy, made), made


def expected(name: str, horizon: int | None, **options: Any) -> tuple[Any, int]:
    """A problem by its name, and the horizon that was told or that stands in the problem's file."""
    from banditune.contracts import BadRequest
    from banditune.logs import read_prior

    known = read_prior(name).horizon if horizon is None and name.endswith(".toml") else None
    steps = known if horizon is None else horizon
    if steps is None:
        raise BadRequest("the number of steps in a run must be told; give it as --horizon.")
    return problem_named(name, **options), steps


def problem_named(name: str, **options: Any) -> Any:
    """A problem by its name on the shelf, or from a user's file."""
    from banditune.contracts import BadRequest
    from banditune.contracts import Problem as Kind
    from banditune.logs import read_prior
    from banditune.problems import SHELF
    from banditune.shelf import matrix_from, parsed, pick

    if options.get("features"):
        options["features"] = matrix_from(options["features"])
    told = {key: parsed(value) if isinstance(value, str) else value for key, value in options.items()}
    if options.get("names"):
        told["names"] = options["names"].split(",")
    told = {key: value for key, value in told.items() if value is not None}
    if not name.endswith(".toml"):
        return pick("problem", name, SHELF, Kind, told)
    if told:
        raise BadRequest(f"a problem from a file takes no --{next(iter(told))}; write it into {name}.")
    return read_prior(name).problem


def tuner_named(name: str) -> Any:
    """A tuner by its name on the shelf, or from a user's file."""
    from banditune.contracts import Tuner as Kind
    from banditune.shelf import pick
    from banditune.tuners import SHELF

    return pick("tuner", name, SHELF, Kind)


def deliver(
    work: Callable[[Any], Any],
    *,
    json: bool,
    output: Path | None,
    plot: Path | None = None,
    quiet: bool = False,
    ledger: Path | None = None,
    told: Callable[[int, int], str] | None = None,
    before: Sequence[str] = (),
) -> Any:
    """Do the work with a progress bar, then print and write what came out; `before` it what the work said meanwhile."""
    from banditune.results import check_writable

    for path in (output, plot):
        if path is not None:
            check_writable(path)
            check_another(path, ledger)
    if plot is not None:
        from banditune.report.figures import check_format

        check_format(plot)
    result = attended(work, quiet=quiet, ledger=ledger, told=told or in_runs)
    if output is not None:
        result.save(output)
    if json:
        typer.echo(result.to_json())
    elif not quiet:
        from banditune.report.tables import text

        for line in before:
            typer.echo(line)
        typer.echo(("\n" if before else "") + text(result))
    if plot is not None:
        result.plot(plot)
    return result


def check_another(path: Path, ledger: Path | None) -> None:
    """A result must not be written over the ledger that it comes from."""
    from banditune.contracts import BadRequest

    if ledger is not None and path.resolve() == ledger.resolve():
        raise BadRequest(f"the result must go to another file than the ledger, but got {str(path)!r} for both.")


def in_runs(done: int, total: int) -> str:
    """Progress, told in runs."""
    return f"{done:,} of {total:,} runs"


def attended(
    work: Callable[[Any], Any],
    *,
    quiet: bool,
    told: Callable[[int, int], str] = in_runs,
    ledger: Path | None = None,
) -> Any:
    """Work in a second thread, so that this one can show progress and hear Ctrl-C even while code is compiled."""
    import threading

    outcome: dict[str, Any] = {}
    bar = Bar(shown=not quiet and sys.stderr.isatty(), words=told)

    def run() -> None:
        try:
            outcome["result"] = work(bar.told)
        except BaseException as error:
            outcome["error"] = error

    worker = threading.Thread(target=run, daemon=True)
    worker.start()
    try:
        while worker.is_alive():
            worker.join(0.1)
            bar.refresh()
    except KeyboardInterrupt:
        if ledger is None:
            raise
        bar.close()
        kept = f"what was played is in {ledger}, and the same command goes on from there"
        leave(complain(f"interrupted; {kept}.", INTERRUPTED))
    finally:
        bar.close()
    if "error" in outcome:
        raise outcome["error"]
    return outcome["result"]


class Bar:
    """A progress bar that appears only if the work takes more than a second."""

    def __init__(self, *, shown: bool, words: Callable[[int, int], str] = in_runs) -> None:
        self.shown, self.words = shown, words
        self.done = 0
        self.total = 0
        self.waited = 0
        self.live: Any = None

    def told(self, done: int, total: int) -> None:
        """Called from the working threads."""
        self.done, self.total = done, total

    def refresh(self) -> None:
        """Called ten times a second."""
        self.waited += 1
        if not self.shown or self.waited < 8:
            return
        if self.live is None:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.fields[runs]}"),
                TimeRemainingColumn(),
            )
            self.live = Progress(*columns, console=Console(stderr=True), transient=True)
            self.live.start()
            self.live.add_task("getting ready (code and tables are made once)", total=None, runs="")
        if self.done or self.total:
            told = self.words(self.done, self.total)
            doing = "playing" if self.total else "reading"
            self.live.update(0, description=doing, completed=self.done, total=self.total or None, runs=told)

    def close(self) -> None:
        """Take the bar away."""
        if self.live is not None:
            self.live.stop()


def main() -> None:
    """Run the command line: 0 done, 1 a policy or problem failed, 2 a request that cannot be served, 130 interrupted."""
    from banditune.contracts import BadRequest, Fault

    if len(sys.argv) == 1:
        sys.argv.append("--help")
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except BrokenPipeError:
        leave(141)
    except OSError as error:
        complain(f"the output cannot be written: {error.strerror or error}.", 1)
        leave(1)
    except BadRequest as error:
        code = complain(error, 2)
    except Fault as error:
        code = complain(error, 1)
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        # A group without a command is no mistake: what it can do is the answer.
        if type(error).__name__ == "NoArgsIsHelpError":
            typer.echo(error.format_message())
            sys.exit(0)
        code = complain(error.format_message(), 2)
    if code == INTERRUPTED:
        complain("interrupted.", INTERRUPTED)
        leave(INTERRUPTED)
    sys.exit(code or 0)


def complain(error: object, code: int) -> int:
    """One line on stderr."""
    print(f"banditune: {' '.join(str(error).split())}", file=sys.stderr)
    return code


def leave(code: int) -> None:
    """Leave at once, whatever threads are still doing."""
    sys.stderr.flush()
    os._exit(code)
