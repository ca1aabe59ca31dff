"""Plays chunks in child processes of this one, which are replaced when they die."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Pipe
from typing import Any

from banditune.core.arrays import IntArray
from banditune.core.errors import InvalidRequest, WorkerLost
from banditune.simulation.executor import Chunk, ChunkResult, LostChunk
from banditune.simulation.executors.threads import LocalExecutor, LocalSession
from banditune.simulation.executors.transport import (
    PackedSpec,
    check_worker_versions,
    pack_chunk,
    pack_spec,
    unpack_reply,
)
from banditune.simulation.simulator import compile_spec
from banditune.simulation.spec import SimulationSpec, describe_spec

PREPARATION_TIME_LIMIT = 60.0
"""Seconds that a job may take to be made ready where there is a time limit: kernels may have to be compiled."""


class ProcessExecutor(LocalExecutor):
    """Child processes of this one; all cores unless told. A child that dies is replaced.

    Children do not import the user's script again, so it needs no `if __name__ == "__main__"`. With `time_limit`, a piece
    that takes more seconds ends its child and the study.
    """

    def __init__(self, workers: int | None = None, *, time_limit: float | None = None) -> None:
        if os.name != "posix":
            raise InvalidRequest(
                "child processes need Linux or macOS; use cluster='threads', or a Dask or Ray cluster."
            )
        super().__init__(workers)
        self.time_limit = time_limit
        self.own = threading.local()
        self.children: set[ChildProcess] = set()
        self.closed = False

    def work(self, job: SimulationSpec) -> LocalSession:
        # Compiled once, here: children find the kernel on disk. They draw, too: what ends a process ends a child.
        compile_spec(job)
        return ProcessSession(self.pool, partial(self._play, job, pack_spec(job)), self.children)

    def _play(self, job: SimulationSpec, recipe: PackedSpec, piece: Chunk, sign: IntArray) -> ChunkResult | LostChunk:
        if sign[0]:
            return LostChunk("the work was given up")
        child = getattr(self.own, "child", None)
        if child is None or not child.alive:
            child = self.own.child = start_child()
            self.children.add(child)
            if self.closed or sign[0]:  # who ends children now did not see this one
                child.end()
        try:
            return child.play(recipe, piece, self.time_limit)
        except TimeoutError as late:
            child.end()
            raise make_timeout_error(job, piece, *late.args) from None
        except (EOFError, OSError):
            return LostChunk(child.ending())
        finally:
            if not child.alive:
                child.end()
                self.children.discard(child)

    def close(self) -> None:
        self.closed = True
        super().close()
        for child in list(self.children):
            child.end()


def make_timeout_error(job: SimulationSpec, piece: Chunk, what: str, limit: float) -> WorkerLost:
    """A sentence for a piece that took too long, or a job that took too long to be made ready."""
    if what == "job":
        must, doer = "a job must be ready to play after", describe_spec(job)
    else:
        must = "a piece of the work must take at most"
        doer = f"runs {piece.runs.start} to {piece.runs.stop - 1} of {describe_spec(job)} with parameters {piece.params.tolist()[:3]}"
    return WorkerLost(
        f"{must} {limit:g} s where there is a time limit, but {doer} took longer; raise the limit above that, or see "
        "whether a loop of the policy or the problem never ends."
    )


class ChildProcess:
    """A process that plays pieces, and a pipe to it."""

    def __init__(self) -> None:
        self.using = threading.Lock()
        """Held while a thread talks to the process: nobody else may close the pipe then."""
        self.pipe, theirs = Pipe()
        # -P: what lies in the current folder is no module unless this process sees it as one.
        command = [sys.executable, "-P", "-m", "banditune.simulation.executors.worker", str(theirs.fileno())]
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
            check_worker_versions(pickle.loads(self.pipe.recv_bytes()))
        except (EOFError, OSError):
            raise WorkerLost(f"a child process must start, but it did not: {self.ending()}.") from None
        except BaseException:
            self.end()
            raise

    def play(self, recipe: PackedSpec, piece: Chunk, limit: float | None) -> ChunkResult:
        """Have a piece played; the job travels once."""
        with self.using:
            if recipe.digest != self.digest:
                self._ask(("job", recipe), limit and max(limit, PREPARATION_TIME_LIMIT))
                self.digest = recipe.digest
            played: ChunkResult = self._ask(("piece", pack_chunk(piece)), limit)
            return played

    def _ask(self, message: Any, limit: float | None) -> Any:
        self.pipe.send_bytes(pickle.dumps(message, protocol=5))
        if not self.pipe.poll(limit):
            raise TimeoutError(message[0], limit)
        return unpack_reply(pickle.loads(self.pipe.recv_bytes()))

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


class ProcessSession(LocalSession):
    """As for threads, but nobody can leave a kernel in another process: the child is ended."""

    def __init__(self, pool: ThreadPoolExecutor, play: Any, children: set[ChildProcess]) -> None:
        super().__init__(pool, play)
        self.children = children

    def stop(self) -> None:
        busy = any(not future.done() for future in self.waiting.values())
        super().stop()
        if busy:
            for child in list(self.children):
                child.end()


def start_child() -> ChildProcess:
    """A new child, or a sentence."""
    try:
        return ChildProcess()
    except OSError as error:
        raise WorkerLost(
            f"a child process must start, but the system refused it ({error.strerror or error}); use fewer `jobs`, or see "
            "whether memory, processes and open files suffice."
        ) from error
