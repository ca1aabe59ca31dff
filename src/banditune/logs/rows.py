"""From cells of a table to checked rows: fast where nothing is wrong, one by one where something is."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from banditune.checks import check_number
from banditune.contracts import BadRequest, Floats, Integers
from banditune.logs.columns import Columns
from banditune.logs.tally import Numbering, Rows, Words

LIMITS = {"binary": "0 or 1", "unit": "a number in [0, 1]", "real": "a finite number"}
SHOWN = 5
LARGEST = 1e100
NOTHING = ("NaN", "nan", "NULL", "null", "<NA>")
"""Words that programs write where a cell holds nothing."""

TRUTH = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}


THOUSANDS = re.compile(r"-?[1-9]\d{0,2}(,\d{3})+(\.\d+)?")
"""A number as people write it: 1,200."""


class Odd(Exception):
    """Something that the fast way does not understand."""


class Bad(NamedTuple):
    """A row that cannot be read, and why."""

    line: int
    why: str


class Checker:
    """Turns cells into rows. Bad ones are left out and counted, and the first are remembered."""

    def __init__(self, columns: Columns, numbering: Numbering, rewards: str | None, blank: float | None = None) -> None:
        if rewards is not None and rewards not in LIMITS:
            raise BadRequest(f"`rewards` must be one of {', '.join(LIMITS)}, but got {rewards!r}.")
        if columns.reward is None and rewards not in (None, "binary"):
            raise BadRequest(
                f"pulls and successes are sums of 0 and 1, but rewards={rewards!r} was told; leave it out."
            )
        if columns.reward is None and blank is not None:
            raise BadRequest(
                f"`blank` stands for empty rewards, but here are pulls and successes, and blank={blank!r}; leave it out."
            )
        self.columns = columns
        self.numbering = numbering
        self.rewards = rewards
        self.blank = None if blank is None else check_number("blank", blank)
        self.rows = 0
        self.bad = 0
        self.shown: list[Bad] = []
        self.garbled = 0
        self.unpaid = 0
        """Rows without a reward that are bad for it."""

    def quick(self, words: Mapping[str, Words], columns: Mapping[str, Floats], lines: Integers) -> Rows:
        """Rows out of whole columns; `Odd` if one of them might be bad."""
        found = {column: words[column] for column in (self.columns.campaign, self.columns.arm)}
        for column in found.values():
            if not all(column.names):
                raise Odd
        if not all(np.isfinite(column).all() and (np.abs(column) < LARGEST).all() for column in columns.values()):
            raise Odd
        if not self._allowed(columns):
            raise Odd
        self.rows += len(lines)
        return self._rows(list(found.values()), columns, lines)

    def _allowed(self, columns: Mapping[str, Any]) -> bool:
        """Whether numbers are in their ranges; for whole columns, or for one row."""
        told = self.columns
        good: Any = True
        if told.reward is None:
            pulls, successes = columns[str(told.pulls)], columns[str(told.successes)]
            good = (pulls >= 0) & (pulls % 1 == 0) & (pulls < 2**53)
            good &= (successes >= 0) & (successes <= pulls) & (successes % 1 == 0)
        elif self.rewards in ("binary", "unit"):
            reward = columns[told.reward]
            good = (reward >= 0) & (reward <= 1) & ((self.rewards == "unit") | (reward % 1 == 0))
        if told.propensity is not None:
            good &= (columns[told.propensity] > 0) & (columns[told.propensity] <= 1)
        return bool(np.all(good))

    def _rows(self, words: Sequence[Words], columns: Mapping[str, Any], lines: Integers) -> Rows:
        told = self.columns
        features = np.empty((len(lines), len(told.features)))
        for place, name in enumerate(told.features):
            features[:, place] = columns[name]
        if told.reward is not None:
            return Rows(words[0], words[1], None, columns[told.reward], features, lines)
        pulls = columns[str(told.pulls)].astype(np.int64)
        return Rows(words[0], words[1], pulls, columns[str(told.successes)], features, lines)

    def slow(self, rows: Iterator[tuple[int, Mapping[str, Any] | str]]) -> Rows:
        """Rows out of (line, cells by column, or what is wrong with the line), one by one."""
        names: tuple[list[str], list[str]] = ([], [])
        columns: dict[str, list[float]] = {column: [] for _, column in self.columns.numbers}
        lines: list[int] = []
        for line, cells in rows:
            self.rows += 1
            row = self._one(cells) if not isinstance(cells, str) else cells
            if isinstance(row, str):
                self.bad += 1
                if len(self.shown) < SHOWN:
                    self.shown.append(Bad(line, row))
                continue
            (campaign, arm), found = row
            names[0].append(campaign)
            names[1].append(arm)
            lines.append(line)
            for column, value in found.items():
                columns[column].append(value)
        return self._rows(
            [words_of(column) for column in names],
            {column: np.array(values, np.float64) for column, values in columns.items()},
            np.array(lines, np.int64),
        )

    def _one(self, cells: Mapping[str, Any]) -> tuple[tuple[str, str], dict[str, float]] | str:
        """A row's names and numbers, or what is wrong with it."""
        names = name_of(cells[self.columns.campaign]), name_of(cells[self.columns.arm])
        for part, name in zip(("campaign", "arm"), names, strict=True):
            if not name:
                return f"the {part} is missing"
            if not is_text(name):
                self.garbled += 1
                return f"the {part} is not UTF-8 text, {name[:40].encode(errors='replace').decode()!r}"
        found = {}
        for part, column in self.columns.numbers:
            value = number_of(cells[column])
            if part == "reward" and not name_of(cells[column]):
                value = self.blank
                self.unpaid += value is None
            if value is None or not math.isfinite(value) or not abs(value) < LARGEST:
                return (
                    f"the {part} must be a finite number, but is {str(cells[column])[:40]!r}{comma_in(cells[column])}"
                )
            found[column] = value
        return (names, found) if self._allowed(found) else self._why(found)

    def _why(self, found: Mapping[str, float]) -> str:
        """Which range a row's numbers miss."""
        told = self.columns
        if told.propensity is not None and not 0 < found[told.propensity] <= 1:
            return f"the propensity must be in (0, 1], but is {found[told.propensity]:g}"
        if told.reward is not None:
            return f"the reward must be {LIMITS[str(self.rewards)]}, but is {found[told.reward]:g}"
        pulls, successes = found[str(told.pulls)], found[str(told.successes)]
        return (
            f"successes and pulls must be whole numbers, 0 <= successes <= pulls, but are {successes:g} and {pulls:g}"
        )

    def told(self) -> str:
        """The first bad rows, and how many there are."""
        word, since = self.numbering
        first = "; ".join(f"{word} {bad.line}{since * (bad is self.shown[0])}: {bad.why}" for bad in self.shown)
        rest = f"; and {self.bad - SHOWN:,} more" if self.bad > SHOWN else ""
        return f"{self.bad:,} of {self.rows:,} rows cannot be read ({first}{rest})"


def comma_in(value: Any) -> str:
    """A hint where a comma stands for the decimal point, or between thousands."""
    told = str(value)
    if THOUSANDS.fullmatch(told.strip()):
        return ", with a comma for a point or between thousands"
    return ", with a comma for a point" if "," in told and number_of(told.replace(",", ".", 1)) is not None else ""


def name_of(value: Any) -> str:
    """A name, without spaces around it; empty where there is none."""
    name = "" if missing(value) else str(value).strip()
    return "" if name in NOTHING else name


def is_text(name: str) -> bool:
    """Whether a name can be written; what was read from bytes that are no text cannot."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def missing(value: Any) -> bool:
    """Whether a cell holds nothing: None, NaN, or what pandas has for it, which is not even unequal to itself."""
    try:
        return value is None or bool(value != value)
    except TypeError:
        return True


def number_of(value: Any) -> float | None:
    """A number, or true or false, yes or no, as 1 and 0; None where it is neither."""
    if isinstance(value, bool | np.bool_ | numbers.Real):
        return float(value)
    if missing(value):
        return None
    word = str(value).strip().lower()
    if word in TRUTH:
        return TRUTH[word]
    try:
        return None if "_" in word else float(word)
    except ValueError:
        return None


def words_of(names: Sequence[str]) -> Words:
    """Names as the different ones and the number of each."""
    known: dict[str, int] = {}
    codes = np.fromiter((known.setdefault(name, len(known)) for name in names), np.int64, len(names))
    return Words(list(known), codes)
