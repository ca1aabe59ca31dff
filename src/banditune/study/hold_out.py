"""Data sets as samples: which tables or campaigns a search plays, which ones judge its answer, and what numbers are about.

Runs that play the same table are not independent: 1,000 runs on 20 tables tell as much about new tables as 20 numbers do.
So a search plays a third of the tables, the answer is judged on the others, and errors are taken over the means of tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from banditune.core.arrays import FloatArray, IntArray
from banditune.core.problem import Problem
from banditune.problems.bernoulli_arms import Mixture
from banditune.problems.data_set import FEWEST_UNITS, DataSet
from banditune.problems.reward_table import RewardTable
from banditune.results.estimates import Estimate
from banditune.results.study_setup import DataScope
from banditune.simulation.instances import compute_block_keys, locate_in_block, make_block_rng, split_by_block
from banditune.simulation.spec import SimulationSpec


@dataclass(frozen=True)
class HoldOutSplit:
    """The job that is searched and the one that judges; they are the same where nothing is held out.

    `unit` is what is independent: a "run", or the table or campaign that several runs play.
    """

    search: SimulationSpec
    judge: SimulationSpec
    unit: str = "run"

    def searched(self, regrets: FloatArray, runs: range) -> FloatArray:
        """Independent numbers (rows, units) out of regrets (rows, runs) of the search."""
        return regrets if self.unit == "run" else average_by_unit(self.search, regrets, runs)

    def judged(self, regrets: FloatArray, runs: range) -> FloatArray:
        """The same of regrets that judge."""
        return regrets if self.unit == "run" else average_by_unit(self.judge, regrets, runs)

    def estimate(self, sample: FloatArray) -> Estimate:
        """The mean of independent numbers."""
        return Estimate.of(sample) if self.unit == "run" else Estimate.of_units(sample, self.unit)

    @property
    def exchanged(self) -> HoldOutSplit:
        """The parts in each other's place."""
        return HoldOutSplit(self.judge, self.search, self.unit)


def split_spec(job: SimulationSpec) -> HoldOutSplit:
    """A job by the two parts of its data set, which the seed decides."""
    problem = job.problem
    if not has_hold_out(problem):
        return HoldOutSplit(job, job)
    assert isinstance(problem, DataSet)
    search, judge = problem.split(job.seed)
    return HoldOutSplit(replace(job, problem=search), replace(job, problem=judge), problem.unit)


def has_hold_out(problem: Problem) -> bool:
    """Whether a part of the problem's data set is held out from the search."""
    return isinstance(problem, DataSet) and problem.can_hold_out


def average_by_unit(job: SimulationSpec, regrets: FloatArray, runs: range) -> FloatArray:
    """The mean regret of each table or campaign that was played, (rows, units)."""
    assert isinstance(job.problem, DataSet)
    _, places = np.unique(find_units(job.problem, job.seed, runs), return_inverse=True)
    counts = np.bincount(places)
    return np.array([np.bincount(places, row) / counts for row in regrets])


def find_units(problem: DataSet, seed: int, runs: range) -> IntArray:
    """The table or campaign that each of these runs plays."""
    found = [
        problem.units(compute_block_keys(seed, block), make_block_rng(seed, block))[locate_in_block(block, some)]
        for block, some in split_by_block(runs)
    ]
    return np.concatenate(found)


def describe_data_scope(problem: Problem) -> DataScope | None:
    """What numbers are about, where the problem is made of a data set."""
    if type(problem) is Mixture:
        count = len(problem.means)
        return DataScope("mean vector", count, 0, 0, f"{format_units(count, 'mean vector')}, taken as all there is")
    if not isinstance(problem, DataSet):
        return None
    unit, count = problem.unit, problem.count
    if problem.can_hold_out:
        searched, held_out = problem.searched, count - problem.searched
        about = (
            f"new {unit}s: {searched} of the {count} {unit}s were searched, the other {held_out} judge; errors are over "
            f"{unit}s"
        )
        return DataScope(unit, count, searched, held_out, about)
    if problem.population:
        return DataScope(unit, count, 0, 0, f"{format_units(count, unit)}, taken as all there is; errors are over runs")
    if is_single_shuffled_table(problem):
        return DataScope(unit, count, 0, 0, "new orders of the rows of this table; another table may differ")
    return DataScope(unit, count, 0, 0, f"{format_units(count, unit)} alone; errors are over runs")


def format_units(count: int, unit: str) -> str:
    """These 3 tables."""
    return f"these {count:,} {unit}s" if count > 1 else f"this one {unit}"


def is_single_shuffled_table(problem: DataSet) -> bool:
    """Whether there is one table, of which every run draws rows."""
    return isinstance(problem, RewardTable) and problem.count == 1 and bool(problem.shuffled)


def note_small_data_set(problem: Problem) -> Iterator[str]:
    """A sentence where a data set is too small to hold some of it out."""
    if (
        not isinstance(problem, DataSet)
        or problem.population
        or problem.can_hold_out
        or is_single_shuffled_table(problem)
    ):
        return
    unit, count = problem.unit, problem.count
    few = f"{count} {unit}s are" if count > 1 else f"one {unit} is"
    yield (
        f"{few} too few to hold some out, which takes {FEWEST_UNITS}: the numbers are about {format_units(count, unit)} alone, and new "
        f"{unit}s may differ by more than the errors say. Give more {unit}s, or population=True if these are all there is."
    )
