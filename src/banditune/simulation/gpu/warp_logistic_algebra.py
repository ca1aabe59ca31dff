"""Vectors and matrices of a warp that plays UCB-GLM or GLM-TSL: products, sums over arms, inverses."""

from __future__ import annotations

import math

from numpy import float32

from banditune.core.scalar import scalar
from banditune.simulation.estimators.vector_layout import dims
from banditune.simulation.gpu.warp_logistic_layout import (
    MOVED,
    PRODUCT,
    SUMS,
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
    """The product of the numbers held for an arm and a vector of the team."""
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
    """The product of a row of a symmetric matrix and a vector of the team."""
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
    """The product of two vectors of the team."""
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
    """H^-1 times the sums over arms, for the team to see after the next `sync_lanes`."""
    for part in range(count_lane_dims()):
        row = get_lane() + part * count_lanes()
        if row < dims():
            state.shared[locate_vector(MOVED) + row] = multiply_row(state, locate_matrix(0), row, locate_vector(SUMS))


@scalar
def solve_by_root(state):
    """The same by the inverse of H's factor, which is not symmetric; a team that holds R'x needs this only here."""
    common = state.shared
    at = locate_matrix(0)
    for part in range(count_lane_dims()):
        row = get_lane() + part * count_lanes()
        if row < dims():
            common[locate_vector(PRODUCT) + row] = compute_shared_dot(state, at + row * dims(), locate_vector(SUMS))
    sync_lanes()
    for part in range(count_lane_dims()):
        row = get_lane() + part * count_lanes()
        if row < dims():
            common[locate_vector(MOVED) + row] = multiply_row(state, at, row, locate_vector(PRODUCT))


@scalar
def exchange_halves(held, at, count, mask):
    """Share the work of summing vectors over threads: of `count` numbers keep one half, with the other thread's added.

    Threads that differ in the bit `mask` keep different halves; the shorter one is filled up with a zero.
    """
    half = (count + 1) // 2
    upper = (get_lane() & mask) != 0
    for place in range(half):
        low = held[at + place]
        high = held[at + half + place] if half + place < count else cast_real(0.0)
        held[at + place] = (high if upper else low) + shuffle_xor(low if upper else high, mask)


@scalar
def locate_kept_sum(lane, dims, place, to):
    """Which of the sums a thread is left with at some place after five halvings, and a number from `to` up if none."""
    first = 0
    after = dims
    count = dims
    for turn in range(5):
        count = (count + 1) // 2
        if (lane & (16 >> turn)) != 0:
            first += count
        else:
            after = min(after, first + count)
    return first + place if first + place < after else to


@scalar
def sum_weighted_arms(state, to):
    """Put the sum of weight x over all arms into a vector of the team, to be seen after the next `sync_lanes`."""
    held = state.registers
    at = locate_scratch()
    for j in range(dims()):
        held[at + j] = cast_real(0.0)
        for i in range(count_arms_per_lane()):
            held[at + j] += held[locate_field(WEIGHT, i)] * held[i * dims() + j]
    if count_lanes() == 1:
        for j in range(dims()):
            state.shared[to + j] = held[at + j]
    else:
        one = (dims() + 1) // 2
        two = (one + 1) // 2
        three = (two + 1) // 2
        four = (three + 1) // 2
        exchange_halves(held, at, dims(), 16)
        exchange_halves(held, at, one, 8)
        exchange_halves(held, at, two, 4)
        exchange_halves(held, at, three, 2)
        exchange_halves(held, at, four, 1)
        for place in range((four + 1) // 2):
            j = locate_kept_sum(get_lane(), dims(), place, dims())
            if j < dims():
                state.shared[to + j] = held[at + place]


@scalar
def compute_root_of_sum(square):
    """The root of a sum over threads, to six digits: errors need no more."""
    return cast_real(math.sqrt(sum_over_lanes(float32(square))))


@scalar
def read_held_feature(state, i, j):
    """A feature of a thread's arm where j is no constant: the compiler must not see that this is an index."""
    found = cast_real(0.0)
    for place in range(dims()):
        found += state.registers[i * dims() + place] * (cast_real(1.0) if place == j else cast_real(0.0))
    return found


@scalar
def eliminate_matrix(common, at, sampling):
    """The inverse of a matrix in its place by Gauss and Jordan's elimination, a row per thread.

    With `sampling`, the inverse of its Cholesky factor, for which rows above the pivot stay as they are.
    """
    for i in range(dims()):
        pivot = at + i * dims()
        over = cast_real(1.0) / common[pivot + i]
        for part in range(count_lane_dims()):
            row = get_lane() + part * count_lanes()
            if row < dims() and (row > i or (row < i and not sampling)):
                mine = at + row * dims()
                factor = common[mine + i] * over
                for j in range(dims()):
                    common[mine + j] -= factor * common[pivot + j]
                common[mine + i] = -factor
        sync_lanes()
        scale = math.sqrt(over) if sampling else over
        for part in range(count_lane_dims()):
            j = get_lane() + part * count_lanes()
            if j < dims():
                entry = common[pivot + j] * (scale if j < i or not sampling else cast_real(0.0))
                common[pivot + j] = scale if j == i else entry
        sync_lanes()


@scalar
def compute_safe_root(square):
    """A root; rounding may leave a little less than 0."""
    square = abs(square) + cast_real(1e-30)
    return square * compute_reciprocal_root(square)
