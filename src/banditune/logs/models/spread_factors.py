"""Factors of campaigns' spreads: in some campaigns all arms are equal, in others one is far better.

The spread of a campaign is the common spread times a factor with mean 1. Either all factors are 1, or they have a gamma
distribution, or all arms are equal in a share of the campaigns. The logs determine the posterior probability of each
distribution, and of each factor for each campaign.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np

from banditune.core.arrays import FloatArray, IntArray

SPREAD_FACTORS = np.concatenate([[1e-6], np.geomspace(2e-3, 1, 15), np.geomspace(1, 10, 8)[1:]])
"""The grid of factors. The first one is for equal arms."""


NO_VARIATION = int(np.flatnonzero(SPREAD_FACTORS == 1)[0])
"""The index of the factor 1."""


FACTOR_SHAPES = (4.0, 2.0, 1.0, 0.5, 0.25)
"""The shapes of the gamma distributions. The variance of a factor is 1 / shape."""


EQUAL_SHARES = (0.25, 0.5, 0.75)
"""The shares of campaigns with equal arms. The other campaigns have a factor near 1 / (1 - share)."""


LAW_WEIGHT = 0.05
"""The prior probability of each of these distributions. With the remaining probability all factors are 1."""


FACTOR_ROWS = 8
"""The number of factors that represent the posterior of a campaign, with equal weights."""


class SpreadLikelihood(Protocol):
    """A model of arms with the log likelihood of a spread, and its slope, for each campaign."""

    slopes: FloatArray

    def compute_campaign_likelihoods(self, spread: float) -> FloatArray:
        """Compute the contribution of each campaign to the log likelihood of a spread above 0."""


class FactorFit(NamedTuple):
    """The probabilities of the factors, averaged over the posterior of the laws, and the log likelihood of all laws."""

    law: FloatArray
    log_likelihood: float


def make_factor_laws() -> FloatArray:
    """Make the probabilities of the factors (laws, factors): all are 1, a gamma law per shape, or a share of equal arms."""
    rows = [np.eye(len(SPREAD_FACTORS))[NO_VARIATION]]
    for shape in FACTOR_SHAPES:
        low, high = 0.0, 10 * shape
        for _ in range(50):
            rate = (low + high) / 2
            weights = SPREAD_FACTORS**shape * np.exp(-rate * SPREAD_FACTORS)
            weights[0] = 0.0
            weights /= weights.sum()
            low, high = (rate, high) if weights @ SPREAD_FACTORS > 1 else (low, rate)
        rows.append(weights)
    for share in EQUAL_SHARES:
        row = np.zeros(len(SPREAD_FACTORS))
        place = int(np.abs(SPREAD_FACTORS - 1 / (1 - share)).argmin())
        # All laws have the mean 1.
        row[place] = (1 - SPREAD_FACTORS[0]) / (SPREAD_FACTORS[place] - SPREAD_FACTORS[0])
        row[0] = 1 - row[place]
        rows.append(row)
    return np.array(rows)


FACTOR_LAWS = make_factor_laws()
"""The probabilities of the factors under each law."""


def compute_factor_likelihoods(arms: SpreadLikelihood, spread: float) -> tuple[FloatArray, FloatArray]:
    """Compute likelihoods of factors (campaigns, factors) relative to the highest per campaign, and the logs of these."""
    logs = np.stack([arms.compute_campaign_likelihoods(spread * float(factor)) for factor in SPREAD_FACTORS], axis=1)
    top = logs.max(axis=1)
    return np.exp(logs - top[:, None]), top


def fit_factor_law(arms: SpreadLikelihood, spread: float) -> FactorFit:
    """Fit the distribution of the factors. Without spread all factors are 1, and the log likelihood is 0."""
    if spread <= 0:
        return FactorFit(FACTOR_LAWS[0], 0.0)
    likelihoods, top = compute_factor_likelihoods(arms, spread)
    heights = np.log(np.maximum(likelihoods @ FACTOR_LAWS.T, 1e-300)).sum(axis=0)
    count = len(FACTOR_LAWS) - 1
    weights = np.append(1 - LAW_WEIGHT * count, np.full(count, LAW_WEIGHT)) * np.exp(heights - heights.max())
    log_likelihood = float(top.sum() + heights.max() + math.log(weights.sum()))
    return FactorFit(np.asarray(weights @ FACTOR_LAWS / weights.sum()), log_likelihood)


def choose_campaign_factors(arms: SpreadLikelihood, spread: float, law: FloatArray) -> IntArray:
    """Choose places of factors (campaigns, rows) at quantiles of each campaign's posterior.

    The quantiles of successive campaigns are shifted, so that they cover all levels together.
    """
    count = len(arms.slopes)
    if law[NO_VARIATION] == 1:
        return np.full((count, 1), NO_VARIATION)
    posterior = compute_factor_likelihoods(arms, spread)[0] * law
    below = np.cumsum(posterior / posterior.sum(axis=1, keepdims=True), axis=1)
    shift = np.arange(1, count + 1) * ((math.sqrt(5) - 1) / 2) % 1
    levels = (np.arange(FACTOR_ROWS) + shift[:, None]) / FACTOR_ROWS
    return np.asarray(np.minimum((below[:, None, :] < levels[:, :, None]).sum(axis=2), len(SPREAD_FACTORS) - 1))
