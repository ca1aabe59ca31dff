"""The warp version of LinUCB, from streak to streak; see `warp_linear` for the formulas."""

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
    LEADER_RADIUS,
    LOW,
    MAX_LANES,
    PULLS,
    REFRESH_STREAKS,
    SCALE,
    SCORE,
    SINCE,
    TOTAL,
    UNTIL,
    WAIT,
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
    get_opaque_lane,
    sync_lanes,
    vote_any,
)

INTERVAL_GROWTH = 0.125
"""The length of an interval: the pulls in which the leader's precision (1 / q, and 1 per pull) grows by this share."""


class LinUCBWarpState(NamedTuple):
    """The state of a warp: entries per arm of a lane, scalars of a lane, and from `warp_scalars` on shared entries.

    `leader_covariance` is x' G^-1 x_leader of every arm, and `square` (factor width)^2. `roots` and `corrections` are r
    and b of the next pulls. `gain` is G^-1 x_leader, with the leader's score behind it, and `inverse` is G^-1. `pulled`
    and `totals` are the pulls and total rewards of all arms. `theta` is the estimate; it is valid only after a
    recomputation.
    """

    score: FloatArray
    leader_covariance: FloatArray
    square: FloatArray
    lane_scalars: FloatArray
    warp_scalars: FloatArray
    roots: FloatArray
    corrections: FloatArray
    gain: FloatArray
    theta: FloatArray
    inverse: FloatArray
    pulled: FloatArray
    totals: FloatArray


def count_linucb_registers(share: int, dims: int) -> int:
    """Count the numbers that a lane keeps."""
    return 3 * share + LANE_SCALARS


def count_linucb_shared(arms: int, dims: int) -> int:
    """Count the numbers that a warp shares."""
    return WARP_SCALARS + 2 * MAX_LANES + 2 * dims + 1 + dims * dims + 2 * count_padded_arms(arms)


@scalar
def view_linucb_warp(registers, shared, setting):
    """Split both memories, in the order of the record."""
    dims = setting.dims
    padded_arms = count_arms_per_lane() * count_lanes()
    roots_end = WARP_SCALARS + count_lanes()
    corrections_end = WARP_SCALARS + 2 * count_lanes()
    a = corrections_end + dims + 1
    b = a + dims
    c = b + dims * dims
    return LinUCBWarpState(
        registers[: count_arms_per_lane()],
        registers[count_arms_per_lane() : 2 * count_arms_per_lane()],
        registers[2 * count_arms_per_lane() : 3 * count_arms_per_lane()],
        registers[3 * count_arms_per_lane() : 3 * count_arms_per_lane() + LANE_SCALARS],
        shared[:WARP_SCALARS],
        shared[WARP_SCALARS:roots_end],
        shared[roots_end:corrections_end],
        shared[corrections_end:a],
        shared[a:b],
        shared[b:c],
        shared[c : c + padded_arms],
        shared[c + padded_arms : c + 2 * padded_arms],
    )


@noinline
def rebuild_inverse(inverse, theta, gain, pulls, totals, setting):
    """Compute G^-1 and theta from pulls and totals. `gain` is scratch memory."""
    dims = setting.dims
    lane = get_opaque_lane()
    sync_lanes()
    unit = cast_real(1.0) / cast_real(setting.options[0])
    for j in range(lane, dims, count_lanes()):
        theta[j] = cast_real(setting.options[1 + j])
        for i in range(dims):
            entry = cast_real(0.0)
            for k in range(min(i, j) + 1):
                entry += read_prior_root(setting, i, k) * read_prior_root(setting, j, k)
            inverse[i * dims + j] = entry * unit
    for arm in range(setting.arms):
        if pulls[arm] > cast_real(0.0):
            multiply_inverse(inverse, gain, setting, arm, lane)
            sync_lanes()
            q = compute_leader_variance(gain, setting, arm)
            r, _ = replay_streak(theta, setting, gain, q, arm, pulls[arm], totals[arm], lane)
            shrink_inverse(inverse, gain, pulls[arm] * r * r, dims, lane)
            sync_lanes()
    sync_lanes()


@scalar
def multiply_inverse(inverse, gain, setting, arm, lane):
    """Compute G^-1 x, an entry per lane."""
    dims = setting.dims
    for j in range(lane, dims, count_lanes()):
        entry = cast_real(0.0)
        for i in range(dims):
            entry += inverse[i * dims + j] * cast_real(setting.features[i, arm])
        gain[j] = entry


@scalar
def compute_leader_variance(gain, setting, arm):
    """Compute q = x' G^-1 x."""
    q = cast_real(0.0)
    for j in range(setting.dims):
        q += gain[j] * cast_real(setting.features[j, arm])
    return max(q, cast_real(0.0))


@scalar
def shrink_inverse(inverse, gain, shrink, dims, lane):
    """Subtract a multiple of G^-1 x x' G^-1 from G^-1, a column per lane."""
    for j in range(lane, dims, count_lanes()):
        scaled = shrink * gain[j]
        for i in range(dims):
            inverse[i * dims + j] -= scaled * gain[i]


@scalar
def recompute_squared_widths(state, setting):
    """Compute every arm's (factor width)^2 from G^-1."""
    lane = get_opaque_lane()
    dims = setting.dims
    scale = state.warp_scalars[SCALE]
    for position in range(count_arms_per_lane()):
        square = cast_real(0.0)
        for i in range(dims):
            entry = cast_real(0.0)
            for j in range(dims):
                entry += state.inverse[i * dims + j] * read_feature(setting, lane, position, j)
            square += entry * read_feature(setting, lane, position, i)
        state.square[position] = max(square * scale * scale, cast_real(0.0))


@scalar
def begin_linucb_streak(state, setting, arm):
    """Begin a streak of an arm: compute q and all covariances with the leader, and exclude it from the rivals."""
    lane = get_opaque_lane()
    dims = setting.dims
    gain = state.gain
    sync_lanes()
    multiply_inverse(state.inverse, gain, setting, arm, lane)
    for position in range(count_arms_per_lane()):
        if locate_arm(lane, position) == arm:
            gain[dims] = state.score[position]
            state.score[position] = cast_real(EXCLUDED_SCORE)
        state.leader_covariance[position] = cast_real(0.0)
    sync_lanes()
    for j in range(dims):
        entry = gain[j]
        for position in range(count_arms_per_lane()):
            state.leader_covariance[position] += entry * read_feature(setting, lane, position, j)
    q = compute_leader_variance(gain, setting, arm)
    begin_linear_streak(state, arm, gain[dims], q)
    state.warp_scalars[LEADER_RADIUS] = state.warp_scalars[SCALE] * math.sqrt(q)


@scalar
def apply_linucb_streak(state, setting, r):
    """Update scores, widths and G^-1 for the streak."""
    lane = get_opaque_lane()
    lane_scalars = state.lane_scalars
    warp_scalars = state.warp_scalars
    shrink = lane_scalars[PULLS] * r * r
    error = lane_scalars[TOTAL] * r * r
    scale = warp_scalars[SCALE]
    leader = int32(warp_scalars[LEADER])
    for position in range(count_arms_per_lane()):
        covariance = state.leader_covariance[position]
        # The leader has the same formulas, so that arms with the same features remain equal.
        score = warp_scalars[SCORE] if locate_arm(lane, position) == leader else state.score[position]
        state.score[position] = score + error * covariance
        remaining = state.square[position] - scale * scale * shrink * covariance * covariance
        state.square[position] = max(remaining, cast_real(0.0))
    shrink_inverse(state.inverse, state.gain, shrink, setting.dims, lane)


@scalar
def has_reaching_rival(state, r):
    """Return whether the index of one of this lane's arms reaches the leader's."""
    lane_scalars = state.lane_scalars
    warp_scalars = state.warp_scalars
    shift = -lane_scalars[TOTAL] * r * r
    index = warp_scalars[SCORE] - shift * warp_scalars[Q] + warp_scalars[LEADER_RADIUS] * r
    shrink = warp_scalars[SCALE] * warp_scalars[SCALE] * lane_scalars[PULLS] * r * r
    reached = False
    for position in range(count_arms_per_lane()):
        covariance = state.leader_covariance[position]
        gap = (index - state.score[position]) + shift * covariance
        beyond = gap * gap + (shrink * (covariance * covariance) - state.square[position])
        reached = reached | (gap < cast_real(0.0)) | (beyond <= cast_real(0.0))
    return reached


@scalar
def is_in_linucb_interval(state, r):
    """Return whether e is in this lane's interval, where none of its arms reaches the leader's index."""
    lane_scalars = state.lane_scalars
    error = lane_scalars[TOTAL] * r * r
    return (error > lane_scalars[LOW]) & (error < lane_scalars[HIGH])


@scalar
def update_linucb_interval(state, r):
    """Compute an interval after enough pulls of the leader. If the last one ended early, wait longer before the next."""
    lane_scalars = state.lane_scalars
    pulls = lane_scalars[PULLS]
    if pulls >= lane_scalars[SINCE] + lane_scalars[WAIT]:
        lasted = lane_scalars[UNTIL] == cast_real(0.0) or pulls - lane_scalars[SINCE] > cast_real(INTERVAL_PATIENCE)
        lane_scalars[WAIT] = (
            cast_real(0.0) if lasted else cast_real(2.0) * lane_scalars[WAIT] + cast_real(INTERVAL_PATIENCE)
        )
        lane_scalars[SINCE] = pulls
        lane_scalars[UNTIL] = cast_real(0.0)
        if lasted:
            find_linucb_interval(state, r)


@scalar
def find_linucb_interval(state, r):
    """Compute the interval of e in which none of this lane's arms reaches the leader's index for some pulls.

    Widths only shrink. So the bound uses the present widths of rivals, and the width of the leader at the end of the
    interval. Each rival then bounds e on one side.
    """
    lane_scalars = state.lane_scalars
    warp_scalars = state.warp_scalars
    q = warp_scalars[Q]
    pulls = lane_scalars[PULLS]
    until = pulls + cast_real(1.0) + cast_real(INTERVAL_GROWTH) * (pulls + min(cast_real(1.0) / q, cast_real(1e6)))
    width = warp_scalars[LEADER_RADIUS] / math.sqrt(cast_real(1.0) + until * q)
    shrink = warp_scalars[SCALE] * warp_scalars[SCALE] * pulls * r * r
    low = cast_real(EXCLUDED_SCORE)
    high = cast_real(-EXCLUDED_SCORE)
    for position in range(count_arms_per_lane()):
        covariance = state.leader_covariance[position]
        radius = math.sqrt(max(state.square[position] - shrink * covariance * covariance, cast_real(0.0)))
        needed = (radius - width) + (state.score[position] - warp_scalars[SCORE])
        contrast = q - covariance
        if contrast > cast_real(0.0):
            low = max(low, needed / contrast)
        elif contrast < cast_real(0.0):
            high = min(high, needed / contrast)
        elif needed >= cast_real(0.0):
            high = cast_real(EXCLUDED_SCORE)
    lane_scalars[LOW] = low
    lane_scalars[HIGH] = high
    lane_scalars[UNTIL] = until


@scalar
def find_highest_linucb_index(state):
    """Find the arm with the highest index."""
    lane = get_opaque_lane()
    value = state.score[0] + math.sqrt(state.square[0])
    arm = int32(locate_arm(lane, 0))
    for position in range(1, count_arms_per_lane()):
        index = state.score[position] + math.sqrt(state.square[position])
        if index > value:
            value = index
            arm = int32(locate_arm(lane, position))
    _, arm = argmax_over_lanes(value, arm)
    return arm


@scalar
def choose_linucb_warp(state, setting, step, params, stream):
    """Choose the arm with the highest x'theta + gamma c sqrt(x' G^-1 x)."""
    lane_scalars = state.lane_scalars
    warp_scalars = state.warp_scalars
    r = cast_real(1.0)
    keeps_leader = False
    if step == 0:
        warp_scalars[SCALE] = cast_real(params[0] * compute_confidence_factor(setting))
    else:
        r = read_ahead(lane_scalars, state.roots)
        keeps_leader = lane_scalars[PULLS] <= lane_scalars[UNTIL] and not vote_any(not is_in_linucb_interval(state, r))
        if not keeps_leader:
            keeps_leader = not vote_any(has_reaching_rival(state, r))
            if keeps_leader:
                update_linucb_interval(state, r)
    if not keeps_leader:
        old = warp_scalars[AGE] >= cast_real(REFRESH_STREAKS)
        record_streak(state)
        if old:
            rebuild_inverse(state.inverse, state.theta, state.gain, state.pulled, state.totals, setting)
            recompute_scores(state, setting)
            recompute_squared_widths(state, setting)
        else:
            apply_linucb_streak(state, setting, r)
        begin_linucb_streak(state, setting, find_highest_linucb_index(state))
    return int(int32(warp_scalars[LEADER]))
