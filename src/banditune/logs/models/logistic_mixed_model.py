"""Binary rewards of arms with features: 1 with probability 1 / (1 + exp(-x'theta)), theta from a common Gaussian.

Posteriors are computed by importance sampling around their modes. The draws are fixed in advance, so that the
likelihood is a smooth function of the Gaussian, and the same logs give the same answer.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.logs.campaign_logs import Logs
from banditune.logs.models.random_effects import (
    CampaignPosteriors,
    FittedGaussian,
    compute_mean_information,
    fit_random_effects,
    make_covariance_basis,
)

IMPORTANCE_DRAWS = 512
"""The number of draws for each campaign, in antithetic pairs."""


PROPOSAL_DEGREES = 8
"""The degrees of freedom of the proposal, Student's t. Its tails are longer than a posterior's, so weights are bounded."""


class BinaryRewardTable(NamedTuple):
    """Successes and pulls (campaigns, arms) and features (campaigns, arms, dims). Missing arms have 0 pulls."""

    successes: FloatArray
    pulls: FloatArray
    features: FloatArray


def make_reward_table(logs: Logs, features: FloatArray) -> BinaryRewardTable:
    """Make a table of the logs. Its number of columns is the largest number of arms in a campaign."""
    widths = logs.arm_counts
    first = np.concatenate([[0], np.cumsum(widths)[:-1]])
    column = np.arange(len(logs.pulls)) - first[logs.campaign]
    shape = (len(widths), int(widths.max()))
    successes, pulls, table = np.zeros(shape), np.zeros(shape), np.zeros((*shape, features.shape[1]))
    successes[logs.campaign, column] = logs.total
    pulls[logs.campaign, column] = logs.pulls
    table[logs.campaign, column] = features
    return BinaryRewardTable(successes, pulls, table)


def compute_logistic(scores: FloatArray) -> FloatArray:
    """Compute the logistic function."""
    return np.asarray(0.5 * (1 + np.tanh(0.5 * scores)))


def _compute_log_likelihoods(table: BinaryRewardTable, scores: FloatArray) -> FloatArray:
    """Compute the log likelihood of every campaign at scores (campaigns, ..., arms)."""
    extra = (slice(None),) + (None,) * (scores.ndim - 2)
    pulls, successes = table.pulls[extra], table.successes[extra]
    return np.asarray((successes * scores - pulls * np.logaddexp(0.0, scores)).sum(axis=-1))


def _find_modes(
    table: BinaryRewardTable, mean: FloatArray, inverse: FloatArray, start: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Find the mode of every campaign's theta and the curvature there, by Newton's method with halved steps."""
    theta = start.copy()

    def compute_height(theta: FloatArray) -> FloatArray:
        offsets = theta - mean
        scores = np.einsum("iwd,id->iw", table.features, theta)
        return np.asarray(
            _compute_log_likelihoods(table, scores) - 0.5 * np.einsum("ia,ab,ib->i", offsets, inverse, offsets)
        )

    heights = compute_height(theta)
    for _ in range(50):
        chances = compute_logistic(np.einsum("iwd,id->iw", table.features, theta))
        slope = np.einsum("iwd,iw->id", table.features, table.successes - table.pulls * chances)
        slope -= (theta - mean) @ inverse
        weights = table.pulls * chances * (1 - chances)
        curvature = np.einsum("iwa,iw,iwb->iab", table.features, weights, table.features) + inverse
        step = np.linalg.solve(curvature, slope[:, :, None])[:, :, 0]
        size = np.ones(len(theta))
        for _ in range(20):
            trial = theta + size[:, None] * step
            trial_heights = compute_height(trial)
            is_lower = trial_heights < heights - 1e-9 * (1 + np.abs(heights))
            if not is_lower.any():
                break
            size[is_lower] /= 2
        theta, heights = trial, trial_heights
        if (slope * step).sum(axis=1).max() < 1e-10:
            break
    return theta, curvature


class ProposalDraws(NamedTuple):
    """Draws of Student's t (campaigns, draws, dims), logs of their densities, and the errors for a standard normal.

    For a standard normal, the log of the total and the covariance should be 0 and the unit matrix. A posterior is nearly
    normal, so its errors are nearly the same, and are subtracted.
    """

    points: FloatArray
    log_densities: FloatArray
    log_total: FloatArray
    covariance: FloatArray


def _make_proposal_draws(count: int, dims: int) -> ProposalDraws:
    """Make draws of the proposal, always the same for the same numbers."""
    rng = np.random.default_rng(20_201)
    half = rng.standard_normal((count, IMPORTANCE_DRAWS // 2, dims))
    half *= np.sqrt(PROPOSAL_DEGREES / rng.chisquare(PROPOSAL_DEGREES, (count, IMPORTANCE_DRAWS // 2, 1)))
    draws = np.concatenate([half, -half], axis=1)
    constant = (
        math.lgamma((PROPOSAL_DEGREES + dims) / 2)
        - math.lgamma(PROPOSAL_DEGREES / 2)
        - 0.5 * dims * math.log(PROPOSAL_DEGREES * math.pi)
    )
    length = (draws**2).sum(axis=2)
    densities = constant - 0.5 * (PROPOSAL_DEGREES + dims) * np.log1p(length / PROPOSAL_DEGREES)
    weights = np.exp(-0.5 * (length + dims * math.log(2 * math.pi)) - densities)
    total = weights.sum(axis=1)
    covariance = np.einsum("ira,irb->iab", draws * (weights / total[:, None])[:, :, None], draws)
    return ProposalDraws(draws, densities, np.log(total / IMPORTANCE_DRAWS), covariance)


class ImportanceSampler:
    """Posteriors of all campaigns' thetas. Each call starts from the modes of the previous call, which saves time."""

    def __init__(self, table: BinaryRewardTable, start: FloatArray) -> None:
        self.table = table
        count, dims = len(table.pulls), table.features.shape[2]
        self.draws = _make_proposal_draws(count, dims)
        self.start = np.tile(start, (count, 1))
        self.share = 1.0

    def __call__(self, mean: FloatArray, covariance: FloatArray) -> CampaignPosteriors:
        inverse = np.asarray(np.linalg.inv(covariance), np.float64)
        theta, curvature = _find_modes(self.table, mean, inverse, self.start)
        self.start = theta
        root = np.linalg.cholesky(np.linalg.inv(curvature))
        offsets = np.einsum("iab,irb->ira", root, self.draws.points)
        points = theta[:, None] + offsets
        scores = np.einsum("iwd,ird->irw", self.table.features, points)
        deviations = points - mean
        prior = -0.5 * np.einsum("ira,ab,irb->ir", deviations, inverse, deviations, optimize=True)
        sizes = np.log(np.einsum("iaa->ia", root)).sum(axis=1)
        logs = _compute_log_likelihoods(self.table, scores) + prior - self.draws.log_densities + sizes[:, None]
        top = logs.max(axis=1)
        weights = np.exp(logs - top[:, None])
        total = weights.sum(axis=1)
        _, size = np.linalg.slogdet(2 * math.pi * covariance)
        evidence = float((top + np.log(total / IMPORTANCE_DRAWS) - self.draws.log_total - 0.5 * size).sum())
        weights /= total[:, None]
        self.share = float(np.median(1 / (weights**2).sum(axis=1)) / IMPORTANCE_DRAWS)
        means = np.einsum("ir,ira->ia", weights, points)
        centred = points - means[:, None]
        spread = np.einsum("ira,irb->iab", centred * weights[:, :, None], centred)
        unit = np.eye(len(mean)) - self.draws.covariance
        spread += root @ unit @ root.transpose(0, 2, 1)
        chances = compute_logistic(scores)
        curve = np.einsum("ir,irw->iw", weights, chances * (1 - chances)) * self.table.pulls
        precision = np.einsum("iwa,iw,iwb->iab", self.table.features, curve, self.table.features)
        return CampaignPosteriors(means, spread, compute_mean_information(precision, covariance), evidence)


def fit_logistic_mixed_model(table: BinaryRewardTable, kind: str) -> tuple[FittedGaussian, float]:
    """Fit the Gaussian of theta by restricted likelihood; returns also the effective share of draws."""
    dims = table.features.shape[2]
    pooled_table = BinaryRewardTable(
        table.successes.reshape(1, -1), table.pulls.reshape(1, -1), table.features.reshape(1, -1, dims)
    )
    scale = np.einsum("iwd,iw->d", table.features**2, table.pulls) / table.pulls.sum()
    weak = np.diag(np.maximum(scale, 1e-12) / 25)
    pooled = _find_modes(pooled_table, np.zeros(dims), weak, np.zeros((1, dims)))[0][0]
    sampler = ImportanceSampler(table, pooled)
    # The search is restricted to the basis, so its start must be in the basis, even if some arms were rarely pulled.
    start = np.eye(dims) * 0.5 / scale.mean() if kind == "alike" else np.diag(0.5 / np.maximum(scale, 1e-12) / dims)
    # The likelihood is estimated from draws. In directions with little information its error is up to 0.1.
    gauss = fit_random_effects(sampler, pooled, start, make_covariance_basis(dims, kind), precision=1e-4, slack=0.1)
    return gauss, sampler.share
