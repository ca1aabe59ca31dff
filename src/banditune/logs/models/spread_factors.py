"""Campaigns may differ in how much their arms differ: in some all arms are equal, in others one is far better.

The spread of a campaign is the common spread times a factor with mean 1. Either all factors are 1, or they have a gamma
law, or all arms are equal in a share of the campaigns. How likely each law is follows from the logs. A campaign's own data
then say which factors are likely for it.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np

from banditune.core.arrays import FloatArray, IntArray

SPREAD_FACTORS = np.concatenate([[1e-6], np.geomspace(2e-3, 1, 15), np.geomspace(1, 10, 8)[1:]])
"""The factors that are tried. The first one stands for equal arms."""


NO_VARIATION = int(np.flatnonzero(SPREAD_FACTORS == 1)[0])
"""The place of the factor 1."""


FACTOR_SHAPES = (4.0, 2.0, 1.0, 0.5, 0.25)
"""Shapes of the gamma laws. The variance of a factor is 1 over the shape."""


EQUAL_SHARES = (0.25, 0.5, 0.75)
"""Shares of campaigns with equal arms. The others share a factor near 1 / (1 - share)."""


LAW_WEIGHT = 0.05
"""The prior probability of each of these laws; else all factors are 1."""


FACTOR_ROWS = 8
"""Factors that stand for the likely ones of a campaign, each as likely as the others."""


class SpreadLikelihood(Protocol):
    """A model of arms that says how likely a spread is for each campaign; it has a slope for each."""

    slopes: FloatArray

    def compute_campaign_likelihoods(self, spread: float) -> FloatArray:
        """Compute what each campaign adds to the log likelihood of a spread above 0."""


class FactorFit(NamedTuple):
    """The probabilities of the factors, averaged over how likely each law is, and the log likelihood over all laws."""

    law: FloatArray
    log_likelihood: float


def make_factor_laws() -> FloatArray:
    """Probabilities of the factors (laws, factors): all are 1, a gamma law of each shape, or a share of equal arms."""
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
"""The laws that are averaged."""


def compute_factor_likelihoods(arms: SpreadLikelihood, spread: float) -> tuple[FloatArray, FloatArray]:
    """Likelihoods (campaigns, factors) of each factor, given the common spread, over the highest; the logs of these."""
    logs = np.stack([arms.compute_campaign_likelihoods(spread * float(factor)) for factor in SPREAD_FACTORS], axis=1)
    top = logs.max(axis=1)
    return np.exp(logs - top[:, None]), top


def fit_factor_law(arms: SpreadLikelihood, spread: float) -> FactorFit:
    """Fit the law of the factors. Without spread all factors are 1, and the log likelihood is 0."""
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
