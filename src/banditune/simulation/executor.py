"""Where pieces of a job are played: the one promise that threads, processes, Dask and Ray keep.

A *piece* is a recipe: rows of parameters and the numbers of runs. Whoever plays it draws the instances itself, from the
job's seed. A *cluster* opens *work* on a job; work takes pieces and gives back what became of them, in any order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Any, NamedTuple, Self

from banditune.core.arrays import FloatArray

SHORTEST_REMOTE_CHUNK = 0.5
"""Seconds that a piece should take at least where it travels."""


WORKER_WAIT_SECONDS = 60.0
"""Seconds to wait for workers before a complaint."""


class Chunk(NamedTuple):
    """Rows of parameters on runs of a job; with own noise, the rows' noise is numbered from `first_row` on."""

    params: FloatArray
    first_row: int
    runs: range


class ChunkResult(NamedTuple):
    """A piece's regrets, an array (rows, runs, steps); `trouble` is what the kernel met; `seconds` is how long it took."""

    regrets: FloatArray
    trouble: FloatArray
    seconds: float


class LostChunk(NamedTuple):
    """A piece did not come back, because its worker went away; `times` is how often that happened."""

    why: str
    times: int = 1


class ExecutorSession(ABC):
    """Pieces of one job in flight. Used in one thread."""

    @abstractmethod
    def submit(self, ticket: int, piece: Chunk) -> None:
        """Have a piece played; its result comes with this ticket."""

    @abstractmethod
    def result(self) -> tuple[int, ChunkResult | LostChunk]:
        """Wait for the next piece that ends, whichever it is; an error of the policy or problem is raised."""

    @abstractmethod
    def stop(self) -> None:
        """Give up what is still in flight."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        finish_quietly_after_error(self.stop, kind)


class Executor(ABC):
    """Somewhere to play: opened once, used for many jobs, closed."""

    rate: float = 200.0
    """Pieces a second that can be handed out with ease."""

    @property
    @abstractmethod
    def workers(self) -> int:
        """Pieces that are played at once; it may change."""

    @property
    def seconds(self) -> float:
        """About how long a piece should take; 0 where handing one over costs nothing."""
        return max(SHORTEST_REMOTE_CHUNK, self.workers / self.rate)

    @abstractmethod
    def work(self, job: Any) -> ExecutorSession:
        """Begin to play a job."""

    @abstractmethod
    def close(self) -> None:
        """Let go of threads, processes and connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        finish_quietly_after_error(self.close, kind)


def finish_quietly_after_error(ending: Callable[[], None], kind: type[BaseException] | None) -> None:
    """Leave a place; after an error that one is told, and not what leaving a broken place meets."""
    with suppress(Exception) if kind else nullcontext():
        ending()
