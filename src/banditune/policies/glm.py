"""Policies on logistic regression: UCB-GLM, GLM-TSL, greedy and epsilon-greedy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from banditune.checks import check_number
from banditune.contracts import Parameter, scalar
from banditune.policies.arms import random_arm
from banditune.policies.linear import check_factor
from banditune.policies.logistic import (
    NO_MODE,
    Logistic,
    LogisticRegression,
    build_factor,
    logistic_memory,
    look,
    start_logistic,
    update_logistic,
    view_logistic,
)
from banditune.policies.ridge import (
    Ridge,
    best_score,
    own_option,
    ridge_memory,
    sample_scores,
    start_ridge,
    update_ridge,
    view_ridge,
)
from banditune.policies.simple import epsilon_in_theory
from banditune.streams import uniform


class Bounds(NamedTuple):
    """The mode by logistic regression, the widths by ridge regression."""

    logistic: Logistic
    ridge: Ridge


@scalar
def view_bounds(memory, setting):
    """One memory behind the other."""
    first = logistic_memory(setting.arms, setting.dims)
    return Bounds(view_logistic(memory, setting), view_ridge(memory[first:], setting))


@scalar
def start_bounds(state, setting):
    """Forget everything but the prior."""
    start_logistic(state.logistic, setting)
    start_ridge(state.ridge, setting)


@scalar
def update_bounds(state, setting, arm, reward, stream):
    """Learn a reward."""
    update_logistic(state.logistic, setting, arm, reward, stream)
    update_ridge(state.ridge, setting, arm, reward, stream)


@scalar
def choose_glm_bound(state, setting, step, params, stream):
    """The highest x'theta + gamma c sqrt(x' G^-1 x)."""
    if state.logistic.counts[2] != 0.0:
        return NO_MODE
    factor = params[0] * own_option(setting, 0)
    best = 0
    highest = state.logistic.score[0] + factor * state.ridge.width[0]
    for arm in range(1, setting.arms):
        value = state.logistic.score[arm] + factor * state.ridge.width[arm]
        if value > highest:
            best = arm
            highest = value
    return best


@dataclass(frozen=True)
class UCBGLM(LogisticRegression):
    """Highest x'theta + gamma c sqrt(x' G^-1 x), theta by logistic regression.

    c = (noise / kappa) sqrt(d/2 log(1 + 2n/d) + log n) and G = covariance^-1 + sum of x x', with the horizon n and d
    features. `prior` is the Gaussian (mean, covariance) of theta; theta is the mode of its posterior. `noise` is theory's
    bound on the noise of a reward and `kappa` its bound from below on the slope of the logistic function.
    """

    prior: Any = (0, 1)
    noise: float = 0.5
    kappa: float = 0.25

    name = "ucb-glm"
    parameters = (Parameter("gamma", 0, 1, theory=1),)
    view = staticmethod(view_bounds)
    start = staticmethod(start_bounds)
    choose = staticmethod(choose_glm_bound)
    update = staticmethod(update_bounds)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "noise", check_number("noise", self.noise, above=0))
        object.__setattr__(self, "kappa", check_number("kappa", self.kappa, above=0))

    def memory(self, arms: int, dims: int) -> int:
        return int(logistic_memory(arms, dims)) + ridge_memory(arms, dims)

    def own_options(self, arms: int, dims: int, horizon: int) -> Sequence[float]:
        grown = dims / 2 * math.log(1 + 2 * horizon / dims) + math.log(horizon)
        return (self.noise / self.kappa * math.sqrt(grown),)


@scalar
def update_for_sampling(state, setting, arm, reward, stream):
    """Learn a reward, and the posterior's covariance at the new mode."""
    update_logistic(state, setting, arm, reward, stream)
    look(state, setting)
    build_factor(state, setting)


@scalar
def choose_glm_sample(state, setting, step, params, stream):
    """The highest score under a draw of theta; at gamma = 0 under the mode."""
    if state.counts[2] != 0.0:
        return NO_MODE
    if params[0] > 0.0:
        sample_scores(state, setting, params[0] * own_option(setting, 0), stream)
        return best_score(state.shift)
    return best_score(state.score)


@dataclass(frozen=True)
class GLMTSL(LogisticRegression):
    """Highest x'theta for a draw theta ~ N(mode, gamma^2 factor H^-1), H the Hessian of logistic regression at its mode.

    H = covariance^-1 + sum of p (1 - p) x x', so that H^-1 is Laplace's approximation of the posterior's covariance;
    theory's `factor` is the number of features unless told otherwise, and 1 is posterior sampling at gamma = 1.
    """

    prior: Any = (0, 1)
    factor: Any = None

    name = "glm-tsl"
    parameters = (Parameter("gamma", 0, 1, theory=1),)
    choose = staticmethod(choose_glm_sample)
    update = staticmethod(update_for_sampling)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.factor is not None:
            check_factor("factor", self.factor, "")

    def own_options(self, arms: int, dims: int, horizon: int) -> Sequence[float]:
        return (math.sqrt(dims if self.factor is None else self.factor),)


@scalar
def choose_best_chance(state, setting, step, params, stream):
    """The highest estimated reward."""
    return best_score(state.score) if state.counts[2] == 0.0 else NO_MODE


@dataclass(frozen=True)
class GLMGreedy(LogisticRegression):
    """Always the highest x'theta by logistic regression; nothing to tune."""

    prior: Any = (0, 1)

    name = "glm-greedy"
    choose = staticmethod(choose_best_chance)


@scalar
def choose_random_or_best_chance(state, setting, step, params, stream):
    """A random arm with probability epsilon, else the highest estimated reward."""
    if uniform(stream) < params[0]:
        return random_arm(state, stream)
    return best_score(state.score) if state.counts[2] == 0.0 else NO_MODE


@dataclass(frozen=True)
class GLMEpsilonGreedy(LogisticRegression):
    """A random arm with probability epsilon, else the highest x'theta by logistic regression."""

    prior: Any = (0, 1)

    name = "glm-epsilon-greedy"
    parameters = (Parameter("epsilon", 0, 1, theory=epsilon_in_theory),)
    choose = staticmethod(choose_random_or_best_chance)
