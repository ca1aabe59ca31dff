"""The upper confidence bound of UCB1, Eq. (3) of the paper: the same operations in the loop and in the shortcuts."""

from __future__ import annotations

import math

from banditune.core.scalar import scalar


@scalar
def compute_ucb_width(scale, pulls):
    """Theory's confidence width after so many pulls; `scale` is 2 noise sqrt(2 log horizon)."""
    return scale / math.sqrt(pulls)


@scalar
def compute_ucb_index(total, pulls, gamma, scale):
    """The upper confidence bound, Eq. (3) of the paper: the same operations in the loop and in the shortcuts."""
    return total / pulls + gamma * compute_ucb_width(scale, pulls)
