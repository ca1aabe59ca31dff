"""The numbers of the paper and of this package, side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from banditune.core.arrays import FloatArray
from banditune.results.result_record import ResultRecord, make_data_frame, register_record


@register_record
@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class PaperCell(ResultRecord):
    """One number of the paper's tables beside the one that this package computes.

    Attributes
    ----------
    table : str
        The table: "best", "textbook", "regret", "failures" or "gittins".
    row : str
        The row of the table: problem and policy.
    tuner : str
        The tuner; empty where there is none.
    budget : int
        The budget of the tuner; 0 where there is none.
    ours : float
        The number of this package.
    se : float
        Its standard error, from all sources of uncertainty.
    other_reading : float
        The number under another reading of the paper, if its method is ambiguous; else NaN.
    low : float
        The lowest number of all readings.
    high : float
        The highest number of all readings.
    paper : float
        The paper's number; NaN where it has none.
    paper_se : float
        The standard error of the paper's number; NaN where it has none.
    z_score : float
        The difference in joint standard errors; NaN where the paper has no number.
    excess_z_score : float
        The difference beyond the written tolerance, in joint standard errors.
    tolerance_reasons : tuple of str
        The reasons for the written tolerance.
    explanation : str
        The known cause of the difference; empty if none is known.
    """

    table: str
    row: str
    tuner: str
    budget: int
    ours: float
    se: float
    other_reading: float
    low: float
    high: float
    paper: float
    paper_se: float
    z_score: float
    excess_z_score: float
    tolerance_reasons: tuple[str, ...]
    explanation: str = ""

    @property
    def mark(self) -> str:
        """How far the numbers differ: "!" beyond 3 joint standard errors, "!!" beyond 4.

        "~" means more than 3, covered by a written tolerance.
        """
        if abs(self.excess_z_score) > 3:
            return "!!" if abs(self.excess_z_score) > 4 else "!"
        return "~" if abs(self.z_score) > 3 else ""

    def __repr__(self) -> str:
        tuned = f", {self.tuner} with {self.budget:,} runs" if self.tuner else ""
        return f"{self.table}, {self.row}{tuned}: {self.ours:.4g} +- {self.se:.2g}, paper {self.paper:g}"


@register_record
@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class PaperCurve(ResultRecord):
    """The Bayes regret of one row of the paper over all widths of its pool of runs.

    Attributes
    ----------
    row : str
        The row: problem and policy.
    parameter : str
        The name of the parameter.
    values : array of float
        The values of the parameter.
    mean : array of float
        The mean regret at each value.
    se : array of float
        The standard error of each mean.
    best_value : float
        The value at the lowest point of a smooth curve through the means.
    best_of_tenths : float
        The value with the lowest mean among the tenths of the range.
    """

    row: str
    parameter: str
    values: FloatArray
    mean: FloatArray
    se: FloatArray
    best_value: float
    best_of_tenths: float

    def __repr__(self) -> str:
        return f"{self.row}: {self.parameter} = {self.best_value:.4g} is best"


@register_record
@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Reproduction(ResultRecord):
    """The paper's experiments, repeated.

    Attributes
    ----------
    cells : tuple of PaperCell
        The numbers of this package beside the published ones.
    curves : tuple of PaperCurve
        The regret curve of each row.
    runs : int
        The number of runs of each row at each width, from which all tunings draw.
    tunings : mapping of str to int
        The number of tunings of each tuner with each budget.
    seed : int
        The seed.
    device : {"cpu", "gpu"}
        Where the simulation ran.
    notes : tuple of str
        Sentences about ambiguities of the paper and how they were resolved.
    versions : mapping of str to str
        The versions of this package and of those that it depends on.
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
    def published_cells(self) -> tuple[PaperCell, ...]:
        """The cells with a number in the paper."""
        return tuple(cell for cell in self.cells if not math.isnan(cell.z_score))

    @property
    def is_consistent(self) -> bool:
        """Whether no cell differs by more than 4 joint standard errors beyond its written tolerance."""
        return all(cell.mark != "!!" for cell in self.published_cells)

    def to_pandas(self) -> Any:
        """Return a pandas data frame with one row per cell.

        Raises
        ------
        MissingDependency
            If pandas is not installed.
        """
        names = [f.name for f in fields(PaperCell)]
        return make_data_frame({name: [getattr(cell, name) for cell in self.cells] for name in names})
