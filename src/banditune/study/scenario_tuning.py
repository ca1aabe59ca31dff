"""Tunes a policy for one scenario and compares a given value with the best known one there."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from banditune.core.descriptions import describe
from banditune.core.space import Range
from banditune.core.tuner import SearchAnswer, Tuner
from banditune.results.estimates import Estimate
from banditune.results.robustness_results import Scenario
from banditune.simulation.spec import SimulationSpec
from banditune.storage.stored_simulator import StoredSimulator
from banditune.study.hold_out import HoldOutSplit, split_spec
from banditune.study.notices import find_nearest_end, note_contradiction
from banditune.study.parameter_values import resolve_defined_value, resolve_only_range
from banditune.study.progress import ProgressCounter
from banditune.study.search import FIRST_VALIDATION_INSTANCE, run_search
from banditune.study.time_estimates import measure_seconds_per_run
from banditune.study.validation import ValueAdvantage, validate_unexplored_end

SELECTION_RUNS, MAX_CANDIDATES = 250, 7
"""So many instances choose the best known value, out of at most so many values."""


SURE_STANDARD_ERRORS = 3.0
"""Another value takes the place of the re-tuned one if it is so many standard errors better: of six, by chance in 1%."""


MATERIAL_SHARE = 0.01
"""A re-tuned value that loses a smaller share more than the value that it would replace is as good."""


def estimate_scenario_runs(budget: int, validate: int) -> int:
    """About how many runs a scenario takes: the search, the choice of the best known value, and validation."""
    return budget + MAX_CANDIDATES * min(validate, SELECTION_RUNS) + 4 * validate


def estimate_scenario_seconds(
    job: SimulationSpec, value: float, budget: int, validate: int, player: StoredSimulator
) -> float:
    """How long a scenario will take: most runs are at values near the one that is judged, some at theory's."""
    among = resolve_only_range(job)
    own, theory = (
        measure_seconds_per_run(job, [one], player) for one in (resolve_defined_value(job, among, value), among.theory)
    )
    return (estimate_scenario_runs(budget, validate) - validate) * own + validate * theory


def evaluate_scenario(
    words: str,
    job: SimulationSpec,
    value: float,
    tuner: Tuner,
    budget: int,
    validate: int,
    player: StoredSimulator,
    told: ProgressCounter,
) -> Scenario:
    """Tune the policy for a problem, and compare a value with the best one that is known there.

    The loss is not taken against the re-tuned value as it is: a search that failed would hide what is lost. Values beside
    both and theory's are played too, on instances of their own, and one that is surely better takes its place.
    """
    among, parts = resolve_only_range(job), split_spec(job)
    value = resolve_defined_value(job, among, value)
    found, _ = run_search(parts.search, tuner, among, budget, player, told)
    others = range(
        FIRST_VALIDATION_INSTANCE + validate, FIRST_VALIDATION_INSTANCE + validate + min(validate, SELECTION_RUNS)
    )
    least, ahead = select_best_known(parts, among, value, found.value, others, player, told)
    played = list(dict.fromkeys((value, least, found.value, among.theory)))
    told.more((len(played) - 4) * validate)
    fresh = range(FIRST_VALIDATION_INSTANCE, FIRST_VALIDATION_INSTANCE + validate)
    raw = player.play(parts.judge, np.array(played)[:, None], fresh, progress=told)[:, :, 0]
    regrets = dict(zip(played, parts.judged(raw, fresh), strict=True))
    own, best, retuned, theory = (regrets[one] for one in (value, least, found.value, among.theory))
    if job.textbook is not None:
        told.more(validate)
        textbook = parts.judge.baseline
        raw = player.play(textbook, [[among.theory]], fresh, first_row=len(played), progress=told)[:, :, 0]
        theory = parts.judged(raw, fresh)[0]
    behind, mean = parts.estimate(retuned - own), parts.estimate(retuned)
    doubt = next(note_gap_doubts(among, value, found, ahead, behind, mean), "")
    end = validate_unexplored_end(parts, found.belief, retuned, fresh, player, told)
    return Scenario(
        words=words,
        problem=describe(job.problem),
        horizon=job.horizon,
        regret=parts.estimate(own),
        best=least,
        best_regret=parts.estimate(best),
        loss=parts.estimate(own - best),
        theory=parts.estimate(theory),
        behind_theory=parts.estimate(own - theory),
        gap=compute_regret_gap(found, end),
        doubt=doubt,
        retuned=found.value,
    )


def compute_regret_gap(found: SearchAnswer, end: ValueAdvantage | None) -> float | None:
    """By how much another value may be better than a search's answer: as it states, and at an end that it did not play."""
    if found.belief is None:
        return None
    return float(max(found.belief.gap, end[1].high if end else 0.0))


def select_best_known(
    parts: HoldOutSplit,
    among: Range,
    value: float,
    retuned: float,
    runs: range,
    player: StoredSimulator,
    told: ProgressCounter,
) -> tuple[float, Estimate]:
    """The best value that is known, and how far it is ahead of the re-tuned one: that one, unless another surely is.

    Others are the value itself, theory's, and half and twice the value and the re-tuned one.
    """
    near = (among.within(factor * one) for one in (value, retuned) for factor in (0.5, 2.0))
    values = list(dict.fromkeys([retuned, value, among.theory, *near]))
    told.more((len(values) - MAX_CANDIDATES) * len(runs))
    regrets = parts.searched(player.play(parts.search, np.array(values)[:, None], runs, progress=told)[:, :, 0], runs)
    ahead = [parts.estimate(regrets[0] - row) for row in regrets]
    sure = [place for place, one in enumerate(ahead) if one.mean > SURE_STANDARD_ERRORS * one.se]
    place = max(sure, key=lambda place: ahead[place].mean, default=0)
    return values[place], ahead[place]


def note_gap_doubts(
    among: Range, value: float, found: SearchAnswer, ahead: Estimate, behind: Estimate, fresh: Estimate
) -> Iterator[str]:
    """Why the gap that a search states is not trusted, as reasons.

    The best known value is `ahead` of the search's answer; the answer is `behind` the value that it would replace, and
    `fresh` is its regret on instances that it was not chosen on.
    """
    belief, end = found.belief, find_nearest_end(among, found.value)
    if behind.low > 0 and behind.mean > MATERIAL_SHARE * abs(fresh.mean):
        yield f"tuning again failed: its answer, {found.value:.4g}, loses {behind.mean:.4g} more than this value"
    if end and end == find_nearest_end(among, value):
        yield f"both values are at the {end} end of the range"
    if end:
        yield f"the value that was tuned for it, {found.value:.4g}, is at the {end} end of the range"
    if belief is None:
        return
    if belief.misfit:
        yield "the search for it says that it cannot be trusted"
    if belief.peak:
        yield "the regret there may have more than one dip"
    if ahead.mean - SURE_STANDARD_ERRORS * ahead.se > belief.gap:
        yield "the search for it missed a better value by more than it states"
    # Of a data set, the search speaks of its own part, which the other one does not contradict.
    if fresh.unit == "run" and any(note_contradiction(among, found.value, belief, fresh)):
        yield "fresh instances contradict the search for it"
