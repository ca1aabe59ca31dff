"""Records that readers and checkers of rows exchange: encoded names, checked rows, and how rows are numbered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from banditune.core.arrays import FloatArray, IntArray


class EncodedNames(NamedTuple):
    """A column of names: the different ones, and the number of each row's."""

    names: Sequence[str]
    codes: IntArray


class RowNumbering(NamedTuple):
    """The word for a row in messages, and the line from which rows are counted if it is not the first."""

    noun: str
    origin: str = ""


LINE_NUMBERING, ROW_NUMBERING = RowNumbering("line"), RowNumbering("row", ", counted from 0")
"""Rows of text, and of tables, where it is not plain from where they are counted."""


class CheckedRows(NamedTuple):
    """Checked rows of a log: names, pulls (1 where a row is a decision), total rewards, features, row numbers."""

    campaign: EncodedNames
    arm: EncodedNames
    pulls: IntArray | None
    total: FloatArray
    features: FloatArray
    lines: IntArray
