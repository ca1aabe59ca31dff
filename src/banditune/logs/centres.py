"""Binary rewards of campaigns: means of arms are beta around their campaign's centre, and the centres are integrated out.

All campaigns share the `size` a + b of these beta distributions, so that arms of campaigns that pay m have the variance
m (1 - m) / (size + 1). What is said about the size is not blurred by what campaigns have in common, nor lowered by
fitting a centre to each of them: given the size, every centre is weighed by how well it explains its campaign.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from banditune.contracts import Floats, Integers
from banditune.logs.beta_binomial import LEAST, MOST, stirling_rise
from banditune.logs.record import whole_campaigns
from banditune.logs.search import NO_SPREAD, ends, peak, spread_reach

NODES = 36
"""Places on a campaign's line of centres: evenly spaced in the logit, where such integrals converge fastest."""

WIDE = 7.0
"""They lie within so many standard deviations."""

PIECE = 1_000_000
"""So many numbers, nodes of cells, are worked on at once."""

TELLING = 10_000
"""Of more cells than that, so many of whole campaigns tell the size."""

WEAK = 0.5
"""What is known of a centre where campaigns are few: as much as half a success (or failure, if those are rarer) tells."""

FEW = 5
"""Of fewer campaigns than that nobody can say how much they differ."""

ALIKE = 1e7
"""Centres with a prior of so many pulls are all the same."""


class Cells(NamedTuple):
    """Successes and failures of cells that stand in order of their campaign, the mean of all, and the centres' prior.

    Centres are beta around the mean of all, with a + b = `worth`.
    """

    campaign: Integers
    successes: Floats
    failures: Floats
    overall: float
    worth: float

    @property
    def campaigns(self) -> int:
        """How many campaigns there are."""
        return int(self.campaign[-1]) + 1

    def some(self, campaigns: Integers) -> Cells:
        """The cells of some campaigns."""
        kept = np.isin(self.campaign, campaigns)
        number = np.unique(self.campaign[kept], return_inverse=True)[1]
        return Cells(number, self.successes[kept], self.failures[kept], self.overall, self.worth)


def cells_of(campaign: Integers, successes: Floats, failures: Floats) -> Cells:
    """Cells with a weak prior for their centres."""
    overall = float(successes.sum() / (successes + failures).sum())
    return Cells(campaign, successes, failures, overall, WEAK / min(overall, 1 - overall))


class Size(NamedTuple):
    """The logarithm of a + b with the ends of its interval (None: there is none), infinite where arms do not differ.

    And what it was found with: the worth of the centres' prior, and how many campaigns told it.
    """

    value: float
    low: float | None
    high: float | None
    worth: float
    campaigns: int


def size_of(cells: Cells, confidence: float) -> Size:
    """The size of the highest likelihood, and its likelihood interval; the centres' prior is fitted, too."""
    told = subset(cells)
    best = best_size(told, math.log(30.0))
    if told.campaigns >= FEW:
        for _ in range(2):
            told = told._replace(worth=best_worth(told, best))
            best = best_size(told, best)
    top = evidence(told, best)[0]
    degrees = len(told.campaign) - told.campaigns
    reach = spread_reach(confidence, degrees, degrees)
    low, high = ends(lambda size: evidence(told, size)[0], best, top, (0.3, 0.3), (LEAST, MOST), reach)
    alike = 2 * (top - evidence(told, MOST)[0]) <= NO_SPREAD
    return Size(math.inf if alike else best, low, None if alike else high, told.worth, told.campaigns)


def best_size(cells: Cells, start: float) -> float:
    """The likeliest logarithm of a + b of arms around their centre."""
    return peak(lambda size: evidence(cells, size)[0], start, 0.5, LEAST, MOST, 1e-3)


def best_worth(cells: Cells, size: float) -> float:
    """The likeliest a + b of centres around the mean of all."""

    def likelihood(log: float) -> float:
        return evidence(cells._replace(worth=math.exp(log)), size)[0]

    # A twentieth of a success is nothing.
    least = 0.1 * WEAK / min(cells.overall, 1 - cells.overall)
    return math.exp(peak(likelihood, math.log(cells.worth), 0.5, math.log(least), math.log(ALIKE), 1e-2))


def subset(cells: Cells) -> Cells:
    """All cells, or those of campaigns chosen at random, always the same, among those that can tell how arms differ."""
    if len(cells.campaign) <= TELLING:
        return cells
    widths = np.bincount(cells.campaign)
    several = np.flatnonzero(widths > 1)
    return cells.some(several[whole_campaigns(widths[several], TELLING, np.random.default_rng(20_211))])


def evidence(cells: Cells, size: float) -> tuple[float, Floats]:
    """The log likelihood of a size and worth, less what depends on neither, and the mean of each centre given the cells."""
    bounds = np.searchsorted(cells.campaign, np.arange(cells.campaigns + 1))
    pieces = np.unique([0, *np.flatnonzero(np.diff(bounds * NODES // PIECE)), cells.campaigns])
    total, centres = 0.0, []
    for first, last in pairwise(pieces):
        mine = slice(bounds[first], bounds[last])
        part = Cells(
            cells.campaign[mine] - first, cells.successes[mine], cells.failures[mine], cells.overall, cells.worth
        )
        found, centre = _evidence(part, size)
        total += found
        centres.append(centre)
    return total, np.concatenate(centres)


def _evidence(cells: Cells, size: float) -> tuple[float, Floats]:
    amount = math.exp(size)
    a, b = cells.worth * cells.overall, cells.worth * (1 - cells.overall)
    logits, step = nodes(cells, amount, a, b)
    good, bad = 1 / (1 + np.exp(-logits)), 1 / (1 + np.exp(logits))
    heights = a * np.log(good) + b * np.log(bad)
    for share, counts in ((good, cells.successes), (bad, cells.failures)):
        some = counts > 0
        mine = cells.campaign[some]
        np.add.at(heights, mine, stirling_rise(amount * share[mine], counts[some][:, None]))
    top = heights.max(axis=1)
    weights = np.exp(heights - top[:, None])
    for end, worth, counts in ((0, a, cells.successes), (-1, b, cells.failures)):
        # Beyond the last node the curve falls exponentially, with one more rate for each arm that is not at the edge.
        rate = worth + np.bincount(cells.campaign, counts > 0)
        weights[:, end] *= 0.5 + 1 / (rate * step)
    mass = weights.sum(axis=1)
    common = stirling_rise(np.array(amount), cells.successes + cells.failures)
    prior = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    total = float((prior + top + np.log(mass * step)).sum() - common.sum())
    return total, np.asarray((weights * good).sum(axis=1) / mass)


def nodes(cells: Cells, amount: float, a: float, b: float) -> tuple[Floats, Floats]:
    """Logits (campaigns, nodes) that cover each centre's posterior but for its tails, and their distance.

    A pull tells the less about the centre the more pulls its arm had, but an arm tells as much as one pull.
    """
    weight = (amount + 1) / (amount + cells.successes + cells.failures)
    known_a, known_b = (
        worth + np.bincount(cells.campaign, np.maximum(weight * counts, counts > 0))
        for worth, counts in ((a, cells.successes), (b, cells.failures))
    )
    half = WIDE * np.sqrt(1 / known_a + 1 / known_b)
    step = 2 * half / (NODES - 1)
    low = np.log(known_a / known_b) - half
    return low[:, None] + step[:, None] * np.arange(NODES), step
