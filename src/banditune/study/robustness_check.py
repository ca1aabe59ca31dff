"""The function `robustness`, which computes the regret of a value on other problems than the expected one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from banditune.core.notice import Notice, with_code
from banditune.core.policy import Policy
from banditune.core.problem import Problem
from banditune.core.request_errors import make_argument_error
from banditune.core.tuner import Tuner
from banditune.results.robustness_results import RobustnessReport, Scenario
from banditune.simulation.spec import SimulationSpec
from banditune.storage.stored_simulator import StoredSimulator
from banditune.study.assumption_notices import note_wrong_assumptions
from banditune.study.parameter_values import (
    complete_row,
    get_searched_values,
    make_parameter_rows,
    name_params,
    resolve_only_range,
    resolve_space,
)
from banditune.study.problem_notices import note_problem
from banditune.study.progress import ProgressCounter
from banditune.study.repeatability import note_unrepeatable_runs
from banditune.study.requests import build_spec, check_count, make_study_setup, resolve_executor
from banditune.study.scenario_tuning import estimate_scenario_runs, estimate_scenario_seconds, evaluate_scenario
from banditune.study.scenarios import list_scenario_specs
from banditune.study.search import check_search, resolve_tuner
from banditune.study.settings import RUN, SEARCH, SIMULATION, Run, Search, Simulation, check_unused
from banditune.study.time_estimates import AnnounceCallback, format_duration


def robustness(
    policy: Policy,
    problem: Problem,
    params: Any,
    *,
    horizon: int,
    others: Sequence[tuple[str, Problem]] | None = None,
    budget: int = 1000,
    seed: int = 0,
    search: Search = SEARCH,
    simulation: Simulation = SIMULATION,
    run: Run = RUN,
) -> RobustnessReport:
    """Compute the regret of a parameter value on other problems than the expected one.

    For each of these problems the policy is tuned again with the same budget. Then the given value, the best known value
    and the textbook value are simulated on the same fresh instances.

    Parameters
    ----------
    policy : Policy
        A policy with one parameter that is not fixed.
    problem : Problem
        The distribution of problem instances that is expected.
    params : float or mapping of str to float
        The parameter value.
    horizon : int
        Steps in a run.
    others : sequence of (str, Problem), optional
        The other problems, each with a description. By default they have shifted means, a larger spread of means, more
        arms, and shorter and longer horizons.
    budget : int
        Simulated runs of each search.
    seed : int
        The same seed gives the same answer.
    search : Search
        Settings of the search.
    simulation : Simulation
        Settings that change numbers.
    run : Run
        Settings of the execution, which do not change numbers; its `store` is not used.

    Returns
    -------
    RobustnessReport
        A scenario for each problem, the expected one first.

    Raises
    ------
    InvalidRequest
        If an argument cannot be used.
    SimulationError
        If the policy or the problem fails.

    Examples
    --------
    >>> import banditune as bt
    >>> problem, search = bt.Bernoulli(arms=2), bt.Search(validate=100)
    >>> report = bt.robustness(bt.UCB1(noise=0.5), problem, 0.3, horizon=50, budget=100, search=search)
    >>> report.scenarios[0].description
    'as expected'
    """
    spec = build_spec(policy, problem, horizon=horizon, seed=seed, search=search, simulation=simulation, run=run)
    check_unused("robustness", run, "store")
    check_unused("robustness", search, "confidence", "max_runs", "max_time")
    tuner, budget, validate = resolve_tuner(search.tuner), check_count("budget", budget), search.validate or 1000
    resolve_only_range(spec, "a robustness check")
    rows = make_parameter_rows(spec, params)
    if len(rows) != 1:
        raise make_argument_error(
            "params", "wrong-shape", f"must be one value, but got {params!r}; check each value in a separate call."
        )
    value = float(get_searched_values(spec, rows)[0, 0])
    scenarios, left_out = list_scenario_specs(spec, others)
    for _, other in scenarios:
        check_search(tuner, resolve_space(other), budget)
    counter = ProgressCounter(run.progress, 0)
    with StoredSimulator(resolve_executor(run, spec)) as simulator:
        notices = (
            *note_unrepeatable_runs(spec),
            *note_wrong_assumptions(spec.policy, spec.problem, spec.horizon),
            *note_problem(spec),
            *left_out,
        )
        plan = RobustnessPlan(
            scenarios=scenarios, tuner=tuner, budget=budget, validation_runs=validate, notices=notices
        )
        return evaluate_robustness(spec, value, plan, simulator, counter, run.announce)


@dataclass(frozen=True, kw_only=True)
class RobustnessPlan:
    """The scenarios of a robustness check, the settings of their searches, and the notices that need no simulation."""

    scenarios: Sequence[tuple[str, SimulationSpec]]
    tuner: Tuner
    budget: int
    validation_runs: int
    notices: tuple[Notice, ...]

    @property
    def runs_per_scenario(self) -> int:
        """The estimated runs of a scenario."""
        return estimate_scenario_runs(self.budget, self.validation_runs)

    @property
    def total_runs(self) -> int:
        """The estimated runs of all scenarios."""
        return len(self.scenarios) * self.runs_per_scenario


def evaluate_robustness(
    spec: SimulationSpec,
    value: float,
    plan: RobustnessPlan,
    simulator: StoredSimulator,
    counter: ProgressCounter,
    announce: AnnounceCallback | None = None,
) -> RobustnessReport:
    """Tune in each scenario, and simulate the given value, the one tuned there and the textbook value."""
    budget, validate = plan.budget, plan.validation_runs
    counter.expect_last(plan.total_runs)
    if announce:
        seconds = sum(
            estimate_scenario_seconds(other, value, budget, validate, simulator) for _, other in plan.scenarios
        )
        extent = f"{len(plan.scenarios)} scenarios x {plan.runs_per_scenario:,} runs"
        announce(f"robustness: about {format_duration(seconds)} ({extent})")
    results = tuple(
        evaluate_scenario(description, other, value, plan.tuner, budget, validate, simulator, counter)
        for description, other in plan.scenarios
    )
    return RobustnessReport(
        params=name_params(spec, complete_row(spec, [value])),
        scenarios=results,
        budget=budget,
        validation_runs=validate,
        setup=make_study_setup(spec, plan.tuner),
        notices=(*plan.notices, *note_missed_best(resolve_space(spec).names[0], value, results[0])),
    )


@with_code("answer-misses-known-value")
def note_missed_best(name: str, value: float, expected: Scenario) -> Iterator[str]:
    """Yield a notice if another value is significantly better on the expected problem."""
    if expected.excess_share_low > 0:
        yield (
            f"the search for {name} = {value:.4g} missed a better value, {expected.best_value:.4g}, with "
            f"{expected.excess_regret.mean:.4g} (95%: {expected.excess_regret.low:.4g} to "
            f"{expected.excess_regret.high:.4g}) less regret on the expected problem."
        )
