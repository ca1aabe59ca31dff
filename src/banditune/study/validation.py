"""Judges a tuned value, theory's, and one that the search could not judge, on fresh instances that no search saw."""

from __future__ import annotations

import math

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.errors import SimulationError, WorkerLost
from banditune.results.estimates import Estimate
from banditune.results.search_results import SearchPosterior
from banditune.simulation.spec import SimulationSpec
from banditune.storage.stored_simulator import StoredSimulator
from banditune.study.hold_out import HoldOutSplit
from banditune.study.progress import ProgressCounter
from banditune.study.search import FIRST_VALIDATION_INSTANCE

PILOT_RUNS, MIN_VALIDATION_RUNS, MAX_VALIDATION_RUNS = 250, 1000, 4000
"""So many instances tell how many validation needs, at least and at most; they are not part of it."""


ValueAdvantage = tuple[float, Estimate]
"""A value beside the answer, and how much less it loses."""


TARGET_RELATIVE_ERRORS = {"gain": 0.03, "regret": 0.05}
"""Standard errors that validation aims at, as shares of what they belong to."""


def validate_answer(
    parts: HoldOutSplit, params: FloatArray, size: int | None, player: StoredSimulator, told: ProgressCounter
) -> tuple[int, FloatArray]:
    """Regrets of a value and of the baseline's on the same fresh instances, (2, instances), and the first one's number.

    With no size, a first few tell how many are needed for standard errors that are small shares of gain and regret. They
    are not part of what is returned: few failures among them would make it both small and low.
    """
    first = FIRST_VALIDATION_INSTANCE
    if size is None:
        told.expect(2 * (PILOT_RUNS + MIN_VALIDATION_RUNS))
        few = simulate_both(parts.judge, params, range(first, first + PILOT_RUNS), player, told)
        wanted = max(
            count_runs_needed(few[1] - few[0], TARGET_RELATIVE_ERRORS["gain"]),
            count_runs_needed(few[0], TARGET_RELATIVE_ERRORS["regret"]),
        )
        size, first = min(max(wanted, MIN_VALIDATION_RUNS), MAX_VALIDATION_RUNS), first + PILOT_RUNS
    told.expect(2 * size)
    return first, simulate_both(parts.judge, params, range(first, first + size), player, told)


def simulate_both(
    job: SimulationSpec, params: FloatArray, runs: range, player: StoredSimulator, told: ProgressCounter, row: int = 0
) -> FloatArray:
    """Regrets of a policy and of its baseline, each with its row of parameters, on the same instances: (2, runs).

    They play with the noise of that `row` and the next one.
    """
    if job.textbook is None:
        return player.play(job, params, runs, first_row=row, progress=told)[:, :, 0]
    tuned = player.play(job, params[:1], runs, first_row=row, progress=told)
    textbook = player.play(job.baseline, params[1:], runs, first_row=row + 1, progress=told)
    return np.concatenate([tuned, textbook])[:, :, 0]


def count_runs_needed(sample: FloatArray, share: float) -> int:
    """Runs after which the standard error of a mean is about this share of it; `MAX_VALIDATION_RUNS` if it would take more."""
    mean, spread = abs(float(sample.mean())), float(sample.std(ddof=1))
    if spread == 0:
        return 0
    return (
        MAX_VALIDATION_RUNS
        if spread >= math.sqrt(MAX_VALIDATION_RUNS) * share * mean
        else math.ceil((spread / (share * mean)) ** 2)
    )


def validate_unexplored_end(
    parts: HoldOutSplit,
    belief: SearchPosterior | None,
    tuned: FloatArray,
    fresh: range,
    player: StoredSimulator,
    told: ProgressCounter,
    row: int = 0,
) -> ValueAdvantage | None:
    """The value that the search could not judge and how much less than the answer it loses, on the same fresh instances.

    `tuned` are the answer's independent numbers.

    It plays with the noise of that `row`. None where there is no such value, or where the policy refuses it. It is not made
    the answer: at the end of its range a policy may never explore, and where arms come in a known order, good ones first,
    it gains by ties alone.
    """
    if belief is None or not belief.untried:
        return None
    end = belief.untried[0]
    told.more(len(fresh))
    try:
        other = player.play(parts.judge, np.array([[end]]), fresh, first_row=row, progress=told)[:, :, 0]
    except WorkerLost:
        raise
    except SimulationError:
        told.more(-len(fresh))
        return None
    return end, parts.estimate(tuned - parts.judged(other, fresh)[0])
