"""LinUCB played by a warp, from stay to stay."""

from __future__ import annotations

import math
from typing import NamedTuple

from numpy import int32

from banditune.core.arrays import FloatArray
from banditune.core.scalar import noinline, scalar
from banditune.simulation.estimators.confidence_factor import compute_confidence_factor
from banditune.simulation.gpu.warp_linear import (
    AGE,
    EXCLUDED_SCORE,
    HIGH,
    INTERVAL_PATIENCE,
    LANE_SCALARS,
    LEADER,
    LOW,
    MAX_LANES,
    PULLS,
    REACH,
    REFRESH_STAYS,
    SCALE,
    SCORE,
    SINCE,
    TOTAL,
    UNTIL,
    WAIT,
    WARP_SCALARS,
    Q,
    begin_linear_stay,
    count_most_places,
    locate_arm,
    read_ahead,
    read_feature,
    read_prior_root,
    recompute_scores,
    record_stay,
    replay_stay,
)
from banditune.simulation.gpu.warp_primitives import (
    argmax_over_lanes,
    cast_real,
    count_arms_per_lane,
    count_lanes,
    get_opaque_lane,
    sync_lanes,
    vote_any,
)

INTERVAL_GROWTH = 0.125
"""An interval is for the pulls in which the leader's precision, 1 / q and a pull each, grows by this share."""


class LinUCBWarpState(NamedTuple):
    """What LinUCB's team knows. `along` is u of the module's docstring, `square` is (factor width)^2 of arms.

    Common are all from `facts` on: `roots` and `taken` are r and b of the next pulls, `gain` is g, behind it the leader's
    score, `inverse` is G^-1, `pulled` and `paid` are what arms were pulled and paid. `theta` is the estimate, but only when
    all was computed afresh.
    """

    score: FloatArray
    leader_covariance: FloatArray
    square: FloatArray
    numbers: FloatArray
    warp_scalars: FloatArray
    roots: FloatArray
    corrections: FloatArray
    gain: FloatArray
    theta: FloatArray
    inverse: FloatArray
    pulled: FloatArray
    totals: FloatArray


def count_linucb_registers(share: int, dims: int) -> int:
    """Numbers that a thread of LinUCB's team keeps."""
    return 3 * share + LANE_SCALARS


def count_linucb_shared(arms: int, dims: int) -> int:
    """Numbers that LinUCB's team keeps."""
    return WARP_SCALARS + 2 * MAX_LANES + 2 * dims + 1 + dims * dims + 2 * count_most_places(arms)


@scalar
def view_linucb_warp(held, common, setting):
    """The parts of the strips, in the order of the record."""
    dims = setting.dims
    places = count_arms_per_lane() * count_lanes()
    ready = WARP_SCALARS + count_lanes()
    first = WARP_SCALARS + 2 * count_lanes()
    a = first + dims + 1
    b = a + dims
    c = b + dims * dims
    return LinUCBWarpState(
        held[: count_arms_per_lane()],
        held[count_arms_per_lane() : 2 * count_arms_per_lane()],
        held[2 * count_arms_per_lane() : 3 * count_arms_per_lane()],
        held[3 * count_arms_per_lane() : 3 * count_arms_per_lane() + LANE_SCALARS],
        common[:WARP_SCALARS],
        common[WARP_SCALARS:ready],
        common[ready:first],
        common[first:a],
        common[a:b],
        common[b:c],
        common[c : c + places],
        common[c + places : c + 2 * places],
    )


@noinline
def rebuild_inverse(inverse, theta, gain, count, paid, setting):
    """G^-1 and theta from what arms were pulled and paid; `gain` is room."""
    dims = setting.dims
    me = get_opaque_lane()
    sync_lanes()
    unit = cast_real(1.0) / cast_real(setting.options[0])
    for j in range(me, dims, count_lanes()):
        theta[j] = cast_real(setting.options[1 + j])
        for i in range(dims):
            entry = cast_real(0.0)
            for k in range(min(i, j) + 1):
                entry += read_prior_root(setting, i, k) * read_prior_root(setting, j, k)
            inverse[i * dims + j] = entry * unit
    for arm in range(setting.arms):
        if count[arm] > cast_real(0.0):
            multiply_inverse(inverse, gain, setting, arm, me)
            sync_lanes()
            q = compute_leader_variance(gain, setting, arm)
            r, _ = replay_stay(theta, setting, gain, q, arm, count[arm], paid[arm], me)
            shrink_inverse(inverse, gain, count[arm] * r * r, dims, me)
            sync_lanes()
    sync_lanes()


@scalar
def multiply_inverse(inverse, gain, setting, arm, me):
    """g = G^-1 x, an entry per thread."""
    dims = setting.dims
    for j in range(me, dims, count_lanes()):
        entry = cast_real(0.0)
        for i in range(dims):
            entry += inverse[i * dims + j] * cast_real(setting.features[i, arm])
        gain[j] = entry


@scalar
def compute_leader_variance(gain, setting, arm):
    """q = x'g."""
    q = cast_real(0.0)
    for j in range(setting.dims):
        q += gain[j] * cast_real(setting.features[j, arm])
    return max(q, cast_real(0.0))


@scalar
def shrink_inverse(inverse, gain, shrink, dims, me):
    """Take g g' from G^-1, a column per thread."""
    for j in range(me, dims, count_lanes()):
        taken = shrink * gain[j]
        for i in range(dims):
            inverse[i * dims + j] -= taken * gain[i]


@scalar
def recompute_squared_widths(state, setting):
    """Every arm's (factor width)^2 from G^-1."""
    me = get_opaque_lane()
    dims = setting.dims
    scale = state.warp_scalars[SCALE]
    for place in range(count_arms_per_lane()):
        square = cast_real(0.0)
        for i in range(dims):
            entry = cast_real(0.0)
            for j in range(dims):
                entry += state.inverse[i * dims + j] * read_feature(setting, me, place, j)
            square += entry * read_feature(setting, me, place, i)
        state.square[place] = max(square * scale * scale, cast_real(0.0))


@scalar
def begin_linucb_stay(state, setting, arm):
    """A stay of an arm begins: g, u, q; the leader is out of the others' sight."""
    me = get_opaque_lane()
    dims = setting.dims
    gain = state.gain
    sync_lanes()
    multiply_inverse(state.inverse, gain, setting, arm, me)
    for place in range(count_arms_per_lane()):
        if locate_arm(me, place) == arm:
            gain[dims] = state.score[place]
            state.score[place] = cast_real(EXCLUDED_SCORE)
        state.leader_covariance[place] = cast_real(0.0)
    sync_lanes()
    for j in range(dims):
        entry = gain[j]
        for place in range(count_arms_per_lane()):
            state.leader_covariance[place] += entry * read_feature(setting, me, place, j)
    q = compute_leader_variance(gain, setting, arm)
    begin_linear_stay(state, arm, gain[dims], q)
    state.warp_scalars[REACH] = state.warp_scalars[SCALE] * math.sqrt(q)


@scalar
def apply_linucb_stay(state, setting, r):
    """Write the stay into scores, squares and G^-1."""
    me = get_opaque_lane()
    numbers = state.numbers
    facts = state.warp_scalars
    shrink = numbers[PULLS] * r * r
    error = numbers[TOTAL] * r * r
    scale = facts[SCALE]
    leader = int32(facts[LEADER])
    for place in range(count_arms_per_lane()):
        along = state.leader_covariance[place]
        # The leader by the same formulas, so that arms with the same features stay the same.
        score = facts[SCORE] if locate_arm(me, place) == leader else state.score[place]
        state.score[place] = score + error * along
        left = state.square[place] - scale * scale * shrink * along * along
        state.square[place] = max(left, cast_real(0.0))
    shrink_inverse(state.inverse, state.gain, shrink, setting.dims, me)


@scalar
def has_reaching_rival(state, r):
    """Whether the index of one of this thread's arms reaches the leader's."""
    numbers = state.numbers
    facts = state.warp_scalars
    moved = -numbers[TOTAL] * r * r
    index = facts[SCORE] - moved * facts[Q] + facts[REACH] * r
    shrink = facts[SCALE] * facts[SCALE] * numbers[PULLS] * r * r
    said = False
    for place in range(count_arms_per_lane()):
        along = state.leader_covariance[place]
        gap = (index - state.score[place]) + moved * along
        beyond = gap * gap + (shrink * (along * along) - state.square[place])
        said = said | (gap < cast_real(0.0)) | (beyond <= cast_real(0.0))
    return said


@scalar
def is_in_linucb_interval(state, r):
    """Whether this thread's interval says that none of its arms reaches the leader's index."""
    numbers = state.numbers
    error = numbers[TOTAL] * r * r
    return (error > numbers[LOW]) & (error < numbers[HIGH])


@scalar
def update_linucb_interval(state, r):
    """Where the leader has stayed for a while, find what e must stay between; not soon again where that did not last."""
    numbers = state.numbers
    pulls = numbers[PULLS]
    if pulls >= numbers[SINCE] + numbers[WAIT]:
        lasted = numbers[UNTIL] == cast_real(0.0) or pulls - numbers[SINCE] > cast_real(INTERVAL_PATIENCE)
        numbers[WAIT] = cast_real(0.0) if lasted else cast_real(2.0) * numbers[WAIT] + cast_real(INTERVAL_PATIENCE)
        numbers[SINCE] = pulls
        numbers[UNTIL] = cast_real(0.0)
        if lasted:
            find_linucb_interval(state, r)


@scalar
def find_linucb_interval(state, r):
    """What e must stay between so that none of this thread's arms reaches the leader's index for some pulls.

    Rivals with their present widths, which only shrink, the leader with the last one of the interval: then every rival asks
    e to be on one side of a number.
    """
    numbers = state.numbers
    facts = state.warp_scalars
    q = facts[Q]
    pulls = numbers[PULLS]
    until = pulls + cast_real(1.0) + cast_real(INTERVAL_GROWTH) * (pulls + min(cast_real(1.0) / q, cast_real(1e6)))
    width = facts[REACH] / math.sqrt(cast_real(1.0) + until * q)
    shrink = facts[SCALE] * facts[SCALE] * pulls * r * r
    low = cast_real(EXCLUDED_SCORE)
    high = cast_real(-EXCLUDED_SCORE)
    for place in range(count_arms_per_lane()):
        along = state.leader_covariance[place]
        reach = math.sqrt(max(state.square[place] - shrink * along * along, cast_real(0.0)))
        needed = (reach - width) + (state.score[place] - facts[SCORE])
        apart = q - along
        if apart > cast_real(0.0):
            low = max(low, needed / apart)
        elif apart < cast_real(0.0):
            high = min(high, needed / apart)
        elif needed >= cast_real(0.0):
            high = cast_real(EXCLUDED_SCORE)
    numbers[LOW] = low
    numbers[HIGH] = high
    numbers[UNTIL] = until


@scalar
def find_highest_linucb_index(state):
    """The arm with the highest index."""
    me = get_opaque_lane()
    value = state.score[0] + math.sqrt(state.square[0])
    arm = int32(locate_arm(me, 0))
    for place in range(1, count_arms_per_lane()):
        index = state.score[place] + math.sqrt(state.square[place])
        if index > value:
            value = index
            arm = int32(locate_arm(me, place))
    _, arm = argmax_over_lanes(value, arm)
    return arm


@scalar
def choose_linucb_warp(state, setting, step, params, stream):
    """The highest x'theta + gamma c sqrt(x' G^-1 x)."""
    numbers = state.numbers
    facts = state.warp_scalars
    r = cast_real(1.0)
    leads = False
    if step == 0:
        facts[SCALE] = cast_real(params[0] * compute_confidence_factor(setting))
    else:
        r = read_ahead(numbers, state.roots)
        leads = numbers[PULLS] <= numbers[UNTIL] and not vote_any(not is_in_linucb_interval(state, r))
        if not leads:
            leads = not vote_any(has_reaching_rival(state, r))
            if leads:
                update_linucb_interval(state, r)
    if not leads:
        old = facts[AGE] >= cast_real(REFRESH_STAYS)
        record_stay(state)
        if old:
            rebuild_inverse(state.inverse, state.theta, state.gain, state.pulled, state.totals, setting)
            recompute_scores(state, setting)
            recompute_squared_widths(state, setting)
        else:
            apply_linucb_stay(state, setting, r)
        begin_linucb_stay(state, setting, find_highest_linucb_index(state))
    return int(int32(facts[LEADER]))
