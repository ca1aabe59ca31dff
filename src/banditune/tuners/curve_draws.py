"""The expected regret curve of a fit, and curves drawn from its posterior."""

from __future__ import annotations

import numpy as np

from banditune.core.arrays import FloatArray, IntArray
from banditune.tuners.curve_fit import DISPERSION_SHARE, CurveFit, compute_expected_heights, normalize_log_weights
from banditune.tuners.curve_library import CurveLibrary


def temper_bad_weights(library: CurveLibrary, bad_weight: FloatArray) -> FloatArray:
    """Compute weights of failure curves with the full dispersion: the likelihood to the power of `DISPERSION_SHARE`."""
    return normalize_log_weights(DISPERSION_SHARE * (np.log(bad_weight) - library.bad_prior) + library.bad_prior)


def compute_mean_curve(library: CurveLibrary, fit: CurveFit) -> FloatArray:
    """Compute the expected regret at every fine point."""
    centres = (fit.length_weights[:, :, None] * fit.centre)[:, :, None]
    deviation = (centres @ compute_deviations(library, fit, fine=True)).sum(axis=1)[:, 0]
    good: FloatArray = (fit.good_weight * fit.height) @ library.good_fine
    bad: FloatArray = fit.failure_unit * (compute_expected_heights(library, fit.bad_weight) @ library.bad_fine)
    return np.asarray(good * (1 + deviation) + bad, np.float64)


def draw_curves(
    library: CurveLibrary, fit: CurveFit, count: int, rng: np.random.Generator, fine: bool = True
) -> FloatArray:
    """Draw curves from the posterior, (searches, count, points)."""
    good, bad = (library.good_fine, library.bad_fine) if fine else (library.good, library.bad)
    which = draw_indices(fit.good_weight, count, rng)
    height = np.take_along_axis(fit.height, which, 1)
    height = height + np.take_along_axis(fit.height_sd, which, 1) * rng.standard_normal(height.shape)
    length = draw_indices(fit.length_weights, count, rng)[:, :, None]
    normals = rng.standard_normal((*which.shape, library.roots.shape[2]))
    deviations = compute_deviations(library, fit, fine)
    curves = np.ones((*which.shape, deviations.shape[-1]))
    for length_index in range(deviations.shape[1]):
        mask = length == length_index
        if mask.any():
            curves += (mask * (fit.centre[:, [length_index]] + normals)) @ deviations[:, length_index]
    curves *= good[which]
    curves *= height[:, :, None]
    shape, size = np.divmod(draw_indices(fit.bad_weight, count, rng), len(library.heights))
    curves += (fit.failure_unit * library.heights[size])[:, :, None] * bad[shape]
    return curves


def compute_deviations(library: CurveLibrary, fit: CurveFit, fine: bool) -> FloatArray:
    """Compute the matrices that map standard normals to deviations, (searches, lengths, normals, points)."""
    roots = library.roots if fine else library.roots[:, library.point_indices]
    return np.asarray(np.swapaxes(roots @ fit.rotation, 2, 3), np.float64)


def draw_indices(weights: FloatArray, count: int, rng: np.random.Generator) -> IntArray:
    """Draw `count` indices for each search, with its weights."""
    steps = np.cumsum(weights, axis=1)
    at = rng.random((len(weights), count)) * steps[:, -1:]
    indices = np.stack([np.searchsorted(*pair, side="right") for pair in zip(steps, at, strict=True)])
    clipped: IntArray = np.minimum(indices, weights.shape[1] - 1)
    return clipped
