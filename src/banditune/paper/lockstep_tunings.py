"""Thousands of tunings in lock-step, and the precision of their mean regrets.

A search is a function of (source, tunings, rng). It returns the indices of the answers, (tunings,), and the instances that
each tuning drew, (tunings, draws).
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from banditune.core.arrays import FloatArray, IntArray
from banditune.core.tuner import SearchAnswer, Tuner
from banditune.paper.run_pools import RunSource, map_to_unit_interval
from banditune.tuners.answer_statements import compute_value
from banditune.tuners.curve_draws import compute_mean_curve
from banditune.tuners.curve_fit import CurveFit
from banditune.tuners.curve_library import select_library
from banditune.tuners.grid_search import list_halving_points, list_halving_runs
from banditune.tuners.noisy_ternary_search import allocate_pairs, count_iterations
from banditune.tuners.two_part_search import LockstepSearches

PAPER_EPSILON = 0.1
"""The paper's precision, for all tuners."""


BASELINE_POINTS = 11
"""The grid of the baselines: 0, .1, ..., 1. Without 0, Uniform would be much better than in the paper."""


SEARCHES_PER_BATCH = 50
"""The number of searches in one batch in lock-step. With more, the arrays of the two-part tuner exceed the cache."""


LockstepAnswers = tuple[IntArray, IntArray]


LockstepSearch = Callable[[RunSource, int, np.random.Generator], LockstepAnswers]


def make_cell_rng(seed: int, *names: Any) -> np.random.Generator:
    """Make the generator of a cell. Other cells do not depend on it, so that cells can be left out."""
    return np.random.default_rng([seed, zlib.crc32(repr(names).encode())])


def split_into_chunks(total: int, limit: int) -> list[int]:
    """Split a number into chunks of at most `limit`."""
    return [min(limit, total - start) for start in range(0, total, limit)]


def run_single_tuner(tuner: Tuner, source: RunSource, budget: int, rng: np.random.Generator) -> float:
    """Return the answer of one tuning by a tuner of this package, as a point of the unit interval."""
    search = tuner.search(source.range, budget)
    try:
        trial = next(search)
        while True:
            trial = search.send(source.answer_trial(trial, rng))
    except StopIteration as answer:
        value = answer.value.value if isinstance(answer.value, SearchAnswer) else answer.value
        return float(map_to_unit_interval(source.range, value))


def make_notes_search(budget: int) -> LockstepSearch:
    """Make NoTeS with the rounding of iterations of this package."""
    return make_ternary_search(allocate_pairs(budget, count_iterations(PAPER_EPSILON)))


def make_notes_search_rounded_up(budget: int) -> LockstepSearch:
    """Make NoTeS with every iteration rounded up, so that it exceeds the budget by a few runs."""
    weights = [(9 / 4) ** step for step in range(count_iterations(PAPER_EPSILON))]
    return make_ternary_search([math.ceil(budget * weight / sum(weights) / 2) for weight in weights])


def make_ternary_search(sizes: Sequence[int], *, shared: bool = True) -> LockstepSearch:
    """Make ternary search. Both values of an iteration have the same instances and independent noise.

    Without `shared`, each has its own instances, unlike in the paper.
    """

    def search(source: RunSource, tunings: int, rng: np.random.Generator) -> LockstepAnswers:
        low, high, drawn_columns = np.zeros(tunings), np.ones(tunings), []
        for pairs in sizes:
            a = 2 / 3 * low + 1 / 3 * high
            b = 1 / 3 * low + 2 / 3 * high
            columns = rng.integers(source.instance_count, size=(1 if shared else 2, tunings, pairs))
            mean_a, mean_b = (
                source.draw(source.find_nearest(at)[:, None], instances, rng).mean(axis=1)
                for at, instances in ((a, columns[0]), (b, columns[-1]))
            )
            low, high = np.where(mean_a >= mean_b, a, low), np.where(mean_a >= mean_b, high, b)
            drawn_columns += list(columns)
        return source.find_nearest((low + high) / 2), np.hstack(drawn_columns)

    return search


def make_uniform_search(budget: int) -> LockstepSearch:
    """Make Uniform as in the paper. Each of 1 + 1 / epsilon values has a share epsilon of the budget: 10% too many runs."""
    return make_baseline_grid_search([(round(PAPER_EPSILON * budget), 1)])


def make_uniform_search_within_budget(budget: int) -> LockstepSearch:
    """Make Uniform like the tuner of this package, which divides the budget among the values."""
    return make_baseline_grid_search([(budget // BASELINE_POINTS, 1)])


def make_uniform_search_own_instances(budget: int) -> LockstepSearch:
    """Make Uniform as in the paper, but each value with its own instances."""
    return make_baseline_grid_search([(round(PAPER_EPSILON * budget), 1)], shared=False)


def make_halving_search(budget: int, *, shared: bool = True) -> LockstepSearch:
    """Make Sequential Halving. Every value has at least one run, which may exceed a small budget."""
    kept_counts = [*list_halving_points(BASELINE_POINTS)[1:], 1]
    runs = [max(1, size) for size in list_halving_runs(budget, BASELINE_POINTS)]
    return make_baseline_grid_search(list(zip(runs, kept_counts, strict=True)), shared=shared)


def make_halving_search_own_instances(budget: int) -> LockstepSearch:
    """Make Sequential Halving, each value with its own instances."""
    return make_halving_search(budget, shared=False)


def make_halving_search_random_skips(budget: int) -> LockstepSearch:
    """Make Sequential Halving that keeps a random half of the values if there is less than one run per value."""
    kept_counts = [*list_halving_points(BASELINE_POINTS)[1:], 1]
    return make_baseline_grid_search(list(zip(list_halving_runs(budget, BASELINE_POINTS), kept_counts, strict=True)))


def make_baseline_grid_search(schedule: Sequence[tuple[int, int]], *, shared: bool = True) -> LockstepSearch:
    """Make a grid search by a schedule of (runs per value, values to keep). Without runs, random values are kept.

    With `shared`, the runs of a step are on the same instances for all values.
    """

    def search(source: RunSource, tunings: int, rng: np.random.Generator) -> LockstepAnswers:
        rows = np.tile(source.find_nearest(np.linspace(0, 1, BASELINE_POINTS)), (tunings, 1))
        drawn_columns = []
        for size, keep in schedule:
            columns = rng.integers(source.instance_count, size=(tunings, 1 if shared else rows.shape[1], size))
            if size:
                means = source.draw(rows[:, :, None], columns, rng).mean(axis=2)
            else:
                means = rng.random(rows.shape)
            best = np.sort(np.argsort(means, axis=1, kind="stable")[:, :keep], axis=1)
            rows = np.take_along_axis(rows, best, 1)
            drawn_columns.append(columns.reshape(tunings, -1))
        return rows[:, 0], np.hstack(drawn_columns)

    return search


def make_two_part_search(budget: int) -> LockstepSearch:
    """Make the two-part tuner, with a new instance for every run."""

    def search(source: RunSource, tunings: int, rng: np.random.Generator) -> LockstepAnswers:
        library = select_library(source.range)
        fit, drawn_columns = run_two_part_searches(source, budget, tunings, rng)
        return source.find_rows(convert_library_widths(source, library.fine))[
            compute_mean_curve(library, fit).argmin(axis=1)
        ], drawn_columns

    return search


def run_two_part_searches(
    source: RunSource, budget: int, tunings: int, rng: np.random.Generator
) -> tuple[CurveFit, IntArray]:
    """Return the final curve fits of many two-part searches in lock-step, and the instances that they drew."""
    library = select_library(source.range)
    rows = source.find_rows(convert_library_widths(source, library.points))
    searches = LockstepSearches(library, tunings, budget, rng)
    drawn_columns = []
    while searches.runs_left > 0:
        points = searches.ask()
        columns = rng.integers(source.instance_count, size=points.shape)
        searches.tell(source.draw(rows[points], columns, rng))
        drawn_columns.append(columns)
    return searches.fit_curves(), np.hstack(drawn_columns)


def convert_library_widths(source: RunSource, widths: FloatArray) -> FloatArray:
    """Convert the widths of a library to parameter values."""
    return np.array([compute_value(source.range, width) for width in widths])


LOCKSTEP_TUNERS: dict[str, Callable[[int], LockstepSearch]] = {
    "notes": make_notes_search,
    "uniform": make_uniform_search,
    "halving": make_halving_search,
    "two-part": make_two_part_search,
}
"""The paper's three tuners, and the two-part tuner."""


ALTERNATIVE_READINGS: dict[str, tuple[Callable[[int], LockstepSearch], ...]] = {
    "notes": (make_notes_search_rounded_up,),
    "uniform": (make_uniform_search_within_budget, make_uniform_search_own_instances),
    "halving": (make_halving_search_random_skips, make_halving_search_own_instances),
}
"""Other readings of ambiguous parts of the paper. The first one is shown beside our number."""


@dataclass(frozen=True)
class TuningOutcomes:
    """The answers of many tunings, and the instances that they drew.

    `answer_counts` are the numbers of tunings by the index of their answer. `instance_counts`, (widths, instances), are the
    numbers of times that tunings with that answer drew an instance.
    """

    answer_counts: FloatArray
    instance_counts: FloatArray

    @property
    def tuning_count(self) -> int:
        """The number of tunings."""
        return int(self.answer_counts.sum())

    def compute_mean(self, heights: FloatArray) -> float:
        """Compute the mean over tunings of `heights`, one number per answer."""
        return float(self.answer_counts @ heights / self.tuning_count)

    def compute_sd(self, heights: FloatArray) -> float:
        """Compute the standard deviation over tunings of `heights`, one number per answer."""
        return math.sqrt(max(0.0, self.compute_mean(heights**2) - self.compute_mean(heights) ** 2))

    def compute_error(self, heights: FloatArray, regrets: FloatArray | None = None) -> float:
        """Compute the standard error of such a mean, including the error of the pool.

        It is the infinitesimal jackknife of bagging (Efron 2014). The influence of an instance is the covariance of its
        count with the result. The variance is the sum of squared influences, minus their Monte Carlo bias, plus the
        spread of that bias. If `heights` are the means of `regrets`, an instance also has an influence by its regrets.
        """
        instances = self.instance_counts.shape[1]
        variance = self.compute_sd(heights) ** 2
        influence = (heights - self.compute_mean(heights)) @ self.instance_counts / self.tuning_count
        if regrets is not None:
            influence = (
                influence + (self.answer_counts @ regrets / self.tuning_count - self.compute_mean(heights)) / instances
            )
        chance = variance * float(self.instance_counts.sum()) / self.tuning_count**2
        influence_variance = max(0.0, float((influence**2).sum()) - chance) + chance * math.sqrt(2 / instances)
        return math.sqrt(influence_variance + variance / self.tuning_count)


def tune_in_lockstep(
    search: LockstepSearch, source: RunSource, tunings: int, rng: np.random.Generator
) -> TuningOutcomes:
    """Tune many times in lock-step, in batches of `SEARCHES_PER_BATCH`."""
    widths, instances = len(source.unit_points), source.instance_count
    answers, used = np.zeros(widths), np.zeros(widths * instances)
    for size in split_into_chunks(tunings, SEARCHES_PER_BATCH):
        answer_indices, drawn_instances = search(source, size, rng)
        answers += np.bincount(answer_indices, minlength=widths)
        np.add.at(used, (answer_indices[:, None] * instances + drawn_instances).ravel(), 1.0)
    return TuningOutcomes(answers, used.reshape(widths, instances))
