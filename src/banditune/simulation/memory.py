"""How much memory is free, and requests that are refused because they would need more."""

from __future__ import annotations

import math
import os
from contextlib import suppress
from pathlib import Path

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.errors import InvalidRequest

USABLE_MEMORY_SHARE = 0.8
"""This much of the free memory may be used."""


def check_memory(what: str, size: float, way_out: str) -> None:
    """Refuse what needs more memory than is free; asking the system for it would not fail, only using it."""
    free = measure_free_memory()
    if size > USABLE_MEMORY_SHARE * free:
        raise InvalidRequest(
            f"{what} must fit into memory, but need {format_bytes(size)} of {format_bytes(free)} that are free; {way_out}."
        )


def format_bytes(size: float) -> str:
    """Bytes in words."""
    return f"{size / 2**30:,.1f} GiB" if size >= 2**30 / 10 else f"{size / 2**20:,.1f} MiB"


def measure_free_memory() -> float:
    """Bytes that this process can still have, of the machine and of its control group; no end of them if nobody tells."""
    found = _measure_free_pages()
    for line in _read_lines("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            found = [float(line.split()[1]) * 1024]
    limit, used = (_read_lines(f"/sys/fs/cgroup/memory.{name}")[:1] for name in ("max", "current"))
    if limit and used and limit[0].isdigit():
        # Files that were read count as used, but are given up when memory is needed.
        files = [
            line.split()[1] for line in _read_lines("/sys/fs/cgroup/memory.stat") if line.startswith("inactive_file ")
        ]
        found.append(max(0.0, float(limit[0]) - float(used[0]) + sum(map(float, files))))
    return min(found, default=math.inf)


def _measure_free_pages() -> list[float]:
    """Free pages in bytes; all there are on macOS, which does not tell how many are free. Windows tells neither."""
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
"""A regret is held so many times at the peak: as it was played, rounded, and where it is wanted."""


def check_regret_memory(count: int) -> None:
    """Refuse more regrets than fit into memory."""
    check_memory(f"{count:,} regrets", 8.0 * REGRET_COPIES * count, "ask for fewer runs or values")


def allocate_regrets(*shape: int) -> FloatArray:
    """Room for the results, or a sentence."""
    check_regret_memory(math.prod(shape))
    return np.empty(shape)
