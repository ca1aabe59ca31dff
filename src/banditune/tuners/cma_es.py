"""CMA-ES with common random numbers: searches several parameters at once."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.checks import check_integer
from banditune.core.request_errors import make_limit_error
from banditune.core.space import Space
from banditune.core.tuner import SearchGenerator, Trial, Tuner
from banditune.tuners.evolution_strategy import EvolutionStrategy

FIRST_SIGMA = 0.3
"""Standard deviation of the first generation, as a share of the ranges."""


@dataclass(frozen=True)
class CMAES(Tuner):
    """Moves a normal distribution to lower regrets; the answer is the average of its late centres.

    It searches several parameters together, and needs 2,000 to 20,000 runs. It makes no statement about its answer. The
    regret on fresh instances, and which parameters matter, come from the validation.

    Parameters
    ----------
    population : int, optional
        Rows in a generation. By default it follows from the number of parameters: 12 for four.
    first_runs : int
        Instances in the first generation. All rows of a generation are simulated on the same instances.
    last_runs : int
        Instances in the last generation. Their number grows from one to the other.
    """

    population: int | None = None
    first_runs: int = 30
    last_runs: int = 150

    name = "cma-es"
    max_parameters = 20

    def __post_init__(self) -> None:
        for name, least in (("population", 4), ("first_runs", 2), ("last_runs", 2)):
            number = getattr(self, name)
            if name != "population" or number is not None:
                check_integer(name, number, least)

    def search(self, space: Space, budget: int, rng: np.random.Generator | None = None) -> SearchGenerator:
        """Spend the budget. Without `rng`, that of seed 0 is used."""
        rng = np.random.default_rng(0) if rng is None else rng
        dimension = len(space.ranges)
        population = self.population or 6 + 3 * math.ceil(math.log2(dimension + 1) - 1e-9)
        if budget < 4 * population:
            raise make_limit_error("budget", budget, least=4 * population, note=f" for {self}")
        strategy = EvolutionStrategy(dimension, population, FIRST_SIGMA, rng)
        centres: list[FloatArray] = []
        for size in list_sizes(budget // population, self.first_runs, self.last_runs):
            points = strategy.ask()
            regrets = yield Trial(tuple(space.scale_from_unit(point) for point in points), size)
            strategy.tell(points, regrets.mean(axis=1))
            centres.append(strategy.mean)
        return space.scale_from_unit(np.mean(centres[len(centres) // 2 :], axis=0))


def list_sizes(runs: int, first: int, last: int) -> list[int]:
    """List the instances of each generation: they grow from `first` to `last`, and sum to `runs` at most."""
    count = max(1, round(2 * runs / (first + last)))
    sizes = np.linspace(first, last, count)
    return [max(1, int(size)) for size in sizes * min(1.0, runs / sizes.sum())] if count > 1 else [max(1, runs)]
