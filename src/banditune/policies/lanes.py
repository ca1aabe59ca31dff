"""Layout for vector code, which the compiler makes of loops over `LANES` neighbours or a multiple that do not add them up.

Arms stand in blocks of `LANES`, and rows of numbers are filled up with zeros. Loops over dimensions must be unrolled for
that, so their number comes from a slot: a constant wherever it is used.
"""

from __future__ import annotations

from banditune.contracts import Slot, scalar, vector

dims = Slot("dims")

LANES = 16
"""Arms in a block: the shortest loop that the compiler turns into vector code."""


@scalar
def padded(count):
    """The next multiple of `LANES`."""
    return (count + LANES - 1) // LANES * LANES


@scalar
def wide():
    """Room for a vector."""
    return padded(dims())


@scalar
def blocks(count):
    """Blocks that hold so many arms."""
    return (int(count) + LANES - 1) // LANES


@scalar
def column(place, dim):
    """Where a feature stands among blocks of columns."""
    return (place // LANES * dims() + dim) * LANES + place % LANES


@vector
def add_products(sums, columns, vector):
    """Add x'vector to the sums of a block's arms."""
    for lane in range(LANES):
        total = sums[lane]
        for j in range(dims()):
            total += vector[j] * columns[j * LANES + lane]
        sums[lane] = total


@scalar
def add_rows(sums, matrix, weights):
    """Add the rows of a matrix, in columns, to some sums, each times its weight."""
    for b in range(blocks(dims())):
        at = b * LANES
        add_products(sums[at:], matrix[at * dims() :], weights)


@scalar
def subtract_outer(matrix, first, second, weight):
    """Subtract weight first second' from a matrix, in columns."""
    for b in range(blocks(dims())):
        at = b * LANES
        subtract_products(matrix[at * dims() :], first, second[at:], weight)


@vector
def subtract_products(columns, vector, part, weight):
    """Subtract weight vector part' from a block of columns."""
    for lane in range(LANES):
        entry = weight * part[lane]
        for j in range(dims()):
            columns[j * LANES + lane] -= entry * vector[j]


@scalar
def product(first, second):
    """The inner product of two vectors."""
    total = 0.0
    for j in range(dims()):
        total += first[j] * second[j]
    return total
