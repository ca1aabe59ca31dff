"""Records that readers and checkers of rows exchange: encoded names, checked rows, and the numbering of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from banditune.core.arrays import FloatArray, IntArray


class EncodedNames(NamedTuple):
    """A column of names: the distinct names, and the index of each row's name."""

    names: Sequence[str]
    codes: IntArray


class RowNumbering(NamedTuple):
    """The word for a row in messages, and the line from which rows are counted if it is not the first."""

    noun: str
    origin: str = ""


LINE_NUMBERING, ROW_NUMBERING = RowNumbering("line"), RowNumbering("row", ", counted from 0")
"""The numbering of lines of text, and of rows of tables."""


class CheckedRows(NamedTuple):
    """Checked rows of a log: names, pulls (1 if a row is a decision), total rewards, features, row numbers."""

    campaign: EncodedNames
    arm: EncodedNames
    pulls: IntArray | None
    total: FloatArray
    features: FloatArray
    lines: IntArray
