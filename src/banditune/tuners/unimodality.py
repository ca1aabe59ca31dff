"""Detects more than one dip in a curve: a value in the middle that is above one on each side."""

from __future__ import annotations

import math

import numpy as np

from banditune.core.arrays import FloatArray


def find_highest_between(t: FloatArray) -> tuple[float, tuple[int, int, int]]:
    """Find the triple i < j < k whose middle value is most significantly above both others, and its statistic.

    t[j, i] is the statistic of j being above i. The statistic of a triple is the smaller of its two; -infinity with fewer
    than three values.
    """
    count = len(t)
    before = np.tri(count, k=-1, dtype=bool)
    left, right = np.where(before, t, -math.inf), np.where(before.T, t, -math.inf)
    lesser = np.minimum(left.max(axis=1), right.max(axis=1)) if count > 2 else np.full(count, -math.inf)
    top = int(lesser.argmax())
    return float(lesser[top]), (int(left[top].argmax()), top, int(right[top].argmax()))
