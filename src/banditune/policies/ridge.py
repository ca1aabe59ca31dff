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
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from banditune.checks import check_number, gaussian, is_open, mean_and_root
from banditune.contracts import PROBLEM, BadRequest, Floats, Policy, rare, scalar, vector
from banditune.policies.arms import recall_totals
from banditune.policies.lanes import LANES, add_products, add_rows, blocks, column, dims, padded, wide
from banditune.streams import normal_pair

OWN = 4

REFRESH = 1000
"""Updates after which everything is computed afresh from pulls and totals, so that rounding cannot pile up."""


NEVER = -1e100
"""The score of the places behind the last arm: they are never the best."""


class Ridge(NamedTuple):
    """What ridge regression knows, laid out as `lanes` says.

    `pulls` and `total` are what was paid, `score` is x'theta, `variance` x' G^-1 x and `width` its root. `scores` and
    `shifts` are `score` and `shift` with the places behind the last arm; `variance` and `prior_score` have them too.
    `estimate` is theta in the coordinates in which the prior is N(0, I), and so are the features: in `columns` by blocks of
    arms, in `rows` one arm after the other. `factor` stands in columns too, where `column` says; `square` is room for a
    matrix. `age` counts updates since everything was computed afresh and keeps the largest variance then. `own` is for the
    policy: `OWN` numbers to remember.
    """

    pulls: Floats
    total: Floats
    width: Floats
    score: Floats
    scores: Floats
    shift: Floats
    shifts: Floats
    variance: Floats
    prior_score: Floats
    columns: Floats
    rows: Floats
    factor: Floats
    square: Floats
    estimate: Floats
    turned: Floats
    gain: Floats
    spare: Floats
    age: Floats
    own: Floats


@scalar
def ridge_memory(arms, dims):
    """Floats in a `Ridge`."""
    return padded(arms) * (7 + dims) + (arms + 2 * dims + 4) * padded(dims) + LANES


@scalar
def view_ridge(memory, setting):
    """The parts of the strip, in the order of the record."""
    arms = setting.arms
    dims = setting.dims
    room = padded(arms)
    wide = padded(dims)
    a = 3 * room
    b = 7 * room
    c = b + room * dims
    e = c + arms * wide
    f = e + 2 * dims * wide
    g = f + 4 * wide
    return Ridge(
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
        memory[g + 2 : g + 2 + OWN],
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


@rare
def start_ridge(state, setting):
    """Forget everything but the prior."""
    arms = setting.arms
    for part in state:
        for place in range(len(part)):
            part[place] = 0.0
    turn_features(state.rows, state.prior_score, setting)
    for arm in range(arms):
        for j in range(dims()):
            state.columns[column(arm, j)] = state.rows[j * arms + arm]
    for arm in range(arms):
        for j in range(wide()):
            state.rows[arm * wide() + j] = state.columns[column(arm, j)] if j < dims() else 0.0
    for place in range(arms, len(state.prior_score)):
        state.prior_score[place] = NEVER
    refresh_ridge(state, setting)
    renew_widths(state)


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
            row = state.rows[arm * wide() : (arm + 1) * wide()]
            left = state.total[arm] - state.pulls[arm] * state.prior_score[arm]
            for i in range(dims()):
                moment[i] += left * row[i]
                for j in range(i + 1):
                    square[i * dims() + j] += state.pulls[arm] * row[i] * row[j]
    cholesky(square, setting.dims)
    invert_triangle(square, setting.dims)
    for i in range(dims()):
        along = 0.0
        for j in range(i + 1):
            along += square[i * dims() + j] * moment[j]
        for j in range(i + 1):
            state.estimate[j] += along * square[i * dims() + j]
        for j in range(dims()):
            state.factor[column(j, i)] = square[i * dims() + j] if j <= i else 0.0
    score_theta(state, state.estimate, state.scores)
    for place in range(len(state.variance)):
        state.variance[place] = 0.0
    for i in range(dims()):
        for j in range(dims()):
            state.gain[j] = state.factor[column(j, i)]
        multiply_arms(state, state.gain, state.shifts)
        for place in range(len(state.variance)):
            state.variance[place] += state.shifts[place] * state.shifts[place]
    state.age[0] = 0.0
    state.age[1] = 0.0
    for arm in range(setting.arms):
        state.age[1] = max(state.age[1], state.variance[arm])


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
def multiply_arms(state, vector, products):
    """Every arm's x'vector."""
    for place in range(len(products)):
        products[place] = 0.0
    for b in range(blocks(len(products))):
        at = b * LANES
        add_products(products[at:], state.columns[at * dims() :], vector)


@scalar
def score_theta(state, theta, scores):
    """Every arm's score under a theta."""
    for place in range(len(scores)):
        scores[place] = state.prior_score[place]
    for b in range(blocks(len(scores))):
        at = b * LANES
        add_products(scores[at:], state.columns[at * dims() :], theta)


@scalar
def shrink_factor(factor, turned, keep, take):
    """Learn one more x: from `turned` = factor x renew the factor; `keep` and `take` are room.

    This is Carlson's update (1973) of a triangular root of a covariance: it costs O(dims^2) and stays triangular.
    """
    grown = 1.0
    for j in range(dims()):
        before = grown
        grown += turned[j] * turned[j]
        root = 1.0 / math.sqrt(before * grown)
        keep[j] = before * root
        take[j] = turned[j] * root
    for b in range(blocks(dims())):
        shrink_columns(factor[b * LANES * dims() :], turned, keep, take)


@vector
def shrink_columns(columns, turned, keep, take):
    """Carlson's update of a block of columns."""
    for lane in range(LANES):
        gain = 0.0
        for j in range(dims()):
            entry = columns[j * LANES + lane]
            columns[j * LANES + lane] = keep[j] * entry - take[j] * gain
            gain += turned[j] * entry


@scalar
def turn(state, arm, turned, gain):
    """Put factor x into `turned` and G^-1 x = factor' turned into `gain`, for the features x of an arm."""
    row = state.rows[arm * wide() : (arm + 1) * wide()]
    for j in range(dims()):
        along = 0.0
        for i in range(dims()):
            along += state.factor[column(i, j)] * row[i]
        turned[j] = along
    for i in range(wide()):
        gain[i] = 0.0
    add_rows(gain, state.factor, turned)


@scalar
def point_at(state, arm):
    """Prepare to learn from an arm: factor x in `turned`, G^-1 x in `gain`, every arm's x' G^-1 x_arm in `shift`."""
    turn(state, arm, state.turned, state.gain)
    multiply_arms(state, state.gain, state.shifts)


@scalar
def count(state, arm, pulls, paid):
    """Remember what some pulls of an arm paid."""
    state.pulls[arm] += pulls
    state.total[arm] += paid
    state.age[0] += 1.0


@scalar
def move_arms(state, gain, shifts, step, shrink):
    """Learn pulls of an arm with this G^-1 x and these shifts: the estimate and every arm's score move by `step` of them,
    variances by `shrink` of their squares (Sherman and Morrison's formula).
    """
    for j in range(wide()):
        state.estimate[j] += step * gain[j]
    for place in range(len(state.variance)):
        along = shifts[place]
        state.scores[place] += step * along
        state.variance[place] = max(state.variance[place] - shrink * along * along, 0.0)


@scalar
def update_ridge(state, setting, arm, reward, stream):
    """Learn a reward."""
    count(state, arm, 1.0, reward)
    if state.age[0] >= REFRESH:
        refresh_ridge(state, setting)
    else:
        point_at(state, arm)
        shrink = 1.0 / (1.0 + state.shift[arm])
        move_arms(state, state.gain, state.shifts, shrink * (reward - state.score[arm]), shrink)
        shrink_factor(state.factor, state.turned, state.gain, state.spare)
    renew_widths(state)


@rare
def resume_ridge(state, setting, params, pulls, totals):
    """Know every arm's pulls and total reward."""
    for arm in range(setting.arms):
        state.pulls[arm] = pulls[arm]
        state.total[arm] = totals[arm]
    refresh_ridge(state, setting)
    renew_widths(state)


@scalar
def renew_widths(state):
    """The roots of the variances."""
    for arm in range(len(state.width)):
        state.width[arm] = math.sqrt(state.variance[arm])


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
    draw_theta(state, scale, state.gain, stream)
    score_theta(state, state.gain, state.shifts)


@scalar
def draw_theta(state, scale, theta, stream):
    """Draw theta from N(estimate, scale^2 G^-1); `turned` is lost."""
    for first in range(0, dims(), 2):
        # An odd one out falls into the padding.
        normal, second = normal_pair(stream)
        state.turned[first] = scale * normal
        state.turned[first + 1] = scale * second
    for i in range(wide()):
        theta[i] = state.estimate[i]
    add_rows(theta, state.factor, state.turned)


class FeaturePolicy(Policy):
    """A policy that knows arms by their features, and theta by a Gaussian prior (mean, covariance)."""

    needs_features: ClassVar[bool] = True
    prior_kind: ClassVar[str] = "theta"
    link: ClassVar[str] = ""
    """How x'theta makes a mean, "linear" or "logistic"."""
    prior: Any = PROBLEM

    def __post_init__(self) -> None:
        if not is_open(self.prior):
            object.__setattr__(self, "prior", gaussian("prior", self.prior))

    def penalty(self) -> float:
        """What G starts from, in the coordinates in which the prior is N(0, I)."""
        return 1.0

    def own_options(self, arms: int, dims: int, horizon: int) -> Sequence[float]:
        """Numbers that the policy finds by `own_option`."""
        return ()

    def options(self, arms: int, dims: int, horizon: int) -> Sequence[float]:
        mean, root = mean_and_root("prior", self.prior, dims, of=f" of {self.name}")
        return (self.penalty(), *mean, *root.ravel(), *self.own_options(arms, dims, horizon))

    def after(self, features: Floats, pulls: Floats, totals: Floats) -> Policy:
        """The posterior, given what these arms paid, is the prior of what follows."""
        mean, root = mean_and_root("prior", self.prior, features.shape[1])
        turned = features @ root
        theta, covariance = self.posterior(turned, features @ mean, pulls, totals)
        covariance = root @ covariance @ root.T
        return replace(self, prior=(mean + root @ theta, (covariance + covariance.T) / 2))  # type: ignore[type-var]

    def posterior(self, turned: Floats, prior_scores: Floats, pulls: Floats, totals: Floats) -> tuple[Floats, Floats]:
        """Mean and covariance of theta in the coordinates in which the prior is N(0, I)."""
        raise BadRequest(f"the policy {type(self).__name__} must define `posterior`.")

    def longest(self, features: Floats) -> float:
        """The largest norm of an arm's features, in the coordinates in which the prior is N(0, I)."""
        _, root = mean_and_root("prior", self.prior, features.shape[1])
        return math.sqrt(np.square(np.einsum("nda,de->nea", features, root)).sum(axis=1).max())


class RidgePolicy(FeaturePolicy):
    """A policy on ridge regression for rewards with Gaussian noise: only `choose` is its own."""

    noise: Any
    link: ClassVar[str] = "linear"
    textbook_options: ClassVar[Mapping[str, Any]] = {"prior": (0, 1), "noise": 0.5}
    view = staticmethod(view_ridge)
    start = staticmethod(start_ridge)
    update = staticmethod(update_ridge)
    recall = staticmethod(recall_totals)
    resume = staticmethod(resume_ridge)

    def __post_init__(self) -> None:
        super().__post_init__()
        if is_open(self.noise):
            return
        object.__setattr__(self, "noise", check_number("noise", self.noise, above=0))
        if not 1e-50 < self.noise < 1e50:
            raise BadRequest(f"`1e-50 < noise < 1e50` must hold for {self.name}, but got noise={self.noise!r}.")

    def penalty(self) -> float:
        return float(self.noise) ** 2

    def memory(self, arms: int, dims: int) -> int:
        return int(ridge_memory(arms, dims))

    def posterior(self, turned: Floats, prior_scores: Floats, pulls: Floats, totals: Floats) -> tuple[Floats, Floats]:
        precision = self.penalty() * np.eye(turned.shape[1]) + (turned.T * pulls) @ turned
        inverse = np.linalg.inv(precision).astype(np.float64)
        return inverse @ turned.T @ (totals - pulls * prior_scores), self.penalty() * inverse

    def check(self, features: Floats, horizon: int) -> None:
        growth = horizon * (self.longest(features) / self.noise) ** 2
        if growth > 1e12:
            raise BadRequest(
                f"horizon (|x| sd / noise)^2 must be below 1e12 for {self.name}, with features x and the prior's standard "
                f"deviation sd, or rounding decides, but it is {growth:.2g}; rescale the features or the prior."
            )
