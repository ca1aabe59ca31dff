"""Runs chunks on a Dask cluster. Chunks are futures; the scheduler runs those of a dead worker again."""

from __future__ import annotations

import operator
import pickle
import platform
import time
from collections import deque
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any
from uuid import uuid4

from banditune.core.errors import InvalidRequest, WorkerLost
from banditune.simulation.executor import (
    WORKER_WAIT_SECONDS,
    Chunk,
    ChunkResult,
    Executor,
    ExecutorSession,
    LostChunk,
    clean_up_without_masking_error,
)
from banditune.simulation.executors.transport import (
    check_worker_versions,
    identify_worker,
    make_cluster_lost_error,
    make_worker_entry,
    pack_chunk,
    pack_spec,
    require_package,
    translate_cluster_errors,
    unpack_reply,
)
from banditune.simulation.spec import SimulationSpec

WORKER_COUNT_SECONDS = 1.0
"""The number of seconds for which a count of workers is cached."""


class DaskSession(ExecutorSession):
    """Chunks of a spec as futures of a client."""

    def __init__(self, executor: DaskExecutor, spec: SimulationSpec) -> None:
        import cloudpickle

        self.executor, self.client = executor, executor.client
        packed_spec = pack_spec(spec)
        kit = cloudpickle.dumps(partial(make_worker_entry(), identify_worker().versions, tuple(packed_spec)))
        # This is a task, not scattered data, so that the scheduler can run it again if the worker with its result dies.
        with translate_cluster_errors("Dask"):
            self.kit = self.client.submit(
                pickle.loads, kit, key=f"banditune-spec-{packed_spec.digest[:20]}-{uuid4().hex}"
            )
        self.name = f"banditune-{uuid4().hex}"
        self.sent = 0
        self.tickets: dict[Any, int] = {}
        self.ended: SimpleQueue[Any] = SimpleQueue()
        self.ready: deque[tuple[int, ChunkResult | LostChunk]] = deque()

    def submit(self, ticket: int, chunk: Chunk) -> None:
        self.sent += 1
        packed = pack_chunk(chunk)
        with translate_cluster_errors("Dask"):
            future = self.client.submit(operator.call, self.kit, packed, key=f"{self.name}-{self.sent}", pure=False)
        self.tickets[future] = ticket
        future.add_done_callback(self.ended.put)

    def wait_for_result(self) -> tuple[int, ChunkResult | LostChunk]:
        while not self.ready:
            self._gather_results([self._wait_for_future(), *self._collect_ended()])
        return self.ready.popleft()

    def _wait_for_future(self) -> Any:
        """Wait for the next future that ends. Raise an error if there are no workers for `WORKER_WAIT_SECONDS`."""
        alone = None
        while True:
            try:
                return self.ended.get(timeout=1.0)
            except Empty:
                if self.client.status != "running":
                    raise make_cluster_lost_error("Dask", f"the client is {self.client.status}") from None
                alone = None if self.executor.workers else alone or time.monotonic()
                if alone and time.monotonic() - alone > WORKER_WAIT_SECONDS:
                    raise make_cluster_lost_error("Dask", "all workers are gone") from None

    def _collect_ended(self) -> list[Any]:
        """Collect all other futures that have ended, to fetch them with one request."""
        ended = []
        while not self.ended.empty():
            ended.append(self.ended.get())
        return ended

    def _gather_results(self, futures: list[Any]) -> None:
        finished = {position: future for position, future in enumerate(futures) if future.status == "finished"}
        # If a worker died in the meantime, only its futures may have no result.
        with translate_cluster_errors("Dask"):
            results = self.client.gather(finished, errors="skip")
        for position, future in finished.items():
            outcome = results.get(position)
            if outcome is None:
                continue
            if not isinstance(unpack_reply(outcome), ChunkResult):
                check_worker_versions(outcome)
            self.ready.append((self.tickets.pop(future), outcome))
        for future in futures:
            if future in self.tickets:
                self.ready.append((self.tickets.pop(future), self._explain_loss(future)))

    def _explain_loss(self, future: Any) -> LostChunk:
        """Explain why a future has no result."""
        from distributed.scheduler import KilledWorker

        if future.status in ("cancelled", "lost"):
            return LostChunk("the scheduler lost it")
        error = future.exception()
        if isinstance(error, KilledWorker):
            # The scheduler has reached its limit of retries.
            return LostChunk(f"the worker {error.last_worker.address} died", 1 + error.allowed_failures)
        raise WorkerLost(f"a Dask worker failed: {type(error).__name__}: {error}.")

    def stop(self) -> None:
        futures = [*self.tickets, self.kit]
        self.tickets = {}
        if self.client.status == "running" and len(futures) > 1:
            self.client.cancel(futures, force=True)


class DaskExecutor(Executor):
    """A Dask cluster. If a worker dies, its chunks are simulated again.

    Parameters
    ----------
    where : str or distributed.Client
        The address of the scheduler, such as "dask://host:8786", or a client. A client that was passed is not closed.

    Raises
    ------
    InvalidRequest
        If no scheduler answers, or if no worker connects within 60 seconds.
    MissingDependency
        If Dask is not installed.
    """

    def __init__(self, where: Any) -> None:
        require_package("dask", "distributed")
        self.owns_client = isinstance(where, str)
        self.client = _connect(where) if self.owns_client else where
        self.counted, self.count = 0.0, 0
        try:
            _check_python_versions(self.client)
            self._wait_for_workers()
        except BaseException as error:
            clean_up_without_masking_error(self.close, type(error))
            raise

    def _wait_for_workers(self) -> None:
        end = time.monotonic() + WORKER_WAIT_SECONDS
        while not self.workers:
            if time.monotonic() > end:
                raise InvalidRequest(
                    f"a Dask cluster must have workers, but none connected to {self.client.scheduler.address} in "
                    f"{WORKER_WAIT_SECONDS:.0f} s; start some with `dask worker {self.client.scheduler.address}`.",
                    argument="executor",
                    code="unavailable",
                )
            time.sleep(0.1)

    @property
    def workers(self) -> int:
        if time.monotonic() - self.counted > WORKER_COUNT_SECONDS:
            with translate_cluster_errors("Dask"):
                self.count = sum(self.client.nthreads().values())
            self.counted = time.monotonic() if self.count else 0.0
        return self.count

    def open_session(self, spec: SimulationSpec) -> DaskSession:
        return DaskSession(self, spec)

    def close(self) -> None:
        if self.owns_client:
            self.client.close()


def _connect(address: str) -> Any:
    from distributed import Client

    location = address.removeprefix("dask://")
    try:
        return Client(location if "://" in location else f"tcp://{location}", timeout=10, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InvalidRequest(
            f"a Dask scheduler must answer at {address}, but none does ({error}); start one with `dask scheduler`.",
            argument="executor",
            code="unavailable",
        ) from error


def _check_python_versions(client: Any) -> None:
    """Check the Python versions of workers, because code for another Python version cannot be sent."""
    own_version = platform.python_version_tuple()[:2]
    for name, info in client.get_versions()["workers"].items():
        theirs = info["host"]["python"].split(".")[:2]
        if tuple(theirs) != own_version:
            check_worker_versions((name, identify_worker().versions | {"python": ".".join(theirs)}))
