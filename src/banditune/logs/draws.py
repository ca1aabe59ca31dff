"""Draws of mean rewards: from a fitted prior, and given the logs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from banditune.contracts import Floats, Integers
from banditune.logs.hierarchy import Gauss
from banditune.logs.logistic import chance
from banditune.logs.record import Logs

Means = Callable[[np.random.Generator, int, Integers], Floats]
"""Draws mean rewards (size, cells) of some cells, given by number."""


def beta_means(pairs: Floats) -> Means:
    """Mean rewards from beta distributions, one for each cell."""
    return lambda rng, size, cells: rng.beta(pairs[cells, 0], pairs[cells, 1], (size, len(cells)))


def normal_means(pairs: Floats) -> Means:
    """Mean rewards from normal distributions, one for each cell."""
    return lambda rng, size, cells: rng.normal(pairs[cells, 0], pairs[cells, 1], (size, len(cells)))


def scores(logs: Logs, gauss: Gauss) -> tuple[Means, Means]:
    """Products of features with thetas, one theta for each campaign: from the prior, and given the campaign's data."""
    assert logs.features is not None
    features = logs.features

    def drawn(centres: Callable[[Integers], Floats], roots: Callable[[Integers], Floats]) -> Means:
        def scores(rng: np.random.Generator, size: int, cells: Integers) -> Floats:
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
    root: Floats = np.asarray(np.linalg.cholesky(gauss.covariance), np.float64)
    return (
        drawn(lambda found: gauss.mean, lambda found: np.broadcast_to(root, (len(found), dims, dims))),
        drawn(
            lambda found: after.means[found],
            lambda found: np.asarray(np.linalg.cholesky(after.covariances[found]), np.float64),
        ),
    )


def logistic_means(logs: Logs, gauss: Gauss) -> tuple[Means, Means]:
    """The same through the logistic function."""
    prior, known = scores(logs, gauss)
    return (
        lambda rng, size, cells: chance(prior(rng, size, cells)),
        lambda rng, size, cells: chance(known(rng, size, cells)),
    )
