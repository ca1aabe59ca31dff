"""Writes regrets to a store while they are computed, in whole blocks where possible."""

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
"""Seconds after which regrets are stored although their block is not complete."""


WRITE_INTERVAL_SECONDS = 0.05
"""Seconds between two writes, so that a study of many short parts does not spend its time on them."""


class PendingRow(NamedTuple):
    """A row of parameters on some runs: where it stands in the ledger, where its regrets go, and which are missing.

    `shortcut` says whether a shortcut plays it.
    """

    row: int
    shortcut: bool
    runs: range
    series: StoredSeries
    out: FloatArray
    missing: tuple[range, ...]


@dataclass
class IncompleteBlock:
    """A part's regrets in a block that is not complete: which runs are there and were not taken, how many are missing."""

    part: SimulationTask
    missing: int
    runs: list[range] = field(default_factory=list)


class StoreWriter:
    """Stores regrets as they come, in any order, and puts them where they were asked for."""

    def __init__(
        self, ledger: RegretStore, job: SimulationSpec, parts: Sequence[tuple[SimulationTask, list[PendingRow]]]
    ) -> None:
        self.ledger = ledger
        self.job = job
        self.parts = [part for part, _ in parts]
        self.rows = {id(part): rows for part, rows in parts}
        self.left = sum(len(part.runs) for part in self.parts)
        self.waiting: dict[tuple[int, int], IncompleteBlock] = {}
        self.ready: list[RegretBlock] = []
        self.last = time.monotonic()

    def done(self, part: SimulationTask, within: range) -> None:
        """Regrets of a part on some runs are there: take blocks that are complete, or all if they waited long."""
        self.left -= len(within)
        for block, runs in split_by_block(within):
            key = id(part), block
            waiting = self.waiting.setdefault(key, IncompleteBlock(part, len(_find_block_runs(part, block))))
            waiting.runs.append(runs)
            waiting.missing -= len(runs)
            if not waiting.missing:
                self.take(self.waiting.pop(key))
        waited = time.monotonic() - self.last
        if waited > MAX_WAIT_SECONDS:
            for waiting in self.waiting.values():
                self.take(waiting)
        if self.ready and (waited > WRITE_INTERVAL_SECONDS or not self.left):
            self.ledger.keep(self.ready)
            self.ready = []
            self.last = time.monotonic()

    def take(self, waiting: IncompleteBlock) -> None:
        """Make blocks of the regrets that are there."""
        part = waiting.part
        for runs in _merge_ranges(waiting.runs):
            found = convert_to_float32(
                self.job, part.out[:, runs.start - part.runs.start : runs.stop - part.runs.start]
            )
            for one, regrets in zip(self.rows[id(part)], found, strict=True):
                one.out[runs.start - one.runs.start : runs.stop - one.runs.start] = regrets
                self.ready.append(RegretBlock(one.series, runs.start, regrets))
        waiting.runs.clear()


def _find_block_runs(part: SimulationTask, block: int) -> range:
    """The runs of a part that are in a block."""
    return range(max(part.runs.start, block * BLOCK_SIZE), min(part.runs.stop, (block + 1) * BLOCK_SIZE))


def _merge_ranges(runs: Sequence[range]) -> list[range]:
    """Neighbouring ranges as one."""
    found: list[range] = []
    for one in sorted(runs, key=lambda each: each.start):
        if found and found[-1].stop == one.start:
            found[-1] = range(found[-1].start, one.stop)
        else:
            found.append(one)
    return found


def round_to_float32(job: SimulationSpec, regrets: FloatArray) -> FloatArray:
    """Regrets as a ledger would give them back."""
    return convert_to_float32(job, regrets).astype(np.float64)


def convert_to_float32(job: SimulationSpec, regrets: FloatArray) -> Float32Array:
    """Regrets in float32, whose seven digits are far more than chance leaves of them."""
    with np.errstate(over="ignore"):
        found = regrets.astype(np.float32)
    if not np.isfinite(found).all():
        raise SimulationError(
            f"regrets must be below 3.4e38, but the policy {job.policy.name!r} on the problem {job.problem.name!r} has "
            "larger ones; scale the rewards down."
        )
    return found
