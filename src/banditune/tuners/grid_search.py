"""The paper's two baselines. They search a grid, and do not assume that the regret is unimodal."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from banditune.core.checks import check_number
from banditune.core.request_errors import make_limit_error
from banditune.core.space import Range
from banditune.core.tuner import SearchGenerator, Trial, Tuner


def check_precision(precision: Any) -> float:
    """Check a precision, which is a share of the range."""
    return check_number("precision", precision, least=0.001, most=0.5)


def check_budget(budget: int, least: int, who: str, advice: str = "raise the budget or the precision") -> None:
    """Check that a budget is enough for a tuner."""
    if budget < least:
        raise make_limit_error("budget", budget, least=least, note=f" for {who}", advice=f"; {advice}")


def make_grid(search_range: Range, precision: float) -> tuple[float, ...]:
    """Make a grid with this spacing that includes both ends of the range: 0, .1, ..., 1 for a precision of .1."""
    points = math.floor(1 / precision + 1e-9)
    values = [search_range.scale_from_unit(min(1.0, step * precision)) for step in range(points + 1)]
    return tuple(dict.fromkeys([*values, search_range.scale_from_unit(1.0)]))


def list_halving_points(points: int) -> list[int]:
    """List the number of values in each iteration of halving. It is halved, rounded up, until it is two."""
    counts = []
    while points > 1:
        counts.append(points)
        points = math.ceil(points / 2)
    return counts


def list_halving_runs(budget: int, points: int) -> list[int]:
    """List the runs for each value in each iteration of halving. The share of the budget doubles with each iteration."""
    counts = list_halving_points(points)
    weights = [2 ** (step + 1) for step in range(len(counts))]
    return [int(budget * weight / sum(weights) / count) for weight, count in zip(weights, counts, strict=True)]


def compute_least_halving_budget(points: int) -> int:
    """Compute the smallest budget with one run of every value in every iteration."""
    counts = list_halving_points(points)
    total = 2 ** (len(counts) + 1) - 2
    smallest: int = max(math.ceil(count * total / 2 ** (step + 1)) for step, count in enumerate(counts))
    while min(list_halving_runs(smallest, points)) < 1:
        smallest += 1
    return smallest


@dataclass(frozen=True)
class Uniform(Tuner):
    """A grid of values over which the budget is divided evenly. The answer is the value with the lowest mean regret.

    Parameters
    ----------
    precision : float
        Distance between values as a share of the range, from 0.001 to 0.5.
    """

    precision: float = 0.1

    name = "uniform"

    def __post_init__(self) -> None:
        check_precision(self.precision)

    def search(self, search_range: Range, budget: int) -> SearchGenerator:
        values = make_grid(search_range, self.precision)
        check_budget(budget, len(values), f"{self}, which tries {len(values)} values")
        regrets = yield Trial(values, budget // len(values))
        return values[int(np.argmin(regrets.mean(axis=1)))]


@dataclass(frozen=True)
class SequentialHalving(Tuner):
    """A grid of values, of which the worse half is removed in each iteration.

    Parameters
    ----------
    precision : float
        Distance between values as a share of the range, from 0.001 to 0.5.
    """

    precision: float = 0.1

    name = "halving"

    def __post_init__(self) -> None:
        check_precision(self.precision)

    def search(self, search_range: Range, budget: int) -> SearchGenerator:
        values = make_grid(search_range, self.precision)
        runs = list_halving_runs(budget, len(values))
        check_budget(
            budget,
            compute_least_halving_budget(len(values)),
            f"{self}, which halves {len(values)} values in {len(runs)} iterations",
        )
        for size in runs:
            regrets = yield Trial(values, size)
            order = np.argsort(regrets.mean(axis=1), kind="stable")[: math.ceil(len(values) / 2)]
            values = tuple(values[index] for index in sorted(order))
        return values[0]
