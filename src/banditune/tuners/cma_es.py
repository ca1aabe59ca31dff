"""CMA-ES with common random numbers: searches several parameters at once."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.checks import check_integer
from banditune.core.errors import StopSearch
from banditune.core.request_errors import make_limit_error
from banditune.core.space import Space
from banditune.core.tuner import SPEND_BUDGET, Goal, SearchAnswer, SearchGenerator, Trial, Tuner
from banditune.results.estimates import compute_standard_error
from banditune.results.search_results import SearchPosterior
from banditune.results.student_t import compute_student_quantile
from banditune.tuners.evolution_strategy import EvolutionStrategy

FIRST_SIGMA = 0.3
"""Standard deviation of the first generation, as a share of the ranges."""


FINAL_SHARE = 0.1
"""Share of the budget that is kept for a last trial of the answer."""


FINAL_ROWS = 4
"""Rows of the last trial: the answer, and late means beside it."""


@dataclass(frozen=True)
class CMAES(Tuner):
    """Moves a normal distribution to lower regrets; the answer is the average of its late centres.

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
    accepts_goal = True
    max_parameters = 20

    def __post_init__(self) -> None:
        for name, least in (("population", 4), ("first_runs", 2), ("last_runs", 2)):
            number = getattr(self, name)
            if name != "population" or number is not None:
                check_integer(name, number, least)

    def search(
        self, space: Space, budget: int, goal: Goal = SPEND_BUDGET, rng: np.random.Generator | None = None
    ) -> SearchGenerator:
        """Spend the budget. Without `rng`, that of seed 0 is used."""
        rng = np.random.default_rng(0) if rng is None else rng
        dimension = len(space.ranges)
        population = self.population or 6 + 3 * math.ceil(math.log2(dimension + 1) - 1e-9)
        if budget < 4 * population:
            raise make_limit_error("budget", budget, least=4 * population, note=f" for {self}")
        strategy = EvolutionStrategy(dimension, population, FIRST_SIGMA, rng)
        centres: list[FloatArray] = []
        final_runs = max(2, int(FINAL_SHARE * budget / FINAL_ROWS))
        left = budget - FINAL_ROWS * final_runs
        regrets = np.zeros((1, 1))
        rows: tuple[tuple[float, ...], ...] = ()
        try:
            for size in list_sizes(left // population, self.first_runs, self.last_runs):
                points = strategy.ask()
                rows = tuple(space.scale_from_unit(point) for point in points)
                regrets = yield Trial(rows, size)
                strategy.tell(points, regrets.mean(axis=1))
                centres.append(strategy.mean)
            half = np.array(centres[len(centres) // 2 :])
            picks = half[np.linspace(0, len(half) - 1, FINAL_ROWS - 1).astype(int)]
            rows = tuple(space.scale_from_unit(point) for point in [half.mean(axis=0), *picks])
            regrets = yield Trial(rows, final_runs)
        except StopSearch as last:
            regrets = last.args[0]
            half = np.array(centres[len(centres) // 2 :] or [strategy.mean])
        return state_average(space, half, regrets, goal.confidence)


def list_sizes(runs: int, first: int, last: int) -> list[int]:
    """List the instances of each generation: they grow from `first` to `last`, and sum to `runs` at most."""
    count = max(1, round(2 * runs / (first + last)))
    sizes = np.linspace(first, last, count)
    return [max(1, int(size)) for size in sizes * min(1.0, runs / sizes.sum())] if count > 1 else [max(1, runs)]


def state_average(space: Space, centres: FloatArray, regrets: FloatArray, confidence: float) -> SearchAnswer:
    """State the average of late centres, with the regrets of the last trial, whose first row is the answer."""
    row = space.scale_from_unit(centres.mean(axis=0))
    mean, se = float(regrets[0].mean()), compute_standard_error(regrets[0])
    quantile = compute_student_quantile(0.5 + confidence / 2, regrets.shape[1] - 1)
    differences = regrets[0] - regrets[1:]
    gap = max((float(other.mean()) + quantile * compute_standard_error(other) for other in differences), default=0.0)
    posterior = SearchPosterior(
        mean=mean,
        low=mean - quantile * se,
        high=mean + quantile * se,
        best_intervals={
            search_range.name: (search_range.scale_from_unit(low), search_range.scale_from_unit(high))
            for search_range, low, high in zip(space.ranges, centres.min(axis=0), centres.max(axis=0), strict=True)
        },
        regret_gap=max(0.0, gap),
        misfit=False,
        confidence=confidence,
    )
    return SearchAnswer(row, posterior)
