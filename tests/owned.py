"""A policy and a problem as a user would write them, for tests on several devices."""

from __future__ import annotations

import banditune as bt


@bt.scalar
def choose_own(state, setting, step, params, stream):
    if bt.uniform(stream) < params[0]:
        return bt.random_arm(state, stream)
    return bt.best_mean(state)


@bt.scalar
def reward_own(instance, arm, pull, step, stream):
    return instance.means[arm] * bt.exponential(stream) / 2 * instance.options[0]


OWN = bt.arm_policy("own", choose_own, parameters=[bt.Parameter("epsilon", 0, 1, theory=0.1)])
OWN_PROBLEM = bt.arm_problem(
    "exponential", lambda size, rng: rng.gamma(2, 1, (size, 3)), reward_own, arms=3, options=[2.0]
)
