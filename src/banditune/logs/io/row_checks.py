"""Converts cells of a table to checked rows: whole columns at once, or row by row if one of them may be bad."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from banditune.core.arrays import FloatArray, IntArray
from banditune.core.checks import check_number, check_reward_kind
from banditune.core.errors import InvalidRequest
from banditune.core.messages import Setting
from banditune.core.request_errors import make_argument_error
from banditune.logs.io.cell_values import (
    encode_names,
    is_valid_text,
    read_cell_name,
    read_cell_number,
    suggest_comma_fix,
)
from banditune.logs.io.column_roles import ColumnRoles
from banditune.logs.io.row_records import CheckedRows, EncodedNames, RowNumbering

REWARD_RANGES = {"binary": "0 or 1", "unit": "a number in [0, 1]", "real": "a finite number"}


MAX_BAD_ROWS_SHOWN = 5


MAX_LOGGED_NUMBER = 1e100


class SuspectBlock(Exception):
    """Raised for a block that may contain a bad row, so that it must be read row by row."""


class BadRow(NamedTuple):
    """A row that cannot be read, and the reason."""

    line: int
    reason: str


class RowChecker:
    """Converts cells to rows. Bad rows are left out and counted, and the first are kept for messages."""

    def __init__(
        self, columns: ColumnRoles, numbering: RowNumbering, rewards: str | None, blank: float | None = None
    ) -> None:
        if rewards is not None:
            check_reward_kind(rewards)
        if columns.reward is None and rewards not in (None, "binary"):
            raise InvalidRequest(
                "pulls and successes are sums of 0 and 1, but {} was given; leave it out.",
                Setting("rewards", rewards),
                argument="rewards",
                code="conflict",
            )
        if columns.reward is None and blank is not None:
            raise make_argument_error(
                "blank",
                "conflict",
                "is the value of empty rewards, but rows have pulls and successes, and {}; leave it out.",
                Setting("blank", blank),
            )
        self.columns = columns
        self.numbering = numbering
        self.rewards = rewards
        self.blank = None if blank is None else check_number("blank", blank)
        self.rows = 0
        self.bad_count = 0
        self.shown_rows: list[BadRow] = []
        self.garbled = 0
        self.unpaid = 0
        """The number of rows that are bad because they have no reward."""

    def check_columns(
        self, names: Mapping[str, EncodedNames], columns: Mapping[str, FloatArray], lines: IntArray
    ) -> CheckedRows:
        """Convert whole columns to rows; raise `SuspectBlock` if one of them may be bad."""
        texts = {column: names[column] for column in (self.columns.campaign, self.columns.arm)}
        for column in texts.values():
            if not all(column.names):
                raise SuspectBlock
        if not all(
            np.isfinite(column).all() and (np.abs(column) < MAX_LOGGED_NUMBER).all() for column in columns.values()
        ):
            raise SuspectBlock
        if not self._is_allowed(columns):
            raise SuspectBlock
        self.rows += len(lines)
        return self._make_rows(list(texts.values()), columns, lines)

    def _is_allowed(self, columns: Mapping[str, Any]) -> bool:
        """Return whether numbers are in their ranges, for whole columns or for one row."""
        roles = self.columns
        is_allowed: Any = True
        if roles.reward is None:
            pulls, successes = columns[str(roles.pulls)], columns[str(roles.successes)]
            is_allowed = (pulls >= 0) & (pulls % 1 == 0) & (pulls < 2**53)
            is_allowed &= (successes >= 0) & (successes <= pulls) & (successes % 1 == 0)
        elif self.rewards in ("binary", "unit"):
            reward = columns[roles.reward]
            is_allowed = (reward >= 0) & (reward <= 1) & ((self.rewards == "unit") | (reward % 1 == 0))
        if roles.propensity is not None:
            is_allowed &= (columns[roles.propensity] > 0) & (columns[roles.propensity] <= 1)
        return bool(np.all(is_allowed))

    def _make_rows(self, names: Sequence[EncodedNames], columns: Mapping[str, Any], lines: IntArray) -> CheckedRows:
        roles = self.columns
        features = np.empty((len(lines), len(roles.features)))
        for number, name in enumerate(roles.features):
            features[:, number] = columns[name]
        if roles.reward is not None:
            return CheckedRows(names[0], names[1], None, columns[roles.reward], features, lines)
        pulls = columns[str(roles.pulls)].astype(np.int64)
        return CheckedRows(names[0], names[1], pulls, columns[str(roles.successes)], features, lines)

    def check_each(self, rows: Iterator[tuple[int, Mapping[str, Any] | str]]) -> CheckedRows:
        """Convert rows one by one from (line, cells by column, or the error of the line)."""
        names: tuple[list[str], list[str]] = ([], [])
        columns: dict[str, list[float]] = {column: [] for _, column in self.columns.number_columns}
        lines: list[int] = []
        for line, cells in rows:
            self.rows += 1
            row = self._check_row(cells) if not isinstance(cells, str) else cells
            if isinstance(row, str):
                self.bad_count += 1
                if len(self.shown_rows) < MAX_BAD_ROWS_SHOWN:
                    self.shown_rows.append(BadRow(line, row))
                continue
            (campaign, arm), values = row
            names[0].append(campaign)
            names[1].append(arm)
            lines.append(line)
            for column, value in values.items():
                columns[column].append(value)
        return self._make_rows(
            [encode_names(column) for column in names],
            {column: np.array(values, np.float64) for column, values in columns.items()},
            np.array(lines, np.int64),
        )

    def _check_row(self, cells: Mapping[str, Any]) -> tuple[tuple[str, str], dict[str, float]] | str:
        """Return a row's names and numbers, or its error."""
        names = read_cell_name(cells[self.columns.campaign]), read_cell_name(cells[self.columns.arm])
        for part, name in zip(("campaign", "arm"), names, strict=True):
            if not name:
                return f"the {part} is missing"
            if not is_valid_text(name):
                self.garbled += 1
                return f"the {part} is not UTF-8 text, {name[:40].encode(errors='replace').decode()!r}"
        values = {}
        for part, column in self.columns.number_columns:
            value = read_cell_number(cells[column])
            if part == "reward" and not read_cell_name(cells[column]):
                value = self.blank
                self.unpaid += value is None
            if value is None or not math.isfinite(value) or not abs(value) < MAX_LOGGED_NUMBER:
                fix = suggest_comma_fix(cells[column])
                return f"the {part} must be a finite number, but is {str(cells[column])[:40]!r}{fix}"
            values[column] = value
        return (names, values) if self._is_allowed(values) else self._describe_violation(values)

    def _describe_violation(self, values: Mapping[str, float]) -> str:
        """Describe the number of a row that is outside its range."""
        roles = self.columns
        if roles.propensity is not None and not 0 < values[roles.propensity] <= 1:
            return f"the propensity must be in (0, 1], but is {values[roles.propensity]:g}"
        if roles.reward is not None:
            return f"the reward must be {REWARD_RANGES[str(self.rewards)]}, but is {values[roles.reward]:g}"
        pulls, successes = values[str(roles.pulls)], values[str(roles.successes)]
        return (
            f"successes and pulls must be whole numbers, 0 <= successes <= pulls, but are {successes:g} and {pulls:g}"
        )

    def describe_bad_rows(self) -> str:
        """Describe the first bad rows and their number."""
        word, since = self.numbering
        first = "; ".join(
            f"{word} {row.line}{since * (row is self.shown_rows[0])}: {row.reason}" for row in self.shown_rows
        )
        ending = f"; and {self.bad_count - MAX_BAD_ROWS_SHOWN:,} more" if self.bad_count > MAX_BAD_ROWS_SHOWN else ""
        return f"{self.bad_count:,} of {self.rows:,} rows cannot be read ({first}{ending})"
