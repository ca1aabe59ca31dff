"""Rewards in [0, 1] with a beta distribution around mean rewards, which have a beta distribution, too."""

from __future__ import annotations

import math

import numpy as np

from banditune.core.arrays import FloatArray, IntArray
from banditune.results.log_results import FittedParameter
from banditune.results.student_t import compute_student_quantile


def compute_reward_concentration(pulls: FloatArray, mean: FloatArray, squares: FloatArray) -> float:
    """Compute the number v of Beta(v m, v (1 - m)): a reward's variance is m (1 - m) / (v + 1).

    Squares within cells are compared with m (1 - m). Its estimate from a cell's mean is too small by 1 / ((v + 1) pulls).
    """
    weight = (pulls - 1) * mean * (1 - mean)
    share = float(squares.sum() / max(weight.sum(), 1e-300))
    for _ in range(100):
        before, share = share, float(squares.sum() / (weight / (1 - np.minimum(share, 1.0) / (pulls + 1e-9))).sum())
        if abs(share - before) < 1e-12:
            break
    return 1 / share - 1 if share > 0 else math.inf


def fit_reward_concentration(
    campaign: IntArray, pulls: FloatArray, mean: FloatArray, squares: FloatArray, confidence: float
) -> tuple[float, FittedParameter]:
    """Estimate v, with an interval by the jackknife over campaigns on a log scale; over cells if there is one campaign."""
    value = compute_reward_concentration(pulls, mean, squares)
    groups = campaign if campaign.max() > 0 else np.arange(len(pulls))
    weight = (pulls - 1) * mean * (1 - mean) / (1 - 1 / ((value + 1) * pulls + 1e-9))
    tops, bottoms = np.bincount(groups, squares), np.bincount(groups, weight)
    # Leaving out a group changes a ratio of sums, 1 / (v + 1). The jackknife is that of its logarithm.
    top_without, bottom_without = tops.sum() - tops, bottoms.sum() - bottoms
    if (top_without <= 1e-12 * tops.sum()).any() or (bottom_without <= 1e-12 * bottoms.sum()).any():
        return value, FittedParameter(
            name="v", value=value, low=0.0, high=math.inf
        )  # one group has all information, so its error cannot be estimated
    log_ratios = np.log(top_without / bottom_without)
    count = len(log_ratios)
    error = math.sqrt((count - 1) / count * float(((log_ratios - log_ratios.mean()) ** 2).sum()))
    reach = compute_student_quantile(0.5 + confidence / 2, count - 1) * error
    low, high = ((value + 1) * math.exp(sign * reach) - 1 for sign in (-1, 1))
    return value, FittedParameter(name="v", value=value, low=max(low, 0.0), high=high)


def convert_to_counts(pulls: FloatArray, mean: FloatArray, v: float) -> tuple[FloatArray, FloatArray]:
    """Convert rewards to successes and failures of 0/1 rewards whose average has the same mean and variance.

    Counts have four digits. More digits would only make the tables of the likelihood longer.
    """
    trials = pulls * (v + 1)
    return _round_to_four_digits(trials * mean), _round_to_four_digits(trials * (1 - mean))


def _round_to_four_digits(values: FloatArray) -> FloatArray:
    """Round numbers to four digits."""
    unit = 10.0 ** (np.floor(np.log10(np.maximum(values, 1e-300))) - 3)
    return np.where(values > 0, np.round(values / unit) * unit, 0.0)
