"""UCB-V (Audibert, Munos and Szepesvári, Exploration-exploitation tradeoff using variance estimates, 2009)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from banditune.core.policy import Policy
from banditune.core.scalar import scalar
from banditune.policies.base_policies import make_width_parameter
from banditune.policies.index_policy import make_index_functions


@scalar
def compute_ucb_v_index(arm, setting, step, params):
    """Compute mean + gamma sqrt(2 variance log(step) / pulls) + 3 gamma^2 log(step) / pulls."""
    if arm.pulls == 0.0:
        return math.inf
    mean = arm.total / arm.pulls
    variance = max(arm.squares / arm.pulls - mean * mean, 0.0)
    exploration = params[0] * params[0] * math.log(max(step, 1.0)) / arm.pulls
    return mean + math.sqrt(2.0 * variance * exploration) + 3.0 * exploration


FUNCTIONS = make_index_functions(compute_ucb_v_index, "rising", squares=True)


@dataclass(frozen=True)
class UCBV(Policy):
    """Highest mean plus a width by the arm's sample variance, for rewards in [0, 1].

    The width is sqrt(2 variance e) + 3 e with e = gamma^2 log(step) / pulls (Audibert, Munos and Szepesvári 2009). The
    policy needs sums of squared rewards, so it cannot be deployed.

    Examples
    --------
    >>> import banditune as bt
    >>> regrets = bt.simulate(bt.policies.UCBV(), bt.Bernoulli(arms=3), [0.3, 1.0], horizon=100, runs=500)
    >>> tuned, textbook = regrets.mean(axis=1)
    >>> bool(tuned < textbook)
    True
    """

    name = "ucb-v"
    parameters = (make_width_parameter(),)
    rewards: ClassVar[str] = "unit"
    pulls_every_arm: ClassVar[bool] = True
    view = staticmethod(FUNCTIONS.view)
    start = staticmethod(FUNCTIONS.start)
    choose = staticmethod(FUNCTIONS.choose)
    update = staticmethod(FUNCTIONS.update)
    shortcuts = FUNCTIONS.shortcuts

    def memory(self, arms: int, dims: int, horizon: int) -> int:
        return 3 * arms
