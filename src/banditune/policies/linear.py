"""Policies on ridge regression: LinUCB, linear Thompson sampling, greedy and epsilon-greedy, and a user's own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from banditune.checks import check_number
from banditune.contracts import PROBLEM, BadRequest, Parameter, Play, Team, scalar
from banditune.descriptions import untold
from banditune.policies import team_linear
from banditune.policies.arms import chance_parameter, parameter_records, random_arm, width_holds, width_parameter
from banditune.policies.lazy_linear import advance_lazy_linear, lazy_memory
from banditune.policies.live import advance_live, live_memory
from banditune.policies.ridge import (
    RidgePolicy,
    best_score,
    bound_factor,
    own_option,
    sample_scores,
    start_ridge,
    update_ridge,
    view_ridge,
)
from banditune.policies.simple import epsilon_in_theory
from banditune.streams import uniform


@scalar
def start_bounds(state, setting):
    """Forget everything; theory's factor depends on the instance's features."""
    start_ridge(state, setting)
    state.own[0] = bound_factor(setting)


@scalar
def choose_linear_bound(state, setting, step, params, stream):
    """The highest x'theta + gamma c sqrt(x' G^-1 x)."""
    factor = params[0] * state.own[0]
    for arm in range(setting.arms):
        state.shift[arm] = state.score[arm] + factor * state.width[arm]
    return best_score(state.shift)


BOUNDS = (view_ridge, start_bounds, choose_linear_bound, update_ridge)
LIVE = Play("live", advance_live, BOUNDS, live_memory, holds=width_holds, exact_bits=False)
TEAM_OF_BOUNDS = Team(
    team_linear.view_bounds, team_linear.start_counts, team_linear.choose_bound, team_linear.learn_in_stay,
    team_linear.held_bounds, team_linear.common_bounds, BOUNDS, width_holds,
)  # fmt: skip


@dataclass(frozen=True)
class LinUCB(RidgePolicy):
    """Highest x'theta + gamma c sqrt(x' G^-1 x), G = noise^2 covariance^-1 + sum of x x'.

    `prior` is the Gaussian (mean, covariance) of theta, `noise` the standard deviation of rewards. `theory` says what c is:
    "theorem" for g = sqrt(d) + noise sqrt(d log((1 + n L^2) n)), n the horizon and L the largest norm of an arm's features;
    "paper" for noise g, as the paper prints it; or a number.
    """

    prior: Any = PROBLEM
    noise: Any = PROBLEM
    theory: Any = "paper"

    name = "linucb"
    parameters = (width_parameter(),)
    plays: ClassVar[tuple[Play, ...]] = (LIVE,)
    team: ClassVar[Team | None] = TEAM_OF_BOUNDS
    start = staticmethod(start_bounds)
    choose = staticmethod(choose_linear_bound)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.theory, str) and self.theory not in ("paper", "theorem"):
            raise BadRequest(f'`theory` must be "paper", "theorem" or a number > 0, but got {self.theory!r}.')
        if not isinstance(self.theory, str):
            object.__setattr__(self, "theory", check_number("theory", self.theory, above=0))

    def own_options(self, arms: int, dims: int, horizon: int) -> Sequence[float]:
        if isinstance(self.theory, str):
            return (0.0, self.noise if self.theory == "paper" else 1.0, self.noise)
        return (self.theory, 0.0, 0.0)


@scalar
def choose_linear_sample(state, setting, step, params, stream):
    """The highest score under a draw of theta; at gamma = 0 under the estimate."""
    if params[0] > 0.0:
        sample_scores(state, setting, params[0] * own_option(setting, 0), stream)
        return best_score(state.shift)
    return best_score(state.score)


SAMPLES = (view_ridge, start_ridge, choose_linear_sample, update_ridge)
LAZY = Play("lazy", advance_lazy_linear, SAMPLES, lazy_memory, holds=width_holds, exact_bits=False)
TEAM_OF_SAMPLES = Team(
    team_linear.view_samples, team_linear.start_counts, team_linear.choose_sample, team_linear.learn_in_stay,
    team_linear.held_samples, team_linear.common_samples, SAMPLES, width_holds,
)  # fmt: skip


@dataclass(frozen=True)
class LinTS(RidgePolicy):
    """Highest x'theta for a draw theta ~ N(estimate, gamma^2 factor noise^2 G^-1), G as for LinUCB.

    noise^2 G^-1 is the posterior's covariance; theory's `factor` is the number of features unless told otherwise, and 1 is
    posterior sampling at gamma = 1.
    """

    prior: Any = PROBLEM
    noise: Any = PROBLEM
    factor: Any = None

    name = "lints"
    pending = "ignore"
    parameters = (width_parameter(),)
    plays: ClassVar[tuple[Play, ...]] = (LAZY,)
    team: ClassVar[Team | None] = TEAM_OF_SAMPLES
    choose = staticmethod(choose_linear_sample)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.factor is not None:
            object.__setattr__(self, "factor", check_number("factor", self.factor, above=0))

    def own_options(self, arms: int, dims: int, horizon: int) -> Sequence[float]:
        return (math.sqrt(dims if self.factor is None else self.factor) * self.noise,)


@scalar
def choose_best_score(state, setting, step, params, stream):
    """The highest estimated reward."""
    return best_score(state.score)


@dataclass(frozen=True)
class LinGreedy(RidgePolicy):
    """Always the highest x'theta by ridge regression; nothing to tune."""

    prior: Any = PROBLEM
    noise: Any = PROBLEM

    name = "lin-greedy"
    choose = staticmethod(choose_best_score)


@scalar
def choose_random_or_best_score(state, setting, step, params, stream):
    """A random arm with probability epsilon, else the highest estimated reward."""
    if uniform(stream) < params[0]:
        return random_arm(state, stream)
    return best_score(state.score)


@dataclass(frozen=True)
class LinEpsilonGreedy(RidgePolicy):
    """A random arm with probability epsilon, else the highest x'theta by ridge regression."""

    prior: Any = PROBLEM
    noise: Any = PROBLEM

    name = "lin-epsilon-greedy"
    pending = "ignore"
    parameters = (chance_parameter(epsilon_in_theory),)
    choose = staticmethod(choose_random_or_best_score)


@dataclass(frozen=True)
class OwnRidgePolicy(RidgePolicy):
    """A user's policy on ridge regression; see `ridge_policy`."""

    name: str
    prior: Any = PROBLEM
    noise: Any = PROBLEM
    choose: Callable[..., Any] = untold()
    parameters: tuple[Parameter, ...] = untold(())


def ridge_policy(
    name: str, choose: Callable[..., Any], *, parameters: Any = (), prior: Any = PROBLEM, noise: Any = PROBLEM
) -> OwnRidgePolicy:
    """A linear policy of your own: `choose(state, setting, step, params, stream) -> arm`, with `state.score[arm]` the
    estimated reward x'theta of an arm and `state.width[arm]` the root of x' G^-1 x, by ridge regression.

    `prior` is the Gaussian (mean, covariance) of theta and `noise` the standard deviation of rewards, so that noise times
    width is the posterior standard deviation of a score. `sample_scores(state, setting, scale, stream)` draws theta from
    N(estimate, scale^2 G^-1) and puts the scores under it into `state.shift`.
    """
    return OwnRidgePolicy(str(name), prior, noise, choose, parameter_records(choose, parameters))
