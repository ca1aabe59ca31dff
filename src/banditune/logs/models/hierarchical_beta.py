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

from banditune.core.arrays import FloatArray, IntArray
from banditune.logs.campaign_logs import sample_campaigns
from banditune.logs.models.beta_binomial import (
    MAX_LOG_CONCENTRATION,
    MAX_LOGIT,
    MIN_LOG_CONCENTRATION,
    compute_log_pochhammer_stirling,
)
from banditune.logs.models.likelihood_search import (
    NO_SPREAD_THRESHOLD,
    compute_error_matrix,
    compute_spread_reach,
    find_interval_limits,
    find_peak,
)

CENTRE_NODES = 36
"""Places on a campaign's line of centres: evenly spaced in the logit, where such integrals converge fastest."""


NODE_HALF_RANGE = 7.0
"""They lie within so many standard deviations."""


MAX_CHUNK_NODES = 1_000_000
"""So many numbers, nodes of cells, are worked on at once."""


MAX_INFORMATIVE_CELLS = 10_000
"""Of more cells than that, so many of whole campaigns tell the size."""


WEAK_PRIOR_SUCCESSES = 0.5
"""What is known of a centre where campaigns are few: as much as half a success (or failure, if those are rarer) tells."""


MIN_CENTRE_CAMPAIGNS = 5
"""Of fewer campaigns than that nobody can say how much they differ."""


MAX_CENTRE_ROUNDS, CENTRE_TOLERANCE = 8, 0.005
"""Numbers are looked for in turn, at most so often, until the logit of the centres' mean moves by less."""


MAX_CENTRE_CONCENTRATION = 1e7
"""Centres with a prior of so many pulls are all the same."""


class BetaCells(NamedTuple):
    """Successes and failures of cells that stand in order of their campaign, and the centres' prior.

    Centres are beta around their mean, `overall`, with a + b = `worth`.
    """

    campaign: IntArray
    successes: FloatArray
    failures: FloatArray
    centre_mean: float
    centre_concentration: float

    @property
    def campaign_count(self) -> int:
        """How many campaigns there are."""
        return int(self.campaign[-1]) + 1

    def select_campaigns(self, campaigns: IntArray) -> BetaCells:
        """The cells of some campaigns."""
        kept = np.isin(self.campaign, campaigns)
        number = np.unique(self.campaign[kept], return_inverse=True)[1]
        return BetaCells(number, self.successes[kept], self.failures[kept], self.centre_mean, self.centre_concentration)


def make_beta_cells(campaign: IntArray, successes: FloatArray, failures: FloatArray) -> BetaCells:
    """Cells with a weak prior for their centres, around the reward rate of all pulls."""
    overall = float(successes.sum() / (successes + failures).sum())
    return BetaCells(campaign, successes, failures, overall, WEAK_PRIOR_SUCCESSES / min(overall, 1 - overall))


class ConcentrationEstimate(NamedTuple):
    """The logarithm of a + b with the ends of its interval (None: there is none), infinite where arms do not differ.

    And what it was found with: the mean of centres, what not knowing it and their prior adds to the error of the spread's
    logarithm, the worth of their prior, and how many campaigns it was estimated from.
    """

    log_value: float
    log_low: float | None
    log_high: float | None
    centre_mean: float
    centre_uncertainty: float
    centre_concentration: float
    campaign_count: int


def estimate_concentration(cells: BetaCells, confidence: float) -> ConcentrationEstimate:
    """The size of the highest likelihood, and its likelihood interval; the centres' prior is fitted, too."""
    some = sample_informative_campaigns(cells)
    fitted, best = fit_concentration_and_centres(
        cells if len(some) == cells.campaign_count else cells.select_campaigns(some)
    )
    top = compute_evidence(fitted, best)[0]
    degrees = len(fitted.campaign) - fitted.campaign_count
    reach = compute_spread_reach(confidence, degrees, degrees)
    low, high = find_interval_limits(
        lambda size: compute_evidence(fitted, size)[0],
        best,
        top,
        (0.3, 0.3),
        (MIN_LOG_CONCENTRATION, MAX_LOG_CONCENTRATION),
        reach,
    )
    alike = 2 * (top - compute_evidence(fitted, MAX_LOG_CONCENTRATION)[0]) <= NO_SPREAD_THRESHOLD
    return ConcentrationEstimate(
        math.inf if alike else best,
        low,
        None if alike else high,
        fitted.centre_mean,
        0.0 if alike else _compute_centre_uncertainty(fitted, best),
        fitted.centre_concentration,
        fitted.campaign_count,
    )


def fit_concentration_and_centres(cells: BetaCells) -> tuple[BetaCells, float]:
    """Cells with the likeliest prior of their centres, as far as there are enough campaigns, and the likeliest size.

    The reward rate of all pulls is only where the search starts: a policy pulls good arms more often, and long campaigns
    would be most of it. What is said is about a campaign, not about a pull.
    """
    best = _maximize_log_concentration(cells, math.log(30.0))
    if cells.campaign_count < MIN_CENTRE_CAMPAIGNS:
        for _ in range(2):
            cells = _replace_centre_mean(cells, float(compute_evidence(cells, best)[1].mean()))
            best = _maximize_log_concentration(cells, best)
        return cells, best
    for _ in range(MAX_CENTRE_ROUNDS):
        before = cells
        cells = cells._replace(centre_concentration=_maximize_centre_concentration(cells, best))
        cells = cells._replace(centre_mean=_maximize_centre_mean(cells, best))
        best = _maximize_log_concentration(cells, best)
        if abs(compute_logit(cells.centre_mean) - compute_logit(before.centre_mean)) < CENTRE_TOLERANCE:
            break
    return cells, best


def _replace_centre_mean(cells: BetaCells, overall: float) -> BetaCells:
    """Cells with a weak prior for their centres, around this mean."""
    return cells._replace(centre_mean=overall, centre_concentration=WEAK_PRIOR_SUCCESSES / min(overall, 1 - overall))


def _maximize_centre_mean(cells: BetaCells, size: float) -> float:
    """The likeliest mean of centres."""

    def likelihood(logit: float) -> float:
        return compute_evidence(replace_centre_logit(cells, logit), size)[0]

    return 1 / (
        1 + math.exp(-find_peak(likelihood, compute_logit(cells.centre_mean), 0.1, -MAX_LOGIT, MAX_LOGIT, 1e-4))
    )


def replace_centre_logit(cells: BetaCells, logit: float) -> BetaCells:
    """Cells whose centres have a mean with this logit."""
    return cells._replace(centre_mean=1 / (1 + math.exp(-logit)))


def compute_logit(share: float) -> float:
    """The logit of a number between 0 and 1."""
    return math.log(share / (1 - share))


def _compute_centre_uncertainty(cells: BetaCells, size: float) -> float:
    """The standard error of the logarithm of the spread at the centres' mean, beyond what comes of the size alone.

    It moves by |1/2 - mean| of the mean's logit. The mean of few campaigns is as sure as their centres are alike.
    """
    slope = abs(0.5 - cells.centre_mean)
    if cells.campaign_count < MIN_CENTRE_CAMPAIGNS:
        centres = compute_evidence(cells, size)[1]
        error = float(centres.std(ddof=1)) / math.sqrt(len(centres)) if len(centres) > 1 else 0.0
        return slope * error / (cells.centre_mean * (1 - cells.centre_mean))

    def height(numbers: FloatArray) -> float:
        size, worth, logit = numbers.tolist()
        return compute_evidence(
            replace_centre_logit(cells, logit)._replace(centre_concentration=math.exp(worth)), size
        )[0]

    best = np.array([size, math.log(cells.centre_concentration), compute_logit(cells.centre_mean)])
    steps = np.array([0.1, 0.1, 0.05])
    ways = np.array([-0.5 / (1 + math.exp(-size)), 0.0, 0.5 - cells.centre_mean])
    alone = compute_error_matrix(lambda number: height(np.array([*number, *best[1:]])), best[:1], steps[:1])
    whole = ways @ compute_error_matrix(height, best, steps) @ ways
    return math.sqrt(max(float(whole - ways[0] ** 2 * alone[0, 0]), 0.0))


def _maximize_log_concentration(cells: BetaCells, start: float) -> float:
    """The likeliest logarithm of a + b of arms around their centre."""
    return find_peak(
        lambda size: compute_evidence(cells, size)[0], start, 0.5, MIN_LOG_CONCENTRATION, MAX_LOG_CONCENTRATION, 1e-3
    )


def _maximize_centre_concentration(cells: BetaCells, size: float) -> float:
    """The likeliest a + b of centres around the mean of all."""

    def likelihood(log: float) -> float:
        return compute_evidence(cells._replace(centre_concentration=math.exp(log)), size)[0]

    # A twentieth of a success is nothing.
    least = 0.1 * WEAK_PRIOR_SUCCESSES / min(cells.centre_mean, 1 - cells.centre_mean)
    return math.exp(
        find_peak(
            likelihood,
            math.log(cells.centre_concentration),
            0.5,
            math.log(least),
            math.log(MAX_CENTRE_CONCENTRATION),
            1e-2,
        )
    )


def sample_informative_campaigns(cells: BetaCells) -> IntArray:
    """Numbers of all campaigns, or of some chosen at random, always the same, among those that can tell how arms differ."""
    if len(cells.campaign) <= MAX_INFORMATIVE_CELLS:
        return np.arange(cells.campaign_count)
    widths = np.bincount(cells.campaign)
    several = np.flatnonzero(widths > 1)
    return np.sort(several[sample_campaigns(widths[several], MAX_INFORMATIVE_CELLS, np.random.default_rng(20_211))])


def compute_evidence(cells: BetaCells, size: float) -> tuple[float, FloatArray]:
    """The log likelihood of a size and the centres' prior, less what depends on neither, and the mean of each centre."""
    each, centres = compute_campaign_evidence(cells, size)
    return float(each.sum()), centres


def compute_campaign_evidence(cells: BetaCells, size: float) -> tuple[FloatArray, FloatArray]:
    """What each campaign adds to the log likelihood, and the mean of each centre given the cells."""
    each, mean, _ = compute_centre_moments(cells, size)
    return each, mean


def compute_centre_moments(cells: BetaCells, size: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The same, and the mean square of each centre."""
    bounds = np.searchsorted(cells.campaign, np.arange(cells.campaign_count + 1))
    pieces = np.unique([0, *np.flatnonzero(np.diff(bounds * CENTRE_NODES // MAX_CHUNK_NODES)), cells.campaign_count])
    found = []
    for first, last in pairwise(pieces):
        mine = slice(bounds[first], bounds[last])
        part = BetaCells(
            cells.campaign[mine] - first,
            cells.successes[mine],
            cells.failures[mine],
            cells.centre_mean,
            cells.centre_concentration,
        )
        found.append(_compute_chunk_moments(part, size))
    each, mean, square = map(np.concatenate, zip(*found, strict=True))
    return each, mean, square


def _compute_chunk_moments(cells: BetaCells, size: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    amount = math.exp(size)
    a, b = cells.centre_concentration * cells.centre_mean, cells.centre_concentration * (1 - cells.centre_mean)
    logits, step = _place_nodes(cells, amount, a, b)
    good, bad = 1 / (1 + np.exp(-logits)), 1 / (1 + np.exp(logits))
    heights = a * np.log(good) + b * np.log(bad)
    for share, counts in ((good, cells.successes), (bad, cells.failures)):
        some = counts > 0
        mine = cells.campaign[some]
        np.add.at(heights, mine, compute_log_pochhammer_stirling(amount * share[mine], counts[some][:, None]))
    top = heights.max(axis=1)
    weights = np.exp(heights - top[:, None])
    for end, worth, counts in ((0, a, cells.successes), (-1, b, cells.failures)):
        # Beyond the last node the curve falls exponentially, with one more rate for each arm that is not at the edge.
        rate = worth + np.bincount(cells.campaign, counts > 0)
        weights[:, end] *= 0.5 + 1 / (rate * step)
    mass = weights.sum(axis=1)
    common = np.bincount(
        cells.campaign, compute_log_pochhammer_stirling(np.array(amount), cells.successes + cells.failures)
    )
    prior = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    mean, square = ((weights * good**power).sum(axis=1) / mass for power in (1, 2))
    return prior + top + np.log(mass * step) - common, mean, square


def _place_nodes(cells: BetaCells, amount: float, a: float, b: float) -> tuple[FloatArray, FloatArray]:
    """Logits (campaigns, nodes) that cover each centre's posterior but for its tails, and their distance.

    A pull tells the less about the centre the more pulls its arm had, but an arm tells as much as one pull.
    """
    weight = (amount + 1) / (amount + cells.successes + cells.failures)
    known_a, known_b = (
        worth + np.bincount(cells.campaign, np.maximum(weight * counts, counts > 0))
        for worth, counts in ((a, cells.successes), (b, cells.failures))
    )
    half = NODE_HALF_RANGE * np.sqrt(1 / known_a + 1 / known_b)
    step = 2 * half / (CENTRE_NODES - 1)
    low = np.log(known_a / known_b) - half
    return low[:, None] + step[:, None] * np.arange(CENTRE_NODES), step
