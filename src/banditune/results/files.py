"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from banditune.contracts import BadRequest


def write_whole(path: str | Path, content: bytes | Iterable[bytes]) -> None:
    """Write a file, whole or not at all; links are followed, modes kept, devices and pipes written to as they are."""
    target = Path(path).resolve()
    parts = [content] if isinstance(content, bytes) else content
    try:
        if target.exists() and not target.is_file():
            with target.open("wb") as file:
                file.writelines(parts)
            return
        with replacing(target) as file:
            file.writelines(parts)
    except OSError as error:
        raise BadRequest(f"the file {str(path)!r} cannot be written: {error.strerror or error}.") from error


@contextmanager
def replacing(target: Path) -> Iterator[BinaryIO]:
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
        raise BadRequest(f"the file {str(path)!r} cannot be written: there is no folder {str(folder)!r}.")
    if Path(path).is_dir():
        raise BadRequest(f"the file {str(path)!r} cannot be written: it is a folder.")
    try:
        if Path(path).exists():
            with open(path, "ab"):
                return
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise BadRequest(f"the file {str(path)!r} cannot be written: {error.strerror or error}.") from error
