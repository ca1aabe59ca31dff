"""Caches large tables on disk. If a table does not fit into memory, there is an error before the work."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from banditune.core.atomic_files import open_replacement
from banditune.core.descriptions import convert_to_plain
from banditune.core.errors import ErrorCode, InvalidRequest
from banditune.core.messages import Setting
from banditune.simulation import memory
from banditune.simulation.compilation import find_cache_folder


class TableTooLarge(InvalidRequest):
    """A request whose tables do not fit into memory. The message states the largest horizon that fits."""

    default_code: ClassVar[ErrorCode] = "too-large"


MAX_RECENT_TABLES = 2


recent_tables: dict[tuple[Path | None, str], NDArray[Any]] = {}
"""The last tables of this process. A simulation needs its table several times, and the disk may not be writable."""


_lock = threading.RLock()


def check_table_fits(what: str, bytes_for: Callable[[int], float], horizon: int, free: float | None = None) -> None:
    """Raise `TableTooLarge` if the tables of a horizon do not fit. `bytes_for` must grow with the horizon.

    `free` limits the memory for them; by default it is all free memory.
    """
    free = memory.measure_free_memory() if free is None else free
    if bytes_for(horizon) <= memory.USABLE_MEMORY_SHARE * free:
        return
    low, high = 0, horizon
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if bytes_for(middle) <= memory.USABLE_MEMORY_SHARE * free else (low, middle)
    raise TableTooLarge(
        "{} must fit into memory, but at {} it needs {} of {} that are free; the largest horizon that fits is {}.",
        *(what, Setting("horizon", horizon), memory.format_bytes(bytes_for(horizon)), memory.format_bytes(free), low),
        argument="horizon",
    )


def load_or_make_table(
    name: str, arguments: Any, make: Callable[[], NDArray[Any]], dtype: Any, size: int | None
) -> NDArray[Any]:
    """Load a read-only table from this process or from disk, by its name and arguments, or make and store it.

    A damaged file, or one of another type or size, is replaced. A size of None matches any size.
    """
    folder = find_cache_folder()
    key_text = json.dumps([name, convert_to_plain(arguments), np.dtype(dtype).str, size])
    with _lock:
        if (folder, key_text) not in recent_tables:
            path = folder and folder / "tables" / f"{name}-{hashlib.sha256(key_text.encode()).hexdigest()[:20]}.npy"
            table = _read_table(path, dtype, size)
            if table is None:
                table = make()
                table.setflags(write=False)
                _write_table(path, table)
            while len(recent_tables) >= MAX_RECENT_TABLES:
                recent_tables.pop(next(iter(recent_tables)))
            recent_tables[folder, key_text] = table
        return recent_tables[folder, key_text]


def _read_table(path: Path | None, dtype: Any, size: int | None) -> NDArray[Any] | None:
    """Read a table from disk; None if it is missing, or of another type or size."""
    try:
        table: NDArray[Any] | None = np.load(path, mmap_mode="r", allow_pickle=False) if path else None
    except (OSError, ValueError, EOFError):
        return None
    fits = table is not None and table.dtype == dtype and table.ndim == 1 and size in (None, len(table))
    return table if fits else None


def _write_table(path: Path | None, table: NDArray[Any]) -> None:
    """Write a table completely or not at all. If the disk is full, the table is not stored, and made again when needed."""
    if path is None:
        return
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with open_replacement(path) as file:
            np.save(file, table, allow_pickle=False)
