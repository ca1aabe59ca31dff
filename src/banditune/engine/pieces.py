"""Where pieces of a job are played: the one promise that threads, processes, Dask and Ray keep.

A *piece* is a recipe: rows of parameters and the numbers of runs. Whoever plays it draws the instances itself, from the
job's seed. A *cluster* opens *work* on a job; work takes pieces and gives back what became of them, in any order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Any, NamedTuple, Self

from banditune.contracts import Floats

SHORTEST = 0.5
"""Seconds that a piece should take at least where it travels."""

PATIENCE = 60.0
"""Seconds to wait for workers before a complaint."""


class Piece(NamedTuple):
    """Rows of parameters on runs of a job; with own noise, the rows' noise is numbered from `first_row` on."""

    params: Floats
    first_row: int
    runs: range


class Played(NamedTuple):
    """A piece's regrets, an array (rows, runs, steps); `trouble` is what the kernel met; `seconds` is how long it took."""

    regrets: Floats
    trouble: Floats
    seconds: float


class Lost(NamedTuple):
    """A piece did not come back, because its worker went away; `times` is how often that happened."""

    why: str
    times: int = 1


class Work(ABC):
    """Pieces of one job in flight. Used in one thread."""

    @abstractmethod
    def submit(self, ticket: int, piece: Piece) -> None:
        """Have a piece played; its result comes with this ticket."""

    @abstractmethod
    def result(self) -> tuple[int, Played | Lost]:
        """Wait for the next piece that ends, whichever it is; an error of the policy or problem is raised."""

    @abstractmethod
    def stop(self) -> None:
        """Give up what is still in flight."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        end_with(self.stop, kind)


class Cluster(ABC):
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
        return max(SHORTEST, self.workers / self.rate)

    @abstractmethod
    def work(self, job: Any) -> Work:
        """Begin to play a job."""

    @abstractmethod
    def close(self) -> None:
        """Let go of threads, processes and connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        end_with(self.close, kind)


def end_with(ending: Callable[[], None], kind: type[BaseException] | None) -> None:
    """Leave a place; after an error that one is told, and not what leaving a broken place meets."""
    with suppress(Exception) if kind else nullcontext():
        ending()
