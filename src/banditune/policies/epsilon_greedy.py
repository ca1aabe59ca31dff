"""Epsilon-greedy: a random arm with probability epsilon, else the highest mean reward."""

from __future__ import annotations

import math
from dataclasses import dataclass

from banditune.core.scalar import scalar
from banditune.core.streams import uniform
from banditune.policies.base_policies import TotalsPolicy, make_probability_parameter
from banditune.simulation.estimators.arm_totals import argmax_mean, draw_arm


@scalar
def choose_epsilon_greedy(state, setting, step, params, stream):
    """Choose a random arm with probability epsilon, else the highest mean."""
    if uniform(stream) < params[0]:
        return draw_arm(state, stream)
    return argmax_mean(state)


def compute_textbook_epsilon(arms: int, horizon: int) -> float:
    """Compute (arms log(horizon) / horizon)^(1/3), the fixed rate with a regret of order horizon^(2/3)."""
    return min(1.0, math.pow(arms * math.log(horizon) / horizon, 1 / 3))


@dataclass(frozen=True)
class EpsilonGreedy(TotalsPolicy):
    """A random arm with probability epsilon, else the highest mean reward. Arms without pulls precede others."""

    name = "epsilon-greedy"
    pending_rewards = "ignore"
    parameters = (make_probability_parameter(compute_textbook_epsilon),)
    choose = staticmethod(choose_epsilon_greedy)
