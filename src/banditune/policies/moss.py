"""MOSS (Audibert and Bubeck, Minimax policies for adversarial and stochastic bandits, COLT 2009)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from banditune.core.scalar import scalar
from banditune.policies.base_policies import TotalsPolicy, make_width_parameter
from banditune.policies.index_policy import make_index_functions


@scalar
def compute_moss_index(arm, setting, step, params):
    """Compute mean + gamma sqrt(max(0, log(horizon / (arms pulls))) / pulls)."""
    if arm.pulls == 0.0:
        return math.inf
    bonus = max(math.log(setting.horizon / (setting.arms * arm.pulls)), 0.0)
    return arm.total / arm.pulls + params[0] * math.sqrt(bonus / arm.pulls)


FUNCTIONS = make_index_functions(compute_moss_index, "constant")


@dataclass(frozen=True)
class MOSS(TotalsPolicy):
    """Highest mean plus gamma sqrt(max(0, log(horizon / (arms pulls))) / pulls), for rewards in [0, 1].

    The width is 0 after horizon / arms pulls of an arm (Audibert and Bubeck 2009).

    Examples
    --------
    >>> import banditune as bt
    >>> regrets = bt.simulate(bt.policies.MOSS(), bt.Bernoulli(arms=3), [0.3, 1.0], horizon=100, runs=500)
    >>> tuned, textbook = regrets.mean(axis=1)
    >>> bool(tuned < textbook)
    True
    """

    name = "moss"
    parameters = (make_width_parameter(),)
    rewards: ClassVar[str] = "unit"
    pulls_every_arm: ClassVar[bool] = True
    choose = staticmethod(FUNCTIONS.choose)
    shortcuts = FUNCTIONS.shortcuts
