"""UCB-GLM: the highest upper confidence bound by logistic regression."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from banditune.core.arrays import FloatArray
from banditune.core.checks import check_number, is_from_problem
from banditune.core.policy import FROM_PROBLEM, WarpVersion
from banditune.core.scalar import noinline, scalar
from banditune.policies.base_policies import LogisticPolicy, is_valid_width, is_wide, make_width_parameter
from banditune.policies.glm_precision import choose_warp_precision
from banditune.simulation.estimators.logistic_mode import (
    NO_MODE,
    choose_first_tied,
    is_certain,
    refine_mode,
    resume_logistic,
    update_logistic,
)
from banditune.simulation.estimators.logistic_state import (
    ERROR,
    LOST,
    LogisticState,
    count_logistic_floats,
    factorise_weighted_squares,
    recall_logistic,
    score_logistic_arms,
    start_logistic,
    view_logistic,
)
from banditune.simulation.estimators.matrices import invert_from_factor, multiply_symmetric, solve_lower
from banditune.simulation.estimators.ridge_regression import REFRESH_INTERVAL
from banditune.simulation.estimators.vector_layout import (
    VECTOR_LANES,
    add_products,
    argmax_score,
    compute_dot,
    count_blocks,
    dims,
    locate_column,
    pad_dims,
    pad_to_lanes,
    subtract_outer,
)
from banditune.simulation.estimators.whitened_features import read_policy_option
from banditune.simulation.gpu import warp_logistic, warp_logistic_layout, warp_ucb_glm


class UCBGLMState(NamedTuple):
    """The mode by logistic regression; for every arm `variance` is x' G^-1 x and `width` its root."""

    logistic: LogisticState
    variance: FloatArray
    width: FloatArray
    inverse: FloatArray
    gain: FloatArray
    age: FloatArray


def count_ucb_glm_floats(arms: int, dims: int) -> int:
    """Floats in `UCBGLMState`."""
    return int(count_logistic_floats(arms, dims) + 2 * pad_to_lanes(arms) + (dims + 1) * pad_to_lanes(dims) + 1)


@scalar
def view_ucb_glm(memory, setting):
    """The parts of the strip, in the order of the record."""
    room = pad_to_lanes(setting.arms)
    a = count_logistic_floats(setting.arms, setting.dims)
    b = a + 2 * room
    c = b + dims() * pad_dims()
    return UCBGLMState(
        view_logistic(memory, setting),
        memory[a : a + room],
        memory[a + room : b],
        memory[b:c],
        memory[c : c + pad_dims()],
        memory[c + pad_dims() : c + pad_dims() + 1],
    )


@scalar
def start_ucb_glm(state, setting):
    """Forget everything but the prior."""
    start_logistic(state.logistic, setting)
    recompute_glm_widths(state, setting)


@noinline
def recompute_glm_widths(state, setting):
    """Compute G^-1 and the widths afresh from the pulls, by the logistic memory's factor."""
    logistic = state.logistic
    # With every slope 1, the Hessian is G.
    factorise_weighted_squares(logistic, logistic.seen_pulls)
    invert_from_factor(logistic.factor, state.inverse, logistic.step)
    for arm in range(setting.arms):
        for j in range(dims()):
            logistic.step[j] = logistic.columns[locate_column(arm, j)]
        solve_lower(logistic.factor, logistic.step)
        state.variance[arm] = compute_dot(logistic.step, logistic.step)
        state.width[arm] = math.sqrt(state.variance[arm])
    state.age[0] = 0.0


@scalar
def update_ucb_glm(state, setting, arm, reward, stream):
    """Learn a reward."""
    update_logistic(state.logistic, setting, arm, reward, stream)
    state.age[0] += 1.0
    if state.age[0] >= REFRESH_INTERVAL:
        recompute_glm_widths(state, setting)
    else:
        shrink_glm_widths(state, setting, int(state.logistic.place[arm]))


@scalar
def recall_ucb_glm(state, setting, pulls, totals):
    """Write down every arm's pulls and total reward."""
    recall_logistic(state.logistic, setting, pulls, totals)


@noinline
def resume_ucb_glm(state, setting, params, pulls, totals):
    """Know every arm's pulls and total reward."""
    resume_logistic(state.logistic, setting, params, pulls, totals)
    recompute_glm_widths(state, setting)


@scalar
def shrink_glm_widths(state, setting, place):
    """Learn one more x of a played arm: Sherman and Morrison's formula for G^-1 and every arm's width."""
    features = state.logistic.seen_rows[place * pad_dims() : (place + 1) * pad_dims()]
    multiply_symmetric(state.inverse, features, state.gain)
    shrink = 1.0 / (1.0 + compute_dot(features, state.gain))
    subtract_outer(state.inverse, state.gain, state.gain, shrink)
    for arm in range(len(state.width)):
        state.width[arm] = 0.0
    for b in range(count_blocks(setting.arms)):
        at = b * VECTOR_LANES
        add_products(state.width[at:], state.logistic.columns[at * dims() :], state.gain)
    for arm in range(len(state.width)):
        state.variance[arm] = max(state.variance[arm] - shrink * state.width[arm] * state.width[arm], 0.0)
        state.width[arm] = math.sqrt(state.variance[arm])


@scalar
def choose_ucb_glm(state, setting, step, params, stream):
    """The highest x'theta + gamma c sqrt(x' G^-1 x)."""
    if state.logistic.counts[LOST] != 0.0:
        return NO_MODE
    factor = params[0] * read_policy_option(setting, 0)
    best = find_best_bound(state, setting, factor)
    if is_certain(state.logistic, state.logistic.score[: setting.arms], best, state.logistic.counts[ERROR]):
        return best
    return find_settled_bound(state, setting, factor)


@scalar
def find_best_bound(state, setting, factor):
    """The arm with the highest index; the indices take the place of the scores."""
    score = state.logistic.score
    score_logistic_arms(state.logistic, setting, state.logistic.estimate)
    for arm in range(len(score)):
        score[arm] += factor * state.width[arm]
    return argmax_score(score[: setting.arms])


@noinline
def find_settled_bound(state, setting, factor):
    """The best arm at the exact mode."""
    refine_mode(state.logistic)
    return choose_first_tied(state.logistic, find_best_bound(state, setting, factor))


UCB_GLM_WARP = WarpVersion(
    warp_logistic_layout.view_logistic_warp, warp_logistic.start_logistic_warp, warp_ucb_glm.choose_ucb_glm_warp, warp_ucb_glm.update_ucb_glm_warp,
    warp_logistic_layout.count_logistic_registers, warp_logistic_layout.count_logistic_shared,
    (view_ucb_glm, start_ucb_glm, choose_ucb_glm, update_ucb_glm), is_valid_width, choose_warp_precision, is_wide,
)  # fmt: skip


@dataclass(frozen=True)
class UCBGLM(LogisticPolicy):
    """Highest x'theta + gamma c sqrt(x' G^-1 x), theta by logistic regression.

    c = (noise / kappa) sqrt(d/2 log(1 + 2n/d) + log n) and G = covariance^-1 + sum of x x', with the horizon n and d
    features. `prior` is the Gaussian (mean, covariance) of theta; theta is the mode of its posterior. `noise` is theory's
    bound on the noise of a reward; `kappa` stands for its bound from below on the slope of the logistic function, for which
    the paper takes the largest slope, 1/4.
    """

    prior: Any = FROM_PROBLEM
    noise: Any = FROM_PROBLEM
    kappa: float = 0.25

    name = "ucb-glm"
    parameters = (make_width_parameter(),)
    team: ClassVar[WarpVersion | None] = UCB_GLM_WARP
    view = staticmethod(view_ucb_glm)
    start = staticmethod(start_ucb_glm)
    choose = staticmethod(choose_ucb_glm)
    update = staticmethod(update_ucb_glm)
    recall = staticmethod(recall_ucb_glm)
    resume = staticmethod(resume_ucb_glm)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_from_problem(self.noise):
            object.__setattr__(self, "noise", check_number("noise", self.noise, above=0))
        object.__setattr__(self, "kappa", check_number("kappa", self.kappa, above=0))

    def memory(self, arms: int, dims: int) -> int:
        return count_ucb_glm_floats(arms, dims)

    def own_options(self, arms: int, dims: int, horizon: int) -> Sequence[float]:
        grown = dims / 2 * math.log(1 + 2 * horizon / dims) + math.log(horizon)
        return (self.noise / self.kappa * math.sqrt(grown),)
