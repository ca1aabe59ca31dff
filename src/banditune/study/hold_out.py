"""Splits a data set into tables or campaigns for the search and others for the validation.

Runs on the same table are not independent. For statements about new tables, 1,000 runs on 20 tables are only 20
independent numbers. So the search uses a third of the tables, and the answer is validated on the others. Standard errors
are those of table means.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from banditune.core.arrays import FloatArray, IntArray
from banditune.core.notice import Finding, with_code
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
    """The spec of the search and that of the validation. They are the same if nothing is held out.

    `unit` is the name of an independent unit: a "run", or the table or campaign that several runs share.
    """

    search_spec: SimulationSpec
    validation_spec: SimulationSpec
    unit: str = "run"

    def reduce_search(self, regrets: FloatArray, runs: range) -> FloatArray:
        """Reduce regrets (rows, runs) of the search to independent numbers (rows, units)."""
        return regrets if self.unit == "run" else average_by_unit(self.search_spec, regrets, runs)

    def reduce_validation(self, regrets: FloatArray, runs: range) -> FloatArray:
        """Reduce regrets (rows, runs) of the validation to independent numbers (rows, units)."""
        return regrets if self.unit == "run" else average_by_unit(self.validation_spec, regrets, runs)

    def estimate(self, sample: FloatArray) -> Estimate:
        """Estimate the mean of independent numbers."""
        return Estimate.from_sample(sample) if self.unit == "run" else Estimate.from_units(sample, self.unit)

    @property
    def swapped(self) -> HoldOutSplit:
        """The split with search and validation exchanged."""
        return HoldOutSplit(self.validation_spec, self.search_spec, self.unit)


def split_spec(spec: SimulationSpec) -> HoldOutSplit:
    """Split the data set of a spec in two. The seed selects the tables or campaigns of each."""
    problem = spec.problem
    if not has_hold_out(problem):
        return HoldOutSplit(spec, spec)
    assert isinstance(problem, DataSet)
    search, validation = problem.split(spec.seed)
    return HoldOutSplit(replace(spec, problem=search), replace(spec, problem=validation), problem.unit_name)


def has_hold_out(problem: Problem) -> bool:
    """Return whether some of the problem's data set is held out from the search."""
    return isinstance(problem, DataSet) and problem.can_hold_out


def average_by_unit(spec: SimulationSpec, regrets: FloatArray, runs: range) -> FloatArray:
    """Compute the mean regret of each simulated table or campaign, (rows, units)."""
    assert isinstance(spec.problem, DataSet)
    _, unit_numbers = np.unique(find_units(spec.problem, spec.seed, runs), return_inverse=True)
    counts = np.bincount(unit_numbers)
    return np.array([np.bincount(unit_numbers, row) / counts for row in regrets])


def find_units(problem: DataSet, seed: int, runs: range) -> IntArray:
    """Find the table or campaign of each of these runs."""
    units = [
        problem.draw_units(compute_block_keys(seed, block), make_block_rng(seed, block))[
            locate_in_block(block, positions)
        ]
        for block, positions in split_by_block(runs)
    ]
    return np.concatenate(units)


def describe_data_scope(problem: Problem) -> DataScope | None:
    """Describe the population of the results if the problem is made of a data set, else None."""
    if type(problem) is Mixture:
        count = len(problem.means)
        return DataScope(
            unit="mean vector",
            count=count,
            searched_count=0,
            held_out_count=0,
            description=f"{format_units(count, 'mean vector')}, as the whole population",
        )
    if not isinstance(problem, DataSet):
        return None
    unit, count = problem.unit_name, problem.unit_count
    if problem.can_hold_out:
        searched, held_out = problem.search_units, count - problem.search_units
        about = (
            f"new {unit}s: {searched} of the {count} {unit}s were searched, the other {held_out} validate; errors are over "
            f"{unit}s"
        )
        return DataScope(unit=unit, count=count, searched_count=searched, held_out_count=held_out, description=about)
    if problem.population:
        return DataScope(
            unit=unit,
            count=count,
            searched_count=0,
            held_out_count=0,
            description=f"{format_units(count, unit)}, as the whole population; errors are over runs",
        )
    if is_single_shuffled_table(problem):
        return DataScope(
            unit=unit,
            count=count,
            searched_count=0,
            held_out_count=0,
            description="new orders of the rows of this table; another table may differ",
        )
    return DataScope(
        unit=unit,
        count=count,
        searched_count=0,
        held_out_count=0,
        description=f"{format_units(count, unit)} alone; errors are over runs",
    )


def format_units(count: int, unit: str) -> str:
    """Write a number of units, as in "these 3 tables"."""
    return f"these {count:,} {unit}s" if count > 1 else f"this one {unit}"


def is_single_shuffled_table(problem: DataSet) -> bool:
    """Return whether there is a single table, from which every run draws rows."""
    return isinstance(problem, RewardTable) and problem.unit_count == 1 and bool(problem.shuffled)


@with_code("few-data")
def note_small_data_set(problem: Problem) -> Iterator[Finding]:
    """Yield a notice if a data set is too small to hold some of it out."""
    if (
        not isinstance(problem, DataSet)
        or problem.population
        or problem.can_hold_out
        or is_single_shuffled_table(problem)
    ):
        return
    unit, count = problem.unit_name, problem.unit_count
    amount = f"{count} {unit}s are" if count > 1 else f"one {unit} is"
    yield (
        f"{amount} too few to hold some out, which needs {FEWEST_UNITS}: the numbers are about "
        f"{format_units(count, unit)} alone, and new {unit}s may differ by more than the standard errors.",
        f"Give more {unit}s, or population=True if these are the whole population.",
    )
