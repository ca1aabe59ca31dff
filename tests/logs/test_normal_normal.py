"""Gaussian fits, compared with closed forms and with the restricted likelihood of all rewards."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, stats

import banditune as bt
from banditune.logs.models.normal_normal import NormalCells, WithinCellVariance, fit_normal_priors
from helpers.likelihood_intervals import compute_spread_cut
from helpers.sample_logs import list_cells


def test_fits_of_balanced_cells_agree_with_closed_forms():
    rng = np.random.default_rng(4)
    means, pulls = rng.normal(2, 0.7, 30) + rng.normal(0, 1.5 / 3, 30), np.full(30, 9.0)
    squares, degrees = 1.5**2 * 240.0, 240.0
    estimates = {
        e.name: e
        for e in fit_normal_priors(
            [NormalCells(means, pulls)], WithinCellVariance(squares, degrees), 0.95, [""]
        ).estimates
    }
    noise2 = squares / degrees
    between = means.var(ddof=1)
    assert estimates["noise"].value == pytest.approx(math.sqrt(noise2), rel=1e-5)
    assert estimates["sd"].value == pytest.approx(math.sqrt(between - noise2 / 9), rel=1e-4)
    reach = stats.t.ppf(0.975, 29) * math.sqrt(between / 30)
    assert (estimates["mean"].low, estimates["mean"].high) == pytest.approx(
        (means.mean() - reach, means.mean() + reach), rel=1e-4
    )


def test_gaussian_estimates_maximise_the_restricted_likelihood_of_all_rewards():
    rng = np.random.default_rng(5)
    counts = np.array([2, 3, 5, 8, 2, 4])
    group = np.repeat(np.arange(6), counts)
    rewards = rng.normal(1, 1, 6)[group] + rng.normal(0, 0.8, len(group))
    ones = np.ones(len(group))

    def compute_likelihood(log_sd, log_noise):
        covariance = math.exp(2 * log_noise) * np.eye(len(group)) + math.exp(2 * log_sd) * (group[:, None] == group)
        inverse = np.linalg.inv(covariance)
        weight = ones @ inverse @ ones
        residuals = rewards - (ones @ inverse @ rewards) / weight
        return -0.5 * (np.linalg.slogdet(covariance)[1] + math.log(weight) + residuals @ inverse @ residuals)

    best = optimize.minimize(lambda x: -compute_likelihood(*x), (0, 0), method="Nelder-Mead", options={"fatol": 1e-11})
    mean = np.bincount(group, rewards) / counts
    squares = float(((rewards - mean[group]) ** 2).sum())
    fitted = fit_normal_priors(
        [NormalCells(mean, counts.astype(float))], WithinCellVariance(squares, len(group) - 6.0), 0.95, [""]
    )
    estimates = {e.name: e for e in fitted.estimates}
    assert (estimates["sd"].value, estimates["noise"].value) == pytest.approx(np.exp(best.x), rel=1e-3)
    for end in (estimates["sd"].low, estimates["sd"].high):
        peak = -optimize.minimize_scalar(
            lambda x, s=end: -compute_likelihood(math.log(s), x), (best.x[1], best.x[1] + 0.1)
        ).fun
        assert 2 * (-best.fun - peak) == pytest.approx(compute_spread_cut(5, 5), rel=2e-3)
    for end in (estimates["noise"].low, estimates["noise"].high):
        peak = -optimize.minimize_scalar(
            lambda x, s=end: -compute_likelihood(x, math.log(s)), (best.x[0], best.x[0] + 0.1)
        ).fun
        assert 2 * (-best.fun - peak) == pytest.approx(stats.chi2.ppf(0.95, 1), rel=2e-3)


def test_equal_arms_have_an_sd_of_0_and_a_problem_with_a_small_one():
    fit = bt.fit(bt.make_logs(*list_cells(4, 3), np.full(12, 10), np.full(12, 5.0), np.full(12, 9.0), rewards="real"))
    assert fit["sd"].value == 0
    assert fit["sd"].low == 0
    assert fit.problem.prior[0][1] == pytest.approx(fit["sd"].high)
    with pytest.raises(bt.InvalidRequest, match="squares"):
        bt.fit(bt.make_logs(*list_cells(4, 3), np.full(12, 10), np.full(12, 5.0), rewards="real"))
