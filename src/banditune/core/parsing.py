"""Reads values, options and matrices out of text that a user wrote."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.checks import decode_utf8
from banditune.core.errors import InvalidRequest


def parse_options(spec: str, told: str) -> dict[str, Any]:
    """`a=1,b=2,3` as {"a": 1, "b": [2, 3]}."""
    found: dict[str, str] = {}
    for piece in filter(None, told.split(",")):
        option, equals, value = piece.partition("=")
        if equals and (not value or option.strip() in found):
            raise InvalidRequest(f"every option must have one value, but got {spec!r}.")
        if equals:
            found[option.strip()] = value
        elif found:
            found[list(found)[-1]] += f",{piece}"
        else:
            raise InvalidRequest(f"options must be written as NAME:option=value,option=value, but got {spec!r}.")
    return {option: parse_value(value) for option, value in found.items()}


def parse_value(text: str) -> Any:
    """`2` as a number, `2,5` as a list, `.6,.4;.4,.6` as a list of lists; words stay words."""
    text = text.strip().strip("()[]")
    if ";" in text:
        return [parse_value(row) if "," in row else [parse_value(row)] for row in text.split(";") if row.strip()]
    if "," in text:
        return [parse_value(piece) for piece in text.split(",") if piece.strip()]
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return text


def read_matrix(path: Path) -> FloatArray:
    """A matrix of numbers from a .npy file, or a text file with a row for every arm; a line of names may come first."""
    if path.suffix == ".npy":
        try:
            return np.atleast_2d(np.load(path, allow_pickle=False)).astype(float)
        except (OSError, ValueError) as error:
            raise InvalidRequest(
                f"`features` must be a matrix in a .npy file, but {str(path)!r} is not one."
            ) from error
    try:
        lines = decode_utf8(path.read_bytes(), path).splitlines()
    except OSError as error:
        raise InvalidRequest(f"`features` must be a .csv or .npy file, but {str(path)!r} cannot be read.") from error
    rows = [(number, row) for number, row in enumerate(csv.reader(lines, delimiter=detect_delimiter(lines)), 1) if row]
    names = rows[0][1] if rows and all(parse_cell(cell) is None for cell in rows[0][1]) else []
    if names and not names[0]:
        raise InvalidRequest(f"the first column of {str(path)!r} has no name and looks like an index; leave it out.")
    rows = rows[1:] if names else rows
    if not rows:
        raise InvalidRequest(f"`features` must hold a row of numbers for every arm, but {str(path)!r} has none.")
    return np.array([parse_number_row(path, number, row, len(rows[0][1])) for number, row in rows])


def detect_delimiter(lines: list[str]) -> str:
    """What stands between numbers: commas, or semicolons or tabs where there are no commas."""
    first = lines[0] if lines else ""
    return next((mark for mark in ",;\t" if mark in first), ",")


def parse_number_row(path: Path, number: int, row: list[str], width: int) -> list[float]:
    """A line of a text file as so many numbers."""
    if len(row) != width:
        raise InvalidRequest(
            f"every row of {str(path)!r} must hold {width} numbers, but line {number} holds {len(row)}."
        )
    found = []
    for place, cell in enumerate(row, 1):
        value = parse_cell(cell)
        if value is None:
            raise InvalidRequest(f"column {place} in line {number} of {str(path)!r} must be a number, but is {cell!r}.")
        found.append(value)
    return found


def parse_cell(cell: str) -> float | None:
    """The number that a cell holds, and nothing else; None if it does not."""
    try:
        return float(cell)
    except ValueError:
        return None
