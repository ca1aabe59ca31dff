"""Draws of mean rewards: from a fitted prior, and given the logs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from banditune.core.arrays import FloatArray, IntArray
from banditune.logs.campaign_logs import Logs
from banditune.logs.models.logistic_mixed_model import compute_logistic
from banditune.logs.models.random_effects import FittedGaussian

MeanSampler = Callable[[np.random.Generator, int, IntArray], FloatArray]
"""Draws mean rewards (size, cells) of some cells, given by number."""


def make_beta_sampler(pairs: FloatArray) -> MeanSampler:
    """Make a sampler of mean rewards from beta distributions, one for each cell."""
    return lambda rng, size, cells: rng.beta(pairs[cells, 0], pairs[cells, 1], (size, len(cells)))


def make_normal_sampler(pairs: FloatArray) -> MeanSampler:
    """Make a sampler of mean rewards from normal distributions, one for each cell."""
    return lambda rng, size, cells: rng.normal(pairs[cells, 0], pairs[cells, 1], (size, len(cells)))


def make_score_samplers(logs: Logs, gauss: FittedGaussian) -> tuple[MeanSampler, MeanSampler]:
    """Make samplers of features times theta, one theta per campaign: from the prior, and given the campaign's data."""
    assert logs.features is not None
    features = logs.features

    def make_sampler(centres: Callable[[IntArray], FloatArray], roots: Callable[[IntArray], FloatArray]) -> MeanSampler:
        def sample_scores(rng: np.random.Generator, size: int, cells: IntArray) -> FloatArray:
            campaigns, campaign_index = np.unique(logs.campaign[cells], return_inverse=True)
            mean, root = centres(campaigns), roots(campaigns)
            scores = np.empty((size, len(cells)))
            # Thetas of all cells at once would need more memory, by a factor of their dimension.
            piece = max(size // features.shape[1], 1)
            for first in range(0, size, piece):
                rows = min(piece, size - first)
                normal = rng.standard_normal((rows, len(campaigns), features.shape[1]))
                theta = mean + np.einsum("cab,rcb->rca", root, normal)
                scores[first : first + rows] = np.einsum("rcd,cd->rc", theta[:, campaign_index], features[cells])
            return scores

        return sample_scores

    # All campaigns have one prior. Thetas given the data are drawn only if a policy chose the arms.
    dims, after = features.shape[1], gauss.posterior
    root: FloatArray = np.asarray(np.linalg.cholesky(gauss.covariance), np.float64)
    return (
        make_sampler(
            lambda campaigns: gauss.mean, lambda campaigns: np.broadcast_to(root, (len(campaigns), dims, dims))
        ),
        make_sampler(
            lambda campaigns: after.means[campaigns],
            lambda campaigns: np.asarray(np.linalg.cholesky(after.covariances[campaigns]), np.float64),
        ),
    )


def make_logistic_samplers(logs: Logs, gauss: FittedGaussian) -> tuple[MeanSampler, MeanSampler]:
    """Make the same samplers, with scores transformed by the logistic function."""
    prior, posterior = make_score_samplers(logs, gauss)
    return (
        lambda rng, size, cells: compute_logistic(prior(rng, size, cells)),
        lambda rng, size, cells: compute_logistic(posterior(rng, size, cells)),
    )
