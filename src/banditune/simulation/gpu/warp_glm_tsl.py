"""The warp version of GLM-TSL. Draws are a series around the Hessian of the model; see `warp_logistic`."""

from __future__ import annotations

from numpy import int32

from banditune.core.distributions import normal_pair
from banditune.core.scalar import scalar
from banditune.core.streams import seek
from banditune.simulation.estimators.logistic_mode import NO_MODE
from banditune.simulation.estimators.ridge_regression import REFRESH_INTERVAL
from banditune.simulation.estimators.vector_layout import dims
from banditune.simulation.estimators.whitened_features import read_policy_option
from banditune.simulation.gpu.warp_logistic import (
    ERROR_MARGIN,
    MAX_REFINEMENTS,
    MOVE_LIMIT_SAMPLING,
    bound_chance_error,
    compute_chances,
    compute_warp_tolerance,
    find_first_tied,
    find_highest_weight,
    move_scores_to_mode,
    read_arm_field,
)
from banditune.simulation.gpu.warp_logistic_algebra import (
    compute_root_of_sum,
    compute_shared_dot,
    multiply_arm_vector,
    sum_weighted_arms,
)
from banditune.simulation.gpu.warp_logistic_layout import (
    AGE,
    ARM_SUMS,
    CHANCE,
    CURVATURE,
    DRIFT,
    FIRST_TERM,
    HESSIAN_VARIANCE,
    LONGEST_FEATURE,
    MODE_LOST,
    NEXT_NORMAL,
    PULL_COUNT,
    PULLED_DRIFT,
    PULLED_FEATURES,
    PULLS,
    SCORE,
    SERIES_SUM,
    SLOPE,
    SLOPE_CHANGE,
    TERM,
    TOTAL,
    WEIGHT,
    count_logistic_normals,
    locate_arm_column,
    locate_field,
    locate_lane_column,
    locate_lane_scalar,
    locate_normals,
    locate_vector,
)
from banditune.simulation.gpu.warp_logistic_mode import find_warp_mode
from banditune.simulation.gpu.warp_primitives import (
    cast_real,
    compute_reciprocal,
    compute_reciprocal_root,
    count_arms_per_lane,
    count_lanes,
    get_lane,
    sync_lanes,
    vote_any,
)

LARGEST_ARM = 0x7FFFFFFF


@scalar
def update_glm_tsl_warp(state, setting, step, params, arm, reward, stream):
    """Update for one reward: every arm's R'x, and the mode of the model.

    With p = R'x, R becomes R (I - keep p p'), whose square is H^-1 - w / (1 + w p'p) R p p' R'. Scores move along
    x_k' H^-1 x = (R'x_k)'p.
    """
    arm = int32(arm & LARGEST_ARM)  # not negative, so that no index can count from the end
    registers = state.registers
    shared = state.shared
    pulled = locate_vector(PULLED_FEATURES)
    slope = shared[locate_arm_column(SLOPE, arm)]
    for i in range(count_arms_per_lane()):
        if int32(get_lane() + i * count_lanes()) == arm:
            for j in range(dims()):
                shared[pulled + j] = registers[i * dims() + j]
            shared[PULLED_DRIFT] = shared[locate_lane_column(DRIFT, i)]
            shared[locate_lane_column(CURVATURE, i)] += slope
            shared[locate_lane_column(PULLS, i)] += cast_real(1.0)
            shared[locate_lane_column(TOTAL, i)] += cast_real(reward)
            shared[PULL_COUNT] += cast_real(1.0)
            shared[AGE] += cast_real(1.0)
    sync_lanes()
    square = compute_shared_dot(state, pulled, pulled)
    for i in range(count_arms_per_lane()):
        registers[locate_field(TERM, i)] = multiply_arm_vector(state, i, pulled)
    over = compute_reciprocal(cast_real(1.0) + slope * square)
    keep = slope * over * compute_reciprocal(cast_real(1.0) + over * compute_reciprocal_root(over))
    for i in range(count_arms_per_lane()):
        registers[locate_field(WEIGHT, i)] = keep * registers[locate_field(TERM, i)]
    for j in range(dims()):
        entry = shared[pulled + j]
        for i in range(count_arms_per_lane()):
            registers[i * dims() + j] -= registers[locate_field(WEIGHT, i)] * entry
    step = (cast_real(reward) - shared[locate_arm_column(CHANCE, arm)] - slope * shared[PULLED_DRIFT]) * over
    # Rebuilding after a number of pulls limits the accumulation of rounding errors.
    too_far = shared[AGE] >= cast_real(REFRESH_INTERVAL)
    for i in range(count_arms_per_lane()):
        covariance = registers[locate_field(TERM, i)]
        registers[locate_field(SCORE, i)] += step * covariance
        registers[locate_field(HESSIAN_VARIANCE, i)] -= slope * over * covariance * covariance
        drift = shared[locate_lane_column(DRIFT, i)] + step * covariance
        shared[locate_lane_column(DRIFT, i)] = drift
        change = abs(drift) + abs(shared[locate_lane_column(SLOPE_CHANGE, i)])
        too_far = too_far | (
            (shared[locate_lane_column(CURVATURE, i)] > cast_real(0.0)) & (not change <= cast_real(MOVE_LIMIT_SAMPLING))
        )
    if vote_any(too_far):
        find_warp_mode(state, setting, False, True, True)
        shared[AGE] = cast_real(0.0)
    # The next refinement overwrites probabilities, so all lanes must have read them here.
    sync_lanes()


@scalar
def draw_glm_tsl_scores(state, scale, step, stream):
    """Draw every arm's x'R z. The normals z of some steps are drawn together, a pair per lane."""
    registers = state.registers
    shared = state.shared
    if registers[locate_lane_scalar(NEXT_NORMAL)] >= cast_real(count_logistic_normals(dims())):
        sync_lanes()
        for pair in range(get_lane(), (count_logistic_normals(dims()) + 1) // 2, count_lanes()):
            seek(stream, pair, step)
            first, second = normal_pair(stream)
            shared[locate_normals() + 2 * pair] = cast_real(first) if scale > cast_real(0.0) else cast_real(0.0)
            shared[locate_normals() + 2 * pair + 1] = cast_real(second) if scale > cast_real(0.0) else cast_real(0.0)
        sync_lanes()
        registers[locate_lane_scalar(NEXT_NORMAL)] = cast_real(0.0)
    at = locate_normals() + int32(registers[locate_lane_scalar(NEXT_NORMAL)])
    registers[locate_lane_scalar(NEXT_NORMAL)] += cast_real(dims())
    for i in range(count_arms_per_lane()):
        registers[locate_field(FIRST_TERM, i)] = multiply_arm_vector(state, i, at)


@scalar
def restart_series(state):
    """Reset the series of the draw to its first term."""
    for i in range(count_arms_per_lane()):
        state.registers[locate_field(TERM, i)] = state.registers[locate_field(FIRST_TERM, i)]
        state.registers[locate_field(SERIES_SUM, i)] = state.registers[locate_field(FIRST_TERM, i)]


@scalar
def bound_draw_error(state, scale, ratio):
    """Bound the error of mode and draw together, in posterior standard deviations.

    The error of the draw is the next term of the series, plus the change of slopes since the last refinement. The next
    term is at most `ratio` times the relative changes of slopes times the last one.
    """
    square = cast_real(0.0)
    for i in range(count_arms_per_lane()):
        drift = abs(state.shared[locate_lane_column(DRIFT, i)])
        slope_change = abs(state.shared[locate_lane_column(SLOPE_CHANGE, i)])
        changed = cast_real(0.5) * (cast_real(1.0) + slope_change) * drift * (cast_real(1.0) + drift)
        draw_error = ratio * slope_change * abs(state.registers[locate_field(TERM, i)]) + changed * abs(
            state.registers[locate_field(FIRST_TERM, i)]
        )
        error = bound_chance_error(drift, slope_change) + scale * draw_error
        square += state.shared[locate_lane_column(CURVATURE, i)] * error * error
    return compute_root_of_sum(square)


@scalar
def bound_series_error(state, scale, ratio):
    """Bound the part of this error that one more term of the series removes. A refinement removes the other part."""
    square = cast_real(0.0)
    for i in range(count_arms_per_lane()):
        error = (
            scale * ratio * state.shared[locate_lane_column(SLOPE_CHANGE, i)] * state.registers[locate_field(TERM, i)]
        )
        square += state.shared[locate_lane_column(CURVATURE, i)] * error * error
    return compute_root_of_sum(square)


@scalar
def choose_glm_tsl_warp(state, setting, step, params, stream):
    """Choose the arm with the highest score under a draw of theta; at gamma = 0 under the mode."""
    registers = state.registers
    shared = state.shared
    scale = cast_real(params[0] * read_policy_option(setting, 0))
    slack = cast_real(2.0) * compute_warp_tolerance(state) * shared[LONGEST_FEATURE]
    draw_glm_tsl_scores(state, scale, step, stream)
    restart_series(state)
    ratio = cast_real(0.5)
    sign = cast_real(-1.0)
    terms = 0
    arm = int32(NO_MODE)
    tries = 0
    while shared[MODE_LOST] == cast_real(0.0):
        error = bound_draw_error(state, scale, ratio)
        for i in range(count_arms_per_lane()):
            registers[locate_field(WEIGHT, i)] = (
                registers[locate_field(SCORE, i)] + scale * registers[locate_field(SERIES_SUM, i)]
            )
        highest, arm = find_highest_weight(state)
        spread = read_arm_field(state, HESSIAN_VARIANCE, arm)
        allowed = cast_real(2.0 * ERROR_MARGIN * ERROR_MARGIN) * error * error
        uncertain = False
        for i in range(count_arms_per_lane()):
            gap = highest - slack - registers[locate_field(WEIGHT, i)]
            distinct = (gap > cast_real(0.0)) & (
                gap * gap > allowed * (registers[locate_field(HESSIAN_VARIANCE, i)] + spread)
            )
            uncertain = uncertain | ((not distinct) & (int32(get_lane() + i * count_lanes()) != arm))
        if not vote_any(uncertain):
            break
        tries += 1
        if error <= compute_warp_tolerance(state) or tries > 2 * MAX_REFINEMENTS:
            arm = find_first_tied(state, highest)
            break
        refining = tries == 1 or bound_series_error(state, scale, ratio) < cast_real(0.5) * error
        if refining:
            compute_chances(state, False, True)
        else:
            for i in range(count_arms_per_lane()):
                weight = shared[locate_lane_column(CURVATURE, i)] * shared[locate_lane_column(SLOPE_CHANGE, i)]
                registers[locate_field(WEIGHT, i)] = weight * registers[locate_field(TERM, i)]
        sum_weighted_arms(state, locate_vector(ARM_SUMS))
        sync_lanes()
        if refining:
            move_scores_to_mode(state, locate_vector(ARM_SUMS))
            restart_series(state)
            ratio = cast_real(0.5)
            sign = cast_real(-1.0)
            terms = 0
        else:
            for i in range(count_arms_per_lane()):
                term = multiply_arm_vector(state, i, locate_vector(ARM_SUMS))
                registers[locate_field(TERM, i)] = term
                registers[locate_field(SERIES_SUM, i)] += sign * ratio * term
            terms += 1
            ratio *= cast_real(2 * terms + 1) / cast_real(2 * terms + 2)
            sign = -sign
        sync_lanes()
    return arm
