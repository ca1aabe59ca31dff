"""Tests whether a curve has a single dip."""

from __future__ import annotations

import math

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.results.search_results import UnimodalityTest
from banditune.results.student_t import compute_student_quantile
from banditune.tuners.unimodality import find_highest_between

FALSE_ALARM_RATE = 0.05


MIN_TEST_RUNS = 30
"""The fewest runs for a rejection. With fewer, the statistics are too far from normal."""


def check_unimodal(values: FloatArray, regrets: FloatArray, *, candidates: int = 0) -> UnimodalityTest:
    """Reject "falls, then rises" if a value is significantly above one on each side.

    For values i < j < k, a unimodal curve has not both m_j > m_i and m_j > m_k. The statistic is the largest, over such
    triples, of the smaller of the two paired t statistics. Under a unimodal curve one of each triple's two differences is
    not positive. So a false alarm needs one of the V (V - 1) differences of pairs to exceed its expectation by the critical
    value. Bonferroni's inequality bounds its probability by `FALSE_ALARM_RATE`, as far as the central limit theorem holds.
    If values were selected by the curve, `candidates` is the number of values among which they were selected.
    """
    count = len(values)
    pairs = max(count, candidates) * (max(count, candidates) - 1)
    critical = compute_student_quantile(1 - FALSE_ALARM_RATE / max(1, pairs), regrets.shape[1] - 1)
    height, triple = find_highest_between(compute_paired_statistics(regrets))
    rejected = height > critical and regrets.shape[1] >= MIN_TEST_RUNS
    statistic = height if math.isfinite(height) else 0.0
    peak = tuple(float(values[i]) for i in triple) if rejected else ()
    return UnimodalityTest(
        rejected=rejected,
        statistic=statistic,
        critical_value=critical,
        false_alarm_rate=FALSE_ALARM_RATE,
        second_dip=peak,
    )


def compute_paired_statistics(regrets: FloatArray) -> FloatArray:
    """Compute t[j, i] = (mean_j - mean_i) / its paired standard error; 0 if two rows are the same."""
    runs = regrets.shape[1]
    mean = regrets.mean(axis=1)
    covariance = np.cov(regrets) if len(regrets) > 1 and runs > 1 else np.zeros((len(regrets), len(regrets)))
    variance = np.add.outer(np.diag(covariance), np.diag(covariance)) - 2 * covariance
    se = np.sqrt(np.maximum(variance, 0) / runs)
    difference = np.subtract.outer(mean, mean)
    scale = np.abs(mean).max() + 1e-300
    is_positive = se > 1e-12 * scale
    return np.where(is_positive, difference / np.where(is_positive, se, 1), 0.0)
