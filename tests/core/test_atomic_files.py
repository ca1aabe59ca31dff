"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import stat

import pytest

from banditune.core.atomic_files import write_atomically


def test_a_file_is_on_the_disk_before_it_takes_its_name_and_the_name_after_that(tmp_path, monkeypatch):
    done = []
    sync, replace = os.fsync, os.replace

    def synced(handle):
        done.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else f"file of {os.fstat(handle).st_size}")
        sync(handle)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", lambda old, new: (done.append("name"), replace(old, new)))
    write_atomically(tmp_path / "new.json", [b"12", b"345"])
    assert done == ["file of 5", "name", "folder"]
    assert (tmp_path / "new.json").read_bytes() == b"12345"


def test_new_files_get_the_processs_mask_which_is_left_alone(tmp_path, monkeypatch):
    path, before = tmp_path / "new.json", os.umask(0o027)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(os, "umask", lambda mask: pytest.fail("other threads make files too"))
            write_atomically(path, b"1")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_what_takes_the_place_of_a_private_file_was_never_public(tmp_path):
    path = tmp_path / "state.json"
    path.write_bytes(b"secret")
    path.chmod(0o400)
    seen = []

    def content():
        seen.extend(stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir() if each != path)
        yield b"more"

    write_atomically(path, content())
    assert seen == [0o600]
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"more", 0o400)
