"""Fits of rewards in [0, 1]."""

from __future__ import annotations

import fit_recovery
import numpy as np
import pytest

import banditune as bt
from banditune.logs.models.beta_rewards import compute_reward_concentration, convert_to_counts
from helpers.sample_logs import make_binary_logs


def test_the_concentration_of_beta_rewards_is_estimated():
    rng = np.random.default_rng(10)
    means = rng.beta(2, 3, 4000)
    rewards = rng.beta(4 * means, 4 * (1 - means), (5, 4000))
    squares = ((rewards - rewards.mean(axis=0)) ** 2).sum(axis=0)
    assert compute_reward_concentration(np.full(4000, 5.0), rewards.mean(axis=0), squares) == pytest.approx(4, abs=0.15)
    wins, losses = convert_to_counts(np.array([10.0]), np.array([0.123456]), 4.0)
    assert (wins[0], losses[0]) == pytest.approx((6.173, 43.83))


def test_rewards_in_the_unit_interval_are_fitted_by_beta_rewards():
    logs = fit_recovery.unit(np.random.default_rng(11))
    fit = bt.fit(logs)
    assert fit.model == "beta"
    assert isinstance(fit.problem, bt.BetaRewards)
    assert not any(check.has_failed for check in fit.checks)
    with pytest.raises(bt.InvalidRequest, match="beta-binomial"):
        bt.fit(make_binary_logs(), "beta")
