"""Tunes a policy for one scenario, and compares a given value with the best known value of the scenario."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from banditune.core.descriptions import describe
from banditune.core.space import Range, Space
from banditune.core.tuner import SearchAnswer, Tuner
from banditune.results.estimates import Estimate
from banditune.results.robustness_results import Scenario
from banditune.simulation.spec import SimulationSpec
from banditune.storage.stored_simulator import StoredSimulator
from banditune.study.hold_out import HoldOutSplit, split_spec
from banditune.study.notices import find_nearest_end, note_contradiction
from banditune.study.parameter_values import (
    can_return_textbook,
    make_textbook_row,
    resolve_defined_value,
    resolve_only_range,
    resolve_space,
)
from banditune.study.progress import ProgressCounter
from banditune.study.search import FIRST_VALIDATION_INSTANCE, run_search
from banditune.study.time_estimates import measure_seconds_per_run
from banditune.study.validation import ValueAdvantage, validate_unexplored_end

SELECTION_RUNS, MAX_CANDIDATES = 250, 7
"""The number of instances from which the best known value is selected, and the largest number of candidates."""


SURE_STANDARD_ERRORS = 3.0
"""A value replaces the re-tuned one if it is this many standard errors better.

The probability that one of six values does so by chance is 1%.
"""


MATERIAL_SHARE = 0.01
"""A re-tuned value is as good as the given one if its regret is higher by less than this share."""


def estimate_scenario_runs(budget: int, validate: int) -> int:
    """Estimate the runs of a scenario: the search, the choice of the best known value, and validation."""
    return budget + MAX_CANDIDATES * min(validate, SELECTION_RUNS) + 4 * validate


def estimate_scenario_seconds(
    spec: SimulationSpec, value: float, budget: int, validate: int, simulator: StoredSimulator
) -> float:
    """Estimate the time of a scenario: most runs are at values near the given one, some at the textbook value."""
    search_range = resolve_only_range(spec, "a robustness check")
    given_regrets, textbook = (
        measure_seconds_per_run(spec, [probe], simulator)
        for probe in (resolve_defined_value(spec, search_range, value), search_range.textbook)
    )
    return (estimate_scenario_runs(budget, validate) - validate) * given_regrets + validate * textbook


def evaluate_scenario(
    description: str,
    spec: SimulationSpec,
    value: float,
    tuner: Tuner,
    budget: int,
    validate: int,
    simulator: StoredSimulator,
    counter: ProgressCounter,
) -> Scenario:
    """Tune the policy for a problem, and compare a value with the best value that is known there.

    If the search fails, the excess regret is too low. So neighbours of both values and the textbook value are simulated
    too, on other instances. One that is significantly better replaces the re-tuned value.
    """
    space, split = resolve_space(spec), split_spec(spec)
    (search_range,) = space.ranges
    value = resolve_defined_value(spec, search_range, value)
    answer, _ = run_search(split.search_spec, tuner, space, budget, simulator, counter)
    (retuned_value,) = answer.value
    selection_runs = range(
        FIRST_VALIDATION_INSTANCE + validate, FIRST_VALIDATION_INSTANCE + validate + min(validate, SELECTION_RUNS)
    )
    best_value, advantage = select_best_known(
        split, search_range, value, retuned_value, selection_runs, simulator, counter
    )
    values = list(dict.fromkeys((value, best_value, retuned_value, search_range.textbook)))
    counter.expect_more((len(values) - 4) * validate)
    fresh = range(FIRST_VALIDATION_INSTANCE, FIRST_VALIDATION_INSTANCE + validate)
    raw = simulator.simulate(split.validation_spec, np.array(values)[:, None], fresh, progress=counter)[:, :, 0]
    regrets = dict(zip(values, split.reduce_validation(raw, fresh), strict=True))
    given_regrets, best, retuned, textbook = (
        regrets[candidate] for candidate in (value, best_value, retuned_value, search_range.textbook)
    )
    if not can_return_textbook(spec):
        counter.expect_more(validate)
        baseline, row = split.validation_spec.textbook_spec, make_textbook_row(spec)
        raw = simulator.simulate(baseline, row[None, :], fresh, first_row=len(values), progress=counter)[:, :, 0]
        textbook = split.reduce_validation(raw, fresh)[0]
    excess, mean = split.estimate(retuned - given_regrets), split.estimate(retuned)
    doubt = next(note_gap_doubts(space, value, answer, advantage, excess, mean), "")
    end = validate_unexplored_end(split, answer.posterior, retuned, fresh, simulator, counter)
    return Scenario(
        description=description,
        problem=describe(spec.problem),
        horizon=spec.horizon,
        regret=split.estimate(given_regrets),
        best_value=best_value,
        best_regret=split.estimate(best),
        excess_regret=split.estimate(given_regrets - best),
        textbook_regret=split.estimate(textbook),
        difference_to_textbook=split.estimate(given_regrets - textbook),
        regret_gap=compute_regret_gap(answer, end),
        gap_doubt=doubt,
        retuned_value=retuned_value,
    )


def compute_regret_gap(answer: SearchAnswer, end: ValueAdvantage | None) -> float | None:
    """Compute how much better another value may be than the answer, also at an end that the search did not simulate."""
    if answer.posterior is None:
        return None
    return float(max(answer.posterior.regret_gap, end[1].high if end else 0.0))


def select_best_known(
    split: HoldOutSplit,
    search_range: Range,
    value: float,
    retuned: float,
    runs: range,
    simulator: StoredSimulator,
    counter: ProgressCounter,
) -> tuple[float, Estimate]:
    """Select the best known value, and estimate its advantage over the re-tuned one.

    This is the re-tuned value unless another one is significantly better. Candidates are the value itself, the textbook
    value, and half and twice the value and the re-tuned one.
    """
    neighbours = (search_range.clip(factor * centre) for centre in (value, retuned) for factor in (0.5, 2.0))
    values = list(dict.fromkeys([retuned, value, search_range.textbook, *neighbours]))
    counter.expect_more((len(values) - MAX_CANDIDATES) * len(runs))
    regrets = split.reduce_search(
        simulator.simulate(split.search_spec, np.array(values)[:, None], runs, progress=counter)[:, :, 0], runs
    )
    advantage = [split.estimate(regrets[0] - row) for row in regrets]
    significant = [
        position for position, centre in enumerate(advantage) if centre.mean > SURE_STANDARD_ERRORS * centre.se
    ]
    position = max(significant, key=lambda position: advantage[position].mean, default=0)
    return values[position], advantage[position]


def note_gap_doubts(
    space: Space,
    value: float,
    answer: SearchAnswer,
    advantage: Estimate,
    excess: Estimate,
    fresh_estimate: Estimate,
) -> Iterator[str]:
    """Yield the reasons why the gap that a search states may be wrong.

    `ahead` is the advantage of the best known value over the answer. `behind` is the regret of the answer minus that of the
    given value. `fresh` is its regret on instances that were not used to select it.
    """
    posterior, (search_range,), (retuned,) = answer.posterior, space.ranges, answer.value
    end = find_nearest_end(search_range, retuned)
    if excess.low > 0 and excess.mean > MATERIAL_SHARE * abs(fresh_estimate.mean):
        yield f"the search for it failed: its answer, {retuned:.4g}, has {excess.mean:.4g} more regret than this value"
    if end and end == find_nearest_end(search_range, value):
        yield f"both values are at the {end} end of the range"
    if end:
        yield f"the value tuned for it, {retuned:.4g}, is at the {end} end of the range"
    if posterior is None:
        return
    if posterior.misfit:
        yield "the curves of the search for it do not fit"
    if posterior.second_dip:
        yield "the regret there may have more than one dip"
    if advantage.mean - SURE_STANDARD_ERRORS * advantage.se > posterior.regret_gap:
        yield "another value is better than the answer of the search for it by more than the stated gap"
    # The search's statements are about its own part of a data set; the other part may differ.
    if fresh_estimate.unit == "run" and any(note_contradiction(space, answer.value, posterior, fresh_estimate)):
        yield "fresh instances contradict the search for it"
