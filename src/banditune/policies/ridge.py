"""Ready-made memory for policies that know arms by their features: ridge regression.

A reward costs O(arms dims + dims^2).

With the prior N(mean, covariance) on theta, features and rewards are turned so that the prior is N(0, I): x becomes
root' x, where root root' is the covariance, and an arm's score starts from x' mean. In these coordinates

    G = penalty I + sum of x x',    estimate = G^-1 (sum of x (reward - x' mean)),

and for every arm `score` is the estimated reward and `variance` is x' G^-1 x. The memory keeps `factor`, the inverse of the
lower triangular Cholesky factor of G: it is triangular, so it is unique, and factor' factor = G^-1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from banditune.checks import mean_and_root
from banditune.contracts import Floats, Policy, rare, scalar
from banditune.streams import normal_pair

OWN = 4

REFRESH = 1000
"""Updates after which everything is computed afresh from pulls and totals, so that rounding cannot pile up."""


class Ridge(NamedTuple):
    """What ridge regression knows; arrays with an entry per arm come first.

    `pulls` and `total` are what was paid, `score` is x'theta, `variance` x' G^-1 x and `width` its root. `estimate` is
    theta in the coordinates in which the prior is N(0, I), and so are `features` (a row per dimension, one after the
    other). `own` is for the policy: `OWN` numbers to remember.
    """

    pulls: Floats
    total: Floats
    score: Floats
    variance: Floats
    width: Floats
    prior_score: Floats
    shift: Floats
    features: Floats
    factor: Floats
    estimate: Floats
    turned: Floats
    gain: Floats
    age: Floats
    own: Floats


def ridge_memory(arms: int, dims: int) -> int:
    """Floats in a `Ridge`."""
    return 7 * arms + arms * dims + dims * dims + 3 * dims + 1 + OWN


@scalar
def view_ridge(memory, setting):
    """The parts of the strip, in the order of the record."""
    arms = setting.arms
    dims = setting.dims
    a = 7 * arms
    b = a + arms * dims
    c = b + dims * dims
    return Ridge(
        memory[:arms],
        memory[arms : 2 * arms],
        memory[2 * arms : 3 * arms],
        memory[3 * arms : 4 * arms],
        memory[4 * arms : 5 * arms],
        memory[5 * arms : 6 * arms],
        memory[6 * arms : 7 * arms],
        memory[a:b],
        memory[b:c],
        memory[c : c + dims],
        memory[c + dims : c + 2 * dims],
        memory[c + 2 * dims : c + 3 * dims],
        memory[c + 3 * dims : c + 3 * dims + 1],
        memory[c + 3 * dims + 1 : c + 3 * dims + 1 + OWN],
    )


@scalar
def own_option(setting, place):
    """A policy's own option: they stand behind the penalty and the prior."""
    return setting.options[1 + setting.dims + setting.dims * setting.dims + place]


@scalar
def longest_feature(setting):
    """The largest norm of an arm's features."""
    largest = 0.0
    for arm in range(setting.arms):
        square = 0.0
        for j in range(setting.dims):
            square += setting.features[j, arm] * setting.features[j, arm]
        largest = max(largest, square)
    return math.sqrt(largest)


@scalar
def bound_factor(setting):
    """Theory's factor c before gamma: given, or outer (sqrt(d) + noise sqrt(d log((1 + n L^2) n))) with the largest norm L.

    This is the bound of Abbasi-Yadkori, Pal and Szepesvari (2011) with ||theta|| <= sqrt(d) and a chance of 1 / n to fail.
    """
    given = own_option(setting, 0)
    if given > 0.0:
        return given
    dims = setting.dims
    longest = longest_feature(setting)
    grown = math.log(1.0 + setting.horizon * longest * longest) + math.log(setting.horizon)
    return own_option(setting, 1) * (math.sqrt(dims) + own_option(setting, 2) * math.sqrt(dims * grown))


@scalar
def start_ridge(state, setting):
    """Forget everything but the prior."""
    turn_features(state.features, state.prior_score, setting)
    for arm in range(setting.arms):
        state.pulls[arm] = 0.0
        state.total[arm] = 0.0
    refresh_ridge(state, setting)
    for arm in range(setting.arms):
        state.width[arm] = math.sqrt(state.variance[arm])


@scalar
def turn_features(features, prior_score, setting):
    """Features in the coordinates in which the prior is N(0, I), and the scores of the prior's mean."""
    arms = setting.arms
    dims = setting.dims
    for arm in range(arms):
        prior_score[arm] = 0.0
    for j in range(dims):
        mean = setting.options[1 + j]
        for arm in range(arms):
            prior_score[arm] += mean * setting.features[j, arm]
            features[j * arms + arm] = 0.0
    # The covariance's root is lower triangular: entry (i, j) turns feature i into coordinate j <= i.
    for i in range(dims):
        for j in range(i + 1):
            entry = setting.options[1 + dims + i * dims + j]
            if entry != 0.0:
                for arm in range(arms):
                    features[j * arms + arm] += entry * setting.features[i, arm]


@rare
def refresh_ridge(state, setting):
    """Compute everything afresh from pulls and totals."""
    arms = setting.arms
    dims = setting.dims
    moment = state.turned
    for place in range(dims * dims):
        state.factor[place] = 0.0
    for j in range(dims):
        state.factor[j * dims + j] = setting.options[0]
        moment[j] = 0.0
        state.estimate[j] = 0.0
    for arm in range(arms):
        if state.pulls[arm] > 0.0:
            add_square(state.factor, state.features, state.pulls[arm], arm, arms, dims)
            left = state.total[arm] - state.pulls[arm] * state.prior_score[arm]
            for j in range(dims):
                moment[j] += left * state.features[j * arms + arm]
    cholesky(state.factor, dims)
    invert_triangle(state.factor, dims)
    for i in range(dims):
        along = 0.0
        for j in range(i + 1):
            along += state.factor[i * dims + j] * moment[j]
        for j in range(i + 1):
            state.estimate[j] += along * state.factor[i * dims + j]
    for arm in range(arms):
        state.score[arm] = state.prior_score[arm]
        state.variance[arm] = 0.0
    add_products(state.score, state.features, state.estimate, arms, dims)
    for i in range(dims):
        for arm in range(arms):
            state.shift[arm] = 0.0
        for j in range(i + 1):
            entry = state.factor[i * dims + j]
            for arm in range(arms):
                state.shift[arm] += entry * state.features[j * arms + arm]
        for arm in range(arms):
            state.variance[arm] += state.shift[arm] * state.shift[arm]
    state.age[0] = 0.0


@scalar
def add_square(matrix, features, weight, arm, arms, dims):
    """Add weight x x' to the lower triangle of a matrix."""
    for i in range(dims):
        weighted = weight * features[i * arms + arm]
        for j in range(i + 1):
            matrix[i * dims + j] += weighted * features[j * arms + arm]


@scalar
def cholesky(matrix, dims):
    """The lower triangular factor of a positive definite matrix, in place of its lower triangle."""
    for j in range(dims):
        for k in range(j):
            entry = matrix[j * dims + k]
            for i in range(j, dims):
                matrix[i * dims + j] -= entry * matrix[i * dims + k]
        scale = 1.0 / math.sqrt(matrix[j * dims + j])
        for i in range(j, dims):
            matrix[i * dims + j] *= scale


@scalar
def invert_triangle(matrix, dims):
    """The inverse of a lower triangular matrix, in its place."""
    for j in range(dims):
        matrix[j * dims + j] = 1.0 / matrix[j * dims + j]
        for i in range(j + 1, dims):
            total = 0.0
            for k in range(j, i):
                total += matrix[i * dims + k] * matrix[k * dims + j]
            matrix[i * dims + j] = -total / matrix[i * dims + i]


@scalar
def shrink_factor(factor, turned, gain, dims):
    """Learn one more x: from `turned` = factor x renew the factor; `gain` is room.

    This is Carlson's update (1973) of a triangular root of a covariance: it costs O(dims^2) and stays triangular.
    """
    for i in range(dims):
        gain[i] = 0.0
    grown = 1.0
    for j in range(dims):
        before = grown
        grown += turned[j] * turned[j]
        root = math.sqrt(before * grown)
        keep = before / root
        take = turned[j] / root
        for i in range(dims):
            entry = factor[j * dims + i]
            factor[j * dims + i] = keep * entry - take * gain[i]
            gain[i] += turned[j] * entry


@scalar
def point_at(state, setting, arm):
    """Prepare to learn from an arm: factor x in `turned`, G^-1 x in `gain`, every arm's x' G^-1 x_arm in `shift`.

    Returns the arm's own, its variance.
    """
    arms = setting.arms
    dims = setting.dims
    for j in range(dims):
        along = 0.0
        for i in range(j + 1):
            along += state.factor[j * dims + i] * state.features[i * arms + arm]
        state.turned[j] = along
    for i in range(dims):
        along = 0.0
        for j in range(i, dims):
            along += state.turned[j] * state.factor[j * dims + i]
        state.gain[i] = along
    for a in range(arms):
        state.shift[a] = 0.0
    add_products(state.shift, state.features, state.gain, arms, dims)
    return state.shift[arm]


@scalar
def add_products(to, features, vector, arms, dims):
    """Add every arm's x'vector, five dimensions at a time: memory is what this waits for."""
    j = 0
    while j + 5 <= dims:
        v0, v1, v2, v3, v4 = vector[j], vector[j + 1], vector[j + 2], vector[j + 3], vector[j + 4]
        first = j * arms
        for arm in range(arms):
            at = first + arm
            to[arm] = (
                to[arm]
                + v0 * features[at]
                + v1 * features[at + arms]
                + v2 * features[at + 2 * arms]
                + v3 * features[at + 3 * arms]
                + v4 * features[at + 4 * arms]
            )
        j += 5
    while j < dims:
        v0 = vector[j]
        for arm in range(arms):
            to[arm] += v0 * features[j * arms + arm]
        j += 1


@scalar
def learn(state, setting, arm, pulls, paid):
    """Learn some pulls of the arm pointed at, by Sherman and Morrison's formula for every arm's score and variance."""
    dims = setting.dims
    state.pulls[arm] += pulls
    state.total[arm] += paid
    state.age[0] += 1.0
    if state.age[0] >= REFRESH:
        refresh_ridge(state, setting)
        return
    shrink = pulls / (1.0 + pulls * state.shift[arm])
    step = (paid - pulls * state.score[arm]) / (1.0 + pulls * state.shift[arm])
    for j in range(dims):
        state.estimate[j] += step * state.gain[j]
        state.turned[j] *= math.sqrt(pulls)
    shrink_factor(state.factor, state.turned, state.gain, dims)
    for a in range(setting.arms):
        state.score[a] += step * state.shift[a]
        state.variance[a] = max(state.variance[a] - shrink * state.shift[a] * state.shift[a], 0.0)


@scalar
def update_ridge(state, setting, arm, reward, stream):
    """Learn a reward."""
    point_at(state, setting, arm)
    learn(state, setting, arm, 1.0, reward)
    for a in range(setting.arms):
        state.width[a] = math.sqrt(state.variance[a])


@scalar
def best_score(score):
    """The arm with the highest score; ties go to the lowest number.

    Eight scores at a time, because one comparison after the other is slow.
    """
    arms = len(score)
    highest = score[0]
    place = 0
    at = 0
    while at + 8 <= arms:
        low = larger(larger(score[at], score[at + 1]), larger(score[at + 2], score[at + 3]))
        high = larger(larger(score[at + 4], score[at + 5]), larger(score[at + 6], score[at + 7]))
        if larger(low, high) > highest:
            highest = larger(low, high)
            place = at
        at += 8
    while at < arms:
        if score[at] > highest:
            highest = score[at]
            place = at
        at += 1
    while score[place] < highest:
        place += 1
    return place


@scalar
def larger(a, b):
    """The larger of two numbers, as one instruction."""
    return a if a > b else b


@scalar
def sample_scores(state, setting, scale, stream):
    """Draw theta from N(estimate, scale^2 G^-1) and put every arm's score under it into `shift`."""
    draw_theta(state, setting, scale, stream)
    score_draw(state, setting)


@scalar
def draw_theta(state, setting, scale, stream):
    """Put a draw from N(estimate, scale^2 G^-1) into `gain`."""
    dims = setting.dims
    j = 0
    while j < dims:
        first, second = normal_pair(stream)
        state.turned[j] = scale * first
        if j + 1 < dims:
            state.turned[j + 1] = scale * second
        j += 2
    for i in range(dims):
        along = state.estimate[i]
        for j in range(i, dims):
            along += state.turned[j] * state.factor[j * dims + i]
        state.gain[i] = along


@scalar
def score_draw(state, setting):
    """Put every arm's score under the theta in `gain` into `shift`."""
    arms = setting.arms
    for arm in range(arms):
        state.shift[arm] = state.prior_score[arm]
    add_products(state.shift, state.features, state.gain, arms, setting.dims)


class RidgePolicy(Policy):
    """A policy on ridge regression: only `choose` is its own."""

    needs_features = True
    prior: Any = (0, 1)
    view = staticmethod(view_ridge)
    start = staticmethod(start_ridge)
    update = staticmethod(update_ridge)

    def penalty(self) -> float:
        """What G starts from: the variance of the noise, in the coordinates in which the prior is N(0, I)."""
        return 1.0

    def own_options(self, arms: int, dims: int, horizon: int) -> Sequence[float]:
        """Numbers that `choose` finds by `own_option`."""
        return ()

    def memory(self, arms: int, dims: int) -> int:
        return ridge_memory(arms, dims)

    def options(self, arms: int, dims: int, horizon: int) -> Sequence[float]:
        mean, root = mean_and_root("prior", self.prior, dims)
        return (self.penalty(), *mean, *root.ravel(), *self.own_options(arms, dims, horizon))
