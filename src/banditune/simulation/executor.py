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
"""The shortest intended time of a chunk that is sent to another process, in seconds."""


WORKER_WAIT_SECONDS = 60.0
"""Seconds to wait for workers before an error."""


class Chunk(NamedTuple):
    """Rows of parameters on runs of a spec.

    Parameters
    ----------
    params : ndarray
        Values of the parameters, a row each.
    first_row : int
        The number of the first row. With independent noise, it is the number of the first noise stream.
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
        The time of the simulation.
    """

    regrets: FloatArray
    failure: FloatArray
    seconds: float


class LostChunk(NamedTuple):
    """A chunk without a result, because its worker died. It is submitted again, up to a limit.

    Parameters
    ----------
    reason : str
        Why there is no result.
    losses : int
        The number of times that this happened.
    """

    reason: str
    losses: int = 1


class ExecutorSession(ABC):
    """Chunks of one spec in flight. A session is used by one thread."""

    @abstractmethod
    def submit(self, ticket: int, chunk: Chunk) -> None:
        """Submit a chunk; its result has this ticket."""

    @abstractmethod
    def wait_for_result(self) -> tuple[int, ChunkResult | LostChunk]:
        """Wait for any chunk that ends. Raise an error of the policy or the problem."""

    @abstractmethod
    def stop(self) -> None:
        """Cancel the chunks in flight."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        clean_up_without_masking_error(self.stop, kind)


class Executor(ABC):
    """Runs chunks: opened once, used for many specs, closed."""

    chunks_per_second: float = 200.0
    """Chunks that can be submitted per second without much overhead."""

    @property
    @abstractmethod
    def workers(self) -> int:
        """The number of chunks that run at the same time. It may change."""

    @property
    def chunk_seconds(self) -> float:
        """The intended time of a chunk, in seconds; 0 if submitting a chunk takes no time."""
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
        clean_up_without_masking_error(self.close, kind)


def clean_up_without_masking_error(clean_up: Callable[[], None], kind: type[BaseException] | None) -> None:
    """Call `clean_up`. If there was an error, exceptions of this call are suppressed, so that the error is reported."""
    with suppress(Exception) if kind else nullcontext():
        clean_up()
