"""The upper confidence bound of UCB1, Eq. (3) of the paper. The loop and the shortcuts use the same operations."""

from __future__ import annotations

import math

from banditune.core.scalar import scalar


@scalar
def compute_ucb_width(scale, pulls):
    """Compute the textbook's confidence width after some pulls. `scale` is 2 noise sqrt(2 log horizon)."""
    return scale / math.sqrt(pulls)


@scalar
def compute_ucb_index(total, pulls, gamma, scale):
    """Compute the upper confidence bound, Eq. (3) of the paper."""
    return total / pulls + gamma * compute_ucb_width(scale, pulls)
