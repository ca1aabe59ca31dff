"""Bayes-UCB (Kaufmann, Cappé and Garivier, On Bayesian upper confidence bounds for bandit problems, AISTATS 2012)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from banditune.core.checks import check_pair, is_from_problem
from banditune.core.option_types import ArmPolicyPrior, Option
from banditune.core.policy import FROM_PROBLEM
from banditune.core.quantiles import beta_tail, beta_upper_quantile
from banditune.core.request_errors import make_limit_error
from banditune.core.scalar import scalar
from banditune.policies.base_policies import TotalsPolicy, make_width_parameter
from banditune.policies.index_policy import make_index_functions

MARGIN = 1e-9
"""The relative margin of the test of a bound, which is much larger than rounding errors."""


NEAR = 1e-6
"""The distance from 1 below which bounds are not tested, because there the tail changes much with the last bit."""


@scalar
def compute_tail(step, params):
    """Compute the share of the posterior above the index: step^(-gamma^2), at most a half."""
    return min(0.5, math.exp(-params[0] * params[0] * math.log(max(step, 1.0))))


@scalar
def compute_bayes_index(arm, setting, step, params):
    """Compute the upper quantile of the arm's posterior, which is at least its mean.

    At gamma = 0 the quantile is the median. Medians of different posteriors may be equal except for the last bit, but equal
    means have equal bits.
    """
    successes = min(max(arm.total, 0.0), arm.pulls)
    a = setting.options[0] + successes
    b = setting.options[1] + (arm.pulls - successes)
    return max(a / (a + b), beta_upper_quantile(compute_tail(step, params), a, b))


@scalar
def exceeds_bayes_bound(arm, setting, step, params, bound):
    """Test whether the bound is below the index, so that the posterior probability above it is larger."""
    successes = min(max(arm.total, 0.0), arm.pulls)
    a = setting.options[0] + successes
    b = setting.options[1] + (arm.pulls - successes)
    if bound < a / (a + b) * (1.0 - MARGIN):
        return True
    return bound < 1.0 - NEAR and beta_tail(bound, a, b) > compute_tail(step, params) * (1.0 + MARGIN)


FUNCTIONS = make_index_functions(compute_bayes_index, "rising", exceeds_bayes_bound)


@dataclass(frozen=True)
class BayesUCB(TotalsPolicy):
    """Highest upper quantile of the Beta posteriors, or their mean if that is higher.

    The posterior probability above the quantile is step^(-gamma^2), at most a half. In the textbook it is 1 / step
    (Kaufmann, Cappé and Garivier 2012, with c = 0). A reward between 0 and 1 counts as this fraction of a success.

    Parameters
    ----------
    prior : (float, float) or "problem"
        Beta(a, b), the posterior before the first pull; a and b are above 0. By default it is that of the problem's mean
        rewards.

    Examples
    --------
    >>> import banditune as bt
    >>> policy = bt.policies.BayesUCB(prior=(1, 1))
    >>> regrets = bt.simulate(policy, bt.Bernoulli(arms=3), [0.5, 1.0], horizon=100, runs=500)
    >>> regrets.shape
    (2, 500)
    """

    prior: Option[ArmPolicyPrior] = FROM_PROBLEM

    name = "bayes-ucb"
    parameters = (make_width_parameter(),)
    rewards: ClassVar[str] = "unit"
    prior_kind: ClassVar[str] = "beta"
    textbook_options: ClassVar[Mapping[str, Any]] = {"prior": (1, 1)}
    smallest_prior_shape: ClassVar[float] = 0.01
    choose = staticmethod(FUNCTIONS.choose)
    shortcuts = FUNCTIONS.shortcuts

    def __post_init__(self) -> None:
        if is_from_problem(self.prior):
            return
        prior = check_pair("prior", self.prior)
        if min(prior) < self.smallest_prior_shape:
            raise make_limit_error("prior", min(prior), least=self.smallest_prior_shape, note=" for both shapes")
        object.__setattr__(self, "prior", prior)

    def options(self, arms: int, dims: int, horizon: int) -> Sequence[float]:
        return self.prior  # type: ignore[no-any-return]
