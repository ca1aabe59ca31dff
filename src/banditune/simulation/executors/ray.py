"""Runs chunks on a Ray cluster. Chunks are tasks; those of a dead worker are submitted again."""

from __future__ import annotations

import time
from collections import deque
from functools import partial
from typing import Any

from banditune.core.errors import InvalidRequest, WorkerLost
from banditune.simulation.executor import WORKER_WAIT_SECONDS, Chunk, ChunkResult, Executor, ExecutorSession, LostChunk
from banditune.simulation.executors.transport import (
    check_worker_versions,
    identify_worker,
    make_cluster_lost_error,
    make_worker_entry,
    pack_chunk,
    pack_spec,
    require_package,
    summarize_error,
    translate_cluster_errors,
    unpack_reply,
)
from banditune.simulation.spec import SimulationSpec

CORE_COUNT_SECONDS = 1.0
"""The number of seconds for which a count of cores is cached."""


class RaySession(ExecutorSession):
    """Chunks of a spec as Ray tasks."""

    def __init__(self, executor: RayExecutor, spec: SimulationSpec) -> None:
        self.executor, self.ray = executor, executor.ray
        kit = partial(make_worker_entry(), identify_worker().versions, tuple(pack_spec(spec)))
        with translate_cluster_errors("Ray"):
            self.kit = self.ray.put(kit)
        # Retries by Ray would not be counted.
        self.task = self.ray.remote(num_cpus=1, max_retries=0)(_make_remote_call())
        self.tickets: dict[Any, int] = {}
        self.ready: deque[Any] = deque()

    def submit(self, ticket: int, chunk: Chunk) -> None:
        packed = pack_chunk(chunk)
        with translate_cluster_errors("Ray"):
            self.tickets[self.task.remote(self.kit, packed)] = ticket

    def wait_for_result(self) -> tuple[int, ChunkResult | LostChunk]:
        if not self.ready:
            self.ready.extend(self._wait_for_finished())
        reference = self.ready.popleft()
        return self.tickets.pop(reference), self._fetch_result(reference)

    def _wait_for_finished(self) -> list[Any]:
        """Wait until a task ends, and return all ended tasks. Raise an error without cores for `WORKER_WAIT_SECONDS`."""
        references = list(self.tickets)
        alone = None
        while True:
            with translate_cluster_errors("Ray"):
                ended: list[Any] = self.ray.wait(references, num_returns=1, timeout=1.0)[0]
                if ended:
                    finished: list[Any] = self.ray.wait(references, num_returns=len(references), timeout=0)[0]
                    return finished or ended
            self.executor.workers  # noqa: B018 - counts
            alone = None if self.executor.count else alone or time.monotonic()
            if alone and time.monotonic() - alone > WORKER_WAIT_SECONDS:
                raise make_cluster_lost_error("Ray", f"it has had no cores for {WORKER_WAIT_SECONDS:.0f} s")

    def _fetch_result(self, reference: Any) -> ChunkResult | LostChunk:
        errors = self.ray.exceptions
        died = (
            errors.WorkerCrashedError,
            errors.NodeDiedError,
            errors.ObjectLostError,
            errors.OutOfMemoryError,
            errors.LocalRayletDiedError,
        )
        try:
            result = self.ray.get(reference)
        except died as error:
            return LostChunk(f"{type(error).__name__}: {summarize_error(error)}")
        except errors.RayError as error:
            raise WorkerLost(f"a Ray worker failed: {summarize_error(error)}.") from error
        except Exception as error:
            raise make_cluster_lost_error("Ray", f"{type(error).__name__}: {summarize_error(error)}") from error
        outcome: ChunkResult | LostChunk = unpack_reply(result)
        if not isinstance(outcome, ChunkResult):
            check_worker_versions(outcome)
        return outcome

    def stop(self) -> None:
        for reference in self.tickets:
            self.ray.cancel(reference, force=True)
        self.tickets = {}


class RayExecutor(Executor):
    """A Ray cluster. If a worker dies, its chunks are simulated again.

    Parameters
    ----------
    address : str
        The cluster's address, such as "ray://host:10001". With "ray" it is the cluster that this process is connected
        to, else one on this machine, else a new one.

    Raises
    ------
    InvalidRequest
        If no cluster answers, or if this process is connected to another one.
    MissingDependency
        If Ray is not installed.
    """

    chunks_per_second = 100.0

    def __init__(self, address: str = "ray") -> None:
        require_package("ray", "ray")
        import ray

        self.ray: Any = ray
        self.owns_connection = not ray.is_initialized()
        if self.owns_connection:
            _connect(ray, address)
        elif address != "ray":
            raise InvalidRequest(
                f"this process can use one Ray cluster, and is connected to one, but got {address}; give `ray` to use "
                "that one, or call ray.shutdown() first.",
                argument="executor",
                code="unavailable",
            )
        self.counted, self.count = 0.0, 0

    @property
    def workers(self) -> int:
        if time.monotonic() - self.counted > CORE_COUNT_SECONDS:
            with translate_cluster_errors("Ray"):
                self.count = int(self.ray.cluster_resources().get("CPU", 0))
            self.counted = time.monotonic()
        return max(1, self.count)

    def open_session(self, spec: SimulationSpec) -> RaySession:
        return RaySession(self, spec)

    def close(self) -> None:
        if self.owns_connection:
            self.ray.shutdown()


def _make_remote_call() -> Any:
    """Make a function that is pickled as code, as `make_worker_entry` does."""

    def simulate(kit: Any, chunk: Any) -> Any:
        return kit(chunk)

    return simulate


def _connect(ray: Any, address: str) -> None:
    """Connect to a cluster. The address `ray` means a cluster on this machine, which is started if there is none."""
    quiet = {"log_to_driver": False, "logging_level": "error"}
    try:
        if address != "ray":
            ray.init(address, **quiet)
            return
        try:
            ray.init("auto", **quiet)
        except ConnectionError:
            ray.init(include_dashboard=False, **quiet)
    except ConnectionAbortedError as error:
        raise InvalidRequest(
            f"Ray's client server must start a server for this process, but at {address} it failed "
            f"({summarize_error(error)}); try again, or start the head with GRPC_ENABLE_FORK_SUPPORT=0, which prevents "
            "most of these failures.",
            argument="executor",
            code="unavailable",
        ) from error
    except (ConnectionError, OSError, RuntimeError, ValueError) as error:
        raise InvalidRequest(
            f"a Ray cluster must answer at {address}, but none does ({summarize_error(error)}); start one with "
            "`ray start --head --ray-client-server-port 10001`.",
            argument="executor",
            code="unavailable",
        ) from error
