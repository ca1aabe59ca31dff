"""Simulates with or without a store. Stored runs are not simulated again."""

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
from banditune.storage.store_keys import build_key, find_row_dtype, serialize_key
from banditune.storage.store_layout import StoredSeries, StoredSetup
from banditune.storage.store_writer import PendingRow, RunsCallback, StoreWriter, round_to_float32


class StoredSimulator:
    """Simulates specs, except for regrets that are in a store. Regrets are rounded to float32, as in a store.

    With `exact` they are not rounded, unless there is a store.
    """

    executor: Executor
    store: RegretStore | None = None

    def __init__(
        self, executor_factory: ExecutorFactory, path: str | Path | None = None, *, exact: bool = False
    ) -> None:
        self.executor_factory = executor_factory
        self.path = path
        self.exact = exact
        self.setups: dict[tuple[int, bool, str | None], tuple[SimulationSpec, StoredSetup]] = {}
        self.resources = ExitStack()

    def __enter__(self) -> StoredSimulator:
        with ExitStack() as stack:
            if self.path is not None:
                self.store = stack.enter_context(RegretStore(self.path))
            self.executor = stack.enter_context(self.executor_factory())
            stack.enter_context(limit_blas_threads())
            self.resources = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self.resources.__exit__(*error)

    def simulate(
        self,
        spec: SimulationSpec,
        params: Any,
        runs: range,
        *,
        first_row: int = 0,
        progress: RunsCallback | None = None,
    ) -> FloatArray:
        """Simulate every row of `params` on instances `runs`, as `dispatch.simulate_rows` does."""
        params = spec.complete_rows(params)
        if self.store is None:
            regrets = simulate_rows(spec, params, runs, first_row=first_row, executor=self.executor, progress=progress)
            return regrets if self.exact else round_to_float32(spec, regrets)
        params = copy_read_only(params)
        out = allocate_regrets(len(params), len(runs), len(spec.checkpoints or (0,)))
        pending = [
            self._look_up_row(spec, params, row, first_row, runs, out[row], progress) for row in range(len(params))
        ]
        tasks = list(group_rows(pending, params, first_row, shared=spec.common_random_numbers))
        writer = StoreWriter(self.store, spec, tasks)
        if spec.device == "gpu":
            for task in writer.tasks:
                task.out[:] = simulate_rows(spec, task.params, task.runs, first_row=task.first_row, progress=progress)
                writer.add_finished(task, task.runs)
        elif tasks:
            run_tasks(spec, writer.tasks, self.executor, progress, writer.add_finished)
        return out

    def simulate_each(
        self,
        spec: SimulationSpec,
        params: Any,
        sizes: Sequence[int],
        first: int,
        *,
        progress: RunsCallback | None = None,
    ) -> list[FloatArray]:
        """Simulate every row on `sizes[row]` separate instances, as `dispatch.simulate_rows_separately` does."""
        params = spec.complete_rows(params)
        if self.store is None:
            rows_of_regrets = simulate_rows_separately(
                spec, params, sizes, first, executor=self.executor, progress=progress
            )
            return [round_to_float32(spec, row) for row in rows_of_regrets]
        params = copy_read_only(params)
        check_regret_memory(int(sum(sizes)) * len(spec.checkpoints or (0,)))
        ranges = [range(a, b) for a, b in pairwise(accumulate(map(int, sizes), initial=first))]
        outs = [allocate_regrets(len(runs), len(spec.checkpoints or (0,))) for runs in ranges]
        pending = [
            self._look_up_row(spec, params, row, 0, runs, outs[row], progress) for row, runs in enumerate(ranges)
        ]
        tasks = list(group_rows(pending, params, 0, shared=False))
        writer = StoreWriter(self.store, spec, tasks)
        if spec.device == "gpu" and tasks:
            # As without a store, a GPU simulates all rows on all instances, because this takes no longer.
            rows_of_regrets = simulate_rows_separately(spec, params, sizes, first)
            for task in writer.tasks:
                runs = ranges[task.first_row]
                task.out[:] = rows_of_regrets[task.first_row][
                    task.runs.start - runs.start : task.runs.stop - runs.start
                ]
                if progress:
                    progress(len(task.runs))
                writer.add_finished(task, task.runs)
        elif tasks:
            run_tasks(spec, writer.tasks, self.executor, progress, writer.add_finished)
        return outs

    def _look_up_row(
        self,
        spec: SimulationSpec,
        params: FloatArray,
        row: int,
        first_row: int,
        runs: range,
        out: FloatArray,
        progress: RunsCallback | None,
    ) -> PendingRow:
        """Read the stored regrets of a row."""
        assert self.store is not None
        noise = 1 + first_row + row if not spec.common_random_numbers else 0
        (shortcut,) = select_shortcut_rows(spec, params[row : row + 1])
        setup = self._make_setup(spec, shortcut, params[row])
        series = StoredSeries(setup, params[row].astype("<f8").tobytes(), noise)
        missing = tuple(self.store.fill_stored(series, runs, out))
        stored_count = len(runs) - sum(map(len, missing))
        if stored_count and progress:
            progress(stored_count)
        return PendingRow(row, shortcut, runs, series, out, missing)

    def _make_setup(self, spec: SimulationSpec, shortcut: bool, row: FloatArray) -> StoredSetup:
        """Make the key of a row. Keys are cached, because building one takes milliseconds."""
        keyed_spec = set_shortcut(spec, shortcut)
        row_dtype = find_row_dtype(keyed_spec, row)
        key = (id(spec), shortcut, row_dtype)
        if key not in self.setups:
            versions = json.dumps(collect_versions(spec.device))
            # The spec is kept, so that no other spec has its address.
            self.setups[key] = (
                spec,
                StoredSetup.from_key_text(serialize_key(build_key(keyed_spec, row_dtype)), versions),
            )
        return self.setups[key][1]


def check_storable(store: Any, *todo: SimulationSpec) -> None:
    """Raise an error if a key cannot identify the code of a spec."""
    for spec in todo:
        if store is not None and spec.policy.is_external:
            raise InvalidRequest(
                f"a store must identify the code of its regrets, but cannot for {spec.policy.name!r}; leave out the "
                "store.",
                argument="store",
                code="unsupported",
            )


def group_rows(
    pending: Sequence[PendingRow], params: FloatArray, first_row: int, *, shared: bool
) -> Iterator[tuple[SimulationTask, list[PendingRow]]]:
    """Group rows into tasks. The rows of a task all use the shortcut or all do not, and the same runs are missing.

    Rows with independent noise must be neighbours, too.
    """
    ordered = sorted(pending, key=_get_group_key) if shared else pending
    for _, same_key in groupby(ordered, key=_get_group_key):
        group = list(same_key)
        rows = [pending_row.row for pending_row in group]
        for runs in group[0].missing_runs:
            out = allocate_regrets(len(rows), len(runs), group[0].out.shape[1])
            yield SimulationTask(copy_read_only(params[rows]), first_row + rows[0], runs, out), group


def _get_group_key(pending: PendingRow) -> tuple[bool, list[tuple[int, int]]]:
    return pending.uses_shortcut, [(runs.start, runs.stop) for runs in pending.missing_runs]
