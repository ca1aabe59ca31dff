"""The spread of arms within campaigns, and the posteriors of arms around the centre of their campaign.

Differences between campaigns have no influence.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from banditune.core.arrays import FloatArray, IntArray
from banditune.logs.campaign_logs import Logs
from banditune.logs.models.hierarchical_beta import compute_evidence, estimate_concentration, make_beta_cells
from banditune.logs.models.likelihood_search import (
    NO_SPREAD_THRESHOLD,
    compute_spread_reach,
    find_interval_limits,
    find_peak,
)
from banditune.logs.models.normal_normal import NormalCells
from banditune.results.log_results import FittedParameter
from banditune.results.student_t import compute_student_quantile

WITHIN_CAMPAIGN_SD = "sd within campaigns"


class CellPosteriors(NamedTuple):
    """The two parameters of every cell's beta or normal distribution: prior and posterior.

    Further fields are the spread within campaigns and notes about it.
    """

    prior: FloatArray
    posterior: FloatArray
    spread: FittedParameter
    notes: tuple[str, ...]


def compute_beta_posteriors(
    campaign: IntArray, successes: FloatArray, failures: FloatArray, confidence: float
) -> CellPosteriors:
    """Compute beta posteriors around each campaign's centre (see `hierarchical_beta`).

    The spread is that of arms in a campaign with an average reward rate.
    """
    cells = make_beta_cells(campaign, successes, failures)
    size = estimate_concentration(cells, confidence)
    overall = size.centre_mean
    # Without a spread beyond chance, the upper limit of the spread is used; without such a limit, any value may be used.
    used = size.log_value if math.isfinite(size.log_value) else (0.0 if size.log_low is None else size.log_low)
    centre = compute_evidence(
        cells._replace(centre_mean=overall, centre_concentration=size.centre_concentration), used
    )[1][campaign]
    total = math.exp(used)

    def find_sd(log: float) -> float:
        return math.sqrt(overall * (1 - overall) / (1 + math.exp(log)))

    value = 0.0 if size.log_value == math.inf else find_sd(size.log_value)
    low = 0.0 if size.log_high is None else find_sd(size.log_high)
    high = find_sd(-math.inf if size.log_low is None else size.log_low)
    # The mean at which the spread is stated is uncertain, too.
    extra = compute_student_quantile(0.5 + confidence / 2, max(size.campaign_count - 1, 1)) * size.centre_uncertainty
    if low > 0:
        low = value * math.exp(-math.hypot(math.log(value / low), extra))
        high = min(value * math.exp(math.hypot(math.log(high / value), extra)), 0.5)
    spread = FittedParameter(name=WITHIN_CAMPAIGN_SD, value=value, low=low, high=high)
    notes = _note_equal_arms(confidence) if size.log_value == math.inf else ()
    if size.campaign_count < cells.campaign_count:
        note = (
            f"the spread within campaigns is estimated from {size.campaign_count:,} "
            f"campaign{'s' * (size.campaign_count != 1)}, chosen at random among those with two arms or more"
        )
        notes = (*notes, note)
    before = total * np.stack([centre, 1 - centre], axis=1)
    return CellPosteriors(before, before + np.stack([successes, failures], axis=1), spread, notes)


def _note_equal_arms(confidence: float) -> tuple[str, ...]:
    """Return a note on arms that do not differ."""
    return (
        "within campaigns arms do not differ beyond chance; the problem has the largest differences that the logs support "
        f"({100 * confidence:g}% limit)",
    )


def compute_normal_posteriors(logs: Logs, noise: float, confidence: float) -> CellPosteriors:
    """Compute normal posteriors around each campaign's centre, with the spread by restricted likelihood."""
    pulls = logs.pulls.astype(float)
    bounds = np.searchsorted(logs.campaign, np.arange(len(logs.campaigns) + 1))
    groups = [NormalCells(logs.mean[a:b], pulls[a:b]) for a, b in pairwise(bounds) if b - a > 1]

    def compute_likelihood(find_sd: float) -> float:
        return sum(cells.compute_restricted_likelihood(find_sd, noise) for cells in groups)

    # The error of the most precise arm is the smallest spread that can be detected.
    lowest = 1e-3 * noise / math.sqrt(float(pulls.max()))
    highest = 10 * (float(np.std(logs.mean)) + noise)
    span = math.log(lowest), math.log(highest)
    best = math.exp(find_peak(lambda log: compute_likelihood(math.exp(log)), math.log(noise), 0.5, *span))
    has_no_spread = 2 * (compute_likelihood(best) - compute_likelihood(0.0)) <= NO_SPREAD_THRESHOLD
    find_sd = 0.0 if has_no_spread else best
    degrees = int(sum(len(cells.mean) - 1 for cells in groups))
    step = 0.1 * (find_sd + noise / math.sqrt(float(np.median(pulls)) * degrees))
    reach = compute_spread_reach(confidence, degrees, degrees)
    low, high = find_interval_limits(
        compute_likelihood, find_sd, compute_likelihood(find_sd), (step, step), (0.0, 1e3 * highest), reach
    )
    spread = FittedParameter(
        name=WITHIN_CAMPAIGN_SD, value=find_sd, low=low or 0.0, high=math.inf if high is None else high
    )
    used = find_sd or (highest if high is None else high)
    weights = 1 / (used**2 + noise**2 / pulls)
    count = len(logs.campaigns)
    centre = np.bincount(logs.campaign, weights * logs.mean, count) / np.bincount(logs.campaign, weights, count)
    centre = centre[logs.campaign]
    weight = 1 / used**2 + pulls / noise**2
    mean = (centre / used**2 + logs.total / noise**2) / weight
    before = np.stack([centre, np.full(len(centre), used)], axis=1)
    after = np.stack([mean, 1 / np.sqrt(weight)], axis=1)
    return CellPosteriors(before, after, spread, _note_equal_arms(confidence) if has_no_spread else ())
