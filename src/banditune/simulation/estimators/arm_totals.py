"""Pulls and total reward of every arm, for policies that need no more, and the moves they share."""

from __future__ import annotations

from typing import NamedTuple

from banditune.core.arrays import FloatArray
from banditune.core.scalar import scalar
from banditune.core.streams import uniform


class ArmTotals(NamedTuple):
    """Pulls and total reward of every arm."""

    pulls: FloatArray
    total: FloatArray


@scalar
def view_totals(memory, setting):
    """The first two strips of the memory as pulls and totals."""
    return ArmTotals(memory[: setting.arms], memory[setting.arms : 2 * setting.arms])


@scalar
def start_totals(state, setting):
    """Forget everything."""
    for arm in range(setting.arms):
        state.pulls[arm] = 0.0
        state.total[arm] = 0.0


@scalar
def update_totals(state, setting, arm, reward, stream):
    """Count one pull and its reward."""
    state.pulls[arm] += 1.0
    state.total[arm] += reward


@scalar
def recall_totals(state, setting, pulls, totals):
    """Write down every arm's pulls and total reward."""
    for arm in range(setting.arms):
        pulls[arm] = state.pulls[arm]
        totals[arm] = state.total[arm]


@scalar
def resume_totals(state, setting, params, pulls, totals):
    """Know every arm's pulls and total reward."""
    for arm in range(setting.arms):
        state.pulls[arm] = pulls[arm]
        state.total[arm] = totals[arm]


@scalar
def argmax_mean(state):
    """The arm with the highest mean reward; an arm never pulled comes first, ties go to the lowest number."""
    best = 0
    highest = -1e308
    for arm in range(len(state.pulls)):
        if state.pulls[arm] == 0.0:
            return arm
        mean = state.total[arm] / state.pulls[arm]
        if mean > highest:
            best = arm
            highest = mean
    return best


@scalar
def read_successes(state, arm):
    """How often an arm that pays 0 or 1 paid 1: from 0 to its pulls, even where a problem breaks its promise."""
    return min(max(int(state.total[arm] + 0.5), 0), int(state.pulls[arm]))


@scalar
def draw_arm(state, stream):
    """Any arm, all alike."""
    return int(uniform(stream) * len(state.pulls))
