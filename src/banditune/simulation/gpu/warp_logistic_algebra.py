"""Vectors and matrices of a warp that simulates UCB-GLM or GLM-TSL: products, sums over arms, inverses."""

from __future__ import annotations

import math

from numpy import float32

from banditune.core.scalar import scalar
from banditune.simulation.estimators.vector_layout import dims
from banditune.simulation.gpu.warp_logistic_layout import (
    ARM_SUMS,
    NEWTON_STEP,
    PRODUCT,
    WEIGHT,
    count_lane_dims,
    locate_field,
    locate_matrix,
    locate_scratch,
    locate_vector,
)
from banditune.simulation.gpu.warp_primitives import (
    cast_real,
    compute_reciprocal_root,
    count_arms_per_lane,
    count_lanes,
    get_lane,
    shuffle_xor,
    sum_over_lanes,
    sync_lanes,
)


@scalar
def multiply_arm_vector(state, i, at):
    """Compute the product of an arm's features, in registers, and a shared vector."""
    even = cast_real(0.0)
    odd = cast_real(0.0)
    for j in range(0, dims() - 1, 2):
        even += state.registers[i * dims() + j] * state.shared[at + j]
        odd += state.registers[i * dims() + j + 1] * state.shared[at + j + 1]
    if dims() % 2 == 1:
        even += state.registers[i * dims() + dims() - 1] * state.shared[at + dims() - 1]
    return even + odd


@scalar
def multiply_row(state, matrix, row, at):
    """Compute the product of a row of a symmetric matrix and a shared vector."""
    even = cast_real(0.0)
    odd = cast_real(0.0)
    for j in range(0, dims() - 1, 2):
        even += state.shared[matrix + j * dims() + row] * state.shared[at + j]
        odd += state.shared[matrix + (j + 1) * dims() + row] * state.shared[at + j + 1]
    if dims() % 2 == 1:
        even += state.shared[matrix + (dims() - 1) * dims() + row] * state.shared[at + dims() - 1]
    return even + odd


@scalar
def compute_shared_dot(state, first, second):
    """Compute the product of two shared vectors."""
    even = cast_real(0.0)
    odd = cast_real(0.0)
    for j in range(0, dims() - 1, 2):
        even += state.shared[first + j] * state.shared[second + j]
        odd += state.shared[first + j + 1] * state.shared[second + j + 1]
    if dims() % 2 == 1:
        even += state.shared[first + dims() - 1] * state.shared[second + dims() - 1]
    return even + odd


@scalar
def solve_by_inverse(state):
    """Multiply the sums over arms by H^-1. The result can be read after the next `sync_lanes`."""
    for part in range(count_lane_dims()):
        row = get_lane() + part * count_lanes()
        if row < dims():
            state.shared[locate_vector(NEWTON_STEP) + row] = multiply_row(
                state, locate_matrix(0), row, locate_vector(ARM_SUMS)
            )


@scalar
def solve_by_root(state):
    """Do the same with the inverse of H's Cholesky factor, for a warp whose registers contain R'x."""
    shared = state.shared
    at = locate_matrix(0)
    for part in range(count_lane_dims()):
        row = get_lane() + part * count_lanes()
        if row < dims():
            shared[locate_vector(PRODUCT) + row] = compute_shared_dot(state, at + row * dims(), locate_vector(ARM_SUMS))
    sync_lanes()
    for part in range(count_lane_dims()):
        row = get_lane() + part * count_lanes()
        if row < dims():
            shared[locate_vector(NEWTON_STEP) + row] = multiply_row(state, at, row, locate_vector(PRODUCT))


@scalar
def exchange_halves(registers, at, count, mask):
    """Add the numbers of two lanes: each lane keeps the sums of one half of its `count` numbers.

    Lanes that differ in the bit `mask` keep different halves. The shorter half is filled up with a zero.
    """
    half = (count + 1) // 2
    upper = (get_lane() & mask) != 0
    for position in range(half):
        low = registers[at + position]
        high = registers[at + half + position] if half + position < count else cast_real(0.0)
        registers[at + position] = (high if upper else low) + shuffle_xor(low if upper else high, mask)


@scalar
def locate_lane_sum(lane, dims, position, to):
    """Return the number of the sum that a lane has at a position after five halvings; `to` or more if it has none."""
    first = 0
    after = dims
    count = dims
    for turn in range(5):
        count = (count + 1) // 2
        if (lane & (16 >> turn)) != 0:
            first += count
        else:
            after = min(after, first + count)
    return first + position if first + position < after else to


@scalar
def sum_weighted_arms(state, to):
    """Write the sum of weight x over all arms into a shared vector, which can be read after the next `sync_lanes`."""
    registers = state.registers
    at = locate_scratch()
    for j in range(dims()):
        registers[at + j] = cast_real(0.0)
        for i in range(count_arms_per_lane()):
            registers[at + j] += registers[locate_field(WEIGHT, i)] * registers[i * dims() + j]
    if count_lanes() == 1:
        for j in range(dims()):
            state.shared[to + j] = registers[at + j]
    else:
        one = (dims() + 1) // 2
        two = (one + 1) // 2
        three = (two + 1) // 2
        four = (three + 1) // 2
        exchange_halves(registers, at, dims(), 16)
        exchange_halves(registers, at, one, 8)
        exchange_halves(registers, at, two, 4)
        exchange_halves(registers, at, three, 2)
        exchange_halves(registers, at, four, 1)
        for position in range((four + 1) // 2):
            j = locate_lane_sum(get_lane(), dims(), position, dims())
            if j < dims():
                state.shared[to + j] = registers[at + position]


@scalar
def compute_root_of_sum(square):
    """Compute the root of a sum over lanes to six digits. It is used for errors only."""
    return cast_real(math.sqrt(sum_over_lanes(float32(square))))


@scalar
def read_register_feature(state, i, j):
    """Read a feature of a lane's arm for a variable j. An index would move registers to local memory."""
    feature = cast_real(0.0)
    for dim in range(dims()):
        feature += state.registers[i * dims() + dim] * (cast_real(1.0) if dim == j else cast_real(0.0))
    return feature


@scalar
def eliminate_matrix(shared, at, sampling):
    """Invert a matrix in place by Gauss-Jordan elimination, a row per lane.

    With `sampling`, compute the inverse of its Cholesky factor, which leaves the rows above the pivot unchanged.
    """
    for i in range(dims()):
        pivot = at + i * dims()
        over = cast_real(1.0) / shared[pivot + i]
        for part in range(count_lane_dims()):
            row = get_lane() + part * count_lanes()
            if row < dims() and (row > i or (row < i and not sampling)):
                row_start = at + row * dims()
                factor = shared[row_start + i] * over
                for j in range(dims()):
                    shared[row_start + j] -= factor * shared[pivot + j]
                shared[row_start + i] = -factor
        sync_lanes()
        scale = math.sqrt(over) if sampling else over
        for part in range(count_lane_dims()):
            j = get_lane() + part * count_lanes()
            if j < dims():
                entry = shared[pivot + j] * (scale if j < i or not sampling else cast_real(0.0))
                shared[pivot + j] = scale if j == i else entry
        sync_lanes()


@scalar
def compute_safe_root(square):
    """Compute a root. By rounding, the square may be slightly below 0."""
    square = abs(square) + cast_real(1e-30)
    return square * compute_reciprocal_root(square)
