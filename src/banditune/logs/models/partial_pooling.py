"""A beta prior for each arm's name, drawn towards that of all arms as far as the arm's own data leave it open.

Each arm has a centre. Its mean reward in a campaign is beta around this centre, with its own a + b. Centres are beta around
the mean of all arms (see `hierarchical_beta`, with campaigns in place of arms); the logarithms of a + b are normal. Both
laws are fitted to all arms together (empirical Bayes), so few data of an arm leave it near the others, and
many leave it where they are. An arm that pays 1 in 250 and was seen a hundred times says next to nothing by itself: the
likeliest prior of a single one may be Beta(0.0005, 0.147), which pays as often as nobody ever saw.

The prior of an arm in the problem holds all that is open about it: how its mean differs between campaigns, and how
unsure its centre is.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from banditune.core.arrays import FloatArray, IntArray
from banditune.logs.models.beta_binomial import MAX_LOG_CONCENTRATION, MIN_LOG_CONCENTRATION
from banditune.logs.models.hierarchical_beta import (
    MAX_CENTRE_CONCENTRATION,
    BetaCells,
    ConcentrationEstimate,
    compute_centre_moments,
    estimate_concentration,
    make_beta_cells,
)
from banditune.logs.models.likelihood_search import compute_normal_quantile
from banditune.results.log_results import FittedParameter

LOG_CONCENTRATION_REACH, LOG_CONCENTRATION_STEP, INTERPOLATION_PARTS = 6.0, 0.5, 10
"""Logarithms of a + b that an arm may have: so far from the common one on either side, in such steps.

What is computed there is interpolated to as many parts of a step.
"""


CONCENTRATION_SDS = (0.1, 0.15, 0.2, 0.3, 0.4, 0.55, 0.75, 1.0, 1.4, 2.0, 3.0)
"""Standard deviations of that logarithm among arms that are tried; with the first, all arms have nearly the same."""


class FittedPooledPriors(NamedTuple):
    """A row (a, b) for each arm, estimates of each arm's mean and of its sd between campaigns, and sentences."""

    table: FloatArray
    estimates: tuple[FittedParameter, ...]
    notes: tuple[str, ...]


class PooledArms(NamedTuple):
    """Of each arm: mean and variance of its centre given the data, its variance between campaigns, and the ends of that."""

    mean: FloatArray
    mean_variance: FloatArray
    campaign_variance: FloatArray
    variance_low: FloatArray
    variance_high: FloatArray


def fit_pooled_priors(
    arm: IntArray, names: tuple[str, ...], successes: FloatArray, failures: FloatArray, confidence: float
) -> FittedPooledPriors:
    """Priors of all arms; some arm must be in two cells."""
    order = np.argsort(arm, kind="stable")
    cells = make_beta_cells(arm[order], successes[order], failures[order])
    size = estimate_concentration(cells, confidence)
    cells = cells._replace(centre_mean=size.centre_mean, centre_concentration=size.centre_concentration)
    arms = _pool_arms(cells, size, confidence)
    variance = arms.campaign_variance + arms.mean_variance
    # A variance must leave room for a mean between 0 and 1.
    whole = np.maximum(arms.mean * (1 - arms.mean) / variance - 1, 1e-3)
    table = whole[:, None] * np.stack([arms.mean, 1 - arms.mean], axis=1)
    return FittedPooledPriors(
        table, tuple(_estimate_arm_parameters(arms, names, confidence)), _note_pooling(cells, size, arms, confidence)
    )


def _pool_arms(cells: BetaCells, size: ConcentrationEstimate, confidence: float) -> PooledArms:
    """What is known of every arm, over all a + b that it may have."""
    middle = min(
        max(size.log_value if math.isfinite(size.log_value) else (size.log_low or 0.0), MIN_LOG_CONCENTRATION),
        MAX_LOG_CONCENTRATION,
    )
    same = not math.isfinite(size.log_value)
    sizes = (
        np.array([middle])
        if same
        else np.arange(
            middle - LOG_CONCENTRATION_REACH,
            middle + LOG_CONCENTRATION_REACH + LOG_CONCENTRATION_STEP / 2,
            LOG_CONCENTRATION_STEP,
        )
    )
    each, mean, square = (
        np.stack(part, axis=1) for part in zip(*(compute_centre_moments(cells, s) for s in sizes), strict=True)
    )
    if not same:
        each, mean, square = map(_interpolate_cubic, (each, mean, square))
        sizes = _interpolate_cubic(sizes[None])[0]
    weights = _compute_concentration_weights(each, sizes)
    centre = (weights * mean).sum(axis=1)
    within = (mean - square) / (1 + np.exp(sizes))
    error = (weights * square).sum(axis=1) - centre**2
    return PooledArms(
        centre,
        np.maximum(error, 0.0),
        (weights * within).sum(axis=1),
        *_compute_variance_limits(weights, sizes, size, within),
    )


def _interpolate_cubic(values: FloatArray) -> FloatArray:
    """Values (arms, places) at places in between, on a cubic through the two places on either side."""
    last = values.shape[1] - 1
    place = np.arange(last * INTERPOLATION_PARTS + 1) / INTERPOLATION_PARTS
    first = np.clip(place.astype(np.int64) - 1, 0, last - 3)
    away = place - first
    found = np.zeros((len(values), len(place)))
    for one in range(4):
        others = [other for other in range(4) if other != one]
        weight = np.prod([(away - other) / (one - other) for other in others], axis=0)
        found += weight * values[:, first + one]
    return found


def _compute_concentration_weights(each: FloatArray, sizes: FloatArray) -> FloatArray:
    """How likely each size (arms, sizes) is, given each arm's log likelihood and the likeliest normal law of all."""
    scaled = np.exp(each - each.max(axis=1, keepdims=True))
    best, found = -math.inf, scaled
    for spread in CONCENTRATION_SDS:
        for centre in (
            np.arange(sizes[0], sizes[-1] + LOG_CONCENTRATION_STEP / 4, LOG_CONCENTRATION_STEP / 2)
            if len(sizes) > 1
            else sizes
        ):
            prior = np.exp(-0.5 * ((sizes - centre) / spread) ** 2)
            joint = scaled * (prior / prior.sum())
            height = float(np.log(np.maximum(joint.sum(axis=1), 1e-300)).sum())
            if height > best:
                best, found = height, joint
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def _compute_variance_limits(
    weights: FloatArray, sizes: FloatArray, size: ConcentrationEstimate, within: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The ends of each arm's variance between campaigns: by what its a + b may be, and by how unsure that of all is."""
    mean = weights @ sizes
    own = np.sqrt(np.maximum(weights @ sizes**2 - mean**2, 0.0))
    common = size.log_value if math.isfinite(size.log_value) else sizes[0]
    below = math.inf if size.log_low is None else common - size.log_low
    above = math.inf if size.log_high is None else size.log_high - common
    value = (weights * within).sum(axis=1)
    # A larger a + b is a smaller variance.
    low = value * np.exp(-np.hypot(2 * own, above))
    return low, value * np.exp(np.minimum(np.hypot(2 * own, below), 700.0))


def _estimate_arm_parameters(arms: PooledArms, names: tuple[str, ...], confidence: float) -> list[FittedParameter]:
    """The mean of every arm, its interval on the scale of logits, and its sd between campaigns."""
    reach = compute_normal_quantile(0.5 + confidence / 2) * np.sqrt(arms.mean_variance) / (arms.mean * (1 - arms.mean))
    logit = np.log(arms.mean / (1 - arms.mean))
    low, high = (1 / (1 + np.exp(-np.clip(logit + side * reach, -700, 700))) for side in (-1, 1))
    found = []
    for place, name in enumerate(names):
        found.append(
            FittedParameter(
                name=f"mean[{name}]", value=float(arms.mean[place]), low=float(low[place]), high=float(high[place])
            )
        )
        ends = (math.sqrt(arms.variance_low[place]), min(math.sqrt(arms.variance_high[place]), 0.5))
        sd = math.sqrt(arms.campaign_variance[place])
        found.append(FittedParameter(name=f"sd[{name}]", value=sd, low=ends[0], high=ends[1]))
    return found


def _note_pooling(
    cells: BetaCells, size: ConcentrationEstimate, arms: PooledArms, confidence: float
) -> tuple[str, ...]:
    """How far arms were drawn together, and where that is all the way."""
    before = cells.centre_mean * (1 - cells.centre_mean) / (cells.centre_concentration + 1)
    own = 1 - np.minimum(arms.mean_variance / before, 1.0)
    found = [
        "each arm's prior is drawn towards that of all arms, as far as its own data leave it open: these count for "
        f"{own.min():.0%} to {own.max():.0%} of what is known of its mean"
    ]
    if cells.centre_concentration > MAX_CENTRE_CONCENTRATION / 2:
        found = [
            "arms with the same name do not pay alike beyond chance: all priors are nearly the same, without per_arm too"
        ]
    if not math.isfinite(size.log_value):
        found.append(
            "arms do not differ between campaigns beyond chance; the problem lets them differ as much as the logs allow "
            f"({100 * confidence:g}% limit)"
        )
    return tuple(found)
