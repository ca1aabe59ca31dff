"""The warp version of UCB-GLM, from streak to streak; see `warp_logistic`.

During a streak of m pulls of an arm x with total reward T, let e = (T - m LEADER_CHANCE) / (1 + m w s), with s = x'
H^-1 x. Then theta moves by e H^-1 x, and both inverse matrices depend only on m. So e and m determine all indices.
"""

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
    MAX_REFINEMENTS,
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
    ARM_SUMS,
    CHANCE,
    CURVATURE,
    DRIFT,
    GRAM_COVARIANCE,
    GRAM_VARIANCE,
    HESSIAN_COVARIANCE,
    HESSIAN_VARIANCE,
    HIGH,
    INTERVAL_PULLS,
    LEADER,
    LEADER_CHANCE,
    LEADER_SCORE,
    LEADER_SLOPE,
    LEADER_VARIANCE,
    LONGEST_FEATURE,
    LOW,
    MODE_LOST,
    NEWTON_STEP,
    PRODUCT,
    PULL_COUNT,
    PULLED_FEATURES,
    PULLS,
    SCORE,
    SLOPE,
    SLOPE_CHANGE,
    STREAK_PULLS,
    STREAK_TOTAL,
    TERM,
    TOTAL,
    UNTIL,
    WEIGHT,
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
"""The pulls of the first interval of a streak. The next one is twice as long if an interval was found, else half."""


SHORTEST_INTERVAL_PULLS = 3.0
"""The fewest pulls for which an interval saves time."""


ERROR_RANGE = 0.7
"""Half the length of an interval for e, in standard deviations of e after the pulls of the interval."""


INTERVAL_RECOVERY = 0.25
"""The growth of the pulls of the next interval with every pull that is checked by itself."""


@scalar
def update_ucb_glm_warp(state, setting, step, params, arm, reward, stream):
    """Add a reward of the leader to its streak."""
    state.registers[locate_lane_scalar(STREAK_PULLS)] += cast_real(1.0)
    state.registers[locate_lane_scalar(STREAK_TOTAL)] += cast_real(reward)


@scalar
def begin_ucb_glm_streak(state, arm):
    """Begin a streak of an arm: compute H^-1 x, G^-1 x, and their products with all arms."""
    registers = state.registers
    shared = state.shared
    at = locate_vector(PRODUCT)
    pulled = locate_vector(PULLED_FEATURES)
    sync_lanes()
    for i in range(count_arms_per_lane()):
        if int32(get_lane() + i * count_lanes()) == arm:
            slope = shared[locate_lane_column(SLOPE, i)]
            for j in range(dims()):
                shared[pulled + j] = registers[i * dims() + j]
            shared[LEADER_CHANCE] = shared[locate_lane_column(CHANCE, i)] + slope * shared[locate_lane_column(DRIFT, i)]
            shared[LEADER_SCORE] = registers[locate_field(SCORE, i)]
            shared[LEADER_VARIANCE] = registers[locate_field(GRAM_VARIANCE, i)]
            shared[LEADER_SLOPE] = slope
    sync_lanes()
    for r in range(count_lane_rows()):
        row = get_lane() + r * count_lanes()
        if row < 2 * dims():
            first = 0 if row < dims() else dims()
            shared[at + row] = multiply_row(state, locate_matrix(first), row - first, pulled)
    sync_lanes()
    shared[S] = compute_shared_dot(state, pulled, at)
    shared[Q] = compute_shared_dot(state, pulled, at + dims())
    for i in range(count_arms_per_lane()):
        registers[locate_field(HESSIAN_COVARIANCE, i)] = multiply_arm_vector(state, i, at)
    for i in range(count_arms_per_lane()):
        registers[locate_field(GRAM_COVARIANCE, i)] = multiply_arm_vector(state, i, at + dims())
    registers[locate_lane_scalar(STREAK_PULLS)] = cast_real(0.0)
    registers[locate_lane_scalar(STREAK_TOTAL)] = cast_real(0.0)
    registers[locate_lane_scalar(UNTIL)] = cast_real(-1.0)
    registers[locate_lane_scalar(INTERVAL_PULLS)] = cast_real(FIRST_INTERVAL_PULLS)
    registers[locate_lane_scalar(LEADER)] = cast_real(arm)
    sync_lanes()


@scalar
def apply_ucb_glm_streak(state, over):
    """Update arms, theta and both matrices for the streak. `over` is 1 / (1 + m w s)."""
    registers = state.registers
    shared = state.shared
    at = locate_vector(PRODUCT)
    streak = registers[locate_lane_scalar(STREAK_PULLS)]
    slope = shared[LEADER_SLOPE]
    step = (registers[locate_lane_scalar(STREAK_TOTAL)] - streak * shared[LEADER_CHANCE]) * over
    shrink = streak * compute_reciprocal(cast_real(1.0) + streak * shared[Q])
    leader = int32(registers[locate_lane_scalar(LEADER)])
    move_warp_estimate(state, at, step)
    for i in range(count_arms_per_lane()):
        covariance = registers[locate_field(HESSIAN_COVARIANCE, i)]
        gram_covariance = registers[locate_field(GRAM_COVARIANCE, i)]
        registers[locate_field(SCORE, i)] += step * covariance
        shared[locate_lane_column(DRIFT, i)] += step * covariance
        registers[locate_field(HESSIAN_VARIANCE, i)] -= streak * slope * over * covariance * covariance
        registers[locate_field(GRAM_VARIANCE, i)] -= shrink * gram_covariance * gram_covariance
        if int32(get_lane() + i * count_lanes()) == leader:
            shared[locate_lane_column(CURVATURE, i)] += streak * slope
            shared[locate_lane_column(PULLS, i)] += streak
            shared[locate_lane_column(TOTAL, i)] += registers[locate_lane_scalar(STREAK_TOTAL)]
            shared[PULL_COUNT] += streak
            shared[AGE] += streak
    for r in range(count_lane_rows()):
        row = get_lane() + r * count_lanes()
        if row < 2 * dims():
            first = 0 if row < dims() else dims()
            scaled = shared[at + row] * (streak * slope * over if row < dims() else shrink)
            for j in range(dims()):
                shared[locate_matrix(first) + j * dims() + row - first] -= scaled * shared[at + first + j]
    sync_lanes()


@scalar
def find_ucb_glm_interval(state, factor, over, shift, half_width, until):
    """Compute the interval of e in which none of this lane's arms can reach the leader until m is `until`.

    It is within `half_width` of e = `shift`. |D| is convex in e, so the model's error is largest at an end of that
    interval, arm by arm. The error changes the difference of two scores by at most itself times the norm of x_k - x. In
    the present metric of H^-1, the square of that norm is x_k' H^-1 x_k + s - 2 v - m w / (1 + m w s) (s - v)^2, with v
    = x_k' H^-1 x. The norm and the widths of rivals only shrink, and for the leader the width at the end of the interval is
    used. Each rival then bounds e on one side. If the model may be out of its range, the interval is empty.
    """
    registers = state.registers
    shared = state.shared
    streak = registers[locate_lane_scalar(STREAK_PULLS)]
    leader = int32(registers[locate_lane_scalar(LEADER)])
    square = cast_real(0.0)
    out_of_range = False
    for i in range(count_arms_per_lane()):
        start = shared[locate_lane_column(DRIFT, i)] + shift * registers[locate_field(HESSIAN_COVARIANCE, i)]
        drift = abs(start) + half_width * abs(registers[locate_field(HESSIAN_COVARIANCE, i)])
        slope_change = abs(shared[locate_lane_column(SLOPE_CHANGE, i)])
        curvature = shared[locate_lane_column(CURVATURE, i)]
        curvature += until * shared[LEADER_SLOPE] if int32(get_lane() + i * count_lanes()) == leader else cast_real(0.0)
        out_of_range = out_of_range | (
            (curvature > cast_real(0.0)) & (not drift + slope_change <= cast_real(MOVE_LIMIT))
        )
        error = bound_chance_error(drift, slope_change)
        square += curvature * error * error
    error = cast_real(ERROR_MARGIN) * compute_root_of_sum(square)
    slack = cast_real(2.0) * compute_warp_tolerance(state) * shared[LONGEST_FEATURE]
    q = shared[Q]
    s = shared[S]
    scaled = streak * shared[LEADER_SLOPE] * over
    shrink = streak * compute_reciprocal(cast_real(1.0) + streak * q)
    last = until * compute_reciprocal(cast_real(1.0) + until * q)
    more = slack - factor * compute_safe_root(shared[LEADER_VARIANCE] - last * q * q) - shared[LEADER_SCORE]
    low = shift - half_width if half_width > cast_real(0.0) else cast_real(-math.inf)
    high = shift + half_width if half_width > cast_real(0.0) else cast_real(math.inf)
    for i in range(count_arms_per_lane()):
        gram_covariance = registers[locate_field(GRAM_COVARIANCE, i)]
        contrast = s - registers[locate_field(HESSIAN_COVARIANCE, i)]
        distance = (
            registers[locate_field(HESSIAN_VARIANCE, i)]
            - registers[locate_field(HESSIAN_COVARIANCE, i)]
            + contrast * (cast_real(1.0) - scaled * contrast)
        )
        needed = registers[locate_field(SCORE, i)] + more
        needed += factor * compute_safe_root(
            registers[locate_field(GRAM_VARIANCE, i)] - shrink * gram_covariance * gram_covariance
        ) + error * compute_safe_root(distance)
        rival = int32(get_lane() + i * count_lanes()) != leader
        side = needed * compute_reciprocal(max(abs(contrast), cast_real(1e-20)))
        low = max(low, side if rival and contrast > cast_real(0.0) else low)
        high = min(high, -side if rival and contrast < cast_real(0.0) else high)
        out_of_range = out_of_range | (rival & (contrast == cast_real(0.0)) & (not needed < cast_real(0.0)))
    registers[locate_lane_scalar(LOW)] = low
    registers[locate_lane_scalar(HIGH)] = cast_real(-math.inf) if out_of_range else high
    registers[locate_lane_scalar(UNTIL)] = until


@scalar
def is_in_ucb_glm_interval(state, shift):
    """Return whether e is in the intervals of all lanes, where no arm can reach the leader."""
    registers = state.registers
    return not vote_any(
        not ((shift > registers[locate_lane_scalar(LOW)]) & (shift < registers[locate_lane_scalar(HIGH)]))
    )


@scalar
def is_still_leading(state, factor, over, shift):
    """Return whether the leader certainly has the highest index. If possible, check an interval of many pulls at once."""
    registers = state.registers
    shared = state.shared
    streak = registers[locate_lane_scalar(STREAK_PULLS)]
    keeps_leader = False
    searching = True
    while searching:
        pulls = registers[locate_lane_scalar(INTERVAL_PULLS)]
        searching = pulls >= cast_real(SHORTEST_INTERVAL_PULLS)
        pulls = pulls if searching else cast_real(0.0)
        half_width = (
            cast_real(ERROR_RANGE) * over * compute_safe_root(shared[LEADER_SLOPE] * pulls)
            if searching
            else cast_real(0.0)
        )
        find_ucb_glm_interval(state, factor, over, shift, half_width, streak + pulls)
        keeps_leader = is_in_ucb_glm_interval(state, shift)
        if searching:
            registers[locate_lane_scalar(INTERVAL_PULLS)] *= cast_real(2.0) if keeps_leader else cast_real(0.5)
            searching = not keeps_leader
        else:
            registers[locate_lane_scalar(INTERVAL_PULLS)] += cast_real(INTERVAL_RECOVERY)
    return keeps_leader


@scalar
def choose_ucb_glm_warp(state, setting, step, params, stream):
    """Choose the arm with the highest x'theta + gamma c sqrt(x' G^-1 x)."""
    registers = state.registers
    shared = state.shared
    arm = int32(registers[locate_lane_scalar(LEADER)])
    keeps_leader = False
    if step > 0:
        streak = registers[locate_lane_scalar(STREAK_PULLS)]
        over = compute_reciprocal(cast_real(1.0) + streak * shared[LEADER_SLOPE] * shared[S])
        shift = (registers[locate_lane_scalar(STREAK_TOTAL)] - streak * shared[LEADER_CHANCE]) * over
        keeps_leader = streak <= registers[locate_lane_scalar(UNTIL)] and is_in_ucb_glm_interval(state, shift)
        if not keeps_leader:
            keeps_leader = is_still_leading(state, cast_real(params[0] * read_policy_option(setting, 0)), over, shift)
        if not keeps_leader:
            sync_lanes()
            apply_ucb_glm_streak(state, over)
            refresh = shared[AGE] >= cast_real(REFRESH_INTERVAL)
            too_far = is_model_stale(state, MOVE_LIMIT)
            if refresh or too_far:
                find_warp_mode(state, setting, refresh, too_far, False)
    if not keeps_leader:
        arm = find_highest_ucb_glm_index(state, cast_real(params[0] * read_policy_option(setting, 0)))
        if arm >= int32(0):
            begin_ucb_glm_streak(state, arm)
    return int(arm)


@scalar
def find_highest_ucb_glm_index(state, factor):
    """Find the arm with the highest index. The model is refined while its error does not determine the order.

    The error of a score is at most the model's error times sqrt(x' H^-1 x).
    """
    registers = state.registers
    shared = state.shared
    slack = cast_real(2.0) * compute_warp_tolerance(state) * shared[LONGEST_FEATURE]
    arm = int32(NO_MODE)
    tries = 0
    while shared[MODE_LOST] == cast_real(0.0):
        error = bound_mode_error(state)
        for i in range(count_arms_per_lane()):
            registers[locate_field(TERM, i)] = (
                cast_real(ERROR_MARGIN) * error * compute_safe_root(registers[locate_field(HESSIAN_VARIANCE, i)])
            )
            registers[locate_field(WEIGHT, i)] = registers[locate_field(SCORE, i)] + factor * compute_safe_root(
                registers[locate_field(GRAM_VARIANCE, i)]
            )
        highest, arm = find_highest_weight(state)
        lowest = highest - slack - read_arm_field(state, TERM, arm)
        uncertain = False
        for i in range(count_arms_per_lane()):
            rival = registers[locate_field(WEIGHT, i)] + registers[locate_field(TERM, i)]
            uncertain = uncertain | ((rival >= lowest) & (int32(get_lane() + i * count_lanes()) != arm))
        if not vote_any(uncertain):
            break
        tries += 1
        if error <= compute_warp_tolerance(state) or tries > MAX_REFINEMENTS:
            arm = find_first_tied(state, highest)
            break
        compute_chances(state, False, False)
        sum_weighted_arms(state, locate_vector(ARM_SUMS))
        sync_lanes()
        subtract_estimate(state)
        sync_lanes()
        solve_by_inverse(state)
        sync_lanes()
        move_warp_estimate(state, locate_vector(NEWTON_STEP), cast_real(1.0))
        move_scores_to_mode(state, locate_vector(NEWTON_STEP))
    return arm
