"""The verb `tune`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from banditune.core.descriptions import describe
from banditune.core.policy import Policy
from banditune.core.problem import Problem
from banditune.core.space import Range
from banditune.core.tuner import Tuner
from banditune.results.estimates import RegretDistribution
from banditune.results.tuning_results import Curve, Tuning
from banditune.simulation.spec import SimulationSpec
from banditune.storage.stored_simulator import StoredSimulator, check_storable
from banditune.study.exact_values import find_lower_bound
from banditune.study.hold_out import HoldOutSplit, note_small_data_set, split_spec
from banditune.study.notices import collect_notices, note_missed_precision
from banditune.study.parameter_effect import choose_probe_values, note_no_effect
from banditune.study.parameter_values import describe_searched_range, resolve_only_range
from banditune.study.progress import ProgressCallback, ProgressCounter
from banditune.study.regret_curves import MAX_CURVE_VALUES, simulate_curve
from banditune.study.requests import build_spec, check_count, make_study_setup, resolve_executor
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
from banditune.study.time_estimates import AnnounceCallback, format_duration, measure_seconds_per_run
from banditune.study.validation import MIN_VALIDATION_RUNS, validate_answer, validate_unexplored_end

MAX_CURVE_RUNS = 1000
"""Instances on which the curve of a tuning is drawn, at most."""


SCENARIO_BUDGET = 1000
"""Runs with which each of the problems that may come instead is tuned."""


def tune(
    policy: Policy,
    problem: Problem,
    tuner: Tuner | None = None,
    *,
    horizon: int,
    budget: int | None = None,
    within: float | None = None,
    confidence: float = 0.95,
    max_budget: int | None = None,
    max_time: float | None = None,
    validate: int | None = None,
    seed: int = 0,
    regret: str = "expected",
    noise: str = "shared",
    ranges: Mapping[str, Sequence[float]] | None = None,
    jobs: int | None = None,
    cluster: Any = "threads",
    time_limit: float | None = None,
    shortcut: bool = True,
    device: str = "cpu",
    curve: bool = False,
    floor: bool | None = None,
    stress: bool = False,
    ledger: str | Path | None = None,
    progress: ProgressCallback | None = None,
    announce: AnnounceCallback | None = None,
) -> Tuning:
    """Find the parameter value with the lowest Bayes regret.

    The search has a `budget` of simulated runs (1,000 if nothing is said). Or it is told a precision: `within=0.02` goes on
    until, with that confidence, no other value is better by more than 2% of the regret, or until `max_budget` runs or
    `max_time` seconds are spent. Afterwards the answer and theory's value are played on fresh instances, the same for
    both, and the lower end of the range where it may be better: what is reported was not seen by the search. There are
    `validate` of them, or as many as it takes to know the gain to a few percent. `ranges`, such as {"gamma": (0, 3)}, is
    what is searched instead of the policy's usual range. With `curve`, the regret curve is drawn on
    fresh instances too. The `floor` under all policies is computed where that takes seconds; True asks for it in any case.
    With `stress`, the answer is also played where other problems come than this one, each of which is tuned again (see
    `bt.robustness`). A `ledger` is a file that keeps every regret as it comes: a tuning that was interrupted goes on from
    there, to the same result. `announce` is called with a line on how long the curve and the stress test will take, before
    each starts.

    A policy whose noise or prior is "problem", the default, has the problem's; the textbook's policy plays theory's value
    then, with the textbook's noise and prior (`Tuning.baseline`).
    """
    job = build_spec(
        policy,
        problem,
        horizon=horizon,
        seed=seed,
        regret=regret,
        noise=noise,
        shortcut=shortcut,
        device=device,
        ranges=ranges,
    )
    place = resolve_executor(cluster, jobs, time_limit, job)
    tuner = resolve_tuner(tuner)
    among = resolve_only_range(job)
    validate = None if validate is None else check_count("validate", validate, 2)
    goal = resolve_goal(tuner, budget, within, confidence, max_budget, max_time)
    budget, most = resolve_budget(goal, budget, max_budget), resolve_max_time(max_time)
    # What may be refused comes before the work, and before a ledger is made.
    check_storable(ledger, job)
    check_search(tuner, among, budget, goal)
    asked, left_out = list_scenario_specs(job) if stress else ([], ())
    each = resolve_scenario_budget(tuner, asked, SCENARIO_BUDGET, budget)
    below = find_lower_bound(problem, job.horizon, floor)
    drawn = MAX_CURVE_VALUES * min(validate or MIN_VALIDATION_RUNS, MAX_CURVE_RUNS) if curve else 0
    stressed = len(asked) * estimate_scenario_runs(each, validate or MIN_VALIDATION_RUNS)
    told = ProgressCounter(progress, budget, later=2 * (validate or MIN_VALIDATION_RUNS) + drawn + stressed)
    parts = split_spec(job)
    with StoredSimulator(place, ledger) as player:
        answer, trials = run_search(parts.search, tuner, among, budget, player, told, goal, most)
        told.later = drawn + stressed
        first, played = validate_answer(parts, np.array([[answer.value], [among.theory]]), validate, player, told)
        fresh = range(first, first + played.shape[1])
        tuned, theory = parts.judged(played, fresh)
        inert = note_no_effect(parts.judge, among.name, choose_probe_values(among, answer.value), fresh, player, told)
        # Of a parameter without an effect there is no best value to be sure of.
        belief = None if inert else answer.belief
        other = validate_unexplored_end(parts, belief, tuned, fresh, player, told)
        told.later = stressed
        picture = (
            _simulate_tuning_curve(job, parts, among, answer.value, len(fresh), player, told, announce)
            if curve
            else None
        )
        strain = None
        if stress:
            strain = evaluate_robustness(
                job, answer.value, asked, tuner, each, validate or MIN_VALIDATION_RUNS, player, told, left_out, announce
            )
    # The textbook's policy, where it is another one, is no value of the parameter that the search could have found.
    ahead = (among.theory, parts.estimate(tuned - theory)) if job.textbook is None else None
    missed = tuple(note_missed_precision(goal, belief, ahead, other))
    return Tuning(
        {among.name: answer.value},
        parts.estimate(tuned),
        parts.estimate(theory),
        parts.estimate(theory - tuned),
        {among.name: among.theory},
        sum(trial.spent for trial in trials),
        budget,
        len(fresh),
        trials,
        belief,
        goal.within,
        None if goal.within is None or belief is None else not missed,
        (
            *note_small_data_set(job.problem),
            *collect_notices(job, among, answer.value, belief, tuned, theory, other, inert),
            *missed,
        ),
        picture,
        make_study_setup(job, tuner),
        below,
        spread=RegretDistribution.of(played[0], first, tuned),
        theory_spread=RegretDistribution.of(played[1], first, theory),
        validate=validate,
        stress=strain,
        baseline=describe(job.baseline.policy),
        searched=describe_searched_range(job),
    )


def _simulate_tuning_curve(
    job: SimulationSpec,
    parts: HoldOutSplit,
    among: Range,
    value: float,
    validated: int,
    player: StoredSimulator,
    told: ProgressCounter,
    announce: AnnounceCallback | None,
) -> Curve:
    """The curve of a tuning, on fresh instances; half of its values are near the tuned one.

    Of a data set it is played by the part that judges.
    """
    runs = min(validated, MAX_CURVE_RUNS)
    told.expect(MAX_CURVE_VALUES * runs)
    if announce:
        near, all_over = (
            measure_seconds_per_run(job, values, player)
            for values in ([value], [among.at(unit / 8) for unit in range(9)])
        )
        seconds = MAX_CURVE_VALUES * runs * (near + all_over) / 2
        announce(f"curve: about {format_duration(seconds)} ({MAX_CURVE_VALUES} values x {runs:,} runs)")
    fresh = range(FIRST_VALIDATION_INSTANCE, FIRST_VALIDATION_INSTANCE + runs)
    return simulate_curve(job, parts.exchanged, among, None, fresh, player, told.part(MAX_CURVE_VALUES * runs))
