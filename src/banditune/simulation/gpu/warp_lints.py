"""The warp version of linear Thompson sampling, from streak to streak; see `warp_linear` for the formulas."""

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
    EXCLUDED_SCORE,
    LANE_SCALARS,
    LEADER,
    MAX_LANES,
    NEXT_NORMAL,
    NORMALS_PER_DRAW,
    REFRESH_STREAKS,
    SCORE,
    TOTAL,
    WARP_SCALARS,
    Q,
    begin_linear_streak,
    count_padded_arms,
    locate_arm,
    read_ahead,
    read_feature,
    read_prior_root,
    recompute_scores,
    record_streak,
    replay_streak,
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
    """The state of a warp: entries per arm of a lane, scalars of a lane, and from `warp_scalars` on shared entries.

    `whitened` holds S'x of every arm, `leader_covariance` its product with t, which is x' G^-1 x_leader. `roots` and
    `corrections` are r and b of the next pulls. `leader_whitened` is t, with the leader's score behind it. `normals`
    are the scaled normals of some steps, `pulled` and `totals` the pulls and total rewards of all arms. `theta` and
    `root` are the estimate and S; they are valid only after a recomputation.
    """

    score: FloatArray
    leader_covariance: FloatArray
    whitened: FloatArray
    lane_scalars: FloatArray
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
    """Count the normals that are drawn together."""
    return max(1, NORMALS_PER_DRAW // dims) * dims


def count_lints_registers(share: int, dims: int) -> int:
    """Count the numbers that a lane keeps."""
    return (2 + dims) * share + LANE_SCALARS


def count_lints_shared(arms: int, dims: int) -> int:
    """Count the numbers that a warp shares. Normals are drawn in pairs, so there may be one more than needed."""
    return (
        WARP_SCALARS
        + 2 * MAX_LANES
        + 2 * dims
        + 1
        + dims * dims
        + int(count_lints_normals(dims))
        + 1
        + 2 * count_padded_arms(arms)
    )


@scalar
def view_lints_warp(registers, shared, setting):
    """Split both memories, in the order of the record."""
    dims = setting.dims
    padded_arms = count_arms_per_lane() * count_lanes()
    features_end = (2 + dims) * count_arms_per_lane()
    roots_end = WARP_SCALARS + count_lanes()
    corrections_end = WARP_SCALARS + 2 * count_lanes()
    a = corrections_end + dims + 1
    b = a + dims
    c = b + dims * dims
    e = c + count_lints_normals(dims) + 1
    return LinTSWarpState(
        registers[: count_arms_per_lane()],
        registers[count_arms_per_lane() : 2 * count_arms_per_lane()],
        registers[2 * count_arms_per_lane() : features_end],
        registers[features_end : features_end + LANE_SCALARS],
        shared[:WARP_SCALARS],
        shared[WARP_SCALARS:roots_end],
        shared[roots_end:corrections_end],
        shared[corrections_end:a],
        shared[a:b],
        shared[b:c],
        shared[c:e],
        shared[e : e + padded_arms],
        shared[e + padded_arms : e + 2 * padded_arms],
    )


@noinline
def rebuild_root(root, theta, leader_whitened, gain, pulls, totals, setting):
    """Compute S and theta from pulls and totals. `leader_whitened` and `gain` are scratch memory."""
    dims = setting.dims
    lane = get_opaque_lane()
    sync_lanes()
    unit = cast_real(1.0) / math.sqrt(cast_real(setting.options[0]))
    for j in range(lane, dims, count_lanes()):
        theta[j] = cast_real(setting.options[1 + j])
        for i in range(dims):
            root[i * dims + j] = read_prior_root(setting, i, j) * unit
    sync_lanes()
    for arm in range(setting.arms):
        if pulls[arm] > cast_real(0.0):
            q = multiply_root(root, leader_whitened, gain, setting, arm, lane)
            _, correction = replay_streak(theta, setting, gain, q, arm, pulls[arm], totals[arm], lane)
            for i in range(lane, dims, count_lanes()):
                for j in range(dims):
                    root[i * dims + j] -= correction * gain[i] * leader_whitened[j]
            sync_lanes()


@scalar
def multiply_root(root, leader_whitened, gain, setting, arm, lane):
    """Compute t = S'x and g = S t, an entry per lane; return q = t't."""
    dims = setting.dims
    for j in range(lane, dims, count_lanes()):
        entry = cast_real(0.0)
        for i in range(dims):
            entry += root[i * dims + j] * cast_real(setting.features[i, arm])
        leader_whitened[j] = entry
    sync_lanes()
    for i in range(lane, dims, count_lanes()):
        entry = cast_real(0.0)
        for j in range(dims):
            entry += root[i * dims + j] * leader_whitened[j]
        gain[i] = entry
    sync_lanes()
    q = cast_real(0.0)
    for j in range(dims):
        q += leader_whitened[j] * leader_whitened[j]
    return q


@scalar
def whiten_lints_arms(state, setting):
    """Compute every arm's S'x."""
    lane = get_opaque_lane()
    dims = setting.dims
    for j in range(dims):
        for position in range(count_arms_per_lane()):
            state.whitened[position * dims + j] = cast_real(0.0)
    for i in range(dims):
        for position in range(count_arms_per_lane()):
            state.leader_covariance[position] = read_feature(setting, lane, position, i)
        for j in range(dims):
            entry = state.root[i * dims + j]
            for position in range(count_arms_per_lane()):
                state.whitened[position * dims + j] += entry * state.leader_covariance[position]


@scalar
def begin_lints_streak(state, setting, arm):
    """Begin a streak of an arm: compute t, q and all covariances with the leader, and exclude it from the rivals."""
    lane = get_opaque_lane()
    dims = setting.dims
    leader_whitened = state.leader_whitened
    sync_lanes()
    for position in range(count_arms_per_lane()):
        if locate_arm(lane, position) == arm:
            for j in range(dims):
                leader_whitened[j] = state.whitened[position * dims + j]
            leader_whitened[dims] = state.score[position]
            state.score[position] = cast_real(EXCLUDED_SCORE)
        state.leader_covariance[position] = cast_real(0.0)
    sync_lanes()
    q = cast_real(0.0)
    for j in range(dims):
        entry = leader_whitened[j]
        q += entry * entry
        for position in range(count_arms_per_lane()):
            state.leader_covariance[position] += entry * state.whitened[position * dims + j]
    begin_linear_streak(state, arm, leader_whitened[dims], q)


@scalar
def apply_lints_streak(state, setting, r, correction):
    """Update scores and all S'x for the streak."""
    lane = get_opaque_lane()
    lane_scalars = state.lane_scalars
    warp_scalars = state.warp_scalars
    dims = setting.dims
    error = lane_scalars[TOTAL] * r * r
    leader = int32(warp_scalars[LEADER])
    for position in range(count_arms_per_lane()):
        score = warp_scalars[SCORE] if locate_arm(lane, position) == leader else state.score[position]
        state.score[position] = score + error * state.leader_covariance[position]
        state.leader_covariance[position] *= correction
    for j in range(dims):
        entry = state.leader_whitened[j]
        for position in range(count_arms_per_lane()):
            state.whitened[position * dims + j] -= state.leader_covariance[position] * entry


@scalar
def rebuild_lints(state, setting):
    """Recompute everything from totals. Afterwards the leader is a placeholder whose draw is below all others."""
    record_streak(state)
    rebuild_root(state.root, state.theta, state.leader_whitened, state.normals, state.pulled, state.totals, setting)
    recompute_scores(state, setting)
    whiten_lints_arms(state, setting)
    sync_lanes()
    for j in range(get_opaque_lane(), setting.dims, count_lanes()):
        state.leader_whitened[j] = cast_real(0.0)
    for position in range(count_arms_per_lane()):
        state.leader_covariance[position] = cast_real(0.0)
    begin_linear_streak(state, setting.arms, cast_real(2.0 * EXCLUDED_SCORE), cast_real(0.0))


@scalar
def draw_lints_normals(state, setting, step, scale, stream):
    """Draw the normals of this step and some that follow, times the scale."""
    sync_lanes()
    for pair in range(get_opaque_lane(), (count_lints_normals(setting.dims) + 1) // 2, count_lanes()):
        seek(stream, pair, step)
        first, second = normal_pair(stream)
        state.normals[2 * pair] = cast_real(scale * first)
        state.normals[2 * pair + 1] = cast_real(scale * second)
    sync_lanes()
    state.lane_scalars[NEXT_NORMAL] = cast_real(0.0)


@scalar
def find_highest_lints_draw(state, setting, at, shift):
    """Find the highest sampled score of a lane's arms, each moved by `shift` times its covariance with the leader."""
    dims = setting.dims
    value = cast_real(0.0)
    arm = int32(locate_arm(get_lane(), 0))
    for position in range(count_arms_per_lane()):
        draw = state.score[position] + shift * state.leader_covariance[position]
        for j in range(dims):
            draw += state.whitened[position * dims + j] * state.normals[at + j]
        if position == 0 or draw > value:
            value = draw
            arm = int32(locate_arm(get_lane(), position))
    return value, arm


@scalar
def choose_lints_warp(state, setting, step, params, stream):
    """Choose the arm with the highest score under a draw of theta."""
    lane_scalars = state.lane_scalars
    warp_scalars = state.warp_scalars
    dims = setting.dims
    if lane_scalars[NEXT_NORMAL] >= cast_real(count_lints_normals(dims)):
        if state.warp_scalars[AGE] >= cast_real(REFRESH_STREAKS):
            rebuild_lints(state, setting)
        draw_lints_normals(state, setting, step, params[0] * read_policy_option(setting, 0), stream)
    at = int32(lane_scalars[NEXT_NORMAL])
    lane_scalars[NEXT_NORMAL] += cast_real(dims)
    r = read_ahead(lane_scalars, state.roots)
    correction = read_ahead(lane_scalars, state.corrections)
    error = lane_scalars[TOTAL] * r * r
    covariance = cast_real(0.0)
    for j in range(dims):
        covariance += state.leader_whitened[j] * state.normals[at + j]
    # The leader has the same operations as its rivals, so that arms with the same features are tied.
    shift = error - correction * covariance
    draw = warp_scalars[SCORE] + shift * warp_scalars[Q]
    for j in range(dims):
        draw += state.leader_whitened[j] * state.normals[at + j]
    value, arm = find_highest_lints_draw(state, setting, at, shift)
    if vote_any(value >= draw):
        value, arm = argmax_over_lanes(value, arm)
        if value > draw or arm < int32(warp_scalars[LEADER]):
            record_streak(state)
            apply_lints_streak(state, setting, r, correction)
            begin_lints_streak(state, setting, arm)
    return int(int32(warp_scalars[LEADER]))
