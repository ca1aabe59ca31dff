"""Vectors theta, one for each campaign, from a common Gaussian: its mean and covariance by restricted likelihood.

The campaigns' data come in through their posterior distributions alone, which the linear and the logistic model
compute each in its own way. With posterior means e and covariances V under N(mu, S), and Q the inverse of S, the slopes of
the log likelihood are sums of u = Q (e - mu) for mu and of (u u' - W) / 2 for S, with W = Q - Q V Q; W is also what a
campaign tells about mu. These formulas hold when a campaign tells nothing about some directions. Integrating mu out
(restricted likelihood) adds W C W to u u', where C is the inverse of the sum of W.
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
"""A direction has lost its spread when its variance is this share of the mean variance."""


class CampaignPosteriors(NamedTuple):
    """Of every campaign's theta: mean, covariance; what the campaign tells, W; the log likelihood of all together.

    W is asked for by itself: from covariances that are known by sampling it may come out negative.
    """

    means: FloatArray
    covariances: FloatArray
    mean_information: FloatArray
    evidence: float


class ScoringTerms(NamedTuple):
    """The posterior in the terms of the module's first lines: u, W, C, the slope in S and the restricted likelihood."""

    mean_slopes: FloatArray
    mean_information: FloatArray
    mean_error_covariance: FloatArray
    covariance_slope: FloatArray
    curvature: FloatArray
    restricted_likelihood: float


def compute_mean_information(precision: FloatArray, covariance: FloatArray) -> FloatArray:
    """What campaigns tell about the mean, W, where their data tell about theta with such a precision."""
    found = precision @ np.linalg.inv(np.eye(len(covariance)) + covariance @ precision)
    return np.asarray((found + found.transpose(0, 2, 1)) / 2)


class FittedGaussian(NamedTuple):
    """A fitted Gaussian: mean, covariance, covariance of the mean's error, degrees of freedom of variances and of means.

    `kept` says that the covariance had to be kept from losing a direction. It is a sum of `basis`, with weights whose
    errors have the covariance `uncertainty`.
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
    """Matrices whose sums are the covariances looked for: "full", "diagonal", or "alike" (one variance, one covariance)."""
    if kind == "alike":
        return np.stack([np.eye(dims), np.ones((dims, dims)) - np.eye(dims)])
    pairs = [(k, l) for k in range(dims) for l in range(k, dims if kind == "full" else k + 1)]  # noqa: E741
    found = np.zeros((len(pairs), dims, dims))
    for place, (k, other) in enumerate(pairs):
        found[place, k, other] = found[place, other, k] = 1.0
    return found


def fit_random_effects(
    posterior_at: Callable[[FloatArray, FloatArray], CampaignPosteriors],
    mean: FloatArray,
    covariance: FloatArray,
    basis: FloatArray,
    precision: float = 1e-9,
    slack: float = 1e-6,
    kept: bool = False,
) -> FittedGaussian:
    """The Gaussian of the highest restricted likelihood.

    Where that would have directions without spread, half the log of the determinant is added to the likelihood, which
    keeps the covariance proper (Chung and others, 2015): problems take no other, and no spread is a strong claim. With
    `kept` it is known that this is needed.
    """
    if kept:
        return _run_fisher_scoring(posterior_at, mean, covariance, basis, precision, slack, 1.0)
    found = _run_fisher_scoring(posterior_at, mean, covariance, basis, precision, slack, 0.0)
    return (
        _run_fisher_scoring(posterior_at, mean, covariance, basis, precision, slack, 1.0)
        if found.is_regularized
        else found
    )


def _run_fisher_scoring(
    posterior_at: Callable[[FloatArray, FloatArray], CampaignPosteriors],
    mean: FloatArray,
    covariance: FloatArray,
    basis: FloatArray,
    precision: float,
    slack: float,
    kept: float,
) -> FittedGaussian:
    """Fisher scoring until it promises to raise the log likelihood by less than `precision`.

    A step that lowers it, by more than `slack`, is halved, then one of EM is taken. `kept` is the weight of the
    determinant. Without it, it ends where a direction has lost its spread.
    """
    posterior = posterior_at(mean, covariance)
    known = compute_scoring_terms(posterior, mean, covariance, kept)
    lost = False
    for _ in range(MAX_SCORING_ROUNDS):
        step, _, promised = _compute_scoring_step(known, basis)
        shift = known.mean_error_covariance @ known.mean_slopes.sum(axis=0)
        if promised + 0.5 * float(shift @ known.mean_slopes.sum(axis=0)) < precision or lost:
            break
        for part in (1.0, 0.5, 0.25, 0.1, 0.0):
            # The last resort never lowers the likelihood: a step of EM, part 0.
            change = step * part if part else _compute_em_step(known, covariance, basis)
            trial, centre = _limit_covariance_change(covariance, change), mean + (part or 1.0) * shift
            posterior = posterior_at(centre, trial)
            found = compute_scoring_terms(posterior, centre, trial, kept)
            if found.restricted_likelihood >= known.restricted_likelihood - slack:
                break
        stuck = not part and found.restricted_likelihood < known.restricted_likelihood + precision
        mean, covariance, known = centre, trial, found
        lost = not kept and _has_lost_direction(covariance, known)
        if stuck:
            break
    information = _compute_scoring_step(known, basis)[1]
    # The mean is estimated too: that costs one campaign.
    error: FloatArray = np.asarray(
        np.linalg.pinv(information * (1 - 1 / len(known.mean_slopes)), hermitian=True), np.float64
    )
    variance = np.einsum("akk,ab,bkk->k", basis, error, basis)
    degrees = 2 * np.diag(covariance) ** 2 / np.maximum(variance, 1e-300)
    degrees = np.minimum(degrees, len(known.mean_slopes) * len(mean))
    return FittedGaussian(
        mean,
        covariance,
        known.mean_error_covariance,
        degrees,
        _compute_mean_degrees(known, basis, error),
        posterior,
        bool(kept) or lost,
        basis,
        error,
    )


def _has_lost_direction(covariance: FloatArray, known: ScoringTerms) -> bool:
    """Whether a direction has lost its spread beside the others, or all have beside what campaigns leave open."""
    values = np.linalg.eigvalsh(covariance)
    open_still = len(known.mean_slopes) * float(np.diag(known.mean_error_covariance).mean())
    return bool(values[0] < MIN_VARIANCE_SHARE * values.mean() or values.mean() < MIN_VARIANCE_SHARE * open_still)


def _compute_mean_degrees(known: ScoringTerms, basis: FloatArray, uncertainty: FloatArray) -> FloatArray:
    """Degrees of freedom of the mean's errors (Satterthwaite): how sure C is, which depends on the covariance."""
    follow = known.mean_information @ known.mean_error_covariance
    slopes = np.einsum("abc,ibk,ick->ak", basis, follow, follow, optimize=True)
    variance = np.einsum("ak,ab,bk->k", slopes, uncertainty, slopes)
    return np.asarray(2 * np.diag(known.mean_error_covariance) ** 2 / np.maximum(variance, 1e-300))


def _limit_covariance_change(covariance: FloatArray, change: FloatArray) -> FloatArray:
    """The covariance after a change, except that no direction loses more than nine tenths of its variance at once."""
    values, vectors = np.linalg.eigh(covariance)
    root = (vectors * np.sqrt(values)) @ vectors.T
    inverse = (vectors / np.sqrt(values)) @ vectors.T
    ratios, turned = np.linalg.eigh(inverse @ (covariance + change) @ inverse)
    if ratios[0] >= 0.1:
        return covariance + change
    found = root @ (turned * np.maximum(ratios, 0.1)) @ turned.T @ root
    return np.asarray((found + found.T) / 2)


def compute_scoring_terms(
    posterior: CampaignPosteriors, mean: FloatArray, covariance: FloatArray, kept: float = 0.0
) -> ScoringTerms:
    """What scoring needs, from posteriors."""
    inverse = np.linalg.inv(covariance)
    pull = (posterior.means - mean) @ inverse
    mean_information = posterior.mean_information
    total = mean_information.sum(axis=0)
    sign, size = np.linalg.slogdet(total)
    if sign <= 0 or not math.isfinite(size):
        raise InvalidRequest(
            "the logs must tell something about every feature, but there are features, or sums of them, about which they "
            "tell nothing; drop features that are constant or that follow from others.",
            argument="logs",
            code="insufficient-data",
        )
    spread = np.linalg.inv(total)
    around = np.einsum("iab,bc,icd->ad", mean_information, spread, mean_information, optimize=True)
    lost = inverse @ (len(pull) * covariance - posterior.covariances.sum(axis=0)) @ inverse
    slope = 0.5 * (pull.T @ pull - lost + around)
    likelihood = posterior.evidence - 0.5 * float(size)
    if kept:
        # Its slope and curvature are those of a campaign that tells everything and pulls nowhere.
        slope = slope + 0.5 * kept * inverse
        likelihood += 0.5 * kept * float(np.linalg.slogdet(covariance)[1])
    return ScoringTerms(pull, mean_information, spread, slope, np.asarray(kept * inverse, np.float64), likelihood)


def _compute_scoring_step(known: ScoringTerms, basis: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """A step of Fisher scoring in the covariance, the information about its parts, and the gain that it promises."""
    count, dims = known.mean_slopes.shape
    flat = np.concatenate([known.mean_information, known.curvature[None]]).reshape(count + 1, dims * dims)
    # Sums of W[j, k] W[l, n], in the order k, l, n, j: half its product with two parts is their information.
    products = (flat.T @ flat).reshape(dims, dims, dims, dims).transpose(1, 2, 3, 0).reshape(dims**2, dims**2)
    parts = basis.reshape(len(basis), dims**2)
    information = 0.5 * parts @ products @ parts.T
    along = parts @ known.covariance_slope.ravel()
    weights = np.linalg.lstsq(information, along, rcond=1e-12)[0]
    return np.einsum("a,akl->kl", weights, basis), information, 0.5 * float(weights @ along)


def _compute_em_step(known: ScoringTerms, covariance: FloatArray, basis: FloatArray) -> FloatArray:
    """A step of the EM algorithm, brought back to covariances of the wanted kind."""
    step = (2 / len(known.mean_slopes)) * covariance @ known.covariance_slope @ covariance
    sizes = np.einsum("akl,akl->a", basis, basis)
    return np.asarray(np.einsum("akl,kl,a,amn->mn", basis, step, 1 / sizes, basis))


def summarize_gaussian(gauss: FittedGaussian, names: Sequence[str], confidence: float) -> tuple[FittedParameter, ...]:
    """Means with Student's t, standard deviations with a scaled chi-square: right where every theta is well known."""
    found = []
    tail = 0.5 + confidence / 2
    for place, name in enumerate(names):
        mean, degrees = float(gauss.mean[place]), float(gauss.mean_degrees[place])
        reach = compute_student_quantile(tail, round(min(max(degrees, 1), 1e6))) * math.sqrt(
            gauss.mean_error_covariance[place, place]
        )
        found.append(FittedParameter(name=f"mean[{name}]", value=mean, low=mean - reach, high=mean + reach))
    for place, name in enumerate(names):
        sd, degrees = math.sqrt(gauss.covariance[place, place]), float(gauss.degrees[place])
        low, high = 0.0, math.inf
        if degrees >= 1:  # with less, the logs say next to nothing about this number
            low, high = (
                sd * math.sqrt(degrees / compute_chi_square_quantile(level, degrees)) for level in (tail, 1 - tail)
            )
        found.append(FittedParameter(name=f"sd[{name}]", value=sd, low=low, high=high))
    return tuple(found)


def rescale_gaussian(gauss: FittedGaussian, scale: FloatArray) -> FittedGaussian:
    """The same Gaussian for features that are so many times as large."""
    both = np.outer(scale, scale)
    known = gauss.posterior
    posterior = CampaignPosteriors(
        known.means / scale, known.covariances / both, known.mean_information * both, known.evidence
    )
    covariance, error = gauss.covariance / both, gauss.mean_error_covariance / both
    return gauss._replace(
        mean=gauss.mean / scale, covariance=covariance, mean_error_covariance=error, posterior=posterior
    )


def estimate_mean_correlation(gauss: FittedGaussian, confidence: float) -> FittedParameter:
    """The mean correlation of two coordinates; the interval is by the delta method on Fisher's scale."""
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
