"""Ready-made memory for logistic rewards: the mode of the posterior of logistic regression, found anew after every pull.

With the prior N(mean, covariance) on theta, features are turned so that it is N(0, I), as in `ridge`. Arms have fixed
features, so the data are pulls and successes of the arms played so far, and one look at all of them costs O(played arms
x dims).

The mode maximises sum of (total score - pulls log(1 + e^score)) - |theta|^2 / 2, which is strictly concave. At the last
mode the gradient is that of the new pull alone, so the first Newton step needs no look. Then a look or two with an old
Hessian, to which the pull's own term is added, are mostly enough; where they do not at least halve the error each time,
`climb` takes over: Newton's method with the exact Hessian and steps that are cut until the objective rises enough, which
converges from anywhere.

All is laid out for vector code, as `lanes` says.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from banditune.contracts import BadRequest, Floats, rare, scalar, vector
from banditune.policies.lanes import (
    LANES,
    add_products,
    add_rows,
    blocks,
    column,
    dims,
    padded,
    product,
    subtract_outer,
    wide,
)
from banditune.policies.ridge import FeaturePolicy, best_score, turn_features

TOLERANCE = 1e-8
"""The mode is found to within this many posterior standard deviations (and rounding: 1e-14 more for every pull)."""

ROUGH = 1e-5
"""The mode is found to within this many at first, where only the best arm is asked for: see `certain`."""

PATIENCE = 2
"""Looks with an old Hessian; at the next it is renewed."""

QUICK = 8
"""Looks before `climb` takes over."""

STEPS = 100
"""Newton steps after which the search for the mode gives up; three to ten are usual."""

NO_MODE = -1001
"""What `choose` returns where the mode was not found."""


@scalar
def triangle(count):
    """Entries in so many rows of a packed matrix."""
    return (count * (count + 1)) >> 1


@scalar
def packed(dims):
    """Room for the lower triangle of a matrix, row by row."""
    return max((triangle(dims) + 7) // 8 * 8, LANES)


@scalar
def size():
    """Room for a packed matrix."""
    return packed(dims())


class Logistic(NamedTuple):
    """What logistic regression knows: first an entry per arm, then an entry per arm played, in the order of first pulls.

    `score` is x'theta. `columns` and `seen_columns` are features in blocks of arms: for each block, a vector of its arms'
    features in each dimension. `seen_rows` are the played arms' features one arm after the other, and `seen_squares` the
    lower triangles of x x'. `factor` is the lower triangular Cholesky factor of a Hessian, packed, with the reciprocals of
    its diagonal; `inverse` the inverse of a Hessian. `pulled` is H^-1 x of the arm just pulled;
    `normals` are the draws of a policy that samples.
    """

    pulls: Floats
    score: Floats
    prior_score: Floats
    place: Floats
    columns: Floats
    seen_pulls: Floats
    seen_total: Floats
    seen_prior: Floats
    chance: Floats
    left: Floats
    seen_columns: Floats
    seen_rows: Floats
    seen_squares: Floats
    factor: Floats
    inverse: Floats
    estimate: Floats
    gradient: Floats
    step: Floats
    pulled: Floats
    normals: Floats
    counts: Floats


PLAYED, PULLS, LOST, ERROR, LONGEST = 0, 1, 2, 3, 4
"""Places of `counts`: arms played, pulls in all, whether the mode was lost, how far `estimate` (or the point to which
`factor` belongs) is from the mode in posterior deviations, and the largest norm of features."""


@scalar
def logistic_memory(arms, dims):
    """Floats in a `Logistic`."""
    room = padded(arms)
    wide = padded(dims)
    return room * (9 + 2 * dims + wide + packed(dims)) + packed(dims) + (dims + 5) * wide + LANES


@scalar
def view_logistic(memory, setting):
    """The parts of the strip, in the order of the record."""
    arms = setting.arms
    dims = setting.dims
    room = padded(arms)
    wide = padded(dims)
    size = packed(dims)
    a = room
    b = a + 3 * room
    c = b + room * dims
    e = c + 5 * room
    f = e + room * dims
    g = f + room * wide
    h = g + room * size
    i = h + size
    k = i + dims * wide
    return Logistic(
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
        memory[k + 5 * wide : k + 5 * wide + LANES],
    )


@rare
def start_logistic(state, setting):
    """Forget everything but the prior."""
    arms = setting.arms
    for part in state:
        for place in range(len(part)):
            part[place] = 0.0
    turn_features(state.seen_rows, state.prior_score, setting)
    longest = 0.0
    for arm in range(arms):
        state.place[arm] = -1.0
        square = 0.0
        for j in range(dims()):
            feature = state.seen_rows[j * arms + arm]
            state.columns[column(arm, j)] = feature
            state.seen_rows[j * arms + arm] = 0.0
            square += feature * feature
        longest = max(longest, square)
    state.counts[LONGEST] = math.sqrt(longest)
    for i in range(dims()):
        state.factor[triangle(i) + i] = 1.0
        state.inverse[column(i, i)] = 1.0


@scalar
def sigmoid(score):
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
def count_pull(state, arm, reward):
    """Count a pull; an arm pulled for the first time joins the played ones. Returns its place among them."""
    if state.place[arm] < 0.0:
        join(state, arm)
    place = int(state.place[arm])
    state.pulls[arm] += 1.0
    state.seen_pulls[place] += 1.0
    state.seen_total[place] += reward
    state.counts[PULLS] += 1.0
    return place


@rare
def join(state, arm):
    """Add an arm to the played ones."""
    place = int(state.counts[PLAYED])
    state.place[arm] = place
    state.counts[PLAYED] = place + 1.0
    state.seen_prior[place] = state.prior_score[arm]
    score = state.prior_score[arm]
    at = place * size()
    for i in range(dims()):
        feature = state.columns[column(arm, i)]
        score += state.estimate[i] * feature
        state.seen_columns[column(place, i)] = feature
        state.seen_rows[place * wide() + i] = feature
        for j in range(i + 1):
            state.seen_squares[at] = feature * state.seen_rows[place * wide() + j]
            at += 1
    state.chance[place] = sigmoid(score)


@vector
def add_seen(sums, weights, rows):
    """Add the features of a block's arms, each times its weight, to some sums."""
    for place in range(wide()):
        total = sums[place]
        for lane in range(LANES):
            total += weights[lane] * rows[lane * wide() + place]
        sums[place] = total


@vector
def add_squares(sums, weights, squares):
    """Add the squares of a block's arms, each times its weight, to some sums."""
    for place in range(size()):
        total = sums[place]
        for lane in range(LANES):
            total += weights[lane] * squares[lane * size() + place]
        sums[place] = total


@scalar
def look(state):
    """Chances and the gradient of the objective at `estimate`, over the played arms."""
    filled = blocks(state.counts[PLAYED])
    for place in range(filled * LANES):
        state.chance[place] = state.seen_prior[place]
    for b in range(filled):
        at = b * LANES
        add_products(state.chance[at:], state.seen_columns[at * dims() :], state.estimate)
    for place in range(filled * LANES):
        state.chance[place] = sigmoid(state.chance[place])
    for place in range(filled * LANES):
        state.left[place] = state.seen_total[place] - state.seen_pulls[place] * state.chance[place]
    for j in range(wide()):
        state.gradient[j] = -state.estimate[j]
    for b in range(filled):
        at = b * LANES
        add_seen(state.gradient, state.left[at:], state.seen_rows[at * wide() :])


@scalar
def build_factor(state, weights):
    """The factor of I + sum of weight x x' over the played arms."""
    for place in range(size()):
        state.factor[place] = 0.0
    for i in range(dims()):
        state.factor[triangle(i) + i] = 1.0
    for b in range(blocks(state.counts[PLAYED])):
        at = b * LANES
        add_squares(state.factor, weights[at:], state.seen_squares[at * size() :])
    cholesky_packed(state.factor)


@scalar
def renew_factor(state):
    """The factor of the Hessian I + sum of pulls chance (1 - chance) x x' at the chances last looked at."""
    for place in range(blocks(state.counts[PLAYED]) * LANES):
        state.left[place] = state.seen_pulls[place] * state.chance[place] * (1.0 - state.chance[place])
    build_factor(state, state.left)


@scalar
def cholesky_packed(matrix):
    """The lower triangular factor of a positive definite matrix, in its place, with the reciprocals of its diagonal."""
    for i in range(dims()):
        row = matrix[triangle(i) :]
        for j in range(i):
            across = matrix[triangle(j) :]
            total = row[j]
            for k in range(j):
                total -= row[k] * across[k]
            row[j] = total * across[j]
        total = row[i]
        for k in range(i):
            total -= row[k] * row[k]
        row[i] = 1.0 / math.sqrt(total)


@scalar
def solve_lower(factor, vector):
    """Put L^-1 vector in the place of a vector."""
    row = 0
    for i in range(dims()):
        total = vector[i]
        for k in range(i):
            total -= factor[row + k] * vector[k]
        vector[i] = total * factor[row + i]
        row += i + 1


@scalar
def solve_upper(factor, vector):
    """Put L'^-1 vector in the place of a vector."""
    row = dims() * (dims() + 1) // 2
    for back in range(dims()):
        i = dims() - 1 - back
        row -= i + 1
        entry = vector[i] * factor[row + i]
        vector[i] = entry
        for k in range(i):
            vector[k] -= factor[row + k] * entry


@scalar
def multiply(matrix, vector, product):
    """The product of a symmetric matrix, in columns, and a vector."""
    for j in range(wide()):
        product[j] = 0.0
    add_rows(product, matrix, vector)


@scalar
def step_by_inverse(state):
    """Put H^-1 gradient into `step`, by `inverse`; returns the square of its length in posterior deviations."""
    multiply(state.inverse, state.gradient, state.step)
    return product(state.gradient, state.step)


@scalar
def step_by_factor(state):
    """Put H^-1 gradient into `step`, by `factor`; returns the square of its length in posterior deviations."""
    for j in range(dims()):
        state.step[j] = state.gradient[j]
    solve_lower(state.factor, state.step)
    square = product(state.step, state.step)
    solve_upper(state.factor, state.step)
    return square


@rare
def renew_inverse(state):
    """The inverse of the Hessian at the chances last looked at."""
    renew_factor(state)
    invert_factor(state.factor, state.inverse, state.step)


@scalar
def invert_factor(factor, inverse, room):
    """The inverse of a matrix out of its factor, in columns; `room` is for a vector."""
    for i in range(dims()):
        for j in range(dims()):
            room[j] = 1.0 if i == j else 0.0
        solve_lower(factor, room)
        solve_upper(factor, room)
        for j in range(dims()):
            inverse[column(j, i)] = room[j]


@scalar
def tolerance(state):
    """How exactly the mode can be known after so many pulls."""
    return TOLERANCE + 1e-14 * state.counts[PULLS]


@scalar
def move(state, share):
    """Take a step, or a share of it."""
    for j in range(dims()):
        state.estimate[j] += share * state.step[j]


@scalar
def find_mode(state, last, wanted):
    """Move `estimate` to within `wanted` of the mode, after a step of the length `last`; sets LOST where that fails."""
    last += state.counts[ERROR]
    for looks in range(QUICK):
        look(state)
        if looks == PATIENCE:
            renew_inverse(state)
        error = math.sqrt(max(step_by_inverse(state), 0.0))
        if not error <= max(0.5 * last, 0.1 * wanted):
            break
        move(state, 1.0)
        # The next error will be smaller than this one by the rate seen last, or twice that.
        state.counts[ERROR] = error * min(2.0 * error / max(last, 1e-300), 1.0)
        if error <= 0.1 * wanted or (error < 1e-3 and state.counts[ERROR] <= wanted):
            return
        last = error
    state.counts[LOST] = 0.0 if climb(state) else 1.0
    state.counts[ERROR] = tolerance(state)
    renew_inverse(state)


@scalar
def find_mode_and_factor(state, last, wanted):
    """Move `estimate` to the mode by Newton's method, until `factor` belongs to a point within `wanted` of it.

    The step before was of the length `last`. One Newton step from there, `estimate` itself is far closer.
    """
    last += state.counts[ERROR] + wanted
    for _ in range(QUICK):
        look(state)
        renew_factor(state)
        error = math.sqrt(step_by_factor(state))
        if not error <= 0.5 * last:
            break
        move(state, 1.0)
        state.counts[ERROR] = error
        if error <= wanted:
            return
        last = error
    state.counts[LOST] = 0.0 if climb(state) else 1.0
    state.counts[ERROR] = tolerance(state)


@rare
def climb(state):
    """Newton's method with the exact Hessian from 0; steps are halved until the objective rises by a quarter of what the
    slope promises. The objective is strictly concave with curvature 1 or more, so this converges from anywhere, but from 0
    it does so soon: far out, where chances are 0 or 1, steps are short.
    """
    for j in range(dims()):
        state.estimate[j] = 0.0
    for _ in range(STEPS):
        look(state)
        renew_factor(state)
        square = step_by_factor(state)
        if not square < math.inf:
            return False
        share = 1.0
        # Close to the mode the full step is right, and the objective is too flat to say so.
        if square > 1e-6:
            before = objective(state, 0.0)
            while share > 1e-12 and not objective(state, share) >= before + 0.25 * share * square:
                share *= 0.5
        move(state, share)
        if square <= tolerance(state) * tolerance(state):
            return True
    return False


@scalar
def objective(state, share):
    """The logarithm of the posterior at estimate + share step, up to a constant."""
    value = 0.0
    for j in range(dims()):
        at = state.estimate[j] + share * state.step[j]
        value -= 0.5 * at * at
    for place in range(int(state.counts[PLAYED])):
        score = state.seen_prior[place]
        for j in range(dims()):
            score += (state.estimate[j] + share * state.step[j]) * state.seen_rows[place * wide() + j]
        value += state.seen_total[place] * score - state.seen_pulls[place] * log_one_plus_exp(score)
    return value


@scalar
def log_one_plus_exp(score):
    """log(1 + e^score) without overflow."""
    return max(score, 0.0) + math.log1p(math.exp(-abs(score)))


@scalar
def update_logistic(state, setting, arm, reward, stream):
    """Learn a reward: the Hessian grows by the pull's own term, and the mode moves; it is found roughly."""
    place = count_pull(state, arm, reward)
    features = state.seen_rows[place * wide() : (place + 1) * wide()]
    multiply(state.inverse, features, state.pulled)
    shrink, first = first_step(state, features, place, reward)
    subtract_outer(state.inverse, state.pulled, state.pulled, shrink)
    find_mode(state, first, ROUGH)


@scalar
def first_step(state, features, place, reward):
    """Take the Newton step for one more pull, with the old H^-1 x in `pulled`.

    With the slope w = p (1 - p), the new H^-1 is the old one less shrink H^-1 x x' H^-1, shrink = w / (1 + w x' H^-1 x).
    Returns shrink and the length of the step in posterior deviations.
    """
    chance = state.chance[place]
    slope = chance * (1.0 - chance)
    square = product(features, state.pulled)
    shrink = slope / (1.0 + slope * square)
    along = (reward - chance) / (1.0 + slope * square)
    for j in range(dims()):
        state.estimate[j] += along * state.pulled[j]
    return shrink, abs(reward - chance) * math.sqrt(max(square, 0.0))


@scalar
def score_arms(state, setting, theta):
    """Every arm's score under a theta."""
    for arm in range(len(state.score)):
        state.score[arm] = state.prior_score[arm]
    for b in range(blocks(setting.arms)):
        at = b * LANES
        add_products(state.score[at:], state.columns[at * dims() :], theta)


@scalar
def certain(state, index, best, error):
    """Whether the best of some indices stays the best where theta is wrong by so many posterior deviations.

    The Hessian is I or more, so that changes no score by more than the error times |x|. Errors are estimates: four times
    as much is allowed for. What `settled` calls a tie is never certain, however small the error is said to be.
    """
    highest = index[best]
    index[best] = -math.inf
    rival = index[best_score(index)]
    index[best] = highest
    return highest - rival > max(8.0 * error, 2.0 * tolerance(state)) * state.counts[LONGEST]


@scalar
def settled(state, best):
    """The arm to pull at the exact mode: the first whose index cannot be told from the best by what is known of the mode.

    So rounding does not decide between arms that tie, such as all arms while the mode is 0.
    """
    if state.counts[LOST] != 0.0:
        return NO_MODE
    enough = state.score[best] - 2.0 * tolerance(state) * state.counts[LONGEST]
    arm = 0
    while state.score[arm] < enough:
        arm += 1
    return arm


@rare
def settle(state):
    """Move `estimate` from roughly to exactly the mode."""
    if state.counts[ERROR] > tolerance(state):
        find_mode(state, 3.0 * state.counts[ERROR], tolerance(state))


@scalar
def recall_logistic(state, setting, pulls, totals):
    """Write down every arm's pulls and total reward."""
    for arm in range(setting.arms):
        pulls[arm] = state.pulls[arm]
        totals[arm] = state.seen_total[int(state.place[arm])] if state.place[arm] >= 0.0 else 0.0


@rare
def resume_logistic(state, setting, params, pulls, totals):
    """Know every arm's pulls and total reward, and find the mode by Newton's method."""
    for arm in range(setting.arms):
        if pulls[arm] > 0.0:
            join(state, arm)
            place = int(state.place[arm])
            state.pulls[arm] = pulls[arm]
            state.seen_pulls[place] = pulls[arm]
            state.seen_total[place] = totals[arm]
            state.counts[PULLS] += pulls[arm]
    if state.counts[PLAYED] > 0.0:
        state.counts[LOST] = 0.0 if climb(state) else 1.0
        state.counts[ERROR] = tolerance(state)
        renew_inverse(state)


class LogisticRegression(FeaturePolicy):
    """A policy on logistic regression: only `choose` is its own, and it returns NO_MODE where the mode was lost."""

    rewards: ClassVar[str] = "unit"
    link: ClassVar[str] = "logistic"
    textbook_options: ClassVar[Mapping[str, Any]] = {"prior": (0, 1), "noise": 0.5}
    faults: ClassVar[dict[int, str]] = {
        NO_MODE: f"the mode of the logistic posterior must be found within {STEPS} Newton steps, but it was not; rescale "
        "the features"
    }
    view = staticmethod(view_logistic)
    start = staticmethod(start_logistic)
    update = staticmethod(update_logistic)
    recall = staticmethod(recall_logistic)
    resume = staticmethod(resume_logistic)

    def memory(self, arms: int, dims: int) -> int:
        return int(logistic_memory(arms, dims))

    def posterior(self, turned: Floats, prior_scores: Floats, pulls: Floats, totals: Floats) -> tuple[Floats, Floats]:
        """Laplace's approximation: the mode, by Newton's method with halved steps, and the inverse of the Hessian there."""
        theta, eye = np.zeros(turned.shape[1]), np.eye(turned.shape[1])

        def value(at: Floats) -> float:
            scores = prior_scores + turned @ at
            return float(totals @ scores - pulls @ np.logaddexp(0, scores) - at @ at / 2)

        for _ in range(STEPS):
            chances = 1 / (1 + np.exp(-np.clip(prior_scores + turned @ theta, -40, 40)))
            hessian = eye + (turned.T * (pulls * chances * (1 - chances))) @ turned
            step = np.linalg.solve(hessian, turned.T @ (totals - pulls * chances) - theta)
            while value(theta + step) < value(theta) and np.abs(step).max() > 1e-12:
                step = step / 2
            theta = theta + step
            if np.abs(step).max() < 1e-10:
                break
        return theta, np.linalg.inv(hessian).astype(np.float64)

    def check(self, features: Floats, horizon: int) -> None:
        longest = self.longest(features)
        if longest > 1000:
            raise BadRequest(
                f"|x| sd must be below 1000 for {self.name}, with features x and the prior's standard deviation sd, or "
                f"all chances are 0 or 1, but it is {longest:.3g}; rescale the features or the prior."
            )
