"""UCB-GLM and GLM-TSL played by a team of threads.

*The model.* At the last look, the chances p of all arms were computed at some theta. From there on chances are taken for
straight lines in the score, with slopes w that may be older still, so the posterior is Gaussian with the precision
H = I + sum of pulls w x x'. One more pull then moves its mode by a rank-one formula, without a look at the other arms.

*How wrong the model is.* Let D be how far an arm's score has moved since the look, and a = (slope at the look) / w - 1.
The logistic function's second derivative is no larger than its first, which changes by no more than e^|D| over D. So an
arm's chance is off by no more than w |D| c, c = |a| + (1 + |a|) |D| (1/2 + |D|), while |D| <= 1. The gradient at the
model's mode is the sum of pulls (error of chance) x; because H is at least the sum of pulls w x x', its length in the
metric of H^-1 is no more than

    e = sqrt(sum of pulls w (c D)^2),

the distance to the mode in posterior deviations. It moves no score by more than e sqrt(x' H^-1 x). Slopes at the mode are
within a share of |a| + |D| of the model's, a third at most (`FAR`), and so are H and this metric: `MARGIN` allows for that.
Arms whose indices are further apart than this can be told apart; else there is a look, a step to the new model's mode, and
D starts from 0 again. Where a score has moved further or a slope has aged more, H is built anew.

*Draws.* GLM-TSL keeps R with R R' = H^-1 and draws R normals. With the slopes at the mode the precision is
R'^-1 (I + E) R^-1, E = R' (sum of pulls w a x x') R, so R (I + E)^-1/2 normals is a draw with the right covariance. E times
a vector costs as much as a look, so (I + E)^-1/2 = 1 - E/2 + 3/8 E^2 - ... is applied term by term, and only where that
could change the arm: by the argument above, what E does to R z is no longer than sqrt(sum of pulls w (a x'R z)^2). R is
built anew only between draws, or the same normals would no longer be the same draw.

*Who does what.* A thread holds the features of its arms and, of two matrices below each other, a row: H^-1 and G^-1, or R
and R'. Vectors go through `common`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from numpy import float32, int32

from banditune.contracts import rare, scalar
from banditune.policies.lanes import dims
from banditune.policies.logistic import NO_MODE, STEPS, TOLERANCE
from banditune.policies.ridge import REFRESH, own_option
from banditune.policies.team import (
    any_of,
    best,
    exchange,
    from_lane,
    inverse,
    inverse_root,
    lane,
    members,
    real,
    share,
    sync,
    total,
)
from banditune.streams import aim, normal

FAR = 0.3
"""How far a score may move since the last look, and a slope age since H was built, together."""

FAR_SAMPLING = 0.12
"""The same for GLM-TSL, whose draws need H more exactly."""

MARGIN = 2.0
"""Errors are allowed to be so many times what was found for them."""

REACHES = 100.0
"""Where 1 / sqrt(least w) is larger, |x| is the better bound on sqrt(x' H^-1 x)."""

TRIES = 24
"""Looks, or terms of a series, before the arms are taken for equal; two to five are usual."""

LARGEST = 0x7FFFFFFF

NEVER = -1e30
"""The score of the places behind the last arm."""

SCORE, DRIFT, STALE, HEAVY, SPREAD, WEIGHT, FIRST, TERM, DRAWN = 0, 1, 2, 3, 4, 5, 6, 7, 8
FIELDS = 9
"""What a thread holds for each of its arms, behind the features: x'theta; D; a; pulls times w; x' G^-1 x or x' H^-1 x; room
for a weight; of a draw R z the score x'R z, that of the last term of the series and of its sum."""

LOST, COUNT, LEAST, REACH, LONGEST, MOVE, AGE = 0, 1, 2, 3, 4, 5, 6
SCALARS = 8
"""What the team keeps first: whether the mode was lost, pulls in all, the smallest w of a pulled arm and 1 / its
root, the largest |x|, D of
the arm that is pulled, and pulls since G^-1 was built."""

PULLS, TOTAL, CHANCE, SLOPE = 0, 1, 2, 3
COLUMNS = 4
"""What the team keeps for each arm, behind a matrix: its pulls, what they paid, the chance at the last look, and w."""

SHOWN, PRODUCT, SUMS, MOVED, NORMALS, ESTIMATE = 0, 1, 3, 4, 5, 6
VECTORS = 7
"""Vectors of the team behind that: the pulled arm's features, two products with rows, sums over arms, a step, normals, and
theta."""


class Regression(NamedTuple):
    """A team's memory."""

    held: Any
    common: Any


def held_numbers(share: int, dims: int) -> int:
    """Numbers of a thread, if it is alone and holds all rows; what is never used takes no registers."""
    return share * (dims + FIELDS) + 2 * dims * dims + dims


def common_numbers(arms: int, dims: int) -> int:
    """Numbers of a team."""
    return SCALARS + VECTORS * dims + dims * dims + COLUMNS * (-(-arms // 32) * 32)


@scalar
def view_team(held, common, setting):
    """Both memories."""
    return Regression(held, common)


@scalar
def rows():
    """Rows of the two matrices that each thread holds."""
    return (2 * dims() + members() - 1) // members()


@scalar
def parts():
    """Dimensions of a vector that each thread takes."""
    return (dims() + members() - 1) // members()


@scalar
def field(number, i):
    """Where a thread holds a field of its i-th arm."""
    return share() * (dims() + number) + i


@scalar
def row_at(r):
    """Where a thread holds its r-th row."""
    return share() * (dims() + FIELDS) + r * dims()


@scalar
def room_at():
    """Where a thread has room for a vector."""
    return row_at(rows())


@scalar
def vector_at(number):
    """Where the team keeps a vector."""
    return SCALARS + number * dims()


@scalar
def matrix_at():
    """Where the team has room for a matrix."""
    return vector_at(VECTORS)


@scalar
def column_at(number, arm):
    """Where the team keeps a number of an arm."""
    return matrix_at() + dims() * dims() + number * share() * members() + arm


@scalar
def chance_and_slope(score):
    """The logistic function and its derivative; scores beyond 40 are as good as 40."""
    small = math.exp(-min(abs(score), real(40.0)))
    large = inverse(real(1.0) + small)
    return (large if score > real(0.0) else small * large), small * large * large


@scalar
def start_team(state, setting):
    """Forget everything but the prior."""
    held = state.held
    common = state.common
    longest = real(0.0)
    for place in range(share() * dims()):
        held[place] = real(0.0)
    for j in range(dims()):
        for i in range(share()):
            value = real(turned(setting, j, lane() + i * members()))
            for place in range(dims()):
                held[i * dims() + place] += value * (real(1.0) if place == j else real(0.0))
    for i in range(share()):
        square = real(0.0)
        for j in range(dims()):
            square += held[i * dims() + j] * held[i * dims() + j]
        longest = max(longest, square)
        held[field(SPREAD, i)] = square
    for i in range(share()):
        arm = lane() + i * members()
        score = real(prior_score(setting, arm))
        held[field(SCORE, i)] = score
        held[field(DRIFT, i)] = real(0.0)
        held[field(STALE, i)] = real(0.0)
        held[field(HEAVY, i)] = real(0.0)
        if arm < setting.arms:
            chance, slope = chance_and_slope(score)
            common[column_at(PULLS, arm)] = real(0.0)
            common[column_at(TOTAL, arm)] = real(0.0)
            common[column_at(CHANCE, arm)] = chance
            common[column_at(SLOPE, arm)] = slope
    for r in range(rows()):
        row = lane() + r * members()
        for j in range(dims()):
            held[row_at(r) + j] = real(1.0) if row == j or row == j + dims() else real(0.0)
        if row < dims():
            common[vector_at(ESTIMATE) + row] = real(0.0)
    longest, _ = best(longest, int32(0))
    # Every thread writes the same.
    common[LOST] = real(0.0)
    common[COUNT] = real(0.0)
    common[AGE] = real(0.0)
    common[LEAST] = real(0.25)
    common[REACH] = real(2.0)
    common[LONGEST] = math.sqrt(longest)


@rare
def turned(setting, j, arm):
    """A feature in the coordinates in which the prior is N(0, I); 0 behind the last arm."""
    feature = 0.0
    if arm < setting.arms:
        for i in range(j, setting.dims):
            feature += setting.options[1 + setting.dims + i * setting.dims + j] * setting.features[i, arm]
    return feature


@rare
def prior_score(setting, arm):
    """An arm's score under the prior's mean."""
    score = 0.0
    if arm < setting.arms:
        for j in range(setting.dims):
            score += setting.options[1 + j] * setting.features[j, arm]
        return score
    return NEVER


@scalar
def tolerance(state):
    """How exactly the mode is known after so many pulls: as `logistic` says in float64, and as float32 allows."""
    if real(1.0) + real(1e-10) > real(1.0):
        return real(TOLERANCE) + real(1e-14) * state.common[COUNT]
    return real(1e-6) + real(1e-9) * state.common[COUNT]


@scalar
def along(state, i, at):
    """The product of an arm's features and a vector of the team."""
    even = real(0.0)
    odd = real(0.0)
    for j in range(0, dims() - 1, 2):
        even += state.held[i * dims() + j] * state.common[at + j]
        odd += state.held[i * dims() + j + 1] * state.common[at + j + 1]
    if dims() % 2 == 1:
        even += state.held[i * dims() + dims() - 1] * state.common[at + dims() - 1]
    return even + odd


@scalar
def row_times(state, r, at):
    """The product of a row and a vector of the team."""
    even = real(0.0)
    odd = real(0.0)
    for j in range(0, dims() - 1, 2):
        even += state.held[row_at(r) + j] * state.common[at + j]
        odd += state.held[row_at(r) + j + 1] * state.common[at + j + 1]
    if dims() % 2 == 1:
        even += state.held[row_at(r) + dims() - 1] * state.common[at + dims() - 1]
    return even + odd


@scalar
def product(state, first, second):
    """The product of two vectors of the team."""
    even = real(0.0)
    odd = real(0.0)
    for j in range(0, dims() - 1, 2):
        even += state.common[first + j] * state.common[second + j]
        odd += state.common[first + j + 1] * state.common[second + j + 1]
    if dims() % 2 == 1:
        even += state.common[first + dims() - 1] * state.common[second + dims() - 1]
    return even + odd


@scalar
def multiply_rows(state, at, to, first):
    """Products of rows first .. first + dims - 1 and a vector, for the team to see after the next `sync`."""
    for r in range(rows()):
        row = lane() + r * members() - first
        value = row_times(state, r, at)
        if row >= 0 and row < dims():
            state.common[to + row] = value


@scalar
def solve(state, sampling):
    """H^-1 times the sums over arms, for the team to see after the next `sync`."""
    if sampling:
        multiply_rows(state, vector_at(SUMS), vector_at(PRODUCT), dims())
        sync()
        multiply_rows(state, vector_at(PRODUCT), vector_at(MOVED), 0)
    else:
        multiply_rows(state, vector_at(SUMS), vector_at(MOVED), 0)


@scalar
def halve(held, at, count, mask):
    """Share the work of summing vectors over threads: of `count` numbers keep one half, with the other thread's added.

    Threads that differ in the bit `mask` keep different halves; the shorter one is filled up with a zero.
    """
    half = (count + 1) // 2
    upper = (lane() & mask) != 0
    for place in range(half):
        low = held[at + place]
        high = held[at + half + place] if half + place < count else real(0.0)
        held[at + place] = (high if upper else low) + exchange(low if upper else high, mask)


@scalar
def kept(lane, dims, place, to):
    """Which of the sums a thread is left with at some place after five halvings, and a number from `to` up if none."""
    first = 0
    after = dims
    count = dims
    for turn in range(5):
        count = (count + 1) // 2
        if (lane & (16 >> turn)) != 0:
            first += count
        else:
            after = min(after, first + count)
    return first + place if first + place < after else to


@scalar
def sum_arms(state, to):
    """Put the sum of weight x over all arms into a vector of the team, to be seen after the next `sync`."""
    held = state.held
    at = room_at()
    for j in range(dims()):
        held[at + j] = real(0.0)
        for i in range(share()):
            held[at + j] += held[field(WEIGHT, i)] * held[i * dims() + j]
    if members() == 1:
        for j in range(dims()):
            state.common[to + j] = held[at + j]
    else:
        one = (dims() + 1) // 2
        two = (one + 1) // 2
        three = (two + 1) // 2
        four = (three + 1) // 2
        halve(held, at, dims(), 16)
        halve(held, at, one, 8)
        halve(held, at, two, 4)
        halve(held, at, three, 2)
        halve(held, at, four, 1)
        for place in range((four + 1) // 2):
            j = kept(lane(), dims(), place, dims())
            if j < dims():
                state.common[to + j] = held[at + place]


@scalar
def look(state, setting, anew):
    """Compute chances at the estimate, and the weights with which features add up to the gradient.

    The slopes of arms never pulled are free to change, and with `anew` all are.
    """
    held = state.held
    for i in range(share()):
        arm = lane() + i * members()
        chance, slope = chance_and_slope(held[field(SCORE, i)])
        held[field(WEIGHT, i)] = real(0.0)
        held[field(DRIFT, i)] = real(0.0)
        held[field(STALE, i)] = real(0.0)
        if arm < setting.arms:
            pulls = state.common[column_at(PULLS, arm)]
            state.common[column_at(CHANCE, arm)] = chance
            held[field(WEIGHT, i)] = state.common[column_at(TOTAL, arm)] - pulls * chance
            if anew or pulls == real(0.0):
                state.common[column_at(SLOPE, arm)] = slope
                held[field(HEAVY, i)] = pulls * slope
            else:
                held[field(STALE, i)] = slope * inverse(state.common[column_at(SLOPE, arm)]) - real(1.0)


@scalar
def subtract_estimate(state):
    """The prior's part of the gradient."""
    for part in range(parts()):
        j = lane() + part * members()
        if j < dims():
            state.common[vector_at(SUMS) + j] -= state.common[vector_at(ESTIMATE) + j]


@scalar
def move_estimate(state, at, step):
    """Move the estimate by so much of a vector."""
    for part in range(parts()):
        j = lane() + part * members()
        if j < dims():
            state.common[vector_at(ESTIMATE) + j] += step * state.common[at + j]


@scalar
def too_far(state, limit):
    """Whether a score has moved or a slope has aged too much for the model."""
    far = False
    for i in range(share()):
        moved = abs(state.held[field(DRIFT, i)]) + abs(state.held[field(STALE, i)])
        far = far | ((state.held[field(HEAVY, i)] > real(0.0)) & (not moved <= real(limit)))
    return any_of(far)


@scalar
def off(state, i):
    """How far an arm's chance may be from the model's, as a share of its slope: |D| c."""
    moved = abs(state.held[field(DRIFT, i)])
    stale = abs(state.held[field(STALE, i)])
    return moved * (stale + (real(1.0) + stale) * moved * (real(0.5) + moved))


@scalar
def mode_error(state):
    """How far the estimate is from the mode, in posterior deviations."""
    square = real(0.0)
    for i in range(share()):
        error = off(state, i)
        square += state.held[field(HEAVY, i)] * error * error
    return root_of_total(square)


@scalar
def root_of_total(square):
    """The root of a sum over threads, to six digits: errors need no more."""
    return real(math.sqrt(total(float32(square))))


@scalar
def feature(state, i, j):
    """A feature of a thread's arm where j is no constant: the compiler must not see that this is an index."""
    found = real(0.0)
    for place in range(dims()):
        found += state.held[i * dims() + place] * (real(1.0) if place == j else real(0.0))
    return found


@scalar
def renew(state, setting, first, sampling):
    """Build from sum of weight x x' + I its inverse, with pulls times w as weights for the rows from 0 on and pulls for
    those from `dims` on; with `sampling`, R and R'.
    """
    at = matrix_at()
    for j in range(dims()):
        for i in range(share()):
            arm = lane() + i * members()
            weight = state.held[field(HEAVY, i)]
            if first > 0:
                weight = state.common[column_at(PULLS, arm)] if arm < setting.arms else real(0.0)
            state.held[field(WEIGHT, i)] = weight * feature(state, i, j)
        sum_arms(state, at + j * dims())
    sync()
    for part in range(parts()):
        j = lane() + part * members()
        if j < dims():
            state.common[at + j * dims() + j] += real(1.0)
    sync()
    eliminate(state.common, at, sampling)
    if sampling:
        hold_root(state)
    else:
        hold_rows(state, first)


@scalar
def eliminate(common, at, sampling):
    """The inverse of a matrix in its place by Gauss and Jordan's elimination, a row per thread.

    With `sampling`, the inverse of its Cholesky factor, for which rows above the pivot stay as they are.
    """
    for i in range(dims()):
        pivot = at + i * dims()
        over = real(1.0) / common[pivot + i]
        for part in range(parts()):
            row = lane() + part * members()
            if row < dims() and (row > i or (row < i and not sampling)):
                mine = at + row * dims()
                factor = common[mine + i] * over
                for j in range(dims()):
                    common[mine + j] -= factor * common[pivot + j]
                common[mine + i] = -factor
        sync()
        scale = math.sqrt(over) if sampling else over
        for part in range(parts()):
            j = lane() + part * members()
            if j < dims():
                entry = common[pivot + j] * (scale if j < i or not sampling else real(0.0))
                common[pivot + j] = scale if j == i else entry
        sync()


@scalar
def hold_root(state):
    """Rows of R and of R' out of the inverse R' of the factor, and every arm's x' H^-1 x = |R'x|^2."""
    held = state.held
    at = matrix_at()
    for r in range(rows()):
        row = lane() + r * members()
        if row < 2 * dims():
            start = at + row if row < dims() else at + (row - dims()) * dims()
            apart = dims() if row < dims() else 1
            for j in range(dims()):
                held[row_at(r) + j] = state.common[start + j * apart]
    for i in range(share()):
        held[field(SPREAD, i)] = real(0.0)
    for j in range(dims()):
        for i in range(share()):
            part = along(state, i, at + j * dims())
            held[field(SPREAD, i)] += part * part
    sync()


@scalar
def hold_rows(state, first):
    """Rows of an inverse out of the team's matrix; with those of G^-1 come every arm's x' G^-1 x."""
    held = state.held
    at = matrix_at()
    for r in range(rows()):
        row = lane() + r * members() - first
        if row >= 0 and row < dims():
            for j in range(dims()):
                held[row_at(r) + j] = state.common[at + row * dims() + j]
    if first > 0:
        for i in range(share()):
            held[field(SPREAD, i)] = real(0.0)
        for j in range(dims()):
            for i in range(share()):
                held[field(SPREAD, i)] += feature(state, i, j) * along(state, i, at + j * dims())
    sync()


@scalar
def find_mode(state, setting, refresh, far, sampling):
    """Newton's method with H built anew at every step, until a step is short; with `refresh`, G^-1 is built anew first.

    Where steps do not at least halve, start again from 0, with steps that are halved until the objective rises by a quarter
    of what the slope promises: see `logistic.climb`.
    """
    held = state.held
    last = real(math.inf)
    looks = 0
    climbing = False
    while refresh or far:
        if not refresh:
            look(state, setting, True)
            sum_arms(state, vector_at(SUMS))
            sync()
            subtract_estimate(state)
        renew(state, setting, dims() if refresh else 0, sampling)
        if refresh:
            state.common[AGE] = real(0.0)
            refresh = False
        else:
            sync()
            solve(state, sampling)
            sync()
            square = product(state, vector_at(SUMS), vector_at(MOVED))
            looks += 1
            if not square < real(math.inf) or looks > STEPS:
                state.common[LOST] = real(1.0)
                far = False
            elif not climbing and not square <= real(0.25) * last:
                climbing = True
                return_to_start(state, setting)
            else:
                length = real(1.0)
                # Close to the mode the full step is right, and the objective is too flat to say so.
                if climbing and square > real(1e-6):
                    length = shortened(state, setting, square)
                last = square
                move_estimate(state, vector_at(MOVED), length)
                for i in range(share()):
                    moved = length * along(state, i, vector_at(MOVED))
                    held[field(SCORE, i)] += moved
                    held[field(DRIFT, i)] = moved
                far = length < real(1.0) or too_far(state, FAR_SAMPLING if sampling else FAR)
            sync()
    smallest_slope(state)


@scalar
def smallest_slope(state):
    """Find the smallest w of an arm that was pulled."""
    least = real(0.25)
    for i in range(share()):
        if state.held[field(HEAVY, i)] > real(0.0):
            least = min(least, state.common[column_at(SLOPE, lane() + i * members())])
    least, _ = best(-least, int32(0))
    state.common[LEAST] = -least
    state.common[REACH] = inverse_root(-least)


@scalar
def return_to_start(state, setting):
    """Put the estimate to 0."""
    held = state.held
    for part in range(parts()):
        j = lane() + part * members()
        if j < dims():
            state.common[vector_at(ESTIMATE) + j] = real(0.0)
    for i in range(share()):
        held[field(SCORE, i)] = real(prior_score(setting, lane() + i * members()))


@scalar
def shortened(state, setting, square):
    """How much of the step to take."""
    length = real(1.0)
    before = objective(state, setting, real(0.0))
    while length > real(1e-12) and not objective(state, setting, length) >= before + real(0.25) * length * square:
        length *= real(0.5)
    return length


@scalar
def objective(state, setting, length):
    """The logarithm of the posterior at estimate + length step, up to a constant."""
    held = state.held
    at = vector_at(MOVED)
    value = real(0.0)
    for part in range(parts()):
        j = lane() + part * members()
        if j < dims():
            coordinate = state.common[vector_at(ESTIMATE) + j] + length * state.common[at + j]
            value -= real(0.5) * coordinate * coordinate
    for i in range(share()):
        arm = lane() + i * members()
        if arm < setting.arms:
            score = held[field(SCORE, i)] + length * along(state, i, at)
            grown = max(score, real(0.0)) + math.log(real(1.0) + math.exp(-abs(score)))
            value += state.common[column_at(TOTAL, arm)] * score
            value -= state.common[column_at(PULLS, arm)] * grown
    return total(value)


@scalar
def show(state, arm, reward):
    """Count a pull, and let the team see the arm's features and how far its score has moved."""
    held = state.held
    common = state.common
    at = vector_at(SHOWN)
    slope = common[column_at(SLOPE, arm)]
    for i in range(share()):
        if int32(lane() + i * members()) == arm:
            for j in range(dims()):
                common[at + j] = held[i * dims() + j]
            common[MOVE] = held[field(DRIFT, i)]
            held[field(HEAVY, i)] += slope
    if int32(lane()) == int32(arm & (members() - 1)):
        common[column_at(PULLS, arm)] += real(1.0)
        common[column_at(TOTAL, arm)] += real(reward)
        common[COUNT] += real(1.0)
        common[AGE] += real(1.0)
        if slope < common[LEAST]:
            common[LEAST] = slope
            common[REACH] = inverse_root(slope)


@scalar
def first_step(state, arm, reward, square):
    """The pull's w, 1 / (1 + w x' H^-1 x), and how much of H^-1 x the mode moves."""
    slope = state.common[column_at(SLOPE, arm)]
    chance = state.common[column_at(CHANCE, arm)] + slope * state.common[MOVE]
    over = inverse(real(1.0) + slope * square)
    return slope, over, (real(reward) - chance) * over


@scalar
def learn_bounds(state, setting, arm, reward, stream):
    """Learn a reward: H^-1, G^-1, the mode of the model and every arm's width."""
    arm = int32(arm & LARGEST)  # no less than 0, so that no index can count from the end
    held = state.held
    common = state.common
    at = vector_at(PRODUCT)
    shown = vector_at(SHOWN)
    show(state, arm, reward)
    sync()
    for r in range(rows()):
        row = lane() + r * members()
        value = row_times(state, r, shown)
        if row < 2 * dims():
            common[at + row] = value
    sync()
    slope, over, step = first_step(state, arm, reward, product(state, shown, at))
    shrink = inverse(real(1.0) + product(state, shown, at + dims()))
    for r in range(rows()):
        row = lane() + r * members()
        if row < 2 * dims():
            block = at if row < dims() else at + dims()
            taken = common[at + row] * (slope * over if row < dims() else shrink)
            for j in range(dims()):
                held[row_at(r) + j] -= taken * common[block + j]
    move_estimate(state, at, step)
    for i in range(share()):
        moved = step * along(state, i, at)
        held[field(SCORE, i)] += moved
        held[field(DRIFT, i)] += moved
        narrowed = along(state, i, at + dims())
        held[field(SPREAD, i)] -= shrink * narrowed * narrowed
    refresh = common[AGE] >= real(REFRESH)
    far = too_far(state, FAR)
    if refresh or far:
        find_mode(state, setting, refresh, far, False)


@scalar
def learn_root(state, setting, arm, reward, stream):
    """Learn a reward: R and the mode of the model.

    With p = R'x, R becomes R (I - keep p p'), whose square is H^-1 - w / (1 + w p'p) R p p' R'.
    """
    arm = int32(arm & LARGEST)  # no less than 0, so that no index can count from the end
    held = state.held
    common = state.common
    at = vector_at(PRODUCT)
    gain = at + dims()
    shown = vector_at(SHOWN)
    show(state, arm, reward)
    sync()
    multiply_rows(state, shown, at, dims())
    sync()
    multiply_rows(state, at, gain, 0)
    sync()
    slope, over, step = first_step(state, arm, reward, product(state, at, at))
    keep = slope * over * inverse(real(1.0) + over * inverse_root(over))
    for r in range(rows()):
        row = lane() + r * members()
        if row < 2 * dims():
            taken = keep * common[gain + row if row < dims() else at + row - dims()]
            block = at if row < dims() else gain
            for j in range(dims()):
                held[row_at(r) + j] -= taken * common[block + j]
    move_estimate(state, gain, step)
    for i in range(share()):
        along_gain = along(state, i, gain)
        held[field(SCORE, i)] += step * along_gain
        held[field(DRIFT, i)] += step * along_gain
        held[field(SPREAD, i)] -= slope * over * along_gain * along_gain
    if too_far(state, FAR_SAMPLING):
        find_mode(state, setting, False, True, True)


@scalar
def first_of_equals(state, highest):
    """The first arm whose index, in WEIGHT, cannot be told from the highest: see `logistic.settled`."""
    enough = highest - real(2.0) * tolerance(state) * state.common[LONGEST]
    found = real(0.0)
    arm = int32(0)
    for back in range(share()):
        i = share() - 1 - back
        if state.held[field(WEIGHT, i)] >= enough:
            found = real(1.0)
            arm = int32(lane() + i * members())
    _, arm = best(found, arm)
    return arm


@scalar
def best_weight(state):
    """The highest of the indices in WEIGHT, and its arm."""
    highest = state.held[field(WEIGHT, 0)]
    arm = int32(lane())
    for i in range(1, share()):
        index = state.held[field(WEIGHT, i)]
        if index > highest:
            highest = index
            arm = int32(lane() + i * members())
    return best(highest, arm)


@scalar
def field_of(state, number, arm):
    """What is held for an arm, for the whole team."""
    mine = real(0.0)
    for i in range(share()):
        mine = state.held[field(number, i)] if int32(lane() + i * members()) == arm else mine
    return from_lane(mine, int32(arm & (members() - 1)))


@scalar
def step_to_mode(state):
    """Move to the new model's mode, by the step that the team sees."""
    held = state.held
    at = vector_at(MOVED)
    move_estimate(state, at, real(1.0))
    for i in range(share()):
        moved = along(state, i, at)
        held[field(SCORE, i)] += moved
        held[field(DRIFT, i)] = moved


@scalar
def choose_team_bound(state, setting, step, params, stream):
    """The highest x'theta + gamma c sqrt(x' G^-1 x).

    A score is off by no more than the error times sqrt(x' H^-1 x), which is no more than sqrt(x' G^-1 x / least w), or |x|.
    """
    held = state.held
    common = state.common
    factor = real(params[0] * own_option(setting, 0))
    reach = common[REACH]
    slack = real(2.0) * tolerance(state) * common[LONGEST]
    for i in range(share()):
        # Rounding may leave a little less than 0.
        spread = abs(held[field(SPREAD, i)]) + real(1e-30)
        held[field(TERM, i)] = spread * inverse_root(spread)
    arm = int32(NO_MODE)
    tries = 0
    while common[LOST] == real(0.0):
        error = mode_error(state)
        steep = real(MARGIN) * error * (reach if reach < real(REACHES) else real(0.0))
        flat = real(0.0) if reach < real(REACHES) else real(MARGIN) * error * common[LONGEST]
        for i in range(share()):
            held[field(WEIGHT, i)] = held[field(SCORE, i)] + factor * held[field(TERM, i)]
        highest, arm = best_weight(state)
        lowest = highest - slack - flat - flat - steep * field_of(state, TERM, arm)
        doubt = False
        for i in range(share()):
            rival = held[field(WEIGHT, i)] + steep * held[field(TERM, i)]
            doubt = doubt | ((rival >= lowest) & (int32(lane() + i * members()) != arm))
        if not any_of(doubt):
            break
        tries += 1
        if error <= tolerance(state) or tries > TRIES:
            arm = first_of_equals(state, highest)
            break
        look(state, setting, False)
        sum_arms(state, vector_at(SUMS))
        sync()
        subtract_estimate(state)
        sync()
        solve(state, False)
        sync()
        step_to_mode(state)
    return arm


@scalar
def draw(state, setting, scale, step, stream):
    """A new draw: every thread the normals of its dimensions, then every arm's x'R normals."""
    held = state.held
    at = vector_at(NORMALS)
    for part in range(parts()):
        j = lane() + part * members()
        if j < dims():
            aim(stream, j, step)
            state.common[at + j] = real(normal(stream)) if scale > real(0.0) else real(0.0)
    sync()
    multiply_rows(state, at, vector_at(MOVED), 0)
    sync()
    for i in range(share()):
        held[field(FIRST, i)] = along(state, i, vector_at(MOVED))


@scalar
def restart_series(state):
    """The draw as R gives it, before any term of the series."""
    for i in range(share()):
        state.held[field(TERM, i)] = state.held[field(FIRST, i)]
        state.held[field(DRAWN, i)] = state.held[field(FIRST, i)]


@scalar
def draw_error(state, scale, ratio):
    """How far mode and draw together are from the right ones, in posterior deviations.

    What the draw is off by: the next term of the series, `ratio` times E times the last one, and what slopes have changed
    since the last look.
    """
    square = real(0.0)
    for i in range(share()):
        moved = abs(state.held[field(DRIFT, i)])
        stale = abs(state.held[field(STALE, i)])
        changed = real(0.5) * (real(1.0) + stale) * moved * (real(1.0) + moved)
        drawn = ratio * stale * abs(state.held[field(TERM, i)]) + changed * abs(state.held[field(FIRST, i)])
        error = off(state, i) + scale * drawn
        square += state.held[field(HEAVY, i)] * error * error
    return root_of_total(square)


@scalar
def series_error(state, scale, ratio):
    """The part of that which one more term of the series takes away; a look is for the rest."""
    square = real(0.0)
    for i in range(share()):
        error = scale * ratio * state.held[field(STALE, i)] * state.held[field(TERM, i)]
        square += state.held[field(HEAVY, i)] * error * error
    return root_of_total(square)


@scalar
def choose_team_sample(state, setting, step, params, stream):
    """The highest score under a draw of theta; at gamma = 0 under the mode."""
    held = state.held
    common = state.common
    scale = real(params[0] * own_option(setting, 0))
    slack = real(2.0) * tolerance(state) * common[LONGEST]
    draw(state, setting, scale, step, stream)
    restart_series(state)
    ratio = real(0.5)
    sign = real(-1.0)
    terms = 0
    arm = int32(NO_MODE)
    tries = 0
    while common[LOST] == real(0.0):
        error = draw_error(state, scale, ratio)
        for i in range(share()):
            held[field(WEIGHT, i)] = held[field(SCORE, i)] + scale * held[field(DRAWN, i)]
        highest, arm = best_weight(state)
        spread = field_of(state, SPREAD, arm)
        allowed = real(2.0 * MARGIN * MARGIN) * error * error
        doubt = False
        for i in range(share()):
            gap = highest - slack - held[field(WEIGHT, i)]
            told = (gap > real(0.0)) & (gap * gap > allowed * (held[field(SPREAD, i)] + spread))
            doubt = doubt | ((not told) & (int32(lane() + i * members()) != arm))
        if not any_of(doubt):
            break
        tries += 1
        if error <= tolerance(state) or tries > 2 * TRIES:
            arm = first_of_equals(state, highest)
            break
        looking = tries == 1 or series_error(state, scale, ratio) < real(0.5) * error
        if looking:
            look(state, setting, False)
        else:
            for i in range(share()):
                held[field(WEIGHT, i)] = held[field(HEAVY, i)] * held[field(STALE, i)] * held[field(TERM, i)]
        sum_arms(state, vector_at(SUMS))
        sync()
        if looking:
            subtract_estimate(state)
        sync()
        solve(state, True)
        sync()
        if looking:
            step_to_mode(state)
            restart_series(state)
            ratio = real(0.5)
            sign = real(-1.0)
            terms = 0
        else:
            for i in range(share()):
                term = along(state, i, vector_at(MOVED))
                held[field(TERM, i)] = term
                held[field(DRAWN, i)] += sign * ratio * term
            terms += 1
            ratio *= real(2 * terms + 1) / real(2 * terms + 2)
            sign = -sign
    return arm
