"""A store: one SQLite file with all regrets of studies, by the key of their simulation.

docs/how-to/store.md describes the file.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from banditune.core.arrays import FloatArray, IntArray
from banditune.core.atomic_files import SMALLEST_DATABASE, SQLITE_HEADER, check_writable, read_beginning
from banditune.core.errors import InvalidRequest, StoreError
from banditune.core.messages import Argument
from banditune.simulation.instances import BLOCK_SIZE
from banditune.storage.store_layout import (
    APPLICATION_ID,
    CREATE_TABLES,
    FORMAT_VERSION,
    LOCK_TIMEOUT,
    PAGE_BYTES,
    SELECT_BLOCKS,
    UPSERT_BLOCK,
    Float32Array,
    RegretBlock,
    StoredSeries,
    StoredSetup,
    cut_at_blocks,
    find_ranges,
)


class RegretStore:
    """An open store. It must be used by one thread, and closed."""

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self.path = _check_path(path)
        self.numbers: dict[tuple[bytes, bytes, int], int] = {}
        """The numbers of series by their keys, for series to which this process wrote."""
        self.resolved_path = self.path.resolve()  # remains right if the working folder changes
        self.file: tuple[int, int] | None = None
        with self.translate_errors():
            self.connection = self._open_for_reading() if read_only else self._open_for_writing()

    def close(self) -> None:
        """Close the file. SQLite then removes its two temporary files."""
        with self.translate_errors():
            self.connection.close()

    def __enter__(self) -> RegretStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Opening

    def _open_for_reading(self) -> sqlite3.Connection:
        if not self.path.is_file():
            raise StoreError(f"the store {str(self.path)!r} must be a file, but there is none.")
        # SQLite needs two temporary files beside this one. If they cannot be written, the file can be read as immutable.
        lonely = not self.path.with_name(self.path.name + "-wal").exists()
        modes = ["rw", "ro", *(["ro&immutable=1"] if lonely else [])]
        for mode in modes:
            connection = self._connect(mode)
            try:
                connection.execute("PRAGMA query_only = ON")
                if self._identify_file(connection) == "empty":
                    raise StoreError(f"the file {str(self.path)!r} must be a store, but it is empty.")
                return connection
            except BaseException as error:
                connection.close()
                if not isinstance(error, sqlite3.OperationalError) or mode == modes[-1]:
                    raise
        raise AssertionError

    def _open_for_writing(self) -> sqlite3.Connection:
        check_writable(self.path)
        self.file = self._read_file_id()
        if self.path.exists() and not self.path.stat().st_mode & 0o222:
            raise StoreError(f"the store {str(self.path)!r} must be writable, but it is read-only; use a copy of it.")
        connection = self._connect("rwc")
        try:
            self.file = self.file or self._read_file_id()  # at this point SQLite has created the file
            connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
            if self._identify_file(connection) == "empty":
                self._execute_with_retries(connection, "PRAGMA journal_mode = WAL")
                with begin_write(connection):
                    if self._identify_file(connection) == "empty":  # no other process was faster
                        for statement in CREATE_TABLES.values():
                            connection.execute(statement)
                        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                        connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
            # Writes of a killed process are in the WAL. Only a power failure may lose the last ones.
            connection.execute("PRAGMA synchronous = NORMAL")
            self._check_not_moved("opens it")
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect(self, mode: str) -> sqlite3.Connection:
        self._check_header()
        name = f"file:{quote(str(self.path.resolve()))}?mode={mode}"
        connection = sqlite3.connect(name, timeout=LOCK_TIMEOUT, isolation_level=None, uri=True)
        connection.execute("PRAGMA cell_size_check = ON")
        return connection

    def _check_header(self) -> None:
        """Raise an error for short files, because SQLite treats them as empty and would overwrite them."""
        if not self.path.is_file() or not 0 < self.path.stat().st_size < SMALLEST_DATABASE:
            return
        head = read_beginning(self.path)
        if not head.startswith(SQLITE_HEADER[: max(1, len(head))]):
            raise sqlite3.DatabaseError("file is not a database")
        raise StoreError(self._describe_damage("it ends too early"))

    def _execute_with_retries(self, connection: sqlite3.Connection, statement: str) -> None:
        """Execute a statement that does not wait for other processes by itself."""
        end = time.monotonic() + LOCK_TIMEOUT
        while True:
            try:
                connection.execute(statement)
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > end:
                    raise
                time.sleep(0.01)

    def _identify_file(self, connection: sqlite3.Connection) -> str:
        """Return "store" or "empty". Raise an error for any other file, which is not changed."""
        # This is one transaction, because another process may create the store between two reads.
        with nullcontext() if connection.in_transaction else begin_read(connection):
            (mark,), (version,) = (
                connection.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
            )
            tables = dict(connection.execute("SELECT name, sql FROM sqlite_master").fetchall())
        if (mark, version, tables) == (0, 0, {}):
            return "empty"
        if mark != APPLICATION_ID or version < 1:
            raise StoreError(
                f"the file {str(self.path)!r} must be a store, but it is another SQLite file; give a store or a new name."
            )
        if version > FORMAT_VERSION:
            raise StoreError(
                f"the store {str(self.path)!r} must have format {FORMAT_VERSION} or older, but a newer banditune wrote it "
                f"in format {version}; upgrade banditune, or use another file."
            )
        if any(tables.get(name) != statement for name, statement in CREATE_TABLES.items()):
            raise StoreError(self._describe_damage("its tables are not those of a store"))
        return "store"

    def _read_file_id(self) -> tuple[int, int] | None:
        """Read device and inode, which identify a file under any name."""
        try:
            status = self.resolved_path.stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _check_not_moved(self, what: str) -> None:
        """Raise an error if the file was moved or removed: writes would be lost, and SQLite does not report this."""
        if self.file is None or self._read_file_id() != self.file:
            raise StoreError(
                f"the store {str(self.path)!r} must not be moved while a study {what}, but it was removed, moved or "
                "replaced; move it back if it was moved, and start the study again."
            )

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Translate errors of SQLite to `StoreError`."""
        try:
            yield
        except InvalidRequest as error:
            raise StoreError(str(error)) from error
        except (sqlite3.Error, UnicodeError, OverflowError) as error:
            raise StoreError(self._explain_error(error)) from error

    def _explain_error(self, error: Exception) -> str:
        message, name = str(error), repr(str(self.path))
        if "not a database" in message:
            return f"the file {name} must be a store, but it is not an SQLite file, or its beginning is damaged."
        if "locked" in message or "busy" in message:
            return (
                f"the store {name} must be free to write, but another process held it for {LOCK_TIMEOUT:.0f} s; "
                "try again."
            )
        if isinstance(error, sqlite3.OperationalError) and any(
            word in message for word in ("readonly", "unable to open", "full", "disk I/O")
        ):
            return f"the store {name} cannot be written or read here: {message}."
        return self._describe_damage(message)

    def _describe_damage(self, what: str) -> str:
        return (
            f"the store {str(self.path)!r} must be unchanged, but it is damaged: {what}; use a copy of it, or move it to "
            "another place and start a new one."
        )

    # Used by studies

    def fill_stored(self, series: StoredSeries, runs: range, out: FloatArray) -> list[range]:
        """Copy stored regrets to `out`, an array (runs, steps). Return the missing runs."""
        missing = np.ones(len(runs), np.bool_)
        arguments = (
            runs.start // BLOCK_SIZE * BLOCK_SIZE,
            runs.stop,
            series.setup.digest,
            series.params,
            series.noise_stream,
        )
        with self.translate_errors():
            for first, count, checksum, content in self.connection.execute(SELECT_BLOCKS, arguments):
                regrets = self._decode_block(series, first, count, checksum, content)
                start, stop = max(first, runs.start), min(first + count, runs.stop)
                if start < stop:
                    out[start - runs.start : stop - runs.start] = regrets[start - first : stop - first]
                    missing[start - runs.start : stop - runs.start] = False
        return find_ranges(missing, runs.start)

    def write_blocks(self, blocks: Iterable[RegretBlock]) -> None:
        """Store blocks, all or none. A stored block is replaced only by a longer one."""
        self._check_not_moved("writes to it")
        try:
            with self.translate_errors(), begin_write(self.connection):
                for block in blocks:
                    number = self._register_series(block.series)
                    for first, regrets in cut_at_blocks(block.first_instance, block.regrets):
                        content = np.ascontiguousarray(regrets, "<f4").tobytes()
                        checksum = block.series.compute_checksum(first, len(regrets), content)
                        self.connection.execute(UPSERT_BLOCK, (number, first, len(regrets), checksum, content))
        except BaseException:
            self.numbers.clear()  # numbers of the failed transaction are not valid
            raise

    def _register_series(self, series: StoredSeries) -> int:
        """Return the number of a series in the file; a new series is inserted."""
        setup, params, noise = series
        key = (setup.digest, params, noise)
        if key not in self.numbers:
            run = self.connection.execute
            run("INSERT OR IGNORE INTO setups (digest, key, versions) VALUES (?, ?, ?)", setup[:3])
            row = (self._fetch_id("SELECT id FROM setups WHERE digest = ?", setup.digest), params, noise)
            run("INSERT OR IGNORE INTO series (setup, params, noise_stream) VALUES (?, ?, ?)", row)
            self.numbers[key] = self._fetch_id(
                "SELECT id FROM series WHERE setup = ? AND params = ? AND noise_stream = ?", *row
            )
        return self.numbers[key]

    def _fetch_id(self, query: str, *key: Any) -> int:
        """Fetch the number of a row that was written before."""
        row = self.connection.execute(query, key).fetchone()
        if row is None or not isinstance(row[0], int):
            raise StoreError(self._describe_damage("its indices and its tables differ"))
        return row[0]

    def _decode_block(self, series: StoredSeries, first: Any, count: Any, checksum: Any, content: Any) -> Float32Array:
        """Check that a block was written for this series and these runs, and decode it."""
        fits = isinstance(first, int) and isinstance(count, int) and isinstance(content, bytes)
        if not fits or len(content) != 4 * count * series.setup.steps or abs(first) >= 2**62:
            raise StoreError(self._describe_damage(f"the block of run {first} has another size than stated"))
        if series.compute_checksum(first, count, content) != checksum:
            raise StoreError(self._describe_damage(f"the checksum of the block of run {first} is wrong"))
        return np.frombuffer(content, "<f4").reshape(count, series.setup.steps)

    # Used by reports

    def read_setups(self) -> dict[int, StoredSetup]:
        """Read all setups by their numbers."""
        setups = {}
        with self.translate_errors():
            for number, digest, key_text, versions in self.connection.execute(
                "SELECT id, digest, key, versions FROM setups ORDER BY id"
            ):
                try:
                    setup = StoredSetup.from_key_text(key_text, versions)
                except (ValueError, TypeError, KeyError, AttributeError):
                    setup = None
                if setup is None or setup.digest != digest:
                    raise StoreError(
                        self._describe_damage(f"the description of setup {number} is not what was written")
                    )
                setups[number] = setup
        return setups

    def read_series(self) -> dict[int, tuple[int, StoredSeries]]:
        """Read all series by their numbers, each with the number of its setup."""
        setups = self.read_setups()
        series = {}
        with self.translate_errors():
            for number, setup, params, noise in self.connection.execute(
                "SELECT id, setup, params, noise_stream FROM series ORDER BY setup, id"
            ):
                is_well_formed = isinstance(params, bytes) and len(params) % 8 == 0 and isinstance(noise, int)
                if setup not in setups or not is_well_formed:
                    raise StoreError(
                        self._describe_damage(f"the description of series {number} is not what was written")
                    )
                series[number] = setup, StoredSeries(setups[setup], params, noise)
        return series

    def read_regrets(self, number: int, series: StoredSeries) -> tuple[IntArray, Float32Array]:
        """Read all regrets of a series, an array (runs, steps), and the numbers of their runs, in order."""
        query = "SELECT first, count, checksum, regrets FROM blocks WHERE series = ? ORDER BY first"
        runs, parts, end = [], [], -1
        with self.translate_errors():
            for first, count, checksum, content in self.connection.execute(query, (number,)):
                part = self._decode_block(series, first, count, checksum, content)
                # Two processes may have divided the same runs into different blocks.
                old = min(max(0, end - first), count)
                runs.append(np.arange(first + old, first + count))
                parts.append(part[old:])
                end = max(end, first + count)
        if not parts:
            return np.empty(0, np.int64), np.empty((0, series.setup.steps), np.float32)
        return np.concatenate(runs), np.concatenate(parts)

    def count_contents(self) -> dict[int, tuple[int, int, int]]:
        """Count series, runs and blocks of each setup. A run in two blocks is counted twice."""
        query = """SELECT setup, count(DISTINCT series.id), sum(count), count(*) FROM series
                   JOIN blocks ON series = series.id GROUP BY setup"""
        with self.translate_errors():
            return {setup: (series, runs, blocks) for setup, series, runs, blocks in self.connection.execute(query)}

    def verify(self) -> dict[str, int]:
        """Check every page and every number. Return counts of the contents."""
        series = self.read_series()
        blocks = regrets = 0
        with self.translate_errors():
            (answer,) = self.connection.execute("PRAGMA integrity_check(1)").fetchone()
            if answer != "ok":
                raise StoreError(self._describe_damage(" ".join(str(answer).split())))
            for number, *block in self.connection.execute(
                "SELECT series, first, count, checksum, regrets FROM blocks ORDER BY rowid"
            ):
                if number not in series:
                    raise StoreError(self._describe_damage(f"the block of run {block[0]} belongs to no series"))
                blocks += 1
                regrets += self._decode_block(series[number][1], *block).size
        return {"setups": len(self.read_setups()), "series": len(series), "blocks": blocks, "regrets": regrets}


@contextmanager
def begin_read(connection: sqlite3.Connection) -> Iterator[None]:
    """Open a transaction that only reads, so that all its reads have the same version of the file."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        if connection.in_transaction:  # if SQLite cannot read, it has already rolled back
            connection.execute("ROLLBACK")


@contextmanager
def begin_write(connection: sqlite3.Connection) -> Iterator[None]:
    """Open a transaction that writes all or nothing. It waits for other writers first."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _check_path(path: Any) -> Path:
    if not isinstance(path, str | Path) or not str(path) or "\0" in str(path):
        raise StoreError("{} must be the name of a file, but got {!r}.", *(Argument("store"), path), argument="store")
    return Path(path)
