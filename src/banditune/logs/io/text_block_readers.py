"""Splits a block of text into columns, with Arrow if it is installed, else with the csv module."""

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
"""The number of rows that the csv module splits at once. Lists of words need much more memory than text."""


def has_arrow() -> bool:
    """Return whether Arrow is installed and can be imported. A version for another NumPy cannot."""
    try:
        import pyarrow.csv  # noqa: F401
    except ImportError:
        return False
    return True


BlockReader = Callable[[bytes], tuple[dict[str, EncodedNames], dict[str, FloatArray]]]
"""Converts a block of text to columns of names and of numbers; raises `SuspectBlock` if a row may be bad."""


def make_plain_reader(names: Sequence[str], delimiter: str, columns: ColumnRoles) -> BlockReader:
    """Make a reader of blocks that uses only the standard library."""
    positions = {name: position for position, name in enumerate(names) if name in columns.all_columns}

    def read(data: bytes) -> tuple[dict[str, EncodedNames], dict[str, FloatArray]]:
        numbers_by_name: dict[str, dict[str, int]] = {column: {} for column in positions}
        codes: dict[str, list[IntArray]] = {column: [] for column in positions}
        try:
            rows = csv.reader(
                io.StringIO(_check_plain_block(data).decode(), newline=""), delimiter=delimiter, strict=True
            )
            while chunk := list(islice(rows, CSV_CHUNK_ROWS)):
                if any(len(row) != len(names) for row in chunk):
                    raise SuspectBlock
                for column, position in positions.items():
                    number = numbers_by_name[column]
                    numbers = (number.setdefault(row[position], len(number)) for row in chunk)
                    codes[column].append(np.fromiter(numbers, np.int64, len(chunk)))
        except (UnicodeDecodeError, csv.Error) as error:
            raise SuspectBlock from error
        encoded = {
            column: EncodedNames(list(numbers_by_name[column]), np.concatenate(codes[column])) for column in positions
        }
        named = {column: strip_names(encoded[column]) for column in (columns.campaign, columns.arm)}
        return named, {column: _convert_names_to_numbers(encoded[column]) for _, column in columns.number_columns}

    return read


def _check_plain_block(data: bytes) -> bytes:
    """Return a block, or raise `SuspectBlock` if its lines must be read one by one."""
    if b"\x00" in data or b"\xef\xbb\xbf" in data or b"\r" in data.replace(b"\r\n", b""):
        raise SuspectBlock
    return data


def make_arrow_reader(names: Sequence[str], delimiter: str, columns: ColumnRoles) -> BlockReader:
    """Make a reader of blocks that uses Arrow, which must be installed."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    text_type = pa.dictionary(pa.int32(), pa.string())
    kinds = dict.fromkeys((columns.campaign, columns.arm), text_type)
    numbers = [column for _, column in columns.number_columns]

    def parse_block(data: bytes, **options: Any) -> Any:
        try:
            return arrow_csv.read_csv(
                io.BytesIO(data),
                read_options=arrow_csv.ReadOptions(
                    column_names=list(names), use_threads=False, block_size=len(data) + 1
                ),
                parse_options=arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=kinds | options, include_columns=list(columns.all_columns), strings_can_be_null=False
                ),
            ).combine_chunks()
        except pa.ArrowException as error:
            raise SuspectBlock from error

    def read(data: bytes) -> Any:
        data = _check_plain_block(data)
        try:
            table = parse_block(data, **dict.fromkeys(numbers, pa.float64()))
        except SuspectBlock:
            # Rewards such as "True" have few distinct values.
            table = parse_block(data, **dict.fromkeys(numbers, text_type))
        named = {column: strip_names(_read_arrow_names(table.column(column))) for column in kinds}
        return named, {column: _read_arrow_numbers(table.column(column)) for column in numbers}

    return read


def _read_arrow_names(column: Any) -> EncodedNames:
    """Read a column of text from Arrow."""
    chunk = column.chunk(0) if column.num_chunks else None
    if chunk is None or chunk.null_count:
        raise SuspectBlock
    return EncodedNames(chunk.dictionary.to_pylist(), chunk.indices.to_numpy(zero_copy_only=False).astype(np.int64))


def _convert_names_to_numbers(names: EncodedNames) -> FloatArray:
    """Convert text to numbers. Each distinct text is converted once."""
    values = [read_cell_number(name) for name in names.names]
    if any(value is None for value in values):
        raise SuspectBlock
    numbers: FloatArray = np.array(values, np.float64)[names.codes]
    return numbers


def _read_arrow_numbers(column: Any) -> FloatArray:
    """Read a column of numbers from Arrow, stored as numbers or as text."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        return _convert_names_to_numbers(_read_arrow_names(column))
    if column.null_count:
        raise SuspectBlock
    numbers: FloatArray = column.to_numpy()
    return numbers
