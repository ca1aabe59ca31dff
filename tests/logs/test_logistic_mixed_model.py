"""Logistic fits, compared with numerical integration."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, stats

from banditune.logs.models.logistic_mixed_model import ImportanceSampler, fit_logistic_mixed_model, make_reward_table
from banditune.logs.models.random_effects import make_covariance_basis
from helpers.sample_logs import make_correlated_logs, make_logistic_logs


def test_logistic_posteriors_agree_with_integration():
    logs = make_logistic_logs()
    table = make_reward_table(logs, logs.features)
    mean, covariance = np.array([0.3]), np.array([[0.8]])
    posteriors = ImportanceSampler(table, np.zeros(1))(mean, covariance)
    grid = np.linspace(-8, 8, 4001)
    total = 0.0
    for campaign in range(12):
        scores = table.features[campaign, :, 0, None] * grid
        log_likelihood = (table.successes[campaign, :, None] * scores).sum(0)
        log_likelihood -= (table.pulls[campaign, :, None] * np.logaddexp(0, scores)).sum(0)
        weight = np.exp(log_likelihood + stats.norm.logpdf(grid, 0.3, math.sqrt(0.8)))
        mass = np.trapezoid(weight, grid)
        mean_of_theta = np.trapezoid(weight * grid, grid) / mass
        variance = np.trapezoid(weight * (grid - mean_of_theta) ** 2, grid) / mass
        total += math.log(mass)
        # Four standard errors of 512 plain draws. Nearly normal posteriors are more exact.
        assert posteriors.means[campaign, 0] == pytest.approx(mean_of_theta, abs=4 * math.sqrt(variance / 512))
        assert posteriors.covariances[campaign, 0, 0] == pytest.approx(variance, rel=4 * math.sqrt(2 / 512))
    assert posteriors.evidence == pytest.approx(total, abs=0.05)


def test_logistic_estimates_maximise_the_integrated_likelihood():
    logs = make_logistic_logs(campaigns=40)
    table = make_reward_table(logs, logs.features)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)

    def compute_likelihood(mean, sd):
        scores = table.features[:, :, 0, None] * (mean + sd * nodes)
        log_likelihoods = (
            table.successes[:, :, None] * scores - table.pulls[:, :, None] * np.logaddexp(0, scores)
        ).sum(axis=1)
        return np.log(np.exp(log_likelihoods) @ weights).sum()

    def integrate_mean_out(sd):
        """The log likelihood of an sd, where the mean is integrated out numerically."""
        means = np.linspace(-1, 2.5, 141)
        log_likelihoods = np.array([compute_likelihood(mean, sd) for mean in means])
        return math.log(np.exp(log_likelihoods - log_likelihoods.max()).sum()) + log_likelihoods.max()

    best = optimize.minimize_scalar(lambda sd: -integrate_mean_out(sd), bounds=(0.05, 2), method="bounded").x
    mean = optimize.minimize_scalar(lambda mean: -compute_likelihood(mean, best), bounds=(-1, 2.5), method="bounded").x
    gauss, share = fit_logistic_mixed_model(table, "full")
    assert share > 0.5
    assert math.sqrt(gauss.covariance[0, 0]) == pytest.approx(best, rel=0.01)
    assert gauss.mean[0] == pytest.approx(mean, abs=0.01)


def test_covariances_have_the_requested_structure():
    logs = make_correlated_logs(arms=4)
    table = make_reward_table(logs, np.eye(4)[logs.arm])
    exchangeable = fit_logistic_mixed_model(table, "alike")[0].covariance
    assert np.ptp(np.diag(exchangeable)) == pytest.approx(0, abs=1e-12)
    assert np.ptp(exchangeable[np.triu_indices(4, 1)]) == pytest.approx(0, abs=1e-12)
    assert [len(make_covariance_basis(5, kind)) for kind in ("full", "diagonal", "alike")] == [15, 5, 2]
