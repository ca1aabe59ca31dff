"""Base of problems made of past data: an instance is drawn from tables or campaigns, and results are about new ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from banditune.core.arrays import IntArray
from banditune.core.checks import check_integer
from banditune.core.errors import InvalidRequest
from banditune.core.problem import Problem
from banditune.core.request_errors import make_argument_error

FEWEST_UNITS = 5
"""The smallest number of tables or campaigns that is split: two for the search, and three for the validation.

With two for the validation, their regrets are often equal, so that the estimated error would be 0.
"""


SEARCH_DIVISOR = 3
"""The search uses one unit in this many; the others are for the validation.

If half of the units are in the search, intervals hold less often (docs/research/data-sets.md).
"""


SPLIT_KEY = 40_813
"""The spawn key of the random numbers of the split, which makes them independent of all others of the same seed."""


class DataSet(Problem):
    """Base of problems that draw instances from a data set of `unit_count` units, with equal probabilities.

    The data set is a sample, unless `population` states that it is the whole population. Results are about new units, and
    some units are held out from the search to validate its answer.
    """

    unit_name: ClassVar[str]
    """The name of a unit, such as "table"."""
    population: Any

    @property
    def unit_count(self) -> int:
        """The number of units."""
        raise NotImplementedError

    def select_units(self, positions: Sequence[int]) -> Problem:
        """Return the same problem with some of its units."""
        raise NotImplementedError

    def draw_units(self, keys: IntArray, rng: np.random.Generator) -> IntArray:
        """Return the unit from which each instance of a block is drawn.

        `rng` is the generator that `sample` receives.
        """
        raise NotImplementedError

    @property
    def can_hold_out(self) -> bool:
        """Whether some units can be held out."""
        return not self.population and self.unit_count >= FEWEST_UNITS

    @property
    def search_units(self) -> int:
        """The number of units in a search if the others are held out."""
        return max(FEWEST_UNITS // 2, self.unit_count // SEARCH_DIVISOR)

    def split(self, seed: int = 0) -> tuple[Problem, Problem]:
        """Return two problems: a random third of the units for a search, and the others to validate its answer.

        With the same seed, a study uses the same split.
        """
        if not self.can_hold_out:
            raise InvalidRequest(
                f"a data set must have {FEWEST_UNITS} {self.unit_name}s or more, and not be the whole population, to be "
                f"split, but this has {self.unit_count}, population={self.population}.",
                code="insufficient-data",
            )
        order = np.random.default_rng([check_integer("seed", seed, 0), SPLIT_KEY]).permutation(self.unit_count)
        first, second = (sorted(part.tolist()) for part in (order[: self.search_units], order[self.search_units :]))
        return self.select_units(first), self.select_units(second)


def check_population(population: Any) -> bool:
    """Check `population`, also in the spelling of the command line."""
    if isinstance(population, str) and population.lower() in ("true", "false"):
        return population.lower() == "true"  # the command line passes strings
    if not isinstance(population, bool | np.bool_):
        raise make_argument_error(
            "population",
            "wrong-type",
            "must be True, if the data are the whole population, or False, if they are a sample from it, but got "
            f"{population!r:.60}.",
        )
    return bool(population)
