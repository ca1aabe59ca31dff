"""A policy and a problem as a user would write them, for tests on several devices."""

from __future__ import annotations

import banditune as bt


@bt.kernel.scalar
def choose(state, setting, step, params, stream):
    if bt.kernel.uniform(stream) < params[0]:
        return bt.kernel.draw_arm(state, stream)
    return bt.kernel.argmax_mean(state)


@bt.kernel.scalar
def pay(instance, arm, pull, step, stream):
    return instance.means[arm] * bt.kernel.exponential(stream) / 2 * instance.options[0]


USER_POLICY = bt.define_policy("own", choose, parameters=[bt.Parameter("epsilon", 0, 1, textbook=0.1)])
USER_PROBLEM = bt.define_problem(
    "exponential", lambda size, rng: rng.gamma(2, 1, (size, 3)), pay, arms=3, options=[2.0]
)
