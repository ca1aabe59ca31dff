"""KL-UCB (Garivier and Cappé, The KL-UCB algorithm for bounded stochastic bandits and beyond, COLT 2011)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from banditune.core.quantiles import bernoulli_divergence, divergence_upper_bound
from banditune.core.scalar import scalar
from banditune.policies.base_policies import TotalsPolicy, make_width_parameter
from banditune.policies.index_policy import make_index_functions

MARGIN = 1e-9
"""The relative margin of the test of a bound, which is much larger than rounding errors."""


NEAR = 1e-6
"""The distance from the mean or from 1 below which bounds are not tested: the divergence changes much with the last bit."""


@scalar
def compute_kl_index(arm, setting, step, params):
    """Compute the largest q with pulls kl(mean, q) <= gamma^2 log(step)."""
    if arm.pulls == 0.0:
        return math.inf
    mean = min(max(arm.total / arm.pulls, 0.0), 1.0)
    return divergence_upper_bound(mean, params[0] * params[0] * math.log(max(step, 1.0)) / arm.pulls)


@scalar
def exceeds_kl_bound(arm, setting, step, params, bound):
    """Test whether the bound is below the mean, or above it with a divergence below the level."""
    if arm.pulls == 0.0:
        return bound < math.inf
    mean = arm.total / arm.pulls
    if bound >= 1.0 - NEAR:
        return False
    if bound < mean * (1.0 - MARGIN):
        return True
    limit = params[0] * params[0] * math.log(max(step, 1.0)) / arm.pulls
    return bound > mean + NEAR and bernoulli_divergence(mean, bound) < limit * (1.0 - MARGIN)


FUNCTIONS = make_index_functions(compute_kl_index, "rising", exceeds_kl_bound)


@dataclass(frozen=True)
class KLUCB(TotalsPolicy):
    """Highest upper confidence bound by divergence: the largest q with pulls kl(mean, q) <= gamma^2 log(step).

    kl is the Kullback-Leibler divergence of 0/1 rewards, which gives a valid bound for rewards in [0, 1]. The textbook's
    gamma is 1, without the term in log(log(step)) (Garivier and Cappé 2011, section 3).

    Examples
    --------
    >>> import banditune as bt
    >>> regrets = bt.simulate(bt.policies.KLUCB(), bt.Bernoulli(arms=3), [0.5, 1.0], horizon=100, runs=500)
    >>> tuned, textbook = regrets.mean(axis=1)
    >>> bool(tuned < textbook)
    True
    """

    name = "kl-ucb"
    parameters = (make_width_parameter(),)
    rewards: ClassVar[str] = "unit"
    pulls_every_arm: ClassVar[bool] = True
    choose = staticmethod(FUNCTIONS.choose)
    shortcuts = FUNCTIONS.shortcuts
