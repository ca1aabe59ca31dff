"""Draws of curves, compared with dense algebra."""

from __future__ import annotations

import math

import numpy as np
import pytest

from banditune.tuners import curve_fit, curve_library
from banditune.tuners.curve_draws import compute_mean_curve, draw_curves
from helpers.known_curves import LIBRARY, compute_covariance, draw_residuals, run_searches


def test_drawn_curves_have_the_mean_and_covariance_of_dense_algebra():
    """The deviation of one good curve is a Gaussian process with known conditional moments."""
    fit = run_searches(budget=150).fit_curves()
    residual, noise = draw_residuals(len(LIBRARY.points), np.random.default_rng(4))
    _, centre, rotation = curve_fit.estimate_deviation(LIBRARY, residual, noise)
    index = int(fit.good_weight[0].argmax())
    length = 1
    single_curve = fit._replace(
        good_weight=np.eye(fit.good_weight.shape[1])[[index]],
        length_weights=np.eye(fit.length_weights.shape[1])[[length]],
        centre=centre,
        rotation=rotation,
        height_sd=np.zeros_like(fit.height_sd),
        bad_weight=np.eye(fit.bad_weight.shape[1])[[0]],
    )
    curves = draw_curves(LIBRARY, single_curve, 4000, np.random.default_rng(5))[0]
    good = fit.height[0, index] * LIBRARY.good_fine[index]
    failures = fit.failure_unit[0] * LIBRARY.heights[0] * LIBRARY.bad_fine[0]
    deviation = (curves - failures) / good - 1
    prior = compute_covariance(list(curve_library.DEVIATION_LENGTHS)[length])
    at_points = prior[:, LIBRARY.point_indices]
    system = at_points[LIBRARY.point_indices] + np.diag(noise[0])
    mean = at_points @ np.linalg.solve(system, residual[0])
    covariance = prior - at_points @ np.linalg.solve(system, at_points.T)
    se = np.sqrt(np.diag(covariance) / 4000)
    assert (np.abs(deviation.mean(axis=0) - mean) < 5 * se).all()  # 162 points
    variance = deviation.var(axis=0, ddof=1) / np.diag(covariance)
    assert (np.abs(variance - 1) < 5 * math.sqrt(2 / 3999)).all()
    (mean_curve,) = compute_mean_curve(LIBRARY, single_curve)
    assert mean_curve == pytest.approx(good * (1 + mean) + failures)


def test_draws_with_several_lengths_have_the_mean_curve():
    fit = run_searches(budget=150).fit_curves()
    mixed = fit._replace(length_weights=np.array([[0.2, 0.3, 0.5]]), height_sd=np.zeros_like(fit.height_sd))
    curves = draw_curves(LIBRARY, mixed, 4000, np.random.default_rng(12))[0]
    se = curves.std(axis=0) / math.sqrt(4000)
    assert (np.abs(curves.mean(axis=0) - compute_mean_curve(LIBRARY, mixed)[0]) < 5 * se).all()  # 162 points, as above


def test_coarse_and_fine_curves_have_the_same_law():
    fit = run_searches(budget=150).fit_curves()
    fine = draw_curves(LIBRARY, fit, 3000, np.random.default_rng(6))[0][:, LIBRARY.point_indices]
    coarse = draw_curves(LIBRARY, fit, 3000, np.random.default_rng(7), fine=False)[0]
    joint_se = np.sqrt((fine.var(axis=0) + coarse.var(axis=0)) / 3000)
    assert (np.abs(fine.mean(axis=0) - coarse.mean(axis=0)) < 4.5 * joint_se).all()
