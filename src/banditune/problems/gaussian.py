"""Arms that pay a real number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from banditune.checks import check_arms, check_names, check_number, columns, pairs
from banditune.contracts import Instances, Problem
from banditune.problems.residuals import check_residuals, residuals, reward_around, reward_options


@dataclass(frozen=True)
class Gaussian(Problem):
    """Arms pay their mean plus noise; means are drawn from N(mean, sd^2), one prior for all or one per arm.

    `noise` is the standard deviation of rewards around their mean. They are Gaussian unless `residuals` are given, whose
    shape they have then: numbers for all arms, or a row per arm.
    """

    arms: int = 10
    prior: Any = (0, 1)
    noise: float = 1.0
    names: Any = ()
    residuals: Any = residuals()

    name = "gaussian"
    prior_kind = "normal"

    def __post_init__(self) -> None:
        object.__setattr__(self, "arms", check_arms(self.arms))
        prior = pairs(self.prior, self.arms, first="mean", second="sd", first_positive=False)
        object.__setattr__(self, "prior", prior)
        object.__setattr__(self, "noise", check_number("noise", self.noise, above=0))
        object.__setattr__(self, "names", check_names(self.names, self.arms))
        object.__setattr__(self, "residuals", check_residuals(self.residuals, self.arms))

    @property
    def reward(self) -> Callable[..., Any]:  # type: ignore[override]
        """The scalar function that draws a reward."""
        return reward_around(self.residuals)

    def sample(self, size: int, rng: np.random.Generator) -> Instances:
        mean, sd = columns(self.prior)
        return Instances(rng.normal(mean, sd, (size, self.arms)))

    def options(self) -> Sequence[float]:
        return reward_options(self.noise, self.residuals)
