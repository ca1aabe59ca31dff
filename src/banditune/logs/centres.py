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
from banditune.logs.beta_binomial import EDGE, LEAST, MOST, stirling_rise
from banditune.logs.record import whole_campaigns
from banditune.logs.search import NO_SPREAD, ends, error_matrix, peak, spread_reach

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

ROUNDS, SETTLED = 8, 0.005
"""Numbers are looked for in turn, at most so often, until the logit of the centres' mean moves by less."""

ALIKE = 1e7
"""Centres with a prior of so many pulls are all the same."""


class Cells(NamedTuple):
    """Successes and failures of cells that stand in order of their campaign, and the centres' prior.

    Centres are beta around their mean, `overall`, with a + b = `worth`.
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
    """Cells with a weak prior for their centres, around the reward rate of all pulls."""
    overall = float(successes.sum() / (successes + failures).sum())
    return Cells(campaign, successes, failures, overall, WEAK / min(overall, 1 - overall))


class Size(NamedTuple):
    """The logarithm of a + b with the ends of its interval (None: there is none), infinite where arms do not differ.

    And what it was found with: the mean of centres, what not knowing it and their prior adds to the error of the spread's
    logarithm, the worth of their prior, and how many campaigns told it.
    """

    value: float
    low: float | None
    high: float | None
    overall: float
    blur: float
    worth: float
    campaigns: int


def size_of(cells: Cells, confidence: float) -> Size:
    """The size of the highest likelihood, and its likelihood interval; the centres' prior is fitted, too."""
    some = telling(cells)
    told, best = likeliest(cells if len(some) == cells.campaigns else cells.some(some))
    top = evidence(told, best)[0]
    degrees = len(told.campaign) - told.campaigns
    reach = spread_reach(confidence, degrees, degrees)
    low, high = ends(lambda size: evidence(told, size)[0], best, top, (0.3, 0.3), (LEAST, MOST), reach)
    alike = 2 * (top - evidence(told, MOST)[0]) <= NO_SPREAD
    return Size(
        math.inf if alike else best,
        low,
        None if alike else high,
        told.overall,
        0.0 if alike else blur_of(told, best),
        told.worth,
        told.campaigns,
    )


def likeliest(cells: Cells) -> tuple[Cells, float]:
    """Cells with the likeliest prior of their centres, as far as there are enough campaigns, and the likeliest size.

    The reward rate of all pulls is only where the search starts: a policy pulls good arms more often, and long campaigns
    would be most of it. What is said is about a campaign, not about a pull.
    """
    best = best_size(cells, math.log(30.0))
    if cells.campaigns < FEW:
        for _ in range(2):
            cells = with_mean(cells, float(evidence(cells, best)[1].mean()))
            best = best_size(cells, best)
        return cells, best
    for _ in range(ROUNDS):
        before = cells
        cells = cells._replace(worth=best_worth(cells, best))
        cells = cells._replace(overall=best_mean(cells, best))
        best = best_size(cells, best)
        if abs(logit_of(cells.overall) - logit_of(before.overall)) < SETTLED:
            break
    return cells, best


def with_mean(cells: Cells, overall: float) -> Cells:
    """Cells with a weak prior for their centres, around this mean."""
    return cells._replace(overall=overall, worth=WEAK / min(overall, 1 - overall))


def best_mean(cells: Cells, size: float) -> float:
    """The likeliest mean of centres."""

    def likelihood(logit: float) -> float:
        return evidence(at_logit(cells, logit), size)[0]

    return 1 / (1 + math.exp(-peak(likelihood, logit_of(cells.overall), 0.1, -EDGE, EDGE, 1e-4)))


def at_logit(cells: Cells, logit: float) -> Cells:
    """Cells whose centres have a mean with this logit."""
    return cells._replace(overall=1 / (1 + math.exp(-logit)))


def logit_of(share: float) -> float:
    """The logit of a number between 0 and 1."""
    return math.log(share / (1 - share))


def blur_of(cells: Cells, size: float) -> float:
    """The standard error of the logarithm of the spread at the centres' mean, beyond what comes of the size alone.

    It moves by |1/2 - mean| of the mean's logit. The mean of few campaigns is as sure as their centres are alike.
    """
    slope = abs(0.5 - cells.overall)
    if cells.campaigns < FEW:
        centres = evidence(cells, size)[1]
        error = float(centres.std(ddof=1)) / math.sqrt(len(centres)) if len(centres) > 1 else 0.0
        return slope * error / (cells.overall * (1 - cells.overall))

    def height(numbers: Floats) -> float:
        size, worth, logit = numbers.tolist()
        return evidence(at_logit(cells, logit)._replace(worth=math.exp(worth)), size)[0]

    best = np.array([size, math.log(cells.worth), logit_of(cells.overall)])
    steps = np.array([0.1, 0.1, 0.05])
    ways = np.array([-0.5 / (1 + math.exp(-size)), 0.0, 0.5 - cells.overall])
    alone = error_matrix(lambda number: height(np.array([*number, *best[1:]])), best[:1], steps[:1])
    whole = ways @ error_matrix(height, best, steps) @ ways
    return math.sqrt(max(float(whole - ways[0] ** 2 * alone[0, 0]), 0.0))


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


def telling(cells: Cells) -> Integers:
    """Numbers of all campaigns, or of some chosen at random, always the same, among those that can tell how arms differ."""
    if len(cells.campaign) <= TELLING:
        return np.arange(cells.campaigns)
    widths = np.bincount(cells.campaign)
    several = np.flatnonzero(widths > 1)
    return np.sort(several[whole_campaigns(widths[several], TELLING, np.random.default_rng(20_211))])


def evidence(cells: Cells, size: float) -> tuple[float, Floats]:
    """The log likelihood of a size and the centres' prior, less what depends on neither, and the mean of each centre."""
    each, centres = evidences(cells, size)
    return float(each.sum()), centres


def evidences(cells: Cells, size: float) -> tuple[Floats, Floats]:
    """What each campaign adds to the log likelihood, and the mean of each centre given the cells."""
    each, mean, _ = moments(cells, size)
    return each, mean


def moments(cells: Cells, size: float) -> tuple[Floats, Floats, Floats]:
    """The same, and the mean square of each centre."""
    bounds = np.searchsorted(cells.campaign, np.arange(cells.campaigns + 1))
    pieces = np.unique([0, *np.flatnonzero(np.diff(bounds * NODES // PIECE)), cells.campaigns])
    found = []
    for first, last in pairwise(pieces):
        mine = slice(bounds[first], bounds[last])
        part = Cells(
            cells.campaign[mine] - first, cells.successes[mine], cells.failures[mine], cells.overall, cells.worth
        )
        found.append(_moments(part, size))
    each, mean, square = map(np.concatenate, zip(*found, strict=True))
    return each, mean, square


def _moments(cells: Cells, size: float) -> tuple[Floats, Floats, Floats]:
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
    common = np.bincount(cells.campaign, stirling_rise(np.array(amount), cells.successes + cells.failures))
    prior = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    mean, square = ((weights * good**power).sum(axis=1) / mass for power in (1, 2))
    return prior + top + np.log(mass * step) - common, mean, square


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
