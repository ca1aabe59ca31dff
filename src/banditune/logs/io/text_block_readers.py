"""Splits a block of text into columns, by Arrow where it is installed, else by the csv module."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import numpy as np

from banditune.core.arrays import FloatArray, IntArray
from banditune.logs.io.cell_values import read_cell_number, strip_names
from banditune.logs.io.column_roles import ColumnRoles
from banditune.logs.io.row_checks import SuspectBlock
from banditune.logs.io.row_records import EncodedNames

CSV_CHUNK_ROWS = 1 << 14
"""Rows of text that Python's reader splits at once: a block's rows, as lists of words, take far more room than its text."""


def has_arrow() -> bool:
    """Whether Arrow is installed and can be imported; one that was built for another NumPy cannot."""
    try:
        import pyarrow.csv  # noqa: F401
    except ImportError:
        return False
    return True


BlockReader = Callable[[bytes], tuple[dict[str, EncodedNames], dict[str, FloatArray]]]
"""From a block of text to columns of names and of numbers; `SuspectBlock` where a row might be bad."""


def make_plain_reader(names: Sequence[str], delimiter: str, columns: ColumnRoles) -> BlockReader:
    """A reader of blocks by Python's own means."""
    places = {name: place for place, name in enumerate(names) if name in columns.all_columns}

    def read(data: bytes) -> tuple[dict[str, EncodedNames], dict[str, FloatArray]]:
        known: dict[str, dict[str, int]] = {column: {} for column in places}
        codes: dict[str, list[IntArray]] = {column: [] for column in places}
        try:
            rows = csv.reader(
                io.StringIO(_check_plain_block(data).decode(), newline=""), delimiter=delimiter, strict=True
            )
            while some := list(islice(rows, CSV_CHUNK_ROWS)):
                if any(len(row) != len(names) for row in some):
                    raise SuspectBlock
                for column, place in places.items():
                    number = known[column]
                    each = (number.setdefault(row[place], len(number)) for row in some)
                    codes[column].append(np.fromiter(each, np.int64, len(some)))
        except (UnicodeDecodeError, csv.Error) as error:
            raise SuspectBlock from error
        words = {column: EncodedNames(list(known[column]), np.concatenate(codes[column])) for column in places}
        named = {column: strip_names(words[column]) for column in (columns.campaign, columns.arm)}
        return named, {column: _convert_names_to_numbers(words[column]) for _, column in columns.number_columns}

    return read


def _check_plain_block(data: bytes) -> bytes:
    """A block, if nothing in it is a reason to look at its lines one by one."""
    if b"\x00" in data or b"\xef\xbb\xbf" in data or b"\r" in data.replace(b"\r\n", b""):
        raise SuspectBlock
    return data


def make_arrow_reader(names: Sequence[str], delimiter: str, columns: ColumnRoles) -> BlockReader:
    """A reader of blocks by Arrow, which must be installed."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    words = pa.dictionary(pa.int32(), pa.string())
    kinds = dict.fromkeys((columns.campaign, columns.arm), words)
    numbers = [column for _, column in columns.number_columns]

    def parsed(data: bytes, **others: Any) -> Any:
        try:
            return arrow_csv.read_csv(
                io.BytesIO(data),
                read_options=arrow_csv.ReadOptions(
                    column_names=list(names), use_threads=False, block_size=len(data) + 1
                ),
                parse_options=arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=kinds | others, include_columns=list(columns.all_columns), strings_can_be_null=False
                ),
            ).combine_chunks()
        except pa.ArrowException as error:
            raise SuspectBlock from error

    def read(data: bytes) -> Any:
        data = _check_plain_block(data)
        try:
            table = parsed(data, **dict.fromkeys(numbers, pa.float64()))
        except SuspectBlock:
            # Rewards such as "True": few different words.
            table = parsed(data, **dict.fromkeys(numbers, words))
        named = {column: strip_names(_read_arrow_names(table.column(column))) for column in kinds}
        return named, {column: _read_arrow_numbers(table.column(column)) for column in numbers}

    return read


def _read_arrow_names(column: Any) -> EncodedNames:
    """A column of words out of Arrow."""
    chunk = column.chunk(0) if column.num_chunks else None
    if chunk is None or chunk.null_count:
        raise SuspectBlock
    return EncodedNames(chunk.dictionary.to_pylist(), chunk.indices.to_numpy(zero_copy_only=False).astype(np.int64))


def _convert_names_to_numbers(words: EncodedNames) -> FloatArray:
    """Numbers out of words, each of which is understood once."""
    values = [read_cell_number(name) for name in words.names]
    if any(value is None for value in values):
        raise SuspectBlock
    found: FloatArray = np.array(values, np.float64)[words.codes]
    return found


def _read_arrow_numbers(column: Any) -> FloatArray:
    """A column of numbers out of Arrow, written as numbers or as words."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        return _convert_names_to_numbers(_read_arrow_names(column))
    if column.null_count:
        raise SuspectBlock
    numbers: FloatArray = column.to_numpy()
    return numbers
