"""The interface of executors: threads, processes, Dask and Ray.

A *chunk* holds rows of parameters and the numbers of runs. Its worker draws the instances from the seed of the spec.
An *executor* opens a *session* for a spec. The session takes chunks and returns their results in any order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Any, NamedTuple, Self

from banditune.core.arrays import FloatArray

SHORTEST_REMOTE_CHUNK = 0.5
"""Seconds that a chunk should take at least if it is sent to another process."""


WORKER_WAIT_SECONDS = 60.0
"""Seconds to wait for workers before an error."""


class Chunk(NamedTuple):
    """Rows of parameters on runs of a spec.

    Parameters
    ----------
    params : ndarray
        Values of the parameters, a row each.
    first_row : int
        With independent noise, noise streams are numbered from this row on.
    runs : range
        The numbers of the runs.
    """

    params: FloatArray
    first_row: int
    runs: range


class ChunkResult(NamedTuple):
    """Regrets of a chunk.

    Parameters
    ----------
    regrets : ndarray
        An array (rows, runs, checkpoints).
    failure : ndarray
        The code, step, culprit, row and run of a failed kernel, with code 0 for none.
    seconds : float
        The time that the chunk took.
    """

    regrets: FloatArray
    failure: FloatArray
    seconds: float


class LostChunk(NamedTuple):
    """A chunk without result, because its worker died. It is submitted again, a few times.

    Parameters
    ----------
    reason : str
        Why there is no result.
    losses : int
        How often that happened.
    """

    reason: str
    losses: int = 1


class ExecutorSession(ABC):
    """Chunks of one spec in flight. Used in one thread."""

    @abstractmethod
    def submit(self, ticket: int, chunk: Chunk) -> None:
        """Submit a chunk; its result has this ticket."""

    @abstractmethod
    def wait_for_result(self) -> tuple[int, ChunkResult | LostChunk]:
        """Wait for the next chunk that ends, whichever it is; an error of the policy or problem is raised."""

    @abstractmethod
    def stop(self) -> None:
        """Cancel the chunks in flight."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        finish_quietly_after_error(self.stop, kind)


class Executor(ABC):
    """Runs chunks: opened once, used for many specs, closed."""

    chunks_per_second: float = 200.0
    """Chunks that can be submitted per second without much overhead."""

    @property
    @abstractmethod
    def workers(self) -> int:
        """Chunks that run at the same time; it may change."""

    @property
    def chunk_seconds(self) -> float:
        """About how long a chunk should take; 0 if submitting one costs nothing."""
        return max(SHORTEST_REMOTE_CHUNK, self.workers / self.chunks_per_second)

    @abstractmethod
    def open_session(self, spec: Any) -> ExecutorSession:
        """Open a session for a spec."""

    @abstractmethod
    def close(self) -> None:
        """Release threads, processes and connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        finish_quietly_after_error(self.close, kind)


def finish_quietly_after_error(ending: Callable[[], None], kind: type[BaseException] | None) -> None:
    """Call `ending`. After an error its own exceptions are suppressed, so that the first error is reported."""
    with suppress(Exception) if kind else nullcontext():
        ending()
