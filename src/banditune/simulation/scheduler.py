"""Runs simulation tasks on an executor, chunk by chunk. The numbers are the same for any executor and any chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from banditune.core.arrays import FloatArray, copy_read_only
from banditune.core.errors import SimulationError, WorkerLost
from banditune.simulation import loop
from banditune.simulation.chunks import ChunkSizer, PendingChunk, SimulationTask
from banditune.simulation.executor import Executor, ExecutorSession, LostChunk
from banditune.simulation.failures import describe_failure
from banditune.simulation.kernel_selection import group_alike_rows, select_shortcut_rows, set_shortcut
from banditune.simulation.memory import allocate_regrets
from banditune.simulation.spec import SimulationSpec, describe_spec

CHUNKS_PER_WORKER = 4
"""The number of chunks in flight for each worker."""


MAX_TRIES = 3
"""The number of lost workers after which a chunk is not submitted again."""


def simulate_rows_on_cpu(
    spec: SimulationSpec,
    params: Any,
    runs: range,
    *,
    first_row: int = 0,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Callable[[int], None] | None = None,
) -> FloatArray:
    """Simulate every row of `params` on instances `runs`, as `dispatch.simulate_rows` does."""
    params = copy_read_only(params)
    out = allocate_regrets(len(params), len(runs), len(spec.checkpoints or (0,)))
    tasks = [
        SimulationTask(params[rows.start : rows.stop], first_row + rows.start, runs, out[rows.start : rows.stop])
        for _, rows in group_alike_rows(spec, params)
    ]
    with open_executor(executor, workers) as opened:
        run_tasks(spec, tasks, opened, progress)
    return out


def run_tasks(
    spec: SimulationSpec,
    tasks: Sequence[SimulationTask],
    executor: Executor,
    progress: Callable[[int], None] | None = None,
    done: Callable[[SimulationTask, range], None] | None = None,
) -> None:
    """Run tasks, first those whose rows use the shortcut, then the others. All rows of a task are of one kind."""
    fast = select_shortcut_rows(spec, np.array([task.params[0] for task in tasks]))
    for shortcut in (True, False):
        selected = [task for is_fast, task in zip(fast, tasks, strict=True) if is_fast == shortcut]
        if selected:
            run_alike_tasks(set_shortcut(spec, shortcut), selected, executor, progress, done)


@contextmanager
def open_executor(executor: Executor | None, workers: int | None) -> Iterator[Executor]:
    """Yield the given executor, which is left open, or open threads for this call."""
    if executor is not None:
        yield executor
        return
    from banditune.simulation.executors.threads import ThreadExecutor

    with ThreadExecutor(workers) as threads:
        yield threads


def run_alike_tasks(
    spec: SimulationSpec,
    tasks: Sequence[SimulationTask],
    executor: Executor,
    progress: Callable[[int], None] | None = None,
    done: Callable[[SimulationTask, range], None] | None = None,
) -> None:
    """Run the tasks of one spec on an executor. Several chunks are in flight, and lost chunks are submitted again.

    `done(task, runs)` is called in the calling thread for each finished chunk, in any order.
    """
    sizer = ChunkSizer(spec, executor, len(tasks))
    remaining = sizer.cut_chunks(tasks)
    in_flight: dict[int, PendingChunk] = {}
    failures: dict[int, tuple[PendingChunk, FloatArray]] = {}
    # After an error or Ctrl-C, the `with` statement cancels all other chunks.
    with executor.open_session(spec) as session:
        while True:
            while (
                not failures
                and len(in_flight) < CHUNKS_PER_WORKER * executor.workers
                and (flight := next(remaining, None))
            ):
                in_flight[flight.ticket] = flight
                session.submit(flight.ticket, flight.chunk)
            # Of several failures, the one with the lowest ticket is reported, not the one that arrived first.
            if not in_flight or (failures and min(in_flight) > min(failures)):
                break
            ticket, outcome = session.wait_for_result()
            if isinstance(outcome, LostChunk):
                in_flight[ticket] = resubmit_chunk(spec, in_flight[ticket], outcome, session)
                continue
            flight = in_flight.pop(ticket)
            if outcome.failure[0]:
                failures[ticket] = flight, outcome.failure
                continue
            task, runs = flight.task, flight.chunk.runs
            task.out[:, runs.start - task.runs.start : runs.stop - task.runs.start] = outcome.regrets
            sizer.update_size(outcome)
            if progress:
                progress(len(runs) * len(task.params))
            if done:
                done(task, runs)
        if failures:
            raise_failure(spec, *failures[min(failures)])


def resubmit_chunk(
    spec: SimulationSpec, flight: PendingChunk, lost_chunk: LostChunk, session: ExecutorSession
) -> PendingChunk:
    """Submit a lost chunk again. Raise `WorkerLost` if it was lost too often, because it may be the cause."""
    flight = flight._replace(losses=flight.losses + lost_chunk.losses)
    runs = flight.chunk.runs
    if flight.losses >= MAX_TRIES:
        raise WorkerLost(
            f"a worker must run until its chunk is done, but runs {runs.start} to {runs.stop - 1} of "
            f"{describe_spec(spec)} with parameters {flight.chunk.params.tolist()[:3]} lost their worker {flight.losses} "
            f"times (at last: {lost_chunk.reason}); "
            "check whether it has enough memory, and whether these runs crash it."
        )
    session.submit(flight.ticket, flight.chunk)
    return flight


def raise_failure(spec: SimulationSpec, flight: PendingChunk, failure: FloatArray) -> NoReturn:
    """Raise an error that explains why a kernel stopped."""
    task, runs = flight.task, flight.chunk.runs
    if failure[0] == loop.UNLOCATED_INVALID_REWARD:
        # The plain loop finds the step. If it does not fail, the message has no step.
        row, run = int(failure[3]), runs.start + int(failure[4])
        plain = replace(spec, use_shortcut=False)
        simulate_rows_on_cpu(
            plain, task.params[row : row + 1], range(run, run + 1), first_row=task.first_row + row, workers=1
        )
    raise SimulationError(describe_failure(spec, task.params, runs, failure))
