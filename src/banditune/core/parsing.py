"""Reads values, options and matrices from text that a user wrote."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.checks import decode_utf8
from banditune.core.errors import InvalidRequest
from banditune.core.request_errors import make_argument_error


def parse_options(spec: str, text: str) -> dict[str, Any]:
    """Parse `a=1,b=2,3` into {"a": 1, "b": [2, 3]}."""
    options: dict[str, str] = {}
    for item in filter(None, text.split(",")):
        option, equals, value = item.partition("=")
        if equals and (not value or option.strip() in options):
            raise InvalidRequest(f"every option must have one value, but got {spec!r}.", code="invalid-request")
        if equals:
            options[option.strip()] = value
        elif options:
            options[list(options)[-1]] += f",{item}"
        else:
            raise InvalidRequest(
                f"options must be written as NAME:option=value,option=value, but got {spec!r}.", code="invalid-request"
            )
    return {option: parse_value(value) for option, value in options.items()}


def parse_value(text: str) -> Any:
    """Parse `2` as a number, `2,5` as a list, `.6,.4;.4,.6` as a list of lists. Other words are not changed."""
    text = text.strip().strip("()[]")
    if ";" in text:
        return [parse_value(row) if "," in row else [parse_value(row)] for row in text.split(";") if row.strip()]
    if "," in text:
        return [parse_value(item) for item in text.split(",") if item.strip()]
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return text


def read_matrix(path: Path) -> FloatArray:
    """Read a matrix from a .npy file, or from a text file with a row per arm and, optionally, a line of names."""
    if path.suffix == ".npy":
        try:
            return np.atleast_2d(np.load(path, allow_pickle=False)).astype(float)
        except (OSError, ValueError) as error:
            raise make_argument_error(
                "features", "file-format", f"must be a matrix in a .npy file, but {str(path)!r} is not one."
            ) from error
    try:
        lines = decode_utf8(path.read_bytes(), path).splitlines()
    except OSError as error:
        raise make_argument_error(
            "features", "cannot-read", f"must be a .csv or .npy file, but {str(path)!r} cannot be read."
        ) from error
    rows = [(number, row) for number, row in enumerate(csv.reader(lines, delimiter=detect_delimiter(lines)), 1) if row]
    names = rows[0][1] if rows and all(parse_cell(cell) is None for cell in rows[0][1]) else []
    if names and not names[0]:
        raise InvalidRequest(
            f"the first column of {str(path)!r} has no name and looks like an index; leave it out.",
            argument="features",
            code="bad-data",
        )
    rows = rows[1:] if names else rows
    if not rows:
        raise make_argument_error(
            "features", "bad-data", f"must have a row of numbers for every arm, but {str(path)!r} has none."
        )
    return np.array([parse_number_row(path, number, row, len(rows[0][1])) for number, row in rows])


def detect_delimiter(lines: list[str]) -> str:
    """Return the separator of numbers: a comma, or a semicolon or a tab if there are no commas."""
    first = lines[0] if lines else ""
    return next((mark for mark in ",;\t" if mark in first), ",")


def parse_number_row(path: Path, number: int, row: list[str], width: int) -> list[float]:
    """Parse a line of a text file as `width` numbers."""
    if len(row) != width:
        raise InvalidRequest(
            f"every row of {str(path)!r} must have {width} numbers, but line {number} has {len(row)}.",
            argument="features",
            code="wrong-shape",
        )
    numbers = []
    for column, cell in enumerate(row, 1):
        value = parse_cell(cell)
        if value is None:
            raise InvalidRequest(
                f"column {column} in line {number} of {str(path)!r} must be a number, but is {cell!r}.",
                argument="features",
                code="bad-data",
            )
        numbers.append(value)
    return numbers


def parse_cell(cell: str) -> float | None:
    """Parse a cell as a number; return None if it is not one."""
    try:
        return float(cell)
    except ValueError:
        return None
