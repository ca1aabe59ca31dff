"""The Gaussian model of logistic regression that a warp keeps, and how far it may be from the posterior."""

from __future__ import annotations

import math

from numpy import int32

from banditune.core.scalar import noinline, scalar
from banditune.simulation.estimators.logistic_state import MODE_TOLERANCE
from banditune.simulation.estimators.vector_layout import dims
from banditune.simulation.gpu.warp_logistic_algebra import compute_root_of_sum, multiply_arm_vector
from banditune.simulation.gpu.warp_logistic_layout import (
    AGE,
    AT,
    CHANCE,
    COUNT,
    DRIFT,
    ESTIMATE,
    HEAVY,
    LEADER,
    LONGEST,
    LOST,
    NORMALS_PER_DRAW,
    PLAIN,
    PULLS,
    SCORE,
    SLOPE,
    SPREAD,
    STALE,
    SUMS,
    TERM,
    TOTAL,
    WEIGHT,
    WIDTH,
    count_lane_dims,
    count_lane_rows,
    locate_field,
    locate_lane_column,
    locate_lane_scalar,
    locate_matrix,
    locate_vector,
)
from banditune.simulation.gpu.warp_primitives import (
    argmax_over_lanes,
    cast_real,
    compute_reciprocal,
    count_arms_per_lane,
    count_lanes,
    get_lane,
    get_opaque_lane,
    shuffle_from_lane,
    vote_any,
)

MOVE_LIMIT = 0.3
"""How far a score may move since the last look, and a slope age since H was built, together."""


MOVE_LIMIT_SAMPLING = 0.12
"""The same for GLM-TSL, whose draws need H more exactly."""


ERROR_MARGIN = 2.0
"""Errors are allowed to be so many times what was found for them."""


MAX_LOOKS = 24
"""Looks, or terms of a series, before the arms are taken for equal; two to five are usual."""


PADDING_SCORE = -1e30
"""The score of the places behind the last arm."""


@scalar
def compute_chance_and_slope(score):
    """The logistic function and its derivative; scores beyond 40 are as good as 40."""
    small = math.exp(-min(abs(score), cast_real(40.0)))
    large = compute_reciprocal(cast_real(1.0) + small)
    return (large if score > cast_real(0.0) else small * large), small * large * large


@scalar
def start_logistic_warp(state, setting):
    """Forget everything but the prior."""
    held = state.registers
    me = get_opaque_lane()
    common = state.shared
    common[PLAIN] = cast_real(1.0) if is_prior_plain(setting) else cast_real(0.0)
    load_features(state, setting)
    longest = cast_real(0.0)
    for i in range(count_arms_per_lane()):
        square = cast_real(0.0)
        for j in range(dims()):
            square += held[i * dims() + j] * held[i * dims() + j]
        longest = max(longest, square)
        held[locate_field(SPREAD, i)] = square
        held[locate_field(WIDTH, i)] = square
    for i in range(count_arms_per_lane()):
        score = cast_real(compute_prior_score(setting, me + i * count_lanes()))
        chance, slope = compute_chance_and_slope(score)
        held[locate_field(SCORE, i)] = score
        common[locate_lane_column(PULLS, i)] = cast_real(0.0)
        common[locate_lane_column(TOTAL, i)] = cast_real(0.0)
        common[locate_lane_column(CHANCE, i)] = chance
        common[locate_lane_column(SLOPE, i)] = slope
        common[locate_lane_column(DRIFT, i)] = cast_real(0.0)
        common[locate_lane_column(STALE, i)] = cast_real(0.0)
        common[locate_lane_column(HEAVY, i)] = cast_real(0.0)
    for r in range(count_lane_rows()):
        row = get_lane() + r * count_lanes()
        if row < 2 * dims():
            for j in range(dims()):
                common[locate_matrix(0) + row * dims() + j] = (
                    cast_real(1.0) if row == j or row == j + dims() else cast_real(0.0)
                )
        if row < dims():
            common[locate_vector(ESTIMATE) + row] = cast_real(0.0)
    longest, _ = argmax_over_lanes(longest, int32(0))
    # Every thread writes the same.
    common[LOST] = cast_real(0.0)
    common[COUNT] = cast_real(0.0)
    common[AGE] = cast_real(0.0)
    common[LONGEST] = math.sqrt(longest)
    held[locate_lane_scalar(AT)] = cast_real(NORMALS_PER_DRAW + dims())
    held[locate_lane_scalar(LEADER)] = cast_real(0.0)


@scalar
def load_features(state, setting):
    """Put the features into the numbers held for arms."""
    held = state.registers
    me = get_opaque_lane()
    if state.shared[PLAIN] > cast_real(0.0):
        for i in range(count_arms_per_lane()):
            arm = me + i * count_lanes()
            exists = cast_real(1.0) if arm < setting.arms else cast_real(0.0)
            for j in range(dims()):
                held[i * dims() + j] = exists * cast_real(setting.features[j, min(arm, setting.arms - 1)])
        return
    for place in range(count_arms_per_lane() * dims()):
        held[place] = cast_real(0.0)
    for j in range(dims()):
        for i in range(count_arms_per_lane()):
            value = cast_real(whiten_feature(setting, j, me + i * count_lanes()))
            for place in range(dims()):
                held[i * dims() + place] += value * (cast_real(1.0) if place == j else cast_real(0.0))


@noinline
def is_prior_plain(setting):
    """Whether features need no turning, because the prior's covariance is I."""
    plain = True
    for i in range(setting.dims):
        for j in range(i + 1):
            entry = setting.options[1 + setting.dims + i * setting.dims + j]
            plain = plain and entry == (1.0 if i == j else 0.0)
    return plain


@noinline
def whiten_feature(setting, j, arm):
    """A feature in the coordinates in which the prior is N(0, I); 0 behind the last arm."""
    feature = 0.0
    if arm < setting.arms:
        for i in range(j, setting.dims):
            feature += setting.options[1 + setting.dims + i * setting.dims + j] * setting.features[i, arm]
    return feature


@noinline
def compute_prior_score(setting, arm):
    """An arm's score under the prior's mean."""
    score = 0.0
    if arm < setting.arms:
        for j in range(setting.dims):
            score += setting.options[1 + j] * setting.features[j, arm]
        return score
    return PADDING_SCORE


@scalar
def compute_warp_tolerance(state):
    """How exactly the mode is known after so many pulls: as `logistic` says in float64, and as float32 allows."""
    if cast_real(1.0) + cast_real(1e-10) > cast_real(1.0):
        return cast_real(MODE_TOLERANCE) + cast_real(1e-14) * state.shared[COUNT]
    return cast_real(1e-6) + cast_real(1e-9) * state.shared[COUNT]


@scalar
def compute_chances(state, anew, sampling):
    """Compute chances at the estimate, and the weights with which features add up to the gradient.

    The slopes of arms never pulled are free to change, and with `anew` all are. With `sampling` but not `anew`, weights are
    for the gradient less that of the old model, which is 0 at its mode.
    """
    held = state.registers
    common = state.shared
    for i in range(count_arms_per_lane()):
        chance, slope = compute_chance_and_slope(held[locate_field(SCORE, i)])
        pulls = common[locate_lane_column(PULLS, i)]
        old = common[locate_lane_column(SLOPE, i)]
        if sampling and not anew:
            modelled = common[locate_lane_column(CHANCE, i)] + old * common[locate_lane_column(DRIFT, i)]
            held[locate_field(WEIGHT, i)] = pulls * (modelled - chance)
        else:
            held[locate_field(WEIGHT, i)] = common[locate_lane_column(TOTAL, i)] - pulls * chance
        fresh = anew or pulls == cast_real(0.0)
        common[locate_lane_column(CHANCE, i)] = chance
        common[locate_lane_column(DRIFT, i)] = cast_real(0.0)
        common[locate_lane_column(STALE, i)] = (
            cast_real(0.0) if fresh else slope * compute_reciprocal(old) - cast_real(1.0)
        )
        if fresh:
            common[locate_lane_column(SLOPE, i)] = slope
            common[locate_lane_column(HEAVY, i)] = pulls * slope


@scalar
def subtract_estimate(state):
    """The prior's part of the gradient."""
    for part in range(count_lane_dims()):
        j = get_lane() + part * count_lanes()
        if j < dims():
            state.shared[locate_vector(SUMS) + j] -= state.shared[locate_vector(ESTIMATE) + j]


@scalar
def move_warp_estimate(state, at, step):
    """Move the estimate by so much of a vector."""
    for part in range(count_lane_dims()):
        j = get_lane() + part * count_lanes()
        if j < dims():
            state.shared[locate_vector(ESTIMATE) + j] += step * state.shared[at + j]


@scalar
def is_model_stale(state, limit):
    """Whether a score has moved or a slope has aged too much for the model."""
    far = False
    for i in range(count_arms_per_lane()):
        moved = abs(state.shared[locate_lane_column(DRIFT, i)]) + abs(state.shared[locate_lane_column(STALE, i)])
        far = far | ((state.shared[locate_lane_column(HEAVY, i)] > cast_real(0.0)) & (not moved <= cast_real(limit)))
    return vote_any(far)


@scalar
def bound_chance_error(moved, stale):
    """How far an arm's chance may be from the model's, as a share of its slope: |D| c for |D| and |a|."""
    return moved * (stale + (cast_real(1.0) + stale) * moved * (cast_real(0.5) + moved))


@scalar
def bound_mode_error(state):
    """How far the estimate is from the mode, in posterior deviations."""
    square = cast_real(0.0)
    for i in range(count_arms_per_lane()):
        error = bound_chance_error(
            abs(state.shared[locate_lane_column(DRIFT, i)]), abs(state.shared[locate_lane_column(STALE, i)])
        )
        square += state.shared[locate_lane_column(HEAVY, i)] * error * error
    return compute_root_of_sum(square)


@scalar
def find_first_tied(state, highest):
    """The first arm whose index, in WEIGHT, cannot be distinguished from the highest."""
    enough = highest - cast_real(2.0) * compute_warp_tolerance(state) * state.shared[LONGEST]
    found = cast_real(0.0)
    arm = int32(0)
    for back in range(count_arms_per_lane()):
        i = count_arms_per_lane() - 1 - back
        if state.registers[locate_field(WEIGHT, i)] >= enough:
            found = cast_real(1.0)
            arm = int32(get_lane() + i * count_lanes())
    _, arm = argmax_over_lanes(found, arm)
    return arm


@scalar
def find_highest_weight(state):
    """The highest of the indices in WEIGHT, and its arm."""
    highest = state.registers[locate_field(WEIGHT, 0)]
    arm = int32(get_lane())
    for i in range(1, count_arms_per_lane()):
        index = state.registers[locate_field(WEIGHT, i)]
        if index > highest:
            highest = index
            arm = int32(get_lane() + i * count_lanes())
    return argmax_over_lanes(highest, arm)


@scalar
def read_arm_field(state, number, arm):
    """What is held for an arm, for the whole team."""
    mine = cast_real(0.0)
    for i in range(count_arms_per_lane()):
        mine = state.registers[locate_field(number, i)] if int32(get_lane() + i * count_lanes()) == arm else mine
    return shuffle_from_lane(mine, int32(arm & (count_lanes() - 1)))


@scalar
def move_scores_to_mode(state, at):
    """Move every score to the new model's mode, by a step that the team sees."""
    for i in range(count_arms_per_lane()):
        state.registers[locate_field(TERM, i)] = multiply_arm_vector(state, i, at)
    for i in range(count_arms_per_lane()):
        moved = state.registers[locate_field(TERM, i)]
        state.registers[locate_field(SCORE, i)] += moved
        state.shared[locate_lane_column(DRIFT, i)] = moved
