"""Arms that pay a real number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from banditune.core.checks import check_arms, check_names, check_number, check_prior_pairs, split_prior_columns
from banditune.core.problem import Instances, Problem
from banditune.problems.residual_noise import check_residuals, make_residuals_field, make_reward_options, select_reward


@dataclass(frozen=True)
class Gaussian(Problem):
    """Arms pay their mean plus noise; means are drawn from N(mean, sd^2), one prior for all or one per arm.

    `noise` is the standard deviation of rewards around their mean. They are Gaussian unless `make_residuals_field` are given, whose
    shape they have then: numbers for all arms, or a row per arm.
    """

    arms: int = 10
    prior: Any = (0, 1)
    noise: float = 1.0
    names: Any = ()
    residuals: Any = make_residuals_field()

    name = "gaussian"
    prior_kind = "normal"

    def __post_init__(self) -> None:
        object.__setattr__(self, "arms", check_arms(self.arms))
        prior = check_prior_pairs(self.prior, self.arms, first="mean", second="sd", first_positive=False)
        object.__setattr__(self, "prior", prior)
        object.__setattr__(self, "noise", check_number("noise", self.noise, above=0))
        object.__setattr__(self, "names", check_names(self.names, self.arms))
        object.__setattr__(self, "residuals", check_residuals(self.residuals, self.arms))

    @property
    def reward(self) -> Callable[..., Any]:  # type: ignore[override]
        """The scalar function that draws a reward."""
        return select_reward(self.residuals)

    def sample(self, size: int, rng: np.random.Generator) -> Instances:
        mean, sd = split_prior_columns(self.prior)
        return Instances(rng.normal(mean, sd, (size, self.arms)))

    def options(self) -> Sequence[float]:
        return make_reward_options(self.noise, self.residuals)
