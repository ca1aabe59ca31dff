"""GLM-TSL: the highest score under a draw from Laplace's approximation of the logistic posterior."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from banditune.core.checks import check_number
from banditune.core.distributions import normal_pair
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
    LOST,
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
"""GLM-TSL's factor belongs to a point within this many posterior deviations of the mode, unless a draw asks for more."""


@scalar
def update_glm_tsl(state, setting, arm, reward, stream):
    """Learn a reward, and the factor of the posterior's precision at the new mode."""
    place = count_logistic_pull(state, arm, reward)
    features = state.seen_rows[place * pad_dims() : (place + 1) * pad_dims()]
    for j in range(dims()):
        state.pulled[j] = features[j]
    solve_lower(state.factor, state.pulled)
    solve_upper(state.factor, state.pulled)
    _, first = take_first_step(state, features, place, reward)
    find_mode_and_factor(state, first, FACTOR_TOLERANCE)


@scalar
def choose_glm_tsl(state, setting, step, params, stream):
    """The highest score under a draw of theta; at gamma = 0 under the mode."""
    if state.counts[LOST] != 0.0:
        return NO_MODE
    scale = params[0] * read_policy_option(setting, 0)
    draw_glm_normals(state, scale, stream)
    best = find_best_sample(state, setting, scale)
    if is_certain(state, state.score[: setting.arms], best, bound_sample_error(state, scale)):
        return best
    return find_settled_sample(state, setting, scale)


@scalar
def draw_glm_normals(state, scale, stream):
    """Standard normals, one for every dimension, into `normals`; none where they would be multiplied by 0."""
    for j in range(pad_dims()):
        state.normals[j] = 0.0
    if scale > 0.0:
        for first in range(0, dims(), 2):
            # An odd one out falls into the padding.
            state.normals[first], state.normals[first + 1] = normal_pair(stream)


@scalar
def find_best_sample(state, setting, scale):
    """The best arm under theta = mode + scale L'^-1 normals, a draw from N(mode, scale^2 H^-1)."""
    for j in range(dims()):
        state.step[j] = state.normals[j]
    solve_upper(state.factor, state.step)
    for j in range(dims()):
        state.step[j] = state.estimate[j] + scale * state.step[j]
    score_logistic_arms(state, setting, state.step)
    return argmax_score(state.score[: setting.arms])


@scalar
def bound_sample_error(state, scale):
    """How far, in posterior deviations, the draw is from the one with the mode's own factor.

    Where theta is off by e deviations, slopes are off by a share of e |x| or less, so the Hessian is L (I + E) L' with a
    norm |E| <= sqrt(dims) e |x|, and the factor is off by no more than that share.
    """
    spread = scale * math.sqrt(dims() * compute_dot(state.normals, state.normals))
    return state.counts[ERROR] * (1.0 + spread * state.counts[LONGEST])


@noinline
def find_settled_sample(state, setting, scale):
    """The best arm under the same draw with the exact mode and its factor."""
    exact = 0.1 * compute_tolerance(state)
    if state.counts[ERROR] > exact:
        find_mode_and_factor(state, math.inf, exact)
    return choose_first_tied(state, find_best_sample(state, setting, scale))


GLM_TSL_WARP = WarpVersion(
    warp_logistic_layout.view_logistic_warp, warp_logistic.start_logistic_warp, warp_glm_tsl.choose_glm_tsl_warp, warp_glm_tsl.update_glm_tsl_warp,
    warp_logistic_layout.count_logistic_registers, warp_logistic_layout.count_logistic_shared,
    (view_logistic, start_logistic, choose_glm_tsl, update_glm_tsl), is_valid_width, choose_warp_precision, is_wide,
)  # fmt: skip


@dataclass(frozen=True)
class GLMTSL(LogisticPolicy):
    """Highest x'theta for a draw theta ~ N(mode, gamma^2 factor H^-1), H the Hessian of logistic regression at its mode.

    H = covariance^-1 + sum of p (1 - p) x x', so that H^-1 is Laplace's approximation of the posterior's covariance;
    theory's `factor` is the number of features unless told otherwise, and 1 is posterior sampling at gamma = 1.
    """

    prior: Any = FROM_PROBLEM
    factor: Any = None

    name = "glm-tsl"
    pending = "ignore"
    parameters = (make_width_parameter(),)
    team: ClassVar[WarpVersion | None] = GLM_TSL_WARP
    choose = staticmethod(choose_glm_tsl)
    update = staticmethod(update_glm_tsl)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.factor is not None:
            object.__setattr__(self, "factor", check_number("factor", self.factor, above=0))

    def own_options(self, arms: int, dims: int, horizon: int) -> Sequence[float]:
        return (math.sqrt(dims if self.factor is None else self.factor),)
