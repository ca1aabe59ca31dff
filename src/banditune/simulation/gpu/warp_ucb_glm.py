"""UCB-GLM played by a warp, from stay to stay."""

from __future__ import annotations

import math

from numpy import int32

from banditune.core.scalar import scalar
from banditune.simulation.estimators.logistic_mode import NO_MODE
from banditune.simulation.estimators.ridge_regression import REFRESH_INTERVAL
from banditune.simulation.estimators.vector_layout import dims
from banditune.simulation.estimators.whitened_features import read_policy_option
from banditune.simulation.gpu.warp_logistic import (
    ERROR_MARGIN,
    MAX_LOOKS,
    MOVE_LIMIT,
    bound_chance_error,
    bound_mode_error,
    compute_chances,
    compute_warp_tolerance,
    find_first_tied,
    find_highest_weight,
    is_model_stale,
    move_scores_to_mode,
    move_warp_estimate,
    read_arm_field,
    subtract_estimate,
)
from banditune.simulation.gpu.warp_logistic_algebra import (
    compute_root_of_sum,
    compute_safe_root,
    compute_shared_dot,
    multiply_arm_vector,
    multiply_row,
    solve_by_inverse,
    sum_weighted_arms,
)
from banditune.simulation.gpu.warp_logistic_layout import (
    AGE,
    BASE,
    CHANCE,
    COUNT,
    DRIFT,
    HEAVY,
    HIGH,
    LEAD_SCORE,
    LEAD_SLOPE,
    LEAD_WIDTH,
    LEADER,
    LONGEST,
    LOST,
    LOW,
    MOVED,
    NARROWING,
    PAID,
    PRODUCT,
    PULLS,
    PULLS_AHEAD,
    RISE,
    SCORE,
    SHOWN,
    SLOPE,
    SPREAD,
    STALE,
    STAYED,
    SUMS,
    TERM,
    TOTAL,
    UNTIL,
    WEIGHT,
    WIDTH,
    Q,
    S,
    count_lane_rows,
    locate_field,
    locate_lane_column,
    locate_lane_scalar,
    locate_matrix,
    locate_vector,
)
from banditune.simulation.gpu.warp_logistic_mode import find_warp_mode
from banditune.simulation.gpu.warp_primitives import (
    cast_real,
    compute_reciprocal,
    count_arms_per_lane,
    count_lanes,
    get_lane,
    sync_lanes,
    vote_any,
)

FIRST_INTERVAL_PULLS = 4.0
"""Pulls of the first interval of a stay; the next is twice as long as one that was found, half as long as one that was
not."""


SHORTEST_INTERVAL_PULLS = 3.0
"""Pulls for which an interval pays."""


ERROR_RANGE = 0.7
"""How far e may wander in an interval, in its standard deviations over so many pulls."""


INTERVAL_RECOVERY = 0.25
"""How much that length grows with every pull that is looked at by itself."""


@scalar
def update_ucb_glm_warp(state, setting, step, params, arm, reward, stream):
    """Learn a reward of the stay's arm."""
    state.registers[locate_lane_scalar(STAYED)] += cast_real(1.0)
    state.registers[locate_lane_scalar(PAID)] += cast_real(reward)


@scalar
def begin_ucb_glm_stay(state, arm):
    """From now on an arm is pulled: H^-1 x, G^-1 x, and what they are along every arm."""
    held = state.registers
    common = state.shared
    at = locate_vector(PRODUCT)
    shown = locate_vector(SHOWN)
    sync_lanes()
    for i in range(count_arms_per_lane()):
        if int32(get_lane() + i * count_lanes()) == arm:
            slope = common[locate_lane_column(SLOPE, i)]
            for j in range(dims()):
                common[shown + j] = held[i * dims() + j]
            common[BASE] = common[locate_lane_column(CHANCE, i)] + slope * common[locate_lane_column(DRIFT, i)]
            common[LEAD_SCORE] = held[locate_field(SCORE, i)]
            common[LEAD_WIDTH] = held[locate_field(WIDTH, i)]
            common[LEAD_SLOPE] = slope
    sync_lanes()
    for r in range(count_lane_rows()):
        row = get_lane() + r * count_lanes()
        if row < 2 * dims():
            first = 0 if row < dims() else dims()
            common[at + row] = multiply_row(state, locate_matrix(first), row - first, shown)
    sync_lanes()
    common[S] = compute_shared_dot(state, shown, at)
    common[Q] = compute_shared_dot(state, shown, at + dims())
    for i in range(count_arms_per_lane()):
        held[locate_field(RISE, i)] = multiply_arm_vector(state, i, at)
    for i in range(count_arms_per_lane()):
        held[locate_field(NARROWING, i)] = multiply_arm_vector(state, i, at + dims())
    held[locate_lane_scalar(STAYED)] = cast_real(0.0)
    held[locate_lane_scalar(PAID)] = cast_real(0.0)
    held[locate_lane_scalar(UNTIL)] = cast_real(-1.0)
    held[locate_lane_scalar(PULLS_AHEAD)] = cast_real(FIRST_INTERVAL_PULLS)
    held[locate_lane_scalar(LEADER)] = cast_real(arm)
    sync_lanes()


@scalar
def apply_ucb_glm_stay(state, over):
    """Write the stay into arms, theta and both matrices. `over` is 1 / (1 + m w s)."""
    held = state.registers
    common = state.shared
    at = locate_vector(PRODUCT)
    stayed = held[locate_lane_scalar(STAYED)]
    slope = common[LEAD_SLOPE]
    step = (held[locate_lane_scalar(PAID)] - stayed * common[BASE]) * over
    shrink = stayed * compute_reciprocal(cast_real(1.0) + stayed * common[Q])
    leader = int32(held[locate_lane_scalar(LEADER)])
    move_warp_estimate(state, at, step)
    for i in range(count_arms_per_lane()):
        rise = held[locate_field(RISE, i)]
        narrowed = held[locate_field(NARROWING, i)]
        held[locate_field(SCORE, i)] += step * rise
        common[locate_lane_column(DRIFT, i)] += step * rise
        held[locate_field(SPREAD, i)] -= stayed * slope * over * rise * rise
        held[locate_field(WIDTH, i)] -= shrink * narrowed * narrowed
        if int32(get_lane() + i * count_lanes()) == leader:
            common[locate_lane_column(HEAVY, i)] += stayed * slope
            common[locate_lane_column(PULLS, i)] += stayed
            common[locate_lane_column(TOTAL, i)] += held[locate_lane_scalar(PAID)]
            common[COUNT] += stayed
            common[AGE] += stayed
    for r in range(count_lane_rows()):
        row = get_lane() + r * count_lanes()
        if row < 2 * dims():
            first = 0 if row < dims() else dims()
            taken = common[at + row] * (stayed * slope * over if row < dims() else shrink)
            for j in range(dims()):
                common[locate_matrix(first) + j * dims() + row - first] -= taken * common[at + first + j]
    sync_lanes()


@scalar
def find_ucb_glm_interval(state, factor, over, moved, away, until):
    """What e must stay between so that none of this thread's arms can reach the leader until m is `until`.

    Not further from e = `moved` than `away`: there the error is no larger than at one end or the other, arm by arm, because
    |D| is not. It moves the difference between two scores by no more than the error times the length of x_k - x, whose
    square in the present metric of H^-1 is x_k' H^-1 x_k + s - 2 v - m w / (1 + m w s) (s - v)^2. This and rivals' widths
    only shrink, and the leader is given its last width: then every rival asks e to be on one side of a number. Where the
    model may reach too far, nothing is between.
    """
    held = state.registers
    common = state.shared
    stayed = held[locate_lane_scalar(STAYED)]
    leader = int32(held[locate_lane_scalar(LEADER)])
    square = cast_real(0.0)
    far = False
    for i in range(count_arms_per_lane()):
        start = common[locate_lane_column(DRIFT, i)] + moved * held[locate_field(RISE, i)]
        drift = abs(start) + away * abs(held[locate_field(RISE, i)])
        stale = abs(common[locate_lane_column(STALE, i)])
        heavy = common[locate_lane_column(HEAVY, i)]
        heavy += until * common[LEAD_SLOPE] if int32(get_lane() + i * count_lanes()) == leader else cast_real(0.0)
        far = far | ((heavy > cast_real(0.0)) & (not drift + stale <= cast_real(MOVE_LIMIT)))
        error = bound_chance_error(drift, stale)
        square += heavy * error * error
    error = cast_real(ERROR_MARGIN) * compute_root_of_sum(square)
    slack = cast_real(2.0) * compute_warp_tolerance(state) * common[LONGEST]
    q = common[Q]
    s = common[S]
    taken = stayed * common[LEAD_SLOPE] * over
    shrink = stayed * compute_reciprocal(cast_real(1.0) + stayed * q)
    last = until * compute_reciprocal(cast_real(1.0) + until * q)
    more = slack - factor * compute_safe_root(common[LEAD_WIDTH] - last * q * q) - common[LEAD_SCORE]
    low = moved - away if away > cast_real(0.0) else cast_real(-math.inf)
    high = moved + away if away > cast_real(0.0) else cast_real(math.inf)
    for i in range(count_arms_per_lane()):
        narrowed = held[locate_field(NARROWING, i)]
        apart = s - held[locate_field(RISE, i)]
        between = held[locate_field(SPREAD, i)] - held[locate_field(RISE, i)] + apart * (cast_real(1.0) - taken * apart)
        needed = held[locate_field(SCORE, i)] + more
        needed += factor * compute_safe_root(
            held[locate_field(WIDTH, i)] - shrink * narrowed * narrowed
        ) + error * compute_safe_root(between)
        rival = int32(get_lane() + i * count_lanes()) != leader
        side = needed * compute_reciprocal(max(abs(apart), cast_real(1e-20)))
        low = max(low, side if rival and apart > cast_real(0.0) else low)
        high = min(high, -side if rival and apart < cast_real(0.0) else high)
        far = far | (rival & (apart == cast_real(0.0)) & (not needed < cast_real(0.0)))
    held[locate_lane_scalar(LOW)] = low
    held[locate_lane_scalar(HIGH)] = cast_real(-math.inf) if far else high
    held[locate_lane_scalar(UNTIL)] = until


@scalar
def is_in_ucb_glm_interval(state, moved):
    """Whether e is where no arm of any thread can reach the leader."""
    held = state.registers
    return not vote_any(not ((moved > held[locate_lane_scalar(LOW)]) & (moved < held[locate_lane_scalar(HIGH)])))


@scalar
def is_still_leading(state, factor, over, moved):
    """Whether the stay's arm surely has the highest index; finds a long interval where it can, and not too often."""
    held = state.registers
    common = state.shared
    stayed = held[locate_lane_scalar(STAYED)]
    leads = False
    searching = True
    while searching:
        pulls = held[locate_lane_scalar(PULLS_AHEAD)]
        searching = pulls >= cast_real(SHORTEST_INTERVAL_PULLS)
        pulls = pulls if searching else cast_real(0.0)
        away = (
            cast_real(ERROR_RANGE) * over * compute_safe_root(common[LEAD_SLOPE] * pulls)
            if searching
            else cast_real(0.0)
        )
        find_ucb_glm_interval(state, factor, over, moved, away, stayed + pulls)
        leads = is_in_ucb_glm_interval(state, moved)
        if searching:
            held[locate_lane_scalar(PULLS_AHEAD)] *= cast_real(2.0) if leads else cast_real(0.5)
            searching = not leads
        else:
            held[locate_lane_scalar(PULLS_AHEAD)] += cast_real(INTERVAL_RECOVERY)
    return leads


@scalar
def choose_ucb_glm_warp(state, setting, step, params, stream):
    """The highest x'theta + gamma c sqrt(x' G^-1 x)."""
    held = state.registers
    common = state.shared
    arm = int32(held[locate_lane_scalar(LEADER)])
    leads = False
    if step > 0:
        stayed = held[locate_lane_scalar(STAYED)]
        over = compute_reciprocal(cast_real(1.0) + stayed * common[LEAD_SLOPE] * common[S])
        moved = (held[locate_lane_scalar(PAID)] - stayed * common[BASE]) * over
        leads = stayed <= held[locate_lane_scalar(UNTIL)] and is_in_ucb_glm_interval(state, moved)
        if not leads:
            leads = is_still_leading(state, cast_real(params[0] * read_policy_option(setting, 0)), over, moved)
        if not leads:
            sync_lanes()
            apply_ucb_glm_stay(state, over)
            refresh = common[AGE] >= cast_real(REFRESH_INTERVAL)
            far = is_model_stale(state, MOVE_LIMIT)
            if refresh or far:
                find_warp_mode(state, setting, refresh, far, False)
    if not leads:
        arm = find_highest_ucb_glm_index(state, cast_real(params[0] * read_policy_option(setting, 0)))
        if arm >= int32(0):
            begin_ucb_glm_stay(state, arm)
    return int(arm)


@scalar
def find_highest_ucb_glm_index(state, factor):
    """The arm with the highest index, with a look where the model cannot tell.

    A score is off by no more than the error times sqrt(x' H^-1 x).
    """
    held = state.registers
    common = state.shared
    slack = cast_real(2.0) * compute_warp_tolerance(state) * common[LONGEST]
    arm = int32(NO_MODE)
    tries = 0
    while common[LOST] == cast_real(0.0):
        error = bound_mode_error(state)
        for i in range(count_arms_per_lane()):
            held[locate_field(TERM, i)] = (
                cast_real(ERROR_MARGIN) * error * compute_safe_root(held[locate_field(SPREAD, i)])
            )
            held[locate_field(WEIGHT, i)] = held[locate_field(SCORE, i)] + factor * compute_safe_root(
                held[locate_field(WIDTH, i)]
            )
        highest, arm = find_highest_weight(state)
        lowest = highest - slack - read_arm_field(state, TERM, arm)
        doubt = False
        for i in range(count_arms_per_lane()):
            rival = held[locate_field(WEIGHT, i)] + held[locate_field(TERM, i)]
            doubt = doubt | ((rival >= lowest) & (int32(get_lane() + i * count_lanes()) != arm))
        if not vote_any(doubt):
            break
        tries += 1
        if error <= compute_warp_tolerance(state) or tries > MAX_LOOKS:
            arm = find_first_tied(state, highest)
            break
        compute_chances(state, False, False)
        sum_weighted_arms(state, locate_vector(SUMS))
        sync_lanes()
        subtract_estimate(state)
        sync_lanes()
        solve_by_inverse(state)
        sync_lanes()
        move_warp_estimate(state, locate_vector(MOVED), cast_real(1.0))
        move_scores_to_mode(state, locate_vector(MOVED))
    return arm
