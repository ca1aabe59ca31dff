"""How much arms differ within their campaign, whatever campaigns have in common: centres of campaigns and a spread."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from banditune.contracts import Floats, Integers
from banditune.logs.centres import cells_of, evidence, size_of
from banditune.logs.gaussian import Cells as NormalCells
from banditune.logs.record import Logs
from banditune.logs.search import NO_SPREAD, ends, peak, spread_reach
from banditune.results import Fitted, student_quantile

NAME = "sd within campaigns"


class Posteriors(NamedTuple):
    """A row of two numbers for every cell, of the beta or normal distribution that it had before its data, and after.

    And the spread within campaigns, with sentences about it.
    """

    before: Floats
    after: Floats
    spread: Fitted
    notes: tuple[str, ...]


def beta_posteriors(campaign: Integers, successes: Floats, failures: Floats, confidence: float) -> Posteriors:
    """Beta posteriors around each campaign's centre (see `centres`).

    The spread is that of arms in a campaign that pays as campaigns do on average.
    """
    cells = cells_of(campaign, successes, failures)
    size = size_of(cells, confidence)
    overall = size.overall
    # Without spread beyond chance there is as much as the logs allow; without an upper end of that, any.
    used = size.value if math.isfinite(size.value) else (0.0 if size.low is None else size.low)
    centre = evidence(cells._replace(overall=overall, worth=size.worth), used)[1][campaign]
    total = math.exp(used)

    def sd(log: float) -> float:
        return math.sqrt(overall * (1 - overall) / (1 + math.exp(log)))

    value = 0.0 if size.value == math.inf else sd(size.value)
    low = 0.0 if size.high is None else sd(size.high)
    high = sd(-math.inf if size.low is None else size.low)
    # The mean at which it is told is not known exactly either.
    extra = student_quantile(0.5 + confidence / 2, max(size.campaigns - 1, 1)) * size.blur
    if low > 0:
        low = value * math.exp(-math.hypot(math.log(value / low), extra))
        high = min(value * math.exp(math.hypot(math.log(high / value), extra)), 0.5)
    spread = Fitted(NAME, value, low, high)
    notes = alike(confidence) if size.value == math.inf else ()
    if size.campaigns < cells.campaigns:
        told = (
            f"the spread within campaigns is told by {size.campaigns:,} of them, chosen at random among those with two "
        )
        notes = (*notes, told + "arms or more")
    before = total * np.stack([centre, 1 - centre], axis=1)
    return Posteriors(before, before + np.stack([successes, failures], axis=1), spread, notes)


def alike(confidence: float) -> tuple[str, ...]:
    """A sentence about arms that do not differ."""
    return (
        "within campaigns arms do not differ beyond chance; the problem lets them differ as much as the logs allow "
        f"({100 * confidence:g}% limit)",
    )


def normal_posteriors(logs: Logs, noise: float, confidence: float) -> Posteriors:
    """Normal posteriors around each campaign's centre; the spread by restricted likelihood, with a mean per campaign."""
    pulls = logs.pulls.astype(float)
    bounds = np.searchsorted(logs.campaign, np.arange(len(logs.campaigns) + 1))
    groups = [NormalCells(logs.mean[a:b], pulls[a:b]) for a, b in pairwise(bounds) if b - a > 1]

    def likelihood(sd: float) -> float:
        return sum(cells.restricted(sd, noise) for cells in groups)

    # The best-known arm's error is the smallest spread that could ever be seen.
    least = 1e-3 * noise / math.sqrt(float(pulls.max()))
    most = 10 * (float(np.std(logs.mean)) + noise)
    span = math.log(least), math.log(most)
    best = math.exp(peak(lambda log: likelihood(math.exp(log)), math.log(noise), 0.5, *span))
    same = 2 * (likelihood(best) - likelihood(0.0)) <= NO_SPREAD
    sd = 0.0 if same else best
    degrees = int(sum(len(cells.mean) - 1 for cells in groups))
    step = 0.1 * (sd + noise / math.sqrt(float(np.median(pulls)) * degrees))
    reach = spread_reach(confidence, degrees, degrees)
    low, high = ends(likelihood, sd, likelihood(sd), (step, step), (0.0, 1e3 * most), reach)
    spread = Fitted(NAME, sd, low or 0.0, math.inf if high is None else high)
    used = sd or (most if high is None else high)
    weights = 1 / (used**2 + noise**2 / pulls)
    count = len(logs.campaigns)
    centre = np.bincount(logs.campaign, weights * logs.mean, count) / np.bincount(logs.campaign, weights, count)
    centre = centre[logs.campaign]
    weight = 1 / used**2 + pulls / noise**2
    mean = (centre / used**2 + logs.total / noise**2) / weight
    before = np.stack([centre, np.full(len(centre), used)], axis=1)
    after = np.stack([mean, 1 / np.sqrt(weight)], axis=1)
    return Posteriors(before, after, spread, alike(confidence) if same else ())
