"""The contract of a tuner: a generator that yields trials, receives regrets and returns the best value."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, ClassVar, NamedTuple

from banditune.core.errors import InvalidRequest


class Trial(NamedTuple):
    """A request of a tuner: the regrets of parameter values on fresh instances.

    Parameters
    ----------
    values : tuple of float, or tuple of tuple of float
        The parameter values. A tuner of several parameters asks for rows, with a number for each parameter.
    size : int or tuple of int
        Number of instances. With one number all values are simulated on the same instances, and the tuner receives an
        array with a row per value. With a number per value each has its own instances, and the tuner receives a list of
        arrays.
    """

    values: tuple[Any, ...]
    size: int | tuple[int, ...]


class Goal(NamedTuple):
    """The precision and the confidence at which a search may stop.

    Parameters
    ----------
    precision : float or None
        Search until no other value is better by more than this share of the regret. With None the whole budget is used.
    confidence : float
        Confidence of the statements of the search, such as 0.95.
    """

    precision: float | None
    confidence: float


SPEND_BUDGET = Goal(None, 0.95)
"""The goal of a search without a precision: it uses its whole budget."""


SearchGenerator = Generator[Trial, Any, Any]
"""Yields trials, receives regrets, and returns the best value, or a `SearchAnswer` with its uncertainty."""


class SearchAnswer(NamedTuple):
    """The answer of a search and its uncertainty.

    Parameters
    ----------
    value : float or tuple of float
        The best value that was found: a number, or a row if there are several parameters.
    posterior : SearchPosterior
        Statements of the search about its answer, such as the regret gap.
    """

    value: Any
    posterior: Any


class Tuner:
    """A search for the best parameters under a budget of simulated runs. It never exceeds the budget."""

    name: Any
    max_parameters: ClassVar[int] = 1
    """How many parameters it can search together. A tuner of one parameter is given its `Range`, others a `Space`."""
    accepts_goal = False
    """Whether `search` takes a `Goal` as its third argument, and stops once it is reached or `StopSearch` is thrown."""

    def search(self, search_range: Any, budget: int) -> SearchGenerator:
        """Search a `Range`, or a `Space` if the tuner can search several parameters.

        Errors about the budget are raised before the first trial.

        A tuner that draws random numbers has a third argument `rng`, a NumPy generator that follows the study's seed.
        It must be the only source of random numbers, so that the same seed gives the same numbers.
        """
        raise InvalidRequest(
            f"the tuner {type(self).__name__} must define `search(search_range, budget)`.", code="own-code"
        )
