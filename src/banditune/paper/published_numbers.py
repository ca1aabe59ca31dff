"""The paper's published numbers, and what is known about where they are uncertain, from two small tables.

`load_published_numbers.csv` holds the 201 numbers of *Empirical Bayes Regret Minimization* (arXiv 1904.02664): the two tables of its
appendix, which contain those of its text, and the regret of the Gittins index, which is in a sentence.

`tolerances.csv` holds written tolerances: which cells (* stands for any), how much they allow, as a share of the paper's
number in % or in the cell's own units, whether any of our readings may be the paper's, and why.

`known.csv` holds what was found out about cells that differ at the paper's scale; it changes no mark.
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
"""Every published number is an average over so many runs."""


ROUNDING_STEP = 0.1
"""Of all published numbers."""


class PaperCellKey(NamedTuple):
    """Which number: its table (best, theory, regret, failures or gittins), row, tuner and budget ("" and 0 for none)."""

    table: str
    row: str
    tuner: str = ""
    budget: int = 0


@dataclass(frozen=True)
class PaperTolerance:
    """What a cell may be off by before its standard errors count."""

    allows: float
    readings: bool
    reasons: tuple[str, ...]


@cache
def load_published_numbers() -> dict[PaperCellKey, float]:
    """All published numbers."""
    return {
        PaperCellKey(
            line["table"], f"{line['problem']} {line['policy']}", line["tuner"], int(line["budget"] or 0)
        ): float(line["value"])
        for line in read_data_rows("published.csv")
    }


def find_tolerance(place: PaperCellKey, value: float) -> PaperTolerance:
    """All written tolerances of a cell together: the largest counts, all reasons are told."""
    allows, readings, reasons = 0.0, False, []
    for line in match_data_rows(place, "tolerances.csv"):
        size = float(line["allows"])
        allows = max(allows, size * value / 100 if line["unit"] == "%" else size)
        readings = readings or line["readings"] == "any"
        reasons.append(line["reason"])
    return PaperTolerance(allows, readings, tuple(reasons))


def find_explanation(place: PaperCellKey) -> str:
    """Why a cell differs, as far as that was found out; "" where nothing is known."""
    return " ".join(line["known"] for line in match_data_rows(place, "known.csv"))


def match_data_rows(place: PaperCellKey, name: str) -> Iterator[dict[str, str]]:
    """The lines of a table whose patterns fit a cell."""
    for line in read_data_rows(name):
        names = (line["table"], line["row"], line["tuner"], line["budget"])
        if all(fnmatchcase(str(part), pattern) for part, pattern in zip(place, names, strict=True)):
            yield line


def read_data_rows(name: str) -> Iterator[dict[str, str]]:
    """A table of this folder, a line at a time."""
    with files(__package__).joinpath(name).open(encoding="utf-8") as file:
        yield from csv.DictReader(file)
