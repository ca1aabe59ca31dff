"""Measures free memory, and rejects requests that need more."""

from __future__ import annotations

import math
import os
from contextlib import suppress
from pathlib import Path

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.errors import InvalidRequest

USABLE_MEMORY_SHARE = 0.8
"""The share of the free memory that may be used."""


def check_memory(what: str, size: float, way_out: str) -> None:
    """Raise `InvalidRequest` if more memory is needed than is free. Allocation alone would not fail, only use."""
    free = measure_free_memory()
    if size > USABLE_MEMORY_SHARE * free:
        raise InvalidRequest(
            f"{what} must fit into memory, but need {format_bytes(size)} of {format_bytes(free)} that are free; {way_out}.",
            code="too-large",
        )


def format_bytes(size: float) -> str:
    """Format a number of bytes."""
    return f"{size / 2**30:,.1f} GiB" if size >= 2**30 / 10 else f"{size / 2**20:,.1f} MiB"


def measure_free_memory() -> float:
    """Measure the bytes that this process may use, by the machine and its control group; infinity if both are unknown."""
    candidates = _measure_free_pages()
    for line in _read_lines("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            candidates = [float(line.split()[1]) * 1024]
    limit, used = (_read_lines(f"/sys/fs/cgroup/memory.{name}")[:1] for name in ("max", "current"))
    if limit and used and limit[0].isdigit():
        # Cached files count as used, but they are released when memory is needed.
        files = [
            line.split()[1] for line in _read_lines("/sys/fs/cgroup/memory.stat") if line.startswith("inactive_file ")
        ]
        candidates.append(max(0.0, float(limit[0]) - float(used[0]) + sum(map(float, files))))
    return min(candidates, default=math.inf)


def _measure_free_pages() -> list[float]:
    """Measure free pages in bytes. macOS reports only the number of all pages, and Windows reports neither."""
    for name in ("SC_AVPHYS_PAGES", "SC_PHYS_PAGES"):
        with suppress(AttributeError, OSError, ValueError):
            return [float(os.sysconf("SC_PAGE_SIZE") * os.sysconf(name))]
    return []


def _read_lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


REGRET_COPIES = 3
"""The number of copies of a regret at the peak: simulated, rounded, and in the result."""


def check_regret_memory(count: int) -> None:
    """Raise `InvalidRequest` if the regrets do not fit into memory."""
    check_memory(f"{count:,} regrets", 8.0 * REGRET_COPIES * count, "use fewer runs or values")


def allocate_regrets(*shape: int) -> FloatArray:
    """Allocate an array for regrets, if it fits into memory."""
    check_regret_memory(math.prod(shape))
    return np.empty(shape)
