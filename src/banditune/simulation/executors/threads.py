"""Runs chunks on threads of this process."""

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
"""The largest number of threads."""


class LocalSession(ExecutorSession):
    """Chunks on threads of a pool. `simulate(chunk, stop_flag)` returns a result, or stops early if the flag is set."""

    def __init__(self, pool: ThreadPoolExecutor, simulate: Any) -> None:
        self.pool, self.simulate = pool, simulate
        self.ended: SimpleQueue[tuple[int, ChunkResult | LostChunk | BaseException]] = SimpleQueue()
        self.waiting: dict[int, Future[None]] = {}
        self.stop_flag: IntArray = np.zeros(1, np.int64)

    def submit(self, ticket: int, chunk: Chunk) -> None:
        self.waiting[ticket] = self.pool.submit(self._run_chunk, ticket, chunk)

    def _run_chunk(self, ticket: int, chunk: Chunk) -> None:
        try:
            self.ended.put((ticket, self.simulate(chunk, self.stop_flag)))
        except BaseException as error:
            # An error ends the session. Until the caller has read it, this thread must not start another chunk.
            self.ended.put((ticket, error))
            self.stop_flag[0] = 1

    def wait_for_result(self) -> tuple[int, ChunkResult | LostChunk]:
        ticket, outcome = self.ended.get()
        del self.waiting[ticket]
        if isinstance(outcome, BaseException):
            raise outcome
        return ticket, outcome

    def stop(self) -> None:
        # Kernels return at the next run.
        self.stop_flag[0] = 1
        for future in self.waiting.values():
            future.cancel()


class LocalExecutor(Executor):
    """An executor that runs chunks on a thread pool."""

    def __init__(self, workers: int | None = None) -> None:
        self.size = min(count_cores() if workers is None else check_integer("workers", workers, 1), MAX_THREADS)
        self.pool = ThreadPoolExecutor(self.size)

    @property
    def workers(self) -> int:
        return self.size

    @abstractmethod
    def open_session(self, spec: SimulationSpec) -> LocalSession: ...

    def close(self) -> None:
        self.pool.shutdown(wait=False, cancel_futures=True)


class ThreadExecutor(LocalExecutor):
    """Threads of this process. Kernels run without Python's global lock.

    Parameters
    ----------
    workers : int, optional
        Number of threads; all cores by default, 256 at most.

    Raises
    ------
    InvalidRequest
        If the number of threads cannot be used.

    Examples
    --------
    >>> import banditune as bt
    >>> with bt.executors.ThreadExecutor(2) as executor:
    ...     run = bt.Run(executor=executor)
    ...     bt.simulate(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), horizon=100, runs=50, run=run).shape
    (1, 50)
    """

    @property
    def chunk_seconds(self) -> float:
        return 0.0

    def __init__(self, workers: int | None = None) -> None:
        super().__init__(workers)
        self.ready: OrderedDict[int, Any] = OrderedDict()

    def open_session(self, spec: SimulationSpec) -> LocalSession:
        return LocalSession(self.pool, self._load_simulator(spec).simulate_chunk)

    def _load_simulator(self, spec: SimulationSpec) -> Any:
        """Load the simulator of a spec. The last few are kept with their specs, so that addresses are unique."""
        if id(spec) not in self.ready:
            self.ready[id(spec)] = make_checked_simulator(spec)
        self.ready.move_to_end(id(spec))
        while len(self.ready) > 4:
            self.ready.popitem(last=False)
        return self.ready[id(spec)]
