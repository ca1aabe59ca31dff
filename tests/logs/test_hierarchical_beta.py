"""Fits of campaigns: the spread within campaigns, compared with numerical integration."""

from __future__ import annotations

import math

import numpy as np
import pytest
import recovery
from scipy import optimize, stats

import banditune as bt
from banditune.logs.models import hierarchical_beta
from helpers.sample_logs import binary_logs, cells, rare_logs, together


def test_campaigns_keep_what_arms_have_in_common():
    logs = together()
    fit = bt.fit(logs, "campaigns")
    means = fit.problem.sample(20_000, np.random.default_rng(0)).means
    inside = means.std(axis=1, ddof=1)
    raw = np.array([logs.mean[logs.campaign == c].std(ddof=1) for c in range(40)])
    # The raw spread within campaigns holds the noise of 200 pulls; the posterior's does not.
    noise = (logs.mean * (1 - logs.mean) / 200).mean()
    assert (inside**2).mean() == pytest.approx((raw**2).mean() - noise, rel=0.25)
    assert means.mean(axis=1).std() == pytest.approx(np.bincount(logs.campaign, logs.mean).std() / 5, rel=0.1)
    assert not any(check.has_failed for check in fit.checks)
    independent = bt.fit(logs)
    assert any("rise and fall together" in note and "campaigns" in note for note in independent.notes)


def centre_oracle(logs, size, worth):
    """By SciPy's beta-binomial distribution and quadrature: the log likelihood of a size, and the centres' means."""
    overall = logs.total.sum() / logs.pulls.sum()
    total, centres = 0.0, []
    for campaign in range(len(logs.campaigns)):
        mine = logs.campaign == campaign
        wins, pulls = logs.total[mine], logs.pulls[mine]

        def height(logit, wins=wins, pulls=pulls):
            good, bad = 1 / (1 + np.exp(-logit)), 1 / (1 + np.exp(logit))
            prior = stats.beta.logpdf(good, worth * overall, worth * (1 - overall)) + np.log(good * bad)
            return prior + stats.betabinom.logpmf(wins[:, None], pulls[:, None], size * good, size * bad).sum(axis=0)

        grid = np.linspace(-200, 20, 60_001)
        heights = height(grid)
        weights = np.exp(heights - heights.max())
        total += heights.max() + math.log(np.trapezoid(weights, grid))
        centres.append(np.average(1 / (1 + np.exp(-grid)), weights=weights))
    return total, np.array(centres)


@pytest.mark.parametrize("logs", [rare_logs(campaigns=5, pulls=600), binary_logs(campaigns=4)])
def test_the_likelihood_of_a_spread_within_campaigns_is_that_of_an_integral(logs):
    mine = hierarchical_beta.make_beta_cells(logs.campaign, logs.total, (logs.pulls - logs.total).astype(float))
    places = [
        (2.0, mine.centre_concentration),
        (40.0, mine.centre_concentration / 5),
        (8000.0, mine.centre_concentration),
        (8000.0, 3000.0),
    ]
    found = [
        hierarchical_beta.compute_evidence(mine._replace(centre_concentration=worth), math.log(size))
        for size, worth in places
    ]
    expected = [centre_oracle(logs, *place) for place in places]
    for place in range(1, 4):
        rise = expected[place][0] - expected[0][0]
        assert found[place][0] - found[0][0] == pytest.approx(rise, abs=1e-3)
    for (_, mean), (_, exact) in zip(found, expected, strict=True):
        assert mean == pytest.approx(exact, rel=5e-3)


@pytest.mark.parametrize("name", ["campaigns, Thompson", "campaigns, two long"])
def test_the_prior_of_centres_is_the_likeliest_of_all(name):
    logs = recovery.DESIGNS[name][1](np.random.default_rng(1))
    mine = hierarchical_beta.make_beta_cells(logs.campaign, logs.total, logs.pulls - logs.total)
    found, size = hierarchical_beta.fit_concentration_and_centres(mine)

    def fall(numbers):
        return -hierarchical_beta.compute_evidence(
            hierarchical_beta.replace_centre_logit(mine, numbers[2])._replace(
                centre_concentration=math.exp(numbers[1])
            ),
            numbers[0],
        )[0]

    start = np.array([size, math.log(found.centre_concentration), hierarchical_beta.compute_logit(found.centre_mean)])
    best = optimize.minimize(
        fall, start + np.array([0.5, -0.5, 0.2]), method="Nelder-Mead", options={"xatol": 1e-3, "fatol": 1e-4}
    )
    assert fall(start) == pytest.approx(best.fun, abs=0.01)
    assert found.centre_mean == pytest.approx(1 / (1 + math.exp(-best.x[2])), rel=0.01)
    # The rate of all pulls is no mean of campaigns here.
    assert abs(mine.centre_mean / found.centre_mean - 1) > 0.1


def test_among_many_campaigns_of_one_arm_those_of_two_tell_the_spread(monkeypatch):
    monkeypatch.setattr(hierarchical_beta, "MAX_INFORMATIVE_CELLS", 200)
    rng = np.random.default_rng(5)
    campaign = np.concatenate([np.arange(300), [300, 300]])
    arm = np.concatenate([np.zeros(301, int), [1]])
    pulls = np.full(302, 50)
    for good in (5, 25):
        total = np.concatenate([rng.binomial(50, 0.2, 300), [5, good]])
        fit = bt.fit(bt.make_logs(campaign, arm, pulls, total), "campaigns", arms=2)
        assert len(fit.problem.posteriors) == 1
        assert (fit["sd within campaigns"].value > 0) == (good > 5)
        assert any("estimated from 1 of them, chosen at random among those with two arms" in note for note in fit.notes)


def test_pieces_of_campaigns_add_up(monkeypatch):
    logs = binary_logs()
    mine = hierarchical_beta.make_beta_cells(logs.campaign, logs.total, logs.pulls - logs.total)
    whole = hierarchical_beta.compute_evidence(mine, 3.0)
    monkeypatch.setattr(hierarchical_beta, "MAX_CHUNK_NODES", 300)
    parts = hierarchical_beta.compute_evidence(mine, 3.0)
    assert parts[0] == pytest.approx(whole[0])
    assert np.allclose(parts[1], whole[1])
    monkeypatch.setattr(hierarchical_beta, "MAX_INFORMATIVE_CELLS", 41)
    assert any("estimated from 10 of them" in note for note in bt.fit(logs, "campaigns").notes)


def test_rare_rewards_have_a_spread_within_campaigns_and_an_interval():
    fit = bt.fit(rare_logs(), "campaigns")["sd within campaigns"]
    truth = math.sqrt(0.001 / 8001)
    assert fit.low < truth < fit.high
    assert 0.5 * truth < fit.value < 2 * truth
    # Half of the old floor, a hundredth of the largest possible standard deviation.
    none = bt.fit(rare_logs(size=None), "campaigns")["sd within campaigns"]
    assert none.low == 0
    assert none.value <= none.high < 0.01 * math.sqrt(0.001)
    assert none.high > 0


def test_arms_of_campaigns_without_spread_differ_as_much_as_logs_allow():
    logs = bt.make_logs(*cells(6, 3), np.full(18, 1000), np.repeat([3, 5, 8, 2, 4, 6], 3))
    fit = bt.fit(logs, "campaigns")
    spread = fit["sd within campaigns"]
    assert (spread.value, spread.low) == (0, 0)
    assert any("do not differ beyond chance" in note for note in fit.notes)
    ((a, b), *_), *_ = fit.problem.posteriors
    size = 14 / 3 * 0.001 * (1 - 14 / 3 * 0.001) / spread.high**2 - 1
    assert a + b == pytest.approx(size + 1000, rel=1e-3)
    real = bt.make_logs(*cells(4, 3), np.full(12, 10), np.full(12, 5.0), np.full(12, 9.0), rewards="real")
    spread = bt.fit(real, "campaigns")["sd within campaigns"]
    assert (spread.value, spread.low) == (0, 0)
    assert 0.01 < spread.high < 1


def test_a_campaign_that_never_paid_is_not_taken_to_pay_nothing():
    logs = bt.make_logs(*cells(4, 2), np.full(8, 500), [0, 0, 3, 2, 1, 4, 2, 2])
    first = bt.fit(logs, "campaigns").problem.posteriors[0][0]
    mean = first[0] / sum(first)
    assert 14 / 4000 / 20 < mean < 14 / 4000 / 2
