"""UCB-GLM: the highest upper confidence bound by logistic regression."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from banditune.core.arrays import FloatArray
from banditune.core.checks import check_number, is_from_problem
from banditune.core.option_types import Noise, Option, WeightPolicyPrior
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
    MODE_LOST,
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
    """The mode of logistic regression. For every arm, `variance` is x' G^-1 x and `width` its root."""

    logistic: LogisticState
    variance: FloatArray
    width: FloatArray
    inverse: FloatArray
    gain: FloatArray
    age: FloatArray


def count_ucb_glm_floats(arms: int, dims: int) -> int:
    """Return the number of floats in `UCBGLMState`."""
    return int(count_logistic_floats(arms, dims) + 2 * pad_to_lanes(arms) + (dims + 1) * pad_to_lanes(dims) + 1)


@scalar
def view_ucb_glm(memory, setting):
    """Split the memory, in the order of the record."""
    padded_arms = pad_to_lanes(setting.arms)
    a = count_logistic_floats(setting.arms, setting.dims)
    b = a + 2 * padded_arms
    c = b + dims() * pad_dims()
    return UCBGLMState(
        view_logistic(memory, setting),
        memory[a : a + padded_arms],
        memory[a + padded_arms : b],
        memory[b:c],
        memory[c : c + pad_dims()],
        memory[c + pad_dims() : c + pad_dims() + 1],
    )


@scalar
def start_ucb_glm(state, setting):
    """Reset the memory to the prior."""
    start_logistic(state.logistic, setting)
    recompute_glm_widths(state, setting)


@noinline
def recompute_glm_widths(state, setting):
    """Recompute G^-1 and the widths from the pulls, with the factor in the logistic memory."""
    logistic = state.logistic
    # If every slope is 1, the Hessian is G.
    factorise_weighted_squares(logistic, logistic.played_pulls)
    invert_from_factor(logistic.factor, state.inverse, logistic.step)
    for arm in range(setting.arms):
        for j in range(dims()):
            logistic.step[j] = logistic.columns[locate_column(arm, j)]
        solve_lower(logistic.factor, logistic.step)
        state.variance[arm] = compute_dot(logistic.step, logistic.step)
        state.width[arm] = math.sqrt(state.variance[arm])
    state.age[0] = 0.0


@scalar
def update_ucb_glm(state, setting, step, params, arm, reward, stream):
    """Update for one reward."""
    update_logistic(state.logistic, setting, step, params, arm, reward, stream)
    state.age[0] += 1.0
    if state.age[0] >= REFRESH_INTERVAL:
        recompute_glm_widths(state, setting)
    else:
        shrink_glm_widths(state, setting, int(state.logistic.played_index[arm]))


@scalar
def recall_ucb_glm(state, setting, pulls, totals):
    """Write out every arm's pulls and total reward."""
    recall_logistic(state.logistic, setting, pulls, totals)


@noinline
def resume_ucb_glm(state, setting, params, pulls, totals):
    """Restore every arm's pulls and total reward."""
    resume_logistic(state.logistic, setting, params, pulls, totals)
    recompute_glm_widths(state, setting)


@scalar
def shrink_glm_widths(state, setting, position):
    """Update G^-1 and every arm's width for one more pull of an arm, by the formula of Sherman and Morrison."""
    features = state.logistic.played_rows[position * pad_dims() : (position + 1) * pad_dims()]
    multiply_symmetric(state.inverse, features, state.gain)
    shrink = 1.0 / (1.0 + compute_dot(features, state.gain))
    subtract_outer(state.inverse, state.gain, state.gain, shrink)
    for arm in range(len(state.width)):
        state.width[arm] = 0.0
    for b in range(count_blocks(setting.arms)):
        first = b * VECTOR_LANES
        add_products(state.width[first:], state.logistic.columns[first * dims() :], state.gain)
    for arm in range(len(state.width)):
        state.variance[arm] = max(state.variance[arm] - shrink * state.width[arm] * state.width[arm], 0.0)
        state.width[arm] = math.sqrt(state.variance[arm])


@scalar
def choose_ucb_glm(state, setting, step, params, stream):
    """Choose the highest x'theta + gamma c sqrt(x' G^-1 x)."""
    if state.logistic.counts[MODE_LOST] != 0.0:
        return NO_MODE
    factor = params[0] * read_policy_option(setting, 0)
    best = find_best_bound(state, setting, factor)
    if is_certain(state.logistic, state.logistic.score[: setting.arms], best, state.logistic.counts[ERROR]):
        return best
    return find_settled_bound(state, setting, factor)


@scalar
def find_best_bound(state, setting, factor):
    """Find the arm with the highest index. The indices overwrite the scores."""
    score = state.logistic.score
    score_logistic_arms(state.logistic, setting, state.logistic.estimate)
    for arm in range(len(score)):
        score[arm] += factor * state.width[arm]
    return argmax_score(score[: setting.arms])


@noinline
def find_settled_bound(state, setting, factor):
    """Find the best arm at the exact mode."""
    refine_mode(state.logistic)
    return choose_first_tied(state.logistic, find_best_bound(state, setting, factor))


UCB_GLM_WARP = WarpVersion(
    view=warp_logistic_layout.view_logistic_warp,
    start=warp_logistic.start_logistic_warp,
    choose=warp_ucb_glm.choose_ucb_glm_warp,
    update=warp_ucb_glm.update_ucb_glm_warp,
    count_registers=warp_logistic_layout.count_logistic_registers,
    count_shared=warp_logistic_layout.count_logistic_shared,
    replaces=(view_ucb_glm, start_ucb_glm, choose_ucb_glm, update_ucb_glm),
    is_valid=is_valid_width,
    select_dtype=choose_warp_precision,
    needs_float64=is_wide,
)


@dataclass(frozen=True)
class UCBGLM(LogisticPolicy):
    """Highest x'theta + gamma c sqrt(x' G^-1 x), theta by logistic regression.

    c = (noise / kappa) sqrt(d/2 log(1 + 2n/d) + log n), with the horizon n and d features. G = covariance^-1 + sum of x
    x'. Theta is the mode of its posterior.

    Parameters
    ----------
    prior : (mean, covariance) or "problem"
        Gaussian prior of theta: the mean as a number or a vector, the covariance as a number or a matrix. By default it
        is taken from the problem.
    noise : float or "problem"
        Bound on the noise of a reward, above 0. By default it is the standard deviation of the problem's rewards around
        their means.
    kappa : float
        Lower bound on the slope of the logistic function, above 0. The paper uses the largest slope, 1/4, instead.

    Examples
    --------
    >>> import banditune as bt
    >>> regrets = bt.simulate(bt.UCBGLM(), bt.Logistic(arms=5, dims=2), [0.1, 1.0], horizon=100, runs=100)
    >>> regrets.shape
    (2, 100)
    """

    prior: Option[WeightPolicyPrior] = FROM_PROBLEM
    noise: Option[Noise] = FROM_PROBLEM
    kappa: float = 0.25

    name = "ucb-glm"
    parameters = (make_width_parameter(),)
    warp_version: ClassVar[WarpVersion | None] = UCB_GLM_WARP
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

    def memory(self, arms: int, dims: int, horizon: int) -> int:
        return count_ucb_glm_floats(arms, dims)

    def list_policy_options(self, arms: int, dims: int, horizon: int) -> Sequence[float]:
        log_term = dims / 2 * math.log(1 + 2 * horizon / dims) + math.log(horizon)
        return (self.noise / self.kappa * math.sqrt(log_term),)
