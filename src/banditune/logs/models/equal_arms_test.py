"""A test of whether arms differ within their campaigns beyond chance. It needs no prior."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.logs.campaign_logs import Logs, sample_campaigns
from banditune.logs.models.cell_summaries import count_successes, pool_cell_variances

SIMULATED_LOGS = 1999
"""The number of simulated logs with equal arms."""


MAX_TESTED_CELLS = 10_000
"""The largest number of arms of campaigns that are tested; of more, campaigns are chosen at random."""


URN_LIMIT = 10**9
"""The largest number of balls in an urn from which NumPy draws."""


def compute_equal_arms_p(logs: Logs) -> float:
    """Compute the p-value of equal means within campaigns, by Pearson's chi-square summed over campaigns.

    For 0/1 rewards, the successes of each campaign are redistributed among its pulls. That is exact if arms were not
    chosen by their rewards. For other rewards, the sum is compared with that of normal means, with an estimated variance of
    a reward.
    """
    widths = logs.arm_counts
    if widths.sum() > MAX_TESTED_CELLS:
        logs = logs.select_campaigns(sample_campaigns(widths, MAX_TESTED_CELLS, np.random.default_rng(20_216)))
    rng = np.random.default_rng(20_217)
    observed, simulated = (
        _redistribute_successes(logs, rng) if logs.rewards == "binary" else _simulate_normal_means(logs, rng)
    )
    # Rounding errors must not distinguish equal sums.
    return float((1 + (simulated >= observed * (1 - 1e-9)).sum()) / (1 + SIMULATED_LOGS))


def _redistribute_successes(logs: Logs, rng: np.random.Generator) -> tuple[float, FloatArray]:
    """Compute the sum for the logs, and for logs in which the successes of each campaign are redistributed."""
    observed, simulated = 0.0, np.zeros(SIMULATED_LOGS)
    for first, last in pairwise(np.searchsorted(logs.campaign, np.arange(len(logs.campaigns) + 1))):
        pulls, wins = logs.pulls[first:last], logs.total[first:last]
        decisions, successes = int(pulls.sum()), int(wins.sum())
        if not 0 < successes < decisions:
            continue
        if decisions < URN_LIMIT:
            table = rng.multivariate_hypergeometric(pulls, successes, SIMULATED_LOGS, method="marginals")
        else:
            table = rng.multinomial(successes, pulls / decisions, SIMULATED_LOGS)
        share = successes / decisions
        expected, scale = pulls * share, pulls * (share * (1 - share))
        observed += float(((wins - expected) ** 2 / scale).sum())
        simulated += ((table - expected) ** 2 / scale).sum(axis=1)
    return observed, simulated


def _simulate_normal_means(logs: Logs, rng: np.random.Generator) -> tuple[float, FloatArray]:
    """Compute the sum for the logs, and for normal means."""
    count = len(logs.campaigns)
    centre = np.bincount(logs.campaign, logs.total, count) / logs.decision_counts
    if logs.rewards == "real":
        pooled = pool_cell_variances(logs)
        variance, degrees = np.full(count, pooled.noise**2), pooled.degrees
    else:
        v, _, _ = count_successes(logs, 0.95)
        variance, degrees = centre * (1 - centre) / (v + 1), math.inf
    deviations = logs.pulls * (logs.mean - centre[logs.campaign]) ** 2 / np.maximum(variance, 1e-300)[logs.campaign]
    simulated = rng.chisquare(len(logs.pulls) - count, SIMULATED_LOGS)
    if math.isfinite(degrees):
        simulated *= degrees / rng.chisquare(degrees, SIMULATED_LOGS)
    return float(deviations.sum()), simulated
