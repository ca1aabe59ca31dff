"""Text files, plain or gzipped, read in blocks of whole lines."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from banditune.core.checks import decode_utf8
from banditune.core.errors import InvalidRequest
from banditune.logs.io.column_roles import ColumnRoles
from banditune.logs.io.row_checks import RowChecker, SuspectBlock
from banditune.logs.io.row_records import LINE_NUMBERING, CheckedRows
from banditune.logs.io.text_block_readers import has_arrow, make_arrow_reader, make_plain_reader

BLOCK_BYTES = 1 << 23
"""The number of bytes that are read at once."""


MAX_LINE_BYTES = 1 << 23
"""The largest length of a line, in bytes."""


class LineCounter:
    """An iterator over lines that counts them. `is_done` is true after the `block` lines of a block."""

    def __init__(self, lines: Iterator[bytes], block: int) -> None:
        self.lines = lines
        self.block = block
        self.line_count = 0

    @property
    def is_done(self) -> bool:
        return self.line_count >= self.block

    def __iter__(self) -> LineCounter:
        return self

    def __next__(self) -> bytes:
        line = next(self.lines)
        self.line_count += 1
        return line


class TextTable:
    """A text file with commas, tabs or semicolons, plain or gzipped. The first line contains the names of the columns.

    Blocks of whole lines are read as columns, with Arrow if it is installed. A block with an unusual row is read again,
    row by row. Only this second reader decides which rows are bad.
    """

    numbering = LINE_NUMBERING

    def __init__(self, path: Path) -> None:
        self.path = path
        with _open_bytes(path) as file:
            first = decode_utf8(next(_read_lines(file, path), b""), path).replace("\x00", "\ufffd").rstrip("\r\n")
        self.delimiter = next((mark for mark in (",", "\t", ";", "|") if mark in first), ",")
        try:
            self.names = [name.strip() for name in next(csv.reader([first], delimiter=self.delimiter), [])]
        except csv.Error as error:
            raise InvalidRequest(
                f"the first line of {str(path)!r} must name the columns, but: {error}.",
                argument="source",
                code="bad-data",
            ) from error
        if not any(self.names):
            raise InvalidRequest(
                f"the first line of {str(path)!r} must name the columns, but it is empty.",
                argument="source",
                code="missing",
            )

    def read_blocks(self, columns: ColumnRoles, checker: RowChecker) -> Iterator[CheckedRows]:
        fast = (make_arrow_reader if has_arrow() else make_plain_reader)(self.names, self.delimiter, columns)
        with _open_bytes(self.path) as file:
            next(_read_lines(file, self.path))
            line = 2
            while data := _read_block(file, self.path):
                try:
                    names, numbers = fast(data)
                    # Approximate if lines are empty or a field has several; used only in messages on features that change.
                    rows = len(next(iter(numbers.values())))
                    yield checker.check_columns(names, numbers, np.arange(line, line + rows))
                    line += _count_lines(data)
                except SuspectBlock:
                    reader = LineCounter(chain(io.BytesIO(data), _read_lines(file, self.path)), _count_lines(data))
                    yield checker.check_each(self._read_cells(reader, line))
                    line += reader.line_count

    def _read_cells(self, lines: LineCounter, first: int) -> Iterator[tuple[int, dict[str, Any] | str]]:
        """Yield rows with their line numbers, to the end of the block."""
        reader = csv.reader((_decode_line(line) for line in lines), delimiter=self.delimiter)
        while not lines.is_done:
            line = first + lines.line_count
            try:
                row = next(reader, None)
            except csv.Error as error:
                yield line, f"it cannot be split into fields: {error}"
                continue
            if row is None:
                return
            if len(row) == len(self.names):
                yield line, dict(zip(self.names, row, strict=True))
            elif row:
                yield line, f"it must have {len(self.names)} fields, like the first line, but has {len(row)}"


@contextmanager
def _open_bytes(path: Path) -> Iterator[Any]:
    """Open a file of bytes, and decompress it if it is gzipped. Errors of the file become `InvalidRequest`."""
    try:
        with path.open("rb") as file:
            zipped = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            yield gzip.GzipFile(fileobj=file) if zipped else file
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidRequest(
            f"{str(path)!r} cannot be read to its end: {error}.", argument="source", code="cannot-read"
        ) from error


def _count_lines(data: bytes) -> int:
    """Count the lines of a block. The last line of a file may lack a line break."""
    return data.count(b"\n") + (not data.endswith(b"\n"))


def _decode_line(line: bytes) -> str:
    """Decode a line.

    Bytes that are not UTF-8 become surrogates, so that they can be recognised: valid text has none.
    """
    return line.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape").replace("\x00", "\ufffd")


def _read_lines(file: Any, path: Path) -> Iterator[bytes]:
    """Read the next lines of a file, up to a limit of their length."""
    while line := file.readline(MAX_LINE_BYTES):
        if len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
            raise InvalidRequest(
                f"{str(path)!r} must be text in lines, but one is longer than {MAX_LINE_BYTES >> 20} MiB.",
                argument="source",
                code="file-format",
            )
        yield line


def _read_block(file: Any, path: Path) -> bytes:
    """Read the next block of a file, up to the end of a line."""
    data: bytes = file.read(BLOCK_BYTES)
    return data + next(_read_lines(file, path), b"") if data and not data.endswith(b"\n") else data
