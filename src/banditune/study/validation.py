"""Validates the tuned value, the textbook value and an unexplored end of the range on fresh instances."""

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
"""The number of pilot instances, which are not part of the validation, and limits of the number of instances for it."""


ValueAdvantage = tuple[float, Estimate]
"""A value other than the answer, and the regret of the answer minus that of this value."""


TARGET_RELATIVE_ERRORS = {"gain": 0.03, "regret": 0.05}
"""The intended standard errors of validation, as shares of their means."""


def validate_answer(
    split: HoldOutSplit, params: FloatArray, size: int | None, simulator: StoredSimulator, counter: ProgressCounter
) -> tuple[int, FloatArray]:
    """Simulate the tuned and the textbook value: the number of the first instance, and regrets (2, instances).

    Without a size, a pilot estimates how many instances the standard errors of gain and regret need. Its runs are not
    returned: a pilot with few failures would give both a small size and a low regret.
    """
    first = FIRST_VALIDATION_INSTANCE
    if size is None:
        counter.expect(2 * (PILOT_RUNS + MIN_VALIDATION_RUNS))
        pilot = simulate_both(split.validation_spec, params, range(first, first + PILOT_RUNS), simulator, counter)
        needed = max(
            count_runs_needed(pilot[1] - pilot[0], TARGET_RELATIVE_ERRORS["gain"]),
            count_runs_needed(pilot[0], TARGET_RELATIVE_ERRORS["regret"]),
        )
        size, first = min(max(needed, MIN_VALIDATION_RUNS), MAX_VALIDATION_RUNS), first + PILOT_RUNS
    counter.expect(2 * size)
    return first, simulate_both(split.validation_spec, params, range(first, first + size), simulator, counter)


def simulate_both(
    spec: SimulationSpec,
    params: FloatArray,
    runs: range,
    simulator: StoredSimulator,
    counter: ProgressCounter,
    row: int = 0,
) -> FloatArray:
    """Simulate a policy and its textbook policy, each with its row of parameters, on the same instances: (2, runs).

    With independent noise, they have the noise of this `row` and the next one.
    """
    if spec.textbook_policy is None:
        return simulator.simulate(spec, params, runs, first_row=row, progress=counter)[:, :, 0]
    tuned = simulator.simulate(spec, params[:1], runs, first_row=row, progress=counter)
    textbook = simulator.simulate(spec.textbook_spec, params[1:], runs, first_row=row + 1, progress=counter)
    return np.concatenate([tuned, textbook])[:, :, 0]


def count_runs_needed(sample: FloatArray, share: float) -> int:
    """Count the runs until the standard error is about this share of the mean, at most `MAX_VALIDATION_RUNS`."""
    mean, spread = abs(float(sample.mean())), float(sample.std(ddof=1))
    if spread == 0:
        return 0
    return (
        MAX_VALIDATION_RUNS
        if spread >= math.sqrt(MAX_VALIDATION_RUNS) * share * mean
        else math.ceil((spread / (share * mean)) ** 2)
    )


def validate_unexplored_end(
    split: HoldOutSplit,
    posterior: SearchPosterior | None,
    tuned: FloatArray,
    fresh: range,
    simulator: StoredSimulator,
    counter: ProgressCounter,
    row: int = 0,
) -> ValueAdvantage | None:
    """Simulate the end that the search could not evaluate, and estimate its advantage over the answer.

    `tuned` are the answer's independent numbers on the same instances. None if there is no such end, or if the policy
    rejects it. The end does not become the answer, because a policy may never explore there. If arms are in a known order,
    good ones first, such a policy would only gain by ties.
    """
    if posterior is None or not posterior.unexplored:
        return None
    end = posterior.unexplored[0]
    counter.expect_more(len(fresh))
    try:
        end_regrets = simulator.simulate(
            split.validation_spec, np.array([[end]]), fresh, first_row=row, progress=counter
        )[:, :, 0]
    except WorkerLost:
        raise
    except SimulationError:
        counter.expect_more(-len(fresh))
        return None
    return end, split.estimate(tuned - split.reduce_validation(end_regrets, fresh)[0])
