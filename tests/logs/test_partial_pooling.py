"""Priors per arm, pooled with the prior of all arms."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import banditune as bt
from banditune.logs.models.beta_binomial import fit_beta_prior
from helpers.sample_logs import list_cells, make_binary_logs, make_real_logs


def test_with_many_data_every_arm_has_its_own_prior():
    rng = np.random.default_rng(1)
    means, sizes = np.array([0.1, 0.2, 0.2, 0.5, 0.35]), np.array([20, 20, 200, 60, 10])
    campaign, arm = list_cells(300, 5)
    wins = rng.binomial(600, rng.beta(means[arm] * sizes[arm], (1 - means[arm]) * sizes[arm]))
    fit = bt.fit(bt.make_logs(campaign, arm, np.full(1500, 600), wins), per_arm=True)
    a, b = np.array(fit.problem.prior).T
    sd = np.sqrt(means * (1 - means) / (sizes + 1))
    assert (np.abs(a / (a + b) - means) < 4 * sd / math.sqrt(300)).all()
    assert np.log((a + b) / sizes) == pytest.approx(np.zeros(5), abs=4 / math.sqrt(150))
    for index in range(5):
        rows = arm == index
        single = fit_beta_prior(wins[rows] * 1.0, 600.0 - wins[rows], 0.95)
        assert (a[index], b[index]) == pytest.approx((single.a, single.b), rel=0.06)
        single_estimates = {estimate.name: estimate for estimate in single.estimates}
        for name in ("mean", "sd"):
            expected, estimate = single_estimates[name], fit[f"{name}[{index}]"]
            assert (estimate.low, estimate.high) == pytest.approx((expected.low, expected.high), rel=0.03)


@pytest.mark.parametrize(("arms", "campaigns", "pulls"), [(12, 4, 100), (46, 4, 100), (46, 21, 150), (12, 21, 30)])
def test_priors_of_sparse_arms_predict_the_successes_of_the_logs(arms, campaigns, pulls):
    """Rates of 0.4% that differ by 40% between arms and by 30% between campaigns."""
    shares = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        rates = 0.004 * np.exp(rng.normal(0, 0.4, arms) + rng.normal(0, 0.3, (campaigns, arms)))
        pulls_per_cell = rng.poisson(pulls, (campaigns, arms)) + 1
        wins = rng.binomial(pulls_per_cell, rates)
        fit = bt.fit(bt.make_logs(*list_cells(campaigns, arms), pulls_per_cell.ravel(), wins.ravel()), per_arm=True)
        a, b = np.array(fit.problem.prior).T
        mean = a / (a + b)
        variance = pulls_per_cell * mean * (1 - mean) + pulls_per_cell * (pulls_per_cell - 1) * mean * (1 - mean) / (
            a + b + 1
        )
        expected = float((pulls_per_cell * mean).sum())
        assert abs(wins.sum() - expected) < 1.96 * math.sqrt(variance.sum())
        assert (np.abs(mean - 0.004) < 0.004 * 4).all()
        assert len(fit.notes) <= 5
        shares.append(expected / wins.sum())
    assert np.mean(shares) == pytest.approx(1, abs=0.1)


def test_priors_of_arms_with_few_data_are_near_the_common_prior():
    logs = make_binary_logs(arms=3)
    with_new_arm = bt.make_logs(
        [*logs.campaign, 0], [*(f"arm {k}" for k in logs.arm), "new"], [*logs.pulls, 9], [*logs.total, 4]
    )
    fit = bt.fit(with_new_arm, per_arm=True)
    assert fit.arms == 4
    assert fit.problem.names == ("arm 0", "arm 1", "arm 2", "new")
    a, b = np.array(fit.problem.prior).T
    mean, (common_a, common_b) = a / (a + b), bt.fit(with_new_arm, arms=3).problem.prior[0]
    common = common_a / (common_a + common_b)
    for index in range(3):
        rows = logs.arm == index
        estimates = {
            e.name: e for e in fit_beta_prior(logs.total[rows], (logs.pulls - logs.total)[rows], 0.95).estimates
        }["mean"]
        assert abs(mean[index] - estimates.value) < 0.25 * (estimates.high - estimates.low)
    assert common + 0.01 < mean[3] < 4 / 9 - 0.02
    # The arm with the fewest data has the widest prior.
    assert (mean * (1 - mean) / (a + b + 1)).argmax() == 3
    assert any("pooled with that of all arms" in note for note in fit.notes)


def test_arms_of_one_campaign_have_the_common_prior():
    logs = make_binary_logs()
    distinct = bt.make_logs(logs.campaign, np.arange(80), logs.pulls, logs.total)
    fit = bt.fit(distinct, per_arm=True)
    assert set(fit.problem.prior) == {tuple(bt.fit(distinct, arms=4).problem.prior[0])}
    assert any(note.startswith("80 arms (0, 1, 2, 3, 4 ...): in too few campaigns") for note in fit.notes)


def test_notes_on_many_arms_are_merged():
    rng = np.random.default_rng(0)
    logs = make_real_logs(np.zeros((6, 12)) + rng.normal(0, 1, 12))
    notes = bt.fit(logs, per_arm=True).notes
    spread = [note for note in notes if "no spread of mean rewards beyond chance" in note]
    assert len(spread) == 1
    assert re.match(r"\d+ arms \(", spread[0])


def test_intervals_of_sparse_arms_hold_their_means():
    """Arms that show no difference had intervals without a width: 16% of these held the truth."""
    covered = []
    for seed in range(10):
        rng = np.random.default_rng([4, seed, 5])
        rates = 0.004 * np.exp(rng.normal(0, 0.4, 5))
        pulls = rng.poisson(40, (30, 5)) + 1
        wins = rng.binomial(pulls, rates)
        fit = bt.fit(bt.make_logs(*list_cells(30, 5), pulls.ravel(), wins.ravel()), per_arm=True)
        covered += [fit[f"mean[{arm}]"].low <= rates[arm] <= fit[f"mean[{arm}]"].high for arm in range(5)]
    assert np.mean(covered) > 0.95 - 4 * math.sqrt(0.95 * 0.05 / 50)
