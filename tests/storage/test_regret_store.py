"""The store file: threads, locks, names and files that are refused."""

from __future__ import annotations

import json
import random
import sqlite3
import subprocess
import sys
import threading

import numpy as np
import pytest

import banditune as bt
from banditune.core.atomic_files import check_writable, read_beginning
from banditune.reports.report_files import read_records
from banditune.simulation.instances import BLOCK_SIZE
from banditune.storage import store_tables, summary_records
from banditune.storage.regret_store import RegretStore
from banditune.storage.store_layout import (
    FORMAT_VERSION,
    RegretBlock,
    StoredSeries,
    StoredSetup,
)
from helpers.stores import EXAMPLE_SERIES, simulate_with_store


def test_many_threads_write_to_one_store(store):
    setup = StoredSetup.from_key_text(json.dumps({"checkpoints": [1]}))
    series = [StoredSeries(setup, np.array([value]).tobytes(), 0) for value in (0.1, 0.2)]
    numbers = np.arange(2000, dtype=np.float32)[:, None]
    errors = []

    def write(seed):
        rng = random.Random(seed)
        try:
            with RegretStore(store) as open_store:
                for _ in range(30):
                    first = rng.randrange(1900)
                    part = numbers[first : first + rng.randrange(1, 100)]
                    open_store.write_blocks([RegretBlock(series_of_value, first, part) for series_of_value in series])
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    with RegretStore(store, read_only=True) as open_store:
        open_store.verify()
        for number, (_, series_of_value) in open_store.read_series().items():
            runs, regrets = open_store.read_regrets(number, series_of_value)
            assert (np.diff(runs) > 0).all()
            assert (regrets[:, 0] == runs).all()
            out = np.full((2000, 1), -1.0)
            missing = open_store.fill_stored(series_of_value, range(2000), out)
            assert sum(map(len, missing)) == 2000 - len(runs)
            assert (out[runs, 0] == runs).all()


READER_SCRIPT = """
import sys
from banditune.storage.regret_store import RegretStore
with RegretStore(sys.argv[1]) as store:
    print([store.read_regrets(number, series)[0].tolist() for number, (_, series) in store.read_series().items()])
"""


def is_refused(action, *arguments):
    """Whether an action on a store is refused."""
    try:
        action(*arguments)
    except (bt.InvalidRequest, bt.errors.StoreError):
        return True
    return False


@pytest.mark.parametrize(
    ("action", "refused"),
    [
        (lambda store: None, False),
        (lambda store: RegretStore(store).close(), False),
        (lambda store: store_tables.verify_store(store), False),
        (lambda store: summary_records.load_store_summaries(store, lambda name: ()), True),
        (lambda store: read_records(store, lambda path: [read_beginning(path)]), False),
        (lambda store: check_writable(store), False),
    ],
)
def test_opening_a_store_twice_keeps_its_locks(store, action, refused):
    """Without the locks, another process would consider itself the last one and remove the file in use."""
    series = EXAMPLE_SERIES

    def read_in_another_process():
        command = [sys.executable, "-c", READER_SCRIPT, str(store)]
        return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    with RegretStore(store) as open_store:
        open_store.write_blocks([RegretBlock(series, 0, np.ones((1, 1), np.float32))])
        assert is_refused(action, store) == refused
        assert read_in_another_process() == [[0]]
        open_store.write_blocks([RegretBlock(series, BLOCK_SIZE, np.ones((1, 1), np.float32))])
        assert read_in_another_process() == [[0, BLOCK_SIZE]]


def modify_store(store, *statements):
    """Create a store and run SQL statements on it."""
    simulate_with_store(store)
    connection = sqlite3.connect(store)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (
            lambda store: modify_store(store, f"PRAGMA user_version = {FORMAT_VERSION + 1}"),
            "a newer banditune wrote it in format 2",
        ),
        (lambda store: modify_store(store, "PRAGMA application_id = 7"), "it is another SQLite file"),
        (lambda store: modify_store(store, "DROP TABLE blocks"), "its tables are not those of a store"),
        (lambda store: sqlite3.connect(store).execute("CREATE TABLE t (x)").connection.close(), "another SQLite file"),
        (lambda store: store.write_text("gamma,regret\n" * 1000), "it is not an SQLite file"),
        (lambda store: store.write_text("x"), "it is not an SQLite file"),
        (lambda store: store.mkdir(), "it is a folder|there is none"),
        (lambda store: modify_store(store) or store.chmod(0o444), "it is read-only"),
    ],
)
def test_another_file_is_refused_and_not_changed(store, prepare, message):
    prepare(store)
    before = store.read_bytes() if store.is_file() else b""
    with pytest.raises(bt.errors.StoreError, match=message):
        simulate_with_store(store)
    if "read-only" in message:
        assert store_tables.verify_store(store)["regrets"] == 50
    else:
        with pytest.raises(bt.errors.StoreError, match=message):
            store_tables.verify_store(store)
    assert before == (store.read_bytes() if store.is_file() else b"")


@pytest.mark.parametrize("path", [7, "", "a\0b", "/no/such/folder/study.db", "/dev/null/x"])
def test_an_impossible_path_is_refused(path):
    with pytest.raises(bt.errors.StoreError, match=r"`store` must be the name of a file|there is no folder"):
        simulate_with_store(path)


def test_an_empty_file_becomes_a_store(store):
    store.touch()
    with pytest.raises(bt.errors.StoreError, match="it is empty"):
        store_tables.verify_store(store)
    simulate_with_store(store)
    assert store_tables.verify_store(store)["regrets"] == 50


def test_a_locked_store_is_refused_after_a_timeout(store, monkeypatch):
    simulate_with_store(store)
    monkeypatch.setattr("banditune.storage.store_layout.LOCK_TIMEOUT", 0.05)
    holder = sqlite3.connect(store, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(bt.errors.StoreError, match="another process held it"):
        simulate_with_store(store, 0.7)
    holder.close()
    simulate_with_store(store, 0.7)


@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize("method", ["_connect", "_identify_file"])
@pytest.mark.parametrize("replaced", [True, False])
def test_a_store_that_is_moved_while_it_opens_is_refused(tmp_path, monkeypatch, exists, method, replaced):
    store, moved = tmp_path / "study.db", tmp_path / "moved"
    if exists:
        RegretStore(store).close()
    step = getattr(RegretStore, method)

    def move_first(open_store, *arguments):
        result = step(open_store, *arguments)
        if not moved.exists():
            store.rename(moved)
            if replaced and (exists or method == "_identify_file"):
                store.write_bytes(moved.read_bytes())
        return result

    monkeypatch.setattr(RegretStore, method, move_first)
    # SQLite finds out by itself where it still has to write.
    message = "must not be moved while a study opens it, but it was removed, moved|disk I/O error"
    with pytest.raises(bt.errors.StoreError, match=message):
        RegretStore(store)


def test_a_program_may_change_its_folder_while_a_store_is_open(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with RegretStore("study.db") as open_store:
        monkeypatch.chdir("/")
        open_store.write_blocks([RegretBlock(EXAMPLE_SERIES, 0, np.ones((1, 1), np.float32))])
    assert store_tables.verify_store(tmp_path / "study.db")["regrets"] == 1
