"""Counts of pulls and successes of every arm, packed into 64-bit words. A row of words is a state."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from banditune.core.arrays import IntArray
from banditune.core.streams import MASK32

ONE_PULL = 1 << 32
"""A state has a word for each arm, ONE_PULL * pulls + successes, and then the memory of the policy."""


def extract_pulls(counts: IntArray) -> IntArray:
    """Extract pulls from words of counts."""
    return counts >> 32


def extract_successes(counts: IntArray) -> IntArray:
    """Extract successes from words of counts."""
    return counts & MASK32


def iterate_slices(count: int, size: int) -> Iterator[slice]:
    """Yield slices of at most `size` that cover `count` items."""
    for first in range(0, count, size):
        yield slice(first, min(first + size, count))


def add_pull(counts: IntArray, arms: IntArray) -> tuple[IntArray, IntArray]:
    """Compute counts after a failure and after a success of the chosen arms."""
    failed = counts.copy()
    failed[np.arange(len(failed)), arms] += ONE_PULL
    succeeded = failed.copy()
    succeeded[np.arange(len(succeeded)), arms] += 1
    return failed, succeeded
