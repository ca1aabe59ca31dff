"""Explore-then-commit: each arm a number of times, then always the highest mean reward."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from banditune.core.arrays import FloatArray
from banditune.core.policy import Policy
from banditune.core.scalar import scalar
from banditune.core.space import Parameter
from banditune.simulation.estimators.arm_totals import (
    argmax_mean,
    recall_totals,
    resume_totals,
    start_totals,
    update_totals,
)


class ExplorationState(NamedTuple):
    """Pulls and totals, and the arm to which the policy committed, or -1 before the commitment."""

    pulls: FloatArray
    total: FloatArray
    committed: FloatArray


@scalar
def view_exploration(memory, setting):
    """Split the memory: two arrays with one float per arm, and one float."""
    arms = setting.arms
    return ExplorationState(memory[:arms], memory[arms : 2 * arms], memory[2 * arms : 2 * arms + 1])


@scalar
def start_exploration(state, setting):
    """Reset the memory."""
    start_totals(state, setting)
    state.committed[0] = -1.0


@scalar
def choose_explore_then_commit(state, setting, step, params, stream):
    """Choose the arms in turn, `pulls` times each (rounded), then always the highest mean at that time."""
    if step < int(params[0] + 0.5) * setting.arms:
        return step % setting.arms
    if state.committed[0] < 0.0:
        state.committed[0] = argmax_mean(state)
    return int(state.committed[0])


@scalar
def resume_exploration(state, setting, params, pulls, totals):
    """Restore every arm's pulls and total reward, and the commitment.

    The policy committed to an arm with more than `pulls` pulls if all arms have at least `pulls`. Without a commitment, an
    arm may have more pulls because its rewards arrived early or were not selected by the policy.
    """
    resume_totals(state, setting, params, pulls, totals)
    most = int(params[0] + 0.5) * 1.0
    least = pulls[0]
    for arm in range(setting.arms):
        least = min(least, pulls[arm])
    if least >= most:
        for arm in range(setting.arms):
            if pulls[arm] > most:
                state.committed[0] = arm
                most = pulls[arm]


def compute_most_pulls(arms: int, horizon: int) -> float:
    """Compute horizon / arms, the largest number of pulls of every arm."""
    return horizon // arms


def compute_textbook_pulls(arms: int, horizon: int) -> float:
    """Compute (horizon / arms)^(2/3) log(horizon)^(1/3) pulls per arm, for a regret of order horizon^(2/3)."""
    pulls = (horizon / arms) ** (2 / 3) * math.log(horizon) ** (1 / 3)
    return float(min(max(1, round(pulls)), horizon // arms))


@dataclass(frozen=True)
class ExploreThenCommit(Policy):
    """Each arm `pulls` times, then always the arm with the highest mean reward."""

    name = "explore-then-commit"
    pending_rewards = "ignore"
    parameters = (
        Parameter(
            "pulls",
            1,
            compute_most_pulls,
            textbook=compute_textbook_pulls,
            integer=True,
            scale="log",
            lower_limit=1,
            meaning="the number of pulls of every arm before the best one is selected for good",
        ),
    )
    pulls_every_arm: ClassVar[bool] = True

    view = staticmethod(view_exploration)
    start = staticmethod(start_exploration)
    choose = staticmethod(choose_explore_then_commit)
    update = staticmethod(update_totals)
    recall = staticmethod(recall_totals)
    resume = staticmethod(resume_exploration)

    def memory(self, arms: int, dims: int, horizon: int) -> int:
        return 2 * arms + 1
