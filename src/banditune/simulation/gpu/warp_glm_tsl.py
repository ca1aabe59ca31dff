"""GLM-TSL played by a warp; draws come from a series around the model's Hessian."""

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
    MAX_LOOKS,
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
    AT,
    CHANCE,
    COUNT,
    DRAWN,
    DRIFT,
    FIRST,
    HEAVY,
    LONGEST,
    LOST,
    MOVE,
    PULLS,
    SCORE,
    SHOWN,
    SLOPE,
    SPREAD,
    STALE,
    SUMS,
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
    """Learn a reward: every arm's R'x and the mode of the model.

    With p = R'x, R becomes R (I - keep p p'), whose square is H^-1 - w / (1 + w p'p) R p p' R'. Scores move along
    x_k' H^-1 x = (R'x_k)'p.
    """
    arm = int32(arm & LARGEST_ARM)  # no less than 0, so that no index can count from the end
    held = state.registers
    common = state.shared
    shown = locate_vector(SHOWN)
    slope = common[locate_arm_column(SLOPE, arm)]
    for i in range(count_arms_per_lane()):
        if int32(get_lane() + i * count_lanes()) == arm:
            for j in range(dims()):
                common[shown + j] = held[i * dims() + j]
            common[MOVE] = common[locate_lane_column(DRIFT, i)]
            common[locate_lane_column(HEAVY, i)] += slope
            common[locate_lane_column(PULLS, i)] += cast_real(1.0)
            common[locate_lane_column(TOTAL, i)] += cast_real(reward)
            common[COUNT] += cast_real(1.0)
            common[AGE] += cast_real(1.0)
    sync_lanes()
    square = compute_shared_dot(state, shown, shown)
    for i in range(count_arms_per_lane()):
        held[locate_field(TERM, i)] = multiply_arm_vector(state, i, shown)
    over = compute_reciprocal(cast_real(1.0) + slope * square)
    keep = slope * over * compute_reciprocal(cast_real(1.0) + over * compute_reciprocal_root(over))
    for i in range(count_arms_per_lane()):
        held[locate_field(WEIGHT, i)] = keep * held[locate_field(TERM, i)]
    for j in range(dims()):
        entry = common[shown + j]
        for i in range(count_arms_per_lane()):
            held[i * dims() + j] -= held[locate_field(WEIGHT, i)] * entry
    step = (cast_real(reward) - common[locate_arm_column(CHANCE, arm)] - slope * common[MOVE]) * over
    # All is built anew after so many pulls too, so that rounding cannot pile up.
    far = common[AGE] >= cast_real(REFRESH_INTERVAL)
    for i in range(count_arms_per_lane()):
        rise = held[locate_field(TERM, i)]
        held[locate_field(SCORE, i)] += step * rise
        held[locate_field(SPREAD, i)] -= slope * over * rise * rise
        drift = common[locate_lane_column(DRIFT, i)] + step * rise
        common[locate_lane_column(DRIFT, i)] = drift
        moved = abs(drift) + abs(common[locate_lane_column(STALE, i)])
        far = far | (
            (common[locate_lane_column(HEAVY, i)] > cast_real(0.0)) & (not moved <= cast_real(MOVE_LIMIT_SAMPLING))
        )
    if vote_any(far):
        find_warp_mode(state, setting, False, True, True)
        common[AGE] = cast_real(0.0)
    # The next look writes chances that all have read here.
    sync_lanes()


@scalar
def draw_glm_tsl_scores(state, scale, step, stream):
    """A new draw: every arm's x'R normals. Normals for some steps are drawn at once, a pair per thread."""
    held = state.registers
    common = state.shared
    if held[locate_lane_scalar(AT)] >= cast_real(count_logistic_normals(dims())):
        sync_lanes()
        for pair in range(get_lane(), (count_logistic_normals(dims()) + 1) // 2, count_lanes()):
            seek(stream, pair, step)
            first, second = normal_pair(stream)
            common[locate_normals() + 2 * pair] = cast_real(first) if scale > cast_real(0.0) else cast_real(0.0)
            common[locate_normals() + 2 * pair + 1] = cast_real(second) if scale > cast_real(0.0) else cast_real(0.0)
        sync_lanes()
        held[locate_lane_scalar(AT)] = cast_real(0.0)
    at = locate_normals() + int32(held[locate_lane_scalar(AT)])
    held[locate_lane_scalar(AT)] += cast_real(dims())
    for i in range(count_arms_per_lane()):
        held[locate_field(FIRST, i)] = multiply_arm_vector(state, i, at)


@scalar
def restart_series(state):
    """The draw as R gives it, before any term of the series."""
    for i in range(count_arms_per_lane()):
        state.registers[locate_field(TERM, i)] = state.registers[locate_field(FIRST, i)]
        state.registers[locate_field(DRAWN, i)] = state.registers[locate_field(FIRST, i)]


@scalar
def bound_draw_error(state, scale, ratio):
    """How far mode and draw together are from the right ones, in posterior deviations.

    What the draw is off by: the next term of the series, `ratio` times E times the last one, and what slopes have changed
    since the last look.
    """
    square = cast_real(0.0)
    for i in range(count_arms_per_lane()):
        moved = abs(state.shared[locate_lane_column(DRIFT, i)])
        stale = abs(state.shared[locate_lane_column(STALE, i)])
        changed = cast_real(0.5) * (cast_real(1.0) + stale) * moved * (cast_real(1.0) + moved)
        drawn = ratio * stale * abs(state.registers[locate_field(TERM, i)]) + changed * abs(
            state.registers[locate_field(FIRST, i)]
        )
        error = bound_chance_error(moved, stale) + scale * drawn
        square += state.shared[locate_lane_column(HEAVY, i)] * error * error
    return compute_root_of_sum(square)


@scalar
def bound_series_error(state, scale, ratio):
    """The part of that which one more term of the series takes away; a look is for the rest."""
    square = cast_real(0.0)
    for i in range(count_arms_per_lane()):
        error = scale * ratio * state.shared[locate_lane_column(STALE, i)] * state.registers[locate_field(TERM, i)]
        square += state.shared[locate_lane_column(HEAVY, i)] * error * error
    return compute_root_of_sum(square)


@scalar
def choose_glm_tsl_warp(state, setting, step, params, stream):
    """The highest score under a draw of theta; at gamma = 0 under the mode."""
    held = state.registers
    common = state.shared
    scale = cast_real(params[0] * read_policy_option(setting, 0))
    slack = cast_real(2.0) * compute_warp_tolerance(state) * common[LONGEST]
    draw_glm_tsl_scores(state, scale, step, stream)
    restart_series(state)
    ratio = cast_real(0.5)
    sign = cast_real(-1.0)
    terms = 0
    arm = int32(NO_MODE)
    tries = 0
    while common[LOST] == cast_real(0.0):
        error = bound_draw_error(state, scale, ratio)
        for i in range(count_arms_per_lane()):
            held[locate_field(WEIGHT, i)] = held[locate_field(SCORE, i)] + scale * held[locate_field(DRAWN, i)]
        highest, arm = find_highest_weight(state)
        spread = read_arm_field(state, SPREAD, arm)
        allowed = cast_real(2.0 * ERROR_MARGIN * ERROR_MARGIN) * error * error
        doubt = False
        for i in range(count_arms_per_lane()):
            gap = highest - slack - held[locate_field(WEIGHT, i)]
            distinct = (gap > cast_real(0.0)) & (gap * gap > allowed * (held[locate_field(SPREAD, i)] + spread))
            doubt = doubt | ((not distinct) & (int32(get_lane() + i * count_lanes()) != arm))
        if not vote_any(doubt):
            break
        tries += 1
        if error <= compute_warp_tolerance(state) or tries > 2 * MAX_LOOKS:
            arm = find_first_tied(state, highest)
            break
        looking = tries == 1 or bound_series_error(state, scale, ratio) < cast_real(0.5) * error
        if looking:
            compute_chances(state, False, True)
        else:
            for i in range(count_arms_per_lane()):
                weight = common[locate_lane_column(HEAVY, i)] * common[locate_lane_column(STALE, i)]
                held[locate_field(WEIGHT, i)] = weight * held[locate_field(TERM, i)]
        sum_weighted_arms(state, locate_vector(SUMS))
        sync_lanes()
        if looking:
            move_scores_to_mode(state, locate_vector(SUMS))
            restart_series(state)
            ratio = cast_real(0.5)
            sign = cast_real(-1.0)
            terms = 0
        else:
            for i in range(count_arms_per_lane()):
                term = multiply_arm_vector(state, i, locate_vector(SUMS))
                held[locate_field(TERM, i)] = term
                held[locate_field(DRAWN, i)] += sign * ratio * term
            terms += 1
            ratio *= cast_real(2 * terms + 1) / cast_real(2 * terms + 2)
            sign = -sign
        sync_lanes()
    return arm
