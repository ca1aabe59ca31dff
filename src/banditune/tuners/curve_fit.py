"""Weighs the curves of a library by how well they explain simulated regrets."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from banditune.core.arrays import FloatArray, IntArray
from banditune.tuners.curve_library import LEAST_FAILURE_SHARE, VARIANCE_POWER, CurveLibrary

PRIOR_SQUARES = 16.0
"""Squared units of one failure that is taken for granted: the variance is sane before the first one is seen."""


DISPERSION_SHARE = 0.75
"""A search, and its answer, take the dispersion of failures to be so much of its estimate; what is said of the answer takes
all of it. So the runs are heard sooner against what was believed before the first, and what is said still holds.
"""


GOOD_DEVIATIONS, SMALL_COST_SHARE = 1.35, 0.06
"""Which runs above `patience` times the level are good all the same: they are no further above it than `GOOD_DEVIATIONS` times
`patience` standard deviations of good runs, and small: below this share of what failures cost.
"""


LUCK_DEVIATIONS = 2.0
"""A run is good whose regret is no further above the level than so many standard deviations of luck alone."""


CURVE_ERROR = 0.03
"""How far the mean of good runs may be from every curve, as a share."""


LEAST_GOOD_LEVEL = 1e-3
"""Good runs lose no less than this share of the largest."""


UNKNOWN_VARIANCE = 1e6
"""The variance of a mean of no runs."""


SPLIT_PASSES = 4
"""The split into good and bad runs and the curves depend on each other; so often each is renewed."""


PointMap = Callable[[Any], FloatArray]
"""Takes numbers of runs to points, or of points to runs."""


class RunSplit(NamedTuple):
    """Good runs and bad ones: curves through the good ones, their level at every point and how far they scatter.

    By point, `good_runs`, sums of what is `ordinary` and of the `excess` in units of `unit`; `squares` of all excess.
    """

    weight: FloatArray
    height: FloatArray
    spread: FloatArray
    level: FloatArray
    dispersion: FloatArray
    unit: FloatArray
    good_runs: FloatArray
    ordinary: FloatArray
    excess: FloatArray
    squares: FloatArray


class CurveFit(NamedTuple):
    """What is believed after some runs: weights of all curves, heights and their standard deviations, the unit of failures.

    `lengths` are weights of the lengths that the deviation may have, `centre` and `turn` what it is then: see
    `estimate_deviation`.
    """

    weight: FloatArray
    height: FloatArray
    spread: FloatArray
    bad_weight: FloatArray
    unit: FloatArray
    lengths: FloatArray
    centre: FloatArray
    turn: FloatArray
    runs: FloatArray
    mean: FloatArray
    variance: FloatArray


def fit_curves(library: CurveLibrary, at: IntArray, regrets: FloatArray) -> CurveFit:
    """Weigh all curves by the runs so far: run t of a search was made at point `at[t]` and lost `regrets[t]`."""
    by_point, at_runs = make_point_maps(at, len(library.points))
    runs = by_point(np.ones(at.shape))
    some = np.maximum(runs, 1)
    scale = estimate_scale(library, at, regrets)
    lost = regrets / scale
    parts = split_runs(library, by_point, at_runs, lost, compute_patience(regrets.shape[1]))
    bad_weight, bad_level, bad_dispersion = weigh_bad_curves(library, runs, parts.excess, parts.squares)
    # Where failures are rare a point may have seen none; elsewhere the model may be wrong: the larger of two variances.
    expected = parts.dispersion * parts.level + bad_dispersion * parts.unit**2 * bad_level**VARIANCE_POWER
    # How far ordinary parts are from the curves, as a share, and its variance.
    seen = parts.good_runs > 0
    residual = np.where(seen, parts.ordinary / some / parts.level - 1, 0)
    noise = np.where(seen, parts.dispersion * parts.good_runs / some**2 / parts.level, UNKNOWN_VARIANCE)
    return CurveFit(
        parts.weight, parts.height * scale, parts.spread * scale, bad_weight, parts.unit * scale,
        *estimate_deviation(library, residual, noise),
        runs,
        by_point(regrets) / some,
        scale**2 * np.maximum(expected, compute_point_variance(by_point, runs, lost)),
    )  # fmt: skip


def compute_patience(runs: int) -> float:
    """How many times the level of good runs a run may lose and still be good."""
    return max(3.0, 1 + 0.5 * math.log(runs))


def split_runs(
    library: CurveLibrary, by_point: PointMap, at_runs: PointMap, lost: FloatArray, patience: float
) -> RunSplit:
    """Part good runs from bad ones. Which are good depends on the curves through them: both are renewed a few times."""
    level = np.sqrt(library.points) * np.ones((len(lost), 1))  # generous
    dispersion = np.zeros((len(lost), 1))
    luck, share = estimate_luck(lost), compute_losing_share(lost)
    for _ in range(SPLIT_PASSES):
        is_good = lost <= at_runs(compute_good_limit(lost, at_runs, level, dispersion, luck, share, patience))
        count = by_point(is_good)
        mean = by_point(lost * is_good) / np.maximum(count, 1)
        # Their variance is taken proportional to their mean; a tenth of a run is taken for granted.
        squares = (((lost - at_runs(level)) * is_good) ** 2).sum(axis=1, keepdims=True)
        dispersion = (squares + 0.1) / ((count * level).sum(axis=1, keepdims=True) + 1)
        weight, height, spread = weigh_good_curves(library, count, mean, level, dispersion)
        level = np.maximum((weight * height) @ library.good, LEAST_GOOD_LEVEL)
    unit = (weight * height) @ library.good[:, -1:]
    at_level = at_runs(level)
    is_good = lost <= at_runs(compute_good_limit(lost, at_runs, level, dispersion, luck, share, patience))
    # A run is its ordinary part, for a failure the level, and its excess: split once, they add up to what was lost.
    ordinary = by_point(np.where(is_good, lost, at_level))
    excess = np.where(is_good, 0, (lost - at_level) / unit)
    squares = (excess**2).sum(axis=1, keepdims=True)
    return RunSplit(
        weight, height, spread, level, dispersion, unit, by_point(is_good), ordinary, by_point(excess), squares
    )


def estimate_luck(lost: FloatArray) -> FloatArray:
    """How much luck alone makes of a run: realised regrets below 0 are nothing but luck, expected ones have none."""
    below = np.minimum(lost, 0)
    count = (below < 0).sum(axis=1, keepdims=True)
    return np.asarray(np.sqrt((below**2).sum(axis=1, keepdims=True) / np.maximum(count, 1)), np.float64)


def compute_losing_share(lost: FloatArray) -> FloatArray:
    """The share of runs that lose anything at all; where arms may be equal, many do not."""
    return np.asarray(np.maximum((lost != 0).mean(axis=1, keepdims=True), 1 / lost.shape[1]), np.float64)


def compute_good_limit(
    lost: FloatArray,
    at_runs: PointMap,
    level: FloatArray,
    dispersion: FloatArray,
    luck: FloatArray,
    share: FloatArray,
    patience: float,
) -> FloatArray:
    """What a run may lose at every point and still be good: a few times the level of good runs.

    Where good runs scatter more than that, as on two arms that are nearly alike, the tail of good runs is no failure: it
    does not vanish as failures do, and a curve through both is right nowhere. So a run may also be a few standard
    deviations above the level while that is little against the size of failure in which most is lost.
    """
    # Runs that lose nothing say nothing of what a good run may lose: the others' level counts.
    usual = np.maximum(patience * level / share, level + LUCK_DEVIATIONS * luck)
    far = (lost - at_runs(level)) * (lost > at_runs(usual))
    cost = (far**2).sum(axis=1, keepdims=True) / np.maximum(far.sum(axis=1, keepdims=True), LEAST_FAILURE_SHARE)
    scattered = level + GOOD_DEVIATIONS * patience * np.sqrt(dispersion * level)
    return np.asarray(np.maximum(usual, np.minimum(SMALL_COST_SHARE * cost, scattered)), np.float64)


def compute_point_variance(by_point: PointMap, runs: FloatArray, lost: FloatArray) -> FloatArray:
    """The variance of the runs at every point; 0 where there are fewer than two."""
    mean = by_point(lost) / np.maximum(runs, 1)
    return np.asarray(np.maximum(by_point(lost**2) - runs * mean**2, 0) / np.maximum(runs - 1, 1), np.float64)


def make_point_maps(at: IntArray, points: int) -> tuple[PointMap, PointMap]:
    """Two functions: one adds up numbers of runs by point, the other gives every run the number of its point."""
    searches = len(at)
    flat = at + points * np.arange(searches)[:, None]
    each = flat.ravel()

    def by_point(numbers: Any) -> FloatArray:
        sums = np.bincount(each, numbers.ravel(), searches * points)
        return np.asarray(sums, np.float64).reshape(searches, points)

    def at_runs(numbers: Any) -> FloatArray:
        return np.asarray(numbers.ravel().take(flat), np.float64)

    return by_point, at_runs


LARGE_LOSS_SHARE = 0.1
"""A run loses much if it loses more than this share of the mean at the same width."""


def estimate_scale(library: CurveLibrary, at: IntArray, regrets: FloatArray) -> FloatArray:
    """About what good runs lose at the largest width: the median at the largest one tried, of runs that lose anything.

    Where that is not much, it is the median of runs that lose much: most instances have arms that are nearly equal there,
    and what exploring costs on the others must not be taken for failures.
    """
    largest = at.max(axis=1, keepdims=True)
    there = at == largest
    lost = np.abs(regrets)
    much = LARGE_LOSS_SHARE * (lost * there).sum(axis=1, keepdims=True) / there.sum(axis=1, keepdims=True)
    middle = compute_masked_median(there & (regrets != 0), regrets)
    middle = np.where(middle > much, middle, compute_masked_median(there & (lost > much), regrets))
    usual = np.where(middle > 0, middle, lost.mean(axis=1, keepdims=True))
    scale: FloatArray = np.where(usual > 0, usual, 1) / np.sqrt(library.points[largest])
    return scale


def compute_masked_median(there: Any, regrets: FloatArray) -> FloatArray:
    """The median of some regrets of each search; 0 where there is none."""
    count = there.sum(axis=1, keepdims=True)
    some = there.any(axis=0)
    some[0] = True  # where there is none, one is looked up below all the same
    ranked = np.sort(np.where(there[:, some], regrets[:, some], np.inf), axis=1)
    middle = np.take_along_axis(ranked, np.hstack([(count - 1) // 2, count // 2]), 1).mean(axis=1, keepdims=True)
    return np.asarray(np.where(count > 0, middle, 0.0), np.float64)


def weigh_good_curves(
    library: CurveLibrary, count: FloatArray, mean: FloatArray, level: FloatArray, dispersion: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weights, heights and standard deviations of the heights of the curves of good runs.

    Means are Gaussian around height x curve; the height has a flat prior and is integrated out in closed form.
    """
    precision = np.where(count > 0, 1 / (dispersion * level / np.maximum(count, 1) + (CURVE_ERROR * level) ** 2), 0)
    projection = (precision * mean) @ library.good.T
    square = precision @ library.good_squared.T
    height = np.maximum(projection / square, LEAST_GOOD_LEVEL)
    weight = normalize_log_weights(height * projection - height**2 * square / 2 - 0.5 * np.log(square) + library.prior)
    return weight, height, 1 / np.sqrt(square)


def weigh_bad_curves(
    library: CurveLibrary, runs: FloatArray, excess: FloatArray, squares: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weights of the curves of failures, their mean curve and their dispersion.

    A quasi-likelihood whose variance is dispersion x mean^POWER: it uses sums of what failures cost and nothing else, so
    it estimates means, however heavy the tail is. For height x curve these sums are powers of the height times sums for
    the curve: products of matrices are as many as there are ways to end.
    """
    heights = library.heights
    seen, unseen = excess @ library.bad_seen.T, runs @ library.bad_unseen.T
    likelihood = seen[:, :, None] * heights ** (1 - VARIANCE_POWER) - unseen[:, :, None] * heights ** (
        2 - VARIANCE_POWER
    )
    likelihood = likelihood.reshape(len(runs), -1)
    level = np.maximum.accumulate((excess / np.maximum(runs, 1))[:, ::-1], axis=1)[:, ::-1] + 0.02
    for _ in range(SPLIT_PASSES):
        dispersion = (squares + PRIOR_SQUARES) / ((runs * level**VARIANCE_POWER).sum(axis=1, keepdims=True) + 1)
        weight = normalize_log_weights(likelihood / (DISPERSION_SHARE * dispersion) + library.bad_prior)
        level = compute_expected_heights(library, weight) @ library.bad
    return weight, level, dispersion


def compute_expected_heights(library: CurveLibrary, bad_weight: FloatArray) -> FloatArray:
    """Of each way in which failures end, its weight times its mean height."""
    return np.asarray(bad_weight.reshape(len(bad_weight), -1, len(library.heights)) @ library.heights, np.float64)


def estimate_deviation(
    library: CurveLibrary, residual: FloatArray, noise: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """What residuals with these variances say about the deviation: for each length its weight, a centre and a turn.

    The deviation is then R turn (centre + standard normals), R the root of that length. Proof: before the runs it is R e
    with standard normals e. Residuals r are R e plus noise of variances N. Given them, e is normal with the precision
    M = 1 + R' N^-1 R = L L' and the mean M^-1 R' N^-1 r; so e = L'^-1 (z + normals) with z = L^-1 R' N^-1 r. Up to what
    all lengths share, the density of r is exp(z' z / 2) / det L. (A length that is too short follows luck; one that is too
    long misses bends that are sharper than all of the library's.)
    """
    root = library.roots[:, library.places]
    weighed = np.swapaxes(root / noise[:, None, :, None], 2, 3)
    lower = np.linalg.cholesky(np.eye(root.shape[2]) + weighed @ root)
    inverse = np.linalg.inv(lower)
    centre = (inverse @ (weighed @ residual[:, None, :, None]))[:, :, :, 0]
    size = np.log(np.diagonal(lower, axis1=2, axis2=3)).sum(axis=2)
    likely = np.log(library.length_prior) + 0.5 * (centre**2).sum(axis=2) - size
    return normalize_log_weights(likely), centre, np.swapaxes(inverse, 2, 3)


def normalize_log_weights(log_weights: FloatArray) -> FloatArray:
    """Weights that add up to 1."""
    # Below e^-460 a weight changes no sum, but denormal numbers make products slow.
    weights = np.exp(np.maximum(log_weights - log_weights.max(axis=1, keepdims=True), -460.0))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True), np.float64)
