"""Real rewards of arms with features: x'theta plus noise, theta of every campaign from a common Gaussian."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.logs.campaign_logs import Logs
from banditune.logs.models.likelihood_search import compute_chi_square_quantile
from banditune.logs.models.random_effects import (
    CampaignPosteriors,
    FittedGaussian,
    compute_mean_information,
    compute_scoring_terms,
    fit_random_effects,
    make_covariance_basis,
    summarize_gaussian,
)
from banditune.results.log_results import FittedParameter


class RegressionSums(NamedTuple):
    """Sums over each campaign's decisions: of x x', x y and y y, and how many there were."""

    outer: FloatArray
    product: FloatArray
    square: FloatArray
    pulls: FloatArray


class FittedLinearModel(NamedTuple):
    """The Gaussian of theta, the noise, and their errors."""

    gaussian: FittedGaussian
    noise: float
    estimates: tuple[FittedParameter, ...]


def sum_regressions(logs: Logs, features: FloatArray) -> RegressionSums:
    """Sum the products of features and rewards of every campaign."""
    count, dims = len(logs.campaigns), features.shape[1]
    outer, product, square = np.zeros((count, dims, dims)), np.zeros((count, dims)), np.zeros(count)
    np.add.at(outer, logs.campaign, logs.pulls[:, None, None] * features[:, :, None] * features[:, None, :])
    np.add.at(product, logs.campaign, logs.total[:, None] * features)
    np.add.at(square, logs.campaign, logs.squares + logs.total**2 / logs.pulls)
    return RegressionSums(outer, product, square, logs.decision_counts.astype(float))


def compute_linear_posteriors(
    sums: RegressionSums, noise: float, mean: FloatArray, covariance: FloatArray
) -> CampaignPosteriors:
    """Compute the posterior of every campaign's theta in closed form, also if the sum of x x' is singular."""
    information = sums.outer / noise**2
    dims = len(mean)
    inflated = np.eye(dims) + information @ covariance
    spread = covariance @ np.linalg.inv(inflated)
    spread = (spread + spread.transpose(0, 2, 1)) / 2
    pull = sums.product / noise**2 - information @ mean
    means = mean + np.einsum("iab,ib->ia", spread, pull)
    residual_squares = sums.square - 2 * sums.product @ mean + np.einsum("iab,a,b->i", sums.outer, mean, mean)
    misfit = residual_squares / noise**2 - np.einsum("ia,iab,ib->i", pull, spread, pull)
    sizes = np.linalg.slogdet(inflated)[1]
    evidence = -0.5 * float((sums.pulls * math.log(2 * math.pi * noise**2) + sizes + misfit).sum())
    return CampaignPosteriors(means, spread, compute_mean_information(information, covariance), evidence)


def _update_noise(
    sums: RegressionSums, mean: FloatArray, covariance: FloatArray, posterior: CampaignPosteriors
) -> float:
    """Make a step of EM for the noise, from residuals around the posterior of theta, whose mean is estimated too."""
    inverse = np.linalg.inv(covariance)
    terms = compute_scoring_terms(posterior, mean, covariance)
    shrunk = posterior.covariances @ inverse
    spread = posterior.covariances + shrunk @ terms.mean_error_covariance @ shrunk.transpose(0, 2, 1)
    theta = posterior.means
    residual_squares = (
        sums.square - 2 * (sums.product * theta).sum(axis=1) + np.einsum("iab,ia,ib->i", sums.outer, theta, theta)
    ) + np.einsum("iab,iba->i", sums.outer, spread)
    return math.sqrt(float(residual_squares.sum() / sums.pulls.sum()))


def fit_linear_mixed_model(
    sums: RegressionSums, kind: str, names: tuple[str, ...], confidence: float
) -> FittedLinearModel:
    """Fit by restricted maximum likelihood. Scoring for the Gaussian and EM for the noise alternate until both converge."""
    total, dims = sums.outer.sum(axis=0), sums.product.shape[1]
    mean = np.linalg.lstsq(total, sums.product.sum(axis=0), rcond=1e-10)[0]
    residual_squares = float(sums.square.sum() - mean @ sums.product.sum(axis=0))
    noise = math.sqrt(max(residual_squares / sums.pulls.sum(), 1e-12 * float(sums.square.sum() / sums.pulls.sum())))
    scale = np.maximum(np.diag(total) / sums.pulls.sum(), 1e-12)
    covariance = np.diag(0.3 * noise**2 / scale / dims)
    basis = make_covariance_basis(dims, kind)
    regularized = False
    for _ in range(40):
        before = noise
        gauss = fit_random_effects(
            lambda m, c: compute_linear_posteriors(sums, before, m, c),  # noqa: B023
            mean,
            covariance,
            basis,
            regularized=regularized,
        )
        mean, covariance = gauss.mean, gauss.covariance
        noise = _update_noise(sums, mean, covariance, gauss.posterior)
        # The first noise is too large, so that the variance in a direction may be estimated as 0.
        regularized = gauss.is_regularized and abs(noise / before - 1) < 0.01
        if abs(noise / before - 1) < 1e-6:
            break
    return FittedLinearModel(
        gauss, noise, (*summarize_gaussian(gauss, names, confidence), _estimate_noise(sums, gauss, noise, confidence))
    )


def _estimate_noise(sums: RegressionSums, gauss: FittedGaussian, noise: float, confidence: float) -> FittedParameter:
    """Estimate the noise, with a scaled chi-square. Its degrees of freedom are reduced by those of the estimated thetas."""
    shrunk = gauss.posterior.covariances @ np.linalg.inv(gauss.covariance)
    count, dims = gauss.posterior.means.shape
    degrees = max(float(sums.pulls.sum() - count * dims + np.einsum("iab,iba->", shrunk, shrunk)), 1.0)
    tail = 0.5 + confidence / 2
    low, high = (
        noise * math.sqrt(degrees / compute_chi_square_quantile(quantile, degrees)) for quantile in (tail, 1 - tail)
    )
    return FittedParameter(name="noise", value=noise, low=low, high=high)
