"""Threads of this process, and child processes: each thread plays itself, or has a child of its own that plays."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from abc import abstractmethod
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Pipe
from queue import SimpleQueue
from typing import Any

import numpy as np

from banditune.checks import check_whole
from banditune.contracts import BadRequest, Integers, Outage
from banditune.engine.cluster.travel import Recipe, check_versions, packed, raised, recipe_of
from banditune.engine.pieces import Cluster, Lost, Piece, Played, Work
from banditune.engine.prepared import compiled, ready
from banditune.engine.run import Job, cores, who

MAKING = 60.0
"""Seconds that a job may take to be made ready where there is a time limit: kernels may have to be compiled."""

MOST = 256
"""Threads at most."""


class PoolWork(Work):
    """Pieces that threads of a pool take care of; `play` is told a piece and a sign that says stop."""

    def __init__(self, pool: ThreadPoolExecutor, play: Any) -> None:
        self.pool, self.play = pool, play
        self.ended: SimpleQueue[tuple[int, Played | Lost | BaseException]] = SimpleQueue()
        self.waiting: dict[int, Future[None]] = {}
        self.sign: Integers = np.zeros(1, np.int64)

    def submit(self, ticket: int, piece: Piece) -> None:
        self.waiting[ticket] = self.pool.submit(self._task, ticket, piece)

    def _task(self, ticket: int, piece: Piece) -> None:
        try:
            self.ended.put((ticket, self.play(piece, self.sign)))
        except BaseException as error:
            # An error ends the work: this thread must not begin its next piece before the caller has read it.
            self.ended.put((ticket, error))
            self.sign[0] = 1

    def result(self) -> tuple[int, Played | Lost]:
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


class Pool(Cluster):
    """Threads that take care of pieces."""

    def __init__(self, workers: int | None = None) -> None:
        self.size = min(cores() if workers is None else check_whole("workers", workers, 1), MOST)
        self.pool = ThreadPoolExecutor(self.size)

    @property
    def workers(self) -> int:
        return self.size

    @abstractmethod
    def work(self, job: Job) -> PoolWork: ...

    def close(self) -> None:
        self.pool.shutdown(wait=False, cancel_futures=True)


class Threads(Pool):
    """Threads of this process; all cores unless told. Kernels run without Python's lock."""

    @property
    def seconds(self) -> float:
        return 0.0

    def __init__(self, workers: int | None = None) -> None:
        super().__init__(workers)
        self.ready: OrderedDict[int, Any] = OrderedDict()

    def work(self, job: Job) -> PoolWork:
        return PoolWork(self.pool, self._prepared(job).play)

    def _prepared(self, job: Job) -> Any:
        """A job's kernel and instances; the last few are kept, with their jobs, so that no other gets their address."""
        if id(job) not in self.ready:
            self.ready[id(job)] = ready(job)
        self.ready.move_to_end(id(job))
        while len(self.ready) > 4:
            self.ready.popitem(last=False)
        return self.ready[id(job)]


class Processes(Pool):
    """Child processes of this one; all cores unless told. A child that dies is replaced.

    Children do not import the user's script again, so it needs no `if __name__ == "__main__"`. With `time_limit`, a piece
    that takes more seconds ends its child and the study.
    """

    def __init__(self, workers: int | None = None, *, time_limit: float | None = None) -> None:
        if os.name != "posix":
            raise BadRequest("child processes need Linux or macOS; use cluster='threads', or a Dask or Ray cluster.")
        super().__init__(workers)
        self.time_limit = time_limit
        self.own = threading.local()
        self.children: set[Child] = set()
        self.closed = False

    def work(self, job: Job) -> PoolWork:
        # Compiled once, here: children find the kernel on disk. They draw, too: what ends a process ends a child.
        compiled(job)
        return ProcessWork(self.pool, partial(self._play, job, recipe_of(job)), self.children)

    def _play(self, job: Job, recipe: Recipe, piece: Piece, sign: Integers) -> Played | Lost:
        if sign[0]:
            return Lost("the work was given up")
        child = getattr(self.own, "child", None)
        if child is None or not child.alive:
            child = self.own.child = started()
            self.children.add(child)
            if self.closed or sign[0]:  # who ends children now did not see this one
                child.end()
        try:
            return child.play(recipe, piece, self.time_limit)
        except TimeoutError as late:
            child.end()
            raise too_long(job, piece, *late.args) from None
        except (EOFError, OSError):
            return Lost(child.ending())
        finally:
            if not child.alive:
                child.end()
                self.children.discard(child)

    def close(self) -> None:
        self.closed = True
        super().close()
        for child in list(self.children):
            child.end()


def too_long(job: Job, piece: Piece, what: str, limit: float) -> Outage:
    """A sentence for a piece that took too long, or a job that took too long to be made ready."""
    if what == "job":
        must, doer = "a job must be ready to play after", who(job)
    else:
        must = "a piece of the work must take at most"
        doer = f"runs {piece.runs.start} to {piece.runs.stop - 1} of {who(job)} with parameters {piece.params.tolist()[:3]}"
    return Outage(
        f"{must} {limit:g} s where there is a time limit, but {doer} took longer; raise the limit above that, or see "
        "whether a loop of the policy or the problem never ends."
    )


class ProcessWork(PoolWork):
    """As for threads, but nobody can leave a kernel in another process: the child is ended."""

    def __init__(self, pool: ThreadPoolExecutor, play: Any, children: set[Child]) -> None:
        super().__init__(pool, play)
        self.children = children

    def stop(self) -> None:
        busy = any(not future.done() for future in self.waiting.values())
        super().stop()
        if busy:
            for child in list(self.children):
                child.end()


class Child:
    """A process that plays pieces, and a pipe to it."""

    def __init__(self) -> None:
        self.using = threading.Lock()
        """Held while a thread talks to the process: nobody else may close the pipe then."""
        self.pipe, theirs = Pipe()
        # -P: what lies in the current folder is no module unless this process sees it as one.
        command = [sys.executable, "-P", "-m", "banditune.engine.cluster.worker", str(theirs.fileno())]
        path = os.pathsep.join(place for place in sys.path if place)
        try:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env=os.environ | {"PYTHONPATH": path},
                start_new_session=True,  # Ctrl-C is for this process; children end when their pipe does
            )
        except BaseException:
            self.pipe.close()
            raise
        finally:
            theirs.close()
        self.alive = True
        self.digest = ""
        try:
            check_versions(pickle.loads(self.pipe.recv_bytes()))
        except (EOFError, OSError):
            raise Outage(f"a child process must start, but it did not: {self.ending()}.") from None
        except BaseException:
            self.end()
            raise

    def play(self, recipe: Recipe, piece: Piece, limit: float | None) -> Played:
        """Have a piece played; the job travels once."""
        with self.using:
            if recipe.digest != self.digest:
                self._ask(("job", recipe), limit and max(limit, MAKING))
                self.digest = recipe.digest
            played: Played = self._ask(("piece", packed(piece)), limit)
            return played

    def _ask(self, message: Any, limit: float | None) -> Any:
        self.pipe.send_bytes(pickle.dumps(message, protocol=5))
        if not self.pipe.poll(limit):
            raise TimeoutError(message[0], limit)
        return raised(pickle.loads(self.pipe.recv_bytes()))

    def ending(self) -> str:
        """How the process ended, once its pipe is closed."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        self.end()
        code = self.process.returncode
        return f"process {self.process.pid} was ended by signal {-code}" if code < 0 else f"it ended with code {code}"

    def end(self) -> None:
        """End the process, whatever it is doing; a thread that talks by the pipe closes it, else it is closed here."""
        self.alive = False
        self.process.kill()
        self.process.wait()
        if self.using.acquire(blocking=False):
            self.pipe.close()
            self.using.release()


def started() -> Child:
    """A new child, or a sentence."""
    try:
        return Child()
    except OSError as error:
        raise Outage(
            f"a child process must start, but the system refused it ({error.strerror or error}); use fewer `jobs`, or see "
            "whether memory, processes and open files suffice."
        ) from error
