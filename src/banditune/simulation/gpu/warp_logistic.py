"""The Gaussian model of the logistic posterior that a warp updates, and bounds on its error.

The model has the mode theta and the Hessian H. Pulls update both without a Newton step. A refinement computes all
probabilities at theta, and moves theta to the mode of the model with the true gradient.
"""

from __future__ import annotations

import math

from numpy import int32

from banditune.core.scalar import noinline, scalar
from banditune.simulation.estimators.logistic_state import MODE_TOLERANCE
from banditune.simulation.estimators.vector_layout import dims
from banditune.simulation.gpu.warp_logistic_algebra import compute_root_of_sum, multiply_arm_vector
from banditune.simulation.gpu.warp_logistic_layout import (
    AGE,
    ARM_SUMS,
    CHANCE,
    CURVATURE,
    DRIFT,
    ESTIMATE,
    GRAM_VARIANCE,
    HESSIAN_VARIANCE,
    IDENTITY_PRIOR,
    LEADER,
    LONGEST_FEATURE,
    MODE_LOST,
    NEXT_NORMAL,
    NORMALS_PER_DRAW,
    PULL_COUNT,
    PULLS,
    SCORE,
    SLOPE,
    SLOPE_CHANGE,
    TERM,
    TOTAL,
    WEIGHT,
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
"""The largest sum of a score's drift since the last refinement and its slope's relative change since H was built."""


MOVE_LIMIT_SAMPLING = 0.12
"""The same for GLM-TSL, whose draws need a more exact H."""


ERROR_MARGIN = 2.0
"""The factor by which estimated errors are multiplied."""


MAX_REFINEMENTS = 24
"""The number of refinements, or terms of a series, after which arms count as equal. Two to five are usual."""


PADDING_SCORE = -1e30
"""The score of the padding behind the last arm."""


@scalar
def compute_chance_and_slope(score):
    """Compute the logistic function and its derivative. Scores are cut at 40 and -40."""
    small = math.exp(-min(abs(score), cast_real(40.0)))
    large = compute_reciprocal(cast_real(1.0) + small)
    return (large if score > cast_real(0.0) else small * large), small * large * large


@scalar
def start_logistic_warp(state, setting):
    """Reset both memories to the prior."""
    registers = state.registers
    lane = get_opaque_lane()
    shared = state.shared
    shared[IDENTITY_PRIOR] = cast_real(1.0) if has_identity_prior(setting) else cast_real(0.0)
    load_features(state, setting)
    longest = cast_real(0.0)
    for i in range(count_arms_per_lane()):
        square = cast_real(0.0)
        for j in range(dims()):
            square += registers[i * dims() + j] * registers[i * dims() + j]
        longest = max(longest, square)
        registers[locate_field(HESSIAN_VARIANCE, i)] = square
        registers[locate_field(GRAM_VARIANCE, i)] = square
    for i in range(count_arms_per_lane()):
        score = cast_real(compute_prior_score(setting, lane + i * count_lanes()))
        chance, slope = compute_chance_and_slope(score)
        registers[locate_field(SCORE, i)] = score
        shared[locate_lane_column(PULLS, i)] = cast_real(0.0)
        shared[locate_lane_column(TOTAL, i)] = cast_real(0.0)
        shared[locate_lane_column(CHANCE, i)] = chance
        shared[locate_lane_column(SLOPE, i)] = slope
        shared[locate_lane_column(DRIFT, i)] = cast_real(0.0)
        shared[locate_lane_column(SLOPE_CHANGE, i)] = cast_real(0.0)
        shared[locate_lane_column(CURVATURE, i)] = cast_real(0.0)
    for r in range(count_lane_rows()):
        row = get_lane() + r * count_lanes()
        if row < 2 * dims():
            for j in range(dims()):
                shared[locate_matrix(0) + row * dims() + j] = (
                    cast_real(1.0) if row == j or row == j + dims() else cast_real(0.0)
                )
        if row < dims():
            shared[locate_vector(ESTIMATE) + row] = cast_real(0.0)
    longest, _ = argmax_over_lanes(longest, int32(0))
    # All lanes write the same value.
    shared[MODE_LOST] = cast_real(0.0)
    shared[PULL_COUNT] = cast_real(0.0)
    shared[AGE] = cast_real(0.0)
    shared[LONGEST_FEATURE] = math.sqrt(longest)
    registers[locate_lane_scalar(NEXT_NORMAL)] = cast_real(NORMALS_PER_DRAW + dims())
    registers[locate_lane_scalar(LEADER)] = cast_real(0.0)


@scalar
def load_features(state, setting):
    """Load the features of a lane's arms into its registers."""
    registers = state.registers
    lane = get_opaque_lane()
    if state.shared[IDENTITY_PRIOR] > cast_real(0.0):
        for i in range(count_arms_per_lane()):
            arm = lane + i * count_lanes()
            exists = cast_real(1.0) if arm < setting.arms else cast_real(0.0)
            for j in range(dims()):
                registers[i * dims() + j] = exists * cast_real(setting.features[j, min(arm, setting.arms - 1)])
        return
    for dim in range(count_arms_per_lane() * dims()):
        registers[dim] = cast_real(0.0)
    for j in range(dims()):
        for i in range(count_arms_per_lane()):
            value = cast_real(whiten_feature(setting, j, lane + i * count_lanes()))
            for dim in range(dims()):
                registers[i * dims() + dim] += value * (cast_real(1.0) if dim == j else cast_real(0.0))


@noinline
def has_identity_prior(setting):
    """Return whether the prior's covariance is I. Features then need no transformation."""
    is_identity = True
    for i in range(setting.dims):
        for j in range(i + 1):
            entry = setting.options[1 + setting.dims + i * setting.dims + j]
            is_identity = is_identity and entry == (1.0 if i == j else 0.0)
    return is_identity


@noinline
def whiten_feature(setting, j, arm):
    """Compute a feature in the coordinates in which the prior is N(0, I); 0 for padding."""
    feature = 0.0
    if arm < setting.arms:
        for i in range(j, setting.dims):
            feature += setting.options[1 + setting.dims + i * setting.dims + j] * setting.features[i, arm]
    return feature


@noinline
def compute_prior_score(setting, arm):
    """Compute an arm's score under the prior's mean."""
    score = 0.0
    if arm < setting.arms:
        for j in range(setting.dims):
            score += setting.options[1 + j] * setting.features[j, arm]
        return score
    return PADDING_SCORE


@scalar
def compute_warp_tolerance(state):
    """Compute the tolerance of the mode after this many pulls: as on the CPU in float64, larger in float32."""
    if cast_real(1.0) + cast_real(1e-10) > cast_real(1.0):
        return cast_real(MODE_TOLERANCE) + cast_real(1e-14) * state.shared[PULL_COUNT]
    return cast_real(1e-6) + cast_real(1e-9) * state.shared[PULL_COUNT]


@scalar
def compute_chances(state, update_slopes, sampling):
    """Compute the probabilities at the estimate, and the weights of the features in the gradient.

    Slopes are recomputed for arms without pulls, and with `update_slopes` for all. With `sampling` and without
    `update_slopes`, weights are those of the gradient minus that of the old model, which is 0 at its mode.
    """
    registers = state.registers
    shared = state.shared
    for i in range(count_arms_per_lane()):
        chance, slope = compute_chance_and_slope(registers[locate_field(SCORE, i)])
        pulls = shared[locate_lane_column(PULLS, i)]
        old = shared[locate_lane_column(SLOPE, i)]
        if sampling and not update_slopes:
            modelled = shared[locate_lane_column(CHANCE, i)] + old * shared[locate_lane_column(DRIFT, i)]
            registers[locate_field(WEIGHT, i)] = pulls * (modelled - chance)
        else:
            registers[locate_field(WEIGHT, i)] = shared[locate_lane_column(TOTAL, i)] - pulls * chance
        fresh = update_slopes or pulls == cast_real(0.0)
        shared[locate_lane_column(CHANCE, i)] = chance
        shared[locate_lane_column(DRIFT, i)] = cast_real(0.0)
        shared[locate_lane_column(SLOPE_CHANGE, i)] = (
            cast_real(0.0) if fresh else slope * compute_reciprocal(old) - cast_real(1.0)
        )
        if fresh:
            shared[locate_lane_column(SLOPE, i)] = slope
            shared[locate_lane_column(CURVATURE, i)] = pulls * slope


@scalar
def subtract_estimate(state):
    """Add the prior's part of the gradient."""
    for part in range(count_lane_dims()):
        j = get_lane() + part * count_lanes()
        if j < dims():
            state.shared[locate_vector(ARM_SUMS) + j] -= state.shared[locate_vector(ESTIMATE) + j]


@scalar
def move_warp_estimate(state, at, step):
    """Move the estimate by `step` times a shared vector."""
    for part in range(count_lane_dims()):
        j = get_lane() + part * count_lanes()
        if j < dims():
            state.shared[locate_vector(ESTIMATE) + j] += step * state.shared[at + j]


@scalar
def is_model_stale(state, limit):
    """Return whether a score or a slope has changed by more than the model allows."""
    too_far = False
    for i in range(count_arms_per_lane()):
        change = abs(state.shared[locate_lane_column(DRIFT, i)]) + abs(
            state.shared[locate_lane_column(SLOPE_CHANGE, i)]
        )
        too_far = too_far | (
            (state.shared[locate_lane_column(CURVATURE, i)] > cast_real(0.0)) & (not change <= cast_real(limit))
        )
    return vote_any(too_far)


@scalar
def bound_chance_error(drift, slope_change):
    """Bound the error of an arm's probability under the model, divided by its slope, from |D| and |a|."""
    return drift * (slope_change + (cast_real(1.0) + slope_change) * drift * (cast_real(0.5) + drift))


@scalar
def bound_mode_error(state):
    """Bound the distance of the estimate from the mode, in posterior standard deviations."""
    square = cast_real(0.0)
    for i in range(count_arms_per_lane()):
        error = bound_chance_error(
            abs(state.shared[locate_lane_column(DRIFT, i)]), abs(state.shared[locate_lane_column(SLOPE_CHANGE, i)])
        )
        square += state.shared[locate_lane_column(CURVATURE, i)] * error * error
    return compute_root_of_sum(square)


@scalar
def find_first_tied(state, highest):
    """Find the first arm whose index, in WEIGHT, cannot be distinguished from the highest."""
    threshold = highest - cast_real(2.0) * compute_warp_tolerance(state) * state.shared[LONGEST_FEATURE]
    tied = cast_real(0.0)
    arm = int32(0)
    for back in range(count_arms_per_lane()):
        i = count_arms_per_lane() - 1 - back
        if state.registers[locate_field(WEIGHT, i)] >= threshold:
            tied = cast_real(1.0)
            arm = int32(get_lane() + i * count_lanes())
    _, arm = argmax_over_lanes(tied, arm)
    return arm


@scalar
def find_highest_weight(state):
    """Find the highest of the indices in WEIGHT, and its arm."""
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
    """Read a field of an arm, in all lanes."""
    value = cast_real(0.0)
    for i in range(count_arms_per_lane()):
        value = state.registers[locate_field(number, i)] if int32(get_lane() + i * count_lanes()) == arm else value
    return shuffle_from_lane(value, int32(arm & (count_lanes() - 1)))


@scalar
def move_scores_to_mode(state, at):
    """Move every score to the mode of the new model, by a step in shared memory."""
    for i in range(count_arms_per_lane()):
        state.registers[locate_field(TERM, i)] = multiply_arm_vector(state, i, at)
    for i in range(count_arms_per_lane()):
        shift = state.registers[locate_field(TERM, i)]
        state.registers[locate_field(SCORE, i)] += shift
        state.shared[locate_lane_column(DRIFT, i)] = shift
