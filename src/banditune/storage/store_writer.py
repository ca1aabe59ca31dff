"""Writes regrets to a store while they are computed, in complete blocks if possible."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.errors import SimulationError
from banditune.simulation.chunks import SimulationTask
from banditune.simulation.instances import BLOCK_SIZE, split_by_block
from banditune.simulation.spec import SimulationSpec
from banditune.storage.regret_store import RegretStore
from banditune.storage.store_layout import Float32Array, RegretBlock, StoredSeries

RunsCallback = Callable[[int], None]


MAX_WAIT_SECONDS = 1.0
"""The number of seconds after which regrets are stored even if their block is not complete."""


WRITE_INTERVAL_SECONDS = 0.05
"""The fewest seconds between two writes. It limits the time of writes in a study of many short tasks."""


class PendingRow(NamedTuple):
    """A row of parameters on some runs: its series in the store, the array for its regrets, and the missing runs."""

    row: int
    uses_shortcut: bool
    runs: range
    series: StoredSeries
    out: FloatArray
    missing_runs: tuple[range, ...]


@dataclass
class IncompleteBlock:
    """Regrets of a task in an incomplete block: the finished runs that were not written yet, and the number missing."""

    task: SimulationTask
    missing_count: int
    finished_runs: list[range] = field(default_factory=list)


class StoreWriter:
    """Stores regrets as they arrive, in any order, and copies them to the arrays of their rows."""

    def __init__(
        self, store: RegretStore, spec: SimulationSpec, tasks: Sequence[tuple[SimulationTask, list[PendingRow]]]
    ) -> None:
        self.store = store
        self.spec = spec
        self.tasks = [task for task, _ in tasks]
        self.rows = {id(task): rows for task, rows in tasks}
        self.remaining = sum(len(task.runs) for task in self.tasks)
        self.incomplete: dict[tuple[int, int], IncompleteBlock] = {}
        self.complete_blocks: list[RegretBlock] = []
        self.last = time.monotonic()

    def add_finished(self, task: SimulationTask, finished: range) -> None:
        """Record finished runs of a task. Write complete blocks, and after some time all others."""
        self.remaining -= len(finished)
        for block, runs in split_by_block(finished):
            key = id(task), block
            incomplete = self.incomplete.setdefault(key, IncompleteBlock(task, len(_find_block_runs(task, block))))
            incomplete.finished_runs.append(runs)
            incomplete.missing_count -= len(runs)
            if not incomplete.missing_count:
                self.collect_blocks(self.incomplete.pop(key))
        elapsed = time.monotonic() - self.last
        if elapsed > MAX_WAIT_SECONDS:
            for incomplete in self.incomplete.values():
                self.collect_blocks(incomplete)
        if self.complete_blocks and (elapsed > WRITE_INTERVAL_SECONDS or not self.remaining):
            self.store.write_blocks(self.complete_blocks)
            self.complete_blocks = []
            self.last = time.monotonic()

    def collect_blocks(self, incomplete: IncompleteBlock) -> None:
        """Make blocks of the regrets that have arrived."""
        task = incomplete.task
        for runs in _merge_ranges(incomplete.finished_runs):
            rounded = convert_to_float32(
                self.spec, task.out[:, runs.start - task.runs.start : runs.stop - task.runs.start]
            )
            for pending_row, regrets in zip(self.rows[id(task)], rounded, strict=True):
                pending_row.out[runs.start - pending_row.runs.start : runs.stop - pending_row.runs.start] = regrets
                self.complete_blocks.append(RegretBlock(pending_row.series, runs.start, regrets))
        incomplete.finished_runs.clear()


def _find_block_runs(task: SimulationTask, block: int) -> range:
    """Find the runs of a task that are in a block."""
    return range(max(task.runs.start, block * BLOCK_SIZE), min(task.runs.stop, (block + 1) * BLOCK_SIZE))


def _merge_ranges(runs: Sequence[range]) -> list[range]:
    """Merge adjacent ranges."""
    merged: list[range] = []
    for part in sorted(runs, key=lambda part: part.start):
        if merged and merged[-1].stop == part.start:
            merged[-1] = range(merged[-1].start, part.stop)
        else:
            merged.append(part)
    return merged


def round_to_float32(spec: SimulationSpec, regrets: FloatArray) -> FloatArray:
    """Round regrets as a store does."""
    return convert_to_float32(spec, regrets).astype(np.float64)


def convert_to_float32(spec: SimulationSpec, regrets: FloatArray) -> Float32Array:
    """Convert regrets to float32. The rounding error of seven digits is far below the sampling error."""
    with np.errstate(over="ignore"):
        rounded = regrets.astype(np.float32)
    if not np.isfinite(rounded).all():
        raise SimulationError(
            f"regrets must be below 3.4e38, but the policy {spec.policy.name!r} on the problem {spec.problem.name!r} has "
            "larger ones; scale the rewards down."
        )
    return rounded
