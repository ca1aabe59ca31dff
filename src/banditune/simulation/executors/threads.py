"""Plays chunks on threads of this process."""

from __future__ import annotations

from abc import abstractmethod
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

import numpy as np

from banditune.core.arrays import IntArray
from banditune.core.checks import check_integer
from banditune.simulation.devices import count_cores
from banditune.simulation.executor import Chunk, ChunkResult, Executor, ExecutorSession, LostChunk
from banditune.simulation.simulator import make_checked_simulator
from banditune.simulation.spec import SimulationSpec

MAX_THREADS = 256
"""Threads at most."""


class LocalSession(ExecutorSession):
    """Pieces that threads of a pool take care of; `play` is told a piece and a sign that says stop."""

    def __init__(self, pool: ThreadPoolExecutor, play: Any) -> None:
        self.pool, self.play = pool, play
        self.ended: SimpleQueue[tuple[int, ChunkResult | LostChunk | BaseException]] = SimpleQueue()
        self.waiting: dict[int, Future[None]] = {}
        self.sign: IntArray = np.zeros(1, np.int64)

    def submit(self, ticket: int, piece: Chunk) -> None:
        self.waiting[ticket] = self.pool.submit(self._task, ticket, piece)

    def _task(self, ticket: int, piece: Chunk) -> None:
        try:
            self.ended.put((ticket, self.play(piece, self.sign)))
        except BaseException as error:
            # An error ends the work: this thread must not begin its next piece before the caller has read it.
            self.ended.put((ticket, error))
            self.sign[0] = 1

    def result(self) -> tuple[int, ChunkResult | LostChunk]:
        ticket, outcome = self.ended.get()
        del self.waiting[ticket]
        if isinstance(outcome, BaseException):
            raise outcome
        return ticket, outcome

    def stop(self) -> None:
        # Threads leave their kernels at the next run.
        self.sign[0] = 1
        for future in self.waiting.values():
            future.cancel()


class LocalExecutor(Executor):
    """Threads that take care of pieces."""

    def __init__(self, workers: int | None = None) -> None:
        self.size = min(count_cores() if workers is None else check_integer("workers", workers, 1), MAX_THREADS)
        self.pool = ThreadPoolExecutor(self.size)

    @property
    def workers(self) -> int:
        return self.size

    @abstractmethod
    def work(self, job: SimulationSpec) -> LocalSession: ...

    def close(self) -> None:
        self.pool.shutdown(wait=False, cancel_futures=True)


class ThreadExecutor(LocalExecutor):
    """Threads of this process; all cores unless told. Kernels run without Python's lock."""

    @property
    def seconds(self) -> float:
        return 0.0

    def __init__(self, workers: int | None = None) -> None:
        super().__init__(workers)
        self.ready: OrderedDict[int, Any] = OrderedDict()

    def work(self, job: SimulationSpec) -> LocalSession:
        return LocalSession(self.pool, self._prepared(job).play)

    def _prepared(self, job: SimulationSpec) -> Any:
        """A job's kernel and instances; the last few are kept, with their jobs, so that no other gets their address."""
        if id(job) not in self.ready:
            self.ready[id(job)] = make_checked_simulator(job)
        self.ready.move_to_end(id(job))
        while len(self.ready) > 4:
            self.ready.popitem(last=False)
        return self.ready[id(job)]
