"""Array types, and arrays for compiled code: read-only copies and aligned memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditune.core.errors import InvalidRequest

FloatArray = NDArray[np.float64]


IntArray = NDArray[np.int64]


def copy_read_only(numbers: Any) -> FloatArray:
    """Copy numbers into an array that compiled code cannot write to."""
    array = np.array(numbers, np.float64, order="C")
    array.setflags(write=False)
    return array


def freeze_options(options: Any) -> NDArray[Any]:
    """Convert options to an array for scalar code. An array is a table, whose type is kept and which is not copied."""
    if not isinstance(options, np.ndarray):
        return copy_read_only(options)
    table = np.asarray(options).view()
    table.setflags(write=False)
    return table


def allocate_aligned(size: int) -> FloatArray:
    """Return zeros that start at a cache line. Vectors across two lines are read at half the speed."""
    line = 64
    try:
        buffer = np.zeros(size + line // 8)
    except MemoryError as error:
        raise InvalidRequest(
            f"a run must fit into memory, but the policy needs {size / 2**27:.1f} GiB for one; use fewer arms or features.",
            code="too-large",
        ) from error
    first = -buffer.ctypes.data % line // 8
    return buffer[first : first + size]
