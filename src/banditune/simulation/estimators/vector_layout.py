"""Memory layout for vector code: arms in blocks of lanes, and rows padded with zeros."""

from __future__ import annotations

from banditune.core.scalar import Slot, optimize_separately, scalar

dims = Slot("dims")


VECTOR_LANES = 16
"""Arms in a block: the length of the shortest loop that the compiler turns into vector code."""


@scalar
def pad_to_lanes(count):
    """Round up to a multiple of `VECTOR_LANES`."""
    return (count + VECTOR_LANES - 1) // VECTOR_LANES * VECTOR_LANES


@scalar
def pad_dims():
    """Return the padded length of a vector."""
    return pad_to_lanes(dims())


@scalar
def count_blocks(count):
    """Return the number of blocks that hold `count` arms."""
    return (int(count) + VECTOR_LANES - 1) // VECTOR_LANES


@scalar
def locate_column(position, dim):
    """Return the position of a feature in blocks of columns."""
    return (position // VECTOR_LANES * dims() + dim) * VECTOR_LANES + position % VECTOR_LANES


@optimize_separately
def add_products(sums, columns, vector):
    """Add x'vector to the sums of a block's arms."""
    for lane in range(VECTOR_LANES):
        total = sums[lane]
        for j in range(dims()):
            total += vector[j] * columns[j * VECTOR_LANES + lane]
        sums[lane] = total


@scalar
def add_weighted_rows(sums, matrix, weights):
    """Add the rows of a matrix, in columns, to sums, each times its weight."""
    for b in range(count_blocks(dims())):
        at = b * VECTOR_LANES
        add_products(sums[at:], matrix[at * dims() :], weights)


@scalar
def subtract_outer(matrix, first, second, weight):
    """Subtract weight first second' from a matrix, in columns."""
    for b in range(count_blocks(dims())):
        at = b * VECTOR_LANES
        subtract_outer_block(matrix[at * dims() :], first, second[at:], weight)


@optimize_separately
def subtract_outer_block(columns, vector, second, weight):
    """Subtract weight vector part' from a block of columns."""
    for lane in range(VECTOR_LANES):
        entry = weight * second[lane]
        for j in range(dims()):
            columns[j * VECTOR_LANES + lane] -= entry * vector[j]


@scalar
def compute_dot(first, second):
    """Compute the inner product of two vectors."""
    total = 0.0
    for j in range(dims()):
        total += first[j] * second[j]
    return total


@scalar
def argmax_score(score):
    """Find the arm with the highest score. Ties go to the lowest number.

    It compares eight scores at a time, because comparisons that depend on each other are slow.

    Parameters
    ----------
    score : ndarray
        A score per arm.
    """
    arms = len(score)
    highest = score[0]
    position = 0
    at = 0
    while at + 8 <= arms:
        low = take_larger(take_larger(score[at], score[at + 1]), take_larger(score[at + 2], score[at + 3]))
        high = take_larger(take_larger(score[at + 4], score[at + 5]), take_larger(score[at + 6], score[at + 7]))
        if take_larger(low, high) > highest:
            highest = take_larger(low, high)
            position = at
        at += 8
    while at < arms:
        if score[at] > highest:
            highest = score[at]
            position = at
        at += 1
    while score[position] < highest:
        position += 1
    return position


@scalar
def take_larger(a, b):
    """Return the larger of two numbers, as one instruction."""
    return a if a > b else b
