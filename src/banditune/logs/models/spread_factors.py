"""Campaigns may differ in how much their arms differ: in some all arms are equal, in others one is far better.

The spread of a campaign is the common spread times a factor with mean 1. Either all factors are 1, or they have a gamma
law. How likely each law is follows from the logs. A campaign's own data then say which factors are likely for it.
"""

from __future__ import annotations

import math

import numpy as np

from banditune.core.arrays import FloatArray, IntArray
from banditune.logs.models.signed_spread import ArmSpreadModel

SPREAD_FACTORS = np.exp(np.concatenate([np.linspace(math.log(2e-3), 0, 15), np.linspace(0, math.log(10), 8)[1:]]))
"""The factors that are tried."""


NO_VARIATION = int(np.flatnonzero(SPREAD_FACTORS == 1)[0])
"""The place of the factor 1."""


FACTOR_SHAPES = (4.0, 2.0, 1.0, 0.5, 0.25)
"""Shapes of the gamma laws. The variance of a factor is 1 over the shape."""


SHAPE_WEIGHT = 0.05
"""The prior probability of each of these shapes; else all factors are 1."""


FACTOR_ROWS = 8
"""Factors that stand for the likely ones of a campaign, each as likely as the others."""


def make_factor_laws() -> FloatArray:
    """Probabilities of the factors (laws, factors): all are 1, then a gamma law of each shape. All means are 1."""
    rows = [np.eye(len(SPREAD_FACTORS))[NO_VARIATION]]
    for shape in FACTOR_SHAPES:
        low, high = 0.0, 10 * shape
        for _ in range(50):
            rate = (low + high) / 2
            weights = SPREAD_FACTORS**shape * np.exp(-rate * SPREAD_FACTORS)
            weights /= weights.sum()
            low, high = (rate, high) if weights @ SPREAD_FACTORS > 1 else (low, rate)
        rows.append(weights)
    return np.array(rows)


def compute_factor_likelihoods(arms: ArmSpreadModel, spread: float) -> FloatArray:
    """Likelihoods (campaigns, factors) of each factor, given the common spread; the highest of a campaign is 1."""
    logs = np.stack([arms.compute_campaign_likelihoods(spread * float(factor)) for factor in SPREAD_FACTORS], axis=1)
    return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)))


def fit_factor_law(arms: ArmSpreadModel) -> FloatArray:
    """The probabilities of the factors, averaged over how likely each law is. Without spread all factors are 1."""
    laws = make_factor_laws()
    if arms.spread.value <= 0:
        return np.asarray(laws[0])
    heights = np.log(compute_factor_likelihoods(arms, arms.spread.value) @ laws.T).sum(axis=0)
    prior = np.append(1 - SHAPE_WEIGHT * len(FACTOR_SHAPES), np.full(len(FACTOR_SHAPES), SHAPE_WEIGHT))
    weights = prior * np.exp(heights - heights.max())
    return np.asarray(weights @ laws / weights.sum())


def choose_campaign_factors(arms: ArmSpreadModel, spread: float, law: FloatArray) -> IntArray:
    """Choose places of factors (campaigns, rows) at quantiles of each campaign's posterior.

    The quantiles of successive campaigns are shifted, so that they cover all levels together.
    """
    count = len(arms.slopes)
    if law[NO_VARIATION] == 1:
        return np.full((count, 1), NO_VARIATION)
    posterior = compute_factor_likelihoods(arms, spread) * law
    below = np.cumsum(posterior / posterior.sum(axis=1, keepdims=True), axis=1)
    shift = np.arange(1, count + 1) * ((math.sqrt(5) - 1) / 2) % 1
    levels = (np.arange(FACTOR_ROWS) + shift[:, None]) / FACTOR_ROWS
    return np.asarray(np.minimum((below[:, None, :] < levels[:, :, None]).sum(axis=2), len(SPREAD_FACTORS) - 1))
