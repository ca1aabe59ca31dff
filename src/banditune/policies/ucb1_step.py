"""UCB1 with the logarithm of the step, as in textbooks and other libraries."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from banditune.core.checks import check_number, is_from_problem
from banditune.core.option_types import Noise, Option
from banditune.core.policy import FROM_PROBLEM
from banditune.core.scalar import scalar
from banditune.policies.base_policies import TotalsPolicy, make_width_parameter


@scalar
def choose_ucb1_step(state, setting, step, params, stream):
    """Choose each arm once, then the highest mean + gamma 2 noise sqrt(2 log(step) / pulls)."""
    best = 0
    highest = -math.inf
    scale = params[0] * 2.0 * setting.options[0] * math.sqrt(2.0 * math.log(max(step, 1)))
    for arm in range(setting.arms):
        if state.pulls[arm] == 0.0:
            return arm
        value = state.total[arm] / state.pulls[arm] + scale / math.sqrt(state.pulls[arm])
        if value > highest:
            best, highest = arm, value
    return best


@dataclass(frozen=True)
class UCB1Step(TotalsPolicy):
    """UCB1 with log(step) instead of log(horizon), as in other libraries.

    It needs no horizon and explores less in the first steps.

    Parameters
    ----------
    noise : float or "problem"
        Standard deviation of a reward around its arm's mean, above 0. By default it is taken from the problem.
    """

    noise: Option[Noise] = FROM_PROBLEM

    name = "ucb1-step"
    parameters = (make_width_parameter(),)
    pulls_every_arm: ClassVar[bool] = True
    textbook_options: ClassVar[Mapping[str, Any]] = {"noise": 0.5}
    choose = staticmethod(choose_ucb1_step)

    def __post_init__(self) -> None:
        if not is_from_problem(self.noise):
            object.__setattr__(self, "noise", check_number("noise", self.noise, above=0))

    def options(self, arms: int, dims: int, horizon: int) -> tuple[float, ...]:
        return (self.noise,)
