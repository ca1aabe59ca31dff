"""A Ray cluster: pieces are tasks; what a dead worker had is handed out again."""

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
"""Seconds for which a count of cores is good."""


class RaySession(ExecutorSession):
    """Pieces of a job as tasks."""

    def __init__(self, cluster: RayExecutor, job: SimulationSpec) -> None:
        self.cluster, self.ray = cluster, cluster.ray
        kit = partial(make_worker_entry(), identify_worker().versions, tuple(pack_spec(job)))
        with translate_cluster_errors("Ray"):
            self.kit = self.ray.put(kit)
        # Ray's own retries would not be counted.
        self.task = self.ray.remote(num_cpus=1, max_retries=0)(_make_remote_call())
        self.tickets: dict[Any, int] = {}
        self.ready: deque[Any] = deque()

    def submit(self, ticket: int, piece: Chunk) -> None:
        told = pack_chunk(piece)
        with translate_cluster_errors("Ray"):
            self.tickets[self.task.remote(self.kit, told)] = ticket

    def result(self) -> tuple[int, ChunkResult | LostChunk]:
        if not self.ready:
            self.ready.extend(self._finished())
        reference = self.ready.popleft()
        return self.tickets.pop(reference), self._outcome(reference)

    def _finished(self) -> list[Any]:
        """Wait until something ends, then take all that has; a cluster without cores is not waited for for ever."""
        flying = list(self.tickets)
        alone = None
        while True:
            with translate_cluster_errors("Ray"):
                ended: list[Any] = self.ray.wait(flying, num_returns=1, timeout=1.0)[0]
                if ended:
                    found: list[Any] = self.ray.wait(flying, num_returns=len(flying), timeout=0)[0]
                    return found or ended
            self.cluster.workers  # noqa: B018 - counts
            alone = None if self.cluster.count else alone or time.monotonic()
            if alone and time.monotonic() - alone > WORKER_WAIT_SECONDS:
                raise make_cluster_lost_error("Ray", f"it has had no cores for {WORKER_WAIT_SECONDS:.0f} s")

    def _outcome(self, reference: Any) -> ChunkResult | LostChunk:
        errors = self.ray.exceptions
        died = (errors.WorkerCrashedError, errors.NodeDiedError, errors.ObjectLostError, errors.OutOfMemoryError,
                errors.LocalRayletDiedError)  # fmt: skip
        try:
            found = self.ray.get(reference)
        except died as error:
            return LostChunk(f"{type(error).__name__}: {summarize_error(error)}")
        except errors.RayError as error:
            raise WorkerLost(f"a Ray worker failed: {summarize_error(error)}.") from error
        except Exception as error:
            raise make_cluster_lost_error("Ray", f"{type(error).__name__}: {summarize_error(error)}") from error
        outcome: ChunkResult | LostChunk = unpack_reply(found)
        if not isinstance(outcome, ChunkResult):
            check_worker_versions(outcome)
        return outcome

    def stop(self) -> None:
        for reference in self.tickets:
            self.ray.cancel(reference, force=True)
        self.tickets = {}


class RayExecutor(Executor):
    """A Ray cluster, by its address (`ray://host:10001`); `ray` is the one this process is connected to, or is on, or a
    new one on this machine.
    """

    rate = 100.0

    def __init__(self, address: str = "ray") -> None:
        require_package("ray", "ray")
        import ray

        self.ray: Any = ray
        self.own = not ray.is_initialized()
        if self.own:
            _connect(ray, address)
        elif address != "ray":
            raise InvalidRequest(
                f"this process can be in one Ray cluster, and is connected already, but got {address}; say `ray` to use "
                "that one, or call ray.shutdown() first."
            )
        self.counted, self.count = 0.0, 0

    @property
    def workers(self) -> int:
        if time.monotonic() - self.counted > CORE_COUNT_SECONDS:
            with translate_cluster_errors("Ray"):
                self.count = int(self.ray.cluster_resources().get("CPU", 0))
            self.counted = time.monotonic()
        return max(1, self.count)

    def work(self, job: SimulationSpec) -> RaySession:
        return RaySession(self, job)

    def close(self) -> None:
        if self.own:
            self.ray.shutdown()


def _make_remote_call() -> Any:
    """A function that travels as code, as `make_worker_entry` does."""

    def play(kit: Any, piece: Any) -> Any:
        return kit(piece)

    return play


def _connect(ray: Any, address: str) -> None:
    """Join a cluster; `ray` alone finds one on this machine or starts one."""
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
            f"Ray's client server must start a server for this process, but at {address} it failed ({summarize_error(error)}); try "
            "again, or start the head with GRPC_ENABLE_FORK_SUPPORT=0, without which that happens now and then."
        ) from error
    except (ConnectionError, OSError, RuntimeError, ValueError) as error:
        raise InvalidRequest(
            f"a Ray cluster must answer at {address}, but none does ({summarize_error(error)}); start one with "
            "`ray start --head --ray-client-server-port 10001`."
        ) from error
