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

from banditune.contracts import Floats, Found, Integers, Tuner
from banditune.paper.pools import Source, units_of
from banditune.tuners.curves import Fit, library_of, mean_curve
from banditune.tuners.grid import halving_points, halving_runs
from banditune.tuners.notes import iterations_needed, ternary_pairs
from banditune.tuners.two_part import Searches, value_at

EPSILON = 0.1
"""The paper's precision, for all tuners."""

POINTS = 11
"""The grid of the baselines: 0, .1, ..., 1. Without 0, Uniform would be far better than the paper has it."""

TOGETHER = 50
"""Searches in lock-step at a time: of more, the arrays of the two-part tuner leave the cache."""

Answers = tuple[Integers, Integers]
Lockstep = Callable[[Source, int, np.random.Generator], Answers]


def rng_for(seed: int, *what: Any) -> np.random.Generator:
    """Numbers of a cell's own: leaving cells out does not change the others."""
    return np.random.default_rng([seed, zlib.crc32(repr(what).encode())])


def chunks(whole: int, most: int) -> list[int]:
    """A number in parts."""
    return [min(most, whole - done) for done in range(0, whole, most)]


def answer_of(tuner: Tuner, source: Source, budget: int, rng: np.random.Generator) -> float:
    """The answer of one tuning by the product's own tuner, as a place in the unit interval."""
    search = tuner.search(source.among, budget)
    try:
        trial = next(search)
        while True:
            trial = search.send(source.told(trial, rng))
    except StopIteration as answer:
        value = answer.value.value if isinstance(answer.value, Found) else answer.value
        return float(units_of(source.among, value))


def notes(budget: int) -> Lockstep:
    """NoTeS, its iterations rounded as by our tuner."""
    return ternary(ternary_pairs(budget, iterations_needed(EPSILON)))


def notes_rounded_up(budget: int) -> Lockstep:
    """NoTeS with every iteration rounded up, a few runs over the budget."""
    weights = [(9 / 4) ** step for step in range(iterations_needed(EPSILON))]
    return ternary([math.ceil(budget * weight / sum(weights) / 2) for weight in weights])


def ternary(sizes: Sequence[int], *, shared: bool = True) -> Lockstep:
    """Ternary search: both values of an iteration are played on the same instances, each with noise of its own.

    Without `shared`, which is not what the paper prints, each is played on instances of its own.
    """

    def search(source: Source, tunings: int, rng: np.random.Generator) -> Answers:
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


def uniform(budget: int) -> Lockstep:
    """Uniform as in the paper: a share epsilon of the budget for each of the 1 + 1 / epsilon values, a tenth over it."""
    return on_grid([(round(EPSILON * budget), 1)])


def uniform_within_budget(budget: int) -> Lockstep:
    """Uniform as our tuner has it: the budget, and no more, is spread over the values."""
    return on_grid([(budget // POINTS, 1)])


def uniform_apart(budget: int) -> Lockstep:
    """Uniform as in the paper, each value on instances of its own."""
    return on_grid([(round(EPSILON * budget), 1)], shared=False)


def halving(budget: int, *, shared: bool = True) -> Lockstep:
    """Sequential Halving; with a small budget over it: every value gets a run at least."""
    kept = [*halving_points(POINTS)[1:], 1]
    runs = [max(1, size) for size in halving_runs(budget, POINTS)]
    return on_grid(list(zip(runs, kept, strict=True)), shared=shared)


def halving_apart(budget: int) -> Lockstep:
    """Sequential Halving, each value on instances of its own."""
    return halving(budget, shared=False)


def halving_by_lot(budget: int) -> Lockstep:
    """Sequential Halving that plays nothing where there is less than a run a value, and keeps a half of them by lot."""
    kept = [*halving_points(POINTS)[1:], 1]
    return on_grid(list(zip(halving_runs(budget, POINTS), kept, strict=True)))


def on_grid(schedule: Sequence[tuple[int, int]], *, shared: bool = True) -> Lockstep:
    """In each step, so many runs of every value that is left, then the best so many are kept; without runs, by lot.

    Runs of a step are on the same instances for all values, or on instances of each value's own.
    """

    def search(source: Source, tunings: int, rng: np.random.Generator) -> Answers:
        left = np.tile(source.places(np.linspace(0, 1, POINTS)), (tunings, 1))
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


def two_part(budget: int) -> Lockstep:
    """The two-part tuner: every run on an instance of its own."""

    def search(source: Source, tunings: int, rng: np.random.Generator) -> Answers:
        library = library_of(source.among)
        found, drawn = searched(source, budget, tunings, rng)
        return source.rows(values_at(source, library.fine))[mean_curve(library, found).argmin(axis=1)], drawn

    return search


def searched(source: Source, budget: int, tunings: int, rng: np.random.Generator) -> tuple[Fit, Integers]:
    """What the two-part tuner believes in the end, for many tunings in lock-step, and the instances that they drew."""
    library = library_of(source.among)
    rows = source.rows(values_at(source, library.points))
    searches = Searches(library, tunings, budget, rng)
    drawn = []
    while searches.left > 0:
        places = searches.ask()
        columns = rng.integers(source.instances, size=places.shape)
        searches.tell(source.draw(rows[places], columns, rng))
        drawn.append(columns)
    return searches.fit(), np.hstack(drawn)


def values_at(source: Source, widths: Floats) -> Floats:
    """Values at widths of a library."""
    return np.array([value_at(source.among, width) for width in widths])


TUNERS: dict[str, Callable[[int], Lockstep]] = {
    "notes": notes,
    "uniform": uniform,
    "halving": halving,
    "two-part": two_part,
}
"""The paper's three tuners, and ours."""

OTHERWISE: dict[str, tuple[Callable[[int], Lockstep], ...]] = {
    "notes": (notes_rounded_up,),
    "uniform": (uniform_within_budget, uniform_apart),
    "halving": (halving_by_lot, halving_apart),
}
"""Other readings of what the paper leaves open; the first one is shown beside ours."""


@dataclass(frozen=True)
class Tuned:
    """Where many tunings ended, and on which instances.

    `answers` counts tunings by the place of their answer; `used`, (places, instances), how often those with that answer
    drew an instance.
    """

    answers: Floats
    used: Floats

    @property
    def tunings(self) -> int:
        """How many there are."""
        return int(self.answers.sum())

    def mean(self, heights: Floats) -> float:
        """The mean over tunings of a number that belongs to the answer, one for each place."""
        return float(self.answers @ heights / self.tunings)

    def spread(self, heights: Floats) -> float:
        """Its standard deviation over tunings."""
        return math.sqrt(max(0.0, self.mean(heights**2) - self.mean(heights) ** 2))

    def error(self, heights: Floats, regrets: Floats | None = None) -> float:
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


def tuned(search: Lockstep, source: Source, tunings: int, rng: np.random.Generator) -> Tuned:
    """Tune many times in lock-step."""
    places, instances = len(source.units), source.instances
    answers, used = np.zeros(places), np.zeros(places * instances)
    for size in chunks(tunings, TOGETHER):
        ends, drawn = search(source, size, rng)
        answers += np.bincount(ends, minlength=places)
        np.add.at(used, (ends[:, None] * instances + drawn).ravel(), 1.0)
    return Tuned(answers, used.reshape(places, instances))
