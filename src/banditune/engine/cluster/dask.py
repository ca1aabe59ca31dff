"""A Dask cluster: pieces are futures; the scheduler plays again what a dead worker had."""

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
    staying,
)
from banditune.engine.pieces import PATIENCE, Cluster, Lost, Piece, Played, Work, end_with
from banditune.engine.run import Job

FRESH = 1.0
"""Seconds for which a count of workers is good."""


class Dask(Cluster):
    """A Dask cluster, by the address of its scheduler (`dask://host:8786`) or a `distributed.Client`."""

    def __init__(self, where: Any) -> None:
        missing("dask", "distributed")
        self.own = isinstance(where, str)
        self.client = _connected(where) if self.own else where
        self.counted, self.count = 0.0, 0
        try:
            _check_pythons(self.client)
            self._wait_for_workers()
        except BaseException as error:
            end_with(self.close, type(error))
            raise

    def _wait_for_workers(self) -> None:
        end = time.monotonic() + PATIENCE
        while not self.workers:
            if time.monotonic() > end:
                raise BadRequest(
                    f"a Dask cluster must have workers, but none came to {self.client.scheduler.address} in "
                    f"{PATIENCE:.0f} s; start some with `dask worker {self.client.scheduler.address}`."
                )
            time.sleep(0.1)

    @property
    def workers(self) -> int:
        if time.monotonic() - self.counted > FRESH:
            with staying("Dask"):
                self.count = sum(self.client.nthreads().values())
            self.counted = time.monotonic() if self.count else 0.0
        return self.count

    def work(self, job: Job) -> DaskWork:
        return DaskWork(self, job)

    def close(self) -> None:
        if self.own:
            self.client.close()


class DaskWork(Work):
    """Pieces of a job as futures of a client."""

    def __init__(self, cluster: Dask, job: Job) -> None:
        import cloudpickle

        self.cluster, self.client = cluster, cluster.client
        recipe = recipe_of(job)
        kit = cloudpickle.dumps(partial(entrance(), card().versions, tuple(recipe)))
        # A task, not scattered data: the scheduler can make it again when the worker that holds it dies.
        with staying("Dask"):
            self.kit = self.client.submit(pickle.loads, kit, key=f"banditune-job-{recipe.digest[:20]}-{uuid4().hex}")
        self.name = f"banditune-{uuid4().hex}"
        self.sent = 0
        self.tickets: dict[Any, int] = {}
        self.ended: SimpleQueue[Any] = SimpleQueue()
        self.ready: deque[tuple[int, Played | Lost]] = deque()

    def submit(self, ticket: int, piece: Piece) -> None:
        self.sent += 1
        told = packed(piece)
        with staying("Dask"):
            future = self.client.submit(operator.call, self.kit, told, key=f"{self.name}-{self.sent}", pure=False)
        self.tickets[future] = ticket
        future.add_done_callback(self.ended.put)

    def result(self) -> tuple[int, Played | Lost]:
        while not self.ready:
            self._take([self._next(), *self._others()])
        return self.ready.popleft()

    def _next(self) -> Any:
        """The next future that ends; a cluster without workers is waited for, but not for ever."""
        alone = None
        while True:
            try:
                return self.ended.get(timeout=1.0)
            except Empty:
                if self.client.status != "running":
                    raise gone("Dask", f"the client is {self.client.status}") from None
                alone = None if self.cluster.workers else alone or time.monotonic()
                if alone and time.monotonic() - alone > PATIENCE:
                    raise gone("Dask", "all workers are gone") from None

    def _others(self) -> list[Any]:
        """All other futures that have ended: one question to the scheduler fetches them all."""
        found = []
        while not self.ended.empty():
            found.append(self.ended.get())
        return found

    def _take(self, futures: list[Any]) -> None:
        fine = {place: future for place, future in enumerate(futures) if future.status == "finished"}
        # Of one whose holder died since, and that cannot be played again, there is none: it is lost, the others are not.
        with staying("Dask"):
            found = self.client.gather(fine, errors="skip")
        for place, future in fine.items():
            outcome = found.get(place)
            if outcome is None:
                continue
            if not isinstance(raised(outcome), Played):
                check_versions(outcome)
            self.ready.append((self.tickets.pop(future), outcome))
        for future in futures:
            if future in self.tickets:
                self.ready.append((self.tickets.pop(future), self._lost(future)))

    def _lost(self, future: Any) -> Lost:
        """What became of a future that has no result."""
        from distributed.scheduler import KilledWorker

        if future.status in ("cancelled", "lost"):
            return Lost("the scheduler lost it")
        error = future.exception()
        if isinstance(error, KilledWorker):
            # The scheduler has tried as often as it is allowed to.
            return Lost(f"the worker {error.last_worker.address} died", 1 + error.allowed_failures)
        raise Outage(f"a Dask worker failed: {type(error).__name__}: {error}.")

    def stop(self) -> None:
        futures = [*self.tickets, self.kit]
        self.tickets = {}
        if self.client.status == "running" and len(futures) > 1:
            self.client.cancel(futures, force=True)


def _connected(address: str) -> Any:
    from distributed import Client

    place = address.removeprefix("dask://")
    try:
        return Client(place if "://" in place else f"tcp://{place}", timeout=10, set_as_default=False)
    except (OSError, ValueError) as error:
        raise BadRequest(
            f"a Dask scheduler must answer at {address}, but none does ({error}); start one with `dask scheduler`."
        ) from error


def _check_pythons(client: Any) -> None:
    """Code for another Python cannot even be sent."""
    ours = platform.python_version_tuple()[:2]
    for name, told in client.get_versions()["workers"].items():
        theirs = told["host"]["python"].split(".")[:2]
        if tuple(theirs) != ours:
            check_versions((name, card().versions | {"python": ".".join(theirs)}))
