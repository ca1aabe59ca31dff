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
"""Pieces in flight for each worker."""


MAX_TRIES = 3
"""A piece that lost its worker so many times is not tried again."""


def simulate_rows_on_cpu(
    job: SimulationSpec,
    params: Any,
    runs: range,
    *,
    first_row: int = 0,
    jobs: int | None = None,
    cluster: Executor | None = None,
    progress: Callable[[int], None] | None = None,
) -> FloatArray:
    """Regrets of every row of `params` on instances `runs`, as from `dispatch.simulate_rows`."""
    params = copy_read_only(params)
    out = allocate_regrets(len(params), len(runs), len(job.at or (0,)))
    parts = [
        SimulationTask(params[rows.start : rows.stop], first_row + rows.start, runs, out[rows.start : rows.stop])
        for _, rows in group_alike_rows(job, params)
    ]
    with open_executor(cluster, jobs) as place:
        run_tasks(job, parts, place, progress)
    return out


def run_tasks(
    job: SimulationSpec,
    parts: Sequence[SimulationTask],
    cluster: Executor,
    progress: Callable[[int], None] | None = None,
    done: Callable[[SimulationTask, range], None] | None = None,
) -> None:
    """Play parts with rows that are played alike: first those by the shortcut, then those step by step."""
    fast = select_shortcut_rows(job, np.array([part.params[0] for part in parts]))
    for shortcut in (True, False):
        some = [part for one, part in zip(fast, parts, strict=True) if one == shortcut]
        if some:
            run_alike_tasks(set_shortcut(job, shortcut), some, cluster, progress, done)


@contextmanager
def open_executor(cluster: Executor | None, jobs: int | None) -> Iterator[Executor]:
    """A cluster that is there already, or threads for this once."""
    if cluster is not None:
        yield cluster
        return
    from banditune.simulation.executors.threads import ThreadExecutor

    with ThreadExecutor(jobs) as threads:
        yield threads


def run_alike_tasks(
    job: SimulationSpec,
    parts: Sequence[SimulationTask],
    cluster: Executor,
    progress: Callable[[int], None] | None = None,
    done: Callable[[SimulationTask, range], None] | None = None,
) -> None:
    """Play parts of one job's work on a cluster: some pieces are in flight, and what was lost is played again.

    `done` is told of regrets that are there, in the calling thread: a part and some of its runs, in any order.
    """
    pace = ChunkSizer(job, cluster, len(parts))
    left = pace.pieces(parts)
    flying: dict[int, PendingChunk] = {}
    troubles: dict[int, tuple[PendingChunk, FloatArray]] = {}
    # After an error or Ctrl-C nobody wants the rest: work ends with its `with`.
    with cluster.work(job) as work:
        while True:
            while not troubles and len(flying) < CHUNKS_PER_WORKER * cluster.workers and (flight := next(left, None)):
                flying[flight.ticket] = flight
                work.submit(flight.ticket, flight.piece)
            # Of several troubles the first in order is told, whichever was met first.
            if not flying or (troubles and min(flying) > min(troubles)):
                break
            ticket, outcome = work.result()
            if isinstance(outcome, LostChunk):
                flying[ticket] = resubmit_chunk(job, flying[ticket], outcome, work)
                continue
            flight = flying.pop(ticket)
            if outcome.trouble[0]:
                troubles[ticket] = flight, outcome.trouble
                continue
            part, runs = flight.part, flight.piece.runs
            part.out[:, runs.start - part.runs.start : runs.stop - part.runs.start] = outcome.regrets
            pace.learn(outcome)
            if progress:
                progress(len(runs) * len(part.params))
            if done:
                done(part, runs)
        if troubles:
            raise_failure(job, *troubles[min(troubles)])


def resubmit_chunk(job: SimulationSpec, flight: PendingChunk, lost: LostChunk, work: ExecutorSession) -> PendingChunk:
    """Hand out a lost piece again, unless it may be the reason."""
    flight = flight._replace(lost=flight.lost + lost.times)
    runs = flight.piece.runs
    if flight.lost >= MAX_TRIES:
        raise WorkerLost(
            f"a worker must live until its piece is done, but runs {runs.start} to {runs.stop - 1} of {describe_spec(job)} with "
            f"parameters {flight.piece.params.tolist()[:3]} lost their worker {flight.lost} times (at last: {lost.why}); "
            "see whether it has memory enough, and whether these runs end it."
        )
    work.submit(flight.ticket, flight.piece)
    return flight


def raise_failure(job: SimulationSpec, flight: PendingChunk, trouble: FloatArray) -> NoReturn:
    """Say why a kernel had to stop."""
    part, within = flight.part, flight.piece.runs
    if trouble[0] == loop.UNLOCATED_INVALID_REWARD:
        # The plain loop knows the step; if it does not get there, say what is known.
        row, run = int(trouble[3]), within.start + int(trouble[4])
        plain = replace(job, shortcut=False)
        simulate_rows_on_cpu(
            plain, part.params[row : row + 1], range(run, run + 1), first_row=part.first_row + row, jobs=1
        )
    raise SimulationError(describe_failure(job, part.params, within, trouble))
