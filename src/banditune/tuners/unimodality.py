"""Where a curve has more than one dip: a value in the middle that is above one on each side."""

from __future__ import annotations

import math

import numpy as np

from banditune.core.arrays import FloatArray


def find_highest_between(t: FloatArray) -> tuple[float, tuple[int, int, int]]:
    """The triple i < j < k whose middle is most surely above both others, and how surely that is.

    t[j, i] says how surely j is above i. Of the two statements about a triple the weaker counts; -infinity with fewer than
    three values.
    """
    count = len(t)
    before = np.tri(count, k=-1, dtype=bool)
    left, right = np.where(before, t, -math.inf), np.where(before.T, t, -math.inf)
    lesser = np.minimum(left.max(axis=1), right.max(axis=1)) if count > 2 else np.full(count, -math.inf)
    top = int(lesser.argmax())
    return float(lesser[top]), (int(left[top].argmax()), top, int(right[top].argmax()))
