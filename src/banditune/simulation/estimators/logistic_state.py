"""The memory of logistic regression: pulls and successes of the arms pulled so far, the gradient and the Hessian."""

from __future__ import annotations

import math
from typing import NamedTuple

from banditune.core.arrays import FloatArray
from banditune.core.scalar import noinline, optimize_separately, scalar
from banditune.simulation.estimators.matrices import (
    count_packed,
    count_packed_dims,
    count_triangle,
    factorise_packed,
    invert_from_factor,
)
from banditune.simulation.estimators.vector_layout import (
    VECTOR_LANES,
    add_products,
    count_blocks,
    dims,
    locate_column,
    pad_dims,
    pad_to_lanes,
)
from banditune.simulation.estimators.whitened_features import whiten_features

MODE_TOLERANCE = 1e-8
"""The tolerance of the mode in posterior standard deviations. For rounding errors, 1e-14 is added for every pull."""


class LogisticState(NamedTuple):
    """The memory of logistic regression: entries per arm, then entries per played arm, in the order of first pulls.

    `score` is x'theta. `columns` and `played_columns` are features in blocks of arms: for each block, a vector of its
    arms' features in each dimension. `played_rows` holds the played arms' features one arm after the other, and
    `played_squares` the lower triangles of x x'. `factor` is the lower triangular Cholesky factor of a Hessian, packed,
    with the reciprocals of its diagonal. `inverse` is the inverse of a Hessian. `pulled` is H^-1 x of the arm pulled
    last. `normals` are draws of a policy that samples.
    """

    pulls: FloatArray
    score: FloatArray
    prior_score: FloatArray
    played_index: FloatArray
    columns: FloatArray
    played_pulls: FloatArray
    played_total: FloatArray
    played_prior: FloatArray
    chance: FloatArray
    residual: FloatArray
    played_columns: FloatArray
    played_rows: FloatArray
    played_squares: FloatArray
    factor: FloatArray
    inverse: FloatArray
    estimate: FloatArray
    gradient: FloatArray
    step: FloatArray
    pulled: FloatArray
    normals: FloatArray
    counts: FloatArray


PLAYED, PULLS, MODE_LOST, ERROR, LONGEST = 0, 1, 2, 3, 4
"""Positions in `counts`.

They are the number of played arms, the number of pulls, whether the search for the mode failed, an error, and the largest
norm of features. The error is the distance from the mode, in posterior deviations, of `estimate` or of the point of
`factor`.
"""


@scalar
def count_logistic_floats(arms, dims):
    """Return the number of floats in a `LogisticState`."""
    padded_arms = pad_to_lanes(arms)
    padded_dims = pad_to_lanes(dims)
    return (
        padded_arms * (9 + 2 * dims + padded_dims + count_packed(dims))
        + count_packed(dims)
        + (dims + 5) * padded_dims
        + VECTOR_LANES
    )


@scalar
def view_logistic(memory, setting):
    """Split the memory, in the order of the record."""
    arms = setting.arms
    dims = setting.dims
    padded_arms = pad_to_lanes(arms)
    padded_dims = pad_to_lanes(dims)
    size = count_packed(dims)
    a = padded_arms
    b = a + 3 * padded_arms
    c = b + padded_arms * dims
    e = c + 5 * padded_arms
    f = e + padded_arms * dims
    g = f + padded_arms * padded_dims
    h = g + padded_arms * size
    i = h + size
    k = i + dims * padded_dims
    return LogisticState(
        memory[:arms],
        memory[a : a + padded_arms],
        memory[a + padded_arms : a + 2 * padded_arms],
        memory[a + 2 * padded_arms : b],
        memory[b:c],
        memory[c : c + padded_arms],
        memory[c + padded_arms : c + 2 * padded_arms],
        memory[c + 2 * padded_arms : c + 3 * padded_arms],
        memory[c + 3 * padded_arms : c + 4 * padded_arms],
        memory[c + 4 * padded_arms : e],
        memory[e:f],
        memory[f:g],
        memory[g:h],
        memory[h:i],
        memory[i:k],
        memory[k : k + padded_dims],
        memory[k + padded_dims : k + 2 * padded_dims],
        memory[k + 2 * padded_dims : k + 3 * padded_dims],
        memory[k + 3 * padded_dims : k + 4 * padded_dims],
        memory[k + 4 * padded_dims : k + 5 * padded_dims],
        memory[k + 5 * padded_dims : k + 5 * padded_dims + VECTOR_LANES],
    )


@noinline
def start_logistic(state, setting):
    """Reset the memory to the prior."""
    arms = setting.arms
    for array in state:
        for position in range(len(array)):
            array[position] = 0.0
    whiten_features(state.played_rows, state.prior_score, setting)
    longest = 0.0
    for arm in range(arms):
        state.played_index[arm] = -1.0
        square = 0.0
        for j in range(dims()):
            feature = state.played_rows[j * arms + arm]
            state.columns[locate_column(arm, j)] = feature
            state.played_rows[j * arms + arm] = 0.0
            square += feature * feature
        longest = max(longest, square)
    state.counts[LONGEST] = math.sqrt(longest)
    for i in range(dims()):
        state.factor[count_triangle(i) + i] = 1.0
        state.inverse[locate_column(i, i)] = 1.0


@scalar
def compute_sigmoid(score):
    """Compute 1 / (1 + exp(-score)) to about 1e-15, only by arithmetic, so that loops become vector code.

    exp(t) - 1 is a Taylor series at t / 512, then nine times (1 + q)^2 - 1 = q (2 + q). Scores are cut at 40.
    """
    t = min(max(-score, -40.0), 40.0) * (1.0 / 512.0)
    q = t * (
        1.0 + t * (1 / 2 + t * (1 / 6 + t * (1 / 24 + t * (1 / 120 + t * (1 / 720 + t * (1 / 5040 + t / 40320))))))
    )
    q = q * (2.0 + q)
    q = q * (2.0 + q)
    q = q * (2.0 + q)
    q = q * (2.0 + q)
    q = q * (2.0 + q)
    q = q * (2.0 + q)
    q = q * (2.0 + q)
    q = q * (2.0 + q)
    q = q * (2.0 + q)
    return 1.0 / (2.0 + q)


@scalar
def count_logistic_pull(state, arm, reward):
    """Count a pull, and return the arm's position among the played arms. A first pull adds it to them."""
    if state.played_index[arm] < 0.0:
        add_played_arm(state, arm)
    position = int(state.played_index[arm])
    state.pulls[arm] += 1.0
    state.played_pulls[position] += 1.0
    state.played_total[position] += reward
    state.counts[PULLS] += 1.0
    return position


@noinline
def add_played_arm(state, arm):
    """Add an arm to the played arms."""
    position = int(state.counts[PLAYED])
    state.played_index[arm] = position
    state.counts[PLAYED] = position + 1.0
    state.played_prior[position] = state.prior_score[arm]
    score = state.prior_score[arm]
    at = position * count_packed_dims()
    for i in range(dims()):
        feature = state.columns[locate_column(arm, i)]
        score += state.estimate[i] * feature
        state.played_columns[locate_column(position, i)] = feature
        state.played_rows[position * pad_dims() + i] = feature
        for j in range(i + 1):
            state.played_squares[at] = feature * state.played_rows[position * pad_dims() + j]
            at += 1
    state.chance[position] = compute_sigmoid(score)


@optimize_separately
def add_weighted_features(sums, weights, rows):
    """Add the features of a block's arms to sums, each times its weight."""
    for position in range(pad_dims()):
        total = sums[position]
        for lane in range(VECTOR_LANES):
            total += weights[lane] * rows[lane * pad_dims() + position]
        sums[position] = total


@optimize_separately
def add_weighted_squares(sums, weights, squares):
    """Add the squares of a block's arms to sums, each times its weight."""
    for position in range(count_packed_dims()):
        total = sums[position]
        for lane in range(VECTOR_LANES):
            total += weights[lane] * squares[lane * count_packed_dims() + position]
        sums[position] = total


@scalar
def compute_gradient(state):
    """Compute the probabilities and the gradient of the objective at `estimate`, over the played arms."""
    filled = count_blocks(state.counts[PLAYED])
    for position in range(filled * VECTOR_LANES):
        state.chance[position] = state.played_prior[position]
    for b in range(filled):
        at = b * VECTOR_LANES
        add_products(state.chance[at:], state.played_columns[at * dims() :], state.estimate)
    for position in range(filled * VECTOR_LANES):
        state.chance[position] = compute_sigmoid(state.chance[position])
    for position in range(filled * VECTOR_LANES):
        state.residual[position] = state.played_total[position] - state.played_pulls[position] * state.chance[position]
    for j in range(pad_dims()):
        state.gradient[j] = -state.estimate[j]
    for b in range(filled):
        at = b * VECTOR_LANES
        add_weighted_features(state.gradient, state.residual[at:], state.played_rows[at * pad_dims() :])


@scalar
def factorise_weighted_squares(state, weights):
    """Compute the factor of I + sum of weight x x' over the played arms."""
    for position in range(count_packed_dims()):
        state.factor[position] = 0.0
    for i in range(dims()):
        state.factor[count_triangle(i) + i] = 1.0
    for b in range(count_blocks(state.counts[PLAYED])):
        at = b * VECTOR_LANES
        add_weighted_squares(state.factor, weights[at:], state.played_squares[at * count_packed_dims() :])
    factorise_packed(state.factor)


@scalar
def factorise_hessian(state):
    """Compute the factor of the Hessian I + sum of pulls p (1 - p) x x' at the last computed probabilities p."""
    for position in range(count_blocks(state.counts[PLAYED]) * VECTOR_LANES):
        state.residual[position] = (
            state.played_pulls[position] * state.chance[position] * (1.0 - state.chance[position])
        )
    factorise_weighted_squares(state, state.residual)


@noinline
def invert_hessian(state):
    """Compute the inverse of the Hessian at the last computed probabilities."""
    factorise_hessian(state)
    invert_from_factor(state.factor, state.inverse, state.step)


@scalar
def compute_tolerance(state):
    """Return the precision of the mode that is possible after the pulls so far."""
    return MODE_TOLERANCE + 1e-14 * state.counts[PULLS]


@scalar
def score_logistic_arms(state, setting, theta):
    """Compute every arm's score under a theta."""
    for arm in range(len(state.score)):
        state.score[arm] = state.prior_score[arm]
    for b in range(count_blocks(setting.arms)):
        at = b * VECTOR_LANES
        add_products(state.score[at:], state.columns[at * dims() :], theta)


@scalar
def recall_logistic(state, setting, pulls, totals):
    """Write out every arm's pulls and total reward."""
    for arm in range(setting.arms):
        pulls[arm] = state.pulls[arm]
        totals[arm] = state.played_total[int(state.played_index[arm])] if state.played_index[arm] >= 0.0 else 0.0
