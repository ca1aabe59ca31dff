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
"""Rewards that are drawn, about."""


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
    steps_at = np.minimum(steps.astype(np.int64), spec.horizon - 1)
    rewards = np.empty((*means.shape, count))
    cursor[3] = REWARD_STREAM
    for run, row in enumerate(means):
        key = compute_instance_key(spec.seed, run)  # type: ignore[no-untyped-call]
        for arm in range(len(row)):
            draw(row, options, *key, cursor, arm, first, steps_at[run], rewards[run, arm])
    averages = np.zeros(means.shape)
    for pull in range(count):
        averages += rewards[..., pull] / count
    return averages
