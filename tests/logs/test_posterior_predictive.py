"""Posterior predictive checks: right fits pass, wrong fits fail."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import banditune as bt
from banditune.logs.models import posterior_predictive, ppc_statistics
from banditune.logs.models.fitted_model import FitOptions
from banditune.logs.models.fitting import MODELS
from helpers.sample_logs import make_binary_logs, make_correlated_logs, make_linear_logs, make_real_logs


def test_checks_pass_on_logs_of_the_model_and_fail_on_others():
    assert not any(check.has_failed for check in bt.fit(make_binary_logs(campaigns=30)).checks)
    failed = {check.statistic for check in bt.fit(make_correlated_logs()).checks if check.has_failed}
    assert "correlation of arms" in failed
    assert not any(check.has_failed for check in bt.fit(make_correlated_logs(), "correlated").checks)
    rng = np.random.default_rng(12)
    ranked = make_real_logs(np.linspace(0, 2, 6) + rng.normal(0, 0.1, (20, 6)))
    notes = bt.fit(ranked).notes
    assert any("same name" in note and "per_arm=True" in note for note in notes)
    assert not any("same name" in note for note in bt.fit(ranked, per_arm=True).notes)
    curved = make_linear_logs()
    totals = curved.total + curved.pulls * 1.5 * curved.features[:, 0] ** 2
    nonlinear = bt.make_logs(
        curved.campaign, curved.arm, curved.pulls, totals, curved.squares, rewards="real", features=curved.features
    )
    assert any("features do not explain" in note for note in bt.fit(nonlinear).notes)


def test_checks_of_many_cells_use_some_campaigns(monkeypatch):
    monkeypatch.setattr(posterior_predictive, "MAX_CHECKED_CELLS", 41)
    assert "checks use 10 of 20 campaigns, chosen at random" in bt.fit(make_binary_logs()).notes


def test_the_lead_statistic_agrees_with_sorting():
    rng = np.random.default_rng(13)
    widths = np.array([3, 1, 2, 5])
    campaign = np.repeat(np.arange(4), widths)
    means = rng.integers(0, 4, (50, 11)) / 4  # many ties
    campaigns = np.split(means, np.cumsum(widths)[:-1], axis=1)
    leads = [
        np.diff(np.sort(means_of_campaign, axis=1)[:, -2:], axis=1)[:, 0]
        for means_of_campaign in campaigns
        if means_of_campaign.shape[1] > 1
    ]
    computed = ppc_statistics.make_lead_statistic(campaign, widths)(means, means)
    assert computed == pytest.approx(np.mean(leads, axis=0), abs=1e-12)


def test_the_memory_of_checks_does_not_grow_with_the_widest_campaign():
    campaign = np.concatenate([np.zeros(2000, int), np.repeat(np.arange(1, 1501), 2)])
    arm = np.concatenate([np.arange(2000), np.tile([0, 1], 1500)])
    pulls = np.concatenate([np.full(2000, 500), np.full(3000, 20)])
    logs = bt.make_logs(campaign, arm, pulls, np.random.default_rng(0).binomial(pulls, 0.2))
    fitted = MODELS["beta-binomial"](logs, FitOptions(False, 2, 0.95))
    tracemalloc.start()
    posterior_predictive.run_predictive_checks(logs, fitted, "beta-binomial")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # 400 replays of 5,000 cells are 16 MB, of which some are held at once; a table of campaigns by arms had 9.6 GB.
    assert peak < 250e6


def test_checks_of_a_wide_campaign_use_some_of_its_arms(monkeypatch):
    monkeypatch.setattr(posterior_predictive, "MAX_CHECKED_CELLS", 30)
    rng = np.random.default_rng(0)
    logs = bt.make_logs(np.zeros(70, int), np.arange(70), np.full(70, 50), rng.binomial(50, rng.beta(2, 5, 70)))
    assert "checks use 30 of the 70 arms of one campaign, chosen at random" in bt.fit(logs).notes
