"""Beta-binomial fits, compared with SciPy and with known priors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, stats

import banditune as bt
from banditune.logs.models.beta_binomial import BetaBinomialCounts, compute_log_pochhammer, fit_beta_prior
from helpers.likelihood_intervals import compute_mean_cut, compute_spread_cut
from helpers.sample_logs import list_cells, make_binary_logs


@pytest.mark.parametrize("x", [1e-6, 0.3, 7.0, 25.0, 1e5])
def test_the_log_of_a_rising_product_is_a_sum_of_logs(x):
    steps = np.array([0.0, 1.0, 2.0, 17.0, 400.0])
    expected = [math.fsum(math.log(x + k) for k in range(int(n))) for n in steps]
    assert compute_log_pochhammer(x, steps) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_the_likelihood_agrees_with_the_beta_binomial_distribution():
    logs = make_binary_logs()
    counts = BetaBinomialCounts(logs.total, logs.pulls - logs.total)
    for a, b in ((0.5, 2.0), (30.0, 70.0)):
        expected = stats.betabinom.logpmf(logs.total, logs.pulls, a, b).sum()
        base = stats.betabinom.logpmf(logs.total, logs.pulls, 1, 1).sum()
        assert counts.compute_shape_likelihood(a, b) - counts.compute_shape_likelihood(1, 1) == pytest.approx(
            expected - base, abs=1e-8
        )


def test_beta_estimates_and_intervals_agree_with_scipy():
    logs = make_binary_logs()

    def compute_likelihood(a, b):
        return stats.betabinom.logpmf(logs.total, logs.pulls, a, b).sum()

    best = optimize.minimize(
        lambda x: -compute_likelihood(*np.exp(x)), (0, 0), method="Nelder-Mead", options={"fatol": 1e-10}
    )
    estimates = {e.name: e for e in fit_beta_prior(logs.total, logs.pulls - logs.total, 0.95).estimates}
    a, b = np.exp(best.x)
    assert (estimates["a"].value, estimates["b"].value) == pytest.approx((a, b), rel=1e-3)
    assert estimates["mean"].value == pytest.approx(a / (a + b), rel=1e-3)
    assert estimates["sd"].value == pytest.approx(stats.beta.std(a, b), rel=1e-3)

    def list_profiles(value):
        """The likelihood at a fixed value of each quantity, as a function of the other parameter, and where to start."""
        yield "a", lambda x: compute_likelihood(value, math.exp(x)), math.log(b)
        yield "b", lambda x: compute_likelihood(math.exp(x), value), math.log(a)
        yield "mean", lambda x: compute_likelihood(value * math.exp(x), (1 - value) * math.exp(x)), math.log(a + b)

        def with_sd(x):
            mean = 1 / (1 + math.exp(-x))
            total = mean * (1 - mean) / value**2 - 1
            return compute_likelihood(mean * total, (1 - mean) * total) if total > 0 else -1e9

        yield "sd", with_sd, math.log(a / b)

    for name, estimate in estimates.items():
        for end in (estimate.low, estimate.high):
            profile, start = next((f, s) for key, f, s in list_profiles(end) if key == name)
            peak = -optimize.minimize_scalar(lambda x, f=profile: -f(x), (start, start + 0.1)).fun
            cut = compute_mean_cut(80) if name == "mean" else compute_spread_cut(79, 80)
            assert 2 * (-best.fun - peak) == pytest.approx(cut, rel=2e-3), name


def test_a_hundred_thousand_cells_are_fitted_in_a_second():
    import time

    rng = np.random.default_rng(0)
    pulls = rng.integers(1, 500, 100_000)
    wins = rng.binomial(pulls, rng.beta(2, 30, len(pulls))).astype(float)
    start = time.process_time()
    fitted = fit_beta_prior(wins, pulls - wins, 0.95)
    assert time.process_time() - start < 3  # one second on an idle core
    assert (fitted.a, fitted.b) == pytest.approx((2, 30), rel=0.03)


def test_without_spread_beyond_chance_the_upper_end_is_infinite():
    pulls = np.full(12, 50)
    fit = bt.fit(bt.make_logs(*list_cells(3, 4), pulls, np.full(12, 10)))
    assert fit["a"].value == math.inf
    assert fit["a"].high == math.inf
    assert fit["sd"].value == 0
    assert fit["sd"].low == 0
    ((a, b),) = fit.problem.prior
    assert 0 < a < b < math.inf
    assert stats.beta.std(a, b) == pytest.approx(fit["sd"].high, rel=0.1)
    assert any("no spread" in note for note in fit.notes)
    assert bt.results.from_json(fit.to_json()) == fit


@pytest.mark.parametrize("mean", [0.002, 0.06, 0.5, 0.998])
def test_where_the_spread_may_be_0_both_shapes_are_unbounded(mean):
    rng = np.random.default_rng(29)
    pulls = rng.integers(1000, 5000, 60)
    fit = bt.fit(bt.make_logs(*list_cells(15, 4), pulls, rng.binomial(pulls, mean)))
    assert fit["sd"].low == 0
    assert fit["a"].high == fit["b"].high == math.inf


def test_arms_that_always_or_never_pay_are_fitted():
    fit = bt.fit(bt.make_logs(*list_cells(4, 3), np.full(12, 30), np.tile([30, 0, 0], 4)))
    assert fit["sd"].value == pytest.approx(math.sqrt(2 / 9), rel=0.02)


@pytest.mark.parametrize("total", [0, 30])
def test_logs_of_constant_rewards_are_refused(total):
    with pytest.raises(bt.InvalidRequest, match="some rewards must be 0 and some 1"):
        bt.fit(bt.make_logs(*list_cells(4, 3), np.full(12, 30), np.full(12, total)))


def test_a_spread_that_chance_explains_is_0():
    rng = np.random.default_rng(0)
    zeros = 0
    for _ in range(16):
        pulls = rng.integers(20, 60, 12)
        wins = rng.binomial(pulls, 0.3)
        estimates = {
            e.name: e for e in fit_beta_prior(wins.astype(float), (pulls - wins).astype(float), 0.95).estimates
        }
        spread = estimates["sd"]
        assert spread.value == 0 or spread.value > 0.15 * spread.high
        assert (spread.value == 0) == (estimates["a"].value == math.inf)
        zeros += spread.value == 0
    assert 0 < zeros < 16
