"""Files that are written whole or not at all, and how files begin."""

from __future__ import annotations

import errno
import os
import secrets
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

from banditune.core.errors import InvalidRequest


def write_atomically(path: str | Path, content: bytes | Iterable[bytes]) -> None:
    """Write a file, whole or not at all; links are followed, modes kept, devices and pipes written to as they are."""
    target = Path(path).resolve()
    parts = [content] if isinstance(content, bytes) else content
    try:
        if target.exists() and not target.is_file():
            with target.open("wb") as file:
                file.writelines(parts)
            return
        with open_replacement(target) as file:
            file.writelines(parts)
    except OSError as error:
        raise InvalidRequest(f"the file {str(path)!r} cannot be written: {error.strerror or error}.") from error


@contextmanager
def open_replacement(target: Path) -> Iterator[BinaryIO]:
    """A new file that takes the place of another, with its mode, when all is written and on the disk.

    Without waiting for the disk, a power cut could leave the new name with an empty file, and the old one gone.
    """
    mode = target.stat().st_mode & 0o7777 if target.exists() else None
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    # Private until it has the old file's mode; a new file gets what the process's mask leaves of 0o666.
    first = 0o666 if mode is None else 0o600
    try:
        with open(part, "xb", opener=lambda name, flags: os.open(name, flags, first)) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(part, mode)
        os.replace(part, target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Wait until a folder's new names are on the disk, where there is a way to ask for that."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def check_writable(path: str | Path) -> None:
    """Complain before the work, not after it, about a path that cannot be written."""
    folder = Path(path).resolve().parent
    if not folder.is_dir():
        raise InvalidRequest(f"the file {str(path)!r} cannot be written: there is no folder {str(folder)!r}.")
    if Path(path).is_dir():
        raise InvalidRequest(f"the file {str(path)!r} cannot be written: it is a folder.")
    try:
        # What is there is not opened: see `read_beginning`.
        if Path(path).exists():
            _check_access(path, os.W_OK)
            return
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InvalidRequest(f"the file {str(path)!r} cannot be written: {error.strerror or error}.") from error


SQLITE_HEADER = b"SQLite format 3\0"
"""What a database begins with, ledgers too."""


SMALLEST_DATABASE = 512
"""Bytes of a database at least."""


def read_beginning(path: str | Path) -> bytes:
    """The first bytes of a file, of a database only those that all begin with.

    This process may be using that database: opened by hand and closed again it would lose all locks that the process has on
    it (POSIX lets go of them with any descriptor), and others would take away what it still writes to. SQLite knows better.
    """
    try:
        if os.stat(path).st_size >= SMALLEST_DATABASE:
            _check_access(path, os.R_OK)
            if _is_database(path):
                return SQLITE_HEADER
        with open(path, "rb") as file:
            return file.read(SMALLEST_DATABASE)
    except OSError as error:
        raise InvalidRequest(f"the file {str(path)!r} cannot be read: {error.strerror or error}.") from error


def _is_database(path: str | Path) -> bool:
    import sqlite3

    try:
        with closing(sqlite3.connect(f"file:{quote(str(Path(path).resolve()))}?mode=ro", uri=True)) as connection:
            connection.execute("PRAGMA schema_version")
    except sqlite3.Error as error:
        return getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_NOTADB
    return True


def _check_access(path: str | Path, how: int) -> None:
    if not os.access(path, how):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
