"""Vectors theta, one for each campaign, from a common Gaussian: its mean and covariance by restricted likelihood.

The campaigns' data are used only through their posterior distributions, which the linear and the logistic model compute.
With posterior means e and covariances V under N(mu, S), and Q the inverse of S, the slopes of the log likelihood are sums
of u = Q (e - mu) for mu and of (u u' - W) / 2 for S, with W = Q - Q V Q. W is also a campaign's information on mu. These
formulas hold even if a campaign has no information on some directions. Integrating mu out (restricted likelihood) adds
W C W to u u', where C is the inverse of the sum of W.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.errors import InvalidRequest
from banditune.logs.models.likelihood_search import compute_chi_square_quantile
from banditune.results.log_results import FittedParameter
from banditune.results.student_t import compute_student_quantile

MAX_SCORING_ROUNDS = 60


MIN_VARIANCE_SHARE = 1e-3
"""The variance of a direction counts as 0 if it is below this share of the mean variance."""


class CampaignPosteriors(NamedTuple):
    """The mean and covariance of every campaign's theta, its information W, and the log likelihood of all together.

    W is a separate field, because it could be negative if it were computed from sampled covariances.
    """

    means: FloatArray
    covariances: FloatArray
    mean_information: FloatArray
    evidence: float


class ScoringTerms(NamedTuple):
    """The terms of the module's docstring: u, W, C, the slope in S and the restricted likelihood."""

    mean_slopes: FloatArray
    mean_information: FloatArray
    mean_error_covariance: FloatArray
    covariance_slope: FloatArray
    curvature: FloatArray
    restricted_likelihood: float


def compute_mean_information(precision: FloatArray, covariance: FloatArray) -> FloatArray:
    """Compute the information of campaigns on the mean, W, from the precision of their data on theta."""
    information = precision @ np.linalg.inv(np.eye(len(covariance)) + covariance @ precision)
    return np.asarray((information + information.transpose(0, 2, 1)) / 2)


class FittedGaussian(NamedTuple):
    """A fitted Gaussian: mean, covariance, covariance of the mean's error, degrees of freedom of variances and of means.

    `is_regularized`: without regularization, the covariance would have a direction without variance. The covariance is a
    weighted sum of `covariance_basis`, and the errors of the weights have the covariance `weight_covariance`.
    """

    mean: FloatArray
    covariance: FloatArray
    mean_error_covariance: FloatArray
    degrees: FloatArray
    mean_degrees: FloatArray
    posterior: CampaignPosteriors
    is_regularized: bool
    covariance_basis: FloatArray
    weight_covariance: FloatArray


def make_covariance_basis(dims: int, kind: str) -> FloatArray:
    """Make matrices that span covariances: "full", "diagonal", or "alike" (one variance, one covariance)."""
    if kind == "alike":
        return np.stack([np.eye(dims), np.ones((dims, dims)) - np.eye(dims)])
    pairs = [(k, l) for k in range(dims) for l in range(k, dims if kind == "full" else k + 1)]  # noqa: E741
    basis = np.zeros((len(pairs), dims, dims))
    for position, (row, column) in enumerate(pairs):
        basis[position, row, column] = basis[position, column, row] = 1.0
    return basis


def fit_random_effects(
    posterior_at: Callable[[FloatArray, FloatArray], CampaignPosteriors],
    mean: FloatArray,
    covariance: FloatArray,
    basis: FloatArray,
    precision: float = 1e-9,
    slack: float = 1e-6,
    regularized: bool = False,
) -> FittedGaussian:
    """Fit the Gaussian by restricted maximum likelihood.

    If its covariance is singular, the fit is repeated with half the log of the determinant added to the likelihood, which
    makes the covariance positive definite (Chung and others, 2015). Problems need such a covariance, and a variance of
    exactly 0 would be a strong claim. With `regularized` only the second fit is made.
    """
    if regularized:
        return _run_fisher_scoring(posterior_at, mean, covariance, basis, precision, slack, 1.0)
    fitted = _run_fisher_scoring(posterior_at, mean, covariance, basis, precision, slack, 0.0)
    return (
        _run_fisher_scoring(posterior_at, mean, covariance, basis, precision, slack, 1.0)
        if fitted.is_regularized
        else fitted
    )


def _run_fisher_scoring(
    posterior_at: Callable[[FloatArray, FloatArray], CampaignPosteriors],
    mean: FloatArray,
    covariance: FloatArray,
    basis: FloatArray,
    precision: float,
    slack: float,
    regularized: float,
) -> FittedGaussian:
    """Run Fisher scoring until the predicted gain in the log likelihood is below `precision`.

    A step that lowers it by more than `slack` is halved. If all fail, a step of EM is made. `regularized` is the weight of
    the determinant. Without it, the search ends when a direction has no variance.
    """
    posterior = posterior_at(mean, covariance)
    terms = compute_scoring_terms(posterior, mean, covariance, regularized)
    has_lost = False
    for _ in range(MAX_SCORING_ROUNDS):
        step, _, promised = _compute_scoring_step(terms, basis)
        shift = terms.mean_error_covariance @ terms.mean_slopes.sum(axis=0)
        if promised + 0.5 * float(shift @ terms.mean_slopes.sum(axis=0)) < precision or has_lost:
            break
        for part in (1.0, 0.5, 0.25, 0.1, 0.0):
            # A step of EM, part 0, never lowers the likelihood.
            change = step * part if part else _compute_em_step(terms, covariance, basis)
            trial, centre = _limit_covariance_change(covariance, change), mean + (part or 1.0) * shift
            posterior = posterior_at(centre, trial)
            trial_terms = compute_scoring_terms(posterior, centre, trial, regularized)
            if trial_terms.restricted_likelihood >= terms.restricted_likelihood - slack:
                break
        stuck = not part and trial_terms.restricted_likelihood < terms.restricted_likelihood + precision
        mean, covariance, terms = centre, trial, trial_terms
        has_lost = not regularized and _has_lost_direction(covariance, terms)
        if stuck:
            break
    information = _compute_scoring_step(terms, basis)[1]
    # The mean is estimated too, which takes the information of one campaign.
    error: FloatArray = np.asarray(
        np.linalg.pinv(information * (1 - 1 / len(terms.mean_slopes)), hermitian=True), np.float64
    )
    variance = np.einsum("akk,ab,bkk->k", basis, error, basis)
    degrees = 2 * np.diag(covariance) ** 2 / np.maximum(variance, 1e-300)
    degrees = np.minimum(degrees, len(terms.mean_slopes) * len(mean))
    return FittedGaussian(
        mean,
        covariance,
        terms.mean_error_covariance,
        degrees,
        _compute_mean_degrees(terms, basis, error),
        posterior,
        bool(regularized) or has_lost,
        basis,
        error,
    )


def _has_lost_direction(covariance: FloatArray, terms: ScoringTerms) -> bool:
    """Return whether a direction has hardly any variance, compared with the others or with the error of the posteriors."""
    values = np.linalg.eigvalsh(covariance)
    posterior_error = len(terms.mean_slopes) * float(np.diag(terms.mean_error_covariance).mean())
    return bool(values[0] < MIN_VARIANCE_SHARE * values.mean() or values.mean() < MIN_VARIANCE_SHARE * posterior_error)


def _compute_mean_degrees(terms: ScoringTerms, basis: FloatArray, uncertainty: FloatArray) -> FloatArray:
    """Compute the degrees of freedom of the mean's errors (Satterthwaite), from the error of C, which depends on S."""
    shrinkage = terms.mean_information @ terms.mean_error_covariance
    slopes = np.einsum("abc,ibk,ick->ak", basis, shrinkage, shrinkage, optimize=True)
    variance = np.einsum("ak,ab,bk->k", slopes, uncertainty, slopes)
    return np.asarray(2 * np.diag(terms.mean_error_covariance) ** 2 / np.maximum(variance, 1e-300))


def _limit_covariance_change(covariance: FloatArray, change: FloatArray) -> FloatArray:
    """Limit a change of the covariance, so that no direction loses more than nine tenths of its variance at once."""
    values, vectors = np.linalg.eigh(covariance)
    root = (vectors * np.sqrt(values)) @ vectors.T
    inverse = (vectors / np.sqrt(values)) @ vectors.T
    ratios, turned = np.linalg.eigh(inverse @ (covariance + change) @ inverse)
    if ratios[0] >= 0.1:
        return covariance + change
    limited = root @ (turned * np.maximum(ratios, 0.1)) @ turned.T @ root
    return np.asarray((limited + limited.T) / 2)


def compute_scoring_terms(
    posterior: CampaignPosteriors, mean: FloatArray, covariance: FloatArray, regularized: float = 0.0
) -> ScoringTerms:
    """Compute the terms of scoring from posteriors."""
    inverse = np.linalg.inv(covariance)
    pull = (posterior.means - mean) @ inverse
    mean_information = posterior.mean_information
    total = mean_information.sum(axis=0)
    sign, size = np.linalg.slogdet(total)
    if sign <= 0 or not math.isfinite(size):
        raise InvalidRequest(
            "the logs must have information on every feature, but on some features, or linear combinations of them, they "
            "have none; leave out features that are constant or that depend linearly on others.",
            argument="logs",
            code="insufficient-data",
        )
    spread = np.linalg.inv(total)
    around = np.einsum("iab,bc,icd->ad", mean_information, spread, mean_information, optimize=True)
    information_loss = inverse @ (len(pull) * covariance - posterior.covariances.sum(axis=0)) @ inverse
    slope = 0.5 * (pull.T @ pull - information_loss + around)
    likelihood = posterior.evidence - 0.5 * float(size)
    if regularized:
        # The determinant has the slope and curvature of a campaign with full information and no slope.
        slope = slope + 0.5 * regularized * inverse
        likelihood += 0.5 * regularized * float(np.linalg.slogdet(covariance)[1])
    return ScoringTerms(
        pull, mean_information, spread, slope, np.asarray(regularized * inverse, np.float64), likelihood
    )


def _compute_scoring_step(terms: ScoringTerms, basis: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Compute a step of Fisher scoring in the covariance, the information about its parts, and the predicted gain."""
    count, dims = terms.mean_slopes.shape
    flat = np.concatenate([terms.mean_information, terms.curvature[None]]).reshape(count + 1, dims * dims)
    # Sums of W[j, k] W[l, n], in the order k, l, n, j. The information of two parts is half its product with both.
    products = (flat.T @ flat).reshape(dims, dims, dims, dims).transpose(1, 2, 3, 0).reshape(dims**2, dims**2)
    parts = basis.reshape(len(basis), dims**2)
    information = 0.5 * parts @ products @ parts.T
    projection = parts @ terms.covariance_slope.ravel()
    weights = np.linalg.lstsq(information, projection, rcond=1e-12)[0]
    return np.einsum("a,akl->kl", weights, basis), information, 0.5 * float(weights @ projection)


def _compute_em_step(terms: ScoringTerms, covariance: FloatArray, basis: FloatArray) -> FloatArray:
    """Compute a step of the EM algorithm, projected on covariances of the given kind."""
    step = (2 / len(terms.mean_slopes)) * covariance @ terms.covariance_slope @ covariance
    sizes = np.einsum("akl,akl->a", basis, basis)
    return np.asarray(np.einsum("akl,kl,a,amn->mn", basis, step, 1 / sizes, basis))


def summarize_gaussian(gauss: FittedGaussian, names: Sequence[str], confidence: float) -> tuple[FittedParameter, ...]:
    """Summarise means with Student's t and sds with a scaled chi-square. Both are exact if every theta is known."""
    parameters = []
    tail = 0.5 + confidence / 2
    for position, name in enumerate(names):
        mean, degrees = float(gauss.mean[position]), float(gauss.mean_degrees[position])
        reach = compute_student_quantile(tail, round(min(max(degrees, 1), 1e6))) * math.sqrt(
            gauss.mean_error_covariance[position, position]
        )
        parameters.append(FittedParameter(name=f"mean[{name}]", value=mean, low=mean - reach, high=mean + reach))
    for position, name in enumerate(names):
        sd, degrees = math.sqrt(gauss.covariance[position, position]), float(gauss.degrees[position])
        low, high = 0.0, math.inf
        if degrees >= 1:  # with fewer, the logs have hardly any information on this number
            low, high = (
                sd * math.sqrt(degrees / compute_chi_square_quantile(quantile, degrees))
                for quantile in (tail, 1 - tail)
            )
        parameters.append(FittedParameter(name=f"sd[{name}]", value=sd, low=low, high=high))
    return tuple(parameters)


def rescale_gaussian(gauss: FittedGaussian, scale: FloatArray) -> FittedGaussian:
    """Rescale the Gaussian for features that are larger by these factors."""
    both = np.outer(scale, scale)
    terms = gauss.posterior
    posterior = CampaignPosteriors(
        terms.means / scale, terms.covariances / both, terms.mean_information * both, terms.evidence
    )
    covariance, error = gauss.covariance / both, gauss.mean_error_covariance / both
    return gauss._replace(
        mean=gauss.mean / scale, covariance=covariance, mean_error_covariance=error, posterior=posterior
    )


def estimate_mean_correlation(gauss: FittedGaussian, confidence: float) -> FittedParameter:
    """Estimate the mean correlation of two coordinates, with an interval by the delta method on Fisher's scale."""
    sizes = np.einsum("akl,akl->a", gauss.covariance_basis, gauss.covariance_basis)
    weights = np.einsum("akl,kl->a", gauss.covariance_basis, gauss.covariance) / sizes

    def value(weights: FloatArray) -> float:
        matrix = np.einsum("a,akl->kl", weights, gauss.covariance_basis)
        sd = np.sqrt(np.diag(matrix))
        dims = len(sd)
        return float((matrix / np.outer(sd, sd)).sum() - dims) / (dims * (dims - 1))

    middle = value(weights)
    step = 1e-4 * float(np.diag(gauss.covariance).min())
    slopes = np.array(
        [(value(weights + step * unit) - value(weights - step * unit)) / (2 * step) for unit in np.eye(len(weights))]
    )
    error = math.sqrt(max(float(slopes @ gauss.weight_covariance @ slopes), 0.0)) / (1 - middle**2)
    reach = compute_student_quantile(0.5 + confidence / 2, max(len(gauss.posterior.means) - 1, 1)) * error
    return FittedParameter(
        name="correlation",
        value=middle,
        low=math.tanh(math.atanh(middle) - reach),
        high=math.tanh(math.atanh(middle) + reach),
    )
