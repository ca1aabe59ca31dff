"""GLM-TSL: the highest score under a draw from Laplace's approximation of the logistic posterior."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from banditune.core.checks import check_number
from banditune.core.distributions import normal_pair
from banditune.core.option_types import Option, WeightPolicyPrior, default_option
from banditune.core.policy import FROM_PROBLEM, WarpVersion
from banditune.core.scalar import noinline, scalar
from banditune.policies.base_policies import LogisticPolicy, is_valid_width, is_wide, make_width_parameter
from banditune.policies.glm_precision import choose_warp_precision
from banditune.simulation.estimators.logistic_mode import (
    NO_MODE,
    choose_first_tied,
    find_mode_and_factor,
    is_certain,
    take_first_step,
)
from banditune.simulation.estimators.logistic_state import (
    ERROR,
    LONGEST,
    MODE_LOST,
    compute_tolerance,
    count_logistic_pull,
    score_logistic_arms,
    start_logistic,
    view_logistic,
)
from banditune.simulation.estimators.matrices import solve_lower, solve_upper
from banditune.simulation.estimators.vector_layout import argmax_score, compute_dot, dims, pad_dims
from banditune.simulation.estimators.whitened_features import read_policy_option
from banditune.simulation.gpu import warp_glm_tsl, warp_logistic, warp_logistic_layout

FACTOR_TOLERANCE = 1e-4
"""The largest distance of the factor's point from the mode, in posterior deviations, unless a draw needs less."""


@scalar
def update_glm_tsl(state, setting, step, params, arm, reward, stream):
    """Update for one reward: find the mode, and factor the posterior's precision there."""
    position = count_logistic_pull(state, arm, reward)
    features = state.played_rows[position * pad_dims() : (position + 1) * pad_dims()]
    for j in range(dims()):
        state.pulled[j] = features[j]
    solve_lower(state.factor, state.pulled)
    solve_upper(state.factor, state.pulled)
    _, first = take_first_step(state, features, position, reward)
    find_mode_and_factor(state, first, FACTOR_TOLERANCE)


@scalar
def choose_glm_tsl(state, setting, step, params, stream):
    """Choose the highest score under a draw of theta; at gamma = 0 under the mode."""
    if state.counts[MODE_LOST] != 0.0:
        return NO_MODE
    scale = params[0] * read_policy_option(setting, 0)
    draw_glm_normals(state, scale, stream)
    best = find_best_sample(state, setting, scale)
    if is_certain(state, state.score[: setting.arms], best, bound_sample_error(state, scale)):
        return best
    return find_settled_sample(state, setting, scale)


@scalar
def draw_glm_normals(state, scale, stream):
    """Draw standard normals, one per dimension, into `normals`. If their factor is 0, nothing is drawn."""
    for j in range(pad_dims()):
        state.normals[j] = 0.0
    if scale > 0.0:
        for first in range(0, dims(), 2):
            # With an odd number of dimensions, the last draw is stored in the padding.
            state.normals[first], state.normals[first + 1] = normal_pair(stream)


@scalar
def find_best_sample(state, setting, scale):
    """Find the best arm under theta = mode + scale L'^-1 normals, a draw from N(mode, scale^2 H^-1)."""
    for j in range(dims()):
        state.step[j] = state.normals[j]
    solve_upper(state.factor, state.step)
    for j in range(dims()):
        state.step[j] = state.estimate[j] + scale * state.step[j]
    score_logistic_arms(state, setting, state.step)
    return argmax_score(state.score[: setting.arms])


@scalar
def bound_sample_error(state, scale):
    """Bound the distance, in posterior deviations, between the draw and the one with the factor at the mode.

    If the error of theta is e deviations, the relative error of slopes is at most e |x|. So the Hessian is L (I + E) L'
    with norm |E| <= sqrt(dims) e |x|, and this norm bounds the relative error of the factor.
    """
    spread = scale * math.sqrt(dims() * compute_dot(state.normals, state.normals))
    return state.counts[ERROR] * (1.0 + spread * state.counts[LONGEST])


@noinline
def find_settled_sample(state, setting, scale):
    """Find the best arm under the same draw, with the exact mode and its factor."""
    exact = 0.1 * compute_tolerance(state)
    if state.counts[ERROR] > exact:
        find_mode_and_factor(state, math.inf, exact)
    return choose_first_tied(state, find_best_sample(state, setting, scale))


GLM_TSL_WARP = WarpVersion(
    view=warp_logistic_layout.view_logistic_warp,
    start=warp_logistic.start_logistic_warp,
    choose=warp_glm_tsl.choose_glm_tsl_warp,
    update=warp_glm_tsl.update_glm_tsl_warp,
    count_registers=warp_logistic_layout.count_logistic_registers,
    count_shared=warp_logistic_layout.count_logistic_shared,
    replaces=(view_logistic, start_logistic, choose_glm_tsl, update_glm_tsl),
    is_valid=is_valid_width,
    select_dtype=choose_warp_precision,
    needs_float64=is_wide,
)


@dataclass(frozen=True)
class GLMTSL(LogisticPolicy):
    """Highest x'theta for a draw theta ~ N(mode, gamma^2 factor H^-1), H the Hessian of logistic regression.

    H = covariance^-1 + sum of p (1 - p) x x', at the mode of the posterior. So H^-1 is Laplace's approximation of the
    posterior covariance.

    Parameters
    ----------
    prior : (mean, covariance) or "problem"
        Gaussian prior of theta: the mean as a number or a vector, the covariance as a number or a matrix. By default it
        is taken from the problem.
    factor : float, optional
        Factor of the covariance, above 0. By default it is the number of features, the textbook value. With 1, gamma =
        1 is posterior sampling.

    Examples
    --------
    >>> import banditune as bt
    >>> regrets = bt.simulate(bt.GLMTSL(), bt.Logistic(arms=5, dims=2), [0.3, 1.0], horizon=100, runs=100)
    >>> regrets.shape
    (2, 100)
    """

    prior: Option[WeightPolicyPrior] = FROM_PROBLEM
    factor: Option[float | None] = default_option(None)

    name = "glm-tsl"
    pending_rewards = "ignore"
    parameters = (make_width_parameter(),)
    warp_version: ClassVar[WarpVersion | None] = GLM_TSL_WARP
    choose = staticmethod(choose_glm_tsl)
    update = staticmethod(update_glm_tsl)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.factor is not None:
            object.__setattr__(self, "factor", check_number("factor", self.factor, above=0))

    def list_policy_options(self, arms: int, dims: int, horizon: int) -> Sequence[float]:
        return (math.sqrt(dims if self.factor is None else self.factor),)
