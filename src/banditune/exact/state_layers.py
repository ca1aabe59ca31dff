"""Layers of states: all states that can be reached after some number of steps, with their probabilities."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from banditune.core.arrays import FloatArray, IntArray
from banditune.core.scalar import scalar
from banditune.simulation import memory
from banditune.simulation.compilation import compile_kernel

GROWTH_FACTOR = 1.25
"""The factor by which a full layer is enlarged."""


EMPTY_SLOT = -1


LOW_63_BITS = 0x7FFFFFFFFFFFFFFF


class LayerOverflow(Exception):
    """Raised if a layer does not fit into memory. Its argument is the number of bytes that the layer needs."""


class StateLayer:
    """Distinct rows of 64-bit words, with a probability for each.

    Rows are found by a hash table. Complete rows are compared, so that merged rows are equal bit by bit.
    """

    count: int
    _rows: IntArray
    _probabilities: FloatArray
    _table: NDArray[np.int32]

    def __init__(self, width: int, size: int) -> None:
        self.width = width
        self._allocate(size)

    @property
    def rows(self) -> IntArray:
        """The rows of the layer."""
        return self._rows[: self.count]

    @property
    def probabilities(self) -> FloatArray:
        """The probabilities of the rows."""
        return self._probabilities[: self.count]

    def add(self, rows: IntArray, chances: FloatArray) -> None:
        """Add probabilities to rows. New rows are inserted, and rows with probability 0 are left out."""
        needed = self.count + len(rows)
        if needed > len(self._rows):
            self._grow(max(needed, int(GROWTH_FACTOR * len(self._rows))))
        self.count = compile_row_merge()(rows, chances, self._rows, self._probabilities, self._table, self.count)

    def _grow(self, size: int) -> None:
        rows, chances = self.rows, self.probabilities
        self._allocate(size)
        self.add(rows, chances)

    def _allocate(self, size: int) -> None:
        needed = compute_layer_bytes(self.width, size)
        if needed > memory.USABLE_MEMORY_SHARE * memory.measure_free_memory():
            raise LayerOverflow(needed)
        self.count = 0
        self._rows = np.empty((size, self.width), np.int64)
        self._probabilities = np.empty(size)
        self._table = np.full(count_hash_slots(size), EMPTY_SLOT, np.int32)


def compute_layer_bytes(width: int, size: int) -> int:
    """Compute the bytes of a layer with `size` rows."""
    return size * 8 * (width + 1) + 4 * count_hash_slots(size)


def count_hash_slots(size: int) -> int:
    """Count the slots of a hash table: a power of two, so that at least half of it is empty."""
    return 1 << (2 * size - 1).bit_length()


@lru_cache(maxsize=1)
def compile_row_merge() -> Callable[..., int]:
    """Compile `merge_rows`."""
    return compile_kernel(merge_rows)


def merge_rows(rows, chances, stored, sums, table, count):
    """The kernel, which adds each row's probability to that of the equal stored row. Return the number of stored rows."""
    for number in range(len(rows)):
        if chances[number] > 0.0:
            slot = find_slot(rows[number], stored, table)
            if table[slot] == EMPTY_SLOT:
                table[slot] = count
                sums[count] = 0.0
                for word in range(rows.shape[1]):
                    stored[count, word] = rows[number, word]
                count += 1
            sums[table[slot]] += chances[number]
    return count


@scalar
def find_slot(row, stored, table):
    """Find the slot of a row, or an empty slot for it."""
    mask = len(table) - 1
    slot = hash_row(row) & mask
    while table[slot] != EMPTY_SLOT and not is_same_row(row, stored[table[slot]]):
        slot = (slot + 1) & mask
    return slot


@scalar
def hash_row(row):
    """Compute a number below 2^63 that depends on all bits of a row."""
    hashed = 0
    for word in range(len(row)):
        hashed = ((hashed ^ int(row[word])) * 0x1E3779B97F4A7C15) & LOW_63_BITS
        # High bits are mixed into low ones, because a product's low bits depend only on low bits.
        hashed ^= hashed >> 32
    return hashed


@scalar
def is_same_row(row, second):
    """Return whether two rows are equal."""
    word = 0
    while word < len(row) and row[word] == second[word]:
        word += 1
    return word == len(row)
