"""The function `tune`."""

from __future__ import annotations

from collections.abc import Collection
from typing import get_args

import numpy as np

from banditune.core.descriptions import describe
from banditune.core.policy import Policy
from banditune.core.problem import Problem
from banditune.core.space import Range
from banditune.results.estimates import RegretDistribution
from banditune.results.tuning_results import Curve, Tuning
from banditune.simulation.spec import SimulationSpec
from banditune.storage.stored_simulator import StoredSimulator, check_storable
from banditune.study.exact_values import find_lower_bound
from banditune.study.hold_out import HoldOutSplit, note_small_data_set, split_spec
from banditune.study.notices import collect_notices, note_missed_precision
from banditune.study.parameter_effect import choose_probe_values, note_no_effect
from banditune.study.parameter_values import (
    can_return_textbook,
    complete_row,
    describe_searched_range,
    make_textbook_row,
    name_params,
    resolve_only_range,
)
from banditune.study.progress import ProgressCounter
from banditune.study.regret_curves import MAX_CURVE_VALUES, simulate_curve
from banditune.study.requests import build_spec, make_study_setup, resolve_executor
from banditune.study.robustness_check import evaluate_robustness
from banditune.study.scenario_tuning import estimate_scenario_runs
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
from banditune.study.validation import MIN_VALIDATION_RUNS, validate_answer, validate_unexplored_end

MAX_CURVE_RUNS = 1000
"""Instances on which the curve of a tuning is drawn, at most."""


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
    """Find the parameter value with the lowest Bayes regret.

    After the search, the answer and the textbook value are simulated on fresh instances, the same for both. What is
    reported was not seen by the search.

    Parameters
    ----------
    policy : Policy
        A policy with one parameter that is not fixed, such as `UCB1()`. If its noise or prior is "problem", the default,
        it takes the problem's. The textbook policy then has the textbook's noise and prior.
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
        What is computed besides the answer: the regret curve, and the regret if another problem comes than the expected
        one. The lower bound under all policies is computed if that takes seconds only; "lower_bound" computes it in any
        case, "no_lower_bound" never.
    search : Search
        How to search: tuner, ranges, fixed parameters, confidence, limits, validation.
    simulation : Simulation
        What is simulated.
    run : Run
        Where and how it runs.

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
    curve, with_robustness, announce = "curve" in included, "robustness" in included, run.announce
    executor = resolve_executor(run, spec)
    tuner, validate = resolve_tuner(search.tuner), search.validate
    search_range = resolve_only_range(spec)
    goal = resolve_goal(tuner, budget, precision, search)
    budget, max_seconds = resolve_budget(goal, budget, search.max_runs), resolve_max_time(search.max_time)
    # All checks come before the work, and before a store is created.
    check_storable(run.store, spec)
    check_search(tuner, search_range, budget, goal)
    scenarios, left_out = list_scenario_specs(spec) if with_robustness else ([], ())
    scenario_budget = resolve_scenario_budget(tuner, scenarios, SCENARIO_BUDGET, budget)
    lower_bound = find_lower_bound(problem, spec.horizon, resolve_lower_bound_choice(included))
    curve_total = MAX_CURVE_VALUES * min(validate or MIN_VALIDATION_RUNS, MAX_CURVE_RUNS) if curve else 0
    scenario_total = len(scenarios) * estimate_scenario_runs(scenario_budget, validate or MIN_VALIDATION_RUNS)
    counter = ProgressCounter(
        run.progress, budget, later=2 * (validate or MIN_VALIDATION_RUNS) + curve_total + scenario_total
    )
    split = split_spec(spec)
    with StoredSimulator(executor, run.store) as simulator:
        answer, trials = run_search(
            split.search_spec, tuner, search_range, budget, simulator, counter, goal, max_seconds
        )
        counter.later = curve_total + scenario_total
        first, raw = validate_answer(
            split, np.array([complete_row(spec, answer.value), make_textbook_row(spec)]), validate, simulator, counter
        )
        fresh = range(first, first + raw.shape[1])
        tuned, textbook = split.reduce_validation(raw, fresh)
        no_effect = note_no_effect(
            split.validation_spec,
            search_range.name,
            choose_probe_values(search_range, answer.value),
            fresh,
            simulator,
            counter,
        )
        # A parameter without an effect has no best value, so no posterior.
        posterior = None if no_effect else answer.posterior
        end_advantage = validate_unexplored_end(split, posterior, tuned, fresh, simulator, counter)
        counter.later = scenario_total
        regret_curve = (
            _simulate_tuning_curve(spec, split, search_range, answer.value, len(fresh), simulator, counter, announce)
            if curve
            else None
        )
        report = None
        if with_robustness:
            report = evaluate_robustness(
                spec,
                answer.value,
                scenarios,
                tuner,
                scenario_budget,
                validate or MIN_VALIDATION_RUNS,
                simulator,
                counter,
                left_out,
                announce,
            )
    # The search cannot find the textbook policy if that has other options.
    textbook_advantage = (
        (search_range.textbook, split.estimate(tuned - textbook)) if can_return_textbook(spec) else None
    )
    missed = tuple(note_missed_precision(goal, posterior, textbook_advantage, end_advantage))
    return Tuning(
        params=name_params(spec, complete_row(spec, answer.value)),
        regret=split.estimate(tuned),
        textbook_regret=split.estimate(textbook),
        gain=split.estimate(textbook - tuned),
        textbook_params=name_params(spec, make_textbook_row(spec)),
        search_runs=sum(trial.total_runs for trial in trials),
        budget=budget,
        validation_runs=len(fresh),
        trials=trials,
        posterior=posterior,
        precision=goal.precision,
        precision_reached=None if goal.precision is None or posterior is None else not missed,
        notices=(
            *note_small_data_set(spec.problem),
            *collect_notices(spec, search_range, answer.value, posterior, tuned, textbook, end_advantage, no_effect),
            *missed,
        ),
        curve=regret_curve,
        setup=make_study_setup(spec, tuner),
        lower_bound=lower_bound,
        distribution=RegretDistribution.from_sample(raw[0], first, tuned),
        textbook_distribution=RegretDistribution.from_sample(raw[1], first, textbook),
        requested_validation_runs=validate,
        robustness=report,
        textbook_policy=describe(spec.textbook_spec.policy),
        searched_range=describe_searched_range(spec),
    )


def _simulate_tuning_curve(
    spec: SimulationSpec,
    split: HoldOutSplit,
    search_range: Range,
    value: float,
    validated: int,
    simulator: StoredSimulator,
    counter: ProgressCounter,
    announce: AnnounceCallback | None,
) -> Curve:
    """Simulate the curve of a tuning on fresh instances; half of its values are near the tuned one.

    The curve of a data set uses the units that are held out from the search.
    """
    runs = min(validated, MAX_CURVE_RUNS)
    counter.expect(MAX_CURVE_VALUES * runs)
    if announce:
        near, all_over = (
            measure_seconds_per_run(spec, values, simulator)
            for values in ([value], [search_range.scale_from_unit(unit / 8) for unit in range(9)])
        )
        seconds = MAX_CURVE_VALUES * runs * (near + all_over) / 2
        announce(f"curve: about {format_duration(seconds)} ({MAX_CURVE_VALUES} values x {runs:,} runs)")
    fresh = range(FIRST_VALIDATION_INSTANCE, FIRST_VALIDATION_INSTANCE + runs)
    return simulate_curve(
        spec, split.swapped, search_range, None, fresh, simulator, counter.track_part(MAX_CURVE_VALUES * runs)
    )
