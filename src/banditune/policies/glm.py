"""Policies on logistic regression: UCB-GLM, GLM-TSL, greedy and epsilon-greedy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from banditune.checks import check_number, is_open
from banditune.contracts import PROBLEM, Floats, Team, rare, scalar
from banditune.policies import team_logistic
from banditune.policies.arms import chance_parameter, is_wide, random_arm, width_holds, width_parameter
from banditune.policies.lanes import LANES, add_products, blocks, column, dims, padded, product, subtract_outer, wide
from banditune.policies.logistic import (
    ERROR,
    LONGEST,
    LOST,
    NO_MODE,
    Logistic,
    LogisticRegression,
    build_factor,
    certain,
    count_pull,
    find_mode_and_factor,
    first_step,
    invert_factor,
    logistic_memory,
    multiply,
    recall_logistic,
    resume_logistic,
    score_arms,
    settle,
    settled,
    solve_lower,
    solve_upper,
    start_logistic,
    tolerance,
    update_logistic,
    view_logistic,
)
from banditune.policies.ridge import REFRESH, best_score, own_option
from banditune.policies.simple import epsilon_in_theory
from banditune.streams import normal_pair, uniform

NEAR = 1e-4
"""GLM-TSL's factor belongs to a point within this many posterior deviations of the mode, unless a draw asks for more."""


class Bounds(NamedTuple):
    """The mode by logistic regression; for every arm `variance` is x' G^-1 x and `width` its root."""

    logistic: Logistic
    variance: Floats
    width: Floats
    inverse: Floats
    gain: Floats
    age: Floats


def bounds_memory(arms: int, dims: int) -> int:
    """Floats in `Bounds`."""
    return int(logistic_memory(arms, dims) + 2 * padded(arms) + (dims + 1) * padded(dims) + 1)


@scalar
def view_bounds(memory, setting):
    """The parts of the strip, in the order of the record."""
    room = padded(setting.arms)
    a = logistic_memory(setting.arms, setting.dims)
    b = a + 2 * room
    c = b + dims() * wide()
    return Bounds(
        view_logistic(memory, setting),
        memory[a : a + room],
        memory[a + room : b],
        memory[b:c],
        memory[c : c + wide()],
        memory[c + wide() : c + wide() + 1],
    )


@scalar
def start_bounds(state, setting):
    """Forget everything but the prior."""
    start_logistic(state.logistic, setting)
    renew_widths(state, setting)


@rare
def renew_widths(state, setting):
    """Compute G^-1 and the widths afresh from the pulls, by the logistic memory's factor."""
    logistic = state.logistic
    # With every slope 1, the Hessian is G.
    build_factor(logistic, logistic.seen_pulls)
    invert_factor(logistic.factor, state.inverse, logistic.step)
    for arm in range(setting.arms):
        for j in range(dims()):
            logistic.step[j] = logistic.columns[column(arm, j)]
        solve_lower(logistic.factor, logistic.step)
        state.variance[arm] = product(logistic.step, logistic.step)
        state.width[arm] = math.sqrt(state.variance[arm])
    state.age[0] = 0.0


@scalar
def update_bounds(state, setting, arm, reward, stream):
    """Learn a reward."""
    update_logistic(state.logistic, setting, arm, reward, stream)
    state.age[0] += 1.0
    if state.age[0] >= REFRESH:
        renew_widths(state, setting)
    else:
        shrink_widths(state, setting, int(state.logistic.place[arm]))


@scalar
def recall_bounds(state, setting, pulls, totals):
    """Write down every arm's pulls and total reward."""
    recall_logistic(state.logistic, setting, pulls, totals)


@rare
def resume_bounds(state, setting, params, pulls, totals):
    """Know every arm's pulls and total reward."""
    resume_logistic(state.logistic, setting, params, pulls, totals)
    renew_widths(state, setting)


@scalar
def shrink_widths(state, setting, place):
    """Learn one more x of a played arm: Sherman and Morrison's formula for G^-1 and every arm's width."""
    features = state.logistic.seen_rows[place * wide() : (place + 1) * wide()]
    multiply(state.inverse, features, state.gain)
    shrink = 1.0 / (1.0 + product(features, state.gain))
    subtract_outer(state.inverse, state.gain, state.gain, shrink)
    for arm in range(len(state.width)):
        state.width[arm] = 0.0
    for b in range(blocks(setting.arms)):
        at = b * LANES
        add_products(state.width[at:], state.logistic.columns[at * dims() :], state.gain)
    for arm in range(len(state.width)):
        state.variance[arm] = max(state.variance[arm] - shrink * state.width[arm] * state.width[arm], 0.0)
        state.width[arm] = math.sqrt(state.variance[arm])


@scalar
def choose_glm_bound(state, setting, step, params, stream):
    """The highest x'theta + gamma c sqrt(x' G^-1 x)."""
    if state.logistic.counts[LOST] != 0.0:
        return NO_MODE
    factor = params[0] * own_option(setting, 0)
    best = best_bound(state, setting, factor)
    if certain(state.logistic, state.logistic.score[: setting.arms], best, state.logistic.counts[ERROR]):
        return best
    return settled_bound(state, setting, factor)


@scalar
def best_bound(state, setting, factor):
    """The arm with the highest index; the indices take the place of the scores."""
    score = state.logistic.score
    score_arms(state.logistic, setting, state.logistic.estimate)
    for arm in range(len(score)):
        score[arm] += factor * state.width[arm]
    return best_score(score[: setting.arms])


@rare
def settled_bound(state, setting, factor):
    """The best arm at the exact mode."""
    settle(state.logistic)
    return settled(state.logistic, best_bound(state, setting, factor))


LONG, WIDE, CLOSE = 20_000, 10.0, 0.03
"""Horizon and largest norm of an arm's features up to which teams play in float32, and the least distance between arms as a
share of that norm: what it changes was measured at half the first and a third of the second (docs/performance.md). Arms
whose scores agree to a millionth are taken for equal in float32, so closer ones could not be told apart by a draw."""


def team_precision(policy: LogisticRegression, features: Floats, horizon: int) -> str:
    """float32 where that was shown to be harmless."""
    longest = policy.longest(features)
    near = min(closest(instance) for instance in features[:8])
    return "float32" if horizon <= LONG and longest <= WIDE and near >= CLOSE * longest else "float64"


def closest(features: Floats) -> float:
    """The least distance between the features (dims, arms) of two arms."""
    products = features.T @ features
    squares = np.diag(products)
    distances = squares[:, None] + squares[None, :] - 2 * products
    np.fill_diagonal(distances, math.inf)
    return math.sqrt(max(distances.min(), 0.0))


TEAM_OF_BOUNDS = Team(
    team_logistic.view_team, team_logistic.start_team, team_logistic.choose_team_bound, team_logistic.learn_bounds,
    team_logistic.held_numbers, team_logistic.common_numbers,
    (view_bounds, start_bounds, choose_glm_bound, update_bounds), width_holds, team_precision, is_wide,
)  # fmt: skip


@dataclass(frozen=True)
class UCBGLM(LogisticRegression):
    """Highest x'theta + gamma c sqrt(x' G^-1 x), theta by logistic regression.

    c = (noise / kappa) sqrt(d/2 log(1 + 2n/d) + log n) and G = covariance^-1 + sum of x x', with the horizon n and d
    features. `prior` is the Gaussian (mean, covariance) of theta; theta is the mode of its posterior. `noise` is theory's
    bound on the noise of a reward; `kappa` stands for its bound from below on the slope of the logistic function, for which
    the paper takes the largest slope, 1/4.
    """

    prior: Any = PROBLEM
    noise: Any = PROBLEM
    kappa: float = 0.25

    name = "ucb-glm"
    parameters = (width_parameter(),)
    team: ClassVar[Team | None] = TEAM_OF_BOUNDS
    view = staticmethod(view_bounds)
    start = staticmethod(start_bounds)
    choose = staticmethod(choose_glm_bound)
    update = staticmethod(update_bounds)
    recall = staticmethod(recall_bounds)
    resume = staticmethod(resume_bounds)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_open(self.noise):
            object.__setattr__(self, "noise", check_number("noise", self.noise, above=0))
        object.__setattr__(self, "kappa", check_number("kappa", self.kappa, above=0))

    def memory(self, arms: int, dims: int) -> int:
        return bounds_memory(arms, dims)

    def own_options(self, arms: int, dims: int, horizon: int) -> Sequence[float]:
        grown = dims / 2 * math.log(1 + 2 * horizon / dims) + math.log(horizon)
        return (self.noise / self.kappa * math.sqrt(grown),)


@scalar
def update_for_sampling(state, setting, arm, reward, stream):
    """Learn a reward, and the factor of the posterior's precision at the new mode."""
    place = count_pull(state, arm, reward)
    features = state.seen_rows[place * wide() : (place + 1) * wide()]
    for j in range(dims()):
        state.pulled[j] = features[j]
    solve_lower(state.factor, state.pulled)
    solve_upper(state.factor, state.pulled)
    _, first = first_step(state, features, place, reward)
    find_mode_and_factor(state, first, NEAR)


@scalar
def choose_glm_sample(state, setting, step, params, stream):
    """The highest score under a draw of theta; at gamma = 0 under the mode."""
    if state.counts[LOST] != 0.0:
        return NO_MODE
    scale = params[0] * own_option(setting, 0)
    draw_normals(state, scale, stream)
    best = best_sample(state, setting, scale)
    if certain(state, state.score[: setting.arms], best, sample_error(state, scale)):
        return best
    return settled_sample(state, setting, scale)


@scalar
def draw_normals(state, scale, stream):
    """Standard normals, one for every dimension, into `normals`; none where they would be multiplied by 0."""
    for j in range(wide()):
        state.normals[j] = 0.0
    if scale > 0.0:
        for first in range(0, dims(), 2):
            # An odd one out falls into the padding.
            state.normals[first], state.normals[first + 1] = normal_pair(stream)


@scalar
def best_sample(state, setting, scale):
    """The best arm under theta = mode + scale L'^-1 normals, a draw from N(mode, scale^2 H^-1)."""
    for j in range(dims()):
        state.step[j] = state.normals[j]
    solve_upper(state.factor, state.step)
    for j in range(dims()):
        state.step[j] = state.estimate[j] + scale * state.step[j]
    score_arms(state, setting, state.step)
    return best_score(state.score[: setting.arms])


@scalar
def sample_error(state, scale):
    """How far, in posterior deviations, the draw is from the one with the mode's own factor.

    Where theta is off by e deviations, slopes are off by a share of e |x| or less, so the Hessian is L (I + E) L' with a
    norm |E| <= sqrt(dims) e |x|, and the factor is off by no more than that share.
    """
    spread = scale * math.sqrt(dims() * product(state.normals, state.normals))
    return state.counts[ERROR] * (1.0 + spread * state.counts[LONGEST])


@rare
def settled_sample(state, setting, scale):
    """The best arm under the same draw with the exact mode and its factor."""
    exact = 0.1 * tolerance(state)
    if state.counts[ERROR] > exact:
        find_mode_and_factor(state, math.inf, exact)
    return settled(state, best_sample(state, setting, scale))


TEAM_OF_SAMPLES = Team(
    team_logistic.view_team, team_logistic.start_team, team_logistic.choose_team_sample, team_logistic.learn_root,
    team_logistic.held_numbers, team_logistic.common_numbers,
    (view_logistic, start_logistic, choose_glm_sample, update_for_sampling), width_holds, team_precision, is_wide,
)  # fmt: skip


@dataclass(frozen=True)
class GLMTSL(LogisticRegression):
    """Highest x'theta for a draw theta ~ N(mode, gamma^2 factor H^-1), H the Hessian of logistic regression at its mode.

    H = covariance^-1 + sum of p (1 - p) x x', so that H^-1 is Laplace's approximation of the posterior's covariance;
    theory's `factor` is the number of features unless told otherwise, and 1 is posterior sampling at gamma = 1.
    """

    prior: Any = PROBLEM
    factor: Any = None

    name = "glm-tsl"
    pending = "ignore"
    parameters = (width_parameter(),)
    team: ClassVar[Team | None] = TEAM_OF_SAMPLES
    choose = staticmethod(choose_glm_sample)
    update = staticmethod(update_for_sampling)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.factor is not None:
            object.__setattr__(self, "factor", check_number("factor", self.factor, above=0))

    def own_options(self, arms: int, dims: int, horizon: int) -> Sequence[float]:
        return (math.sqrt(dims if self.factor is None else self.factor),)


@scalar
def best_chance(state, setting):
    """The arm with the highest score under the mode."""
    if state.counts[LOST] != 0.0:
        return NO_MODE
    score_arms(state, setting, state.estimate)
    best = best_score(state.score[: setting.arms])
    if certain(state, state.score[: setting.arms], best, state.counts[ERROR]):
        return best
    settle(state)
    score_arms(state, setting, state.estimate)
    return settled(state, best_score(state.score[: setting.arms]))


@scalar
def choose_best_chance(state, setting, step, params, stream):
    """The highest estimated reward."""
    return best_chance(state, setting)


@dataclass(frozen=True)
class GLMGreedy(LogisticRegression):
    """Always the highest x'theta by logistic regression; nothing to tune."""

    prior: Any = PROBLEM

    name = "glm-greedy"
    choose = staticmethod(choose_best_chance)


@scalar
def choose_random_or_best_chance(state, setting, step, params, stream):
    """A random arm with probability epsilon, else the highest estimated reward."""
    if uniform(stream) < params[0]:
        return random_arm(state, stream)
    return best_chance(state, setting)


@dataclass(frozen=True)
class GLMEpsilonGreedy(LogisticRegression):
    """A random arm with probability epsilon, else the highest x'theta by logistic regression."""

    prior: Any = PROBLEM

    name = "glm-epsilon-greedy"
    pending = "ignore"
    parameters = (chance_parameter(epsilon_in_theory),)
    choose = staticmethod(choose_random_or_best_chance)
