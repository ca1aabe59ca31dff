"""Greedy: always the highest mean reward."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from banditune.core.scalar import scalar
from banditune.policies.base_policies import TotalsPolicy
from banditune.simulation.estimators.arm_totals import argmax_mean


@scalar
def choose_greedy(state, setting, step, params, stream):
    """Choose each arm once, then the highest mean."""
    return argmax_mean(state)


@dataclass(frozen=True)
class Greedy(TotalsPolicy):
    """Each arm once, then always the highest mean reward. It has no parameter to tune."""

    name = "greedy"
    pending_rewards = "ignore"
    pulls_every_arm: ClassVar[bool] = True
    choose = staticmethod(choose_greedy)
