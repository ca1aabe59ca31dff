"""LinUCB and linear Thompson sampling played by a team of threads, from stay to stay.

A *stay* is a run of pulls of the same arm, the leader. All is in the features' own coordinates: G^-1 starts from the
prior's covariance over the penalty, theta from its mean; scores x'theta and variances x' G^-1 x are those of `ridge`. With
u = x' G^-1 x_leader for every arm and q = u of the leader, both when the stay began, Sherman and Morrison's formula for m
pulls and the sum E of their rewards less the leader's score gives

    score + e u,   variance - m r^2 u^2,   G^-1 - m r^2 g g',   e = E r^2,   r = 1 / sqrt(1 + m q),   g = G^-1 x_leader.

(G + m x x' has the inverse G^-1 - m g g' / (1 + m q), by multiplying out; theta solves (G + m x x') (theta + e g) = G theta
+ x (E + m x'theta), because (G + m x x') g = (1 + m q) x.) So a pull moves two numbers, m and E, which all threads know,
and arms are written only when the leader changes. The leader's own variance is q r^2. Threads compute r ahead of time, each
for another m.

*LinUCB.* The leader stays unless some rival's index reaches its own: with gap = leader's index - rival's score this is gap
< 0 or gap^2 <= (factor width)^2, which takes no root. Ties look like a rival's success, and the highest index is then
looked for in full, where ties go to the lowest arm. Widths are kept as (factor width)^2. G^-1 is common, a column per
thread; features are read where they lie, when a stay begins. In a longer stay every thread finds an interval for e in which
none of its arms can reach the leader for some pulls to come.

*Thompson sampling.* Let S S' = G^-1. Every arm's a = S'x is held, and with z standard normal theta = estimate + scale S z
gives the arm x'theta = score + scale a'z. With t = a of the leader and b = m r^2 / (1 + r), S (I - b t t') is a root of the
new G^-1 after m pulls (Potter 1963: 1 - b q = r), so a becomes a - b u t, because u = a't. Then an arm draws

    score + scale a'z + (e - b scale t'z) u,

the leader too, with u = q, which all threads know; only where a rival draws more is the highest looked for. Normals are
drawn for some steps at once, a pair per thread, each at an address that does not depend on the threads.

After `REFRESH` stays (sampling: when new normals are due) all is learned afresh from pulls and totals, each arm's as one
stay, so that rounding cannot pile up. This happens in common memory alone, so that it needs few registers.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from numpy import int32

from banditune.contracts import Floats, rare, scalar
from banditune.policies.ridge import bound_factor, own_option
from banditune.policies.team import any_of, best, from_lane, lane, members, real, share, sync
from banditune.streams import aim, normal_pair

REFRESH = 1000
"""Stays after which everything is computed afresh."""

NEVER = -1e100
"""The score of an arm that is not looked at: the leader while it is pulled, places behind the last arm."""

PATIENCE = 8
"""Pulls of a stay before the first interval, and pulls that an interval must last to be worth its while."""

AHEAD = 0.125
"""An interval is for the pulls in which the leader's precision, 1 / q and a pull each, grows by this share."""

MOST_MEMBERS = 32
"""Threads of the largest team."""

DRAWN = 64
"""Normals drawn at once, or the next multiple of a step's."""

PULLS, TOTAL, FIRST, AT, LOW, HIGH, UNTIL, SINCE, WAIT = range(9)
"""Places of `numbers`: m and E; FIRST is the m from which on r and b are ready; AT is the place of the step's normals. LOW,
HIGH and UNTIL are an interval for e and the m at which it ends; SINCE is the m at which it was computed, WAIT how many
pulls to wait before the next."""

LEADER, Q, SCORE, REACH, SCALE, AGE = range(6)
"""Places of `facts`: the leader, q and the leader's score when the stay began. SCALE is LinUCB's factor before widths and
REACH that times the leader's width when the stay began. AGE counts stays since all was computed afresh. Where every thread
writes, all write the same."""

NUMBERS, FACTS = 9, 6


class Bounds(NamedTuple):
    """What LinUCB's team knows. `along` is u of the module's docstring, `square` is (factor width)^2 of arms.

    Common are all from `facts` on: `roots` and `taken` are r and b of the next pulls, `gain` is g, behind it the leader's
    score, `inverse` is G^-1, `pulled` and `paid` are what arms were pulled and paid. `theta` is the estimate, but only when
    all was computed afresh.
    """

    score: Floats
    along: Floats
    square: Floats
    numbers: Floats
    facts: Floats
    roots: Floats
    taken: Floats
    gain: Floats
    theta: Floats
    inverse: Floats
    pulled: Floats
    paid: Floats


class Samples(NamedTuple):
    """What a sampling team knows. `along` is u of the module's docstring, `turned` are the arms' a = S'x.

    Common are all from `facts` on: `roots` and `taken` are r and b of the next pulls, `lead` is t, behind it the leader's
    score, `normals` are scale z of some steps, `pulled` and `paid` are what arms were pulled and paid.
    `theta` and `root` are the estimate and S, but only when all was computed afresh.
    """

    score: Floats
    along: Floats
    turned: Floats
    numbers: Floats
    facts: Floats
    roots: Floats
    taken: Floats
    lead: Floats
    theta: Floats
    root: Floats
    normals: Floats
    pulled: Floats
    paid: Floats


def held_bounds(share: int, dims: int) -> int:
    """Numbers that a thread of LinUCB's team keeps."""
    return 3 * share + NUMBERS


def most_places(arms: int) -> int:
    """The places for arms in a team, with those behind the last arm; a constant number, so that addresses are too."""
    return arms + MOST_MEMBERS - 1


def common_bounds(arms: int, dims: int) -> int:
    """Numbers that LinUCB's team keeps."""
    return FACTS + 2 * MOST_MEMBERS + 2 * dims + 1 + dims * dims + 2 * most_places(arms)


@scalar
def view_bounds(held, common, setting):
    """The parts of the strips, in the order of the record."""
    dims = setting.dims
    places = share() * members()
    ready = FACTS + members()
    first = FACTS + 2 * members()
    a = first + dims + 1
    b = a + dims
    c = b + dims * dims
    return Bounds(
        held[: share()],
        held[share() : 2 * share()],
        held[2 * share() : 3 * share()],
        held[3 * share() : 3 * share() + NUMBERS],
        common[:FACTS],
        common[FACTS:ready],
        common[ready:first],
        common[first:a],
        common[a:b],
        common[b:c],
        common[c : c + places],
        common[c + places : c + 2 * places],
    )


@scalar
def normals_at_once(dims):
    """Normals of the steps that are drawn together."""
    return max(1, DRAWN // dims) * dims


def held_samples(share: int, dims: int) -> int:
    """Numbers that a thread of a sampling team keeps."""
    return (2 + dims) * share + NUMBERS


def common_samples(arms: int, dims: int) -> int:
    """Numbers that a sampling team keeps; normals come in pairs, so there may be one more than needed."""
    return (
        FACTS + 2 * MOST_MEMBERS + 2 * dims + 1 + dims * dims + int(normals_at_once(dims)) + 1 + 2 * most_places(arms)
    )


@scalar
def view_samples(held, common, setting):
    """The parts of the strips, in the order of the record."""
    dims = setting.dims
    places = share() * members()
    mine = (2 + dims) * share()
    ready = FACTS + members()
    first = FACTS + 2 * members()
    a = first + dims + 1
    b = a + dims
    c = b + dims * dims
    e = c + normals_at_once(dims) + 1
    return Samples(
        held[: share()],
        held[share() : 2 * share()],
        held[2 * share() : mine],
        held[mine : mine + NUMBERS],
        common[:FACTS],
        common[FACTS:ready],
        common[ready:first],
        common[first:a],
        common[a:b],
        common[b:c],
        common[c:e],
        common[e : e + places],
        common[e + places : e + 2 * places],
    )


@scalar
def here():
    """This thread's number, for use off the hot path; all threads call this together.

    It is handed around so that the compiler cannot know it before: else it computes all that depends on it, such as
    addresses of features, ahead of the loop over steps, and no registers are left.
    """
    return from_lane(lane(), lane()) & (members() - 1)


@scalar
def arm_at(me, place):
    """The arm in a place of a thread's share."""
    return me + place * members()


@scalar
def feature_at(setting, me, place, j):
    """A feature of the arm in a place of a thread's share; behind the last arm, one of the last arm."""
    return real(setting.features[j, min(arm_at(me, place), setting.arms - 1)])


@scalar
def start_counts(state, setting):
    """Nothing was pulled. All else waits for the first step, which knows the parameters: no normals and an old age."""
    for arm in range(lane(), setting.arms, members()):
        state.pulled[arm] = real(0.0)
        state.paid[arm] = real(0.0)
    state.numbers[PULLS] = real(0.0)
    state.facts[AGE] = real(REFRESH)
    state.numbers[AT] = real(DRAWN + setting.dims)


@scalar
def prior_root(setting, i, j):
    """An entry of the lower triangular root of the prior's covariance."""
    return real(setting.options[1 + setting.dims + i * setting.dims + j])


@scalar
def score_afresh(state, setting):
    """Every arm's score under theta."""
    me = here()
    for place in range(share()):
        score = real(0.0)
        for j in range(setting.dims):
            score += state.theta[j] * feature_at(setting, me, place, j)
        state.score[place] = score if arm_at(me, place) < setting.arms else real(NEVER)
    state.facts[AGE] = real(0.0)


@scalar
def stay_afresh(theta, setting, gain, q, arm, count, paid, me):
    """Move theta as if all pulls of an arm were one stay; returns their r and b."""
    score = real(0.0)
    for j in range(setting.dims):
        score += theta[j] * real(setting.features[j, arm])
    r, taken = root_and_share(count, q)
    error = (paid - count * score) * r * r
    sync()
    for j in range(me, setting.dims, members()):
        theta[j] += error * gain[j]
    return r, taken


@scalar
def begin_stay(state, arm, score, q):
    """Everybody knows who leads from now on. Between this and the last look at the last stay all have met."""
    numbers = state.numbers
    facts = state.facts
    facts[LEADER] = real(arm)
    numbers[PULLS] = real(0.0)
    numbers[TOTAL] = real(0.0)
    numbers[UNTIL] = real(0.0)
    numbers[SINCE] = real(0.0)
    numbers[WAIT] = real(PATIENCE)
    facts[Q] = q
    facts[SCORE] = score
    look_ahead(state, q)


@scalar
def look_ahead(state, q):
    """Compute r and b for the present number of pulls and the next ones, one per thread."""
    numbers = state.numbers
    pulls = numbers[PULLS] + real(lane())
    numbers[FIRST] = numbers[PULLS]
    state.roots[lane()], state.taken[lane()] = root_and_share(pulls, q)
    sync()


@scalar
def root_and_share(pulls, q):
    """The r and b of so many pulls. With r = 1 / root, b = pulls / (root (1 + root)): one division for both."""
    root = math.sqrt(real(1.0) + pulls * q)
    more = real(1.0) + root
    unit = real(1.0) / (root * more)
    return more * unit, pulls * unit


@scalar
def at_present(numbers, ready):
    """What was computed ahead for the present number of pulls."""
    return ready[int32(numbers[PULLS] - numbers[FIRST])]


@scalar
def learn_in_stay(state, setting, arm, reward, stream):
    """Learn a reward of the leader."""
    numbers = state.numbers
    facts = state.facts
    numbers[PULLS] += real(1.0)
    numbers[TOTAL] += real(reward) - facts[SCORE]
    if numbers[PULLS] - numbers[FIRST] >= real(members()):
        look_ahead(state, facts[Q])


@scalar
def count_stay(state):
    """Remember what the stay's pulls paid."""
    numbers = state.numbers
    facts = state.facts
    sync()
    if lane() == 0:
        facts[AGE] += real(1.0)
        if numbers[PULLS] > real(0.0):
            arm = int32(facts[LEADER])
            state.pulled[arm] += numbers[PULLS]
            state.paid[arm] += numbers[TOTAL] + numbers[PULLS] * facts[SCORE]


@rare
def learn_inverse(inverse, theta, gain, count, paid, setting):
    """G^-1 and theta from what arms were pulled and paid; `gain` is room."""
    dims = setting.dims
    me = here()
    sync()
    unit = real(1.0) / real(setting.options[0])
    for j in range(me, dims, members()):
        theta[j] = real(setting.options[1 + j])
        for i in range(dims):
            entry = real(0.0)
            for k in range(min(i, j) + 1):
                entry += prior_root(setting, i, k) * prior_root(setting, j, k)
            inverse[i * dims + j] = entry * unit
    for arm in range(setting.arms):
        if count[arm] > real(0.0):
            multiply_inverse(inverse, gain, setting, arm, me)
            sync()
            q = length_along(gain, setting, arm)
            r, _ = stay_afresh(theta, setting, gain, q, arm, count[arm], paid[arm], me)
            shrink_inverse(inverse, gain, count[arm] * r * r, dims, me)
            sync()
    sync()


@scalar
def multiply_inverse(inverse, gain, setting, arm, me):
    """g = G^-1 x, an entry per thread."""
    dims = setting.dims
    for j in range(me, dims, members()):
        entry = real(0.0)
        for i in range(dims):
            entry += inverse[i * dims + j] * real(setting.features[i, arm])
        gain[j] = entry


@scalar
def length_along(gain, setting, arm):
    """q = x'g."""
    q = real(0.0)
    for j in range(setting.dims):
        q += gain[j] * real(setting.features[j, arm])
    return max(q, real(0.0))


@scalar
def shrink_inverse(inverse, gain, shrink, dims, me):
    """Take g g' from G^-1, a column per thread."""
    for j in range(me, dims, members()):
        taken = shrink * gain[j]
        for i in range(dims):
            inverse[i * dims + j] -= taken * gain[i]


@scalar
def square_afresh(state, setting):
    """Every arm's (factor width)^2 from G^-1."""
    me = here()
    dims = setting.dims
    scale = state.facts[SCALE]
    for place in range(share()):
        square = real(0.0)
        for i in range(dims):
            entry = real(0.0)
            for j in range(dims):
                entry += state.inverse[i * dims + j] * feature_at(setting, me, place, j)
            square += entry * feature_at(setting, me, place, i)
        state.square[place] = max(square * scale * scale, real(0.0))


@scalar
def point_bounds(state, setting, arm):
    """A stay of an arm begins: g, u, q; the leader is out of the others' sight."""
    me = here()
    dims = setting.dims
    gain = state.gain
    sync()
    multiply_inverse(state.inverse, gain, setting, arm, me)
    for place in range(share()):
        if arm_at(me, place) == arm:
            gain[dims] = state.score[place]
            state.score[place] = real(NEVER)
        state.along[place] = real(0.0)
    sync()
    for j in range(dims):
        entry = gain[j]
        for place in range(share()):
            state.along[place] += entry * feature_at(setting, me, place, j)
    q = length_along(gain, setting, arm)
    begin_stay(state, arm, gain[dims], q)
    state.facts[REACH] = state.facts[SCALE] * math.sqrt(q)


@scalar
def bring_in_bounds(state, setting, r):
    """Write the stay into scores, squares and G^-1."""
    me = here()
    numbers = state.numbers
    facts = state.facts
    shrink = numbers[PULLS] * r * r
    error = numbers[TOTAL] * r * r
    scale = facts[SCALE]
    leader = int32(facts[LEADER])
    for place in range(share()):
        along = state.along[place]
        # The leader by the same formulas, so that arms with the same features stay the same.
        score = facts[SCORE] if arm_at(me, place) == leader else state.score[place]
        state.score[place] = score + error * along
        left = state.square[place] - scale * scale * shrink * along * along
        state.square[place] = max(left, real(0.0))
    shrink_inverse(state.inverse, state.gain, shrink, setting.dims, me)


@scalar
def some_rival_reaches(state, r):
    """Whether the index of one of this thread's arms reaches the leader's."""
    numbers = state.numbers
    facts = state.facts
    moved = -numbers[TOTAL] * r * r
    index = facts[SCORE] - moved * facts[Q] + facts[REACH] * r
    shrink = facts[SCALE] * facts[SCALE] * numbers[PULLS] * r * r
    said = False
    for place in range(share()):
        along = state.along[place]
        gap = (index - state.score[place]) + moved * along
        beyond = gap * gap + (shrink * (along * along) - state.square[place])
        said = said | (gap < real(0.0)) | (beyond <= real(0.0))
    return said


@scalar
def inside(state, r):
    """Whether this thread's interval says that none of its arms reaches the leader's index."""
    numbers = state.numbers
    error = numbers[TOTAL] * r * r
    return (error > numbers[LOW]) & (error < numbers[HIGH])


@scalar
def look_for_interval(state, r):
    """Where the leader has stayed for a while, find what e must stay between; not soon again where that did not last."""
    numbers = state.numbers
    pulls = numbers[PULLS]
    if pulls >= numbers[SINCE] + numbers[WAIT]:
        lasted = numbers[UNTIL] == real(0.0) or pulls - numbers[SINCE] > real(PATIENCE)
        numbers[WAIT] = real(0.0) if lasted else real(2.0) * numbers[WAIT] + real(PATIENCE)
        numbers[SINCE] = pulls
        numbers[UNTIL] = real(0.0)
        if lasted:
            find_interval(state, r)


@scalar
def find_interval(state, r):
    """What e must stay between so that none of this thread's arms reaches the leader's index for some pulls.

    Rivals with their present widths, which only shrink, the leader with the last one of the interval: then every rival asks
    e to be on one side of a number.
    """
    numbers = state.numbers
    facts = state.facts
    q = facts[Q]
    pulls = numbers[PULLS]
    until = pulls + real(1.0) + real(AHEAD) * (pulls + min(real(1.0) / q, real(1e6)))
    width = facts[REACH] / math.sqrt(real(1.0) + until * q)
    shrink = facts[SCALE] * facts[SCALE] * pulls * r * r
    low = real(NEVER)
    high = real(-NEVER)
    for place in range(share()):
        along = state.along[place]
        reach = math.sqrt(max(state.square[place] - shrink * along * along, real(0.0)))
        needed = (reach - width) + (state.score[place] - facts[SCORE])
        apart = q - along
        if apart > real(0.0):
            low = max(low, needed / apart)
        elif apart < real(0.0):
            high = min(high, needed / apart)
        elif needed >= real(0.0):
            high = real(NEVER)
    numbers[LOW] = low
    numbers[HIGH] = high
    numbers[UNTIL] = until


@scalar
def highest_index(state):
    """The arm with the highest index."""
    me = here()
    value = state.score[0] + math.sqrt(state.square[0])
    arm = int32(arm_at(me, 0))
    for place in range(1, share()):
        index = state.score[place] + math.sqrt(state.square[place])
        if index > value:
            value = index
            arm = int32(arm_at(me, place))
    _, arm = best(value, arm)
    return arm


@scalar
def choose_bound(state, setting, step, params, stream):
    """The highest x'theta + gamma c sqrt(x' G^-1 x)."""
    numbers = state.numbers
    facts = state.facts
    r = real(1.0)
    leads = False
    if step == 0:
        facts[SCALE] = real(params[0] * bound_factor(setting))
    else:
        r = at_present(numbers, state.roots)
        leads = numbers[PULLS] <= numbers[UNTIL] and not any_of(not inside(state, r))
        if not leads:
            leads = not any_of(some_rival_reaches(state, r))
            if leads:
                look_for_interval(state, r)
    if not leads:
        old = facts[AGE] >= real(REFRESH)
        count_stay(state)
        if old:
            learn_inverse(state.inverse, state.theta, state.gain, state.pulled, state.paid, setting)
            score_afresh(state, setting)
            square_afresh(state, setting)
        else:
            bring_in_bounds(state, setting, r)
        point_bounds(state, setting, highest_index(state))
    return int(int32(facts[LEADER]))


@rare
def learn_root(root, theta, lead, gain, count, paid, setting):
    """S and theta from what arms were pulled and paid; `lead` and `gain` are room."""
    dims = setting.dims
    me = here()
    sync()
    unit = real(1.0) / math.sqrt(real(setting.options[0]))
    for j in range(me, dims, members()):
        theta[j] = real(setting.options[1 + j])
        for i in range(dims):
            root[i * dims + j] = prior_root(setting, i, j) * unit
    sync()
    for arm in range(setting.arms):
        if count[arm] > real(0.0):
            q = multiply_root(root, lead, gain, setting, arm, me)
            _, taken = stay_afresh(theta, setting, gain, q, arm, count[arm], paid[arm], me)
            for i in range(me, dims, members()):
                for j in range(dims):
                    root[i * dims + j] -= taken * gain[i] * lead[j]
            sync()


@scalar
def multiply_root(root, lead, gain, setting, arm, me):
    """t = S'x and g = S t, an entry per thread; returns q = t't."""
    dims = setting.dims
    for j in range(me, dims, members()):
        entry = real(0.0)
        for i in range(dims):
            entry += root[i * dims + j] * real(setting.features[i, arm])
        lead[j] = entry
    sync()
    for i in range(me, dims, members()):
        entry = real(0.0)
        for j in range(dims):
            entry += root[i * dims + j] * lead[j]
        gain[i] = entry
    sync()
    q = real(0.0)
    for j in range(dims):
        q += lead[j] * lead[j]
    return q


@scalar
def turn_afresh(state, setting):
    """Every arm's a = S'x."""
    me = here()
    dims = setting.dims
    for j in range(dims):
        for place in range(share()):
            state.turned[place * dims + j] = real(0.0)
    for i in range(dims):
        for place in range(share()):
            state.along[place] = feature_at(setting, me, place, i)
        for j in range(dims):
            entry = state.root[i * dims + j]
            for place in range(share()):
                state.turned[place * dims + j] += entry * state.along[place]


@scalar
def point_samples(state, setting, arm):
    """A stay of an arm begins: t, u, q; the leader is out of the others' sight."""
    me = here()
    dims = setting.dims
    lead = state.lead
    sync()
    for place in range(share()):
        if arm_at(me, place) == arm:
            for j in range(dims):
                lead[j] = state.turned[place * dims + j]
            lead[dims] = state.score[place]
            state.score[place] = real(NEVER)
        state.along[place] = real(0.0)
    sync()
    q = real(0.0)
    for j in range(dims):
        entry = lead[j]
        q += entry * entry
        for place in range(share()):
            state.along[place] += entry * state.turned[place * dims + j]
    begin_stay(state, arm, lead[dims], q)


@scalar
def bring_in_samples(state, setting, r, taken):
    """Write the stay into scores and a = S'x."""
    me = here()
    numbers = state.numbers
    facts = state.facts
    dims = setting.dims
    error = numbers[TOTAL] * r * r
    leader = int32(facts[LEADER])
    for place in range(share()):
        score = facts[SCORE] if arm_at(me, place) == leader else state.score[place]
        state.score[place] = score + error * state.along[place]
        state.along[place] *= taken
    for j in range(dims):
        entry = state.lead[j]
        for place in range(share()):
            state.turned[place * dims + j] -= state.along[place] * entry


@scalar
def learn_samples(state, setting):
    """Learn all afresh, with normals as room; then nobody leads, so that every arm draws more than the leader."""
    count_stay(state)
    learn_root(state.root, state.theta, state.lead, state.normals, state.pulled, state.paid, setting)
    score_afresh(state, setting)
    turn_afresh(state, setting)
    sync()
    for j in range(here(), setting.dims, members()):
        state.lead[j] = real(0.0)
    for place in range(share()):
        state.along[place] = real(0.0)
    begin_stay(state, setting.arms, real(2.0 * NEVER), real(0.0))


@scalar
def draw_normals(state, setting, step, scale, stream):
    """Normals for this step and some that follow, times the scale."""
    sync()
    for pair in range(here(), (normals_at_once(setting.dims) + 1) // 2, members()):
        aim(stream, pair, step)
        first, second = normal_pair(stream)
        state.normals[2 * pair] = real(scale * first)
        state.normals[2 * pair + 1] = real(scale * second)
    sync()
    state.numbers[AT] = real(0.0)


@scalar
def highest_draw(state, setting, at, moved):
    """The highest score under the draw among this thread's arms; u moves it by `moved`."""
    dims = setting.dims
    value = real(0.0)
    arm = int32(arm_at(lane(), 0))
    for place in range(share()):
        drawn = state.score[place] + moved * state.along[place]
        for j in range(dims):
            drawn += state.turned[place * dims + j] * state.normals[at + j]
        if place == 0 or drawn > value:
            value = drawn
            arm = int32(arm_at(lane(), place))
    return value, arm


@scalar
def choose_sample(state, setting, step, params, stream):
    """The highest score under a draw of theta."""
    numbers = state.numbers
    facts = state.facts
    dims = setting.dims
    if numbers[AT] >= real(normals_at_once(dims)):
        if state.facts[AGE] >= real(REFRESH):
            learn_samples(state, setting)
        draw_normals(state, setting, step, params[0] * own_option(setting, 0), stream)
    at = int32(numbers[AT])
    numbers[AT] += real(dims)
    r = at_present(numbers, state.roots)
    taken = at_present(numbers, state.taken)
    error = numbers[TOTAL] * r * r
    along = real(0.0)
    for j in range(dims):
        along += state.lead[j] * state.normals[at + j]
    # The leader as its rivals, operation by operation: arms with the same features must tie.
    moved = error - taken * along
    drawn = facts[SCORE] + moved * facts[Q]
    for j in range(dims):
        drawn += state.lead[j] * state.normals[at + j]
    value, arm = highest_draw(state, setting, at, moved)
    if any_of(value >= drawn):
        value, arm = best(value, arm)
        if value > drawn or arm < int32(facts[LEADER]):
            count_stay(state)
            bring_in_samples(state, setting, r, taken)
            point_samples(state, setting, arm)
    return int(int32(facts[LEADER]))
