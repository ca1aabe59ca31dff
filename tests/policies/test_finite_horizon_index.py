"""The finite-horizon index: its formula, its limits, and its regret on ten arms."""

from __future__ import annotations

import math

import numpy as np
import pytest

import banditune as bt
from banditune.core.policy import Setting
from banditune.policies.finite_horizon_index import (
    compute_bernoulli_index,
    compute_gaussian_index,
    exceeds_bernoulli_bound,
    exceeds_gaussian_bound,
)
from banditune.simulation.estimators.arm_moments import ArmRecord

HORIZON = 100
REGRETS = {
    200: ((0.365, 1.496, 0.483, 2.037), 9.20, 20_000),
    500: ((0.483, 0.757, 1.066, 2.786), 12.36, 20_000),
    1000: ((0.53, 0.854, 1.073, 3.077), 15.21, 20_000),
    10_000: ((0.485, 0.115, 1.239, 3.549), 29.1, 1000),
}
"""Constants, regret on ten Bernoulli arms with a uniform prior as another program measured it, and runs, by the horizon."""


def make_arm(pulls, total):
    return ArmRecord(float(pulls), float(total), math.nan)


def make_setting(*options):
    return Setting(4, 0, HORIZON, np.empty((0, 4)), np.array(options, dtype=float))


def simulate_with_numpy(constants, horizon, runs, rng, noise=None):
    """Regrets on ten arms, all instances together. With a noise, means are standard normal and rewards Gaussian."""
    c, d, e, s = constants
    means = rng.random((runs, 10)) if noise is None else rng.standard_normal((runs, 10))
    pulls, total, rows = np.zeros((runs, 10)), np.zeros((runs, 10)), np.arange(runs)
    for step in range(horizon):
        weight = pulls + s * (2 if noise is None else noise**2)
        mean = (total + (s if noise is None else 0)) / weight
        variance = mean * (1 - mean) if noise is None else noise**2
        width = np.sqrt(2 * c * variance * np.log1p((horizon - step) / (d * weight**e)) / weight)
        arm = (mean + width).argmax(axis=1)
        if noise is None:
            total[rows, arm] += rng.random(runs) < means[rows, arm]
        else:
            total[rows, arm] += means[rows, arm] + noise * rng.standard_normal(runs)
        pulls[rows, arm] += 1
    return (pulls * (means.max(axis=1, keepdims=True) - means)).sum(axis=1)


def compute_error(*samples):
    """The standard error of the sum or difference of independent means."""
    return math.sqrt(sum(sample.var(ddof=1) / len(sample) for sample in samples))


@pytest.mark.parametrize("horizon", REGRETS)
def test_the_regret_is_the_measured_one(horizon):
    constants, expected, runs = REGRETS[horizon]
    policy = bt.policies.FiniteHorizonIndex()
    regrets = bt.simulate(policy, bt.Bernoulli(arms=10), [constants], horizon=horizon, runs=runs)[0]
    # The measured value has about the same error as its last digit.
    assert abs(regrets.mean() - expected) < 4 * compute_error(regrets) + 0.05


@pytest.mark.parametrize("horizon", [200, 1000])
def test_the_regret_is_that_of_numpy(horizon):
    constants, _, runs = REGRETS[horizon]
    expected = simulate_with_numpy(constants, horizon, 2000, np.random.default_rng(horizon))
    policy = bt.policies.FiniteHorizonIndex()
    regrets = bt.simulate(policy, bt.Bernoulli(arms=10), [constants], horizon=horizon, runs=runs)[0]
    assert abs(regrets.mean() - expected.mean()) < 4 * compute_error(regrets, expected)


def test_the_regret_on_gaussian_arms_is_that_of_numpy():
    constants, noise = (0.3, 0.5, 1.2, 0.9), 0.8
    expected = simulate_with_numpy(constants, 200, 4000, np.random.default_rng(1), noise)
    policy, problem = bt.policies.GaussianFiniteHorizonIndex(), bt.Gaussian(arms=10, noise=noise)
    regrets = bt.simulate(policy, problem, [constants], horizon=200, runs=4000)[0]
    assert abs(regrets.mean() - expected.mean()) < 4 * compute_error(regrets, expected)


def test_the_contract_is_kept():
    """Among others, both shortcuts pull the arms of the plain loop at 13 rows of constants."""
    policy = bt.policies.FiniteHorizonIndex(prior=(1, 1))
    report = bt.testing.check_policy(policy, bt.Bernoulli(arms=10), horizon=200)
    assert report["shortcut"].runs == 300


def test_the_index_is_the_formula():
    value = compute_bernoulli_index(make_arm(7, 4), make_setting(2, 3), 40, (0.5, 0.7, 1.3, 1.5))
    weight, p = 14.5, 7 / 14.5
    assert value == pytest.approx(p + math.sqrt(p * (1 - p) * math.log(1 + 60 / (0.7 * weight**1.3)) / weight))
    value = compute_gaussian_index(make_arm(7, 4), make_setting(-1, 4, 2), 40, (0.5, 0.7, 1.3, 1.5))
    assert value == pytest.approx(-2 / 13 + 2 * math.sqrt(math.log(1 + 60 / (0.7 * 13**1.3)) / 13))


@pytest.mark.parametrize("total", [0, 5])
def test_without_a_prior_an_arm_with_equal_rewards_has_no_width(total):
    assert compute_bernoulli_index(make_arm(5, total), make_setting(1, 1), 10, (1, 1, 1, 0)) == total / 5


def test_without_a_prior_an_arm_without_rewards_comes_first():
    assert compute_bernoulli_index(make_arm(0, 0), make_setting(1, 1), 0, (1, 1, 1, 0)) == math.inf
    assert compute_gaussian_index(make_arm(0, 0), make_setting(0, 1, 1), 0, (1, 1, 1, 0)) == math.inf


@pytest.mark.parametrize(("step", "c"), [(HORIZON, 1.0), (HORIZON + 50, 1.0), (20, 0.0)])
def test_after_the_horizon_or_at_c_0_the_index_is_the_posterior_mean(step, c):
    assert compute_bernoulli_index(make_arm(6, 2), make_setting(1, 1), step, (c, 1, 1, 1)) == 3 / 8
    assert compute_gaussian_index(make_arm(6, 2), make_setting(3, 2, 1), step, (c, 1, 1, 1)) == 1.0


def test_the_width_vanishes_with_the_pulls_and_stays_finite_with_few():
    for pulls, width in ((1e12, 1e-9), (1e15, 1e-12)):
        arm, setting = make_arm(pulls, pulls / 4), make_setting(1, 1)
        assert 0.25 <= compute_bernoulli_index(arm, setting, 0, (1, 1, 1, 1)) <= 0.25 + width
    least, most = (1e-300, 1e-100, 1e-300, 1e-6), (1e6, 1e100, 100, 1e100)
    for constants in (least, most, (1e6, 1e-100, 100, 1e-6)):
        for pulls in (0, 1, 1e6):
            assert compute_bernoulli_index(make_arm(pulls, pulls), make_setting(1, 1), 0, constants) >= 0
            assert compute_gaussian_index(make_arm(pulls, pulls), make_setting(0, 1, 1), 0, constants) >= 0


def test_the_index_falls_with_the_step_and_exceeds_its_tests():
    rng, seen = np.random.default_rng(2), 0
    for compute, exceeds, setting in (
        (compute_bernoulli_index, exceeds_bernoulli_bound, make_setting(0.5, 2)),
        (compute_gaussian_index, exceeds_gaussian_bound, make_setting(0.3, 2, 1.5)),
    ):
        for _ in range(300):
            pulls = int(rng.integers(0, 50))
            arm, constants = make_arm(pulls, rng.integers(0, pulls + 1)), np.exp(rng.normal(size=4) / 2)
            values = [compute(arm, setting, step, constants) for step in range(0, HORIZON + 1, 10)]
            assert (np.diff(values) <= 1e-15).all()
            assert not exceeds(arm, setting, 0, constants, values[0])
            assert not exceeds(arm, setting, HORIZON, constants, values[-1])
            assert exceeds(arm, setting, 0, constants, values[-1] - 1e-9)
            seen += values[0] > values[-1]
    assert seen == 600


def test_the_gaussian_index_moves_with_the_scale_of_rewards():
    constants = (0.4, 0.3, 1.2, 0.8)
    plain = compute_gaussian_index(make_arm(9, 2), make_setting(0.5, 4, 2), 30, constants)
    scaled = compute_gaussian_index(make_arm(9, 10 * 9 + 3 * 2), make_setting(10 + 3 * 0.5, 4, 6), 30, constants)
    assert scaled == pytest.approx(10 + 3 * plain)


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (bt.policies.FiniteHorizonIndex, {"prior": (0, 1)}, "prior >= 0.01"),
        (bt.policies.FiniteHorizonIndex, {"prior": 1}, "2 finite numbers"),
        (bt.policies.GaussianFiniteHorizonIndex, {"prior": (0, 0)}, "above 1e-50"),
        (bt.policies.GaussianFiniteHorizonIndex, {"noise": -1}, "above 1e-50"),
    ],
)
def test_a_wrong_prior_or_noise_is_refused(make, options, message):
    with pytest.raises(bt.InvalidRequest, match=message):
        make(**options)


@pytest.mark.slow
def test_the_regret_is_that_of_exact_gittins_indices():
    """Paired on 20,000 instances. Gittins indices with a finite horizon are not optimal either."""
    problem, constants = bt.Bernoulli(arms=10), REGRETS[200][0]
    exact = bt.simulate(bt.policies.Gittins(), problem, horizon=200, runs=20_000)[0]
    regrets = bt.simulate(bt.policies.FiniteHorizonIndex(), problem, [constants], horizon=200, runs=20_000)[0]
    assert abs((regrets - exact).mean()) < 4 * compute_error(regrets - exact) + 0.02
