"""The paper's numbers beside ours."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from banditune.core.arrays import FloatArray
from banditune.results.result_record import ResultRecord, make_data_frame, register_record


@register_record
@dataclass(frozen=True, repr=False, eq=False)
class PaperCell(ResultRecord):
    """One number of the paper's tables beside ours; what the paper does not have is NaN there.

    `se` holds all that is uncertain about ours, `paper_se` about the paper's. `other` is ours by another reading, where the
    paper leaves open what it did; all readings together span `low` to `high`. `apart` is the difference in joint standard
    errors, `beyond` what is left of it when the written tolerance, whose `reasons` stand beside it, is taken off. `known`
    is what was found out about why the two differ.
    """

    table: str
    row: str
    tuner: str
    budget: int
    ours: float
    se: float
    other: float
    low: float
    high: float
    paper: float
    paper_se: float
    apart: float
    beyond: float
    reasons: tuple[str, ...]
    known: str = ""

    @property
    def mark(self) -> str:
        """! where a difference is beyond 3 joint standard errors, !! beyond 4; ~ where a written tolerance covers it."""
        if abs(self.beyond) > 3:
            return "!!" if abs(self.beyond) > 4 else "!"
        return "~" if abs(self.apart) > 3 else ""

    def __repr__(self) -> str:
        tuned = f", {self.tuner} with {self.budget:,} runs" if self.tuner else ""
        return f"{self.table}, {self.row}{tuned}: {self.ours:.4g} +- {self.se:.2g}, paper {self.paper:g}"


@register_record
@dataclass(frozen=True, repr=False, eq=False)
class PaperCurve(ResultRecord):
    """A row's Bayes regret over all widths of its pool; `best` is the lowest point of a smooth curve through it."""

    row: str
    parameter: str
    values: FloatArray
    mean: FloatArray
    se: FloatArray
    best: float
    best_of_tenths: float

    def __repr__(self) -> str:
        return f"{self.row}: {self.parameter} = {self.best:.4g} is best"


@register_record
@dataclass(frozen=True, repr=False, eq=False)
class Reproduction(ResultRecord):
    """The paper's experiments played again: `cells` beside its published numbers, `curves` of its rows.

    Each row was played `runs` times at every width; tunings, so many for each tuner, drew from these runs. `notes` say what
    the paper leaves open and what was done.
    """

    cells: tuple[PaperCell, ...]
    curves: tuple[PaperCurve, ...]
    runs: int
    tunings: Mapping[str, int]
    seed: int
    device: str
    notes: tuple[str, ...]
    versions: Mapping[str, str]

    @property
    def published(self) -> tuple[PaperCell, ...]:
        """The cells that have a number in the paper and one of ours."""
        return tuple(cell for cell in self.cells if not math.isnan(cell.apart))

    @property
    def agrees(self) -> bool:
        """Whether no cell is beyond 4 joint standard errors and its written tolerance."""
        return all(cell.mark != "!!" for cell in self.published)

    def to_pandas(self) -> Any:
        """A row per cell."""
        names = [f.name for f in fields(PaperCell)]
        return make_data_frame({name: [getattr(cell, name) for cell in self.cells] for name in names})
