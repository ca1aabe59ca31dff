"""Problems made of past data: an instance is drawn from so many tables or campaigns, and new ones are what matters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from banditune.core.arrays import IntArray
from banditune.core.checks import check_integer
from banditune.core.errors import InvalidRequest
from banditune.core.problem import Problem

FEWEST_UNITS = 4
"""Tables or campaigns from which some can be held out: two for the search, and two whose difference tells an error."""


SEARCH_DIVISOR = 3
"""One unit of so many is searched, the others judge: with a half of them, intervals hold less often (docs/data-sets.md)."""


SPLIT_KEY = 40_813
"""Keeps the numbers that split the data apart from all others that come from the same seed."""


class DataSet(Problem):
    """Instances are drawn from a data set: each run plays one of `count` units, all equally likely.

    The data set is a sample, unless `population` says that its units are all there is. What is reported is then about new
    units: some are held out from the search to judge its answer.
    """

    unit: ClassVar[str]
    """What a unit is called: "table"."""
    population: Any

    @property
    def count(self) -> int:
        """How many units there are."""
        raise NotImplementedError

    def part(self, places: Sequence[int]) -> Problem:
        """The same problem with some of its units."""
        raise NotImplementedError

    def units(self, keys: IntArray, rng: np.random.Generator) -> IntArray:
        """The unit that each instance of a block is drawn from; `rng` is what `sample` is given."""
        raise NotImplementedError

    @property
    def can_hold_out(self) -> bool:
        """Whether some units can be held out."""
        return not self.population and self.count >= FEWEST_UNITS

    @property
    def searched(self) -> int:
        """How many units a search plays where the others are held out."""
        return max(FEWEST_UNITS // 2, self.count // SEARCH_DIVISOR)

    def split(self, seed: int = 0) -> tuple[Problem, Problem]:
        """Two problems: a third of the units, chosen at random, for a search, and the others to judge its answer.

        With the same seed as a study these are the two that it plays.
        """
        if not self.can_hold_out:
            raise InvalidRequest(
                f"a data set must have {FEWEST_UNITS} {self.unit}s or more, and not be the whole population, to be split, but "
                f"this has {self.count}, population={self.population}."
            )
        order = np.random.default_rng([check_integer("seed", seed, 0), SPLIT_KEY]).permutation(self.count)
        first, second = (sorted(some.tolist()) for some in (order[: self.searched], order[self.searched :]))
        return self.part(first), self.part(second)


def check_population(population: Any) -> bool:
    """Whether the data are all there is."""
    if isinstance(population, str) and population.lower() in ("true", "false"):
        return population.lower() == "true"  # the command line has words only
    if not isinstance(population, bool | np.bool_):
        raise InvalidRequest(
            "`population` must be True, if the data are all there is, or False, if they are a sample of it, but got "
            f"{population!r:.60}."
        )
    return bool(population)
