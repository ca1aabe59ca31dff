"""Weights the curves of a library by the likelihood of simulated regrets."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from banditune.core.arrays import FloatArray, IntArray
from banditune.tuners.curve_library import LEAST_FAILURE_SHARE, VARIANCE_POWER, CurveLibrary

PRIOR_SQUARES = 16.0
"""The squared cost of a prior failure, with which the variance is positive before the first failure."""


DISPERSION_SHARE = 0.75
"""The share of the estimated dispersion of failures that the search and its answer use.

With it, fewer runs are needed to outweigh the prior. Statements on the answer use the full dispersion, so they still hold.
"""


GOOD_DEVIATIONS, SMALL_COST_SHARE = 1.35, 0.06
"""Limits for good runs above `patience` times the level.

They are at most `GOOD_DEVIATIONS` times `patience` standard deviations of good runs above it, and below `SMALL_COST_SHARE`
of the cost of failures.
"""


LUCK_DEVIATIONS = 2.0
"""The largest regret of a good run above the level, in standard deviations of the reward noise."""


CURVE_ERROR = 0.03
"""The relative standard deviation of the mean of good runs from the best curve."""


LEAST_GOOD_LEVEL = 1e-3
"""The smallest level of good runs, as a share of that at the largest width."""


UNKNOWN_VARIANCE = 1e6
"""The variance of a mean of no runs."""


SPLIT_PASSES = 4
"""The number of iterations of the split into good and bad runs and of the curves, which depend on each other."""


PointMap = Callable[[Any], FloatArray]
"""Maps numbers of runs to points, or numbers of points to runs."""


class RunSplit(NamedTuple):
    """Good and bad runs: curves through the good ones, their level at every point and their dispersion.

    `good_runs`, `ordinary` and `excess` are sums by point, the excess in units of `failure_unit`. `squares` is the sum of
    squared excess.
    """

    good_weight: FloatArray
    height: FloatArray
    height_sd: FloatArray
    level: FloatArray
    dispersion: FloatArray
    failure_unit: FloatArray
    good_runs: FloatArray
    ordinary: FloatArray
    excess: FloatArray
    squares: FloatArray


class CurveFit(NamedTuple):
    """The posterior: weights of all curves, heights and their standard deviations, and the unit of failures.

    `length_weights` are weights of the lengths that the deviation may have. `centre` and `rotation` give the deviation for
    each length, see `estimate_deviation`.
    """

    good_weight: FloatArray
    height: FloatArray
    height_sd: FloatArray
    bad_weight: FloatArray
    failure_unit: FloatArray
    length_weights: FloatArray
    centre: FloatArray
    rotation: FloatArray
    runs: FloatArray
    mean: FloatArray
    variance: FloatArray


def fit_curves(library: CurveLibrary, at: IntArray, regrets: FloatArray) -> CurveFit:
    """Compute the weights of all curves from the runs so far. Run t was made at point `at[t]`, with regret `regrets[t]`."""
    by_point, at_runs = make_point_maps(at, len(library.points))
    runs = by_point(np.ones(at.shape))
    nonzero_runs = np.maximum(runs, 1)
    scale = estimate_scale(library, at, regrets)
    losses = regrets / scale
    split = split_runs(library, by_point, at_runs, losses, compute_patience(regrets.shape[1]))
    bad_weight, bad_level, bad_dispersion = weigh_bad_curves(library, runs, split.excess, split.squares)
    # The larger of two variances is used: if failures are rare, a point may have none, and the model may be wrong.
    expected = split.dispersion * split.level + bad_dispersion * split.failure_unit**2 * bad_level**VARIANCE_POWER
    # The relative residuals of ordinary regret from the curves, and their variances.
    has_good_runs = split.good_runs > 0
    residual = np.where(has_good_runs, split.ordinary / nonzero_runs / split.level - 1, 0)
    noise = np.where(
        has_good_runs, split.dispersion * split.good_runs / nonzero_runs**2 / split.level, UNKNOWN_VARIANCE
    )
    return CurveFit(
        split.good_weight,
        split.height * scale,
        split.height_sd * scale,
        bad_weight,
        split.failure_unit * scale,
        *estimate_deviation(library, residual, noise),
        runs,
        by_point(regrets) / nonzero_runs,
        scale**2 * np.maximum(expected, compute_point_variance(by_point, runs, losses)),
    )


def compute_patience(runs: int) -> float:
    """Compute the largest regret of a good run as a multiple of the level of good runs."""
    return max(3.0, 1 + 0.5 * math.log(runs))


def split_runs(
    library: CurveLibrary, by_point: PointMap, at_runs: PointMap, losses: FloatArray, patience: float
) -> RunSplit:
    """Split runs into good and bad ones. The split and the curves through good runs are computed in turn."""
    level = np.sqrt(library.points) * np.ones((len(losses), 1))  # a high first level
    dispersion = np.zeros((len(losses), 1))
    luck, share = estimate_luck(losses), compute_losing_share(losses)
    for _ in range(SPLIT_PASSES):
        is_good = losses <= at_runs(compute_good_limit(losses, at_runs, level, dispersion, luck, share, patience))
        count = by_point(is_good)
        mean = by_point(losses * is_good) / np.maximum(count, 1)
        # Their variance is assumed to be proportional to their mean, with a prior of a tenth of a run.
        squares = (((losses - at_runs(level)) * is_good) ** 2).sum(axis=1, keepdims=True)
        dispersion = (squares + 0.1) / ((count * level).sum(axis=1, keepdims=True) + 1)
        weight, height, spread = weigh_good_curves(library, count, mean, level, dispersion)
        level = np.maximum((weight * height) @ library.good, LEAST_GOOD_LEVEL)
    unit = (weight * height) @ library.good[:, -1:]
    at_level = at_runs(level)
    is_good = losses <= at_runs(compute_good_limit(losses, at_runs, level, dispersion, luck, share, patience))
    # The regret of a run is ordinary regret (for a failure the level) plus excess.
    ordinary = by_point(np.where(is_good, losses, at_level))
    excess = np.where(is_good, 0, (losses - at_level) / unit)
    squares = (excess**2).sum(axis=1, keepdims=True)
    return RunSplit(
        weight, height, spread, level, dispersion, unit, by_point(is_good), ordinary, by_point(excess), squares
    )


def estimate_luck(losses: FloatArray) -> FloatArray:
    """Estimate the reward noise in a run's regret, from realised regrets below 0. Expected regrets have none."""
    below = np.minimum(losses, 0)
    count = (below < 0).sum(axis=1, keepdims=True)
    return np.asarray(np.sqrt((below**2).sum(axis=1, keepdims=True) / np.maximum(count, 1)), np.float64)


def compute_losing_share(losses: FloatArray) -> FloatArray:
    """Compute the share of runs whose regret is not 0. If arms may be equal, many runs have regret 0."""
    return np.asarray(np.maximum((losses != 0).mean(axis=1, keepdims=True), 1 / losses.shape[1]), np.float64)


def compute_good_limit(
    losses: FloatArray,
    at_runs: PointMap,
    level: FloatArray,
    dispersion: FloatArray,
    luck: FloatArray,
    share: FloatArray,
    patience: float,
) -> FloatArray:
    """Compute the largest regret of a good run at every point: a few times the level of good runs.

    Good runs may vary more, for example on two nearly equal arms. Their tail is not a failure: it does not vanish with the
    width, and no curve fits both. So the regret of a good run may also be a few standard deviations above the level, if
    this is small compared with the cost of typical failures.
    """
    # Runs with regret 0 have no information on the limit, so the level of the other runs is used.
    base_limit = np.maximum(patience * level / share, level + LUCK_DEVIATIONS * luck)
    excess_losses = (losses - at_runs(level)) * (losses > at_runs(base_limit))
    cost = (excess_losses**2).sum(axis=1, keepdims=True) / np.maximum(
        excess_losses.sum(axis=1, keepdims=True), LEAST_FAILURE_SHARE
    )
    scattered = level + GOOD_DEVIATIONS * patience * np.sqrt(dispersion * level)
    return np.asarray(np.maximum(base_limit, np.minimum(SMALL_COST_SHARE * cost, scattered)), np.float64)


def compute_point_variance(by_point: PointMap, runs: FloatArray, losses: FloatArray) -> FloatArray:
    """Compute the variance of the runs at every point; 0 if there are fewer than two."""
    mean = by_point(losses) / np.maximum(runs, 1)
    return np.asarray(np.maximum(by_point(losses**2) - runs * mean**2, 0) / np.maximum(runs - 1, 1), np.float64)


def make_point_maps(at: IntArray, points: int) -> tuple[PointMap, PointMap]:
    """Make two functions: one sums numbers of runs by point, the other gives every run the number of its point."""
    searches = len(at)
    flat = at + points * np.arange(searches)[:, None]
    flat_points = flat.ravel()

    def by_point(numbers: Any) -> FloatArray:
        sums = np.bincount(flat_points, numbers.ravel(), searches * points)
        return np.asarray(sums, np.float64).reshape(searches, points)

    def at_runs(numbers: Any) -> FloatArray:
        return np.asarray(numbers.ravel().take(flat), np.float64)

    return by_point, at_runs


LARGE_LOSS_SHARE = 0.1
"""A regret is large if it is above this share of the mean at the same width."""


def estimate_scale(library: CurveLibrary, at: IntArray, regrets: FloatArray) -> FloatArray:
    """Estimate the regret of good runs at the largest width: the median of nonzero regrets at the largest width tried.

    If that is small, most instances have nearly equal arms. In this case the median of large regrets is used, so that the
    cost of exploring on the other instances is not mistaken for failures.
    """
    largest = at.max(axis=1, keepdims=True)
    is_largest = at == largest
    losses = np.abs(regrets)
    large_loss = (
        LARGE_LOSS_SHARE * (losses * is_largest).sum(axis=1, keepdims=True) / is_largest.sum(axis=1, keepdims=True)
    )
    middle = compute_masked_median(is_largest & (regrets != 0), regrets)
    middle = np.where(middle > large_loss, middle, compute_masked_median(is_largest & (losses > large_loss), regrets))
    typical = np.where(middle > 0, middle, losses.mean(axis=1, keepdims=True))
    scale: FloatArray = np.where(typical > 0, typical, 1) / np.sqrt(library.points[largest])
    return scale


def compute_masked_median(mask: Any, regrets: FloatArray) -> FloatArray:
    """Compute the median of some regrets of each search; 0 if there are none."""
    count = mask.sum(axis=1, keepdims=True)
    columns = mask.any(axis=0)
    columns[0] = True  # the lookup below needs at least one column
    ranked = np.sort(np.where(mask[:, columns], regrets[:, columns], np.inf), axis=1)
    middle = np.take_along_axis(ranked, np.hstack([(count - 1) // 2, count // 2]), 1).mean(axis=1, keepdims=True)
    return np.asarray(np.where(count > 0, middle, 0.0), np.float64)


def weigh_good_curves(
    library: CurveLibrary, count: FloatArray, mean: FloatArray, level: FloatArray, dispersion: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Compute weights, heights and standard deviations of the heights of the curves of good runs.

    Means are Gaussian around height x curve; the height has a flat prior and is integrated out in closed form.
    """
    precision = np.where(count > 0, 1 / (dispersion * level / np.maximum(count, 1) + (CURVE_ERROR * level) ** 2), 0)
    projection = (precision * mean) @ library.good.T
    square = precision @ library.good_squared.T
    height = np.maximum(projection / square, LEAST_GOOD_LEVEL)
    weight = normalize_log_weights(
        height * projection - height**2 * square / 2 - 0.5 * np.log(square) + library.good_prior
    )
    return weight, height, 1 / np.sqrt(square)


def weigh_bad_curves(
    library: CurveLibrary, runs: FloatArray, excess: FloatArray, squares: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Compute weights of the curves of failures, their mean curve and their dispersion.

    The quasi-likelihood has the variance dispersion x mean^`VARIANCE_POWER`. It uses only sums of costs, so it estimates
    means for any tail. For height x curve these sums are powers of the height times sums for the curve. So one matrix
    product per curve is enough, instead of one per pair.
    """
    heights = library.heights
    excess_sums, run_sums = excess @ library.bad_excess_terms.T, runs @ library.bad_run_terms.T
    likelihood = excess_sums[:, :, None] * heights ** (1 - VARIANCE_POWER) - run_sums[:, :, None] * heights ** (
        2 - VARIANCE_POWER
    )
    likelihood = likelihood.reshape(len(runs), -1)
    mean_excess = np.maximum.accumulate((excess / np.maximum(runs, 1))[:, ::-1], axis=1)[:, ::-1] + 0.02
    for _ in range(SPLIT_PASSES):
        dispersion = (squares + PRIOR_SQUARES) / ((runs * mean_excess**VARIANCE_POWER).sum(axis=1, keepdims=True) + 1)
        weight = normalize_log_weights(likelihood / (DISPERSION_SHARE * dispersion) + library.bad_prior)
        mean_excess = compute_expected_heights(library, weight) @ library.bad
    return weight, mean_excess, dispersion


def compute_expected_heights(library: CurveLibrary, bad_weight: FloatArray) -> FloatArray:
    """Compute for each (reach, decay) of failures its weight times its mean height."""
    return np.asarray(bad_weight.reshape(len(bad_weight), -1, len(library.heights)) @ library.heights, np.float64)


def estimate_deviation(
    library: CurveLibrary, residual: FloatArray, noise: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Compute the posterior of the deviation from residuals with these variances: for each length weight, centre, rotation.

    The deviation is then R rotation (centre + standard normals), with R the root of that length. Proof: before the runs it
    is R e with standard normals e. Residuals r are R e plus noise of variances N. Given them, e is normal with precision
    M = 1 + R' N^-1 R = L L' and the mean M^-1 R' N^-1 r. So e = L'^-1 (z + normals) with z = L^-1 R' N^-1 r. Up to a factor
    that is the same for all lengths, the density of r is exp(z' z / 2) / det L. (With too short a length, the curve fits
    noise. With too long a length, it misses bends that are sharper than those of the library.)
    """
    root = library.roots[:, library.point_indices]
    weighed = np.swapaxes(root / noise[:, None, :, None], 2, 3)
    lower = np.linalg.cholesky(np.eye(root.shape[2]) + weighed @ root)
    inverse = np.linalg.inv(lower)
    centre = (inverse @ (weighed @ residual[:, None, :, None]))[:, :, :, 0]
    size = np.log(np.diagonal(lower, axis1=2, axis2=3)).sum(axis=2)
    log_density = np.log(library.length_prior) + 0.5 * (centre**2).sum(axis=2) - size
    return normalize_log_weights(log_density), centre, np.swapaxes(inverse, 2, 3)


def normalize_log_weights(log_weights: FloatArray) -> FloatArray:
    """Normalise weights to the sum 1."""
    # A weight below e^-460 changes no sum, but denormal numbers slow products down.
    weights = np.exp(np.maximum(log_weights - log_weights.max(axis=1, keepdims=True), -460.0))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True), np.float64)
