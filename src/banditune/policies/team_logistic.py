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

*Stays.* In UCB-GLM, a run of pulls of one arm, the leader x, is brought in as a whole. With H^-1, G^-1, scores and D as
when it began, s = x' H^-1 x, q = x' G^-1 x, and for every arm k v = x_k' H^-1 x, u = x_k' G^-1 x, after m pulls that paid E
more than m times the chance that the model gave the leader at the beginning

    score + e v,  D + e v,  x_k' G^-1 x_k - m u^2 / (1 + m q),  e = E / (1 + m w s),

and H^-1, G^-1 are less by m w / (1 + m w s) and m / (1 + m q) times the squares of H^-1 x and G^-1 x (Sherman and Morrison,
as in `team_linear`; the model is Gaussian). So a pull moves two numbers that all threads know. |D| is a convex function of
e, so over an interval for e it is no larger than at an end; with the error that this gives, every rival stays below the
leader while e is on one side of a number of its own (`find_interval`). While e is between them a round is one vote. Else
the leader is looked at with the present e alone; only where that leaves a doubt is the stay brought in, and the highest
index looked for.

*Draws.* GLM-TSL holds R'x for every arm, R R' = H^-1, so that R itself is not needed: x'R normals is the draw, a pull takes
a part along the pulled arm's R'x from all others, and scores move by products of R'x too. The gradient's R' is a sum of
R'x, because at the mode of the old model its gradient is 0 and only what chances differ from it is left; theta is needed
only where H is built anew, and comes from the same fact: see `return_to_features`.

With the slopes at the mode the precision is R'^-1 (I + E) R^-1, E = R' (sum of pulls w a x x') R, so R (I + E)^-1/2 normals
is a draw with the right covariance. E times a vector costs as much as a look, so (I + E)^-1/2 = 1 - E/2 + 3/8 E^2 - ... is
applied term by term, and only where that could change the arm: by the argument above, what E does to R z is no longer than
sqrt(sum of pulls w (a x'R z)^2). R is built anew only between draws, or the same normals would no longer be the same draw.

*Who does what.* A thread holds d numbers of each of its arms, x or R'x. Matrices and vectors are common, and so is what is
kept of arms but not needed all the time; a thread takes a row of H^-1 or G^-1.
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
from banditune.policies.team_linear import here
from banditune.streams import aim, normal_pair

FAR = 0.3
"""How far a score may move since the last look, and a slope age since H was built, together."""

FAR_SAMPLING = 0.12
"""The same for GLM-TSL, whose draws need H more exactly."""

MARGIN = 2.0
"""Errors are allowed to be so many times what was found for them."""

TRIES = 24
"""Looks, or terms of a series, before the arms are taken for equal; two to five are usual."""

LARGEST = 0x7FFFFFFF

NEVER = -1e30
"""The score of the places behind the last arm."""

SCORE, SPREAD, WIDTH, WEIGHT, TERM, FIRST, DRAWN, RISE, NARROWING = range(9)
FIELDS = 9
"""What a thread holds for each of its arms, behind d numbers: x'theta; x' H^-1 x; for UCB-GLM x' G^-1 x; room for a
weight; of a draw x'R z, the last term of the series and its sum; in a stay v and u of the module's docstring."""

STAYED, PAID, LOW, HIGH, UNTIL, PULLS_AHEAD, LEADER, AT = range(8)
NUMBERS = 8
"""What a thread holds behind that, the same as all others but for LOW and HIGH: m and what the m pulls paid; an interval
for e and the m at which it ends; the length of the next; the arm of the stay; the place of the next normals."""

LOST, COUNT, LONGEST, MOVE, AGE, BASE, LEAD_SCORE, LEAD_WIDTH, LEAD_SLOPE, Q, S, PLAIN = range(12)
SCALARS = 12
"""What the team keeps first: whether the mode was lost, pulls in all, the largest |x|, D of the arm that is pulled, pulls
since G^-1 was built; of a stay the chance that the model gave its arm, the arm's score, x' G^-1 x and w, all when it began,
and q and s of the module's docstring; whether the prior's covariance is I."""

PULLS, TOTAL, CHANCE, SLOPE, DRIFT, STALE, HEAVY = range(7)
COLUMNS = 7
"""What the team keeps for each arm, behind matrices: its pulls, what they paid, the chance at the last look, w, D, a, and
pulls times w. Mostly only the arm's own thread reads or writes them."""

SHOWN, PRODUCT, SUMS, MOVED, ESTIMATE = 0, 1, 3, 4, 5
VECTORS = 6
"""Vectors of the team behind the scalars: the pulled arm's numbers, H^-1 x and G^-1 x, sums over arms, a step, theta."""

NORMALS = 64
"""Normals drawn at once, or the next multiple of a step's."""

LENGTH = 4.0
"""Pulls of the first interval of a stay; the next is twice as long as one that was found, half as long as one that was
not."""

SHORTEST = 3.0
"""Pulls for which an interval pays."""

WANDER = 0.7
"""How far e may wander in an interval, in its standard deviations over so many pulls."""

RESTING = 0.25
"""How much that length grows with every pull that is looked at by itself."""


class Regression(NamedTuple):
    """A team's memory."""

    held: Any
    common: Any


def held_numbers(share: int, dims: int) -> int:
    """Numbers of a thread; what is never used takes no registers."""
    return share * (dims + FIELDS) + dims + NUMBERS


def common_numbers(arms: int, dims: int) -> int:
    """Numbers of a team; normals come in pairs, so there may be one more than needed."""
    room = max(2 * dims * dims, dims * dims + int(normals_at_once(dims)) + 1)
    return SCALARS + VECTORS * dims + room + COLUMNS * (-(-arms // 32) * 32)


@scalar
def normals_at_once(dims):
    """Normals of the steps that are drawn together."""
    return max(1, NORMALS // dims) * dims


@scalar
def view_team(held, common, setting):
    """Both memories."""
    return Regression(held, common)


@scalar
def rows():
    """Rows of the two matrices that each thread takes."""
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
def room_at():
    """Where a thread has room for a vector."""
    return share() * (dims() + FIELDS)


@scalar
def number_at(number):
    """Where a thread holds a number of its own."""
    return room_at() + dims() + number


@scalar
def vector_at(number):
    """Where the team keeps a vector."""
    return SCALARS + number * dims()


@scalar
def matrix_at(first):
    """Where the team keeps H^-1, with `first` = 0, or G^-1, with `first` = dims."""
    return vector_at(VECTORS) + first * dims()


@scalar
def normals_from():
    """Where a sampling team keeps normals: in the place of G^-1."""
    return matrix_at(dims())


@scalar
def column_at(number, i):
    """Where the team keeps a number of a thread's i-th arm."""
    return column_of(number, lane() + i * members())


@scalar
def column_of(number, arm):
    """Where the team keeps a number of an arm."""
    room = max(2 * dims() * dims(), dims() * dims() + normals_at_once(dims()) + 1)
    return vector_at(VECTORS) + room + number * share() * members() + arm


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
    me = here()
    common = state.common
    common[PLAIN] = real(1.0) if is_plain(setting) else real(0.0)
    take_features(state, setting)
    longest = real(0.0)
    for i in range(share()):
        square = real(0.0)
        for j in range(dims()):
            square += held[i * dims() + j] * held[i * dims() + j]
        longest = max(longest, square)
        held[field(SPREAD, i)] = square
        held[field(WIDTH, i)] = square
    for i in range(share()):
        score = real(prior_score(setting, me + i * members()))
        chance, slope = chance_and_slope(score)
        held[field(SCORE, i)] = score
        common[column_at(PULLS, i)] = real(0.0)
        common[column_at(TOTAL, i)] = real(0.0)
        common[column_at(CHANCE, i)] = chance
        common[column_at(SLOPE, i)] = slope
        common[column_at(DRIFT, i)] = real(0.0)
        common[column_at(STALE, i)] = real(0.0)
        common[column_at(HEAVY, i)] = real(0.0)
    for r in range(rows()):
        row = lane() + r * members()
        if row < 2 * dims():
            for j in range(dims()):
                common[matrix_at(0) + row * dims() + j] = real(1.0) if row == j or row == j + dims() else real(0.0)
        if row < dims():
            common[vector_at(ESTIMATE) + row] = real(0.0)
    longest, _ = best(longest, int32(0))
    # Every thread writes the same.
    common[LOST] = real(0.0)
    common[COUNT] = real(0.0)
    common[AGE] = real(0.0)
    common[LONGEST] = math.sqrt(longest)
    held[number_at(AT)] = real(NORMALS + dims())
    held[number_at(LEADER)] = real(0.0)


@scalar
def take_features(state, setting):
    """Put the features into the numbers held for arms."""
    held = state.held
    me = here()
    if state.common[PLAIN] > real(0.0):
        for i in range(share()):
            arm = me + i * members()
            exists = real(1.0) if arm < setting.arms else real(0.0)
            for j in range(dims()):
                held[i * dims() + j] = exists * real(setting.features[j, min(arm, setting.arms - 1)])
        return
    for place in range(share() * dims()):
        held[place] = real(0.0)
    for j in range(dims()):
        for i in range(share()):
            value = real(turned(setting, j, me + i * members()))
            for place in range(dims()):
                held[i * dims() + place] += value * (real(1.0) if place == j else real(0.0))


@rare
def is_plain(setting):
    """Whether features need no turning, because the prior's covariance is I."""
    plain = True
    for i in range(setting.dims):
        for j in range(i + 1):
            entry = setting.options[1 + setting.dims + i * setting.dims + j]
            plain = plain and entry == (1.0 if i == j else 0.0)
    return plain


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
    """The product of the numbers held for an arm and a vector of the team."""
    even = real(0.0)
    odd = real(0.0)
    for j in range(0, dims() - 1, 2):
        even += state.held[i * dims() + j] * state.common[at + j]
        odd += state.held[i * dims() + j + 1] * state.common[at + j + 1]
    if dims() % 2 == 1:
        even += state.held[i * dims() + dims() - 1] * state.common[at + dims() - 1]
    return even + odd


@scalar
def row_times(state, matrix, row, at):
    """The product of a row of a symmetric matrix and a vector of the team."""
    even = real(0.0)
    odd = real(0.0)
    for j in range(0, dims() - 1, 2):
        even += state.common[matrix + j * dims() + row] * state.common[at + j]
        odd += state.common[matrix + (j + 1) * dims() + row] * state.common[at + j + 1]
    if dims() % 2 == 1:
        even += state.common[matrix + (dims() - 1) * dims() + row] * state.common[at + dims() - 1]
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
def solve(state):
    """H^-1 times the sums over arms, for the team to see after the next `sync`."""
    for part in range(parts()):
        row = lane() + part * members()
        if row < dims():
            state.common[vector_at(MOVED) + row] = row_times(state, matrix_at(0), row, vector_at(SUMS))


@scalar
def solve_by_root(state):
    """The same by the inverse of H's factor, which is not symmetric; a team that holds R'x needs this only here."""
    common = state.common
    at = matrix_at(0)
    for part in range(parts()):
        row = lane() + part * members()
        if row < dims():
            common[vector_at(PRODUCT) + row] = product(state, at + row * dims(), vector_at(SUMS))
    sync()
    for part in range(parts()):
        row = lane() + part * members()
        if row < dims():
            common[vector_at(MOVED) + row] = row_times(state, at, row, vector_at(PRODUCT))


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
def look(state, anew, sampling):
    """Compute chances at the estimate, and the weights with which features add up to the gradient.

    The slopes of arms never pulled are free to change, and with `anew` all are. With `sampling` but not `anew`, weights are
    for the gradient less that of the old model, which is 0 at its mode.
    """
    held = state.held
    common = state.common
    for i in range(share()):
        chance, slope = chance_and_slope(held[field(SCORE, i)])
        pulls = common[column_at(PULLS, i)]
        old = common[column_at(SLOPE, i)]
        if sampling and not anew:
            modelled = common[column_at(CHANCE, i)] + old * common[column_at(DRIFT, i)]
            held[field(WEIGHT, i)] = pulls * (modelled - chance)
        else:
            held[field(WEIGHT, i)] = common[column_at(TOTAL, i)] - pulls * chance
        fresh = anew or pulls == real(0.0)
        common[column_at(CHANCE, i)] = chance
        common[column_at(DRIFT, i)] = real(0.0)
        common[column_at(STALE, i)] = real(0.0) if fresh else slope * inverse(old) - real(1.0)
        if fresh:
            common[column_at(SLOPE, i)] = slope
            common[column_at(HEAVY, i)] = pulls * slope


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
        moved = abs(state.common[column_at(DRIFT, i)]) + abs(state.common[column_at(STALE, i)])
        far = far | ((state.common[column_at(HEAVY, i)] > real(0.0)) & (not moved <= real(limit)))
    return any_of(far)


@scalar
def off(moved, stale):
    """How far an arm's chance may be from the model's, as a share of its slope: |D| c for |D| and |a|."""
    return moved * (stale + (real(1.0) + stale) * moved * (real(0.5) + moved))


@scalar
def mode_error(state):
    """How far the estimate is from the mode, in posterior deviations."""
    square = real(0.0)
    for i in range(share()):
        error = off(abs(state.common[column_at(DRIFT, i)]), abs(state.common[column_at(STALE, i)]))
        square += state.common[column_at(HEAVY, i)] * error * error
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
def renew(state, first, sampling):
    """Build from sum of weight x x' + I its inverse, with pulls times w as weights for `first` = 0 and pulls for `first` =
    dims; with `sampling`, the inverse of its factor.
    """
    at = matrix_at(first)
    for j in range(dims()):
        for i in range(share()):
            weight = state.common[column_at(PULLS if first > 0 else HEAVY, i)]
            state.held[field(WEIGHT, i)] = weight * feature(state, i, j)
        sum_arms(state, at + j * dims())
    sync()
    for part in range(parts()):
        j = lane() + part * members()
        if j < dims():
            state.common[at + j * dims() + j] += real(1.0)
    sync()
    eliminate(state.common, at, sampling)
    if not sampling:
        measure_arms(state, first)


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
def measure_arms(state, first):
    """Every arm's x' H^-1 x afresh, or with `first` = dims its x' G^-1 x."""
    held = state.held
    for i in range(share()):
        held[field(TERM, i)] = real(0.0)
    for j in range(dims()):
        for i in range(share()):
            held[field(TERM, i)] += feature(state, i, j) * along(state, i, matrix_at(first) + j * dims())
    for i in range(share()):
        held[field(WIDTH, i)] = held[field(TERM, i)] if first > 0 else held[field(WIDTH, i)]
        held[field(SPREAD, i)] = held[field(SPREAD, i)] if first > 0 else held[field(TERM, i)]


@scalar
def return_to_features(state, setting):
    """From R'x to x, with theta and scores afresh: at the model's mode, theta is the sum of pulls (reward - chance) x."""
    held = state.held
    me = here()
    common = state.common
    take_features(state, setting)
    for i in range(share()):
        modelled = common[column_at(CHANCE, i)] + common[column_at(SLOPE, i)] * common[column_at(DRIFT, i)]
        held[field(WEIGHT, i)] = common[column_at(TOTAL, i)] - common[column_at(PULLS, i)] * modelled
    sum_arms(state, vector_at(ESTIMATE))
    sync()
    for i in range(share()):
        prior = real(prior_score(setting, me + i * members()))
        held[field(SCORE, i)] = prior + along(state, i, vector_at(ESTIMATE))


@scalar
def turn_arms(state):
    """From x to R'x, with R' the inverse of H's factor, and its square."""
    held = state.held
    for i in range(share()):
        held[field(SPREAD, i)] = real(0.0)
    for back in range(dims()):
        j = dims() - 1 - back
        at = matrix_at(0) + j * dims()
        for i in range(share()):
            # The rest of the row is 0.
            entry = along(state, i, at)
            held[field(SPREAD, i)] += entry * entry
            for place in range(dims()):
                held[i * dims() + place] = entry if place == j else held[i * dims() + place]


@scalar
def find_mode(state, setting, refresh, far, sampling):
    """Newton's method with H built anew at every step, until a step is short; with `refresh`, G^-1 is built anew first.

    Where steps do not at least halve, start again from 0, with steps that are halved until the objective rises by a quarter
    of what the slope promises: see `logistic.climb`. With `sampling`, arms hold R'x before and after.
    """
    held = state.held
    last = real(math.inf)
    looks = 0
    climbing = False
    if sampling:
        return_to_features(state, setting)
    while refresh or far:
        if not refresh:
            look(state, True, sampling)
            sum_arms(state, vector_at(SUMS))
            sync()
            subtract_estimate(state)
        renew(state, dims() if refresh else 0, sampling)
        if refresh:
            state.common[AGE] = real(0.0)
            refresh = False
        else:
            sync()
            if sampling:
                solve_by_root(state)
            else:
                solve(state)
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
                    state.common[column_at(DRIFT, i)] = moved
                far = length < real(1.0) or too_far(state, FAR_SAMPLING if sampling else FAR)
            sync()
    if sampling:
        turn_arms(state)


@scalar
def return_to_start(state, setting):
    """Put the estimate to 0."""
    held = state.held
    me = here()
    for part in range(parts()):
        j = lane() + part * members()
        if j < dims():
            state.common[vector_at(ESTIMATE) + j] = real(0.0)
    for i in range(share()):
        held[field(SCORE, i)] = real(prior_score(setting, me + i * members()))


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
            value += state.common[column_at(TOTAL, i)] * score
            value -= state.common[column_at(PULLS, i)] * grown
    return total(value)


@scalar
def learn_bounds(state, setting, arm, reward, stream):
    """Learn a reward of the stay's arm."""
    state.held[number_at(STAYED)] += real(1.0)
    state.held[number_at(PAID)] += real(reward)


@scalar
def begin_stay(state, arm):
    """From now on an arm is pulled: H^-1 x, G^-1 x, and what they are along every arm."""
    held = state.held
    common = state.common
    at = vector_at(PRODUCT)
    shown = vector_at(SHOWN)
    sync()
    for i in range(share()):
        if int32(lane() + i * members()) == arm:
            slope = common[column_at(SLOPE, i)]
            for j in range(dims()):
                common[shown + j] = held[i * dims() + j]
            common[BASE] = common[column_at(CHANCE, i)] + slope * common[column_at(DRIFT, i)]
            common[LEAD_SCORE] = held[field(SCORE, i)]
            common[LEAD_WIDTH] = held[field(WIDTH, i)]
            common[LEAD_SLOPE] = slope
    sync()
    for r in range(rows()):
        row = lane() + r * members()
        if row < 2 * dims():
            first = 0 if row < dims() else dims()
            common[at + row] = row_times(state, matrix_at(first), row - first, shown)
    sync()
    common[S] = product(state, shown, at)
    common[Q] = product(state, shown, at + dims())
    for i in range(share()):
        held[field(RISE, i)] = along(state, i, at)
    for i in range(share()):
        held[field(NARROWING, i)] = along(state, i, at + dims())
    held[number_at(STAYED)] = real(0.0)
    held[number_at(PAID)] = real(0.0)
    held[number_at(UNTIL)] = real(-1.0)
    held[number_at(PULLS_AHEAD)] = real(LENGTH)
    held[number_at(LEADER)] = real(arm)
    sync()


@scalar
def bring_in(state, over):
    """Write the stay into arms, theta and both matrices. `over` is 1 / (1 + m w s)."""
    held = state.held
    common = state.common
    at = vector_at(PRODUCT)
    stayed = held[number_at(STAYED)]
    slope = common[LEAD_SLOPE]
    step = (held[number_at(PAID)] - stayed * common[BASE]) * over
    shrink = stayed * inverse(real(1.0) + stayed * common[Q])
    leader = int32(held[number_at(LEADER)])
    move_estimate(state, at, step)
    for i in range(share()):
        rise = held[field(RISE, i)]
        narrowed = held[field(NARROWING, i)]
        held[field(SCORE, i)] += step * rise
        common[column_at(DRIFT, i)] += step * rise
        held[field(SPREAD, i)] -= stayed * slope * over * rise * rise
        held[field(WIDTH, i)] -= shrink * narrowed * narrowed
        if int32(lane() + i * members()) == leader:
            common[column_at(HEAVY, i)] += stayed * slope
            common[column_at(PULLS, i)] += stayed
            common[column_at(TOTAL, i)] += held[number_at(PAID)]
            common[COUNT] += stayed
            common[AGE] += stayed
    for r in range(rows()):
        row = lane() + r * members()
        if row < 2 * dims():
            first = 0 if row < dims() else dims()
            taken = common[at + row] * (stayed * slope * over if row < dims() else shrink)
            for j in range(dims()):
                common[matrix_at(first) + j * dims() + row - first] -= taken * common[at + first + j]
    sync()


@scalar
def find_interval(state, factor, over, moved, away, until):
    """What e must stay between so that none of this thread's arms can reach the leader until m is `until`.

    Not further from e = `moved` than `away`: there the error is no larger than at one end or the other, arm by arm, because
    |D| is not. It moves the difference between two scores by no more than the error times the length of x_k - x, whose
    square in the present metric of H^-1 is x_k' H^-1 x_k + s - 2 v - m w / (1 + m w s) (s - v)^2. This and rivals' widths
    only shrink, and the leader is given its last width: then every rival asks e to be on one side of a number. Where the
    model may reach too far, nothing is between.
    """
    held = state.held
    common = state.common
    stayed = held[number_at(STAYED)]
    leader = int32(held[number_at(LEADER)])
    square = real(0.0)
    far = False
    for i in range(share()):
        start = common[column_at(DRIFT, i)] + moved * held[field(RISE, i)]
        drift = abs(start) + away * abs(held[field(RISE, i)])
        stale = abs(common[column_at(STALE, i)])
        heavy = common[column_at(HEAVY, i)]
        heavy += until * common[LEAD_SLOPE] if int32(lane() + i * members()) == leader else real(0.0)
        far = far | ((heavy > real(0.0)) & (not drift + stale <= real(FAR)))
        error = off(drift, stale)
        square += heavy * error * error
    error = real(MARGIN) * root_of_total(square)
    slack = real(2.0) * tolerance(state) * common[LONGEST]
    q = common[Q]
    s = common[S]
    taken = stayed * common[LEAD_SLOPE] * over
    shrink = stayed * inverse(real(1.0) + stayed * q)
    last = until * inverse(real(1.0) + until * q)
    more = slack - factor * root(common[LEAD_WIDTH] - last * q * q) - common[LEAD_SCORE]
    low = moved - away if away > real(0.0) else real(-math.inf)
    high = moved + away if away > real(0.0) else real(math.inf)
    for i in range(share()):
        narrowed = held[field(NARROWING, i)]
        apart = s - held[field(RISE, i)]
        between = held[field(SPREAD, i)] - held[field(RISE, i)] + apart * (real(1.0) - taken * apart)
        needed = held[field(SCORE, i)] + more
        needed += factor * root(held[field(WIDTH, i)] - shrink * narrowed * narrowed) + error * root(between)
        rival = int32(lane() + i * members()) != leader
        side = needed * inverse(max(abs(apart), real(1e-20)))
        low = max(low, side if rival and apart > real(0.0) else low)
        high = min(high, -side if rival and apart < real(0.0) else high)
        far = far | (rival & (apart == real(0.0)) & (not needed < real(0.0)))
    held[number_at(LOW)] = low
    held[number_at(HIGH)] = real(-math.inf) if far else high
    held[number_at(UNTIL)] = until


@scalar
def root(square):
    """A root; rounding may leave a little less than 0."""
    square = abs(square) + real(1e-30)
    return square * inverse_root(square)


@scalar
def inside(state, moved):
    """Whether e is where no arm of any thread can reach the leader."""
    held = state.held
    return not any_of(not ((moved > held[number_at(LOW)]) & (moved < held[number_at(HIGH)])))


@scalar
def still_leads(state, factor, over, moved):
    """Whether the stay's arm surely has the highest index; finds a long interval where it can, and not too often."""
    held = state.held
    common = state.common
    stayed = held[number_at(STAYED)]
    leads = False
    searching = True
    while searching:
        pulls = held[number_at(PULLS_AHEAD)]
        searching = pulls >= real(SHORTEST)
        pulls = pulls if searching else real(0.0)
        away = real(WANDER) * over * root(common[LEAD_SLOPE] * pulls) if searching else real(0.0)
        find_interval(state, factor, over, moved, away, stayed + pulls)
        leads = inside(state, moved)
        if searching:
            held[number_at(PULLS_AHEAD)] *= real(2.0) if leads else real(0.5)
            searching = not leads
        else:
            held[number_at(PULLS_AHEAD)] += real(RESTING)
    return leads


@scalar
def learn_root(state, setting, arm, reward, stream):
    """Learn a reward: every arm's R'x and the mode of the model.

    With p = R'x, R becomes R (I - keep p p'), whose square is H^-1 - w / (1 + w p'p) R p p' R'. Scores move along
    x_k' H^-1 x = (R'x_k)'p.
    """
    arm = int32(arm & LARGEST)  # no less than 0, so that no index can count from the end
    held = state.held
    common = state.common
    shown = vector_at(SHOWN)
    slope = common[column_of(SLOPE, arm)]
    for i in range(share()):
        if int32(lane() + i * members()) == arm:
            for j in range(dims()):
                common[shown + j] = held[i * dims() + j]
            common[MOVE] = common[column_at(DRIFT, i)]
            common[column_at(HEAVY, i)] += slope
            common[column_at(PULLS, i)] += real(1.0)
            common[column_at(TOTAL, i)] += real(reward)
            common[COUNT] += real(1.0)
            common[AGE] += real(1.0)
    sync()
    square = product(state, shown, shown)
    for i in range(share()):
        held[field(TERM, i)] = along(state, i, shown)
    over = inverse(real(1.0) + slope * square)
    keep = slope * over * inverse(real(1.0) + over * inverse_root(over))
    for i in range(share()):
        held[field(WEIGHT, i)] = keep * held[field(TERM, i)]
    for j in range(dims()):
        entry = common[shown + j]
        for i in range(share()):
            held[i * dims() + j] -= held[field(WEIGHT, i)] * entry
    step = (real(reward) - common[column_of(CHANCE, arm)] - slope * common[MOVE]) * over
    # All is built anew after so many pulls too, so that rounding cannot pile up.
    far = common[AGE] >= real(REFRESH)
    for i in range(share()):
        rise = held[field(TERM, i)]
        held[field(SCORE, i)] += step * rise
        held[field(SPREAD, i)] -= slope * over * rise * rise
        drift = common[column_at(DRIFT, i)] + step * rise
        common[column_at(DRIFT, i)] = drift
        moved = abs(drift) + abs(common[column_at(STALE, i)])
        far = far | ((common[column_at(HEAVY, i)] > real(0.0)) & (not moved <= real(FAR_SAMPLING)))
    if any_of(far):
        find_mode(state, setting, False, True, True)
        common[AGE] = real(0.0)
    # The next look writes chances that all have read here.
    sync()


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
def step_to_mode(state, at):
    """Move every score to the new model's mode, by a step that the team sees."""
    for i in range(share()):
        state.held[field(TERM, i)] = along(state, i, at)
    for i in range(share()):
        moved = state.held[field(TERM, i)]
        state.held[field(SCORE, i)] += moved
        state.common[column_at(DRIFT, i)] = moved


@scalar
def choose_team_bound(state, setting, step, params, stream):
    """The highest x'theta + gamma c sqrt(x' G^-1 x)."""
    held = state.held
    common = state.common
    arm = int32(held[number_at(LEADER)])
    leads = False
    if step > 0:
        stayed = held[number_at(STAYED)]
        over = inverse(real(1.0) + stayed * common[LEAD_SLOPE] * common[S])
        moved = (held[number_at(PAID)] - stayed * common[BASE]) * over
        leads = stayed <= held[number_at(UNTIL)] and inside(state, moved)
        if not leads:
            leads = still_leads(state, real(params[0] * own_option(setting, 0)), over, moved)
        if not leads:
            sync()
            bring_in(state, over)
            refresh = common[AGE] >= real(REFRESH)
            far = too_far(state, FAR)
            if refresh or far:
                find_mode(state, setting, refresh, far, False)
    if not leads:
        arm = highest_bound(state, real(params[0] * own_option(setting, 0)))
        if arm >= int32(0):
            begin_stay(state, arm)
    return int(arm)


@scalar
def highest_bound(state, factor):
    """The arm with the highest index, with a look where the model cannot tell.

    A score is off by no more than the error times sqrt(x' H^-1 x).
    """
    held = state.held
    common = state.common
    slack = real(2.0) * tolerance(state) * common[LONGEST]
    arm = int32(NO_MODE)
    tries = 0
    while common[LOST] == real(0.0):
        error = mode_error(state)
        for i in range(share()):
            held[field(TERM, i)] = real(MARGIN) * error * root(held[field(SPREAD, i)])
            held[field(WEIGHT, i)] = held[field(SCORE, i)] + factor * root(held[field(WIDTH, i)])
        highest, arm = best_weight(state)
        lowest = highest - slack - field_of(state, TERM, arm)
        doubt = False
        for i in range(share()):
            rival = held[field(WEIGHT, i)] + held[field(TERM, i)]
            doubt = doubt | ((rival >= lowest) & (int32(lane() + i * members()) != arm))
        if not any_of(doubt):
            break
        tries += 1
        if error <= tolerance(state) or tries > TRIES:
            arm = first_of_equals(state, highest)
            break
        look(state, False, False)
        sum_arms(state, vector_at(SUMS))
        sync()
        subtract_estimate(state)
        sync()
        solve(state)
        sync()
        move_estimate(state, vector_at(MOVED), real(1.0))
        step_to_mode(state, vector_at(MOVED))
    return arm


@scalar
def draw(state, scale, step, stream):
    """A new draw: every arm's x'R normals. Normals for some steps are drawn at once, a pair per thread."""
    held = state.held
    common = state.common
    if held[number_at(AT)] >= real(normals_at_once(dims())):
        sync()
        for pair in range(lane(), (normals_at_once(dims()) + 1) // 2, members()):
            aim(stream, pair, step)
            first, second = normal_pair(stream)
            common[normals_from() + 2 * pair] = real(first) if scale > real(0.0) else real(0.0)
            common[normals_from() + 2 * pair + 1] = real(second) if scale > real(0.0) else real(0.0)
        sync()
        held[number_at(AT)] = real(0.0)
    at = normals_from() + int32(held[number_at(AT)])
    held[number_at(AT)] += real(dims())
    for i in range(share()):
        held[field(FIRST, i)] = along(state, i, at)


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
        moved = abs(state.common[column_at(DRIFT, i)])
        stale = abs(state.common[column_at(STALE, i)])
        changed = real(0.5) * (real(1.0) + stale) * moved * (real(1.0) + moved)
        drawn = ratio * stale * abs(state.held[field(TERM, i)]) + changed * abs(state.held[field(FIRST, i)])
        error = off(moved, stale) + scale * drawn
        square += state.common[column_at(HEAVY, i)] * error * error
    return root_of_total(square)


@scalar
def series_error(state, scale, ratio):
    """The part of that which one more term of the series takes away; a look is for the rest."""
    square = real(0.0)
    for i in range(share()):
        error = scale * ratio * state.common[column_at(STALE, i)] * state.held[field(TERM, i)]
        square += state.common[column_at(HEAVY, i)] * error * error
    return root_of_total(square)


@scalar
def choose_team_sample(state, setting, step, params, stream):
    """The highest score under a draw of theta; at gamma = 0 under the mode."""
    held = state.held
    common = state.common
    scale = real(params[0] * own_option(setting, 0))
    slack = real(2.0) * tolerance(state) * common[LONGEST]
    draw(state, scale, step, stream)
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
            look(state, False, True)
        else:
            for i in range(share()):
                weight = common[column_at(HEAVY, i)] * common[column_at(STALE, i)]
                held[field(WEIGHT, i)] = weight * held[field(TERM, i)]
        sum_arms(state, vector_at(SUMS))
        sync()
        if looking:
            step_to_mode(state, vector_at(SUMS))
            restart_series(state)
            ratio = real(0.5)
            sign = real(-1.0)
            terms = 0
        else:
            for i in range(share()):
                term = along(state, i, vector_at(SUMS))
                held[field(TERM, i)] = term
                held[field(DRAWN, i)] += sign * ratio * term
            terms += 1
            ratio *= real(2 * terms + 1) / real(2 * terms + 2)
            sign = -sign
        sync()
    return arm
