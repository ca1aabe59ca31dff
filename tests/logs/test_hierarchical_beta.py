"""Fits of campaigns: the spread within campaigns, compared with numerical integration."""

from __future__ import annotations

import math

import fit_recovery
import numpy as np
import pytest
from scipy import optimize, stats

import banditune as bt
from banditune.logs.models import hierarchical_beta
from helpers.sample_logs import list_cells, make_binary_logs, make_correlated_logs, make_rare_logs


def test_campaigns_keep_the_correlation_of_arms():
    logs = make_correlated_logs()
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
    assert any("are more correlated" in note and "campaigns" in note for note in independent.notes)


def integrate_centres(logs, size, centre_size):
    """The log likelihood of a size and the means of the centres, by SciPy's beta-binomial distribution and quadrature."""
    overall = logs.total.sum() / logs.pulls.sum()
    total, centres = 0.0, []
    for campaign in range(len(logs.campaigns)):
        in_campaign = logs.campaign == campaign
        wins, pulls = logs.total[in_campaign], logs.pulls[in_campaign]

        def compute_log_density(logit, wins=wins, pulls=pulls):
            success, failure = 1 / (1 + np.exp(-logit)), 1 / (1 + np.exp(logit))
            prior = stats.beta.logpdf(success, centre_size * overall, centre_size * (1 - overall)) + np.log(
                success * failure
            )
            return prior + stats.betabinom.logpmf(wins[:, None], pulls[:, None], size * success, size * failure).sum(
                axis=0
            )

        grid = np.linspace(-200, 20, 60_001)
        log_density = compute_log_density(grid)
        weights = np.exp(log_density - log_density.max())
        total += log_density.max() + math.log(np.trapezoid(weights, grid))
        centres.append(np.average(1 / (1 + np.exp(-grid)), weights=weights))
    return total, np.array(centres)


@pytest.mark.parametrize("logs", [make_rare_logs(campaigns=5, pulls=600), make_binary_logs(campaigns=4)])
def test_the_likelihood_of_a_spread_within_campaigns_agrees_with_integration(logs):
    cells = hierarchical_beta.make_beta_cells(logs.campaign, logs.total, (logs.pulls - logs.total).astype(float))
    sizes = [
        (2.0, cells.centre_concentration),
        (40.0, cells.centre_concentration / 5),
        (8000.0, cells.centre_concentration),
        (8000.0, 3000.0),
    ]
    computed = [
        hierarchical_beta.compute_evidence(cells._replace(centre_concentration=centre_size), math.log(size))
        for size, centre_size in sizes
    ]
    expected = [integrate_centres(logs, *pair) for pair in sizes]
    for index in range(1, 4):
        rise = expected[index][0] - expected[0][0]
        assert computed[index][0] - computed[0][0] == pytest.approx(rise, abs=1e-3)
    for (_, mean), (_, exact) in zip(computed, expected, strict=True):
        assert mean == pytest.approx(exact, rel=5e-3)


@pytest.mark.parametrize("name", ["campaigns, Thompson", "campaigns, two long"])
def test_the_prior_of_centres_has_the_highest_likelihood(name):
    logs = fit_recovery.DESIGNS[name][1](np.random.default_rng(1))
    cells = hierarchical_beta.make_beta_cells(logs.campaign, logs.total, logs.pulls - logs.total)
    fitted, size = hierarchical_beta.fit_concentration_and_centres(cells)

    def compute_loss(parameters):
        return -hierarchical_beta.compute_evidence(
            hierarchical_beta.replace_centre_logit(cells, parameters[2])._replace(
                centre_concentration=math.exp(parameters[1])
            ),
            parameters[0],
        )[0]

    start = np.array([size, math.log(fitted.centre_concentration), hierarchical_beta.compute_logit(fitted.centre_mean)])
    best = optimize.minimize(
        compute_loss, start + np.array([0.5, -0.5, 0.2]), method="Nelder-Mead", options={"xatol": 1e-3, "fatol": 1e-4}
    )
    assert compute_loss(start) == pytest.approx(best.fun, abs=0.01)
    assert fitted.centre_mean == pytest.approx(1 / (1 + math.exp(-best.x[2])), rel=0.01)
    # The rate of all pulls is not the mean of campaigns here.
    assert abs(cells.centre_mean / fitted.centre_mean - 1) > 0.1


def test_campaigns_with_two_arms_determine_the_spread(monkeypatch):
    monkeypatch.setattr(hierarchical_beta, "MAX_INFORMATIVE_CELLS", 200)
    rng = np.random.default_rng(5)
    campaign = np.concatenate([np.arange(300), [300, 300]])
    arm = np.concatenate([np.zeros(301, int), [1]])
    pulls = np.full(302, 50)
    for successes in (5, 25):
        total = np.concatenate([rng.binomial(50, 0.2, 300), [5, successes]])
        fit = bt.fit(bt.make_logs(campaign, arm, pulls, total), "campaigns", arms=2)
        assert len(fit.problem.posteriors) == 1
        assert (fit["sd within campaigns"].value > 0) == (successes > 5)
        assert any(
            "estimated from 1 campaign, chosen at random among those with two arms" in note for note in fit.notes
        )


def test_the_evidence_of_chunks_adds_up(monkeypatch):
    logs = make_binary_logs()
    cells = hierarchical_beta.make_beta_cells(logs.campaign, logs.total, logs.pulls - logs.total)
    at_once = hierarchical_beta.compute_evidence(cells, 3.0)
    monkeypatch.setattr(hierarchical_beta, "MAX_CHUNK_NODES", 300)
    in_chunks = hierarchical_beta.compute_evidence(cells, 3.0)
    assert in_chunks[0] == pytest.approx(at_once[0])
    assert np.allclose(in_chunks[1], at_once[1])
    monkeypatch.setattr(hierarchical_beta, "MAX_INFORMATIVE_CELLS", 41)
    assert any("estimated from 10 campaigns" in note for note in bt.fit(logs, "campaigns").notes)


def test_the_spread_of_rare_rewards_within_campaigns_is_estimated():
    fit = bt.fit(make_rare_logs(), "campaigns")["sd within campaigns"]
    truth = math.sqrt(0.001 / 8001)
    assert fit.low < truth < fit.high
    assert 0.5 * truth < fit.value < 2 * truth
    # A hundredth of the largest possible standard deviation.
    equal_arms = bt.fit(make_rare_logs(size=None), "campaigns")["sd within campaigns"]
    assert equal_arms.low == 0
    assert equal_arms.value <= equal_arms.high < 0.01 * math.sqrt(0.001)
    assert equal_arms.high > 0


def test_equal_arms_of_campaigns_differ_by_the_upper_end_of_the_spread():
    logs = bt.make_logs(*list_cells(6, 3), np.full(18, 1000), np.repeat([3, 5, 8, 2, 4, 6], 3))
    fit = bt.fit(logs, "campaigns")
    spread = fit["sd within campaigns"]
    assert (spread.value, spread.low) == (0, 0)
    assert any("do not differ beyond chance" in note for note in fit.notes)
    ((a, b), *_), *_ = fit.problem.posteriors
    size = 14 / 3 * 0.001 * (1 - 14 / 3 * 0.001) / spread.high**2 - 1
    assert a + b == pytest.approx(size + 1000, rel=1e-3)
    real = bt.make_logs(*list_cells(4, 3), np.full(12, 10), np.full(12, 5.0), np.full(12, 9.0), rewards="real")
    spread = bt.fit(real, "campaigns")["sd within campaigns"]
    assert (spread.value, spread.low) == (0, 0)
    assert 0.01 < spread.high < 1


def test_a_campaign_without_successes_has_a_positive_mean():
    logs = bt.make_logs(*list_cells(4, 2), np.full(8, 500), [0, 0, 3, 2, 1, 4, 2, 2])
    first = bt.fit(logs, "campaigns").problem.posteriors[0][0]
    mean = first[0] / sum(first)
    assert 14 / 4000 / 20 < mean < 14 / 4000 / 2
