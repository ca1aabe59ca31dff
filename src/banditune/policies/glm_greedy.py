"""Greedy and epsilon-greedy policies on logistic regression."""

from __future__ import annotations

from dataclasses import dataclass

from banditune.core.option_types import Option, WeightPolicyPrior
from banditune.core.policy import FROM_PROBLEM
from banditune.core.scalar import scalar
from banditune.core.streams import uniform
from banditune.policies.base_policies import LogisticPolicy, make_probability_parameter
from banditune.policies.epsilon_greedy import compute_textbook_epsilon
from banditune.simulation.estimators.arm_totals import draw_arm
from banditune.simulation.estimators.logistic_mode import NO_MODE, choose_first_tied, is_certain, refine_mode
from banditune.simulation.estimators.logistic_state import ERROR, MODE_LOST, score_logistic_arms
from banditune.simulation.estimators.vector_layout import argmax_score


@scalar
def find_best_chance(state, setting):
    """Find the arm with the highest score under the mode."""
    if state.counts[MODE_LOST] != 0.0:
        return NO_MODE
    score_logistic_arms(state, setting, state.estimate)
    best = argmax_score(state.score[: setting.arms])
    if is_certain(state, state.score[: setting.arms], best, state.counts[ERROR]):
        return best
    refine_mode(state)
    score_logistic_arms(state, setting, state.estimate)
    return choose_first_tied(state, argmax_score(state.score[: setting.arms]))


@scalar
def choose_glm_greedy(state, setting, step, params, stream):
    """Choose the highest estimated reward."""
    return find_best_chance(state, setting)


@dataclass(frozen=True)
class GLMGreedy(LogisticPolicy):
    """Always the highest x'theta by logistic regression. It has no parameter to tune.

    Theta is the mode of its posterior.

    Parameters
    ----------
    prior : (mean, covariance) or "problem"
        Gaussian prior of theta: the mean as a number or a vector, the covariance as a number or a matrix. By default it
        is taken from the problem.
    """

    prior: Option[WeightPolicyPrior] = FROM_PROBLEM

    name = "glm-greedy"
    choose = staticmethod(choose_glm_greedy)


@scalar
def choose_glm_epsilon_greedy(state, setting, step, params, stream):
    """Choose a random arm with probability epsilon, else the highest estimated reward."""
    if uniform(stream) < params[0]:
        return draw_arm(state, stream)
    return find_best_chance(state, setting)


@dataclass(frozen=True)
class GLMEpsilonGreedy(LogisticPolicy):
    """A random arm with probability epsilon, else the highest x'theta by logistic regression.

    Theta is the mode of its posterior.

    Parameters
    ----------
    prior : (mean, covariance) or "problem"
        Gaussian prior of theta: the mean as a number or a vector, the covariance as a number or a matrix. By default it
        is taken from the problem.
    """

    prior: Option[WeightPolicyPrior] = FROM_PROBLEM

    name = "glm-epsilon-greedy"
    pending_rewards = "ignore"
    parameters = (make_probability_parameter(compute_textbook_epsilon),)
    choose = staticmethod(choose_glm_epsilon_greedy)
