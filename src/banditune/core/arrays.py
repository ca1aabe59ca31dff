"""Types of arrays, and arrays as compiled code takes them: read-only copies and aligned memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditune.core.errors import InvalidRequest

FloatArray = NDArray[np.float64]


IntArray = NDArray[np.int64]


def copy_read_only(numbers: Any) -> FloatArray:
    """A copy that compiled code cannot write to: a policy that tries is refused."""
    array = np.array(numbers, np.float64, order="C")
    array.setflags(write=False)
    return array


def freeze_options(options: Any) -> NDArray[Any]:
    """Options as scalar code reads them; an array is a table, which keeps its type and is not copied."""
    if not isinstance(options, np.ndarray):
        return copy_read_only(options)
    table = np.asarray(options).view()
    table.setflags(write=False)
    return table


def allocate_aligned(size: int) -> FloatArray:
    """Zeros that start where a cache line does: vectors that straddle two are read half as fast."""
    line = 64
    try:
        room = np.zeros(size + line // 8)
    except MemoryError as error:
        raise InvalidRequest(
            f"a run must fit into memory, but the policy needs {size / 2**27:.1f} GiB for one; use fewer arms or features."
        ) from error
    first = -room.ctypes.data % line // 8
    return room[first : first + size]
