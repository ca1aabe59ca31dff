"""Thousands of tunings in lock-step, and how well a pool tells what they lose.

A search is a function of (source, tunings, rng): it returns the places of the answers, (tunings,), and the instances that
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
"""The grid of the baselines: 0, .1, ..., 1. Without 0, Uniform would be far better than the paper has it."""


SEARCHES_PER_BATCH = 50
"""Searches in lock-step at a time: of more, the arrays of the two-part tuner leave the cache."""


LockstepAnswers = tuple[IntArray, IntArray]


LockstepSearch = Callable[[RunSource, int, np.random.Generator], LockstepAnswers]


def make_cell_rng(seed: int, *what: Any) -> np.random.Generator:
    """Numbers of a cell's own: leaving cells out does not change the others."""
    return np.random.default_rng([seed, zlib.crc32(repr(what).encode())])


def split_into_chunks(whole: int, most: int) -> list[int]:
    """A number in parts."""
    return [min(most, whole - done) for done in range(0, whole, most)]


def run_single_tuner(tuner: Tuner, source: RunSource, budget: int, rng: np.random.Generator) -> float:
    """The answer of one tuning by the product's own tuner, as a place in the unit interval."""
    search = tuner.search(source.among, budget)
    try:
        trial = next(search)
        while True:
            trial = search.send(source.told(trial, rng))
    except StopIteration as answer:
        value = answer.value.value if isinstance(answer.value, SearchAnswer) else answer.value
        return float(map_to_unit_interval(source.among, value))


def make_notes_search(budget: int) -> LockstepSearch:
    """NoTeS, its iterations rounded as by our tuner."""
    return make_ternary_search(allocate_pairs(budget, count_iterations(PAPER_EPSILON)))


def make_notes_search_rounded_up(budget: int) -> LockstepSearch:
    """NoTeS with every iteration rounded up, a few runs over the budget."""
    weights = [(9 / 4) ** step for step in range(count_iterations(PAPER_EPSILON))]
    return make_ternary_search([math.ceil(budget * weight / sum(weights) / 2) for weight in weights])


def make_ternary_search(sizes: Sequence[int], *, shared: bool = True) -> LockstepSearch:
    """Ternary search: both values of an iteration are played on the same instances, each with noise of its own.

    Without `shared`, which is not what the paper prints, each is played on instances of its own.
    """

    def search(source: RunSource, tunings: int, rng: np.random.Generator) -> LockstepAnswers:
        low, high, drawn = np.zeros(tunings), np.ones(tunings), []
        for pairs in sizes:
            a = 2 / 3 * low + 1 / 3 * high
            b = 1 / 3 * low + 2 / 3 * high
            columns = rng.integers(source.instances, size=(1 if shared else 2, tunings, pairs))
            mean_a, mean_b = (
                source.draw(source.places(at)[:, None], instances, rng).mean(axis=1)
                for at, instances in ((a, columns[0]), (b, columns[-1]))
            )
            low, high = np.where(mean_a >= mean_b, a, low), np.where(mean_a >= mean_b, high, b)
            drawn += list(columns)
        return source.places((low + high) / 2), np.hstack(drawn)

    return search


def make_uniform_search(budget: int) -> LockstepSearch:
    """Uniform as in the paper: a share epsilon of the budget for each of the 1 + 1 / epsilon values, a tenth over it."""
    return make_baseline_grid_search([(round(PAPER_EPSILON * budget), 1)])


def make_uniform_search_within_budget(budget: int) -> LockstepSearch:
    """Uniform as our tuner has it: the budget, and no more, is spread over the values."""
    return make_baseline_grid_search([(budget // BASELINE_POINTS, 1)])


def make_uniform_search_own_instances(budget: int) -> LockstepSearch:
    """Uniform as in the paper, each value on instances of its own."""
    return make_baseline_grid_search([(round(PAPER_EPSILON * budget), 1)], shared=False)


def make_halving_search(budget: int, *, shared: bool = True) -> LockstepSearch:
    """Sequential Halving; with a small budget over it: every value gets a run at least."""
    kept = [*list_halving_points(BASELINE_POINTS)[1:], 1]
    runs = [max(1, size) for size in list_halving_runs(budget, BASELINE_POINTS)]
    return make_baseline_grid_search(list(zip(runs, kept, strict=True)), shared=shared)


def make_halving_search_own_instances(budget: int) -> LockstepSearch:
    """Sequential Halving, each value on instances of its own."""
    return make_halving_search(budget, shared=False)


def make_halving_search_random_skips(budget: int) -> LockstepSearch:
    """Sequential Halving that plays nothing where there is less than a run a value, and keeps a half of them by lot."""
    kept = [*list_halving_points(BASELINE_POINTS)[1:], 1]
    return make_baseline_grid_search(list(zip(list_halving_runs(budget, BASELINE_POINTS), kept, strict=True)))


def make_baseline_grid_search(schedule: Sequence[tuple[int, int]], *, shared: bool = True) -> LockstepSearch:
    """In each step, so many runs of every value that is left, then the best so many are kept; without runs, by lot.

    Runs of a step are on the same instances for all values, or on instances of each value's own.
    """

    def search(source: RunSource, tunings: int, rng: np.random.Generator) -> LockstepAnswers:
        left = np.tile(source.places(np.linspace(0, 1, BASELINE_POINTS)), (tunings, 1))
        drawn = []
        for size, kept in schedule:
            columns = rng.integers(source.instances, size=(tunings, 1 if shared else left.shape[1], size))
            if size:
                means = source.draw(left[:, :, None], columns, rng).mean(axis=2)
            else:
                means = rng.random(left.shape)
            best = np.sort(np.argsort(means, axis=1, kind="stable")[:, :kept], axis=1)
            left = np.take_along_axis(left, best, 1)
            drawn.append(columns.reshape(tunings, -1))
        return left[:, 0], np.hstack(drawn)

    return search


def make_two_part_search(budget: int) -> LockstepSearch:
    """The two-part tuner: every run on an instance of its own."""

    def search(source: RunSource, tunings: int, rng: np.random.Generator) -> LockstepAnswers:
        library = select_library(source.among)
        found, drawn = run_two_part_searches(source, budget, tunings, rng)
        return source.rows(convert_library_widths(source, library.fine))[
            compute_mean_curve(library, found).argmin(axis=1)
        ], drawn

    return search


def run_two_part_searches(
    source: RunSource, budget: int, tunings: int, rng: np.random.Generator
) -> tuple[CurveFit, IntArray]:
    """What the two-part tuner believes in the end, for many tunings in lock-step, and the instances that they drew."""
    library = select_library(source.among)
    rows = source.rows(convert_library_widths(source, library.points))
    searches = LockstepSearches(library, tunings, budget, rng)
    drawn = []
    while searches.left > 0:
        places = searches.ask()
        columns = rng.integers(source.instances, size=places.shape)
        searches.tell(source.draw(rows[places], columns, rng))
        drawn.append(columns)
    return searches.fit(), np.hstack(drawn)


def convert_library_widths(source: RunSource, widths: FloatArray) -> FloatArray:
    """Values at widths of a library."""
    return np.array([compute_value(source.among, width) for width in widths])


LOCKSTEP_TUNERS: dict[str, Callable[[int], LockstepSearch]] = {
    "notes": make_notes_search,
    "uniform": make_uniform_search,
    "halving": make_halving_search,
    "two-part": make_two_part_search,
}
"""The paper's three tuners, and ours."""


ALTERNATIVE_READINGS: dict[str, tuple[Callable[[int], LockstepSearch], ...]] = {
    "notes": (make_notes_search_rounded_up,),
    "uniform": (make_uniform_search_within_budget, make_uniform_search_own_instances),
    "halving": (make_halving_search_random_skips, make_halving_search_own_instances),
}
"""Other readings of what the paper leaves open; the first one is shown beside ours."""


@dataclass(frozen=True)
class TuningOutcomes:
    """Where many tunings ended, and on which instances.

    `answers` counts tunings by the place of their answer; `used`, (places, instances), how often those with that answer
    drew an instance.
    """

    answers: FloatArray
    used: FloatArray

    @property
    def tunings(self) -> int:
        """How many there are."""
        return int(self.answers.sum())

    def mean(self, heights: FloatArray) -> float:
        """The mean over tunings of a number that belongs to the answer, one for each place."""
        return float(self.answers @ heights / self.tunings)

    def spread(self, heights: FloatArray) -> float:
        """Its standard deviation over tunings."""
        return math.sqrt(max(0.0, self.mean(heights**2) - self.mean(heights) ** 2))

    def error(self, heights: FloatArray, regrets: FloatArray | None = None) -> float:
        """The standard error of such a mean, the pool's own error included.

        The infinitesimal jackknife of bagging (Efron 2014): an instance matters as much as the number of times that it was
        drawn goes along with the result; squares of these covariances, less what chance adds to them with so many tunings,
        add up to the variance. Chance's own spread is added: it may have been unlucky. Where `heights` are the means of
        `regrets`, an instance also matters by what is lost on it.
        """
        instances = self.used.shape[1]
        variance = self.spread(heights) ** 2
        influence = (heights - self.mean(heights)) @ self.used / self.tunings
        if regrets is not None:
            influence = influence + (self.answers @ regrets / self.tunings - self.mean(heights)) / instances
        chance = variance * float(self.used.sum()) / self.tunings**2
        own = max(0.0, float((influence**2).sum()) - chance) + chance * math.sqrt(2 / instances)
        return math.sqrt(own + variance / self.tunings)


def tune_in_lockstep(
    search: LockstepSearch, source: RunSource, tunings: int, rng: np.random.Generator
) -> TuningOutcomes:
    """Tune many times in lock-step."""
    places, instances = len(source.units), source.instances
    answers, used = np.zeros(places), np.zeros(places * instances)
    for size in split_into_chunks(tunings, SEARCHES_PER_BATCH):
        ends, drawn = search(source, size, rng)
        answers += np.bincount(ends, minlength=places)
        np.add.at(used, (ends[:, None] * instances + drawn).ravel(), 1.0)
    return TuningOutcomes(answers, used.reshape(places, instances))
