"""Logs in which a policy or a significance test chose the pulls."""

from __future__ import annotations

import math

import fit_checks
import fit_recovery
import numpy as np
import pytest

import banditune as bt
from banditune.logs.models import posterior_predictive
from banditune.logs.models.adaptivity import (
    POSSIBLE_STOPPING_NOTE,
    compute_lead_significances,
    is_adaptively_chosen,
    is_stopped_early,
)
from banditune.logs.models.fitted_model import FitOptions
from banditune.logs.models.fitting import MODELS
from helpers.sample_logs import list_cells, make_binary_logs, make_correlated_logs


def make_thompson_logs(seed, means):
    return fit_recovery.binary(len(means), *fit_recovery.thompson(np.random.default_rng(seed), means, 300))


def test_checks_pass_where_a_policy_chose_the_arms():
    for seed in range(4):
        rng = np.random.default_rng([20, seed])
        logs = make_thompson_logs(seed, rng.beta(2, 5, (25, 6)))
        assert is_adaptively_chosen(logs)
        fit = bt.fit(logs)
        assert not any(check.has_failed for check in fit.checks)
        (note,) = (note for note in fit.notes if "were pulled more often" in note)
        assert "'share of arms without a success', 'spread weighted by pulls'" in note
        assert [check.statistic for check in bt.fit(logs, "campaigns").checks] == ["lead of the best arm"]
    assert not is_adaptively_chosen(make_binary_logs())
    assert not is_adaptively_chosen(make_correlated_logs())


def test_checks_fail_on_a_wrong_fit_where_a_policy_chose_the_arms():
    rng = np.random.default_rng(21)
    logits = rng.normal(-1, 0.8, (25, 1)) + rng.normal(0, 0.3, (25, 6))
    fit = bt.fit(make_thompson_logs(22, 1 / (1 + np.exp(-logits))))
    assert "correlation of arms" in {check.statistic for check in fit.checks if check.has_failed}


def test_posterior_means_average_to_the_prior_where_a_policy_chose_the_arms():
    # Averaged over logs, posteriors are the prior. The checks of a policy's logs rely on this.
    p_values = []
    for seed in range(60):
        rng = np.random.default_rng([23, seed])
        logs = fit_recovery.binary(10, *fit_recovery.thompson(rng, rng.beta(2, 5, (10, 4)), 60))
        posterior_means = rng.beta(2 + logs.total, 5 + logs.pulls - logs.total, (200, len(logs.total)))
        prior_means = rng.beta(2, 5, (200, len(logs.total)))
        p_values.append(
            posterior_predictive.make_predictive_check("", posterior_means.std(axis=1), prior_means.std(axis=1)).p_value
        )
    assert abs(np.mean(p_values) - 0.5) < 4 * np.std(p_values) / math.sqrt(60)


def test_the_significance_of_a_lead_agrees_with_its_formula():
    campaign, arm = np.array([0, 0, 0, 1, 2, 2]), np.array([0, 1, 2, 0, 0, 1])
    pulls, wins = np.array([10, 20, 40, 10, 30, 30]), np.array([5, 4, 10, 2, 0, 0])
    rate = 19 / 70
    lead = (5 / 10 - 10 / 40) / math.sqrt(rate * (1 - rate) * (1 / 10 + 1 / 40))
    assert compute_lead_significances(bt.make_logs(campaign, arm, pulls, wins)) == pytest.approx([lead, 0, 0])


def test_checks_pass_where_tests_stopped_at_significance():
    for seed in range(4):
        rng = np.random.default_rng([30, seed])
        means = rng.beta(10, 40, (60, 2))
        logs, ordinary = fit_checks.make_stopped_logs(rng, means), fit_checks.make_uneven_logs(rng, means)
        assert is_stopped_early(logs)
        assert not is_stopped_early(ordinary)
        fit = bt.fit(logs)
        assert not any(check.has_failed for check in fit.checks)
        assert any("as if they ended when it was significant: checks compare means" in n for n in fit.notes)
        assert fit.uses_posterior_draws
        assert len(bt.fit(ordinary).checks) > len(fit.checks)


def test_checks_fail_on_a_wrong_fit_where_tests_stopped_at_significance():
    rng = np.random.default_rng(31)
    fit = bt.fit(fit_checks.make_stopped_logs(rng, fit_checks.draw_correlated_means(rng)))
    assert "correlation of arms" in {check.statistic for check in fit.checks if check.has_failed}


def test_a_lead_that_stopping_may_explain_is_noted():
    # Two lengths. The lead is too large in both, and lengths do not depend on it.
    pulls = np.repeat(np.tile([200, 300], 20), 3)
    wins = (pulls * np.tile([0.1, 0.1, 0.3], 40)).astype(int)
    logs = bt.make_logs(*list_cells(40, 3), pulls, wins)
    assert not is_stopped_early(logs)
    assert POSSIBLE_STOPPING_NOTE in bt.fit(logs).notes
    equal_lengths = bt.make_logs(*list_cells(40, 3), np.full(120, 200), np.tile([20, 20, 60], 40))
    assert POSSIBLE_STOPPING_NOTE not in bt.fit(equal_lengths).notes


def test_estimates_do_not_depend_on_who_chose_the_arms():
    at_random = fit_recovery.beta_binomial(np.random.default_rng(14))
    by_thompson = fit_recovery.beta_binomial_adaptive(np.random.default_rng(14))
    assert by_thompson.pulls.max() > 5 * at_random.pulls.max()
    for logs in (at_random, by_thompson):
        estimates = {e.name: e for e in MODELS["beta-binomial"](logs, FitOptions(False, 10, 0.9999)).estimates}
        assert all(
            estimates[name].low <= value <= estimates[name].high
            for name, value in fit_recovery.beta_truth(2, 5).items()
        )
