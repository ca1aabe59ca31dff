"""Pulls, total reward and sum of squared rewards of every arm, and the record of one arm."""

from __future__ import annotations

import math
from typing import NamedTuple

from banditune.core.arrays import FloatArray
from banditune.core.scalar import scalar


class ArmRecord(NamedTuple):
    """The record of one arm, which is the first argument of an index.

    Parameters
    ----------
    pulls : float
        The number of pulls of the arm.
    total : float
        The sum of its rewards.
    squares : float
        The sum of its squared rewards, if the policy keeps them; else NaN.
    """

    pulls: float
    total: float
    squares: float


class ArmMoments(NamedTuple):
    """Pulls, total reward and sum of squared rewards of every arm."""

    pulls: FloatArray
    total: FloatArray
    squares: FloatArray


@scalar
def view_moments(memory, setting):
    """Split the memory into three strips."""
    arms = setting.arms
    return ArmMoments(memory[:arms], memory[arms : 2 * arms], memory[2 * arms : 3 * arms])


@scalar
def start_moments(state, setting):
    """Reset the memory."""
    for arm in range(setting.arms):
        state.pulls[arm] = 0.0
        state.total[arm] = 0.0
        state.squares[arm] = 0.0


@scalar
def update_moments(state, setting, step, params, arm, reward, stream):
    """Count one pull and its reward."""
    state.pulls[arm] += 1.0
    state.total[arm] += reward
    state.squares[arm] += reward * reward


@scalar
def read_moments(state, arm):
    """Read the record of one arm."""
    return ArmRecord(state.pulls[arm], state.total[arm], state.squares[arm])


@scalar
def read_totals(state, arm):
    """Read the record of one arm if squares are not kept. They are NaN, so an index that reads them is an error."""
    return ArmRecord(state.pulls[arm], state.total[arm], math.nan)
