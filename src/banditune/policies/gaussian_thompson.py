"""Thompson sampling for real rewards, with Gaussian posteriors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from banditune.core.checks import check_number, check_pair, is_from_problem
from banditune.core.distributions import normal
from banditune.core.errors import InvalidRequest
from banditune.core.option_types import ArmPolicyPrior, Noise, Option
from banditune.core.policy import FROM_PROBLEM
from banditune.core.scalar import scalar
from banditune.policies.base_policies import TotalsPolicy, make_width_parameter


@scalar
def choose_gaussian_thompson(state, setting, step, params, stream):
    """Choose the highest draw from N(posterior mean, gamma^2 posterior variance); at gamma = 0 the highest mean."""
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

    At gamma = 0 the highest posterior mean is pulled.

    Parameters
    ----------
    prior : (float, float) or "problem"
        Mean and standard deviation of an arm's mean reward. By default they are taken from the problem.
    noise : float or "problem"
        Standard deviation of a reward around its arm's mean, above 0. By default it is taken from the problem.

    Examples
    --------
    >>> import banditune as bt
    >>> regrets = bt.simulate(bt.GaussianThompson(), bt.Gaussian(arms=3), [0.3, 1.0], horizon=100, runs=500)
    >>> regrets.shape
    (2, 500)
    """

    prior: Option[ArmPolicyPrior] = FROM_PROBLEM
    noise: Option[Noise] = FROM_PROBLEM

    name = "gaussian-ts"
    parameters = (make_width_parameter(),)
    prior_kind: ClassVar[str] = "normal"
    textbook_options: ClassVar[Mapping[str, Any]] = {"prior": (0, 1), "noise": 1.0}
    choose = staticmethod(choose_gaussian_thompson)

    def __post_init__(self) -> None:
        mean, sd = (0.0, 1.0) if is_from_problem(self.prior) else check_pair("prior", self.prior)
        noise = 1.0 if is_from_problem(self.noise) else check_number("noise", self.noise)
        if not (1e-100 < sd < 1e100 and 1e-100 < noise < 1e100 and abs(mean) < 1e100):
            raise InvalidRequest(
                "the prior's standard deviation and `noise` must be > 0 and below 1e100 for gaussian-ts, but got "
                f"prior={self.prior!r} and noise={self.noise!r}.",
                argument="prior",
                code="out-of-range",
            )
        if not is_from_problem(self.prior):
            object.__setattr__(self, "prior", (mean, sd))
        if not is_from_problem(self.noise):
            object.__setattr__(self, "noise", noise)

    @property
    def prior_moments(self) -> tuple[float, float] | None:
        """Mean and standard deviation of the prior."""
        if is_from_problem(self.prior):
            return None
        mean, sd = self.prior
        return mean, sd

    def options(self, arms: int, dims: int, horizon: int) -> Sequence[float]:
        return (self.prior[0], 1 / self.prior[1] ** 2, 1 / self.noise**2)
