"""Linear Thompson sampling played by a warp, from stay to stay."""

from __future__ import annotations

import math
from typing import NamedTuple

from numpy import int32

from banditune.core.arrays import FloatArray
from banditune.core.distributions import normal_pair
from banditune.core.scalar import noinline, scalar
from banditune.core.streams import seek
from banditune.simulation.estimators.whitened_features import read_policy_option
from banditune.simulation.gpu.warp_linear import (
    AGE,
    AT,
    EXCLUDED_SCORE,
    LANE_SCALARS,
    LEADER,
    MAX_LANES,
    NORMALS_PER_DRAW,
    REFRESH_STAYS,
    SCORE,
    TOTAL,
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
    get_lane,
    get_opaque_lane,
    sync_lanes,
    vote_any,
)


class LinTSWarpState(NamedTuple):
    """What a sampling team knows. `along` is u of the module's docstring, `turned` are the arms' a = S'x.

    Common are all from `facts` on: `roots` and `taken` are r and b of the next pulls, `lead` is t, behind it the leader's
    score, `normals` are scale z of some steps, `pulled` and `paid` are what arms were pulled and paid.
    `theta` and `root` are the estimate and S, but only when all was computed afresh.
    """

    score: FloatArray
    leader_covariance: FloatArray
    whitened: FloatArray
    numbers: FloatArray
    warp_scalars: FloatArray
    roots: FloatArray
    corrections: FloatArray
    leader_whitened: FloatArray
    theta: FloatArray
    root: FloatArray
    normals: FloatArray
    pulled: FloatArray
    totals: FloatArray


@scalar
def count_lints_normals(dims):
    """Normals of the steps that are drawn together."""
    return max(1, NORMALS_PER_DRAW // dims) * dims


def count_lints_registers(share: int, dims: int) -> int:
    """Numbers that a thread of a sampling team keeps."""
    return (2 + dims) * share + LANE_SCALARS


def count_lints_shared(arms: int, dims: int) -> int:
    """Numbers that a sampling team keeps; normals come in pairs, so there may be one more than needed."""
    return (
        WARP_SCALARS
        + 2 * MAX_LANES
        + 2 * dims
        + 1
        + dims * dims
        + int(count_lints_normals(dims))
        + 1
        + 2 * count_most_places(arms)
    )


@scalar
def view_lints_warp(held, common, setting):
    """The parts of the strips, in the order of the record."""
    dims = setting.dims
    places = count_arms_per_lane() * count_lanes()
    mine = (2 + dims) * count_arms_per_lane()
    ready = WARP_SCALARS + count_lanes()
    first = WARP_SCALARS + 2 * count_lanes()
    a = first + dims + 1
    b = a + dims
    c = b + dims * dims
    e = c + count_lints_normals(dims) + 1
    return LinTSWarpState(
        held[: count_arms_per_lane()],
        held[count_arms_per_lane() : 2 * count_arms_per_lane()],
        held[2 * count_arms_per_lane() : mine],
        held[mine : mine + LANE_SCALARS],
        common[:WARP_SCALARS],
        common[WARP_SCALARS:ready],
        common[ready:first],
        common[first:a],
        common[a:b],
        common[b:c],
        common[c:e],
        common[e : e + places],
        common[e + places : e + 2 * places],
    )


@noinline
def rebuild_root(root, theta, lead, gain, count, paid, setting):
    """S and theta from what arms were pulled and paid; `lead` and `gain` are room."""
    dims = setting.dims
    me = get_opaque_lane()
    sync_lanes()
    unit = cast_real(1.0) / math.sqrt(cast_real(setting.options[0]))
    for j in range(me, dims, count_lanes()):
        theta[j] = cast_real(setting.options[1 + j])
        for i in range(dims):
            root[i * dims + j] = read_prior_root(setting, i, j) * unit
    sync_lanes()
    for arm in range(setting.arms):
        if count[arm] > cast_real(0.0):
            q = multiply_root(root, lead, gain, setting, arm, me)
            _, taken = replay_stay(theta, setting, gain, q, arm, count[arm], paid[arm], me)
            for i in range(me, dims, count_lanes()):
                for j in range(dims):
                    root[i * dims + j] -= taken * gain[i] * lead[j]
            sync_lanes()


@scalar
def multiply_root(root, lead, gain, setting, arm, me):
    """t = S'x and g = S t, an entry per thread; returns q = t't."""
    dims = setting.dims
    for j in range(me, dims, count_lanes()):
        entry = cast_real(0.0)
        for i in range(dims):
            entry += root[i * dims + j] * cast_real(setting.features[i, arm])
        lead[j] = entry
    sync_lanes()
    for i in range(me, dims, count_lanes()):
        entry = cast_real(0.0)
        for j in range(dims):
            entry += root[i * dims + j] * lead[j]
        gain[i] = entry
    sync_lanes()
    q = cast_real(0.0)
    for j in range(dims):
        q += lead[j] * lead[j]
    return q


@scalar
def whiten_lints_arms(state, setting):
    """Every arm's a = S'x."""
    me = get_opaque_lane()
    dims = setting.dims
    for j in range(dims):
        for place in range(count_arms_per_lane()):
            state.whitened[place * dims + j] = cast_real(0.0)
    for i in range(dims):
        for place in range(count_arms_per_lane()):
            state.leader_covariance[place] = read_feature(setting, me, place, i)
        for j in range(dims):
            entry = state.root[i * dims + j]
            for place in range(count_arms_per_lane()):
                state.whitened[place * dims + j] += entry * state.leader_covariance[place]


@scalar
def begin_lints_stay(state, setting, arm):
    """A stay of an arm begins: t, u, q; the leader is out of the others' sight."""
    me = get_opaque_lane()
    dims = setting.dims
    lead = state.leader_whitened
    sync_lanes()
    for place in range(count_arms_per_lane()):
        if locate_arm(me, place) == arm:
            for j in range(dims):
                lead[j] = state.whitened[place * dims + j]
            lead[dims] = state.score[place]
            state.score[place] = cast_real(EXCLUDED_SCORE)
        state.leader_covariance[place] = cast_real(0.0)
    sync_lanes()
    q = cast_real(0.0)
    for j in range(dims):
        entry = lead[j]
        q += entry * entry
        for place in range(count_arms_per_lane()):
            state.leader_covariance[place] += entry * state.whitened[place * dims + j]
    begin_linear_stay(state, arm, lead[dims], q)


@scalar
def apply_lints_stay(state, setting, r, taken):
    """Write the stay into scores and a = S'x."""
    me = get_opaque_lane()
    numbers = state.numbers
    facts = state.warp_scalars
    dims = setting.dims
    error = numbers[TOTAL] * r * r
    leader = int32(facts[LEADER])
    for place in range(count_arms_per_lane()):
        score = facts[SCORE] if locate_arm(me, place) == leader else state.score[place]
        state.score[place] = score + error * state.leader_covariance[place]
        state.leader_covariance[place] *= taken
    for j in range(dims):
        entry = state.leader_whitened[j]
        for place in range(count_arms_per_lane()):
            state.whitened[place * dims + j] -= state.leader_covariance[place] * entry


@scalar
def rebuild_lints(state, setting):
    """Learn all afresh, with normals as room; then nobody leads, so that every arm draws more than the leader."""
    record_stay(state)
    rebuild_root(state.root, state.theta, state.leader_whitened, state.normals, state.pulled, state.totals, setting)
    recompute_scores(state, setting)
    whiten_lints_arms(state, setting)
    sync_lanes()
    for j in range(get_opaque_lane(), setting.dims, count_lanes()):
        state.leader_whitened[j] = cast_real(0.0)
    for place in range(count_arms_per_lane()):
        state.leader_covariance[place] = cast_real(0.0)
    begin_linear_stay(state, setting.arms, cast_real(2.0 * EXCLUDED_SCORE), cast_real(0.0))


@scalar
def draw_lints_normals(state, setting, step, scale, stream):
    """Normals for this step and some that follow, times the scale."""
    sync_lanes()
    for pair in range(get_opaque_lane(), (count_lints_normals(setting.dims) + 1) // 2, count_lanes()):
        seek(stream, pair, step)
        first, second = normal_pair(stream)
        state.normals[2 * pair] = cast_real(scale * first)
        state.normals[2 * pair + 1] = cast_real(scale * second)
    sync_lanes()
    state.numbers[AT] = cast_real(0.0)


@scalar
def find_highest_lints_draw(state, setting, at, moved):
    """The highest score under the draw among this thread's arms; u moves it by `moved`."""
    dims = setting.dims
    value = cast_real(0.0)
    arm = int32(locate_arm(get_lane(), 0))
    for place in range(count_arms_per_lane()):
        drawn = state.score[place] + moved * state.leader_covariance[place]
        for j in range(dims):
            drawn += state.whitened[place * dims + j] * state.normals[at + j]
        if place == 0 or drawn > value:
            value = drawn
            arm = int32(locate_arm(get_lane(), place))
    return value, arm


@scalar
def choose_lints_warp(state, setting, step, params, stream):
    """The highest score under a draw of theta."""
    numbers = state.numbers
    facts = state.warp_scalars
    dims = setting.dims
    if numbers[AT] >= cast_real(count_lints_normals(dims)):
        if state.warp_scalars[AGE] >= cast_real(REFRESH_STAYS):
            rebuild_lints(state, setting)
        draw_lints_normals(state, setting, step, params[0] * read_policy_option(setting, 0), stream)
    at = int32(numbers[AT])
    numbers[AT] += cast_real(dims)
    r = read_ahead(numbers, state.roots)
    taken = read_ahead(numbers, state.corrections)
    error = numbers[TOTAL] * r * r
    along = cast_real(0.0)
    for j in range(dims):
        along += state.leader_whitened[j] * state.normals[at + j]
    # The leader as its rivals, operation by operation: arms with the same features must tie.
    moved = error - taken * along
    drawn = facts[SCORE] + moved * facts[Q]
    for j in range(dims):
        drawn += state.leader_whitened[j] * state.normals[at + j]
    value, arm = find_highest_lints_draw(state, setting, at, moved)
    if vote_any(value >= drawn):
        value, arm = argmax_over_lanes(value, arm)
        if value > drawn or arm < int32(facts[LEADER]):
            record_stay(state)
            apply_lints_stay(state, setting, r, taken)
            begin_lints_stay(state, setting, arm)
    return int(int32(facts[LEADER]))
