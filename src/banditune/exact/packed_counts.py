"""Counts of pulls and successes of every arm, packed into 64-bit words; a row of words is a state."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from banditune.core.arrays import IntArray
from banditune.core.streams import MASK32

ONE_PULL = 1 << 32
"""A state has a word for each arm, PULL pulls + successes, and then the policy's memory."""


def extract_pulls(counts: IntArray) -> IntArray:
    """Pulls from words of counts."""
    return counts >> 32


def extract_successes(counts: IntArray) -> IntArray:
    """Successes from words of counts."""
    return counts & MASK32


def iterate_slices(count: int, size: int) -> Iterator[slice]:
    """Cut so many into parts."""
    for first in range(0, count, size):
        yield slice(first, min(first + size, count))


def add_pull(counts: IntArray, chosen: IntArray) -> tuple[IntArray, IntArray]:
    """Counts after a failure and after a success of the chosen arms."""
    lost = counts.copy()
    lost[np.arange(len(lost)), chosen] += ONE_PULL
    won = lost.copy()
    won[np.arange(len(won)), chosen] += 1
    return lost, won
