"""Comparisons of simulated numbers with expected ones."""

from __future__ import annotations

import numpy as np


def mean_agrees(sample: np.ndarray, expected: float, se_expected: float = 0.0) -> bool:
    """Whether a sample's mean is within 4 (joint) standard errors of the expected value."""
    se = np.std(sample, ddof=1) / np.sqrt(len(sample))
    return bool(abs(np.mean(sample) - expected) <= 4 * np.hypot(se, se_expected))
