"""Problems of a backtest: campaigns and featured problems whose arms have a given spread."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.problem import Instances, Problem
from banditune.problems.campaigns import Campaigns
from banditune.problems.generalized_linear import Linear, Logistic

SCALE_INSTANCES = 4096
"""The number of instances from which the spread of a problem is estimated."""


@dataclass(frozen=True)
class SpreadCampaign(Campaigns):
    """A campaign at several spreads in turn, with a row of posteriors for each. Every instance is simulated twice."""

    def sample(self, size: int, rng: np.random.Generator) -> Instances:
        pairs = np.array(self.posteriors)[np.arange(-(-size // 2)) % len(self.posteriors)]
        draw = rng.normal if self.rewards == "real" else rng.beta
        return Instances(np.repeat(draw(pairs[..., 0], pairs[..., 1]), 2, axis=0)[:size])


class ScaledMeans:
    """Scales the distance of arm means from the mean of their instance."""

    scales: tuple[float, ...]

    def sample(self, size: int, rng: np.random.Generator) -> Instances:
        """Draw instances with each of the scales in turn."""
        instances = super().sample(size, rng)  # type: ignore[misc]
        middle = instances.means.mean(axis=1, keepdims=True)
        scale = np.array(self.scales)[np.arange(size) % len(self.scales)]
        means = middle + scale[:, None] * (instances.means - middle)
        bounded = self.rewards != "real"  # type: ignore[attr-defined]
        return Instances(np.clip(means, 0.0, 1.0) if bounded else means, instances.features)


@dataclass(frozen=True)
class ScaledLinear(ScaledMeans, Linear):
    """A linear problem at several spreads."""

    scales: Any = ()


@dataclass(frozen=True)
class ScaledLogistic(ScaledMeans, Logistic):
    """A logistic problem at several spreads."""

    scales: Any = ()


def scale_arm_means(problem: Problem, variances: FloatArray) -> Problem:
    """Return the problem with arm means that have these variances within an instance."""
    means = problem.sample(SCALE_INSTANCES, np.random.default_rng(20_218)).means
    scales = np.sqrt(variances / float(means.var(axis=1, ddof=1).mean()))
    kind = ScaledLinear if isinstance(problem, Linear) else ScaledLogistic
    options = {option.name: getattr(problem, option.name) for option in fields(problem)}  # type: ignore[arg-type]
    return kind(**options, scales=tuple(scales.tolist()))
