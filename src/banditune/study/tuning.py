"""The function `tune`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.descriptions import describe
from banditune.core.notice import Notice
from banditune.core.policy import Policy
from banditune.core.problem import Problem
from banditune.core.space import Space
from banditune.core.tuner import Goal, SearchAnswer, Tuner
from banditune.results.estimates import Estimate, RegretDistribution
from banditune.results.exact_results import LowerBound
from banditune.results.robustness_results import RobustnessReport
from banditune.results.search_results import SearchPosterior, TrialResult
from banditune.results.tuning_results import Curve, Tuning
from banditune.simulation.spec import SimulationSpec
from banditune.storage.stored_simulator import StoredSimulator, check_storable
from banditune.study.exact_values import find_lower_bound
from banditune.study.hold_out import HoldOutSplit, split_spec
from banditune.study.notices import collect_notices, note_missed_precision
from banditune.study.parameter_effect import list_parameters_without_effect, measure_importance
from banditune.study.parameter_values import (
    can_return_textbook,
    complete_row,
    describe_searched_ranges,
    list_slice_specs,
    make_textbook_row,
    name_params,
    resolve_only_range,
    resolve_space,
)
from banditune.study.problem_notices import note_problem
from banditune.study.progress import ProgressCounter
from banditune.study.regret_curves import MAX_CURVE_VALUES, simulate_curve
from banditune.study.repeatability import note_unrepeatable_runs
from banditune.study.requests import build_spec, make_study_setup, resolve_executor
from banditune.study.robustness_check import RobustnessPlan, evaluate_robustness
from banditune.study.scenarios import list_scenario_specs, resolve_scenario_budget
from banditune.study.search import (
    FIRST_VALIDATION_INSTANCE,
    check_search,
    resolve_budget,
    resolve_goal,
    resolve_max_time,
    resolve_tuner,
    run_search,
)
from banditune.study.settings import (
    RUN,
    SEARCH,
    SIMULATION,
    Include,
    Run,
    Search,
    Simulation,
    check_include,
    resolve_lower_bound_choice,
)
from banditune.study.time_estimates import AnnounceCallback, format_duration, measure_seconds_per_run
from banditune.study.validation import MIN_VALIDATION_RUNS, ValueAdvantage, validate_answer, validate_unexplored_end

MAX_CURVE_RUNS = 1000
"""The largest number of instances for the curve of a tuning."""


SCENARIO_BUDGET = 1000
"""Runs of the search in each scenario of a robustness check."""


def tune(
    policy: Policy,
    problem: Problem,
    *,
    horizon: int,
    budget: int | None = None,
    precision: float | None = None,
    seed: int = 0,
    include: Collection[Include] = (),
    search: Search = SEARCH,
    simulation: Simulation = SIMULATION,
    run: Run = RUN,
) -> Tuning:
    """Find the parameter values with the lowest Bayes regret.

    After the search, the answer and the textbook value are simulated on fresh instances, the same for both. The reported
    regrets are those of the fresh instances.

    Parameters
    ----------
    policy : Policy
        A policy with a parameter or several, such as `UCB1()`. All parameters that are not fixed are searched together. If
        its noise or prior is "problem", the default, it takes the problem's. The textbook policy then has the textbook's
        noise and prior.
    problem : Problem
        The distribution of problem instances that is expected, such as `Bernoulli(arms=10)`.
    horizon : int
        Steps in a run.
    budget : int, optional
        Simulated runs of the search; 1,000 unless a precision is given.
    precision : float, optional
        Search until no other value is better by more than this share of the regret, such as 0.02, with the confidence in
        `search`.
    seed : int
        The same seed gives the same answer.
    include : collection of {"curve", "lower_bound", "no_lower_bound", "robustness"}
        What is computed besides the answer: the regret curve, and the regret on other problems than the expected one. By
        default, the lower bound on the regret of every policy is computed if this takes only seconds. "lower_bound"
        computes it in any case, "no_lower_bound" never.
    search : Search
        Settings of the search: tuner, ranges, fixed parameters, confidence, limits, validation.
    simulation : Simulation
        Settings that change numbers.
    run : Run
        Settings of the execution, which do not change numbers.

    Returns
    -------
    Tuning
        The answer with its regret, the gain over the textbook, the posterior of the search, and notices.

    Raises
    ------
    InvalidRequest
        If an argument cannot be used.
    SimulationError
        If the policy or the problem fails.

    Examples
    --------
    >>> import banditune as bt
    >>> result = bt.tune(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), horizon=100, budget=200)
    >>> 0 < result.params["gamma"] < 1
    True
    """
    spec = build_spec(policy, problem, horizon=horizon, seed=seed, search=search, simulation=simulation, run=run)
    included = check_include(include, get_args(Include))
    executor = resolve_executor(run, spec)
    # All checks precede the work and the creation of a store.
    plan = _plan_tuning(spec, search, budget, precision, included)
    check_storable(run.store, spec)
    lower_bound = find_lower_bound(problem, spec.horizon, resolve_lower_bound_choice(included))
    unrepeatable = tuple(note_unrepeatable_runs(spec))
    counter = ProgressCounter(run.progress, plan.budget, later=2 * plan.validation_runs + plan.extra_runs)
    with StoredSimulator(executor, run.store) as simulator:
        answer, trials = run_search(
            plan.split.search_spec,
            plan.tuner,
            plan.space,
            plan.budget,
            simulator,
            counter,
            plan.goal,
            plan.max_seconds,
        )
        counter.later = plan.extra_runs
        validated = _validate_tuning(plan, answer, simulator, counter)
        counter.later = plan.scenario_runs
        curves: tuple[Curve, ...] = ()
        report = None
        if plan.curve_runs:
            curves = _simulate_tuning_curves(plan, validated, simulator, counter, run.announce)
        if plan.robustness:
            report = evaluate_robustness(spec, answer.value[0], plan.robustness, simulator, counter, run.announce)
    tuning = _make_tuning(plan, trials, validated, lower_bound, curves, report)
    return replace(tuning, notices=(*unrepeatable, *tuning.notices)) if unrepeatable else tuning


@dataclass(frozen=True, kw_only=True)
class _TuningPlan:
    """A tuning with checked arguments: the search, and the simulations after it."""

    spec: SimulationSpec
    split: HoldOutSplit
    tuner: Tuner
    space: Space
    goal: Goal
    budget: int
    max_seconds: float
    requested_validation_runs: int | None
    curve_runs: int
    """Runs of the curve, at most; 0 without a curve."""
    robustness: RobustnessPlan | None

    @property
    def validation_runs(self) -> int:
        """Runs of the validation, at least."""
        return self.requested_validation_runs or MIN_VALIDATION_RUNS

    @property
    def scenario_runs(self) -> int:
        """Runs of the robustness check."""
        return self.robustness.total_runs if self.robustness else 0

    @property
    def extra_runs(self) -> int:
        """Runs after the validation."""
        return self.curve_runs + self.scenario_runs


def _plan_tuning(
    spec: SimulationSpec, search: Search, budget: Any, precision: Any, included: Collection[str]
) -> _TuningPlan:
    """Check how to search, and plan what is simulated."""
    space, validate = resolve_space(spec), search.validate
    tuner = resolve_tuner(search.tuner, len(space.ranges))
    goal = resolve_goal(tuner, budget, precision, search)
    runs, max_seconds = resolve_budget(goal, budget, search.max_runs), resolve_max_time(search.max_time)
    check_search(tuner, space, runs, goal)
    robustness = None
    if "robustness" in included:
        resolve_only_range(spec, "a robustness check")
        scenarios, left_out = list_scenario_specs(spec)
        robustness = RobustnessPlan(
            scenarios=scenarios,
            tuner=tuner,
            budget=resolve_scenario_budget(tuner, scenarios, SCENARIO_BUDGET, runs),
            validation_runs=validate or MIN_VALIDATION_RUNS,
            notices=left_out,
        )
    curve_runs = len(space.ranges) * MAX_CURVE_VALUES * min(validate or MIN_VALIDATION_RUNS, MAX_CURVE_RUNS)
    return _TuningPlan(
        spec=spec,
        split=split_spec(spec),
        tuner=tuner,
        space=space,
        goal=goal,
        budget=runs,
        max_seconds=max_seconds,
        requested_validation_runs=validate,
        curve_runs=curve_runs if "curve" in included else 0,
        robustness=robustness,
    )


@dataclass(frozen=True, kw_only=True)
class _ValidatedAnswer:
    """The answer of a search, and its regrets on fresh instances."""

    row: tuple[float, ...]
    """The values of the parameters that were searched."""
    posterior: SearchPosterior | None
    """None if no parameter has an effect: then there are no best values."""
    fresh: range
    regrets: FloatArray
    """Regrets of the tuned and of the textbook value, (2, instances)."""
    tuned: FloatArray
    """Independent numbers: regrets, or means by table or campaign."""
    textbook: FloatArray
    no_effect: tuple[Notice, ...]
    """Notices on parameters without effect."""
    importance: Mapping[str, Estimate]
    """The regret that each of several parameters adds if it alone has its textbook value."""
    end_advantage: ValueAdvantage | None


def _validate_tuning(
    plan: _TuningPlan, answer: SearchAnswer, simulator: StoredSimulator, counter: ProgressCounter
) -> _ValidatedAnswer:
    """Simulate the answer and the textbook value on fresh instances, and check the statements of the search there."""
    row = answer.value
    rows = np.array([complete_row(plan.spec, row), make_textbook_row(plan.spec)])
    first, regrets = validate_answer(plan.split, rows, plan.requested_validation_runs, simulator, counter)
    fresh = range(first, first + regrets.shape[1])
    tuned, textbook = plan.split.reduce_validation(regrets, fresh)
    no_effect = list_parameters_without_effect(plan.split.validation_spec, row, fresh, simulator, counter)
    posterior = None if len(no_effect) == len(row) else answer.posterior
    return _ValidatedAnswer(
        row=row,
        posterior=posterior,
        fresh=fresh,
        regrets=regrets,
        tuned=tuned,
        textbook=textbook,
        no_effect=no_effect,
        importance=measure_importance(plan.split, row, tuned, fresh, simulator, counter),
        end_advantage=validate_unexplored_end(plan.split, posterior, tuned, fresh, simulator, counter),
    )


def _make_tuning(
    plan: _TuningPlan,
    trials: tuple[TrialResult, ...],
    validated: _ValidatedAnswer,
    lower_bound: LowerBound | None,
    curves: tuple[Curve, ...],
    report: RobustnessReport | None,
) -> Tuning:
    """Make the result, with its notices."""
    spec, split, space, goal = plan.spec, plan.split, plan.space, plan.goal
    row, posterior, fresh = validated.row, validated.posterior, validated.fresh
    tuned, textbook, end_advantage = validated.tuned, validated.textbook, validated.end_advantage
    # The search cannot find the textbook policy if that has other options.
    textbook_advantage = (space.textbook, split.estimate(tuned - textbook)) if can_return_textbook(spec) else None
    missed = tuple(note_missed_precision(goal, posterior, textbook_advantage, end_advantage))
    return Tuning(
        params=name_params(spec, complete_row(spec, row)),
        regret=split.estimate(tuned),
        textbook_regret=split.estimate(textbook),
        gain=split.estimate(textbook - tuned),
        textbook_params=name_params(spec, make_textbook_row(spec)),
        search_runs=sum(trial.total_runs for trial in trials),
        budget=plan.budget,
        validation_runs=len(fresh),
        trials=trials,
        posterior=posterior,
        precision=goal.precision,
        precision_reached=None if goal.precision is None or posterior is None else not missed,
        notices=(
            *note_problem(spec),
            *collect_notices(spec, space, row, posterior, tuned, textbook, end_advantage, validated.no_effect),
            *missed,
        ),
        curves=curves,
        importance=validated.importance or None,
        setup=make_study_setup(spec, plan.tuner),
        lower_bound=lower_bound,
        distribution=RegretDistribution.from_sample(validated.regrets[0], fresh.start, tuned),
        textbook_distribution=RegretDistribution.from_sample(validated.regrets[1], fresh.start, textbook),
        requested_validation_runs=plan.requested_validation_runs,
        robustness=report,
        textbook_policy=describe(spec.textbook_spec.policy),
        searched_ranges=describe_searched_ranges(spec),
    )


def _simulate_tuning_curves(
    plan: _TuningPlan,
    validated: _ValidatedAnswer,
    simulator: StoredSimulator,
    counter: ProgressCounter,
    announce: AnnounceCallback | None,
) -> tuple[Curve, ...]:
    """Simulate a curve for each parameter on fresh instances; the other parameters have their tuned values.

    Curves of a data set use the units that are held out from the search.
    """
    runs = min(len(validated.fresh), MAX_CURVE_RUNS)
    specs = list_slice_specs(plan.spec, validated.row)
    counter.expect(len(specs) * MAX_CURVE_VALUES * runs)
    if announce:
        seconds = sum(
            _estimate_curve_seconds(spec, value, runs, simulator)
            for spec, value in zip(specs, validated.row, strict=True)
        )
        announce(f"curve: about {format_duration(seconds)} ({len(specs) * MAX_CURVE_VALUES} values x {runs:,} runs)")
    fresh = range(FIRST_VALIDATION_INSTANCE, FIRST_VALIDATION_INSTANCE + runs)
    return tuple(
        simulate_curve(
            spec,
            split_spec(spec).swapped,
            resolve_only_range(spec, "a curve"),
            None,
            fresh,
            simulator,
            counter.track_part(MAX_CURVE_VALUES * runs),
        )
        for spec in specs
    )


def _estimate_curve_seconds(spec: SimulationSpec, value: float, runs: int, simulator: StoredSimulator) -> float:
    """Estimate the time of a curve: half of its values are near the tuned one."""
    search_range = resolve_only_range(spec, "a curve")
    near_seconds, range_seconds = (
        measure_seconds_per_run(spec, values, simulator)
        for values in ([value], [search_range.scale_from_unit(unit / 8) for unit in range(9)])
    )
    return MAX_CURVE_VALUES * runs * (near_seconds + range_seconds) / 2
