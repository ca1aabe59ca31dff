"""Closed-form approximations of the finite-horizon Gittins index, with four constants that are tuned.

An arm's posterior has a mean and a standard deviation sqrt(v / T), where T is its pulls plus the weight of the prior and v
the variance of a reward. Against an arm with a known mean, and with m rounds left, pulling pays up to a price: the index.
Scaling rewards and time leaves a Brownian motion whose index above the mean, in units of sqrt(v / T), depends on m / T
alone. That function tends to 0 with m / T and grows as sqrt(2 log(m / T)). So does sqrt(2 log(1 + m / T)), the textbook
values here. The constants correct it for rewards that come one by one, and for several unknown arms.

Lai (Adaptive treatment allocation and the multi-armed bandit problem, Annals of Statistics 15, 1987) bounds means by such
functions of the horizon, and shows that they are asymptotically optimal. Brezzi and Lai (Optimal learning and
experimentation in bandit problems, Journal of Economic Dynamics and Control 27, 2002) approximate the discounted index in
this way. Lattimore (Regret analysis of the finite-horizon Gittins index strategy for multi-armed bandits, COLT 2016) bounds
the finite-horizon index of Gaussian arms.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from banditune.core.checks import check_number, check_pair, is_from_problem
from banditune.core.errors import InvalidRequest
from banditune.core.option_types import ArmPolicyPrior, Noise, Option
from banditune.core.policy import FROM_PROBLEM
from banditune.core.request_errors import make_limit_error
from banditune.core.scalar import scalar
from banditune.core.space import Parameter
from banditune.policies.base_policies import TotalsPolicy
from banditune.policies.index_policy import make_index_functions

PARAMETERS = (
    Parameter(
        "c",
        0.06,
        4,
        textbook=1,
        scale="log",
        upper_limit=1e6,
        meaning="how much the policy explores: a factor of the squared width",
    ),
    Parameter(
        "d",
        0.02,
        6,
        textbook=1,
        scale="log",
        lower_limit=1e-100,
        upper_limit=1e100,
        meaning="divides the rounds that are left: the larger, the earlier exploring ends",
    ),
    Parameter(
        "e",
        0.25,
        3,
        textbook=1,
        scale="log",
        upper_limit=100,
        meaning="the power of an arm's pulls by which the rounds that are left count less",
    ),
    Parameter(
        "s",
        0.3,
        6,
        textbook=1,
        scale="log",
        upper_limit=1e100,
        meaning="the weight of the prior: how many times its pulls it counts",
    ),
)
"""The constants c, d, e and s of the index."""


LARGEST_EXPONENT = 700.0
"""The exponential of a larger number is an error in plain Python."""


@scalar
def compute_exploration(weight, setting, step, params):
    """Compute 2 c log(1 + m / (d T^e)) / T, for an arm with weight T and m rounds left. After the horizon m is 0."""
    left = setting.horizon - step
    if left <= 0:
        return 0.0
    share = left / params[1] * math.exp(min(-params[2] * math.log(weight), LARGEST_EXPONENT))
    return 2.0 * params[0] * math.log(1.0 + share) / weight


@scalar
def compute_bernoulli_index(arm, setting, step, params):
    """Compute p + sqrt(p (1 - p) 2 c log(1 + m / (d T^e)) / T) with T = pulls + s (a + b) and p = (total + s a) / T."""
    weight = arm.pulls + params[3] * (setting.options[0] + setting.options[1])
    if weight <= 0.0:
        return math.inf
    p = (arm.total + params[3] * setting.options[0]) / weight
    variance = p * (1.0 - p)
    if variance <= 0.0:
        return p
    return p + math.sqrt(variance * compute_exploration(weight, setting, step, params))


@scalar
def exceeds_bernoulli_bound(arm, setting, step, params, bound):
    """Test whether the posterior mean is above the bound. The index is not below it, because rounding is monotone."""
    weight = arm.pulls + params[3] * (setting.options[0] + setting.options[1])
    if weight <= 0.0:
        return bound < math.inf
    return (arm.total + params[3] * setting.options[0]) / weight > bound


@scalar
def compute_gaussian_index(arm, setting, step, params):
    """Compute mean + noise sqrt(2 c log(1 + m / (d T^e)) / T) with T = pulls + s (noise / sd)^2."""
    prior_weight = params[3] * setting.options[1]
    weight = arm.pulls + prior_weight
    if weight <= 0.0:
        return math.inf
    mean = (arm.total + prior_weight * setting.options[0]) / weight
    return mean + setting.options[2] * math.sqrt(compute_exploration(weight, setting, step, params))


@scalar
def exceeds_gaussian_bound(arm, setting, step, params, bound):
    """Test whether the posterior mean is above the bound. The index is not below it, because rounding is monotone."""
    prior_weight = params[3] * setting.options[1]
    weight = arm.pulls + prior_weight
    if weight <= 0.0:
        return bound < math.inf
    return (arm.total + prior_weight * setting.options[0]) / weight > bound


BERNOULLI_FUNCTIONS = make_index_functions(compute_bernoulli_index, "falling", exceeds_bernoulli_bound)


GAUSSIAN_FUNCTIONS = make_index_functions(compute_gaussian_index, "falling", exceeds_gaussian_bound)


@dataclass(frozen=True)
class FiniteHorizonIndex(TotalsPolicy):
    """Highest posterior mean plus a width that falls with the rounds left, for rewards in [0, 1].

    The index is p + sqrt(2 c p (1 - p) log(1 + m / (d T^e)) / T), where m rounds are left, this one included. T is the
    arm's pulls plus s (a + b), and p its total reward plus s a, divided by T. It approximates the finite-horizon Gittins
    index (Lai 1987; Brezzi and Lai 2002; Lattimore 2016). The textbook's constants are all 1.

    A search tunes the four constants together. Fix some with `Search(fixed=...)`.

    Parameters
    ----------
    prior : (float, float) or "problem"
        Beta(a, b), the posterior before the first pull; a and b are above 0. By default it is that of the problem's mean
        rewards.

    Examples
    --------
    >>> import banditune as bt
    >>> policy = bt.policies.FiniteHorizonIndex()
    >>> rows = [[1, 1, 1, 1], [0.36, 1.5, 0.48, 2]]
    >>> regrets = bt.simulate(policy, bt.Bernoulli(arms=10), rows, horizon=200, runs=500)
    >>> textbook, tuned = regrets.mean(axis=1)
    >>> bool(tuned < textbook)
    True
    """

    prior: Option[ArmPolicyPrior] = FROM_PROBLEM

    name = "finite-horizon-index"
    parameters = PARAMETERS
    rewards: ClassVar[str] = "unit"
    prior_kind: ClassVar[str] = "beta"
    textbook_options: ClassVar[Mapping[str, Any]] = {"prior": (1, 1)}
    smallest_prior_shape: ClassVar[float] = 0.01
    choose = staticmethod(BERNOULLI_FUNCTIONS.choose)
    shortcuts = BERNOULLI_FUNCTIONS.shortcuts

    def __post_init__(self) -> None:
        if is_from_problem(self.prior):
            return
        prior = check_pair("prior", self.prior)
        if min(prior) < self.smallest_prior_shape:
            raise make_limit_error("prior", min(prior), least=self.smallest_prior_shape, note=" for both shapes")
        object.__setattr__(self, "prior", prior)

    def options(self, arms: int, dims: int, horizon: int) -> Sequence[float]:
        return self.prior  # type: ignore[no-any-return]


@dataclass(frozen=True)
class GaussianFiniteHorizonIndex(TotalsPolicy):
    """Highest posterior mean plus a width that falls with the rounds left, for real rewards.

    The index is mean + noise sqrt(2 c log(1 + m / (d T^e)) / T), where m rounds are left, this one included. T is the arm's
    pulls plus s (noise / sd)^2, and the mean is that of a posterior whose prior counts s times. It approximates the
    finite-horizon Gittins index (Lai 1987; Brezzi and Lai 2002; Lattimore 2016). The textbook's constants are all 1.

    A search tunes the four constants together. Fix some with `Search(fixed=...)`.

    Parameters
    ----------
    prior : (float, float) or "problem"
        Mean and standard deviation of an arm's mean reward. By default they are taken from the problem.
    noise : float or "problem"
        Standard deviation of a reward around its arm's mean, above 0. By default it is taken from the problem.

    Examples
    --------
    >>> import banditune as bt
    >>> policy = bt.policies.GaussianFiniteHorizonIndex()
    >>> bt.simulate(policy, bt.Gaussian(arms=3), [[1, 1, 1, 1]], horizon=100, runs=500).shape
    (1, 500)
    """

    prior: Option[ArmPolicyPrior] = FROM_PROBLEM
    noise: Option[Noise] = FROM_PROBLEM

    name = "gaussian-finite-horizon-index"
    parameters = PARAMETERS
    prior_kind: ClassVar[str] = "normal"
    textbook_options: ClassVar[Mapping[str, Any]] = {"prior": (0, 1), "noise": 1.0}
    choose = staticmethod(GAUSSIAN_FUNCTIONS.choose)
    shortcuts = GAUSSIAN_FUNCTIONS.shortcuts

    def __post_init__(self) -> None:
        mean, sd = (0.0, 1.0) if is_from_problem(self.prior) else check_pair("prior", self.prior)
        noise = 1.0 if is_from_problem(self.noise) else check_number("noise", self.noise)
        if not (1e-50 < sd < 1e50 and 1e-50 < noise < 1e50 and abs(mean) < 1e50):
            raise InvalidRequest(
                f"the prior's standard deviation and `noise` must be above 1e-50 and below 1e50 for {self.name}, but got "
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
        return None if is_from_problem(self.prior) else self.prior

    def options(self, arms: int, dims: int, horizon: int) -> Sequence[float]:
        return (self.prior[0], (self.noise / self.prior[1]) ** 2, self.noise)
