"""What logistic regression knows: pulls and successes of the arms played so far, the gradient and the Hessian."""

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
"""The mode is found to within this many posterior standard deviations (and rounding: 1e-14 more for every pull)."""


class LogisticState(NamedTuple):
    """What logistic regression knows: first an entry per arm, then an entry per arm played, in the order of first pulls.

    `score` is x'theta. `columns` and `seen_columns` are features in blocks of arms: for each block, a vector of its arms'
    features in each dimension. `seen_rows` are the played arms' features one arm after the other, and `seen_squares` the
    lower triangles of x x'. `factor` is the lower triangular Cholesky factor of a Hessian, packed, with the reciprocals of
    its diagonal; `inverse` the inverse of a Hessian. `pulled` is H^-1 x of the arm just pulled;
    `normals` are the draws of a policy that samples.
    """

    pulls: FloatArray
    score: FloatArray
    prior_score: FloatArray
    place: FloatArray
    columns: FloatArray
    seen_pulls: FloatArray
    seen_total: FloatArray
    seen_prior: FloatArray
    chance: FloatArray
    left: FloatArray
    seen_columns: FloatArray
    seen_rows: FloatArray
    seen_squares: FloatArray
    factor: FloatArray
    inverse: FloatArray
    estimate: FloatArray
    gradient: FloatArray
    step: FloatArray
    pulled: FloatArray
    normals: FloatArray
    counts: FloatArray


PLAYED, PULLS, LOST, ERROR, LONGEST = 0, 1, 2, 3, 4
"""Places of `counts`: arms played, pulls in all, whether the mode was lost, how far `estimate` (or the point to which
`factor` belongs) is from the mode in posterior deviations, and the largest norm of features."""


@scalar
def count_logistic_floats(arms, dims):
    """Floats in a `LogisticState`."""
    room = pad_to_lanes(arms)
    wide = pad_to_lanes(dims)
    return room * (9 + 2 * dims + wide + count_packed(dims)) + count_packed(dims) + (dims + 5) * wide + VECTOR_LANES


@scalar
def view_logistic(memory, setting):
    """The parts of the strip, in the order of the record."""
    arms = setting.arms
    dims = setting.dims
    room = pad_to_lanes(arms)
    wide = pad_to_lanes(dims)
    size = count_packed(dims)
    a = room
    b = a + 3 * room
    c = b + room * dims
    e = c + 5 * room
    f = e + room * dims
    g = f + room * wide
    h = g + room * size
    i = h + size
    k = i + dims * wide
    return LogisticState(
        memory[:arms],
        memory[a : a + room],
        memory[a + room : a + 2 * room],
        memory[a + 2 * room : b],
        memory[b:c],
        memory[c : c + room],
        memory[c + room : c + 2 * room],
        memory[c + 2 * room : c + 3 * room],
        memory[c + 3 * room : c + 4 * room],
        memory[c + 4 * room : e],
        memory[e:f],
        memory[f:g],
        memory[g:h],
        memory[h:i],
        memory[i:k],
        memory[k : k + wide],
        memory[k + wide : k + 2 * wide],
        memory[k + 2 * wide : k + 3 * wide],
        memory[k + 3 * wide : k + 4 * wide],
        memory[k + 4 * wide : k + 5 * wide],
        memory[k + 5 * wide : k + 5 * wide + VECTOR_LANES],
    )


@noinline
def start_logistic(state, setting):
    """Forget everything but the prior."""
    arms = setting.arms
    for part in state:
        for place in range(len(part)):
            part[place] = 0.0
    whiten_features(state.seen_rows, state.prior_score, setting)
    longest = 0.0
    for arm in range(arms):
        state.place[arm] = -1.0
        square = 0.0
        for j in range(dims()):
            feature = state.seen_rows[j * arms + arm]
            state.columns[locate_column(arm, j)] = feature
            state.seen_rows[j * arms + arm] = 0.0
            square += feature * feature
        longest = max(longest, square)
    state.counts[LONGEST] = math.sqrt(longest)
    for i in range(dims()):
        state.factor[count_triangle(i) + i] = 1.0
        state.inverse[locate_column(i, i)] = 1.0


@scalar
def compute_sigmoid(score):
    """1 / (1 + exp(-score)) to about 1e-15, in plain arithmetic so that a loop over it becomes vector code.

    exp(t) - 1 from a Taylor series at t / 512, then nine times (1 + q)^2 - 1 = q (2 + q). Scores beyond 40 are as good
    as 40.
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
    """Count a pull; an arm pulled for the first time joins the played ones. Returns its place among them."""
    if state.place[arm] < 0.0:
        add_played_arm(state, arm)
    place = int(state.place[arm])
    state.pulls[arm] += 1.0
    state.seen_pulls[place] += 1.0
    state.seen_total[place] += reward
    state.counts[PULLS] += 1.0
    return place


@noinline
def add_played_arm(state, arm):
    """Add an arm to the played ones."""
    place = int(state.counts[PLAYED])
    state.place[arm] = place
    state.counts[PLAYED] = place + 1.0
    state.seen_prior[place] = state.prior_score[arm]
    score = state.prior_score[arm]
    at = place * count_packed_dims()
    for i in range(dims()):
        feature = state.columns[locate_column(arm, i)]
        score += state.estimate[i] * feature
        state.seen_columns[locate_column(place, i)] = feature
        state.seen_rows[place * pad_dims() + i] = feature
        for j in range(i + 1):
            state.seen_squares[at] = feature * state.seen_rows[place * pad_dims() + j]
            at += 1
    state.chance[place] = compute_sigmoid(score)


@optimize_separately
def add_weighted_features(sums, weights, rows):
    """Add the features of a block's arms, each times its weight, to some sums."""
    for place in range(pad_dims()):
        total = sums[place]
        for lane in range(VECTOR_LANES):
            total += weights[lane] * rows[lane * pad_dims() + place]
        sums[place] = total


@optimize_separately
def add_weighted_squares(sums, weights, squares):
    """Add the squares of a block's arms, each times its weight, to some sums."""
    for place in range(count_packed_dims()):
        total = sums[place]
        for lane in range(VECTOR_LANES):
            total += weights[lane] * squares[lane * count_packed_dims() + place]
        sums[place] = total


@scalar
def compute_gradient(state):
    """Chances and the gradient of the objective at `estimate`, over the played arms."""
    filled = count_blocks(state.counts[PLAYED])
    for place in range(filled * VECTOR_LANES):
        state.chance[place] = state.seen_prior[place]
    for b in range(filled):
        at = b * VECTOR_LANES
        add_products(state.chance[at:], state.seen_columns[at * dims() :], state.estimate)
    for place in range(filled * VECTOR_LANES):
        state.chance[place] = compute_sigmoid(state.chance[place])
    for place in range(filled * VECTOR_LANES):
        state.left[place] = state.seen_total[place] - state.seen_pulls[place] * state.chance[place]
    for j in range(pad_dims()):
        state.gradient[j] = -state.estimate[j]
    for b in range(filled):
        at = b * VECTOR_LANES
        add_weighted_features(state.gradient, state.left[at:], state.seen_rows[at * pad_dims() :])


@scalar
def factorise_weighted_squares(state, weights):
    """The factor of I + sum of weight x x' over the played arms."""
    for place in range(count_packed_dims()):
        state.factor[place] = 0.0
    for i in range(dims()):
        state.factor[count_triangle(i) + i] = 1.0
    for b in range(count_blocks(state.counts[PLAYED])):
        at = b * VECTOR_LANES
        add_weighted_squares(state.factor, weights[at:], state.seen_squares[at * count_packed_dims() :])
    factorise_packed(state.factor)


@scalar
def factorise_hessian(state):
    """The factor of the Hessian I + sum of pulls chance (1 - chance) x x' at the chances last looked at."""
    for place in range(count_blocks(state.counts[PLAYED]) * VECTOR_LANES):
        state.left[place] = state.seen_pulls[place] * state.chance[place] * (1.0 - state.chance[place])
    factorise_weighted_squares(state, state.left)


@noinline
def invert_hessian(state):
    """The inverse of the Hessian at the chances last looked at."""
    factorise_hessian(state)
    invert_from_factor(state.factor, state.inverse, state.step)


@scalar
def compute_tolerance(state):
    """How exactly the mode can be known after so many pulls."""
    return MODE_TOLERANCE + 1e-14 * state.counts[PULLS]


@scalar
def score_logistic_arms(state, setting, theta):
    """Every arm's score under a theta."""
    for arm in range(len(state.score)):
        state.score[arm] = state.prior_score[arm]
    for b in range(count_blocks(setting.arms)):
        at = b * VECTOR_LANES
        add_products(state.score[at:], state.columns[at * dims() :], theta)


@scalar
def recall_logistic(state, setting, pulls, totals):
    """Write down every arm's pulls and total reward."""
    for arm in range(setting.arms):
        pulls[arm] = state.pulls[arm]
        totals[arm] = state.seen_total[int(state.place[arm])] if state.place[arm] >= 0.0 else 0.0
