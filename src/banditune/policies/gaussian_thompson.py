"""Thompson sampling for real rewards with Gaussian posteriors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from banditune.checks import check_number, check_pair, is_open
from banditune.contracts import PROBLEM, BadRequest, scalar
from banditune.policies.arms import TotalsPolicy, width_parameter
from banditune.streams import normal


@scalar
def choose_gaussian_sample(state, setting, step, params, stream):
    """The highest draw from N(posterior mean, gamma^2 posterior variance); at gamma = 0 the highest posterior mean."""
    prior_mean = setting.options[0]
    prior_precision = setting.options[1]
    noise_precision = setting.options[2]
    best = 0
    highest = -1e308
    for arm in range(setting.arms):
        precision = prior_precision + noise_precision * state.pulls[arm]
        value = (prior_precision * prior_mean + noise_precision * state.total[arm]) / precision
        if params[0] > 0.0:
            value += params[0] / math.sqrt(precision) * normal(stream)
        if value > highest:
            best = arm
            highest = value
    return best


@dataclass(frozen=True)
class GaussianThompson(TotalsPolicy):
    """Highest draw from Gaussian posteriors whose standard deviation is scaled by gamma.

    `prior` is the mean and standard deviation of an arm's mean reward, `noise` the standard deviation of a reward;
    both are the problem's by default.
    """

    prior: Any = PROBLEM
    noise: Any = PROBLEM

    name = "gaussian-ts"
    parameters = (width_parameter(),)
    prior_kind: ClassVar[str] = "normal"
    textbook_options: ClassVar[Mapping[str, Any]] = {"prior": (0, 1), "noise": 1.0}
    choose = staticmethod(choose_gaussian_sample)

    def __post_init__(self) -> None:
        mean, sd = (0.0, 1.0) if is_open(self.prior) else check_pair("prior", self.prior)
        noise = 1.0 if is_open(self.noise) else check_number("noise", self.noise)
        if not (1e-100 < sd < 1e100 and 1e-100 < noise < 1e100 and abs(mean) < 1e100):
            raise BadRequest(
                "the prior's standard deviation and `noise` must be > 0 and below 1e100 for gaussian-ts, but got "
                f"prior={self.prior!r} and noise={self.noise!r}."
            )
        if not is_open(self.prior):
            object.__setattr__(self, "prior", (mean, sd))
        if not is_open(self.noise):
            object.__setattr__(self, "noise", noise)

    @property
    def expected_means(self) -> tuple[float, float] | None:
        """What it expects an arm without rewards to pay: its prior."""
        if is_open(self.prior):
            return None
        mean, sd = self.prior
        return mean, sd

    def options(self, arms: int, dims: int, horizon: int) -> Sequence[float]:
        return (self.prior[0], 1 / self.prior[1] ** 2, 1 / self.noise**2)
