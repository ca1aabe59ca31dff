"""Fits of curves to runs, compared with numerical integration."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

from banditune.tuners import curve_draws, curve_fit, curve_library
from banditune.tuners.curve_draws import compute_mean_curve
from banditune.tuners.curve_fit import fit_curves
from helpers.known_curves import LIBRARY, compute_covariance, compute_mean_regret, draw_regrets, draw_residuals


def test_weights_of_good_curves_agree_with_integration():
    rng = np.random.default_rng(1)
    count = rng.integers(0, 5, (1, len(LIBRARY.points))).astype(float)
    level = np.sqrt(LIBRARY.points)[None]
    mean = np.where(count > 0, level * rng.uniform(0.7, 1.3, level.shape), 0)
    dispersion = np.array([[0.5]])
    weight, height, spread = curve_fit.weigh_good_curves(LIBRARY, count, mean, level, dispersion)
    has_runs = count[0] > 0
    sd = np.sqrt(0.5 * level[0, has_runs] / count[0, has_runs] + (curve_fit.CURVE_ERROR * level[0, has_runs]) ** 2)
    shapes = (3, 40, 200, 447)

    def density(b, shape):
        return math.exp(stats.norm.logpdf(mean[0, has_runs], b * LIBRARY.good[shape, has_runs], sd).sum())

    areas = [
        integrate.quad(density, height[0, k] - 9 * spread[0, k], height[0, k] + 9 * spread[0, k], args=(k,))[0]
        for k in shapes
    ]
    expected = np.array(areas) * np.exp(LIBRARY.good_prior[list(shapes)])
    computed = weight[0, list(shapes)]
    assert computed / computed.sum() == pytest.approx(expected / expected.sum(), rel=1e-6)


def test_the_quasi_likelihood_of_failures_agrees_with_its_score():
    """Its derivative in the mean is (excess - runs mean) / mean^power."""
    mean, runs, excess, step = 0.3, 7.0, 4.0, 1e-6

    def compute_likelihood(level):
        power = curve_library.VARIANCE_POWER
        return excess * level ** (1 - power) / (1 - power) - runs * level ** (2 - power) / (2 - power)

    slope = (compute_likelihood(mean + step) - compute_likelihood(mean - step)) / (2 * step)
    assert slope == pytest.approx((excess - runs * mean) / mean**curve_library.VARIANCE_POWER, rel=1e-6)
    shape, size, point = 50, 20, 9
    level = LIBRARY.heights[size] * LIBRARY.bad[shape, point]
    observed, counts = np.zeros((2, 1, len(LIBRARY.points)))
    observed[0, point], counts[0, point] = excess, runs
    weight, level_of, dispersion = curve_fit.weigh_bad_curves(LIBRARY, counts, observed, np.array([[excess**2]]))
    curves = (LIBRARY.heights[None, :, None] * LIBRARY.bad[:, None]).reshape(-1, len(LIBRARY.points))
    assert level_of[0] == pytest.approx(weight[0] @ curves)
    index = shape * len(LIBRARY.heights) + size
    other = LIBRARY.heights[0] * LIBRARY.bad[0, point]
    assert np.log(weight[0, index] / weight[0, 0]) == pytest.approx(
        (compute_likelihood(level) - compute_likelihood(other)) / (curve_fit.DISPERSION_SHARE * dispersion[0, 0])
        + LIBRARY.bad_prior[index]
        - LIBRARY.bad_prior[0]
    )
    unsure = curve_draws.temper_bad_weights(LIBRARY, weight)
    assert np.log(unsure[0, index] / unsure[0, 0]) == pytest.approx(
        (compute_likelihood(level) - compute_likelihood(other)) / dispersion[0, 0]
        + LIBRARY.bad_prior[index]
        - LIBRARY.bad_prior[0]
    )


def test_searches_in_lock_step_are_independent():
    rng = np.random.default_rng(2)
    at = rng.integers(0, len(LIBRARY.points), (5, 80))
    regrets = draw_regrets(at, rng)
    all_fits = fit_curves(LIBRARY, at, regrets)
    for search in range(5):
        single_fit = fit_curves(LIBRARY, at[search : search + 1], regrets[search : search + 1])
        assert len(single_fit) == 11
        for a, b in zip(single_fit, all_fits, strict=True):
            assert a[0] == pytest.approx(b[search], rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_fit_scales_with_the_unit_of_regret(scale):
    rng = np.random.default_rng(3)
    at = rng.integers(0, len(LIBRARY.points), (1, 100))
    regrets = draw_regrets(at, rng)
    expected = compute_mean_curve(LIBRARY, fit_curves(LIBRARY, at, regrets))
    assert compute_mean_curve(LIBRARY, fit_curves(LIBRARY, at, scale * regrets)) == pytest.approx(
        scale * expected, rel=1e-9
    )


def test_the_fit_finds_a_known_curve():
    rng = np.random.default_rng(4)
    at = np.tile(np.arange(len(LIBRARY.points)), (1, 400))
    curve = compute_mean_curve(LIBRARY, fit_curves(LIBRARY, at, draw_regrets(at, rng)))[0]
    middle = LIBRARY.fine > 0.05
    assert np.abs(curve / compute_mean_regret(LIBRARY.fine) - 1)[middle].max() < 0.08
    assert abs(LIBRARY.fine[curve.argmin()] - LIBRARY.fine[compute_mean_regret(LIBRARY.fine).argmin()]) < 0.02


def test_weights_of_lengths_agree_with_the_density_of_the_residuals():
    residual, noise = draw_residuals(len(LIBRARY.points), np.random.default_rng(11), searches=3)
    weights, _, _ = curve_fit.estimate_deviation(LIBRARY, residual, noise)

    def compute_covariance_at_points(length):
        return compute_covariance(length)[np.ix_(LIBRARY.point_indices, LIBRARY.point_indices)]

    for search in range(3):
        density = [
            math.log(prior)
            + stats.multivariate_normal.logpdf(
                residual[search], cov=compute_covariance_at_points(length) + np.diag(noise[search])
            )
            for length, prior in curve_library.DEVIATION_LENGTHS.items()
        ]
        expected = np.exp(np.array(density) - max(density))
        assert weights[search] == pytest.approx(
            expected / expected.sum(), rel=1e-3, abs=1e-12
        )  # small waves are left out


def test_the_length_of_the_deviation_follows_the_runs():
    """A narrow dip asks for a short length, a kink for a medium one, a parabola for a long one."""
    rng = np.random.default_rng(13)
    at = np.tile(np.arange(len(LIBRARY.points)), (1, 200))
    g = LIBRARY.points[at]
    kink = fit_curves(LIBRARY, at, 20 + 40 * np.abs(g - 0.7) + 5 * rng.standard_normal(at.shape))
    bowl = fit_curves(LIBRARY, at, 20 + 80 * (g - 0.2) ** 2 + 5 * rng.standard_normal(at.shape))
    dip = fit_curves(LIBRARY, at, 32 - 12 * np.exp(-(((g - 0.65) / 0.1) ** 2)) + 5 * rng.standard_normal(at.shape))
    assert dip.length_weights[0, 0] > 0.95
    assert kink.length_weights[0, 1] > 0.95
    assert bowl.length_weights[0, -1] > 0.6


def test_the_limit_of_good_runs_depends_on_scatter_and_cost():
    level = np.ones((1, 4))
    multiple = 4.0

    def compute_limit(regrets, dispersion, luck=0.0, share=1.0):
        limits = curve_fit.compute_good_limit(
            np.array([regrets]), np.asarray, level, *(np.full((1, 1), x) for x in (dispersion, luck, share)), multiple
        )
        assert (limits == limits[0, 0]).all()
        return limits[0, 0]

    scattered = 1 + curve_fit.GOOD_DEVIATIONS * multiple
    assert compute_limit([1.0, 1.0, 1.0, 1001.0], 1.0) == pytest.approx(scattered)
    assert compute_limit([1.0, 1.0, 1.0, 1001.0], 0.1) == multiple
    assert compute_limit([1.0, 1.0, 1.0, 101.0], 1.0) == pytest.approx(curve_fit.SMALL_COST_SHARE * 100)
    assert compute_limit([1.0, 1.0, 1.0, 21.0], 1.0) == multiple
    assert compute_limit([1.0, 1.0, 1.0, 1.0], 1.0) == multiple
    assert compute_limit([1.0, 1.0, 1.0, 1.0], 1.0, luck=5.0) == 1 + 5 * curve_fit.LUCK_DEVIATIONS
    assert compute_limit([1.0, 1.0, 1.0, 1.0], 1.0, share=0.25) == 4 * multiple


def test_negative_regrets_determine_the_estimated_reward_noise():
    rng = np.random.default_rng(0)
    regrets = rng.normal(0, 7, (2, 4000))
    regrets[1] = np.abs(regrets[1])
    luck = curve_fit.estimate_luck(regrets)[:, 0]
    assert luck[0] == pytest.approx(7, rel=4 / np.sqrt(2 * 2000))
    assert luck[1] == 0
