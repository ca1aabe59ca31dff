"""Reads one cell or one column of a table: names, numbers, missing values."""

from __future__ import annotations

import numbers
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from banditune.logs.io.row_records import EncodedNames

MISSING_WORDS = ("NaN", "nan", "NULL", "null", "<NA>")
"""Words that stand for an empty cell."""


TRUTH_WORDS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}


THOUSANDS_PATTERN = re.compile(r"-?[1-9]\d{0,2}(,\d{3})+(\.\d+)?")
"""A number with commas between thousands: 1,200."""


def suggest_comma_fix(value: Any) -> str:
    """Suggest a fix for a comma that is a decimal point, or that separates thousands."""
    text = str(value)
    if THOUSANDS_PATTERN.fullmatch(text.strip()):
        return ", with a comma for a point or between thousands"
    return (
        ", with a comma for a point" if "," in text and read_cell_number(text.replace(",", ".", 1)) is not None else ""
    )


def read_cell_name(value: Any) -> str:
    """Read a name, without spaces around it; empty if there is none."""
    name = "" if _is_missing(value) else str(value).strip()
    return "" if name in MISSING_WORDS else name


def is_valid_text(name: str) -> bool:
    """Return whether a name can be encoded as UTF-8. A name from invalid bytes cannot."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_missing(value: Any) -> bool:
    """Return whether a cell is empty: None, NaN, or pandas' NA, whose comparisons are NA."""
    try:
        return value is None or bool(value != value)
    except TypeError:
        return True


def read_cell_number(value: Any) -> float | None:
    """Read a number, or true or false, yes or no, as 1 and 0; None if it is neither."""
    if isinstance(value, bool | np.bool_ | numbers.Real):
        return float(value)
    if _is_missing(value):
        return None
    word = str(value).strip().lower()
    if word in TRUTH_WORDS:
        return TRUTH_WORDS[word]
    try:
        return None if "_" in word else float(word)
    except ValueError:
        return None


def encode_names(names: Sequence[str]) -> EncodedNames:
    """Encode names as the distinct names and the index of each."""
    numbers: dict[str, int] = {}
    codes = np.fromiter((numbers.setdefault(name, len(numbers)) for name in names), np.int64, len(names))
    return EncodedNames(list(numbers), codes)


def strip_names(encoded: EncodedNames) -> EncodedNames:
    """Strip spaces around names, which may make two of them the same."""
    stripped = encode_names([read_cell_name(name) for name in encoded.names])
    return EncodedNames(stripped.names, stripped.codes[encoded.codes])
