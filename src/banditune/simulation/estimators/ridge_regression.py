"""Ridge regression for policies that use features of arms. An update costs O(arms dims + dims^2)."""

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
"""The number of updates after which everything is recomputed from pulls and totals, to limit rounding errors."""


PADDING_SCORE = -1e100
"""The score of the padding behind the last arm, which is never the best."""


class RidgeState(NamedTuple):
    """The memory of ridge regression, in the layout of `vector_layout`.

    `pulls` and `total` are the rewards so far. `score` is x'theta, `variance` x' G^-1 x and `width` its root.
    `padded_score` and `padded_arm_values` are `score` and `arm_values` with the padding behind the last arm; `variance`
    and `prior_score` have it too. `arm_values` holds a number per arm: indices, sampled scores, or products with an
    arm. `estimate` is theta in the coordinates in which the prior is N(0, I), and so are the features: in `columns` by
    blocks of arms, in `rows` one arm after the other. `factor` is stored in columns too, where `locate_column` says.
    `square` is a scratch matrix. `age` holds the updates since the last recomputation, and the largest variance then.
    `extra` holds `EXTRA_VALUES` numbers of the policy.
    """

    pulls: FloatArray
    total: FloatArray
    width: FloatArray
    score: FloatArray
    padded_score: FloatArray
    arm_values: FloatArray
    padded_arm_values: FloatArray
    variance: FloatArray
    prior_score: FloatArray
    columns: FloatArray
    rows: FloatArray
    factor: FloatArray
    square: FloatArray
    estimate: FloatArray
    whitened: FloatArray
    gain: FloatArray
    scratch: FloatArray
    age: FloatArray
    extra: FloatArray


@scalar
def count_ridge_floats(arms, dims):
    """Return the number of floats in a `RidgeState`."""
    return pad_to_lanes(arms) * (7 + dims) + (arms + 2 * dims + 4) * pad_to_lanes(dims) + VECTOR_LANES


@scalar
def view_ridge(memory, setting):
    """Split the memory, in the order of the record."""
    arms = setting.arms
    dims = setting.dims
    padded_arms = pad_to_lanes(arms)
    padded_dims = pad_to_lanes(dims)
    a = 3 * padded_arms
    b = 7 * padded_arms
    c = b + padded_arms * dims
    e = c + arms * padded_dims
    f = e + 2 * dims * padded_dims
    g = f + 4 * padded_dims
    return RidgeState(
        memory[:arms],
        memory[padded_arms : padded_arms + arms],
        memory[2 * padded_arms : 2 * padded_arms + arms],
        memory[a : a + arms],
        memory[a : a + padded_arms],
        memory[a + padded_arms : a + padded_arms + arms],
        memory[a + padded_arms : a + 2 * padded_arms],
        memory[a + 2 * padded_arms : a + 3 * padded_arms],
        memory[a + 3 * padded_arms : b],
        memory[b:c],
        memory[c:e],
        memory[e : e + dims * padded_dims],
        memory[e + dims * padded_dims : e + dims * padded_dims + dims * dims],
        memory[f : f + padded_dims],
        memory[f + padded_dims : f + 2 * padded_dims],
        memory[f + 2 * padded_dims : f + 3 * padded_dims],
        memory[f + 3 * padded_dims : g],
        memory[g : g + 2],
        memory[g + 2 : g + 2 + EXTRA_VALUES],
    )


@noinline
def start_ridge(state, setting):
    """Reset the memory to the prior."""
    arms = setting.arms
    for array in state:
        for position in range(len(array)):
            array[position] = 0.0
    whiten_features(state.rows, state.prior_score, setting)
    for arm in range(arms):
        for j in range(dims()):
            state.columns[locate_column(arm, j)] = state.rows[j * arms + arm]
    for arm in range(arms):
        for j in range(pad_dims()):
            state.rows[arm * pad_dims() + j] = state.columns[locate_column(arm, j)] if j < dims() else 0.0
    for position in range(arms, len(state.prior_score)):
        state.prior_score[position] = PADDING_SCORE
    refresh_ridge(state, setting)
    update_widths(state)


@noinline
def refresh_ridge(state, setting):
    """Recompute everything from pulls and totals."""
    moment = state.whitened
    square = state.square
    for position in range(len(square)):
        square[position] = 0.0
    for j in range(dims()):
        square[j * dims() + j] = setting.options[0]
        moment[j] = 0.0
        state.estimate[j] = 0.0
    for arm in range(setting.arms):
        if state.pulls[arm] > 0.0:
            row = state.rows[arm * pad_dims() : (arm + 1) * pad_dims()]
            residual = state.total[arm] - state.pulls[arm] * state.prior_score[arm]
            for i in range(dims()):
                moment[i] += residual * row[i]
                for j in range(i + 1):
                    square[i * dims() + j] += state.pulls[arm] * row[i] * row[j]
    factorise_cholesky(square, setting.dims)
    invert_triangle(square, setting.dims)
    for i in range(dims()):
        projection = 0.0
        for j in range(i + 1):
            projection += square[i * dims() + j] * moment[j]
        for j in range(i + 1):
            state.estimate[j] += projection * square[i * dims() + j]
        for j in range(dims()):
            state.factor[locate_column(j, i)] = square[i * dims() + j] if j <= i else 0.0
    score_ridge_arms(state, state.estimate, state.padded_score)
    for position in range(len(state.variance)):
        state.variance[position] = 0.0
    for i in range(dims()):
        for j in range(dims()):
            state.gain[j] = state.factor[locate_column(j, i)]
        multiply_arms(state, state.gain, state.padded_arm_values)
        for position in range(len(state.variance)):
            state.variance[position] += state.padded_arm_values[position] * state.padded_arm_values[position]
    state.age[0] = 0.0
    state.age[1] = 0.0
    for arm in range(setting.arms):
        state.age[1] = max(state.age[1], state.variance[arm])


@scalar
def multiply_arms(state, vector, products):
    """Compute every arm's x'vector."""
    for position in range(len(products)):
        products[position] = 0.0
    for b in range(count_blocks(len(products))):
        at = b * VECTOR_LANES
        add_products(products[at:], state.columns[at * dims() :], vector)


@scalar
def score_ridge_arms(state, theta, scores):
    """Compute every arm's score under a theta."""
    for position in range(len(scores)):
        scores[position] = state.prior_score[position]
    for b in range(count_blocks(len(scores))):
        at = b * VECTOR_LANES
        add_products(scores[at:], state.columns[at * dims() :], theta)


@scalar
def whiten_arm(state, arm, turned, gain):
    """Compute `turned` = factor x and `gain` = G^-1 x = factor' turned, for the features x of an arm."""
    row = state.rows[arm * pad_dims() : (arm + 1) * pad_dims()]
    for j in range(dims()):
        projection = 0.0
        for i in range(dims()):
            projection += state.factor[locate_column(i, j)] * row[i]
        turned[j] = projection
    for i in range(pad_dims()):
        gain[i] = 0.0
    add_weighted_rows(gain, state.factor, turned)


@scalar
def prepare_update(state, arm):
    """Compute `whitened` = factor x, `gain` = G^-1 x, and every arm's x' G^-1 x_arm in `arm_values`."""
    whiten_arm(state, arm, state.whitened, state.gain)
    multiply_arms(state, state.gain, state.padded_arm_values)


@scalar
def count_pulls(state, arm, pulls, payoffs):
    """Count pulls of an arm and their rewards."""
    state.pulls[arm] += pulls
    state.total[arm] += payoffs
    state.age[0] += 1.0


@scalar
def move_arms(state, gain, shifts, step, shrink):
    """Update the estimate, every score and every variance for pulls of an arm.

    The estimate and the scores move by `step` times `gain` and `shifts`. Variances decrease by `shrink` times the
    squared shifts (the formula of Sherman and Morrison).
    """
    for j in range(pad_dims()):
        state.estimate[j] += step * gain[j]
    for position in range(len(state.variance)):
        shift = shifts[position]
        state.padded_score[position] += step * shift
        state.variance[position] = max(state.variance[position] - shrink * shift * shift, 0.0)


@scalar
def update_ridge(state, setting, step, params, arm, reward, stream):
    """Update for one reward."""
    count_pulls(state, arm, 1.0, reward)
    if state.age[0] >= REFRESH_INTERVAL:
        refresh_ridge(state, setting)
    else:
        prepare_update(state, arm)
        shrink = 1.0 / (1.0 + state.arm_values[arm])
        move_arms(state, state.gain, state.padded_arm_values, shrink * (reward - state.score[arm]), shrink)
        shrink_triangular_factor(state.factor, state.whitened, state.gain, state.scratch)
    update_widths(state)


@noinline
def resume_ridge(state, setting, params, pulls, totals):
    """Restore every arm's pulls and total reward."""
    for arm in range(setting.arms):
        state.pulls[arm] = pulls[arm]
        state.total[arm] = totals[arm]
    refresh_ridge(state, setting)
    update_widths(state)


@scalar
def update_widths(state):
    """Compute the roots of the variances."""
    for arm in range(len(state.width)):
        state.width[arm] = math.sqrt(state.variance[arm])


@scalar
def sample_scores(state, setting, scale, stream):
    """Draw theta from N(estimate, scale^2 G^-1), and compute every arm's score under it in `state.arm_values`.

    Parameters
    ----------
    state : record
        The memory of a policy on ridge regression; see `define_ridge_policy`.
    setting : Setting
        The numbers of arms, features and steps, the features, and the policy's options.
    scale : float
        Factor of the standard deviation. With the noise of rewards it is posterior sampling.
    stream : Stream
        Source of random numbers: the last argument of `choose`, `update` or `reward`.
    """
    draw_theta(state, scale, state.gain, stream)
    score_ridge_arms(state, state.gain, state.padded_arm_values)


@scalar
def draw_theta(state, scale, theta, stream):
    """Draw theta from N(estimate, scale^2 G^-1). This overwrites `whitened`."""
    for first in range(0, dims(), 2):
        # With an odd number of dimensions, the last draw is stored in the padding.
        normal, second = normal_pair(stream)
        state.whitened[first] = scale * normal
        state.whitened[first + 1] = scale * second
    for i in range(pad_dims()):
        theta[i] = state.estimate[i]
    add_weighted_rows(theta, state.factor, state.whitened)
