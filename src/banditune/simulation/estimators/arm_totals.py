"""Pulls and total reward of every arm, and the scalar functions that policies on them share."""

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
    """Split the memory into two strips: pulls and totals."""
    return ArmTotals(memory[: setting.arms], memory[setting.arms : 2 * setting.arms])


@scalar
def start_totals(state, setting):
    """Reset the memory."""
    for arm in range(setting.arms):
        state.pulls[arm] = 0.0
        state.total[arm] = 0.0


@scalar
def update_totals(state, setting, step, params, arm, reward, stream):
    """Count one pull and its reward."""
    state.pulls[arm] += 1.0
    state.total[arm] += reward


@scalar
def recall_totals(state, setting, pulls, totals):
    """Write out every arm's pulls and total reward."""
    for arm in range(setting.arms):
        pulls[arm] = state.pulls[arm]
        totals[arm] = state.total[arm]


@scalar
def resume_totals(state, setting, params, pulls, totals):
    """Restore every arm's pulls and total reward."""
    for arm in range(setting.arms):
        state.pulls[arm] = pulls[arm]
        state.total[arm] = totals[arm]


@scalar
def argmax_mean(state):
    """Find the arm with the highest mean reward. Arms without pulls precede others; ties go to the lowest number.

    Parameters
    ----------
    state : record
        The policy's memory, with `pulls` and `total` of every arm.
    """
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
    """Count the ones among an arm's 0/1 rewards. The count is clipped to [0, pulls], in case rewards are not 0 or 1."""
    return min(max(int(state.total[arm] + 0.5), 0), int(state.pulls[arm]))


@scalar
def draw_arm(state, stream):
    """Draw an arm, with equal probabilities.

    Parameters
    ----------
    state : record
        The policy's memory, with `pulls` of every arm.
    stream : Stream
        Source of random numbers: the last argument of `choose`, `update` or `reward`.
    """
    return int(uniform(stream) * len(state.pulls))
