"""Problems whose arms pay real numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from banditune.core.checks import check_arms, check_names, check_number, check_prior_pairs, split_prior_columns
from banditune.core.option_types import ArmPrior, Names, Option, default_option
from banditune.core.problem import Instances, Problem
from banditune.problems.residual_noise import check_residuals, make_residuals_field, make_reward_options, select_reward


@dataclass(frozen=True)
class Gaussian(Problem):
    """Arms that pay their mean plus noise, with means from N(mean, sd^2).

    Parameters
    ----------
    arms : int
        Number of arms, 2 or more.
    prior : (float, float) or sequence of (float, float)
        Mean and standard deviation of the mean rewards: one pair for all arms, or one pair per arm.
    noise : float
        Standard deviation of rewards around their mean, above 0.
    names : sequence of str
        Names of the arms, one per arm. None by default.
    residuals : sequence of float or sequence of sequences, optional
        A sample of the noise: numbers for all arms, or a row per arm, 100,000 at most. Each row is shifted to mean 0, and
        all together are scaled to variance 1. By default noise is Gaussian.

    Examples
    --------
    >>> import banditune as bt
    >>> import numpy as np
    >>> bt.Gaussian(arms=3, prior=(0, 2), noise=0.5).sample(2, np.random.default_rng(0)).means.shape
    (2, 3)
    """

    arms: int = 10
    prior: Option[ArmPrior] = default_option((0, 1))
    noise: float = 1.0
    names: Option[Names] = default_option(())
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
