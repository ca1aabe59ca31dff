"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import stat

import pytest

from banditune.core.atomic_files import write_atomically


def test_a_file_is_synchronized_before_it_is_renamed(tmp_path, monkeypatch):
    calls = []
    sync, replace = os.fsync, os.replace

    def record_sync(handle):
        calls.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else f"file of {os.fstat(handle).st_size}")
        sync(handle)

    monkeypatch.setattr(os, "fsync", record_sync)
    monkeypatch.setattr(os, "replace", lambda old, new: (calls.append("name"), replace(old, new)))
    write_atomically(tmp_path / "new.json", [b"12", b"345"])
    assert calls == ["file of 5", "name", "folder"]
    assert (tmp_path / "new.json").read_bytes() == b"12345"


def test_new_files_have_the_mode_of_the_process_mask(tmp_path, monkeypatch):
    path, before = tmp_path / "new.json", os.umask(0o027)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(os, "umask", lambda mask: pytest.fail("other threads make files too"))
            write_atomically(path, b"1")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_the_replacement_of_a_private_file_is_never_public(tmp_path):
    path = tmp_path / "state.json"
    path.write_bytes(b"secret")
    path.chmod(0o400)
    modes = []

    def iterate_content():
        modes.extend(stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir() if each != path)
        yield b"more"

    write_atomically(path, iterate_content())
    assert modes == [0o600]
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"more", 0o400)
