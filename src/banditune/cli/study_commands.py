"""The commands `tune`, `curve`, `compare` and `regret-over-time`."""

from __future__ import annotations

from typing import Any

import typer

from banditune.cli.app import app
from banditune.cli.option_groups import (
    IncludeOptions,
    LimitOptions,
    OptionalProblemOptions,
    OutputOptions,
    ProblemOptions,
    RunOptions,
    SearchOptions,
    SimulationOptions,
    expand_groups,
    parse_lower_bound,
)
from banditune.cli.options import (
    BudgetOption,
    CheckpointsOption,
    FixedOption,
    LabelsOption,
    LowerBoundOption,
    OptionalBudgetOption,
    OptionalPoliciesOption,
    OptionalRunsOption,
    OptionalSeedOption,
    PoliciesOption,
    PolicyOption,
    RangesOption,
    RunsOption,
    SeedOption,
    SeriesValuesOption,
    TunedResultArgument,
    ValuesOption,
)
from banditune.cli.runner import exit_if_strict, run_and_print
from banditune.cli.specs import parse_fixed, parse_policy, parse_ranges, parse_series_values, parse_steps
from banditune.core.request_errors import make_argument_error, make_unused_error


@app.command()
@expand_groups
def tune(
    context: typer.Context,
    policy: PolicyOption,
    problem: ProblemOptions,
    search: SearchOptions,
    limits: LimitOptions,
    simulation: SimulationOptions,
    run: RunOptions,
    include: IncludeOptions,
    output: OutputOptions,
    budget: OptionalBudgetOption = None,
    seed: SeedOption = 0,
) -> None:
    """Find the parameter value with the lowest Bayes regret."""
    from banditune.study import tuning

    def run_request(progress: Any) -> Any:
        parsed_problem, horizon = problem.parse()
        return tuning.tune(
            parse_policy(policy),
            parsed_problem,
            horizon=horizon,
            budget=budget,
            precision=limits.precision,
            seed=seed,
            include=include.parse(draws=output.plot is not None),
            search=search.parse(limits),
            simulation=simulation.parse(),
            run=run.parse(progress),
        )

    result = run_and_print(run_request, **output.select_printing(), store=run.store, context=context)
    exit_if_strict(result, output.strict)


@app.command()
@expand_groups
def curve(
    context: typer.Context,
    policy: PolicyOption,
    problem: ProblemOptions,
    simulation: SimulationOptions,
    run: RunOptions,
    output: OutputOptions,
    values: ValuesOption = None,
    runs: RunsOption = 1000,
    seed: SeedOption = 0,
    ranges: RangesOption = None,
    fixed: FixedOption = None,
) -> None:
    """Compute the Bayes regret over parameter values."""
    from banditune.core.parsing import parse_value
    from banditune.study import simulating
    from banditune.study.settings import Search

    def run_request(progress: Any) -> Any:
        parsed_problem, horizon = problem.parse()
        return simulating.curve(
            parse_policy(policy),
            parsed_problem,
            None if values is None else parse_value(values),
            horizon=horizon,
            runs=runs,
            seed=seed,
            search=Search(ranges=parse_ranges(ranges), fixed=parse_fixed(fixed)),
            simulation=simulation.parse(),
            run=run.parse(progress),
        )

    result = run_and_print(run_request, **output.select_printing(), store=run.store, context=context)
    exit_if_strict(result, output.strict)


@app.command(short_help="Tune policies and compare them on the same instances.")
@expand_groups
def compare(
    context: typer.Context,
    policies: PoliciesOption,
    problem: ProblemOptions,
    search: SearchOptions,
    simulation: SimulationOptions,
    run: RunOptions,
    output: OutputOptions,
    budget: BudgetOption = 1000,
    seed: SeedOption = 0,
    lower_bound: LowerBoundOption = None,
) -> None:
    """Tune several policies and compare them on the same fresh instances."""
    from banditune.study import comparing

    parsed_problem, horizon = problem.parse()

    def run_request(progress: Any) -> Any:
        return comparing.compare(
            [parse_policy(policy) for policy in policies],
            parsed_problem,
            horizon=horizon,
            budget=budget,
            seed=seed,
            include=parse_lower_bound(lower_bound),
            search=search.parse(),
            simulation=simulation.parse(),
            run=run.parse(progress),
        )

    result = run_and_print(run_request, **output.select_printing(), store=run.store, context=context)
    exit_if_strict(result, output.strict)


@app.command("regret-over-time", short_help="Compute the regret over the steps of a run.")
@expand_groups
def compute_regret_over_time(
    context: typer.Context,
    problem: OptionalProblemOptions,
    simulation: SimulationOptions,
    run: RunOptions,
    output: OutputOptions,
    result: TunedResultArgument = None,
    policies: OptionalPoliciesOption = None,
    values: SeriesValuesOption = None,
    labels: LabelsOption = None,
    checkpoints: CheckpointsOption = None,
    runs: OptionalRunsOption = None,
    seed: OptionalSeedOption = None,
) -> None:
    """Compute the Bayes regret over the steps of a run, on the same instances: tuned and textbook, or given policies."""
    from banditune.results.result_record import load_result
    from banditune.study import over_time
    from banditune.study.settings import SIMULATION

    if result is None and not policies:
        raise make_argument_error("policies", "missing", "must be given, or the FILE of a tuning or a comparison.")
    if result is not None and (policies or values):
        name, given = ("policies", policies) if policies else ("values", values)
        raise make_unused_error(name, given, "because the result determines it")

    def run_request(progress: Any) -> Any:
        if result is not None:
            subject, parsed_problem, horizon, params = load_result(result), problem.parse_given(), problem.horizon, None
        else:
            subject = [parse_policy(policy) for policy in policies or ()]
            parsed_problem, horizon = problem.parse()
            params = parse_series_values(values, len(subject))
            if len(subject) == 1:
                subject, params = subject[0], params[0]
        settings = simulation.parse()
        return over_time.regret_over_time(
            subject,
            parsed_problem,
            params,
            horizon=horizon,
            checkpoints=parse_steps(checkpoints),
            runs=runs,
            seed=seed,
            labels=labels or None,
            simulation=None if settings == SIMULATION else settings,
            run=run.parse(progress),
        )

    answer = run_and_print(run_request, **output.select_printing(), store=run.store, context=context)
    exit_if_strict(answer, output.strict)
