"""Estimates the advantage of the best fixed arm over the comparator of realised regret.

Realised regret compares with the arm that has the highest mean by `sample`. If rewards change with the step, another arm
may pay more over the steps of a run. Regret is then understated.
"""

from __future__ import annotations

import numpy as np

from banditune.core.arrays import FloatArray, copy_read_only
from banditune.core.streams import REWARD_STREAM
from banditune.simulation.instances import draw_instances
from banditune.simulation.loop import compute_instance_key
from banditune.simulation.mean_test import compile_reward_sampler
from banditune.simulation.spec import SimulationSpec

DRAWS = 1 << 18
"""The approximate number of rewards that are drawn. They take a seventh of a second."""


def estimate_fixed_arm_advantage(spec: SimulationSpec) -> FloatArray:
    """Estimate for each instance of a block the advantage of another fixed arm over the comparator, per step.

    One half of the draws selects the arm, the other half evaluates it, and vice versa. So on average the estimate is not
    above the true value, and it is 0 or less if the comparator is the best arm.
    """
    means = draw_instances(spec.problem, spec.seed, 0).means
    compared, rows = means.argmax(axis=1), np.arange(len(means))
    count = max(1, DRAWS // (2 * means.size))
    halves = [average_rewards_over_steps(spec, means, first, count) for first in (0, count)]
    advantages = [other[rows, one.argmax(axis=1)] - other[rows, compared] for one, other in (halves, reversed(halves))]
    return np.mean(advantages, axis=0)  # type: ignore[no-any-return]


def average_rewards_over_steps(spec: SimulationSpec, means: FloatArray, first: int, count: int) -> FloatArray:
    """Average `count` rewards of every arm of every instance, spread over the steps; `first` is the first pull."""
    draw, options, cursor = compile_reward_sampler(spec), copy_read_only(spec.problem.options()), np.zeros(4, np.int64)
    rng = np.random.default_rng([0, first])
    steps = (np.arange(count) + rng.random((len(means), count))) * spec.horizon / count
    averages, out = np.zeros(means.shape), np.empty(1)
    cursor[3] = REWARD_STREAM
    for run, row in enumerate(means):
        key0, key1 = compute_instance_key(spec.seed, run)  # type: ignore[no-untyped-call]
        places = np.minimum(steps[run].astype(int), spec.horizon - 1).tolist()
        for arm in range(len(row)):
            for pull, step in enumerate(places, first):
                draw(row, options, key0, key1, cursor, arm, pull, step, out)
                averages[run, arm] += out[0] / count
    return averages
