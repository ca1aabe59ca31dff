"""A beta prior for each arm's name, partially pooled with that of all arms.

Each arm has a centre. Its mean reward in a campaign is beta around this centre, with its own a + b. Centres are beta
around the mean of all arms (see `hierarchical_beta`, with campaigns in place of arms); the logarithms of a + b are
normal. Both distributions are fitted to all arms together (empirical Bayes). So the estimate for an arm with few data is
near that of the others, and that for an arm with many data is near its own mean. Separate fits would not work: a hundred
pulls of an arm with a reward rate of 1 in 250 have hardly any information, and the most likely prior may be
Beta(0.0005, 0.147), whose mean is far from that of any arm.

The prior of an arm in the problem has both kinds of uncertainty: the differences of its mean between campaigns, and the
error of its centre.
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
from banditune.logs.models.pooling_uncertainty import compute_centre_uncertainty
from banditune.results.log_results import FittedParameter

LOG_CONCENTRATION_REACH, LOG_CONCENTRATION_STEP, INTERPOLATION_PARTS = 6.0, 0.5, 10
"""The grid of the logarithm of an arm's a + b: its largest distance from the common one, its step, and its refinement.

Values on the grid are interpolated to this many parts of a step.
"""


CONCENTRATION_SDS = (0.1, 0.15, 0.2, 0.3, 0.4, 0.55, 0.75, 1.0, 1.4, 2.0, 3.0)
"""The grid of the standard deviation of this logarithm between arms. With the first one, all arms are nearly equal."""


class FittedPooledPriors(NamedTuple):
    """A row (a, b) for each arm, estimates of each arm's mean and of its sd between campaigns, and sentences."""

    table: FloatArray
    estimates: tuple[FittedParameter, ...]
    notes: tuple[str, ...]


class PooledArms(NamedTuple):
    """For each arm: mean and variance of its centre given the data, and its variance between campaigns with an interval."""

    mean: FloatArray
    mean_variance: FloatArray
    campaign_variance: FloatArray
    variance_low: FloatArray
    variance_high: FloatArray


def fit_pooled_priors(
    arm: IntArray, names: tuple[str, ...], successes: FloatArray, failures: FloatArray, confidence: float
) -> FittedPooledPriors:
    """Fit the priors of all arms. Some arm must be in two cells."""
    order = np.argsort(arm, kind="stable")
    cells = make_beta_cells(arm[order], successes[order], failures[order])
    size = estimate_concentration(cells, confidence)
    cells = cells._replace(centre_mean=size.centre_mean, centre_concentration=size.centre_concentration)
    arms = _pool_arms(cells, size, confidence)
    variance = arms.campaign_variance + arms.mean_variance
    # The variance must be possible for a mean between 0 and 1.
    totals = np.maximum(arms.mean * (1 - arms.mean) / variance - 1, 1e-3)
    table = totals[:, None] * np.stack([arms.mean, 1 - arms.mean], axis=1)
    middle = _choose_middle_concentration(size)
    uncertain = arms._replace(mean_variance=arms.mean_variance + compute_centre_uncertainty(cells, middle))
    return FittedPooledPriors(
        table,
        tuple(_estimate_arm_parameters(uncertain, names, confidence)),
        _note_pooling(cells, size, arms, confidence),
    )


def _choose_middle_concentration(size: ConcentrationEstimate) -> float:
    """Choose the common logarithm of a + b: the estimate, or its lower limit if arms do not differ between campaigns."""
    value = size.log_value if math.isfinite(size.log_value) else (size.log_low or 0.0)
    return min(max(value, MIN_LOG_CONCENTRATION), MAX_LOG_CONCENTRATION)


def _pool_arms(cells: BetaCells, size: ConcentrationEstimate, confidence: float) -> PooledArms:
    """Compute the posterior of every arm, over all a + b that it may have."""
    middle = _choose_middle_concentration(size)
    is_constant = not math.isfinite(size.log_value)
    sizes = (
        np.array([middle])
        if is_constant
        else np.arange(
            middle - LOG_CONCENTRATION_REACH,
            middle + LOG_CONCENTRATION_REACH + LOG_CONCENTRATION_STEP / 2,
            LOG_CONCENTRATION_STEP,
        )
    )
    evidence, mean, square = (
        np.stack(part, axis=1) for part in zip(*(compute_centre_moments(cells, s) for s in sizes), strict=True)
    )
    if not is_constant:
        evidence, mean, square = map(_interpolate_cubic, (evidence, mean, square))
        sizes = _interpolate_cubic(sizes[None])[0]
    weights = _compute_concentration_weights(evidence, sizes)
    centre = (weights * mean).sum(axis=1)
    campaign_variances = (mean - square) / (1 + np.exp(sizes))
    error = (weights * square).sum(axis=1) - centre**2
    return PooledArms(
        centre,
        np.maximum(error, 0.0),
        (weights * campaign_variances).sum(axis=1),
        *_compute_variance_limits(weights, sizes, size, campaign_variances),
    )


def _interpolate_cubic(values: FloatArray) -> FloatArray:
    """Interpolate values (arms, positions) between positions, by a cubic through two positions on either side."""
    last = values.shape[1] - 1
    positions = np.arange(last * INTERPOLATION_PARTS + 1) / INTERPOLATION_PARTS
    first = np.clip(positions.astype(np.int64) - 1, 0, last - 3)
    offsets = positions - first
    interpolated = np.zeros((len(values), len(positions)))
    for node in range(4):
        other_nodes = [other_node for other_node in range(4) if other_node != node]
        weight = np.prod([(offsets - other_node) / (node - other_node) for other_node in other_nodes], axis=0)
        interpolated += weight * values[:, first + node]
    return interpolated


def _compute_concentration_weights(evidence: FloatArray, sizes: FloatArray) -> FloatArray:
    """Compute posterior weights of sizes (arms, sizes), under the most likely normal distribution of all sizes."""
    scaled = np.exp(evidence - evidence.max(axis=1, keepdims=True))
    best, best_joint = -math.inf, scaled
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
                best, best_joint = height, joint
    return np.asarray(best_joint / best_joint.sum(axis=1, keepdims=True))


def _compute_variance_limits(
    weights: FloatArray, sizes: FloatArray, size: ConcentrationEstimate, campaign_variances: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Compute limits of each arm's variance between campaigns, from the errors of its a + b and of the common one."""
    mean = weights @ sizes
    own_sd = np.sqrt(np.maximum(weights @ sizes**2 - mean**2, 0.0))
    common_log = size.log_value if math.isfinite(size.log_value) else sizes[0]
    below = math.inf if size.log_low is None else common_log - size.log_low
    above = math.inf if size.log_high is None else size.log_high - common_log
    value = (weights * campaign_variances).sum(axis=1)
    # A larger a + b is a smaller variance.
    low = value * np.exp(-np.hypot(2 * own_sd, above))
    return low, value * np.exp(np.minimum(np.hypot(2 * own_sd, below), 700.0))


def _estimate_arm_parameters(arms: PooledArms, names: tuple[str, ...], confidence: float) -> list[FittedParameter]:
    """Estimate the mean of every arm, with an interval on the logit scale, and its sd between campaigns."""
    reach = compute_normal_quantile(0.5 + confidence / 2) * np.sqrt(arms.mean_variance) / (arms.mean * (1 - arms.mean))
    logit = np.log(arms.mean / (1 - arms.mean))
    low, high = (1 / (1 + np.exp(-np.clip(logit + side * reach, -700, 700))) for side in (-1, 1))
    parameters = []
    for number, name in enumerate(names):
        parameters.append(
            FittedParameter(
                name=f"mean[{name}]",
                value=float(arms.mean[number]),
                low=float(low[number]),
                high=float(high[number]),
            )
        )
        ends = (math.sqrt(arms.variance_low[number]), min(math.sqrt(arms.variance_high[number]), 0.5))
        sd = math.sqrt(arms.campaign_variance[number])
        parameters.append(FittedParameter(name=f"sd[{name}]", value=sd, low=ends[0], high=ends[1]))
    return parameters


def _note_pooling(
    cells: BetaCells, size: ConcentrationEstimate, arms: PooledArms, confidence: float
) -> tuple[str, ...]:
    """Return notes on how far arms were pooled."""
    before = cells.centre_mean * (1 - cells.centre_mean) / (cells.centre_concentration + 1)
    shares = 1 - np.minimum(arms.mean_variance / before, 1.0)
    notes = [
        "each arm's prior is pooled with that of all arms: an arm's own data have a weight of "
        f"{shares.min():.0%} to {shares.max():.0%} in its mean"
    ]
    if cells.centre_concentration > MAX_CENTRE_CONCENTRATION / 2:
        notes = [
            "arms with the same name are not more similar than other arms beyond chance: all priors are nearly equal, and "
            "per_arm is not needed"
        ]
    if not math.isfinite(size.log_value):
        notes.append(
            "arms do not differ between campaigns beyond chance; the problem has the largest differences that the logs "
            f"support ({100 * confidence:g}% limit)"
        )
    return tuple(notes)
