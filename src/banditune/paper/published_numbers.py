"""The paper's published numbers, with written tolerances and explanations, from three small tables.

`published.csv` has the 201 numbers of *Empirical Bayes Regret Minimization* (arXiv 1904.02664). They are the two tables of
its appendix, which contain those of its text, and the regret of the Gittins index, from a sentence.

`tolerances.csv` has written tolerances: the cells (* matches any), the allowance in % of the paper's number or in the
units of the cell, whether any of our readings may be the paper's, and the reason.

`explanations.csv` explains cells that differ at the paper's scale. It does not change marks.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import NamedTuple

PAPER_RUNS = 10_000
"""The number of runs of every published number."""


ROUNDING_STEP = 0.1
"""The rounding of all published numbers."""


class PaperCellKey(NamedTuple):
    """The key of a number: table (best, textbook, regret, failures or gittins), row, tuner and budget.

    The tuner is "" and the budget 0 if there is none.
    """

    table: str
    row: str
    tuner: str = ""
    budget: int = 0


@dataclass(frozen=True)
class PaperTolerance:
    """The allowed difference of a cell, in addition to standard errors."""

    allowance: float
    any_reading: bool
    reasons: tuple[str, ...]


@cache
def load_published_numbers() -> dict[PaperCellKey, float]:
    """Load all published numbers."""
    return {
        PaperCellKey(
            line["table"], f"{line['problem']} {line['policy']}", line["tuner"], int(line["budget"] or 0)
        ): float(line["value"])
        for line in read_data_rows("published.csv")
    }


def find_tolerance(key: PaperCellKey, value: float) -> PaperTolerance:
    """Find the written tolerance of a cell: the largest allowance, and all reasons."""
    allowance, readings, reasons = 0.0, False, []
    for line in match_data_rows(key, "tolerances.csv"):
        size = float(line["allowance"])
        allowance = max(allowance, size * value / 100 if line["unit"] == "%" else size)
        readings = readings or line["readings"] == "any"
        reasons.append(line["reason"])
    return PaperTolerance(allowance, readings, tuple(reasons))


def find_explanation(key: PaperCellKey) -> str:
    """Find the explanation of a cell that differs; "" if there is none."""
    return " ".join(line["explanation"] for line in match_data_rows(key, "explanations.csv"))


def match_data_rows(key: PaperCellKey, name: str) -> Iterator[dict[str, str]]:
    """Yield the lines of a table whose patterns match a cell."""
    for line in read_data_rows(name):
        names = (line["table"], line["row"], line["tuner"], line["budget"])
        if all(fnmatchcase(str(field), pattern) for field, pattern in zip(key, names, strict=True)):
            yield line


def read_data_rows(name: str) -> Iterator[dict[str, str]]:
    """Read a table of this folder, line by line."""
    with files(__package__).joinpath(name).open(encoding="utf-8") as file:
        yield from csv.DictReader(file)
