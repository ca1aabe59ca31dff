"""Data sets as samples: which tables or campaigns a search plays, which ones judge its answer, and what numbers are about.

Runs that play the same table are not independent: 1,000 runs on 20 tables tell as much about new tables as 20 numbers do.
So a search plays a third of the tables, the answer is judged on the others, and errors are taken over the means of tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from banditune.contracts import Floats, Integers, Problem
from banditune.engine.run import Job, by_block, keys_of, numbers_for, place_in
from banditune.problems import DataSet, Mixture, RewardTable
from banditune.problems.data_set import FEWEST
from banditune.results import Estimate, Sample


@dataclass(frozen=True)
class Parts:
    """The job that is searched and the one that judges; they are the same where nothing is held out.

    `unit` is what is independent: a "run", or the table or campaign that several runs play.
    """

    search: Job
    judge: Job
    unit: str = "run"

    def searched(self, regrets: Floats, runs: range) -> Floats:
        """Independent numbers (rows, units) out of regrets (rows, runs) of the search."""
        return regrets if self.unit == "run" else means_by_unit(self.search, regrets, runs)

    def judged(self, regrets: Floats, runs: range) -> Floats:
        """The same of regrets that judge."""
        return regrets if self.unit == "run" else means_by_unit(self.judge, regrets, runs)

    def estimate(self, sample: Floats) -> Estimate:
        """The mean of independent numbers."""
        return Estimate.of(sample) if self.unit == "run" else Estimate.of_units(sample, self.unit)

    @property
    def exchanged(self) -> Parts:
        """The parts in each other's place."""
        return Parts(self.judge, self.search, self.unit)


def parts_of(job: Job) -> Parts:
    """A job by the two parts of its data set, which the seed decides."""
    problem = job.problem
    if not holds_out(problem):
        return Parts(job, job)
    assert isinstance(problem, DataSet)
    search, judge = problem.split(job.seed)
    return Parts(replace(job, problem=search), replace(job, problem=judge), problem.unit)


def holds_out(problem: Problem) -> bool:
    """Whether a part of the problem's data set is held out from the search."""
    return isinstance(problem, DataSet) and problem.can_hold_out


def means_by_unit(job: Job, regrets: Floats, runs: range) -> Floats:
    """The mean regret of each table or campaign that was played, (rows, units)."""
    assert isinstance(job.problem, DataSet)
    _, places = np.unique(units_of(job.problem, job.seed, runs), return_inverse=True)
    counts = np.bincount(places)
    return np.array([np.bincount(places, row) / counts for row in regrets])


def units_of(problem: DataSet, seed: int, runs: range) -> Integers:
    """The table or campaign that each of these runs plays."""
    found = [
        problem.units(keys_of(seed, block), numbers_for(seed, block))[place_in(block, some)]
        for block, some in by_block(runs)
    ]
    return np.concatenate(found)


def sample_of(problem: Problem) -> Sample | None:
    """What numbers are about, where the problem is made of a data set."""
    if type(problem) is Mixture:
        count = len(problem.means)
        return Sample("mean vector", count, 0, 0, f"{these(count, 'mean vector')}, taken as all there is")
    if not isinstance(problem, DataSet):
        return None
    unit, count = problem.unit, problem.count
    if problem.can_hold_out:
        searched, held_out = problem.searched, count - problem.searched
        about = (
            f"new {unit}s: {searched} of the {count} {unit}s were searched, the other {held_out} judge; errors are over "
            f"{unit}s"
        )
        return Sample(unit, count, searched, held_out, about)
    if problem.population:
        return Sample(unit, count, 0, 0, f"{these(count, unit)}, taken as all there is; errors are over runs")
    if in_new_orders(problem):
        return Sample(unit, count, 0, 0, "new orders of the rows of this table; another table may differ")
    return Sample(unit, count, 0, 0, f"{these(count, unit)} alone; errors are over runs")


def these(count: int, unit: str) -> str:
    """These 3 tables."""
    return f"these {count:,} {unit}s" if count > 1 else f"this one {unit}"


def in_new_orders(problem: DataSet) -> bool:
    """Whether there is one table, of which every run draws rows."""
    return isinstance(problem, RewardTable) and problem.count == 1 and bool(problem.shuffled)


def too_few(problem: Problem) -> Iterator[str]:
    """A sentence where a data set is too small to hold some of it out."""
    if not isinstance(problem, DataSet) or problem.population or problem.can_hold_out or in_new_orders(problem):
        return
    unit, count = problem.unit, problem.count
    few = f"{count} {unit}s are" if count > 1 else f"one {unit} is"
    yield (
        f"{few} too few to hold some out, which takes {FEWEST}: the numbers are about {these(count, unit)} alone, and new "
        f"{unit}s may differ by more than the errors say. Give more {unit}s, or population=True if these are all there is."
    )
