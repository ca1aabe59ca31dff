"""Newton's method by a warp: build the Hessian anew and move to the mode."""

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
    read_held_feature,
    solve_by_inverse,
    solve_by_root,
    sum_weighted_arms,
)
from banditune.simulation.gpu.warp_logistic_layout import (
    AGE,
    CHANCE,
    DRIFT,
    ESTIMATE,
    HEAVY,
    LOST,
    MOVED,
    PULLS,
    SCORE,
    SLOPE,
    SPREAD,
    SUMS,
    TERM,
    TOTAL,
    WEIGHT,
    WIDTH,
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
    """Build from sum of weight x x' + I its inverse, with pulls times w as weights for `first` = 0 and pulls for `first` =
    dims; with `sampling`, the inverse of its factor.
    """
    at = locate_matrix(first)
    for j in range(dims()):
        for i in range(count_arms_per_lane()):
            weight = state.shared[locate_lane_column(PULLS if first > 0 else HEAVY, i)]
            state.registers[locate_field(WEIGHT, i)] = weight * read_held_feature(state, i, j)
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
    """Every arm's x' H^-1 x afresh, or with `first` = dims its x' G^-1 x."""
    held = state.registers
    for i in range(count_arms_per_lane()):
        held[locate_field(TERM, i)] = cast_real(0.0)
    for j in range(dims()):
        for i in range(count_arms_per_lane()):
            held[locate_field(TERM, i)] += read_held_feature(state, i, j) * multiply_arm_vector(
                state, i, locate_matrix(first) + j * dims()
            )
    for i in range(count_arms_per_lane()):
        held[locate_field(WIDTH, i)] = held[locate_field(TERM, i)] if first > 0 else held[locate_field(WIDTH, i)]
        held[locate_field(SPREAD, i)] = held[locate_field(SPREAD, i)] if first > 0 else held[locate_field(TERM, i)]


@scalar
def restore_features(state, setting):
    """From R'x to x, with theta and scores afresh: at the model's mode, theta is the sum of pulls (reward - chance) x."""
    held = state.registers
    me = get_opaque_lane()
    common = state.shared
    load_features(state, setting)
    for i in range(count_arms_per_lane()):
        modelled = (
            common[locate_lane_column(CHANCE, i)]
            + common[locate_lane_column(SLOPE, i)] * common[locate_lane_column(DRIFT, i)]
        )
        held[locate_field(WEIGHT, i)] = (
            common[locate_lane_column(TOTAL, i)] - common[locate_lane_column(PULLS, i)] * modelled
        )
    sum_weighted_arms(state, locate_vector(ESTIMATE))
    sync_lanes()
    for i in range(count_arms_per_lane()):
        prior = cast_real(compute_prior_score(setting, me + i * count_lanes()))
        held[locate_field(SCORE, i)] = prior + multiply_arm_vector(state, i, locate_vector(ESTIMATE))


@scalar
def whiten_arms(state):
    """From x to R'x, with R' the inverse of H's factor, and its square."""
    held = state.registers
    for i in range(count_arms_per_lane()):
        held[locate_field(SPREAD, i)] = cast_real(0.0)
    for back in range(dims()):
        j = dims() - 1 - back
        at = locate_matrix(0) + j * dims()
        for i in range(count_arms_per_lane()):
            # The rest of the row is 0.
            entry = multiply_arm_vector(state, i, at)
            held[locate_field(SPREAD, i)] += entry * entry
            for place in range(dims()):
                held[i * dims() + place] = entry if place == j else held[i * dims() + place]


@scalar
def find_warp_mode(state, setting, refresh, far, sampling):
    """Newton's method with H built anew at every step, until a step is short; with `refresh`, G^-1 is built anew first.

    Where steps do not at least halve, start again from 0, with steps that are halved until the objective rises by a quarter
    of what the slope promises: see `logistic.climb`. With `sampling`, arms hold R'x before and after.
    """
    held = state.registers
    last = cast_real(math.inf)
    looks = 0
    climbing = False
    if sampling:
        restore_features(state, setting)
    while refresh or far:
        if not refresh:
            compute_chances(state, True, sampling)
            sum_weighted_arms(state, locate_vector(SUMS))
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
            square = compute_shared_dot(state, locate_vector(SUMS), locate_vector(MOVED))
            looks += 1
            if not square < cast_real(math.inf) or looks > MAX_NEWTON_STEPS:
                state.shared[LOST] = cast_real(1.0)
                far = False
            elif not climbing and not square <= cast_real(0.25) * last:
                climbing = True
                reset_estimate(state, setting)
            else:
                length = cast_real(1.0)
                # Close to the mode the full step is right, and the objective is too flat to say so.
                if climbing and square > cast_real(1e-6):
                    length = find_step_length(state, setting, square)
                last = square
                move_warp_estimate(state, locate_vector(MOVED), length)
                for i in range(count_arms_per_lane()):
                    moved = length * multiply_arm_vector(state, i, locate_vector(MOVED))
                    held[locate_field(SCORE, i)] += moved
                    state.shared[locate_lane_column(DRIFT, i)] = moved
                far = length < cast_real(1.0) or is_model_stale(state, MOVE_LIMIT_SAMPLING if sampling else MOVE_LIMIT)
            sync_lanes()
    if sampling:
        whiten_arms(state)


@scalar
def reset_estimate(state, setting):
    """Put the estimate to 0."""
    held = state.registers
    me = get_opaque_lane()
    for part in range(count_lane_dims()):
        j = get_lane() + part * count_lanes()
        if j < dims():
            state.shared[locate_vector(ESTIMATE) + j] = cast_real(0.0)
    for i in range(count_arms_per_lane()):
        held[locate_field(SCORE, i)] = cast_real(compute_prior_score(setting, me + i * count_lanes()))


@scalar
def find_step_length(state, setting, square):
    """How much of the step to take."""
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
    """The logarithm of the posterior at estimate + length step, up to a constant."""
    held = state.registers
    at = locate_vector(MOVED)
    value = cast_real(0.0)
    for part in range(count_lane_dims()):
        j = get_lane() + part * count_lanes()
        if j < dims():
            coordinate = state.shared[locate_vector(ESTIMATE) + j] + length * state.shared[at + j]
            value -= cast_real(0.5) * coordinate * coordinate
    for i in range(count_arms_per_lane()):
        arm = get_lane() + i * count_lanes()
        if arm < setting.arms:
            score = held[locate_field(SCORE, i)] + length * multiply_arm_vector(state, i, at)
            grown = max(score, cast_real(0.0)) + math.log(cast_real(1.0) + math.exp(-abs(score)))
            value += state.shared[locate_lane_column(TOTAL, i)] * score
            value -= state.shared[locate_lane_column(PULLS, i)] * grown
    return sum_over_lanes(value)
