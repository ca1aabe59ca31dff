"""Runs chunks in child processes, which are replaced when they die."""

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
from banditune.core.messages import Argument, Setting
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
"""The number of seconds to prepare a spec if there is a time limit, because kernels may have to be compiled."""


class ProcessExecutor(LocalExecutor):
    """Child processes of this one; a child that dies is replaced.

    Children do not import the user's script again, so it needs no `if __name__ == "__main__"`. They need Linux or
    macOS.

    Parameters
    ----------
    workers : int, optional
        Number of processes; all cores by default, 256 at most.
    time_limit : float, optional
        The longest time of one chunk of the work, in seconds. If a chunk takes longer, its child and the study are ended.

    Raises
    ------
    InvalidRequest
        If the system does not support these child processes, or if an argument cannot be used.
    """

    def __init__(self, workers: int | None = None, *, time_limit: float | None = None) -> None:
        if os.name != "posix":
            raise InvalidRequest(
                "child processes need Linux or macOS; use {}, or a Dask or Ray cluster.",
                Setting("executor", "threads"),
                argument="executor",
                code="unavailable",
            )
        super().__init__(workers)
        self.time_limit = time_limit
        self.thread_state = threading.local()
        self.children: set[ChildProcess] = set()
        self.closed = False

    def open_session(self, spec: SimulationSpec) -> LocalSession:
        # The kernel is compiled once, here, and children find it on disk. Children draw the instances, so that a crash in
        # code of a user ends only a child.
        compile_spec(spec)
        return ProcessSession(self.pool, partial(self._simulate_chunk, spec, pack_spec(spec)), self.children)

    def _simulate_chunk(
        self, spec: SimulationSpec, packed_spec: PackedSpec, chunk: Chunk, stop_flag: IntArray
    ) -> ChunkResult | LostChunk:
        if stop_flag[0]:
            return LostChunk("the session was stopped")
        child = getattr(self.thread_state, "child", None)
        if child is None or not child.alive:
            child = self.thread_state.child = start_child()
            self.children.add(child)
            if self.closed or stop_flag[0]:  # `close` or `stop` did not see this child
                child.end()
        try:
            return child.simulate_chunk(packed_spec, chunk, self.time_limit)
        except TimeoutError as late:
            child.end()
            raise make_timeout_error(spec, chunk, *late.args) from None
        except (EOFError, OSError):
            return LostChunk(child.describe_end())
        finally:
            if not child.alive:
                child.end()
                self.children.discard(child)

    def close(self) -> None:
        self.closed = True
        super().close()
        for child in list(self.children):
            child.end()


def make_timeout_error(spec: SimulationSpec, chunk: Chunk, what: str, limit: float) -> WorkerLost:
    """Make the error for a chunk that took too long, or a spec that took too long to prepare."""
    if what == "spec":
        rule, subject = "a simulation must be compiled within", describe_spec(spec)
    else:
        rule = "a chunk of the work must take at most"
        runs = f"runs {chunk.runs.start} to {chunk.runs.stop - 1}"
        subject = f"{runs} of {describe_spec(spec)} with parameters {chunk.params.tolist()[:3]}"
    return WorkerLost(
        f"{rule} {limit:g} s with this time limit, but {subject} took longer; raise the limit, or check "
        "whether a loop of the policy or the problem never ends.",
        argument="time_limit",
    )


class ChildProcess:
    """A process that simulates chunks, and a pipe to it."""

    def __init__(self) -> None:
        self.using = threading.Lock()
        """A lock that is held while a thread uses the pipe, so that no other thread closes it."""
        self.pipe, theirs = Pipe()
        # -P: files in the current folder are modules of the child only if they are modules of this process.
        command = [sys.executable, "-P", "-m", "banditune.simulation.executors.worker", str(theirs.fileno())]
        path = os.pathsep.join(folder for folder in sys.path if folder)
        try:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env=os.environ | {"PYTHONPATH": path},
                start_new_session=True,  # Ctrl-C goes to this process only; children end when their pipe is closed
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
            raise WorkerLost(f"a child process must start, but it did not: {self.describe_end()}.") from None
        except BaseException:
            self.end()
            raise

    def simulate_chunk(self, packed_spec: PackedSpec, chunk: Chunk, limit: float | None) -> ChunkResult:
        """Simulate a chunk in the process. The spec is sent once."""
        with self.using:
            if packed_spec.digest != self.digest:
                self._request(("spec", packed_spec), limit and max(limit, PREPARATION_TIME_LIMIT))
                self.digest = packed_spec.digest
            result: ChunkResult = self._request(("chunk", pack_chunk(chunk)), limit)
            return result

    def _request(self, message: Any, limit: float | None) -> Any:
        self.pipe.send_bytes(pickle.dumps(message, protocol=5))
        if not self.pipe.poll(limit):
            raise TimeoutError(message[0], limit)
        return unpack_reply(pickle.loads(self.pipe.recv_bytes()))

    def describe_end(self) -> str:
        """Describe how the process ended, once its pipe is closed."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        self.end()
        code = self.process.returncode
        return f"process {self.process.pid} was ended by signal {-code}" if code < 0 else f"it ended with code {code}"

    def end(self) -> None:
        """Kill the process. A thread that uses the pipe closes it, else it is closed here."""
        self.alive = False
        self.process.kill()
        self.process.wait()
        if self.using.acquire(blocking=False):
            self.pipe.close()
            self.using.release()


class ProcessSession(LocalSession):
    """A session on child processes. A kernel in another process cannot be stopped, so the child is killed."""

    def __init__(self, pool: ThreadPoolExecutor, simulate: Any, children: set[ChildProcess]) -> None:
        super().__init__(pool, simulate)
        self.children = children

    def stop(self) -> None:
        busy = any(not future.done() for future in self.waiting.values())
        super().stop()
        if busy:
            for child in list(self.children):
                child.end()


def start_child() -> ChildProcess:
    """Start a child process."""
    try:
        return ChildProcess()
    except OSError as error:
        raise WorkerLost(
            "a child process must start, but the system did not allow it ({}); use fewer {}, or check the limits of "
            "memory, processes and open files.",
            *(error.strerror or error, Argument("workers")),
            argument="workers",
        ) from error
