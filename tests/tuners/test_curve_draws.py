"""Draws of curves, compared with dense algebra."""

from __future__ import annotations

import math

import numpy as np
import pytest

from banditune.tuners import curve_fit, curve_library
from banditune.tuners.curve_draws import compute_mean_curve, draw_curves
from helpers.known_curves import LIBRARY, covariance_of, searched, seen_by


def test_drawn_curves_have_the_mean_and_the_covariance_of_dense_algebra():
    """The deviation of one good curve is a Gaussian process, of which conditional moments are known."""
    found = searched(budget=150).fit_curves()
    residual, noise = seen_by(len(LIBRARY.points), np.random.default_rng(4))
    _, centre, turn = curve_fit.estimate_deviation(LIBRARY, residual, noise)
    one = int(found.good_weight[0].argmax())
    length = 1
    sure = found._replace(
        good_weight=np.eye(found.good_weight.shape[1])[[one]],
        length_weights=np.eye(found.length_weights.shape[1])[[length]],
        centre=centre,
        rotation=turn,
        height_sd=np.zeros_like(found.height_sd),
        bad_weight=np.eye(found.bad_weight.shape[1])[[0]],
    )
    drawn = draw_curves(LIBRARY, sure, 4000, np.random.default_rng(5))[0]
    good = found.height[0, one] * LIBRARY.good_fine[one]
    failures = found.failure_unit[0] * LIBRARY.heights[0] * LIBRARY.bad_fine[0]
    deviation = (drawn - failures) / good - 1
    prior = covariance_of(list(curve_library.DEVIATION_LENGTHS)[length])
    seen = prior[:, LIBRARY.point_indices]
    system = seen[LIBRARY.point_indices] + np.diag(noise[0])
    mean = seen @ np.linalg.solve(system, residual[0])
    covariance = prior - seen @ np.linalg.solve(system, seen.T)
    se = np.sqrt(np.diag(covariance) / 4000)
    assert (np.abs(deviation.mean(axis=0) - mean) < 5 * se).all()  # 162 points
    variance = deviation.var(axis=0, ddof=1) / np.diag(covariance)
    assert (np.abs(variance - 1) < 5 * math.sqrt(2 / 3999)).all()
    (whole,) = compute_mean_curve(LIBRARY, sure)
    assert whole == pytest.approx(good * (1 + mean) + failures)


def test_draws_of_several_lengths_have_the_mean_of_all():
    found = searched(budget=150).fit_curves()
    mixed = found._replace(length_weights=np.array([[0.2, 0.3, 0.5]]), height_sd=np.zeros_like(found.height_sd))
    drawn = draw_curves(LIBRARY, mixed, 4000, np.random.default_rng(12))[0]
    se = drawn.std(axis=0) / math.sqrt(4000)
    assert (np.abs(drawn.mean(axis=0) - compute_mean_curve(LIBRARY, mixed)[0]) < 5 * se).all()  # 162 points, as above


def test_coarse_and_fine_curves_have_the_same_law():
    found = searched(budget=150).fit_curves()
    fine = draw_curves(LIBRARY, found, 3000, np.random.default_rng(6))[0][:, LIBRARY.point_indices]
    coarse = draw_curves(LIBRARY, found, 3000, np.random.default_rng(7), fine=False)[0]
    joint = np.sqrt((fine.var(axis=0) + coarse.var(axis=0)) / 3000)
    assert (np.abs(fine.mean(axis=0) - coarse.mean(axis=0)) < 4.5 * joint).all()
