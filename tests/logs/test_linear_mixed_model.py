"""Linear fits, compared with the restricted likelihood of cell means."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize

import banditune as bt
from banditune.logs.models.linear_mixed_model import compute_linear_posteriors, fit_linear_mixed_model, sum_regressions
from banditune.logs.models.random_effects import summarize_gaussian
from helpers.sample_logs import list_cells, make_binary_logs, make_linear_logs, make_real_logs


def test_linear_estimates_maximise_the_restricted_likelihood_of_cell_means():
    logs = make_linear_logs()

    def compute_likelihood(x):
        root = np.array([[math.exp(x[0]), 0.0], [x[1], math.exp(x[2])]])
        noise = math.exp(x[3])
        total, weight, product = 0.0, np.zeros((2, 2)), np.zeros(2)
        parts = []
        for campaign in range(12):
            in_campaign = logs.campaign == campaign
            rows, means = logs.features[in_campaign], logs.mean[in_campaign]
            row_covariance = np.diag(noise**2 / logs.pulls[in_campaign]) + rows @ root @ root.T @ rows.T
            inverse = np.linalg.inv(row_covariance)
            weight += rows.T @ inverse @ rows
            product += rows.T @ inverse @ means
            total += np.linalg.slogdet(row_covariance)[1]
            parts.append((rows, means, inverse))
        mean = np.linalg.solve(weight, product)
        for rows, means, inverse in parts:
            residuals = means - rows @ mean
            total += residuals @ inverse @ residuals
        degrees = logs.pulls.sum() - len(logs.pulls)
        total += np.linalg.slogdet(weight)[1] + 2 * degrees * math.log(noise) + logs.squares.sum() / noise**2
        return total, mean, root @ root.T, noise

    options = {"fatol": 1e-9, "xatol": 1e-6, "maxiter": 4000, "maxfev": 4000}
    best = optimize.minimize(lambda x: compute_likelihood(x)[0], (0, 0, 0, 0), method="Nelder-Mead", options=options)
    _, mean, covariance, noise = compute_likelihood(best.x)
    fit = bt.fit(logs, intercept=False)
    assert fit.model == "linear"
    assert fit.problem.prior[0] == pytest.approx(tuple(mean), rel=1e-3)
    assert np.array(fit.problem.prior[1]) == pytest.approx(covariance, rel=2e-3, abs=1e-4)
    assert fit["noise"].value == pytest.approx(noise, rel=1e-4)
    assert fit["sd[size]"].value == pytest.approx(math.sqrt(covariance[1, 1]), rel=1e-3)
    assert np.array_equal(fit.problem.features, logs.features[:6])


def test_posteriors_of_campaigns_with_one_arm_are_exact():
    logs = bt.make_logs([0, 1], [0, 1], [5, 4], [3.0, 2.0], [1.0, 1.0], rewards="real", features=[(1, 2), (0, 1)])
    mean, covariance = np.array([0.5, 0.1]), np.array([[1.0, 0.3], [0.3, 2.0]])
    posteriors = compute_linear_posteriors(sum_regressions(logs, logs.features), 0.7, mean, covariance)
    for index in range(2):
        row = logs.features[index]
        spread = 0.49 / logs.pulls[index] + row @ covariance @ row
        gain = covariance @ row / spread
        assert posteriors.means[index] == pytest.approx(mean + gain * (logs.mean[index] - row @ mean))
        assert posteriors.covariances[index] == pytest.approx(covariance - np.outer(gain, row @ covariance))


def test_few_campaigns_have_a_diagonal_covariance():
    fit = bt.fit(make_linear_logs(3))
    assert np.array(fit.problem.prior[1])[0, 1] == 0
    assert any("too few for a full covariance" in note for note in fit.notes)
    with pytest.raises(bt.InvalidRequest, match="3 campaigns or more"):
        bt.fit(make_linear_logs(2))


def test_dependent_features_are_refused():
    logs = make_linear_logs()
    dependent = bt.make_logs(
        logs.campaign,
        logs.arm,
        logs.pulls,
        logs.total,
        logs.squares,
        rewards="real",
        features=np.column_stack([logs.features, logs.features.sum(axis=1)]),
    )
    with pytest.raises(bt.InvalidRequest, match="must be linearly independent"):
        bt.fit(dependent)
    with pytest.raises(bt.InvalidRequest, match="must have features"):
        bt.fit(make_binary_logs(), "logistic")


def test_a_direction_without_spread_has_a_small_variance():
    rng = np.random.default_rng(9)
    features = rng.normal(size=(6, 2))
    theta = np.column_stack([rng.normal(0, 1, 15), np.full(15, 0.5)])
    logs = make_real_logs(theta @ features.T, steps=4, features=features[list_cells(15, 6)[1]])
    fitted = fit_linear_mixed_model(sum_regressions(logs, logs.features), "diagonal", ("x", "y"), 0.95)
    estimates = {e.name: e for e in summarize_gaussian(fitted.gaussian, ("x", "y"), 0.95)}
    assert fitted.gaussian.is_regularized
    assert 0 < estimates["sd[y]"].value < 0.3
    assert bt.fit(logs).problem.prior[1][1][1] > 0
