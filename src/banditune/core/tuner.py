"""The contract of a tuner: a generator that yields trials, receives regrets and returns the best value."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple

from banditune.core.errors import InvalidRequest
from banditune.core.space import Range


class Trial(NamedTuple):
    """A tuner's question: the regrets of parameter values on fresh instances.

    With one size, on so many, the same for all values: it is told an array, a row per value. With a size for each value,
    on so many of its own: it is told a list of arrays.
    """

    values: tuple[float, ...]
    size: int | tuple[int, ...]


class Goal(NamedTuple):
    """How sure a search must be: of its statements with this confidence, and, unless `within` is None, that no other value
    is better by more than this share of the regret, before it stops.
    """

    within: float | None
    confidence: float


SPEND_BUDGET = Goal(None, 0.95)
"""No precision is wanted: the budget is spent."""


SearchGenerator = Generator[Trial, Any, Any]
"""Yields trials, receives regrets, returns the best value, or a `SearchAnswer` with what is known about it."""


class SearchAnswer(NamedTuple):
    """A search's answer and how sure it is of it (`results.Belief`)."""

    value: float
    belief: Any


class Tuner:
    """A search for one parameter under a budget of simulated runs; it never spends more."""

    name: Any
    aims = False
    """Whether `search` takes a `Goal` as its third argument and stops when it is reached, or when `StopSearch` is thrown."""

    def search(self, among: Range, budget: int) -> SearchGenerator:
        """Search the range; every complaint about the budget is made before the first trial.

        A tuner that draws random numbers has one more argument, `rng`: a NumPy generator that follows the study's seed.
        With the same seed it gives the same numbers; a tuner must draw from nothing else.
        """
        raise InvalidRequest(f"the tuner {type(self).__name__} must define `search(among, budget)`.")
