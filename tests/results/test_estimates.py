"""Student's t quantiles and intervals of means."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import banditune as bt
from banditune.results.student_t import compute_student_quantile


@pytest.mark.parametrize("degrees", [*range(1, 31), 99, 100, 499, 999, 1000, 1001, 1002, 5000, 999_999, 10**9])
def test_students_t_quantiles_agree_with_scipy(degrees):
    """From just above the median to 1 in 10^12. SciPy's quantile of the upper tail keeps its digits there."""
    for level in (0.5, 0.5001, 0.6, 0.8, 0.95, 0.975, 0.9995, 1 - 1e-6, 1 - 1e-9, 1 - 1e-12):
        assert compute_student_quantile(level, degrees) == pytest.approx(stats.t.isf(1 - level, degrees), rel=1e-8)
        assert compute_student_quantile(1 - level, degrees) == -compute_student_quantile(1 - (1 - level), degrees)


def test_intervals_cover_at_their_rate_even_with_few_runs():
    rng = np.random.default_rng(8)
    for size in (2, 5, 20):
        samples = [bt.results.Estimate.from_sample(rng.standard_normal(size)) for _ in range(2000)]
        assert np.mean([s.low <= 0 <= s.high for s in samples]) > 0.95 - 4 * math.sqrt(0.05 * 0.95 / 2000)
