"""Simulates with or without a store: what the store holds is not simulated again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import accumulate, groupby, pairwise
from pathlib import Path
from typing import Any

from banditune.core.arrays import FloatArray, copy_read_only
from banditune.core.errors import InvalidRequest
from banditune.simulation.blas_threads import limit_blas_threads
from banditune.simulation.chunks import SimulationTask
from banditune.simulation.dispatch import simulate_rows, simulate_rows_separately
from banditune.simulation.executor import Executor
from banditune.simulation.executors.executor_factory import ExecutorFactory
from banditune.simulation.kernel_selection import select_shortcut_rows, set_shortcut
from banditune.simulation.memory import allocate_regrets, check_regret_memory
from banditune.simulation.scheduler import run_tasks
from banditune.simulation.spec import SimulationSpec
from banditune.storage.provenance import collect_versions
from banditune.storage.regret_store import RegretStore
from banditune.storage.store_keys import build_key, find_row_precision, serialize_key
from banditune.storage.store_layout import StoredSeries, StoredSetup
from banditune.storage.store_writer import PendingRow, RunsCallback, StoreWriter, round_to_float32


class StoredSimulator:
    """Plays jobs as the engine does, from a ledger where it has one. Regrets are rounded to float32, as they are stored.

    With `exact` they are not, unless there is a ledger.
    """

    cluster: Executor
    ledger: RegretStore | None = None

    def __init__(self, place: ExecutorFactory, ledger: str | Path | None = None, *, exact: bool = False) -> None:
        self.place = place
        self.book = ledger
        self.exact = exact
        self.setups: dict[tuple[int, bool, str | None], tuple[SimulationSpec, StoredSetup]] = {}
        self.open = ExitStack()

    def __enter__(self) -> StoredSimulator:
        with ExitStack() as stack:
            if self.book is not None:
                self.ledger = stack.enter_context(RegretStore(self.book))
            self.cluster = stack.enter_context(self.place())
            stack.enter_context(limit_blas_threads())
            self.open = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self.open.__exit__(*error)

    def play(
        self, job: SimulationSpec, params: Any, runs: range, *, first_row: int = 0, progress: RunsCallback | None = None
    ) -> FloatArray:
        """Regrets of every row of `params` on instances `runs`, as from `dispatch.simulate_rows`."""
        if self.ledger is None:
            found = simulate_rows(job, params, runs, first_row=first_row, cluster=self.cluster, progress=progress)
            return found if self.exact else round_to_float32(job, found)
        params = copy_read_only(params)
        out = allocate_regrets(len(params), len(runs), len(job.at or (0,)))
        asked = [self._asked(job, params, row, first_row, runs, out[row], progress) for row in range(len(params))]
        parts = list(group_rows(asked, params, first_row, shared=job.noise == "shared"))
        writer = StoreWriter(self.ledger, job, parts)
        if job.device == "gpu":
            for part in writer.parts:
                part.out[:] = simulate_rows(job, part.params, part.runs, first_row=part.first_row, progress=progress)
                writer.done(part, part.runs)
        elif parts:
            run_tasks(job, writer.parts, self.cluster, progress, writer.done)
        return out

    def play_each(
        self,
        job: SimulationSpec,
        params: Any,
        sizes: Sequence[int],
        first: int,
        *,
        progress: RunsCallback | None = None,
    ) -> list[FloatArray]:
        """Regrets of every row on `sizes[row]` instances of its own, as from `dispatch.simulate_rows_each`."""
        if self.ledger is None:
            each = simulate_rows_separately(job, params, sizes, first, cluster=self.cluster, progress=progress)
            return [round_to_float32(job, row) for row in each]
        params = copy_read_only(params)
        check_regret_memory(int(sum(sizes)) * len(job.at or (0,)))
        ranges = [range(a, b) for a, b in pairwise(accumulate(map(int, sizes), initial=first))]
        outs = [allocate_regrets(len(runs), len(job.at or (0,))) for runs in ranges]
        asked = [self._asked(job, params, row, 0, runs, outs[row], progress) for row, runs in enumerate(ranges)]
        parts = list(group_rows(asked, params, 0, shared=False))
        writer = StoreWriter(self.ledger, job, parts)
        if job.device == "gpu" and parts:
            # As the engine does: all rows on all instances, which takes a GPU no longer.
            whole = simulate_rows_separately(job, params, sizes, first)
            for part in writer.parts:
                own = ranges[part.first_row]
                part.out[:] = whole[part.first_row][part.runs.start - own.start : part.runs.stop - own.start]
                if progress:
                    progress(len(part.runs))
                writer.done(part, part.runs)
        elif parts:
            run_tasks(job, writer.parts, self.cluster, progress, writer.done)
        return outs

    def _asked(
        self,
        job: SimulationSpec,
        params: FloatArray,
        row: int,
        first_row: int,
        runs: range,
        out: FloatArray,
        progress: RunsCallback | None,
    ) -> PendingRow:
        """Take what the ledger has of a row."""
        assert self.ledger is not None
        noise = 1 + first_row + row if job.noise == "own" else 0
        (shortcut,) = select_shortcut_rows(job, params[row : row + 1])
        setup = self._setup(job, shortcut, params[row])
        series = StoredSeries(setup, params[row].astype("<f8").tobytes(), noise)
        missing = tuple(self.ledger.fill(series, runs, out))
        known = len(runs) - sum(map(len, missing))
        if known and progress:
            progress(known)
        return PendingRow(row, shortcut, runs, series, out, missing)

    def _setup(self, job: SimulationSpec, shortcut: bool, row: FloatArray) -> StoredSetup:
        """The key of a row's job; found once for each way to play, because that takes milliseconds."""
        played = set_shortcut(job, shortcut)
        kind = find_row_precision(played, row)
        key = (id(job), shortcut, kind)
        if key not in self.setups:
            versions = json.dumps(collect_versions(job.device))
            # The job is kept, so that no other one gets its address.
            self.setups[key] = job, StoredSetup.of(serialize_key(build_key(played, kind)), versions)
        return self.setups[key][1]


def check_storable(ledger: Any, *todo: SimulationSpec) -> None:
    """Refuse to keep regrets of code that a ledger cannot know."""
    for job in todo:
        if ledger is not None and job.policy.plays_itself:
            raise InvalidRequest(
                f"a ledger must know the code that made its regrets, but not that of {job.policy.name!r}."
            )


def group_rows(
    asked: Sequence[PendingRow], params: FloatArray, first_row: int, *, shared: bool
) -> Iterator[tuple[SimulationTask, list[PendingRow]]]:
    """Parts to play: rows that are played alike and miss the same runs in one part.

    Rows that have noise of their own must be neighbours, too.
    """
    ordered = sorted(asked, key=_get_group_key) if shared else asked
    for _, found in groupby(ordered, key=_get_group_key):
        group = list(found)
        rows = [one.row for one in group]
        for runs in group[0].missing:
            out = allocate_regrets(len(rows), len(runs), group[0].out.shape[1])
            yield SimulationTask(copy_read_only(params[rows]), first_row + rows[0], runs, out), group


def _get_group_key(asked: PendingRow) -> tuple[bool, list[tuple[int, int]]]:
    return asked.shortcut, [(runs.start, runs.stop) for runs in asked.missing]
