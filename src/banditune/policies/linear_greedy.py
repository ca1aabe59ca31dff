"""Greedy and epsilon-greedy policies on ridge regression."""

from __future__ import annotations

from dataclasses import dataclass

from banditune.core.option_types import Noise, Option, WeightPolicyPrior
from banditune.core.policy import FROM_PROBLEM
from banditune.core.scalar import scalar
from banditune.core.streams import uniform
from banditune.policies.base_policies import RidgePolicy, make_probability_parameter
from banditune.policies.epsilon_greedy import compute_textbook_epsilon
from banditune.simulation.estimators.arm_totals import draw_arm
from banditune.simulation.estimators.vector_layout import argmax_score


@scalar
def choose_lin_greedy(state, setting, step, params, stream):
    """Choose the highest estimated reward."""
    return argmax_score(state.score)


@dataclass(frozen=True)
class LinGreedy(RidgePolicy):
    """Always the highest x'theta by ridge regression. It has no parameter to tune.

    Parameters
    ----------
    prior : (mean, covariance) or "problem"
        Gaussian prior of theta: the mean as a number or a vector, the covariance as a number or a matrix. By default it
        is taken from the problem.
    noise : float or "problem"
        Standard deviation of a reward around its arm's mean, above 0. By default it is taken from the problem.
    """

    prior: Option[WeightPolicyPrior] = FROM_PROBLEM
    noise: Option[Noise] = FROM_PROBLEM

    name = "lin-greedy"
    choose = staticmethod(choose_lin_greedy)


@scalar
def choose_lin_epsilon_greedy(state, setting, step, params, stream):
    """Choose a random arm with probability epsilon, else the highest estimated reward."""
    if uniform(stream) < params[0]:
        return draw_arm(state, stream)
    return argmax_score(state.score)


@dataclass(frozen=True)
class LinEpsilonGreedy(RidgePolicy):
    """A random arm with probability epsilon, else the highest x'theta by ridge regression.

    Parameters
    ----------
    prior : (mean, covariance) or "problem"
        Gaussian prior of theta: the mean as a number or a vector, the covariance as a number or a matrix. By default it
        is taken from the problem.
    noise : float or "problem"
        Standard deviation of a reward around its arm's mean, above 0. By default it is taken from the problem.
    """

    prior: Option[WeightPolicyPrior] = FROM_PROBLEM
    noise: Option[Noise] = FROM_PROBLEM

    name = "lin-epsilon-greedy"
    pending_rewards = "ignore"
    parameters = (make_probability_parameter(compute_textbook_epsilon),)
    choose = staticmethod(choose_lin_epsilon_greedy)
