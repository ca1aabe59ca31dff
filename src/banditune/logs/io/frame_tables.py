"""Data frames, mappings of columns and Parquet files, read in batches of rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from banditune.core.arrays import FloatArray, IntArray
from banditune.core.errors import InvalidRequest, MissingDependency
from banditune.logs.io.cell_values import encode_names, read_cell_name, read_cell_number, strip_names
from banditune.logs.io.column_roles import ColumnRoles
from banditune.logs.io.row_checks import RowChecker, SuspectBlock
from banditune.logs.io.row_records import ROW_NUMBERING, CheckedRows, EncodedNames

BATCH_ROWS = 1 << 18
"""The number of rows of other tables that are read at once."""


class FrameTable:
    """A data frame of pandas or polars, or an object with columns and slices; also a mapping of columns."""

    numbering = ROW_NUMBERING

    def __init__(self, source: Any) -> None:
        if isinstance(source, dict):
            source = _ColumnFrame(source)
        if not hasattr(source, "columns") or not hasattr(source, "__len__") or not hasattr(source, "__getitem__"):
            raise InvalidRequest(
                f"logs must be a path, a data frame or a mapping of columns, but got {type(source).__name__}.",
                argument="source",
                code="wrong-type",
            )
        self.source = source
        self.names = [str(name) for name in source.columns]

    def read_blocks(self, columns: ColumnRoles, checker: RowChecker) -> Iterator[CheckedRows]:
        used_columns = {
            str(name): self.source[name] for name in self.source.columns if str(name) in columns.all_columns
        }
        for first in range(0, len(self.source), BATCH_ROWS):
            part = {name: column[first : first + BATCH_ROWS] for name, column in used_columns.items()}
            yield from _check_block(
                {name: _convert_frame_column(column) for name, column in part.items()}, columns, checker, first
            )


class _ColumnFrame:
    """A mapping of columns, as a data frame."""

    def __init__(self, columns: dict[str, Any]) -> None:
        self.columns = list(columns)
        self._columns = columns
        lengths = {len(column) for column in columns.values()}
        if len(lengths) > 1:
            raise InvalidRequest(
                f"columns must be of the same length, but there are lengths {sorted(lengths)}.",
                argument="source",
                code="wrong-shape",
            )
        self._length = lengths.pop() if lengths else 0

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, name: str) -> Any:
        return self._columns[name]


class ParquetTable:
    """A .parquet file. Its rows are numbered, because it has no lines."""

    numbering = ROW_NUMBERING

    def __init__(self, path: Path) -> None:
        try:
            import pyarrow as pa
            from pyarrow import parquet
        except ImportError as error:
            raise MissingDependency(
                'a .parquet file needs pyarrow; install it with: pip install "banditune[parquet]"'
            ) from error
        try:
            self.file = parquet.ParquetFile(path)
        except (pa.ArrowException, OSError) as error:
            raise InvalidRequest(
                f"{str(path)!r} must be a Parquet file, but it cannot be read: {error}.",
                argument="source",
                code="file-format",
            ) from error
        self.path = path
        self.names = list(self.file.schema_arrow.names)

    def read_blocks(self, columns: ColumnRoles, checker: RowChecker) -> Iterator[CheckedRows]:
        import pyarrow as pa

        first = 0
        try:
            for batch in self.file.iter_batches(BATCH_ROWS, columns=list(columns.all_columns)):
                columns_by_name = {name: _convert_arrow_column(batch.column(name)) for name in batch.schema.names}
                yield from _check_block(columns_by_name, columns, checker, first)
                first += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            raise InvalidRequest(
                f"{str(self.path)!r} cannot be read to its end: {error}.", argument="source", code="cannot-read"
            ) from error


def _convert_arrow_column(column: Any) -> Any:
    """Convert an Arrow column to an array of numbers if it is numeric, else to a list."""
    import pyarrow as pa

    numeric = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    return column.to_numpy(zero_copy_only=False) if numeric and not column.null_count else column.to_pylist()


def _convert_frame_column(column: Any) -> Any:
    """Convert a part of a data frame's column to an array of numbers, or to a list."""
    array = np.asarray(column)
    return array if array.dtype.kind in "iuf" else array.tolist()


def _check_block(cells: dict[str, Any], columns: ColumnRoles, checker: RowChecker, first: int) -> Iterator[CheckedRows]:
    """Check columns of cells, numbered from `first` on; returns the checked rows."""
    size = len(next(iter(cells.values())))
    lines: IntArray = np.arange(first, first + size)
    try:
        names = {column: _encode_column_names(cells[column]) for column in (columns.campaign, columns.arm)}
        numbers = {column: _convert_to_numbers(cells[column]) for _, column in columns.number_columns}
        yield checker.check_columns(names, numbers, lines)
    except SuspectBlock:
        rows = zip(*(cells[name] for name in cells), strict=True)
        yield checker.check_each(
            (int(line), dict(zip(cells, row, strict=True))) for line, row in zip(lines, rows, strict=True)
        )


def _encode_column_names(column: Any) -> EncodedNames:
    """Convert a column to names."""
    if isinstance(column, np.ndarray):
        different, codes = np.unique(column, return_inverse=True)
        return strip_names(EncodedNames([read_cell_name(value) for value in different.tolist()], codes))
    return encode_names([read_cell_name(value) for value in column])


def _convert_to_numbers(column: Any) -> FloatArray:
    """Convert a column to numbers."""
    if isinstance(column, np.ndarray):
        return column.astype(np.float64)
    numbers = [read_cell_number(value) for value in column]
    if any(value is None for value in numbers):
        raise SuspectBlock
    return np.array(numbers, np.float64)
