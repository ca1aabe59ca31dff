"""Logistic fits, compared with numerical integration."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, stats

from banditune.logs.models.logistic_mixed_model import ImportanceSampler, fit_logistic_mixed_model, make_reward_table
from banditune.logs.models.random_effects import make_covariance_basis
from helpers.sample_logs import logistic_logs, together


def test_logistic_posteriors_are_those_of_an_integral():
    logs = logistic_logs()
    table = make_reward_table(logs, logs.features)
    mean, covariance = np.array([0.3]), np.array([[0.8]])
    found = ImportanceSampler(table, np.zeros(1))(mean, covariance)
    grid = np.linspace(-8, 8, 4001)
    total = 0.0
    for campaign in range(12):
        scores = table.features[campaign, :, 0, None] * grid
        logs_at = (table.successes[campaign, :, None] * scores).sum(0)
        logs_at -= (table.pulls[campaign, :, None] * np.logaddexp(0, scores)).sum(0)
        weight = np.exp(logs_at + stats.norm.logpdf(grid, 0.3, math.sqrt(0.8)))
        mass = np.trapezoid(weight, grid)
        middle = np.trapezoid(weight * grid, grid) / mass
        spread = np.trapezoid(weight * (grid - middle) ** 2, grid) / mass
        total += math.log(mass)
        # Four standard errors of 512 plain draws; what is nearly normal is known better.
        assert found.means[campaign, 0] == pytest.approx(middle, abs=4 * math.sqrt(spread / 512))
        assert found.covariances[campaign, 0, 0] == pytest.approx(spread, rel=4 * math.sqrt(2 / 512))
    assert found.evidence == pytest.approx(total, abs=0.05)


def test_logistic_estimates_are_those_of_the_integrated_likelihood():
    logs = logistic_logs(campaigns=40)
    table = make_reward_table(logs, logs.features)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)

    def likelihood(mean, sd):
        scores = table.features[:, :, 0, None] * (mean + sd * nodes)
        found = (table.successes[:, :, None] * scores - table.pulls[:, :, None] * np.logaddexp(0, scores)).sum(axis=1)
        return np.log(np.exp(found) @ weights).sum()

    def restricted(sd):
        """The mean is integrated out, too, numerically."""
        means = np.linspace(-1, 2.5, 141)
        logs_at = np.array([likelihood(mean, sd) for mean in means])
        return math.log(np.exp(logs_at - logs_at.max()).sum()) + logs_at.max()

    best = optimize.minimize_scalar(lambda sd: -restricted(sd), bounds=(0.05, 2), method="bounded").x
    mean = optimize.minimize_scalar(lambda mean: -likelihood(mean, best), bounds=(-1, 2.5), method="bounded").x
    gauss, share = fit_logistic_mixed_model(table, "full")
    assert share > 0.5
    assert math.sqrt(gauss.covariance[0, 0]) == pytest.approx(best, rel=0.01)
    assert gauss.mean[0] == pytest.approx(mean, abs=0.01)


def test_covariances_are_of_the_kind_that_was_asked_for():
    logs = together(arms=4)
    table = make_reward_table(logs, np.eye(4)[logs.arm])
    alike = fit_logistic_mixed_model(table, "alike")[0].covariance
    assert np.ptp(np.diag(alike)) == pytest.approx(0, abs=1e-12)
    assert np.ptp(alike[np.triu_indices(4, 1)]) == pytest.approx(0, abs=1e-12)
    assert [len(make_covariance_basis(5, kind)) for kind in ("full", "diagonal", "alike")] == [15, 5, 2]
