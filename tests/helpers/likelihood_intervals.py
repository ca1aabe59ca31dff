"""Exact cuts of likelihood intervals for normal cells, by SciPy."""

from __future__ import annotations

import math

from scipy import optimize, stats


def compute_spread_cut(degrees, cells, confidence=0.95):
    """The fall of twice the log likelihood at the ends of an interval for the spread of normal cells."""

    def compute_uncovered(cut):
        def fall(square):
            return square - cells - cells * math.log(square / cells) - cut

        low, high = optimize.brentq(fall, 1e-100, cells), optimize.brentq(fall, cells, 100 * cells + 100)
        return stats.chi2.sf(high, degrees) + stats.chi2.cdf(low, degrees)

    return optimize.brentq(lambda cut: compute_uncovered(cut) - (1 - confidence), 0.1, 100, xtol=1e-9)


def compute_mean_cut(cells):
    """The fall of twice the log likelihood at the ends of an interval for the mean of normal cells."""
    return cells * math.log1p(stats.t.ppf(0.975, cells - 1) ** 2 / (cells - 1))
