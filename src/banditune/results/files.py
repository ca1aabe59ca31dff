"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

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
        mode = target.stat().st_mode & 0o7777 if target.exists() else 0o666 & ~_umask()
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.writelines(parts)
            os.chmod(name, mode)
            os.replace(name, target)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise BadRequest(f"the file {str(path)!r} cannot be written: {error.strerror or error}.") from error


def _umask() -> int:
    """The mask of new files' modes, which can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


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
