"""Newton's method on a warp, which rebuilds the Hessian and moves to the mode."""

from __future__ import annotations

import math

from banditune.core.scalar import scalar
from banditune.simulation.estimators.logistic_mode import MAX_NEWTON_STEPS
from banditune.simulation.estimators.vector_layout import dims
from banditune.simulation.gpu.warp_logistic import (
    MOVE_LIMIT,
    MOVE_LIMIT_SAMPLING,
    compute_chances,
    compute_prior_score,
    is_model_stale,
    load_features,
    move_warp_estimate,
    subtract_estimate,
)
from banditune.simulation.gpu.warp_logistic_algebra import (
    compute_shared_dot,
    eliminate_matrix,
    multiply_arm_vector,
    read_register_feature,
    solve_by_inverse,
    solve_by_root,
    sum_weighted_arms,
)
from banditune.simulation.gpu.warp_logistic_layout import (
    AGE,
    ARM_SUMS,
    CHANCE,
    CURVATURE,
    DRIFT,
    ESTIMATE,
    GRAM_VARIANCE,
    HESSIAN_VARIANCE,
    MODE_LOST,
    NEWTON_STEP,
    PULLS,
    SCORE,
    SLOPE,
    TERM,
    TOTAL,
    WEIGHT,
    count_lane_dims,
    locate_field,
    locate_lane_column,
    locate_matrix,
    locate_vector,
)
from banditune.simulation.gpu.warp_primitives import (
    cast_real,
    count_arms_per_lane,
    count_lanes,
    get_lane,
    get_opaque_lane,
    sum_over_lanes,
    sync_lanes,
)


@scalar
def rebuild_matrix(state, first, sampling):
    """Compute the inverse of sum weight x x' + I, or with `sampling` that of its Cholesky factor.

    Weights are pulls times w for `first` = 0 (H), and pulls for `first` = dims (G).
    """
    at = locate_matrix(first)
    for j in range(dims()):
        for i in range(count_arms_per_lane()):
            weight = state.shared[locate_lane_column(PULLS if first > 0 else CURVATURE, i)]
            state.registers[locate_field(WEIGHT, i)] = weight * read_register_feature(state, i, j)
        sum_weighted_arms(state, at + j * dims())
    sync_lanes()
    for part in range(count_lane_dims()):
        j = get_lane() + part * count_lanes()
        if j < dims():
            state.shared[at + j * dims() + j] += cast_real(1.0)
    sync_lanes()
    eliminate_matrix(state.shared, at, sampling)
    if not sampling:
        recompute_arm_variances(state, first)


@scalar
def recompute_arm_variances(state, first):
    """Recompute every arm's x' H^-1 x, or with `first` = dims its x' G^-1 x."""
    registers = state.registers
    for i in range(count_arms_per_lane()):
        registers[locate_field(TERM, i)] = cast_real(0.0)
    for j in range(dims()):
        for i in range(count_arms_per_lane()):
            registers[locate_field(TERM, i)] += read_register_feature(state, i, j) * multiply_arm_vector(
                state, i, locate_matrix(first) + j * dims()
            )
    for i in range(count_arms_per_lane()):
        registers[locate_field(GRAM_VARIANCE, i)] = (
            registers[locate_field(TERM, i)] if first > 0 else registers[locate_field(GRAM_VARIANCE, i)]
        )
        registers[locate_field(HESSIAN_VARIANCE, i)] = (
            registers[locate_field(HESSIAN_VARIANCE, i)] if first > 0 else registers[locate_field(TERM, i)]
        )


@scalar
def restore_features(state, setting):
    """Replace R'x by x, and recompute theta and scores. At the mode, theta is the sum of pulls (reward - chance) x."""
    registers = state.registers
    lane = get_opaque_lane()
    shared = state.shared
    load_features(state, setting)
    for i in range(count_arms_per_lane()):
        modelled = (
            shared[locate_lane_column(CHANCE, i)]
            + shared[locate_lane_column(SLOPE, i)] * shared[locate_lane_column(DRIFT, i)]
        )
        registers[locate_field(WEIGHT, i)] = (
            shared[locate_lane_column(TOTAL, i)] - shared[locate_lane_column(PULLS, i)] * modelled
        )
    sum_weighted_arms(state, locate_vector(ESTIMATE))
    sync_lanes()
    for i in range(count_arms_per_lane()):
        prior = cast_real(compute_prior_score(setting, lane + i * count_lanes()))
        registers[locate_field(SCORE, i)] = prior + multiply_arm_vector(state, i, locate_vector(ESTIMATE))


@scalar
def whiten_arms(state):
    """Replace x by R'x, with the inverse R' of H's Cholesky factor, and compute its squared norm."""
    registers = state.registers
    for i in range(count_arms_per_lane()):
        registers[locate_field(HESSIAN_VARIANCE, i)] = cast_real(0.0)
    for back in range(dims()):
        j = dims() - 1 - back
        at = locate_matrix(0) + j * dims()
        for i in range(count_arms_per_lane()):
            # The other entries of the row are 0.
            entry = multiply_arm_vector(state, i, at)
            registers[locate_field(HESSIAN_VARIANCE, i)] += entry * entry
            for dim in range(dims()):
                registers[i * dims() + dim] = entry if dim == j else registers[i * dims() + dim]


@scalar
def find_warp_mode(state, setting, refresh, needs_step, sampling):
    """Make Newton steps, each with a new H, until a step is short. With `refresh`, rebuild G^-1 first.

    If a step is longer than half the previous one, start again from 0 with damped steps. They are halved until the
    objective rises by a quarter of the increase that the slope predicts, as on the CPU. With `sampling`, arms have R'x
    before and after.
    """
    registers = state.registers
    last = cast_real(math.inf)
    newton_steps = 0
    damped = False
    if sampling:
        restore_features(state, setting)
    while refresh or needs_step:
        if not refresh:
            compute_chances(state, True, sampling)
            sum_weighted_arms(state, locate_vector(ARM_SUMS))
            sync_lanes()
            subtract_estimate(state)
        rebuild_matrix(state, dims() if refresh else 0, sampling)
        if refresh:
            state.shared[AGE] = cast_real(0.0)
            refresh = False
        else:
            sync_lanes()
            if sampling:
                solve_by_root(state)
            else:
                solve_by_inverse(state)
            sync_lanes()
            square = compute_shared_dot(state, locate_vector(ARM_SUMS), locate_vector(NEWTON_STEP))
            newton_steps += 1
            if not square < cast_real(math.inf) or newton_steps > MAX_NEWTON_STEPS:
                state.shared[MODE_LOST] = cast_real(1.0)
                needs_step = False
            elif not damped and not square <= cast_real(0.25) * last:
                damped = True
                reset_estimate(state, setting)
            else:
                length = cast_real(1.0)
                # Near the mode the full step is right, but the change of the objective is within rounding errors.
                if damped and square > cast_real(1e-6):
                    length = find_step_length(state, setting, square)
                last = square
                move_warp_estimate(state, locate_vector(NEWTON_STEP), length)
                for i in range(count_arms_per_lane()):
                    shift = length * multiply_arm_vector(state, i, locate_vector(NEWTON_STEP))
                    registers[locate_field(SCORE, i)] += shift
                    state.shared[locate_lane_column(DRIFT, i)] = shift
                needs_step = length < cast_real(1.0) or is_model_stale(
                    state, MOVE_LIMIT_SAMPLING if sampling else MOVE_LIMIT
                )
            sync_lanes()
    if sampling:
        whiten_arms(state)


@scalar
def reset_estimate(state, setting):
    """Set the estimate to 0."""
    registers = state.registers
    lane = get_opaque_lane()
    for part in range(count_lane_dims()):
        j = get_lane() + part * count_lanes()
        if j < dims():
            state.shared[locate_vector(ESTIMATE) + j] = cast_real(0.0)
    for i in range(count_arms_per_lane()):
        registers[locate_field(SCORE, i)] = cast_real(compute_prior_score(setting, lane + i * count_lanes()))


@scalar
def find_step_length(state, setting, square):
    """Find the share of the step by which the estimate is moved."""
    length = cast_real(1.0)
    before = compute_warp_log_posterior(state, setting, cast_real(0.0))
    while (
        length > cast_real(1e-12)
        and not compute_warp_log_posterior(state, setting, length) >= before + cast_real(0.25) * length * square
    ):
        length *= cast_real(0.5)
    return length


@scalar
def compute_warp_log_posterior(state, setting, length):
    """Compute the log-posterior at estimate + length step, up to a constant."""
    registers = state.registers
    at = locate_vector(NEWTON_STEP)
    value = cast_real(0.0)
    for part in range(count_lane_dims()):
        j = get_lane() + part * count_lanes()
        if j < dims():
            coordinate = state.shared[locate_vector(ESTIMATE) + j] + length * state.shared[at + j]
            value -= cast_real(0.5) * coordinate * coordinate
    for i in range(count_arms_per_lane()):
        arm = get_lane() + i * count_lanes()
        if arm < setting.arms:
            score = registers[locate_field(SCORE, i)] + length * multiply_arm_vector(state, i, at)
            log_normalizer = max(score, cast_real(0.0)) + math.log(cast_real(1.0) + math.exp(-abs(score)))
            value += state.shared[locate_lane_column(TOTAL, i)] * score
            value -= state.shared[locate_lane_column(PULLS, i)] * log_normalizer
    return sum_over_lanes(value)
