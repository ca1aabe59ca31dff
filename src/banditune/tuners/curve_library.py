"""Libraries of curves: possible costs of exploring and of failures at every width."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import product
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from banditune.core.arrays import FloatArray, IntArray
from banditune.core.space import Range
from banditune.tuners.failure_library import FailureShape, compute_failure_density

FINE_POINTS = 162
"""The number of points for answers. The answers of NoTeS are such points, too: 162 = 2 * 3^4."""


GOOD_POWERS = (0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.3)
"""The powers of the width with which the cost of exploring grows."""


GOOD_CONSTANTS = (0.0, 0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.7)
"""The shares of the cost of exploring that do not depend on the width."""


DIP_CONSTANTS, DIP_HEIGHTS, DIP_WIDTHS = (0.0, 0.025, 0.1, 0.4), (0.3, 1.0, 3.0), (0.05, 0.1, 0.2, 0.4)
"""Curves with an added exponential, for problems on which all runs have more regret with too little exploration."""


FAILURE_DECAYS, FAILURE_REACHES, FAILURE_HEIGHTS = (
    (0.8, 1.0, 1.3, 1.7, 2.3),
    np.geomspace(0.01, 2.4, 36),
    np.geomspace(0.004, 100, 40),
)
"""The grid of failures. At the width g their mean cost is height * exp(-(g / reach)^decay).

The unit is the regret of good runs at the largest width. If the reach is above 1, failures are common at every width.
"""


LOG_FAILURE_DECAYS, LOG_FAILURE_REACHES, LOG_FAILURE_HEIGHTS = (
    {0.4: 0.6, 1.0: 1.0, 1.4: 1.0, 2.0: 1.0},
    29,
    np.geomspace(0.02, 100, 26),
)
"""The same on a log scale: decays with their prior weights, number of reaches (from below the lowest width on), heights.

The first decay is slow, over decades. It is for instances that need different amounts of exploration, as with
explore-then-commit.
"""


FAR_REACH, FAR_PRIOR = 0.6, 0.1
"""A reach, and the weight of failures with a larger reach in an uninformed prior. Other failures have the weight 1."""


UNSEEN_SHARE = 0.25
"""The share of the uninformed prior on a linear scale. The rest is the density of observed failures."""


LEAST_FAILURE_SHARE = 1e-12
"""The smallest cost of failures as a share of their height. It is positive so that its powers are finite."""


VARIANCE_POWER = 1.2
"""The power of the mean to which the variance of the cost of failures is assumed to be proportional."""


RUN_POINTS, LOG_OFFSET = 48, 0.1
"""The number of points for runs, even in log(width + `LOG_OFFSET`), because optima at small widths are narrower."""


DEVIATION_SIZE = 0.2
"""The relative standard deviation of the smooth deviation from the curves of good runs."""


DEVIATION_LENGTHS, LOG_DEVIATION_LENGTHS = {0.15: 0.03, 0.3: 0.2, 0.6: 0.77}, {0.3: 0.2, 0.6: 0.8}
"""The lengths of the deviation with their prior weights, in log(width + `LOG_OFFSET`), or on a log scale in log(width)."""


LEAST_WAVE_VARIANCE = 1e-6
"""The share of the largest variance below which eigenvectors of the deviation are left out."""


START_POINTS = (4, 11, 27, 66, 108, 162)
"""The points of `FINE_POINTS` near which the first runs are made."""


class CurveLibrary(NamedTuple):
    """Curves at the points of runs (`points`, a subset of `fine`) and at those of answers (`fine`).

    A curve of failures is one of `heights` times a row of `bad`; `bad_prior` has all pairs, heights of the first row first.
    `roots` map standard normals to deviations, (lengths, fine points, normals). `length_prior` are weights of the lengths.
    """

    fine: FloatArray
    point_indices: IntArray
    points: FloatArray
    start_points: IntArray
    good: FloatArray
    good_squared: FloatArray
    good_fine: FloatArray
    good_prior: FloatArray
    heights: FloatArray
    bad: FloatArray
    bad_prior: FloatArray
    bad_excess_terms: FloatArray
    bad_run_terms: FloatArray
    bad_fine: FloatArray
    roots: FloatArray
    length_prior: FloatArray


def select_library(search_range: Range) -> CurveLibrary:
    """Select the library for a range. Widths are shares of the range; on a log scale they begin at its lowest value."""
    return _build_library(search_range.low / search_range.high if search_range.scale == "log" else 0.0)


def get_linear_library() -> CurveLibrary:
    """Return the library of linear scales."""
    return _build_library(0.0)


@lru_cache(maxsize=16)
def _build_library(lowest: float) -> CurveLibrary:
    # One thread, because the last bits of a matrix product depend on the number of threads.
    with threadpool_limits(limits=1, user_api="blas"):
        return _build_log_library(lowest) if lowest else _build_linear_library()


def _build_linear_library() -> CurveLibrary:
    fine = np.arange(1, FINE_POINTS + 1) / FINE_POINTS
    even = np.geomspace(fine[0] + LOG_OFFSET, 1 + LOG_OFFSET, RUN_POINTS) - LOG_OFFSET
    point_indices = np.unique(np.round(FINE_POINTS * even).astype(int)) - 1
    start = np.array([np.abs(point_indices + 1 - width).argmin() for width in START_POINTS])
    reach_decays = list(product(FAILURE_REACHES, FAILURE_DECAYS))
    prior = compute_observed_prior(list_failures(FAILURE_HEIGHTS, reach_decays))
    return _assemble_library(
        fine,
        point_indices,
        start,
        FAILURE_HEIGHTS,
        reach_decays,
        prior,
        compute_deviation_roots(np.log(fine + LOG_OFFSET), DEVIATION_LENGTHS),
    )


def _build_log_library(lowest: float) -> CurveLibrary:
    fine = np.geomspace(lowest, 1, FINE_POINTS)
    point_indices = np.unique(np.round(np.linspace(0, FINE_POINTS - 1, 32)).astype(int))
    start = np.round(np.linspace(0, len(point_indices) - 1, 5)).astype(int)
    reaches = np.geomspace(min(FAILURE_REACHES[0], 0.4 * lowest), FAILURE_REACHES[-1], LOG_FAILURE_REACHES)
    reach_decays = list(product(reaches, LOG_FAILURE_DECAYS))
    failures = list_failures(LOG_FAILURE_HEIGHTS, reach_decays)
    prior = compute_even_prior(failures) + np.log([LOG_FAILURE_DECAYS[decay] for _, _, decay in failures])
    return _assemble_library(
        fine,
        point_indices,
        start,
        LOG_FAILURE_HEIGHTS,
        reach_decays,
        prior,
        compute_deviation_roots(np.log(fine), LOG_DEVIATION_LENGTHS),
    )


def _assemble_library(
    fine: FloatArray,
    point_indices: IntArray,
    start: IntArray,
    heights: FloatArray,
    reach_decays: Sequence[tuple[float, float]],
    bad_prior: FloatArray,
    waves: tuple[FloatArray, FloatArray],
) -> CurveLibrary:
    good, prior = build_good_curves(fine)
    bad = build_bad_curves(fine, reach_decays)
    bad_at_points = bad[:, point_indices]
    return CurveLibrary(
        fine,
        point_indices,
        fine[point_indices],
        start,
        good[:, point_indices],
        good[:, point_indices] ** 2,
        good,
        prior,
        heights,
        bad_at_points,
        bad_prior,
        bad_at_points ** (1 - VARIANCE_POWER) / (1 - VARIANCE_POWER),
        bad_at_points ** (2 - VARIANCE_POWER) / (2 - VARIANCE_POWER),
        bad,
        *waves,
    )


def compute_deviation_roots(x: FloatArray, lengths: Mapping[float, float]) -> tuple[FloatArray, FloatArray]:
    """Compute roots of the covariance of deviations at these positions, one for each length, and the prior of the lengths.

    A smooth deviation has few eigenvectors with a large variance. Those below `LEAST_WAVE_VARIANCE` times the largest
    variance, for all lengths, are left out.
    """
    distance = np.subtract.outer(x, x) / np.array(list(lengths))[:, None, None]
    variance, waves = np.linalg.eigh(np.exp(-0.5 * distance**2))
    count = int((variance > LEAST_WAVE_VARIANCE * variance[:, -1:]).sum(axis=1).max())
    roots = DEVIATION_SIZE * waves[:, :, -count:] * np.sqrt(np.maximum(variance[:, None, -count:], 0))
    return np.asarray(roots, np.float64), np.array(list(lengths.values()))


def build_good_curves(g: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Build the curves of good runs, a row each, and the logs of their prior weights. Half is for those with a dip."""
    plain = [constant + (1 - constant) * g**power for power, constant in product(GOOD_POWERS, GOOD_CONSTANTS)]
    dipped = [
        constant + (1 - constant) * g**power + height * np.exp(-g / width)
        for power, constant, height, width in product(GOOD_POWERS, DIP_CONSTANTS, DIP_HEIGHTS, DIP_WIDTHS)
    ]
    prior = np.repeat([0.5 / len(plain), 0.5 / len(dipped)], [len(plain), len(dipped)])
    return np.array(plain + dipped), np.log(prior)


def build_bad_curves(g: FloatArray, reach_decays: Sequence[tuple[float, float]]) -> FloatArray:
    """Build the curves of failures, a row for each (reach, decay), with their mean cost in units of their height."""
    reach, decay = np.array(reach_decays).T[:, :, None]
    return np.asarray(np.maximum(np.exp(-((g / reach) ** decay)), LEAST_FAILURE_SHARE), np.float64)


def list_failures(heights: FloatArray, reach_decays: Sequence[tuple[float, float]]) -> list[FailureShape]:
    """List failures, first all heights of the first (reach, decay), then those of the next."""
    return [(float(height), *reach_decay) for reach_decay, height in product(reach_decays, heights)]


def compute_even_prior(failures: Sequence[FailureShape]) -> FloatArray:
    """Compute the logarithms of uninformed prior weights, which only assume that a large reach is rare."""
    return np.log([FAR_PRIOR if reach > FAR_REACH else 1.0 for _, reach, _ in failures])


def compute_observed_prior(failures: Sequence[FailureShape]) -> FloatArray:
    """Compute the logarithms of prior weights: most weight is near the observed failures of other problems."""
    even, observed = np.exp(compute_even_prior(failures)), compute_failure_density(failures)
    return np.asarray(
        np.log(UNSEEN_SHARE * even / even.mean() + (1 - UNSEEN_SHARE) * observed / observed.mean()), np.float64
    )
