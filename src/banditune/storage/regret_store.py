"""A store: one SQLite file that keeps every regret of a study under the key of its simulation. docs/ledger.md describes the file."""

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
from banditune.core.errors import InvalidRequest
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
    """An open ledger. Use it in one thread, and close it."""

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self.path = _check_path(path)
        self.numbers: dict[tuple[bytes, bytes, int], int] = {}
        """Series by their keys, as far as this process wrote to them."""
        self.place = self.path.resolve()  # also after the program went to another folder
        self.file: tuple[int, int] | None = None
        with self.sentences():
            self.connection = self._opened_to_read() if read_only else self._opened_to_write()

    def close(self) -> None:
        """Close the file; SQLite then takes away the two files beside it."""
        with self.sentences():
            self.connection.close()

    def __enter__(self) -> RegretStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Opening

    def _opened_to_read(self) -> sqlite3.Connection:
        if not self.path.is_file():
            raise InvalidRequest(f"the ledger {str(self.path)!r} must be a file, but there is none.")
        # Whoever may write takes away the files that SQLite needs beside this one. Where neither can be written, a file
        # that has none beside it can still be read.
        lonely = not self.path.with_name(self.path.name + "-wal").exists()
        modes = ["rw", "ro", *(["ro&immutable=1"] if lonely else [])]
        for mode in modes:
            connection = self._connect(mode)
            try:
                connection.execute("PRAGMA query_only = ON")
                if self._kind(connection) == "empty":
                    raise InvalidRequest(f"the file {str(self.path)!r} must be a ledger, but it is empty.")
                return connection
            except BaseException as error:
                connection.close()
                if not isinstance(error, sqlite3.OperationalError) or mode == modes[-1]:
                    raise
        raise AssertionError

    def _opened_to_write(self) -> sqlite3.Connection:
        check_writable(self.path)
        self.file = self._file()
        if self.path.exists() and not self.path.stat().st_mode & 0o222:
            raise InvalidRequest(
                f"the ledger {str(self.path)!r} must be writable, but it is read-only; use a copy of it."
            )
        connection = self._connect("rwc")
        try:
            self.file = self.file or self._file()  # SQLite has made it by now
            connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
            if self._kind(connection) == "empty":
                self._patiently(connection, "PRAGMA journal_mode = WAL")
                with begin_write(connection):
                    if self._kind(connection) == "empty":  # nobody else was faster
                        for statement in CREATE_TABLES.values():
                            connection.execute(statement)
                        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                        connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
            # In a WAL what a killed process wrote is there; only a power cut can lose the last moments.
            connection.execute("PRAGMA synchronous = NORMAL")
            self._check_in_place("opens it")
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect(self, mode: str) -> sqlite3.Connection:
        self._check_beginning()
        name = f"file:{quote(str(self.path.resolve()))}?mode={mode}"
        connection = sqlite3.connect(name, timeout=LOCK_TIMEOUT, isolation_level=None, uri=True)
        connection.execute("PRAGMA cell_size_check = ON")
        return connection

    def _check_beginning(self) -> None:
        """SQLite takes a short file for an empty one, and would write over it."""
        if not self.path.is_file() or not 0 < self.path.stat().st_size < SMALLEST_DATABASE:
            return
        head = read_beginning(self.path)
        if not head.startswith(SQLITE_HEADER[: max(1, len(head))]):
            raise sqlite3.DatabaseError("file is not a database")
        raise InvalidRequest(self._damaged("it ends too early"))

    def _patiently(self, connection: sqlite3.Connection, statement: str) -> None:
        """For a statement that does not wait for others by itself."""
        end = time.monotonic() + LOCK_TIMEOUT
        while True:
            try:
                connection.execute(statement)
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > end:
                    raise
                time.sleep(0.01)

    def _kind(self, connection: sqlite3.Connection) -> str:
        """ "ledger" or "empty"; any other file is refused, and not touched."""
        # In one transaction: else another process may make the ledger between two looks at it.
        with nullcontext() if connection.in_transaction else begin_read(connection):
            (mark,), (version,) = (
                connection.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
            )
            tables = dict(connection.execute("SELECT name, sql FROM sqlite_master").fetchall())
        if (mark, version, tables) == (0, 0, {}):
            return "empty"
        if mark != APPLICATION_ID or version < 1:
            raise InvalidRequest(
                f"the file {str(self.path)!r} must be a ledger, but it is another SQLite file; give a ledger or a new name."
            )
        if version > FORMAT_VERSION:
            raise InvalidRequest(
                f"the ledger {str(self.path)!r} must have format {FORMAT_VERSION} or older, but a newer banditune wrote it in "
                f"format {version}; upgrade banditune, or use another file."
            )
        if any(tables.get(name) != made for name, made in CREATE_TABLES.items()):
            raise InvalidRequest(self._damaged("its tables are not those of a ledger"))
        return "ledger"

    def _file(self) -> tuple[int, int] | None:
        """Which file it is, whatever its name."""
        try:
            found = self.place.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _check_in_place(self, what: str) -> None:
        """What is written to a file that was taken away is lost, and SQLite does not mind."""
        if self.file is None or self._file() != self.file:
            raise InvalidRequest(
                f"the ledger {str(self.path)!r} must stay where it is while a study {what}, but it was removed, moved or "
                "replaced; put it back if it was moved, and start the study again."
            )

    @contextmanager
    def sentences(self) -> Iterator[None]:
        """SQLite's complaints as sentences."""
        try:
            yield
        except (sqlite3.Error, UnicodeError, OverflowError) as error:
            raise InvalidRequest(self._explained(error)) from error

    def _explained(self, error: Exception) -> str:
        told, name = str(error), repr(str(self.path))
        if "not a database" in told:
            return f"the file {name} must be a ledger, but it is no SQLite file, or its beginning is damaged."
        if "locked" in told or "busy" in told:
            return f"the ledger {name} must be free to write, but another process held it for {LOCK_TIMEOUT:.0f} s; try again."
        if isinstance(error, sqlite3.OperationalError) and any(
            word in told for word in ("readonly", "unable to open", "full", "disk I/O")
        ):
            return f"the ledger {name} cannot be written or read here: {told}."
        return self._damaged(told)

    def _damaged(self, what: str) -> str:
        return (
            f"the ledger {str(self.path)!r} must be as it was written, but it is damaged: {what}; use a copy of it, or "
            "move it away and begin again."
        )

    # What a study needs

    def fill(self, series: StoredSeries, runs: range, out: FloatArray) -> list[range]:
        """Put the regrets that are stored into `out`, an array (runs, steps); returns the runs that are missing."""
        lacks = np.ones(len(runs), np.bool_)
        wanted = (runs.start // BLOCK_SIZE * BLOCK_SIZE, runs.stop, series.setup.digest, series.params, series.noise)
        with self.sentences():
            for first, count, checksum, content in self.connection.execute(SELECT_BLOCKS, wanted):
                regrets = self._checked(series, first, count, checksum, content)
                start, stop = max(first, runs.start), min(first + count, runs.stop)
                if start < stop:
                    out[start - runs.start : stop - runs.start] = regrets[start - first : stop - first]
                    lacks[start - runs.start : stop - runs.start] = False
        return find_ranges(lacks, runs.start)

    def keep(self, blocks: Iterable[RegretBlock]) -> None:
        """Store blocks, all or none; one that is there already is left as it is."""
        self._check_in_place("writes to it")
        try:
            with self.sentences(), begin_write(self.connection):
                for whole in blocks:
                    number = self._number(whole.series)
                    for first, regrets in cut_at_blocks(whole.first, whole.regrets):
                        content = np.ascontiguousarray(regrets, "<f4").tobytes()
                        checksum = whole.series.checksum(first, len(regrets), content)
                        self.connection.execute(UPSERT_BLOCK, (number, first, len(regrets), checksum, content))
        except BaseException:
            self.numbers.clear()  # what this transaction numbered is gone
            raise

    def _number(self, series: StoredSeries) -> int:
        """The number of a series in the file, which is given now if it has none."""
        setup, params, noise = series
        key = (setup.digest, params, noise)
        if key not in self.numbers:
            run = self.connection.execute
            run("INSERT OR IGNORE INTO setups (digest, told, versions) VALUES (?, ?, ?)", setup[:3])
            row = (self._id("SELECT id FROM setups WHERE digest = ?", setup.digest), params, noise)
            run("INSERT OR IGNORE INTO series (setup, params, noise) VALUES (?, ?, ?)", row)
            self.numbers[key] = self._id("SELECT id FROM series WHERE setup = ? AND params = ? AND noise = ?", *row)
        return self.numbers[key]

    def _id(self, query: str, *key: Any) -> int:
        """The number of something that was just written."""
        found = self.connection.execute(query, key).fetchone()
        if found is None or not isinstance(found[0], int):
            raise InvalidRequest(self._damaged("its indices do not fit its tables"))
        return found[0]

    def _checked(self, series: StoredSeries, first: Any, count: Any, checksum: Any, content: Any) -> Float32Array:
        """The numbers of a block, if they are what was written for this series and these runs."""
        fits = isinstance(first, int) and isinstance(count, int) and isinstance(content, bytes)
        if not fits or len(content) != 4 * count * series.setup.steps or abs(first) >= 2**62:
            raise InvalidRequest(self._damaged(f"the block of run {first} has another size than it says"))
        if series.checksum(first, count, content) != checksum:
            raise InvalidRequest(self._damaged(f"the checksum of the block of run {first} is wrong"))
        return np.frombuffer(content, "<f4").reshape(count, series.setup.steps)

    # What reports need

    def setups(self) -> dict[int, StoredSetup]:
        """All setups by their numbers."""
        found = {}
        with self.sentences():
            for number, digest, told, versions in self.connection.execute(
                "SELECT id, digest, told, versions FROM setups ORDER BY id"
            ):
                try:
                    setup = StoredSetup.of(told, versions)
                except (ValueError, TypeError, KeyError, AttributeError):
                    setup = None
                if setup is None or setup.digest != digest:
                    raise InvalidRequest(self._damaged(f"the description of setup {number} is not what was written"))
                found[number] = setup
        return found

    def series(self) -> dict[int, tuple[int, StoredSeries]]:
        """All series by their numbers, each with the number of its setup."""
        setups = self.setups()
        found = {}
        with self.sentences():
            for number, setup, params, noise in self.connection.execute(
                "SELECT id, setup, params, noise FROM series ORDER BY setup, id"
            ):
                whole = isinstance(params, bytes) and len(params) % 8 == 0 and isinstance(noise, int)
                if setup not in setups or not whole:
                    raise InvalidRequest(self._damaged(f"the description of series {number} is not what was written"))
                found[number] = setup, StoredSeries(setups[setup], params, noise)
        return found

    def regrets(self, number: int, series: StoredSeries) -> tuple[IntArray, Float32Array]:
        """All regrets of a series, an array (runs, steps), and the numbers of their runs, in order and each once."""
        query = "SELECT first, count, checksum, regrets FROM blocks WHERE series = ? ORDER BY first"
        runs, parts, end = [], [], -1
        with self.sentences():
            for first, count, checksum, content in self.connection.execute(query, (number,)):
                part = self._checked(series, first, count, checksum, content)
                # Two processes may have cut the same runs in different ways.
                old = min(max(0, end - first), count)
                runs.append(np.arange(first + old, first + count))
                parts.append(part[old:])
                end = max(end, first + count)
        if not parts:
            return np.empty(0, np.int64), np.empty((0, series.setup.steps), np.float32)
        return np.concatenate(runs), np.concatenate(parts)

    def counted(self) -> dict[int, tuple[int, int, int]]:
        """Series, runs and blocks of each setup; a run that is stored twice counts twice."""
        query = """SELECT setup, count(DISTINCT series.id), sum(count), count(*) FROM series
                   JOIN blocks ON series = series.id GROUP BY setup"""
        with self.sentences():
            return {setup: (series, runs, blocks) for setup, series, runs, blocks in self.connection.execute(query)}

    def verify(self) -> dict[str, int]:
        """Check every page and every number; returns how much there is."""
        told = self.series()
        blocks = regrets = 0
        with self.sentences():
            (answer,) = self.connection.execute("PRAGMA integrity_check(1)").fetchone()
            if answer != "ok":
                raise InvalidRequest(self._damaged(" ".join(str(answer).split())))
            for number, *block in self.connection.execute(
                "SELECT series, first, count, checksum, regrets FROM blocks ORDER BY rowid"
            ):
                if number not in told:
                    raise InvalidRequest(self._damaged(f"the block of run {block[0]} belongs to no series"))
                blocks += 1
                regrets += self._checked(told[number][1], *block).size
        return {"setups": len(self.setups()), "series": len(told), "blocks": blocks, "regrets": regrets}


@contextmanager
def begin_read(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction that only reads: all of it sees the same file."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        if connection.in_transaction:  # SQLite has given up by itself where it could not read
            connection.execute("ROLLBACK")


@contextmanager
def begin_write(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing; waits for other writers first."""
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
        raise InvalidRequest(f"`ledger` must be the name of a file, but got {path!r}.")
    return Path(path)
