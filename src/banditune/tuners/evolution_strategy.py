"""The covariance matrix adaptation evolution strategy (CMA-ES) on the unit cube.

Hansen, N. (2016). The CMA evolution strategy: a tutorial. arXiv:1604.00772. The update is the one of its Figure 6, with
positive weights and without restarts.
"""

from __future__ import annotations

import math

import numpy as np

from banditune.core.arrays import FloatArray

MAX_RESAMPLES = 20
"""Attempts to draw a point inside of the cube, before it is moved to the nearest face."""


class EvolutionStrategy:
    """A normal distribution that moves to lower regrets, one generation of points at a time.

    Attributes
    ----------
    mean : array of float
        The centre of the distribution.
    """

    def __init__(self, dimension: int, population: int, sigma: float, rng: np.random.Generator) -> None:
        self.dimension, self.population, self.sigma, self.rng = dimension, population, sigma, rng
        self.mean: FloatArray = np.full(dimension, 0.5)
        self.covariance: FloatArray = np.eye(dimension)
        self.generation = 0
        parents = population // 2
        weights = math.log((population + 1) / 2) - np.log(np.arange(1, parents + 1))
        self.weights: FloatArray = weights / weights.sum()
        self._set_rates(1 / float((self.weights**2).sum()))
        self.sigma_path: FloatArray = np.zeros(dimension)
        self.covariance_path: FloatArray = np.zeros(dimension)
        self._decompose()

    def _set_rates(self, effective: float) -> None:
        """Set the learning rates for the effective number of parents."""
        size = self.dimension
        self.effective = effective
        self.sigma_rate = (effective + 2) / (size + effective + 5)
        self.damping = 1 + 2 * max(0.0, math.sqrt((effective - 1) / (size + 1)) - 1) + self.sigma_rate
        self.path_rate = (4 + effective / size) / (size + 4 + 2 * effective / size)
        self.rank_one_rate = 2 / ((size + 1.3) ** 2 + effective)
        rank_mu = 2 * (effective - 2 + 1 / effective) / ((size + 2) ** 2 + effective)
        self.rank_mu_rate = min(1 - self.rank_one_rate, rank_mu)
        self.normal_length = math.sqrt(size) * (1 - 1 / (4 * size) + 1 / (21 * size**2))

    def _decompose(self) -> None:
        """Compute the axes of the distribution and their lengths."""
        squares, self.axes = np.linalg.eigh(self.covariance)
        self.lengths = np.sqrt(np.maximum(squares, 1e-20))

    def ask(self) -> FloatArray:
        """Draw the points of a generation, a row for each."""
        return np.stack([self._draw_point() for _ in range(self.population)])

    def _draw_point(self) -> FloatArray:
        """Draw a point inside of the cube."""
        for _ in range(MAX_RESAMPLES):
            step = self.axes @ (self.lengths * self.rng.standard_normal(self.dimension))
            point: FloatArray = self.mean + self.sigma * step
            if ((point >= 0) & (point <= 1)).all():
                break
        return np.clip(point, 0.0, 1.0)

    def tell(self, points: FloatArray, regrets: FloatArray) -> None:
        """Move the distribution towards the points with the lowest regrets."""
        self.generation += 1
        best = points[np.argsort(regrets, kind="stable")[: len(self.weights)]]
        steps = (best - self.mean) / self.sigma
        move = self.weights @ steps
        self.mean = self.mean + self.sigma * move
        rate = self.sigma_rate
        whitened = self.axes @ ((self.axes.T @ move) / self.lengths)
        self.sigma_path = (1 - rate) * self.sigma_path + math.sqrt(rate * (2 - rate) * self.effective) * whitened
        length = float(np.linalg.norm(self.sigma_path))
        expected = math.sqrt(1 - (1 - rate) ** (2 * self.generation)) * self.normal_length
        is_steady = length < (1.4 + 2 / (self.dimension + 1)) * expected
        rate = self.path_rate
        self.covariance_path = (1 - rate) * self.covariance_path
        if is_steady:
            self.covariance_path = self.covariance_path + math.sqrt(rate * (2 - rate) * self.effective) * move
        stalled = 0.0 if is_steady else rate * (2 - rate)
        self.covariance = (
            (1 + self.rank_one_rate * stalled - self.rank_one_rate - self.rank_mu_rate) * self.covariance
            + self.rank_one_rate * np.outer(self.covariance_path, self.covariance_path)
            + self.rank_mu_rate * (steps.T * self.weights) @ steps
        )
        self.sigma *= math.exp(self.sigma_rate / self.damping * (length / self.normal_length - 1))
        self._decompose()
