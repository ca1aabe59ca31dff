"""LinUCB by staying among a few live arms: an exact shortcut.

Three facts make it exact. All norms and products are in the coordinates of `ridge`; G0, theta0, index0 and width0 are
those at the start of an *epoch*, B0 is the highest index then and `lead` the arm that has it.

*Live arms.* Later, |x'(theta - theta0)| <= width0 rho with rho = ||theta - theta0||_G0, by Cauchy and Schwarz, and
widths only shrink, so an arm's index is at most index0 + rho width0. Let its slack be (B0 - index0) / (width0 +
width0 of lead). While rho <= reach, an arm whose slack is `reach` or more has an index of at most B0 - reach (width0
of lead) = `floor`: as long as some live arm's index is above the floor, the others need not be looked at. The arms of
least slack are live, and the least slack of the others is the reach. (gamma is not negative; the floor must be
exceeded, so that no arm out of sight ties; live arms stand in the order of their numbers, so that ties go to the
lowest.)

*Stays.* With u = x' G^-1 x_leader for every live arm, k pulls of the leader and the sum E of their rewards less its
score, Sherman and Morrison's formula gives

    score + u e    and    variance - u^2 k / (1 + k q),    e = E / (1 + k q),    q = u of the leader:

k pulls cost O(live arms), not O(arms dims + dims^2) each.

Within a stay theta moves by e G^-1 x_leader, whose length in G0, which is at most G, is at most |e| sqrt(q): so rho
is at most that more than before the stay.

*Intervals.* For the next pulls of a stay, replace the rivals' widths by the present ones and the leader's width by
its last one: then each rival, the floor and the reach ask e to be on one side of a number. Inside the resulting
interval nothing but E has to be kept.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from banditune.contracts import Floats, Integers, Slot, rare, scalar
from banditune.policies.ridge import best_score, bound_factor, cholesky, invert_triangle, turn_features
from banditune.streams import aim

reward = Slot("reward")

LIVE = 16
"""Live arms of the first epoch; twice as many after a short one, half after a long one."""

AHEAD = 0.125
"""An interval is for the pulls in which the leader's precision, 1 / q and a pull each, grows by this share."""

NEAR_REACH = 0.8
"""Share of the reach beyond which the next stay would soon be at its end, and a new epoch starts."""

SHORT, LONG = 4, 32
"""Steps for each live arm: an epoch with fewer is short, and none goes on after more, or after half of all steps before it
(a stay is not cut). Every epoch factorises G afresh, so rounding cannot pile up."""


class Field(NamedTuple):
    """What the shortcut keeps: an entry per arm, an entry per live arm, matrices, vectors, numbers.

    `bounds` holds upper confidence bounds, of all arms while live ones are chosen and of these later; `room` is for sums
    and sorting; `along` is u of the module's docstring. `gram` is G, `gram_then` G0; `factor` is the inverse of G0's
    Cholesky factor and `inverse` G^-1. `moved` is theta - theta0, `gain` G^-1 x_leader.
    """

    prior_score: Floats
    score: Floats
    width: Floats
    slack: Floats
    bounds: Floats
    room: Floats
    live_score: Floats
    live_variance: Floats
    along: Floats
    features: Floats
    live_features: Floats
    gram: Floats
    gram_then: Floats
    factor: Floats
    inverse: Floats
    moment: Floats
    estimate: Floats
    moved: Floats
    gain: Floats
    numbers: Floats
    live: Integers
    counts: Integers


def live_memory(arms: int, dims: int) -> tuple[int, int]:
    """Floats and integers in a `Field`."""
    return 9 * arms + 2 * arms * dims + 4 * dims * dims + 4 * dims + 4, arms + 4


@scalar
def view_field(floats, integers, setting):
    """The parts of the strips, in the order of the record."""
    arms = setting.arms
    dims = setting.dims
    a = 9 * arms
    b = a + 2 * arms * dims
    c = b + 4 * dims * dims
    e = c + 4 * dims
    return Field(
        floats[:arms],
        floats[arms : 2 * arms],
        floats[2 * arms : 3 * arms],
        floats[3 * arms : 4 * arms],
        floats[4 * arms : 5 * arms],
        floats[5 * arms : 6 * arms],
        floats[6 * arms : 7 * arms],
        floats[7 * arms : 8 * arms],
        floats[8 * arms : 9 * arms],
        floats[a : a + arms * dims],
        floats[a + arms * dims : b],
        floats[b : b + dims * dims],
        floats[b + dims * dims : b + 2 * dims * dims],
        floats[b + 2 * dims * dims : b + 3 * dims * dims],
        floats[b + 3 * dims * dims : c],
        floats[c : c + dims],
        floats[c + dims : c + 2 * dims],
        floats[c + 2 * dims : c + 3 * dims],
        floats[c + 3 * dims : e],
        floats[e : e + 4],
        integers[:arms],
        integers[arms : arms + 4],
    )


REACH, FLOOR, FACTOR, RHO = 0, 1, 2, 3
"""Places of `numbers`; FACTOR is gamma times theory's factor, RHO is how far theta has moved in this epoch."""

LIVING, WANTED, SINCE, UNTIL = 0, 1, 2, 3
"""Places of `counts`: live arms, how many were asked for, the epoch's first step and the one at which it ends."""


@scalar
def start_field(field, setting, factor):
    """Forget everything but the prior."""
    turn_features(field.features, field.prior_score, setting)
    for place in range(setting.dims * setting.dims):
        field.gram[place] = 0.0
    for j in range(setting.dims):
        field.gram[j * setting.dims + j] = setting.options[0]
        field.moment[j] = 0.0
    field.numbers[FACTOR] = factor
    field.counts[WANTED] = min(LIVE, setting.arms)
    field.counts[SINCE] = 0


@rare
def start_epoch(field, setting, step):
    """Factorise G, compute every arm's score and width, choose the live arms."""
    arms = setting.arms
    dims = setting.dims
    lasted = step - field.counts[SINCE]
    if step > 0 and step >= field.counts[UNTIL]:
        field.counts[WANTED] = max(field.counts[WANTED] // 2, min(8, arms))
    elif step > 0 and lasted < SHORT * field.counts[WANTED]:
        field.counts[WANTED] = min(2 * field.counts[WANTED], arms)
    field.counts[SINCE] = step
    field.counts[UNTIL] = step + min(LONG * field.counts[WANTED], field.counts[WANTED] + step // 2)
    factorise(field, setting)
    score_all(field, setting)
    choose_live(field, setting)
    field.numbers[RHO] = 0.0
    for j in range(dims):
        field.moved[j] = 0.0
    living = field.counts[LIVING]
    for place in range(living):
        arm = field.live[place]
        field.live_score[place] = field.score[arm]
        field.live_variance[place] = field.width[arm] * field.width[arm]
        for j in range(dims):
            field.live_features[j * living + place] = field.features[j * arms + arm]


@scalar
def factorise(field, setting):
    """G^-1 and theta from the sums; remembers G."""
    dims = setting.dims
    factor = field.factor
    for place in range(dims * dims):
        field.gram_then[place] = field.gram[place]
        factor[place] = field.gram[place]
        field.inverse[place] = 0.0
    cholesky(factor, dims)
    invert_triangle(factor, dims)
    for k in range(dims):
        for i in range(k + 1):
            entry = factor[k * dims + i]
            for j in range(k + 1):
                field.inverse[i * dims + j] += entry * factor[k * dims + j]
    for j in range(dims):
        field.estimate[j] = 0.0
    for i in range(dims):
        entry = field.moment[i]
        for j in range(dims):
            field.estimate[j] += entry * field.inverse[i * dims + j]


@scalar
def score_all(field, setting):
    """Every arm's score and width: x' G^-1 x is the square of factor x."""
    arms = setting.arms
    dims = setting.dims
    for arm in range(arms):
        field.score[arm] = field.prior_score[arm]
        field.width[arm] = 0.0
    for j in range(dims):
        entry = field.estimate[j]
        for arm in range(arms):
            field.score[arm] += entry * field.features[j * arms + arm]
    for i in range(dims):
        for arm in range(arms):
            field.room[arm] = 0.0
        for j in range(i + 1):
            entry = field.factor[i * dims + j]
            for arm in range(arms):
                field.room[arm] += entry * field.features[j * arms + arm]
        for arm in range(arms):
            field.width[arm] += field.room[arm] * field.room[arm]
    for arm in range(arms):
        field.width[arm] = math.sqrt(field.width[arm])


@scalar
def choose_live(field, setting):
    """The arms of least slack, in the order of their numbers; the least slack of the others is the reach."""
    arms = setting.arms
    wanted = field.counts[WANTED]
    factor = field.numbers[FACTOR]
    everyone = wanted >= arms
    for arm in range(arms):
        field.bounds[arm] = field.score[arm] + factor * field.width[arm]
    lead = best_score(field.bounds)
    highest = field.bounds[lead]
    for arm in range(arms):
        field.slack[arm] = (highest - field.bounds[arm]) / max(field.width[arm] + field.width[lead], 1e-300)
    least = math.inf if everyone else smallest(field.slack, field.room, wanted)
    # A hair less than what the proof allows, for rounding.
    reach = 0.999999 * least
    field.numbers[REACH] = reach
    field.numbers[FLOOR] = -math.inf if everyone else highest - reach * field.width[lead]
    living = 0
    for arm in range(arms):
        field.along[arm] = 0.0
        if everyone or field.slack[arm] < least or arm == lead:
            field.live[living] = arm
            living += 1
    field.counts[LIVING] = living


@scalar
def smallest(values, sorted_, count):
    """The (count + 1)-th smallest of some values; `sorted_` is room for them."""
    held = 0
    for place in range(len(values)):
        value = values[place]
        if held <= count or value < sorted_[held - 1]:
            at = min(held, count)
            while at > 0 and sorted_[at - 1] > value:
                sorted_[at] = sorted_[at - 1]
                at -= 1
            sorted_[at] = value
            held = min(held + 1, count + 1)
    return sorted_[count]


@scalar
def begin_stay(field, setting, leader):
    """u = x' G^-1 x_leader for all live arms, G^-1 x_leader in `gain`; returns q."""
    dims = setting.dims
    living = field.counts[LIVING]
    for j in range(dims):
        field.gain[j] = 0.0
    for i in range(dims):
        entry = field.live_features[i * living + leader]
        for j in range(dims):
            field.gain[j] += entry * field.inverse[i * dims + j]
    for place in range(living):
        field.along[place] = 0.0
    for j in range(dims):
        entry = field.gain[j]
        for place in range(living):
            field.along[place] += entry * field.live_features[j * living + place]
    return max(field.along[leader], 1e-300)


@scalar
def best_live(field, pulls, error, q):
    """The live arm with the highest index after so many pulls of a stay, and that index."""
    living = field.counts[LIVING]
    factor = field.numbers[FACTOR]
    shrink = pulls / (1.0 + pulls * q)
    for place in range(living):
        along = field.along[place]
        variance = max(field.live_variance[place] - along * along * shrink, 0.0)
        field.bounds[place] = field.live_score[place] + error * along + factor * math.sqrt(variance)
    best = best_score(field.bounds[:living])
    return best, field.bounds[best]


@scalar
def interval(field, leader, pulls, error, last, q, reach):
    """What `error` must stay between, so that the leader stays the leader until it has `last` pulls in this stay."""
    living = field.counts[LIVING]
    factor = field.numbers[FACTOR]
    now = pulls / (1.0 + pulls * q)
    width = math.sqrt(max(field.live_variance[leader] - q * q * (last / (1.0 + last * q)), 0.0))
    score = field.live_score[leader]
    high = reach / math.sqrt(q)
    low = max(-high, (field.numbers[FLOOR] - score - factor * width) / q)
    for place in range(living):
        along = field.along[place]
        variance = max(field.live_variance[place] - along * along * now, 0.0)
        needed = factor * (math.sqrt(variance) - width) - (score - field.live_score[place])
        apart = q - along
        if place != leader:
            if apart > 0.0:
                low = max(low, needed / apart)
            elif apart < 0.0:
                high = min(high, needed / apart)
            elif needed >= 0.0:
                high = -math.inf
    return low, high


@scalar
def ahead(pulls, q):
    """How many pulls of a stay an interval is for."""
    return 1.0 + AHEAD * (pulls + 1.0 / q)


@scalar
def end_stay(field, setting, leader, pulls, error, q):
    """Learn the pulls of a stay."""
    dims = setting.dims
    living = field.counts[LIVING]
    shrink = pulls / (1.0 + pulls * q)
    for place in range(living):
        along = field.along[place]
        field.live_score[place] += error * along
        field.live_variance[place] = max(field.live_variance[place] - along * along * shrink, 0.0)
    arm = field.live[leader]
    # Rewards less the prior's score: E + pulls (score - prior score), with the score before the stay.
    paid = error * (1.0 + pulls * q) + pulls * (field.live_score[leader] - error * q - field.prior_score[arm])
    for i in range(dims):
        taken = shrink * field.gain[i]
        added = pulls * field.live_features[i * living + leader]
        for j in range(dims):
            field.inverse[i * dims + j] -= taken * field.gain[j]
            field.gram[i * dims + j] += added * field.live_features[j * living + leader]
    for j in range(dims):
        field.moved[j] += error * field.gain[j]
        field.moment[j] += paid * field.live_features[j * living + leader]
    square = 0.0
    for i in range(dims):
        row = 0.0
        for j in range(dims):
            row += field.gram_then[i * dims + j] * field.moved[j]
        square += row * field.moved[i]
    field.numbers[RHO] = math.sqrt(max(square, 0.0))


@scalar
def advance_live(instance, setting, params, agent, rewards, floats, integers, pulls, first, last):
    """LinUCB from stay to stay and epoch to epoch; the module's docstring says why this is LinUCB."""
    field = view_field(floats, integers, setting)
    numbers = field.numbers
    if first == 0:
        start_field(field, setting, params[0] * bound_factor(setting))
        start_epoch(field, setting, 0)
    leader, highest = best_live(field, 0.0, 0.0, 0.0)
    step = first
    while step < last:
        q = begin_stay(field, setting, leader)
        arm = field.live[leader]
        score = field.live_score[leader]
        before = pulls[arm]
        left = last - step
        stayed = 0
        until = 1
        patience = 8
        checked = 0
        wait = 0
        total = 0.0
        low = -math.inf
        high = math.inf
        best = leader
        while True:
            inside = True
            while inside and stayed < until:
                aim(rewards, arm, before + stayed)
                total += reward(instance, arm, before + stayed, 0, rewards) - score
                stayed += 1
                grown = 1.0 + stayed * q
                inside = total > low * grown and total < high * grown
            if not math.isfinite(total):
                return False
            error = total / (1.0 + stayed * q)
            best, highest = best_live(field, 1.0 * stayed, error, q)
            reach = numbers[REACH] - numbers[RHO]
            if stayed >= left or best != leader or highest <= numbers[FLOOR] or abs(error) * math.sqrt(q) > reach:
                break
            # Where the last interval was worth only a few pulls, wait longer before the next.
            if until > checked + 1:
                wait = 0 if stayed > checked + 4 else 2 * wait + 4
                patience = stayed + wait
            checked = stayed
            until = stayed + 1
            if stayed >= patience:
                until = int(min(stayed + ahead(stayed, q), left))
                low, high = interval(field, leader, stayed, error, until, q, reach)
        pulls[arm] = before + stayed
        step += stayed
        end_stay(field, setting, leader, stayed, error, q)
        leader = best
        far = highest <= numbers[FLOOR] or numbers[RHO] > NEAR_REACH * numbers[REACH]
        if far or step >= field.counts[UNTIL]:
            start_epoch(field, setting, step)
            leader, highest = best_live(field, 0.0, 0.0, 0.0)
    return True
