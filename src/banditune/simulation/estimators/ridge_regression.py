"""Ridge regression for policies that know arms by their features; a reward costs O(arms dims + dims^2)."""

from __future__ import annotations

import math
from typing import NamedTuple

from banditune.core.arrays import FloatArray
from banditune.core.distributions import normal_pair
from banditune.core.scalar import noinline, scalar
from banditune.simulation.estimators.matrices import factorise_cholesky, invert_triangle, shrink_triangular_factor
from banditune.simulation.estimators.vector_layout import (
    VECTOR_LANES,
    add_products,
    add_weighted_rows,
    count_blocks,
    dims,
    locate_column,
    pad_dims,
    pad_to_lanes,
)
from banditune.simulation.estimators.whitened_features import whiten_features

EXTRA_VALUES = 4


REFRESH_INTERVAL = 1000
"""Updates after which everything is computed afresh from pulls and totals, so that rounding cannot pile up."""


PADDING_SCORE = -1e100
"""The score of the places behind the last arm: they are never the best."""


class RidgeState(NamedTuple):
    """What ridge regression knows, laid out as `lanes` says.

    `pulls` and `total` are what was paid, `score` is x'theta, `variance` x' G^-1 x and `width` its root. `scores` and
    `shifts` are `score` and `shift` with the places behind the last arm; `variance` and `compute_prior_score` have them too.
    `estimate` is theta in the coordinates in which the prior is N(0, I), and so are the features: in `columns` by blocks of
    arms, in `rows` one arm after the other. `factor` stands in columns too, where `locate_column` says; `square` is room for a
    matrix. `age` counts updates since everything was computed afresh and keeps the largest variance then. `own` is for the
    policy: `EXTRA_VALUES` numbers to remember.
    """

    pulls: FloatArray
    total: FloatArray
    width: FloatArray
    score: FloatArray
    scores: FloatArray
    shift: FloatArray
    shifts: FloatArray
    variance: FloatArray
    prior_score: FloatArray
    columns: FloatArray
    rows: FloatArray
    factor: FloatArray
    square: FloatArray
    estimate: FloatArray
    turned: FloatArray
    gain: FloatArray
    spare: FloatArray
    age: FloatArray
    own: FloatArray


@scalar
def count_ridge_floats(arms, dims):
    """Floats in a `RidgeState`."""
    return pad_to_lanes(arms) * (7 + dims) + (arms + 2 * dims + 4) * pad_to_lanes(dims) + VECTOR_LANES


@scalar
def view_ridge(memory, setting):
    """The parts of the strip, in the order of the record."""
    arms = setting.arms
    dims = setting.dims
    room = pad_to_lanes(arms)
    wide = pad_to_lanes(dims)
    a = 3 * room
    b = 7 * room
    c = b + room * dims
    e = c + arms * wide
    f = e + 2 * dims * wide
    g = f + 4 * wide
    return RidgeState(
        memory[:arms],
        memory[room : room + arms],
        memory[2 * room : 2 * room + arms],
        memory[a : a + arms],
        memory[a : a + room],
        memory[a + room : a + room + arms],
        memory[a + room : a + 2 * room],
        memory[a + 2 * room : a + 3 * room],
        memory[a + 3 * room : b],
        memory[b:c],
        memory[c:e],
        memory[e : e + dims * wide],
        memory[e + dims * wide : e + dims * wide + dims * dims],
        memory[f : f + wide],
        memory[f + wide : f + 2 * wide],
        memory[f + 2 * wide : f + 3 * wide],
        memory[f + 3 * wide : g],
        memory[g : g + 2],
        memory[g + 2 : g + 2 + EXTRA_VALUES],
    )


@noinline
def start_ridge(state, setting):
    """Forget everything but the prior."""
    arms = setting.arms
    for part in state:
        for place in range(len(part)):
            part[place] = 0.0
    whiten_features(state.rows, state.prior_score, setting)
    for arm in range(arms):
        for j in range(dims()):
            state.columns[locate_column(arm, j)] = state.rows[j * arms + arm]
    for arm in range(arms):
        for j in range(pad_dims()):
            state.rows[arm * pad_dims() + j] = state.columns[locate_column(arm, j)] if j < dims() else 0.0
    for place in range(arms, len(state.prior_score)):
        state.prior_score[place] = PADDING_SCORE
    refresh_ridge(state, setting)
    update_widths(state)


@noinline
def refresh_ridge(state, setting):
    """Compute everything afresh from pulls and totals."""
    moment = state.turned
    square = state.square
    for place in range(len(square)):
        square[place] = 0.0
    for j in range(dims()):
        square[j * dims() + j] = setting.options[0]
        moment[j] = 0.0
        state.estimate[j] = 0.0
    for arm in range(setting.arms):
        if state.pulls[arm] > 0.0:
            row = state.rows[arm * pad_dims() : (arm + 1) * pad_dims()]
            left = state.total[arm] - state.pulls[arm] * state.prior_score[arm]
            for i in range(dims()):
                moment[i] += left * row[i]
                for j in range(i + 1):
                    square[i * dims() + j] += state.pulls[arm] * row[i] * row[j]
    factorise_cholesky(square, setting.dims)
    invert_triangle(square, setting.dims)
    for i in range(dims()):
        along = 0.0
        for j in range(i + 1):
            along += square[i * dims() + j] * moment[j]
        for j in range(i + 1):
            state.estimate[j] += along * square[i * dims() + j]
        for j in range(dims()):
            state.factor[locate_column(j, i)] = square[i * dims() + j] if j <= i else 0.0
    score_ridge_arms(state, state.estimate, state.scores)
    for place in range(len(state.variance)):
        state.variance[place] = 0.0
    for i in range(dims()):
        for j in range(dims()):
            state.gain[j] = state.factor[locate_column(j, i)]
        multiply_arms(state, state.gain, state.shifts)
        for place in range(len(state.variance)):
            state.variance[place] += state.shifts[place] * state.shifts[place]
    state.age[0] = 0.0
    state.age[1] = 0.0
    for arm in range(setting.arms):
        state.age[1] = max(state.age[1], state.variance[arm])


@scalar
def multiply_arms(state, vector, products):
    """Every arm's x'vector."""
    for place in range(len(products)):
        products[place] = 0.0
    for b in range(count_blocks(len(products))):
        at = b * VECTOR_LANES
        add_products(products[at:], state.columns[at * dims() :], vector)


@scalar
def score_ridge_arms(state, theta, scores):
    """Every arm's score under a theta."""
    for place in range(len(scores)):
        scores[place] = state.prior_score[place]
    for b in range(count_blocks(len(scores))):
        at = b * VECTOR_LANES
        add_products(scores[at:], state.columns[at * dims() :], theta)


@scalar
def whiten_arm(state, arm, turned, gain):
    """Put factor x into `turned` and G^-1 x = factor' turned into `gain`, for the features x of an arm."""
    row = state.rows[arm * pad_dims() : (arm + 1) * pad_dims()]
    for j in range(dims()):
        along = 0.0
        for i in range(dims()):
            along += state.factor[locate_column(i, j)] * row[i]
        turned[j] = along
    for i in range(pad_dims()):
        gain[i] = 0.0
    add_weighted_rows(gain, state.factor, turned)


@scalar
def prepare_update(state, arm):
    """Prepare to learn from an arm: factor x in `turned`, G^-1 x in `gain`, every arm's x' G^-1 x_arm in `shift`."""
    whiten_arm(state, arm, state.turned, state.gain)
    multiply_arms(state, state.gain, state.shifts)


@scalar
def count_pulls(state, arm, pulls, paid):
    """Remember what some pulls of an arm paid."""
    state.pulls[arm] += pulls
    state.total[arm] += paid
    state.age[0] += 1.0


@scalar
def move_arms(state, gain, shifts, step, shrink):
    """Learn pulls of an arm with this G^-1 x and these shifts: the estimate and every arm's score move by `step` of them,
    variances by `shrink` of their squares (Sherman and Morrison's formula).
    """
    for j in range(pad_dims()):
        state.estimate[j] += step * gain[j]
    for place in range(len(state.variance)):
        along = shifts[place]
        state.scores[place] += step * along
        state.variance[place] = max(state.variance[place] - shrink * along * along, 0.0)


@scalar
def update_ridge(state, setting, arm, reward, stream):
    """Learn a reward."""
    count_pulls(state, arm, 1.0, reward)
    if state.age[0] >= REFRESH_INTERVAL:
        refresh_ridge(state, setting)
    else:
        prepare_update(state, arm)
        shrink = 1.0 / (1.0 + state.shift[arm])
        move_arms(state, state.gain, state.shifts, shrink * (reward - state.score[arm]), shrink)
        shrink_triangular_factor(state.factor, state.turned, state.gain, state.spare)
    update_widths(state)


@noinline
def resume_ridge(state, setting, params, pulls, totals):
    """Know every arm's pulls and total reward."""
    for arm in range(setting.arms):
        state.pulls[arm] = pulls[arm]
        state.total[arm] = totals[arm]
    refresh_ridge(state, setting)
    update_widths(state)


@scalar
def update_widths(state):
    """The roots of the variances."""
    for arm in range(len(state.width)):
        state.width[arm] = math.sqrt(state.variance[arm])


@scalar
def sample_scores(state, setting, scale, stream):
    """Draw theta from N(estimate, scale^2 G^-1) and put every arm's score under it into `shift`."""
    draw_theta(state, scale, state.gain, stream)
    score_ridge_arms(state, state.gain, state.shifts)


@scalar
def draw_theta(state, scale, theta, stream):
    """Draw theta from N(estimate, scale^2 G^-1); `turned` is lost."""
    for first in range(0, dims(), 2):
        # An odd one out falls into the padding.
        normal, second = normal_pair(stream)
        state.turned[first] = scale * normal
        state.turned[first + 1] = scale * second
    for i in range(pad_dims()):
        theta[i] = state.estimate[i]
    add_weighted_rows(theta, state.factor, state.turned)
