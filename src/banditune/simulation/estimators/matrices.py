"""Small matrices in scalar code: Cholesky factors, packed or not, inverses and triangular solves."""

from __future__ import annotations

import math

from banditune.core.scalar import optimize_separately, scalar
from banditune.simulation.estimators.vector_layout import (
    VECTOR_LANES,
    add_weighted_rows,
    count_blocks,
    dims,
    locate_column,
    pad_dims,
)


@scalar
def count_triangle(count):
    """Return the number of entries in the first `count` rows of a packed matrix."""
    return (count * (count + 1)) >> 1


@scalar
def count_packed(dims):
    """Return the size of the lower triangle of a matrix, row by row, with padding."""
    return max((count_triangle(dims) + 7) // 8 * 8, VECTOR_LANES)


@scalar
def count_packed_dims():
    """Return the size of a packed matrix."""
    return count_packed(dims())


@scalar
def factorise_packed(matrix):
    """Replace a packed positive definite matrix by its lower triangular factor, with the diagonal's reciprocals."""
    for i in range(dims()):
        row = matrix[count_triangle(i) :]
        for j in range(i):
            across = matrix[count_triangle(j) :]
            total = row[j]
            for k in range(j):
                total -= row[k] * across[k]
            row[j] = total * across[j]
        total = row[i]
        for k in range(i):
            total -= row[k] * row[k]
        row[i] = 1.0 / math.sqrt(total)


@scalar
def solve_lower(factor, vector):
    """Replace a vector by L^-1 vector."""
    row = 0
    for i in range(dims()):
        total = vector[i]
        for k in range(i):
            total -= factor[row + k] * vector[k]
        vector[i] = total * factor[row + i]
        row += i + 1


@scalar
def solve_upper(factor, vector):
    """Replace a vector by L'^-1 vector."""
    row = dims() * (dims() + 1) // 2
    for back in range(dims()):
        i = dims() - 1 - back
        row -= i + 1
        entry = vector[i] * factor[row + i]
        vector[i] = entry
        for k in range(i):
            vector[k] -= factor[row + k] * entry


@scalar
def multiply_symmetric(matrix, vector, product):
    """Multiply a symmetric matrix, in columns, and a vector."""
    for j in range(pad_dims()):
        product[j] = 0.0
    add_weighted_rows(product, matrix, vector)


@scalar
def invert_from_factor(factor, inverse, scratch):
    """Compute the inverse of a matrix from its factor, in columns. `scratch` holds one vector."""
    for i in range(dims()):
        for j in range(dims()):
            scratch[j] = 1.0 if i == j else 0.0
        solve_lower(factor, scratch)
        solve_upper(factor, scratch)
        for j in range(dims()):
            inverse[locate_column(j, i)] = scratch[j]


@scalar
def factorise_cholesky(matrix, dims):
    """Replace the lower triangle of a positive definite matrix by its lower triangular factor."""
    for j in range(dims):
        for k in range(j):
            entry = matrix[j * dims + k]
            for i in range(j, dims):
                matrix[i * dims + j] -= entry * matrix[i * dims + k]
        scale = 1.0 / math.sqrt(matrix[j * dims + j])
        for i in range(j, dims):
            matrix[i * dims + j] *= scale


@scalar
def invert_triangle(matrix, dims):
    """Replace a lower triangular matrix by its inverse."""
    for j in range(dims):
        matrix[j * dims + j] = 1.0 / matrix[j * dims + j]
        for i in range(j + 1, dims):
            total = 0.0
            for k in range(j, i):
                total += matrix[i * dims + k] * matrix[k * dims + j]
            matrix[i * dims + j] = -total / matrix[i * dims + i]


@scalar
def shrink_triangular_factor(factor, turned, keep, take):
    """Update the factor for one more x, with `turned` = factor x. `keep` and `take` are scratch vectors.

    This is Carlson's update (1973) of a triangular root of a covariance. It costs O(dims^2) and keeps the triangle.
    """
    growth = 1.0
    for j in range(dims()):
        before = growth
        growth += turned[j] * turned[j]
        root = 1.0 / math.sqrt(before * growth)
        keep[j] = before * root
        take[j] = turned[j] * root
    for b in range(count_blocks(dims())):
        shrink_factor_columns(factor[b * VECTOR_LANES * dims() :], turned, keep, take)


@optimize_separately
def shrink_factor_columns(columns, turned, keep, take):
    """Apply Carlson's update to a block of columns."""
    for lane in range(VECTOR_LANES):
        gain = 0.0
        for j in range(dims()):
            entry = columns[j * VECTOR_LANES + lane]
            columns[j * VECTOR_LANES + lane] = keep[j] * entry - take[j] * gain
            gain += turned[j] * entry
