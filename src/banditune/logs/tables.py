"""Tables as blocks of cells: text, Parquet files, data frames. A block fits into memory; the whole need not."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from banditune.checks import utf8
from banditune.contracts import BadRequest, Floats, Integers
from banditune.logs.columns import Columns
from banditune.logs.rows import Checker, Odd, name_of, number_of, words_of
from banditune.logs.tally import FROM_0, LINES, Numbering, Rows, Words

BLOCK = 1 << 23
"""Bytes of text that are read at once."""

LONGEST = 1 << 23
"""Bytes that a line may have."""

PIECE = 1 << 14
"""Rows of text that Python's reader splits at once: a block's rows, as lists of words, take far more room than its text."""

BATCH = 1 << 18
"""Rows of other tables that are read at once."""


class Table(Protocol):
    """Something with named columns that can be read in blocks."""

    names: list[str]
    numbering: Numbering

    def blocks(self, columns: Columns, checker: Checker) -> Iterator[Rows]:
        """Checked rows, block by block."""


def table_of(source: Any) -> Table:
    """A table out of a path or a data frame."""
    if not isinstance(source, str | Path):
        return Frame(source)
    path = Path(source)
    if not path.is_file():
        raise BadRequest(
            f"logs must be a file that exists, .csv or .parquet, or a data frame, but got {str(source)!r}."
        )
    return Parquet(path) if path.suffix.lower() in (".parquet", ".pq") else Text(path)


class Text:
    """A .csv file, or one with tabs or semicolons, plain or gzipped. The first line names the columns.

    Blocks of whole lines are read as columns, by Arrow where it is installed; a block in which anything is odd is read
    again, row by row, which alone decides what is bad.
    """

    numbering = LINES

    def __init__(self, path: Path) -> None:
        self.path = path
        with opened(path) as file:
            first = utf8(next(lines_of(file, path), b""), path).replace("\x00", "\ufffd").rstrip("\r\n")
        self.delimiter = next((mark for mark in (",", "\t", ";", "|") if mark in first), ",")
        try:
            self.names = [name.strip() for name in next(csv.reader([first], delimiter=self.delimiter), [])]
        except csv.Error as error:
            raise BadRequest(f"the first line of {str(path)!r} must name the columns, but: {error}.") from error
        if not any(self.names):
            raise BadRequest(f"the first line of {str(path)!r} must name the columns, but it is empty.")

    def blocks(self, columns: Columns, checker: Checker) -> Iterator[Rows]:
        fast = (arrow_reader if has_arrow() else plain_reader)(self.names, self.delimiter, columns)
        with opened(self.path) as file:
            next(lines_of(file, self.path))
            line = 2
            while data := whole_lines(file, self.path):
                try:
                    words, numbers = fast(data)
                    # Where lines are empty or fields hold several, a little off; it is only told of features that change.
                    rows = len(next(iter(numbers.values())))
                    yield checker.quick(words, numbers, np.arange(line, line + rows))
                    line += count_lines(data)
                except Odd:
                    reader = Counted(chain(io.BytesIO(data), lines_of(file, self.path)), count_lines(data))
                    yield checker.slow(self._cells(reader, line))
                    line += reader.taken

    def _cells(self, lines: Counted, first: int) -> Iterator[tuple[int, dict[str, Any] | str]]:
        """Rows with their line numbers, until the block's lines are used up."""
        reader = csv.reader((text(line) for line in lines), delimiter=self.delimiter)
        while not lines.over:
            line = first + lines.taken
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
                yield line, f"it must hold {len(self.names)} fields, as the first line does, but holds {len(row)}"


class Counted:
    """Lines, and how many of them were taken; `over` once the block's own are."""

    def __init__(self, lines: Iterator[bytes], block: int) -> None:
        self.lines = lines
        self.block = block
        self.taken = 0

    @property
    def over(self) -> bool:
        return self.taken >= self.block

    def __iter__(self) -> Counted:
        return self

    def __next__(self) -> bytes:
        line = next(self.lines)
        self.taken += 1
        return line


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """A file to read bytes from, unzipped where it is zipped; what goes wrong meanwhile becomes a sentence."""
    try:
        with path.open("rb") as file:
            zipped = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            yield gzip.GzipFile(fileobj=file) if zipped else file
    except (OSError, EOFError, zlib.error) as error:
        raise BadRequest(f"{str(path)!r} cannot be read to its end: {error}.") from error


def count_lines(data: bytes) -> int:
    """Lines in a block; the last one of a file may have no end."""
    return data.count(b"\n") + (not data.endswith(b"\n"))


def text(line: bytes) -> str:
    """A line as text; bytes that are not UTF-8 become marks that no text has, so that they are known as such."""
    return line.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape").replace("\x00", "\ufffd")


def lines_of(file: Any, path: Path) -> Iterator[bytes]:
    """The next lines of a file, none of them endless."""
    while line := file.readline(LONGEST):
        if len(line) == LONGEST and not line.endswith(b"\n"):
            raise BadRequest(f"{str(path)!r} must be text in lines, but one is longer than {LONGEST >> 20} MiB.")
        yield line


def whole_lines(file: Any, path: Path) -> bytes:
    """The next block of a file, up to the end of a line."""
    data: bytes = file.read(BLOCK)
    return data + next(lines_of(file, path), b"") if data and not data.endswith(b"\n") else data


def has_arrow() -> bool:
    """Whether Arrow is installed and can be imported; one that was built for another NumPy cannot."""
    try:
        import pyarrow.csv  # noqa: F401
    except ImportError:
        return False
    return True


Reader = Callable[[bytes], tuple[dict[str, Words], dict[str, Floats]]]
"""From a block of text to columns of names and of numbers; `Odd` where a row might be bad."""


def plain_reader(names: Sequence[str], delimiter: str, columns: Columns) -> Reader:
    """A reader of blocks by Python's own means."""
    places = {name: place for place, name in enumerate(names) if name in columns.wanted}

    def read(data: bytes) -> tuple[dict[str, Words], dict[str, Floats]]:
        known: dict[str, dict[str, int]] = {column: {} for column in places}
        codes: dict[str, list[Integers]] = {column: [] for column in places}
        try:
            rows = csv.reader(io.StringIO(plain(data).decode(), newline=""), delimiter=delimiter, strict=True)
            while some := list(islice(rows, PIECE)):
                if any(len(row) != len(names) for row in some):
                    raise Odd
                for column, place in places.items():
                    number = known[column]
                    each = (number.setdefault(row[place], len(number)) for row in some)
                    codes[column].append(np.fromiter(each, np.int64, len(some)))
        except (UnicodeDecodeError, csv.Error) as error:
            raise Odd from error
        words = {column: Words(list(known[column]), np.concatenate(codes[column])) for column in places}
        named = {column: stripped(words[column]) for column in (columns.campaign, columns.arm)}
        return named, {column: numbers_in(words[column]) for _, column in columns.numbers}

    return read


def plain(data: bytes) -> bytes:
    """A block, if nothing in it is a reason to look at its lines one by one."""
    if b"\x00" in data or b"\xef\xbb\xbf" in data or b"\r" in data.replace(b"\r\n", b""):
        raise Odd
    return data


def arrow_reader(names: Sequence[str], delimiter: str, columns: Columns) -> Reader:
    """A reader of blocks by Arrow, which must be installed."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    words = pa.dictionary(pa.int32(), pa.string())
    kinds = dict.fromkeys((columns.campaign, columns.arm), words)
    numbers = [column for _, column in columns.numbers]

    def parsed(data: bytes, **others: Any) -> Any:
        try:
            return arrow_csv.read_csv(
                io.BytesIO(data),
                read_options=arrow_csv.ReadOptions(
                    column_names=list(names), use_threads=False, block_size=len(data) + 1
                ),
                parse_options=arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=kinds | others, include_columns=list(columns.wanted), strings_can_be_null=False
                ),
            ).combine_chunks()
        except pa.ArrowException as error:
            raise Odd from error

    def read(data: bytes) -> Any:
        data = plain(data)
        try:
            table = parsed(data, **dict.fromkeys(numbers, pa.float64()))
        except Odd:
            # Rewards such as "True": few different words.
            table = parsed(data, **dict.fromkeys(numbers, words))
        named = {column: stripped(arrow_words(table.column(column))) for column in kinds}
        return named, {column: arrow_numbers(table.column(column)) for column in numbers}

    return read


def arrow_words(column: Any) -> Words:
    """A column of words out of Arrow."""
    chunk = column.chunk(0) if column.num_chunks else None
    if chunk is None or chunk.null_count:
        raise Odd
    return Words(chunk.dictionary.to_pylist(), chunk.indices.to_numpy(zero_copy_only=False).astype(np.int64))


def stripped(words: Words) -> Words:
    """Names without spaces around them, which may make two of them the same."""
    again = words_of([name_of(name) for name in words.names])
    return Words(again.names, again.codes[words.codes])


def numbers_in(words: Words) -> Floats:
    """Numbers out of words, each of which is understood once."""
    values = [number_of(name) for name in words.names]
    if any(value is None for value in values):
        raise Odd
    found: Floats = np.array(values, np.float64)[words.codes]
    return found


def arrow_numbers(column: Any) -> Floats:
    """A column of numbers out of Arrow, written as numbers or as words."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        return numbers_in(arrow_words(column))
    if column.null_count:
        raise Odd
    numbers: Floats = column.to_numpy()
    return numbers


class Frame:
    """A data frame, of pandas or polars, or anything with columns and slices; also a mapping of columns."""

    numbering = FROM_0

    def __init__(self, source: Any) -> None:
        if isinstance(source, dict):
            source = _Columns(source)
        if not hasattr(source, "columns") or not hasattr(source, "__len__") or not hasattr(source, "__getitem__"):
            raise BadRequest(
                f"logs must be a path, a data frame or a mapping of columns, but got {type(source).__name__}."
            )
        self.source = source
        self.names = [str(name) for name in source.columns]

    def blocks(self, columns: Columns, checker: Checker) -> Iterator[Rows]:
        taken = {str(name): self.source[name] for name in self.source.columns if str(name) in columns.wanted}
        for first in range(0, len(self.source), BATCH):
            part = {name: column[first : first + BATCH] for name, column in taken.items()}
            yield from block_of({name: listed(column) for name, column in part.items()}, columns, checker, first)


class _Columns:
    """A mapping of columns, as a data frame."""

    def __init__(self, columns: dict[str, Any]) -> None:
        self.columns = list(columns)
        self._columns = columns
        lengths = {len(column) for column in columns.values()}
        if len(lengths) > 1:
            raise BadRequest(f"columns must be of the same length, but there are lengths {sorted(lengths)}.")
        self._length = lengths.pop() if lengths else 0

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, name: str) -> Any:
        return self._columns[name]


class Parquet:
    """A .parquet file, which has rows and no lines."""

    numbering = FROM_0

    def __init__(self, path: Path) -> None:
        try:
            import pyarrow as pa
            from pyarrow import parquet
        except ImportError as error:
            raise BadRequest(
                'a .parquet file needs pyarrow; install it with: pip install "banditune[parquet]"'
            ) from error
        try:
            self.file = parquet.ParquetFile(path)
        except (pa.ArrowException, OSError) as error:
            raise BadRequest(f"{str(path)!r} must be a Parquet file, but it cannot be read: {error}.") from error
        self.path = path
        self.names = list(self.file.schema_arrow.names)

    def blocks(self, columns: Columns, checker: Checker) -> Iterator[Rows]:
        import pyarrow as pa

        first = 0
        try:
            for batch in self.file.iter_batches(BATCH, columns=list(columns.wanted)):
                found = {name: _plain(batch.column(name)) for name in batch.schema.names}
                yield from block_of(found, columns, checker, first)
                first += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            raise BadRequest(f"{str(self.path)!r} cannot be read to its end: {error}.") from error


def _plain(column: Any) -> Any:
    """An Arrow column as an array of numbers where it is one, else as a list."""
    import pyarrow as pa

    numeric = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    return column.to_numpy(zero_copy_only=False) if numeric and not column.null_count else column.to_pylist()


def listed(column: Any) -> Any:
    """A part of a data frame's column as an array of numbers, or as a list."""
    array = np.asarray(column)
    return array if array.dtype.kind in "iuf" else array.tolist()


def block_of(cells: dict[str, Any], columns: Columns, checker: Checker, first: int) -> Iterator[Rows]:
    """Checked rows out of columns of cells, numbered from `first` on."""
    size = len(next(iter(cells.values())))
    lines: Integers = np.arange(first, first + size)
    try:
        words = {column: named(cells[column]) for column in (columns.campaign, columns.arm)}
        numbers = {column: valued(cells[column]) for _, column in columns.numbers}
        yield checker.quick(words, numbers, lines)
    except Odd:
        rows = zip(*(cells[name] for name in cells), strict=True)
        yield checker.slow(
            (int(line), dict(zip(cells, row, strict=True))) for line, row in zip(lines, rows, strict=True)
        )


def named(column: Any) -> Words:
    """A column as names."""
    if isinstance(column, np.ndarray):
        different, codes = np.unique(column, return_inverse=True)
        return stripped(Words([name_of(value) for value in different.tolist()], codes))
    return words_of([name_of(value) for value in column])


def valued(column: Any) -> Floats:
    """A column as numbers."""
    if isinstance(column, np.ndarray):
        return column.astype(np.float64)
    found = [number_of(value) for value in column]
    if any(value is None for value in found):
        raise Odd
    return np.array(found, np.float64)
