"""Binary rewards of campaigns: means of arms are beta around their campaign's centre, and the centres are integrated out.

All campaigns share the `size` a + b of these beta distributions. So arms around a centre m have the variance m (1 - m) /
(size + 1). Centres are integrated out, weighted by the likelihood of their campaign. So differences between campaigns
do not bias the estimate of the size. It would be too high if centres were estimated.
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
"""The number of nodes of the integral over a centre. They are evenly spaced logits, for which it converges fast."""


NODE_HALF_RANGE = 7.0
"""The distance of the outermost nodes, in standard deviations."""


MAX_CHUNK_NODES = 1_000_000
"""The largest number of nodes of cells in one chunk."""


MAX_INFORMATIVE_CELLS = 10_000
"""The largest number of cells from which the size is estimated. Campaigns are used as a whole."""


WEAK_PRIOR_SUCCESSES = 0.5
"""The information of a centre's prior if campaigns are few: half an outcome of the rarer kind, success or failure."""


MIN_CENTRE_CAMPAIGNS = 5
"""The fewest campaigns from which the spread of centres is estimated."""


MAX_CENTRE_ROUNDS, CENTRE_TOLERANCE = 8, 0.005
"""The largest number of rounds in which parameters are maximised in turn, and the change of the logit that ends them."""


MAX_CENTRE_CONCENTRATION = 1e7
"""The largest a + b of centres. With a larger one, all centres are equal."""


class BetaCells(NamedTuple):
    """Successes and failures of cells in the order of their campaign, and the centres' prior.

    Centres are beta around `centre_mean`, with a + b = `centre_concentration`.
    """

    campaign: IntArray
    successes: FloatArray
    failures: FloatArray
    centre_mean: float
    centre_concentration: float

    @property
    def campaign_count(self) -> int:
        """The number of campaigns."""
        return int(self.campaign[-1]) + 1

    def select_campaigns(self, campaigns: IntArray) -> BetaCells:
        """Select the cells of some campaigns."""
        mask = np.isin(self.campaign, campaigns)
        number = np.unique(self.campaign[mask], return_inverse=True)[1]
        return BetaCells(number, self.successes[mask], self.failures[mask], self.centre_mean, self.centre_concentration)


def make_beta_cells(campaign: IntArray, successes: FloatArray, failures: FloatArray) -> BetaCells:
    """Make cells with a weak prior for their centres, around the reward rate of all pulls."""
    overall = float(successes.sum() / (successes + failures).sum())
    return BetaCells(campaign, successes, failures, overall, WEAK_PRIOR_SUCCESSES / min(overall, 1 - overall))


class ConcentrationEstimate(NamedTuple):
    """The logarithm of a + b with the ends of its interval; infinite if arms do not differ. None means no end.

    The other fields are the prior of the centres, the part of the error of the spread's logarithm that is due to that
    prior, and the number of campaigns of the estimate.
    """

    log_value: float
    log_low: float | None
    log_high: float | None
    centre_mean: float
    centre_uncertainty: float
    centre_concentration: float
    campaign_count: int


def estimate_concentration(cells: BetaCells, confidence: float) -> ConcentrationEstimate:
    """Estimate the size by maximum likelihood, with a likelihood interval; the centres' prior is fitted, too."""
    sampled = sample_informative_campaigns(cells)
    fitted, best = fit_concentration_and_centres(
        cells if len(sampled) == cells.campaign_count else cells.select_campaigns(sampled)
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
    has_no_spread = 2 * (top - compute_evidence(fitted, MAX_LOG_CONCENTRATION)[0]) <= NO_SPREAD_THRESHOLD
    return ConcentrationEstimate(
        math.inf if has_no_spread else best,
        low,
        None if has_no_spread else high,
        fitted.centre_mean,
        0.0 if has_no_spread else _compute_centre_uncertainty(fitted, best),
        fitted.centre_concentration,
        fitted.campaign_count,
    )


def fit_concentration_and_centres(cells: BetaCells) -> tuple[BetaCells, float]:
    """Fit the prior of the centres, if there are enough campaigns, and the size.

    The search starts at the reward rate of all pulls. The estimate weights campaigns, not pulls. Weights by pulls would be
    biased, because a policy pulls good arms more often, and long campaigns would dominate.
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
    """Replace the prior of the centres by a weak one around this mean."""
    return cells._replace(centre_mean=overall, centre_concentration=WEAK_PRIOR_SUCCESSES / min(overall, 1 - overall))


def _maximize_centre_mean(cells: BetaCells, size: float) -> float:
    """Maximise the likelihood over the mean of centres."""

    def compute_likelihood(logit: float) -> float:
        return compute_evidence(replace_centre_logit(cells, logit), size)[0]

    return 1 / (
        1 + math.exp(-find_peak(compute_likelihood, compute_logit(cells.centre_mean), 0.1, -MAX_LOGIT, MAX_LOGIT, 1e-4))
    )


def replace_centre_logit(cells: BetaCells, logit: float) -> BetaCells:
    """Replace the mean of the centres by the one with this logit."""
    return cells._replace(centre_mean=1 / (1 + math.exp(-logit)))


def compute_logit(share: float) -> float:
    """Compute the logit of a number between 0 and 1."""
    return math.log(share / (1 - share))


def _compute_centre_uncertainty(cells: BetaCells, size: float) -> float:
    """Compute the standard error of the logarithm of the spread at the centres' mean, without the part due to the size.

    The logarithm changes by |1/2 - mean| per unit of the mean's logit. For few campaigns the error of the mean is that of
    the average of their centres.
    """
    slope = abs(0.5 - cells.centre_mean)
    if cells.campaign_count < MIN_CENTRE_CAMPAIGNS:
        centres = compute_evidence(cells, size)[1]
        error = float(centres.std(ddof=1)) / math.sqrt(len(centres)) if len(centres) > 1 else 0.0
        return slope * error / (cells.centre_mean * (1 - cells.centre_mean))

    def compute_height(numbers: FloatArray) -> float:
        size, log_concentration, logit = numbers.tolist()
        return compute_evidence(
            replace_centre_logit(cells, logit)._replace(centre_concentration=math.exp(log_concentration)), size
        )[0]

    best = np.array([size, math.log(cells.centre_concentration), compute_logit(cells.centre_mean)])
    steps = np.array([0.1, 0.1, 0.05])
    gradient = np.array([-0.5 / (1 + math.exp(-size)), 0.0, 0.5 - cells.centre_mean])
    size_error = compute_error_matrix(
        lambda number: compute_height(np.array([*number, *best[1:]])), best[:1], steps[:1]
    )
    total_variance = gradient @ compute_error_matrix(compute_height, best, steps) @ gradient
    return math.sqrt(max(float(total_variance - gradient[0] ** 2 * size_error[0, 0]), 0.0))


def _maximize_log_concentration(cells: BetaCells, start: float) -> float:
    """Maximise the likelihood over log(a + b) of arms around their centre."""
    return find_peak(
        lambda size: compute_evidence(cells, size)[0], start, 0.5, MIN_LOG_CONCENTRATION, MAX_LOG_CONCENTRATION, 1e-3
    )


def _maximize_centre_concentration(cells: BetaCells, size: float) -> float:
    """Maximise the likelihood over a + b of centres around their mean."""

    def compute_likelihood(log: float) -> float:
        return compute_evidence(cells._replace(centre_concentration=math.exp(log)), size)[0]

    # A prior with the information of a twentieth of a success has no influence.
    smallest = 0.1 * WEAK_PRIOR_SUCCESSES / min(cells.centre_mean, 1 - cells.centre_mean)
    return math.exp(
        find_peak(
            compute_likelihood,
            math.log(cells.centre_concentration),
            0.5,
            math.log(smallest),
            math.log(MAX_CENTRE_CONCENTRATION),
            1e-2,
        )
    )


def sample_informative_campaigns(cells: BetaCells) -> IntArray:
    """Select all campaigns, or a fixed random sample of those with information on how arms differ."""
    if len(cells.campaign) <= MAX_INFORMATIVE_CELLS:
        return np.arange(cells.campaign_count)
    widths = np.bincount(cells.campaign)
    comparable = np.flatnonzero(widths > 1)
    return np.sort(
        comparable[sample_campaigns(widths[comparable], MAX_INFORMATIVE_CELLS, np.random.default_rng(20_211))]
    )


def compute_evidence(cells: BetaCells, size: float) -> tuple[float, FloatArray]:
    """Compute the log likelihood of a size and the centres' prior, up to a constant, and the mean of each centre."""
    evidence, centres = compute_campaign_evidence(cells, size)
    return float(evidence.sum()), centres


def compute_campaign_evidence(cells: BetaCells, size: float) -> tuple[FloatArray, FloatArray]:
    """Compute each campaign's part of the log likelihood, and the mean of its centre given the cells."""
    evidence, mean, _ = compute_centre_moments(cells, size)
    return evidence, mean


def compute_centre_moments(cells: BetaCells, size: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Compute the same, and the mean square of each centre."""
    bounds = np.searchsorted(cells.campaign, np.arange(cells.campaign_count + 1))
    pieces = np.unique([0, *np.flatnonzero(np.diff(bounds * CENTRE_NODES // MAX_CHUNK_NODES)), cells.campaign_count])
    parts = []
    for first, last in pairwise(pieces):
        part_cells = slice(bounds[first], bounds[last])
        part = BetaCells(
            cells.campaign[part_cells] - first,
            cells.successes[part_cells],
            cells.failures[part_cells],
            cells.centre_mean,
            cells.centre_concentration,
        )
        parts.append(_compute_chunk_moments(part, size))
    evidence, mean, square = map(np.concatenate, zip(*parts, strict=True))
    return evidence, mean, square


def _compute_chunk_moments(cells: BetaCells, size: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    amount = math.exp(size)
    a, b = cells.centre_concentration * cells.centre_mean, cells.centre_concentration * (1 - cells.centre_mean)
    logits, step = _place_nodes(cells, amount, a, b)
    rate, failure_rate = 1 / (1 + np.exp(-logits)), 1 / (1 + np.exp(logits))
    heights = a * np.log(rate) + b * np.log(failure_rate)
    for share, counts in ((rate, cells.successes), (failure_rate, cells.failures)):
        nonzero = counts > 0
        campaign = cells.campaign[nonzero]
        np.add.at(
            heights, campaign, compute_log_pochhammer_stirling(amount * share[campaign], counts[nonzero][:, None])
        )
    top = heights.max(axis=1)
    weights = np.exp(heights - top[:, None])
    for end, prior_count, counts in ((0, a, cells.successes), (-1, b, cells.failures)):
        # Beyond the last node the integrand falls exponentially. Each arm that is not at the edge adds 1 to the rate.
        falloff = prior_count + np.bincount(cells.campaign, counts > 0)
        weights[:, end] *= 0.5 + 1 / (falloff * step)
    mass = weights.sum(axis=1)
    normalizer = np.bincount(
        cells.campaign, compute_log_pochhammer_stirling(np.array(amount), cells.successes + cells.failures)
    )
    prior = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    mean, square = ((weights * rate**power).sum(axis=1) / mass for power in (1, 2))
    return prior + top + np.log(mass * step) - normalizer, mean, square


def _place_nodes(cells: BetaCells, amount: float, a: float, b: float) -> tuple[FloatArray, FloatArray]:
    """Compute logits (campaigns, nodes) that cover each centre's posterior except for its tails, and their distance.

    The information of a pull on the centre falls with the pulls of its arm. An arm has at least that of one pull.
    """
    weight = (amount + 1) / (amount + cells.successes + cells.failures)
    known_a, known_b = (
        prior_count + np.bincount(cells.campaign, np.maximum(weight * counts, counts > 0))
        for prior_count, counts in ((a, cells.successes), (b, cells.failures))
    )
    half = NODE_HALF_RANGE * np.sqrt(1 / known_a + 1 / known_b)
    step = 2 * half / (CENTRE_NODES - 1)
    low = np.log(known_a / known_b) - half
    return low[:, None] + step[:, None] * np.arange(CENTRE_NODES), step
