"""Whether arms differ within their campaigns beyond chance: a test without a prior."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.logs.campaign_logs import Logs, sample_campaigns
from banditune.logs.models.cell_summaries import count_successes, pool_cell_variances

SIMULATED_LOGS = 1999
"""So often logs of equal arms are drawn."""


MAX_TESTED_CELLS = 10_000
"""Of more arms of campaigns than that, so many are tested, in campaigns chosen at random."""


URN_LIMIT = 10**9
"""NumPy draws from urns with fewer balls than that."""


def compute_equal_arms_p(logs: Logs) -> float:
    """The p-value of "within campaigns all arms have the same mean", by Pearson's chi-square summed over campaigns.

    Of 0/1 rewards the successes of each campaign are dealt again among its pulls, which is exact where arms were not
    chosen by what they paid. Of other rewards the sum is compared with that of normal means, and the variance of a
    reward is estimated.
    """
    widths = logs.arm_counts
    if widths.sum() > MAX_TESTED_CELLS:
        logs = logs.select_campaigns(sample_campaigns(widths, MAX_TESTED_CELLS, np.random.default_rng(20_216)))
    rng = np.random.default_rng(20_217)
    seen, drawn = _redistribute_successes(logs, rng) if logs.rewards == "binary" else _simulate_normal_means(logs, rng)
    # Equal sums may differ by rounding.
    return float((1 + (drawn >= seen * (1 - 1e-9)).sum()) / (1 + SIMULATED_LOGS))


def _redistribute_successes(logs: Logs, rng: np.random.Generator) -> tuple[float, FloatArray]:
    """The sum of the logs, and those of logs in which each campaign's successes were dealt again."""
    seen, drawn = 0.0, np.zeros(SIMULATED_LOGS)
    for first, last in pairwise(np.searchsorted(logs.campaign, np.arange(len(logs.campaigns) + 1))):
        pulls, wins = logs.pulls[first:last], logs.total[first:last]
        decisions, paid = int(pulls.sum()), int(wins.sum())
        if not 0 < paid < decisions:
            continue
        if decisions < URN_LIMIT:
            table = rng.multivariate_hypergeometric(pulls, paid, SIMULATED_LOGS, method="marginals")
        else:
            table = rng.multinomial(paid, pulls / decisions, SIMULATED_LOGS)
        share = paid / decisions
        expected, scale = pulls * share, pulls * (share * (1 - share))
        seen += float(((wins - expected) ** 2 / scale).sum())
        drawn += ((table - expected) ** 2 / scale).sum(axis=1)
    return seen, drawn


def _simulate_normal_means(logs: Logs, rng: np.random.Generator) -> tuple[float, FloatArray]:
    """The sum of the logs, and those of normal means."""
    count = len(logs.campaigns)
    centre = np.bincount(logs.campaign, logs.total, count) / logs.decision_counts
    if logs.rewards == "real":
        inside = pool_cell_variances(logs)
        variance, degrees = np.full(count, inside.noise**2), inside.degrees
    else:
        v, _, _ = count_successes(logs, 0.95)
        variance, degrees = centre * (1 - centre) / (v + 1), math.inf
    apart = logs.pulls * (logs.mean - centre[logs.campaign]) ** 2 / np.maximum(variance, 1e-300)[logs.campaign]
    drawn = rng.chisquare(len(logs.pulls) - count, SIMULATED_LOGS)
    if math.isfinite(degrees):
        drawn *= degrees / rng.chisquare(degrees, SIMULATED_LOGS)
    return float(apart.sum()), drawn
