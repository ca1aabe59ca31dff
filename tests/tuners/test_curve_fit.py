"""Fits of curves to runs, compared with numerical integration."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

from banditune.tuners import curve_draws, curve_fit, curve_library
from banditune.tuners.curve_draws import compute_mean_curve
from banditune.tuners.curve_fit import fit_curves
from helpers.known_curves import LIBRARY, covariance_of, played, seen_by, truth


def test_good_curves_are_weighed_as_by_numerical_integration():
    rng = np.random.default_rng(1)
    count = rng.integers(0, 5, (1, len(LIBRARY.points))).astype(float)
    level = np.sqrt(LIBRARY.points)[None]
    mean = np.where(count > 0, level * rng.uniform(0.7, 1.3, level.shape), 0)
    dispersion = np.array([[0.5]])
    weight, height, spread = curve_fit.weigh_good_curves(LIBRARY, count, mean, level, dispersion)
    seen = count[0] > 0
    sd = np.sqrt(0.5 * level[0, seen] / count[0, seen] + (curve_fit.CURVE_ERROR * level[0, seen]) ** 2)
    shapes = (3, 40, 200, 447)

    def density(b, shape):
        return math.exp(stats.norm.logpdf(mean[0, seen], b * LIBRARY.good[shape, seen], sd).sum())

    areas = [
        integrate.quad(density, height[0, k] - 9 * spread[0, k], height[0, k] + 9 * spread[0, k], args=(k,))[0]
        for k in shapes
    ]
    wanted = np.array(areas) * np.exp(LIBRARY.good_prior[list(shapes)])
    found = weight[0, list(shapes)]
    assert found / found.sum() == pytest.approx(wanted / wanted.sum(), rel=1e-6)


def test_the_quasi_likelihood_of_failures_has_its_score():
    """Its derivative in the mean is (excess - runs mean) / mean^power."""
    mean, runs, excess, step = 0.3, 7.0, 4.0, 1e-6

    def likelihood(level):
        power = curve_library.VARIANCE_POWER
        return excess * level ** (1 - power) / (1 - power) - runs * level ** (2 - power) / (2 - power)

    slope = (likelihood(mean + step) - likelihood(mean - step)) / (2 * step)
    assert slope == pytest.approx((excess - runs * mean) / mean**curve_library.VARIANCE_POWER, rel=1e-6)
    way, size, point = 50, 20, 9
    level = LIBRARY.heights[size] * LIBRARY.bad[way, point]
    seen, unseen = np.zeros((2, 1, len(LIBRARY.points)))
    seen[0, point], unseen[0, point] = excess, runs
    weight, level_of, dispersion = curve_fit.weigh_bad_curves(LIBRARY, unseen, seen, np.array([[excess**2]]))
    every = (LIBRARY.heights[None, :, None] * LIBRARY.bad[:, None]).reshape(-1, len(LIBRARY.points))
    assert level_of[0] == pytest.approx(weight[0] @ every)
    at = way * len(LIBRARY.heights) + size
    other = LIBRARY.heights[0] * LIBRARY.bad[0, point]
    assert np.log(weight[0, at] / weight[0, 0]) == pytest.approx(
        (likelihood(level) - likelihood(other)) / (curve_fit.DISPERSION_SHARE * dispersion[0, 0])
        + LIBRARY.bad_prior[at]
        - LIBRARY.bad_prior[0]
    )
    unsure = curve_draws.temper_bad_weights(LIBRARY, weight)
    assert np.log(unsure[0, at] / unsure[0, 0]) == pytest.approx(
        (likelihood(level) - likelihood(other)) / dispersion[0, 0] + LIBRARY.bad_prior[at] - LIBRARY.bad_prior[0]
    )


def test_searches_in_lock_step_do_not_know_of_each_other():
    rng = np.random.default_rng(2)
    at = rng.integers(0, len(LIBRARY.points), (5, 80))
    regrets = played(at, rng)
    together = fit_curves(LIBRARY, at, regrets)
    for search in range(5):
        alone = fit_curves(LIBRARY, at[search : search + 1], regrets[search : search + 1])
        for a, b in zip(alone, together, strict=True):
            assert a[0] == pytest.approx(b[search], rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_unit_of_regret_does_not_matter(scale):
    rng = np.random.default_rng(3)
    at = rng.integers(0, len(LIBRARY.points), (1, 100))
    regrets = played(at, rng)
    usual = compute_mean_curve(LIBRARY, fit_curves(LIBRARY, at, regrets))
    assert compute_mean_curve(LIBRARY, fit_curves(LIBRARY, at, scale * regrets)) == pytest.approx(
        scale * usual, rel=1e-9
    )


def test_the_fit_finds_a_known_curve():
    rng = np.random.default_rng(4)
    at = np.tile(np.arange(len(LIBRARY.points)), (1, 400))
    found = compute_mean_curve(LIBRARY, fit_curves(LIBRARY, at, played(at, rng)))[0]
    middle = LIBRARY.fine > 0.05
    assert np.abs(found / truth(LIBRARY.fine) - 1)[middle].max() < 0.08
    assert abs(LIBRARY.fine[found.argmin()] - LIBRARY.fine[truth(LIBRARY.fine).argmin()]) < 0.02


def test_lengths_are_weighed_by_the_density_of_the_residuals():
    residual, noise = seen_by(len(LIBRARY.points), np.random.default_rng(11), searches=3)
    found, _, _ = curve_fit.estimate_deviation(LIBRARY, residual, noise)

    def at(length):
        return covariance_of(length)[np.ix_(LIBRARY.point_indices, LIBRARY.point_indices)]

    for search in range(3):
        density = [
            math.log(before)
            + stats.multivariate_normal.logpdf(residual[search], cov=at(length) + np.diag(noise[search]))
            for length, before in curve_library.DEVIATION_LENGTHS.items()
        ]
        wanted = np.exp(np.array(density) - max(density))
        assert found[search] == pytest.approx(wanted / wanted.sum(), rel=1e-3, abs=1e-12)  # faint waves are left out


def test_the_deviation_is_as_smooth_as_the_runs_say():
    """Runs whose mean has a narrow dip ask for a short length, a kink for one in between, a parabola for a long one."""
    rng = np.random.default_rng(13)
    at = np.tile(np.arange(len(LIBRARY.points)), (1, 200))
    g = LIBRARY.points[at]
    kink = fit_curves(LIBRARY, at, 20 + 40 * np.abs(g - 0.7) + 5 * rng.standard_normal(at.shape))
    bowl = fit_curves(LIBRARY, at, 20 + 80 * (g - 0.2) ** 2 + 5 * rng.standard_normal(at.shape))
    dip = fit_curves(LIBRARY, at, 32 - 12 * np.exp(-(((g - 0.65) / 0.1) ** 2)) + 5 * rng.standard_normal(at.shape))
    assert dip.length_weights[0, 0] > 0.95
    assert kink.length_weights[0, 1] > 0.95
    assert bowl.length_weights[0, -1] > 0.6


def test_a_tail_is_good_where_failures_are_dear_and_scatter_is_large():
    level = np.ones((1, 4))
    patience = 4.0

    def limit(lost, dispersion, luck=0.0, share=1.0):
        limits = curve_fit.compute_good_limit(
            np.array([lost]), np.asarray, level, *(np.full((1, 1), x) for x in (dispersion, luck, share)), patience
        )
        assert (limits == limits[0, 0]).all()
        return limits[0, 0]

    scattered = 1 + curve_fit.GOOD_DEVIATIONS * patience
    assert limit([1.0, 1.0, 1.0, 1001.0], 1.0) == pytest.approx(scattered)
    assert limit([1.0, 1.0, 1.0, 1001.0], 0.1) == patience
    assert limit([1.0, 1.0, 1.0, 101.0], 1.0) == pytest.approx(curve_fit.SMALL_COST_SHARE * 100)
    assert limit([1.0, 1.0, 1.0, 21.0], 1.0) == patience
    assert limit([1.0, 1.0, 1.0, 1.0], 1.0) == patience
    assert limit([1.0, 1.0, 1.0, 1.0], 1.0, luck=5.0) == 1 + 5 * curve_fit.LUCK_DEVIATIONS
    assert limit([1.0, 1.0, 1.0, 1.0], 1.0, share=0.25) == 4 * patience


def test_regrets_below_zero_tell_what_luck_makes():
    rng = np.random.default_rng(0)
    lost = rng.normal(0, 7, (2, 4000))
    lost[1] = np.abs(lost[1])
    luck = curve_fit.estimate_luck(lost)[:, 0]
    assert luck[0] == pytest.approx(7, rel=4 / np.sqrt(2 * 2000))
    assert luck[1] == 0
