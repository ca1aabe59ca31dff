"""How much arms differ within their campaign, whatever campaigns have in common: centres of campaigns and a spread."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from banditune.contracts import Floats
from banditune.logs.gaussian import Cells
from banditune.logs.record import Logs
from banditune.logs.search import ends, normal_quantile, peak
from banditune.results import Fitted, student_quantile

LEAST_SHARE = 1e-4
"""Arms of a campaign are never taken as all alike: that would be no problem at all."""

NAME = "sd within campaigns"


class Posteriors(NamedTuple):
    """Two numbers for every cell, those of its beta or normal posterior, and the spread within campaigns."""

    first: Floats
    second: Floats
    spread: Fitted


def beta_posteriors(logs: Logs, confidence: float) -> Posteriors:
    """Beta posteriors around each campaign's centre.

    The spread is by moments (Williams 1982): `share` of m (1 - m), the variance of a 0/1 reward, lies between arms.
    """
    count = len(logs.campaigns)
    pulls, lengths = logs.pulls.astype(float), logs.lengths.astype(float)
    overall = float(logs.total.sum() / pulls.sum())
    pooled = np.bincount(logs.campaign, logs.total, count) / lengths
    scale = np.maximum(pooled * (1 - pooled), 1e-300)[logs.campaign]
    squares = np.where(scale > 1e-299, pulls * (logs.mean - pooled[logs.campaign]) ** 2 / scale, 0.0)
    free = np.where(pooled * (1 - pooled) > 0, logs.widths - 1.0, 0.0)
    reach = np.where(free > 0, lengths - np.bincount(logs.campaign, pulls**2, count) / lengths, 0.0)
    tops, bottoms = np.bincount(logs.campaign, squares, count) - free, reach - free
    share = _share(float(tops.sum()), float(bottoms.sum()))
    weight = pulls / (1 + (pulls - 1) * share)
    # One pull's worth of the common mean keeps campaigns that never or always paid off the edge.
    centre = (np.bincount(logs.campaign, weight * logs.mean, count) + overall) / (
        np.bincount(logs.campaign, weight, count) + 1
    )
    total = 1 / share - 1
    mean = centre[logs.campaign]
    left = [
        _share(float(tops.sum() - top), float(bottoms.sum() - bottom))
        for top, bottom in zip(tops, bottoms, strict=True)
    ]
    half = _jackknife(np.array(left), confidence)
    unit = math.sqrt(overall * (1 - overall))
    low, high = (math.sqrt(min(max(share + sign * half, 0.0), 1.0)) * unit for sign in (-1, 1))
    spread = Fitted(NAME, math.sqrt(share) * unit, low, high)
    return Posteriors(total * mean + logs.total, total * (1 - mean) + logs.pulls - logs.total, spread)


def _share(top: float, bottom: float) -> float:
    """The share of variance between arms, kept inside (0, 1)."""
    return min(max(top / bottom if bottom > 0 else 0.0, LEAST_SHARE), 1 - 1e-9)


def _jackknife(left: Floats, confidence: float) -> float:
    """Half the width of an interval from estimates that leave out one campaign each."""
    count = len(left)
    if count < 2:
        return math.inf
    error = math.sqrt((count - 1) / count * float(((left - left.mean()) ** 2).sum()))
    return student_quantile(0.5 + confidence / 2, count - 1) * error


def normal_posteriors(logs: Logs, noise: float, confidence: float) -> Posteriors:
    """Normal posteriors around each campaign's centre; the spread by restricted likelihood, with a mean per campaign."""
    pulls = logs.pulls.astype(float)
    bounds = np.searchsorted(logs.campaign, np.arange(len(logs.campaigns) + 1))
    groups = [Cells(logs.mean[a:b], pulls[a:b]) for a, b in pairwise(bounds) if b - a > 1]

    def likelihood(sd: float) -> float:
        return sum(cells.restricted(sd, noise) for cells in groups)

    least = math.sqrt(LEAST_SHARE) * noise
    most = 10 * (float(np.std(logs.mean)) + noise)
    sd = math.exp(peak(lambda log: likelihood(math.exp(log)), math.log(noise), 0.5, math.log(least), math.log(most)))
    low, high = ends(
        likelihood, sd, likelihood(sd), (0.1 * sd, 0.1 * sd), (0.0, 1e3 * most), normal_quantile(0.5 + confidence / 2)
    )
    weights = 1 / (sd**2 + noise**2 / pulls)
    count = len(logs.campaigns)
    centre = np.bincount(logs.campaign, weights * logs.mean, count) / np.bincount(logs.campaign, weights, count)
    weight = 1 / sd**2 + pulls / noise**2
    first = (centre[logs.campaign] / sd**2 + logs.total / noise**2) / weight
    spread = Fitted(NAME, sd, low or 0.0, math.inf if high is None else high)
    return Posteriors(first, 1 / np.sqrt(weight), spread)
