"""A Ray cluster: pieces are tasks; what a dead worker had is handed out again."""

from __future__ import annotations

import time
from collections import deque
from functools import partial
from typing import Any

from banditune.contracts import BadRequest, Outage
from banditune.engine.cluster.travel import (
    card,
    check_versions,
    entrance,
    gone,
    missing,
    packed,
    raised,
    recipe_of,
    short,
    staying,
)
from banditune.engine.pieces import PATIENCE, Cluster, Lost, Piece, Played, Work
from banditune.engine.run import Job

FRESH = 1.0
"""Seconds for which a count of cores is good."""


class Ray(Cluster):
    """A Ray cluster, by its address (`ray://host:10001`); `ray` is the one this process is connected to, or is on, or a
    new one on this machine.
    """

    rate = 100.0

    def __init__(self, address: str = "ray") -> None:
        missing("ray", "ray")
        import ray

        self.ray: Any = ray
        self.own = not ray.is_initialized()
        if self.own:
            _connect(ray, address)
        elif address != "ray":
            raise BadRequest(
                f"this process can be in one Ray cluster, and is connected already, but got {address}; say `ray` to use "
                "that one, or call ray.shutdown() first."
            )
        self.counted, self.count = 0.0, 0

    @property
    def workers(self) -> int:
        if time.monotonic() - self.counted > FRESH:
            with staying("Ray"):
                self.count = int(self.ray.cluster_resources().get("CPU", 0))
            self.counted = time.monotonic()
        return max(1, self.count)

    def work(self, job: Job) -> RayWork:
        return RayWork(self, job)

    def close(self) -> None:
        if self.own:
            self.ray.shutdown()


class RayWork(Work):
    """Pieces of a job as tasks."""

    def __init__(self, cluster: Ray, job: Job) -> None:
        self.cluster, self.ray = cluster, cluster.ray
        kit = partial(entrance(), card().versions, tuple(recipe_of(job)))
        with staying("Ray"):
            self.kit = self.ray.put(kit)
        # Ray's own retries would not be counted.
        self.task = self.ray.remote(num_cpus=1, max_retries=0)(_caller())
        self.tickets: dict[Any, int] = {}
        self.ready: deque[Any] = deque()

    def submit(self, ticket: int, piece: Piece) -> None:
        told = packed(piece)
        with staying("Ray"):
            self.tickets[self.task.remote(self.kit, told)] = ticket

    def result(self) -> tuple[int, Played | Lost]:
        if not self.ready:
            self.ready.extend(self._finished())
        reference = self.ready.popleft()
        return self.tickets.pop(reference), self._outcome(reference)

    def _finished(self) -> list[Any]:
        """Wait until something ends, then take all that has; a cluster without cores is not waited for for ever."""
        flying = list(self.tickets)
        alone = None
        while True:
            with staying("Ray"):
                ended: list[Any] = self.ray.wait(flying, num_returns=1, timeout=1.0)[0]
                if ended:
                    found: list[Any] = self.ray.wait(flying, num_returns=len(flying), timeout=0)[0]
                    return found or ended
            self.cluster.workers  # noqa: B018 - counts
            alone = None if self.cluster.count else alone or time.monotonic()
            if alone and time.monotonic() - alone > PATIENCE:
                raise gone("Ray", f"it has had no cores for {PATIENCE:.0f} s")

    def _outcome(self, reference: Any) -> Played | Lost:
        errors = self.ray.exceptions
        died = (errors.WorkerCrashedError, errors.NodeDiedError, errors.ObjectLostError, errors.OutOfMemoryError,
                errors.LocalRayletDiedError)  # fmt: skip
        try:
            found = self.ray.get(reference)
        except died as error:
            return Lost(f"{type(error).__name__}: {short(error)}")
        except errors.RayError as error:
            raise Outage(f"a Ray worker failed: {short(error)}.") from error
        except Exception as error:
            raise gone("Ray", f"{type(error).__name__}: {short(error)}") from error
        outcome: Played | Lost = raised(found)
        if not isinstance(outcome, Played):
            check_versions(outcome)
        return outcome

    def stop(self) -> None:
        for reference in self.tickets:
            self.ray.cancel(reference, force=True)
        self.tickets = {}


def _caller() -> Any:
    """A function that travels as code, as `entrance` does."""

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
        raise BadRequest(
            f"Ray's client server must start a server for this process, but at {address} it failed ({short(error)}); try "
            "again, or start the head with GRPC_ENABLE_FORK_SUPPORT=0, without which that happens now and then."
        ) from error
    except (ConnectionError, OSError, RuntimeError, ValueError) as error:
        raise BadRequest(
            f"a Ray cluster must answer at {address}, but none does ({short(error)}); start one with "
            "`ray start --head --ray-client-server-port 10001`."
        ) from error
