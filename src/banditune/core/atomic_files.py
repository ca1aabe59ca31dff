"""Writes files completely or not at all, and reads the first bytes of files."""

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

from banditune.core.errors import BanditTuneError, InvalidRequest


def write_atomically(path: str | Path, content: bytes | Iterable[bytes]) -> None:
    """Write a file completely or not at all. Links are followed, modes are kept, and devices are written directly."""
    target = Path(path).resolve()
    chunks = [content] if isinstance(content, bytes) else content
    try:
        if target.exists() and not target.is_file():
            with target.open("wb") as file:
                file.writelines(chunks)
            return
        with open_replacement(target) as file:
            file.writelines(chunks)
    except BanditTuneError:  # from the content, such as a damaged store
        raise
    except OSError as error:
        raise make_write_error(path, error) from error


@contextmanager
def open_replacement(target: Path) -> Iterator[BinaryIO]:
    """Open a new file that replaces another, with its mode, after all its content is on the disk.

    If the content were not yet on the disk, a power failure could leave an empty file instead of the old one.
    """
    mode = target.stat().st_mode & 0o7777 if target.exists() else None
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    # The file is private until it has the mode of the old file. A new file has 0o666 without the process's mask.
    initial_mode = 0o666 if mode is None else 0o600
    try:
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, initial_mode)) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Wait until a folder's new names are on the disk, if the system supports this."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def check_writable(path: str | Path) -> None:
    """Raise before the work starts if a path cannot be written."""
    folder = Path(path).resolve().parent
    if not folder.is_dir():
        raise make_write_error(path, f"there is no folder {str(folder)!r}")
    if Path(path).is_dir():
        raise make_write_error(path, "it is a folder")
    try:
        # An existing file is not opened: see `read_beginning`.
        if Path(path).exists():
            _check_access(path, os.W_OK)
            return
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise make_write_error(path, error) from error


def create_folder(folder: Path) -> None:
    """Create a folder and its parents."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        text = f"the folder {str(folder)!r} cannot be created: {error.strerror or error}."
        raise InvalidRequest(text, code="cannot-write") from error


def make_write_error(path: str | Path, why: OSError | str) -> InvalidRequest:
    """Make the error for a file that cannot be written."""
    reason = getattr(why, "strerror", None) or why
    return InvalidRequest(f"the file {str(path)!r} cannot be written: {reason}.", code="cannot-write")


def make_read_error(what: str, path: str | Path, why: Exception | str) -> InvalidRequest:
    """Make the error for a file that cannot be read; `what` describes the file, as in "the state"."""
    reason = getattr(why, "strerror", None) or why
    return InvalidRequest(f"{what} {str(path)!r} cannot be read: {reason}.", code="cannot-read")


SQLITE_HEADER = b"SQLite format 3\0"
"""The first bytes of an SQLite database, such as a store."""


SMALLEST_DATABASE = 512
"""The smallest size of a database in bytes."""


def read_beginning(path: str | Path) -> bytes:
    """Read the first bytes of a file. For a database, return the header that all databases have.

    This process may have the database open. POSIX releases all locks of a process on a file when it closes any descriptor
    of that file. Other processes could then overwrite the database while this one writes. So databases are only opened
    with SQLite.
    """
    try:
        if os.stat(path).st_size >= SMALLEST_DATABASE:
            _check_access(path, os.R_OK)
            if _is_database(path):
                return SQLITE_HEADER
        with open(path, "rb") as file:
            return file.read(SMALLEST_DATABASE)
    except OSError as error:
        raise make_read_error("the file", path, error) from error


def _is_database(path: str | Path) -> bool:
    import sqlite3

    try:
        with closing(sqlite3.connect(f"file:{quote(str(Path(path).resolve()))}?mode=ro", uri=True)) as connection:
            connection.execute("PRAGMA schema_version")
    except sqlite3.Error as error:
        return getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_NOTADB
    return True


def _check_access(path: str | Path, access: int) -> None:
    if not os.access(path, access):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
