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
    """Mean rewards from beta distributions, one for each cell."""
    return lambda rng, size, cells: rng.beta(pairs[cells, 0], pairs[cells, 1], (size, len(cells)))


def make_normal_sampler(pairs: FloatArray) -> MeanSampler:
    """Mean rewards from normal distributions, one for each cell."""
    return lambda rng, size, cells: rng.normal(pairs[cells, 0], pairs[cells, 1], (size, len(cells)))


def make_score_samplers(logs: Logs, gauss: FittedGaussian) -> tuple[MeanSampler, MeanSampler]:
    """Products of features with thetas, one theta for each campaign: from the prior, and given the campaign's data."""
    assert logs.features is not None
    features = logs.features

    def drawn(centres: Callable[[IntArray], FloatArray], roots: Callable[[IntArray], FloatArray]) -> MeanSampler:
        def scores(rng: np.random.Generator, size: int, cells: IntArray) -> FloatArray:
            found, place = np.unique(logs.campaign[cells], return_inverse=True)
            mean, root = centres(found), roots(found)
            made = np.empty((size, len(cells)))
            # Thetas of all cells at once would be as many times larger as they have parts.
            piece = max(size // features.shape[1], 1)
            for first in range(0, size, piece):
                rows = min(piece, size - first)
                normal = rng.standard_normal((rows, len(found), features.shape[1]))
                theta = mean + np.einsum("cab,rcb->rca", root, normal)
                made[first : first + rows] = np.einsum("rcd,cd->rc", theta[:, place], features[cells])
            return made

        return scores

    # All campaigns have one prior, and thetas given the data are drawn only where a policy chose the arms.
    dims, after = features.shape[1], gauss.posterior
    root: FloatArray = np.asarray(np.linalg.cholesky(gauss.covariance), np.float64)
    return (
        drawn(lambda found: gauss.mean, lambda found: np.broadcast_to(root, (len(found), dims, dims))),
        drawn(
            lambda found: after.means[found],
            lambda found: np.asarray(np.linalg.cholesky(after.covariances[found]), np.float64),
        ),
    )


def make_logistic_samplers(logs: Logs, gauss: FittedGaussian) -> tuple[MeanSampler, MeanSampler]:
    """The same through the logistic function."""
    prior, known = make_score_samplers(logs, gauss)
    return (
        lambda rng, size, cells: compute_logistic(prior(rng, size, cells)),
        lambda rng, size, cells: compute_logistic(known(rng, size, cells)),
    )
