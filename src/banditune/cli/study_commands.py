"""tune, curve, compare."""

from __future__ import annotations

from typing import Any

import typer

from banditune.cli.app import app
from banditune.cli.options import (
    ArmsOption,
    BudgetOption,
    CommonRandomNumbersOption,
    ConfidenceOption,
    CurveOption,
    DeviceOption,
    DimsOption,
    ExecutorOption,
    FeaturesOption,
    HorizonOption,
    JsonOption,
    LowerBoundOption,
    MaxBudgetOption,
    MaxTimeOption,
    MeansOption,
    NamesOption,
    OptionalBudgetOption,
    OptionalValidateOption,
    OutputOption,
    PlotOption,
    PoliciesOption,
    PolicyOption,
    PrecisionOption,
    PriorOption,
    ProblemOption,
    QuietOption,
    RangesOption,
    RegretOption,
    RobustnessOption,
    RunsOption,
    SeedOption,
    ShortcutOption,
    StoreOption,
    TimeLimitOption,
    TunerOption,
    ValidateOption,
    ValuesOption,
    WorkersOption,
)
from banditune.cli.runner import run_and_print
from banditune.cli.specs import parse_policy, parse_problem_and_horizon, parse_ranges, parse_tuner


@app.command()
def tune(
    context: typer.Context,
    policy: PolicyOption,
    problem: ProblemOption,
    horizon: HorizonOption = None,
    arms: ArmsOption = None,
    dims: DimsOption = None,
    features: FeaturesOption = None,
    prior: PriorOption = None,
    means: MeansOption = None,
    names: NamesOption = None,
    tuner: TunerOption = "two-part",
    budget: OptionalBudgetOption = None,
    within: PrecisionOption = None,
    confidence: ConfidenceOption = 0.95,
    max_budget: MaxBudgetOption = None,
    max_time: MaxTimeOption = None,
    validate: OptionalValidateOption = None,
    seed: SeedOption = 0,
    regret: RegretOption = "expected",
    noise: CommonRandomNumbersOption = "shared",
    ranges: RangesOption = None,
    jobs: WorkersOption = None,
    cluster: ExecutorOption = "threads",
    time_limit: TimeLimitOption = None,
    shortcut: ShortcutOption = True,
    device: DeviceOption = "cpu",
    curve: CurveOption = False,
    floor: LowerBoundOption = None,
    stress: RobustnessOption = False,
    ledger: StoreOption = None,
    json: JsonOption = False,
    output: OutputOption = None,
    plot: PlotOption = None,
    quiet: QuietOption = False,
) -> None:
    """Find the parameter value with the lowest Bayes regret."""
    from banditune.study import tuning

    def work(progress: Any) -> Any:
        made, steps = parse_problem_and_horizon(
            problem, horizon, arms=arms, dims=dims, features=features, prior=prior, means=means, names=names
        )
        return tuning.tune(
            parse_policy(policy), made, parse_tuner(tuner), horizon=steps,
            budget=budget, within=within, confidence=confidence, max_budget=max_budget, max_time=max_time,
            validate=validate, seed=seed, ranges=parse_ranges(ranges),
            regret=regret, noise=noise, jobs=jobs, cluster=cluster, time_limit=time_limit, shortcut=shortcut, device=device,
            curve=curve or plot is not None, floor=floor, stress=stress, ledger=ledger, progress=progress,
            announce=progress.announce,
        )  # fmt: skip

    run_and_print(work, json=json, output=output, plot=plot, quiet=quiet, ledger=ledger, context=context)


@app.command()
def curve(
    context: typer.Context,
    policy: PolicyOption,
    problem: ProblemOption,
    horizon: HorizonOption = None,
    arms: ArmsOption = None,
    dims: DimsOption = None,
    features: FeaturesOption = None,
    prior: PriorOption = None,
    means: MeansOption = None,
    names: NamesOption = None,
    values: ValuesOption = None,
    runs: RunsOption = 1000,
    seed: SeedOption = 0,
    regret: RegretOption = "expected",
    noise: CommonRandomNumbersOption = "shared",
    ranges: RangesOption = None,
    jobs: WorkersOption = None,
    cluster: ExecutorOption = "threads",
    time_limit: TimeLimitOption = None,
    shortcut: ShortcutOption = True,
    device: DeviceOption = "cpu",
    ledger: StoreOption = None,
    json: JsonOption = False,
    output: OutputOption = None,
    plot: PlotOption = None,
    quiet: QuietOption = False,
) -> None:
    """Bayes regret over parameter values."""
    from banditune.core.parsing import parse_value
    from banditune.study import simulating

    def work(progress: Any) -> Any:
        made, steps = parse_problem_and_horizon(
            problem, horizon, arms=arms, dims=dims, features=features, prior=prior, means=means, names=names
        )
        return simulating.curve(
            parse_policy(policy), made, None if values is None else parse_value(values), horizon=steps, runs=runs,
            ranges=parse_ranges(ranges),
            seed=seed, regret=regret, noise=noise, jobs=jobs, cluster=cluster, time_limit=time_limit, shortcut=shortcut,
            device=device, ledger=ledger, progress=progress,
        )  # fmt: skip

    run_and_print(work, json=json, output=output, plot=plot, quiet=quiet, ledger=ledger, context=context)


@app.command(short_help="Tune several policies and judge them on the same instances.")
def compare(
    context: typer.Context,
    policies: PoliciesOption,
    problem: ProblemOption,
    horizon: HorizonOption = None,
    arms: ArmsOption = None,
    dims: DimsOption = None,
    features: FeaturesOption = None,
    prior: PriorOption = None,
    means: MeansOption = None,
    names: NamesOption = None,
    tuner: TunerOption = "two-part",
    budget: BudgetOption = 1000,
    validate: ValidateOption = 1000,
    seed: SeedOption = 0,
    regret: RegretOption = "expected",
    noise: CommonRandomNumbersOption = "shared",
    ranges: RangesOption = None,
    jobs: WorkersOption = None,
    cluster: ExecutorOption = "threads",
    time_limit: TimeLimitOption = None,
    shortcut: ShortcutOption = True,
    device: DeviceOption = "cpu",
    floor: LowerBoundOption = None,
    ledger: StoreOption = None,
    json: JsonOption = False,
    output: OutputOption = None,
    plot: PlotOption = None,
    quiet: QuietOption = False,
) -> None:
    """Tune several policies and judge them on the same fresh instances."""
    from banditune.study import comparing

    made, steps = parse_problem_and_horizon(
        problem, horizon, arms=arms, dims=dims, features=features, prior=prior, means=means, names=names
    )

    def work(progress: Any) -> Any:
        return comparing.compare(
            [parse_policy(policy) for policy in policies],
            made,
            parse_tuner(tuner),
            ranges=parse_ranges(ranges),
            horizon=steps, budget=budget, validate=validate, seed=seed, regret=regret, noise=noise, jobs=jobs,
            cluster=cluster, time_limit=time_limit, shortcut=shortcut, device=device, floor=floor, ledger=ledger,
            progress=progress,
        )  # fmt: skip

    run_and_print(work, json=json, output=output, plot=plot, quiet=quiet, ledger=ledger, context=context)
