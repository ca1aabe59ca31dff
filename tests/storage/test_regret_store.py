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
from helpers.stores import STORED_SERIES, simulated


def test_many_threads_make_and_fill_one_ledger(book):
    setup = StoredSetup.from_key_text(json.dumps({"at": [1]}))
    series = [StoredSeries(setup, np.array([value]).tobytes(), 0) for value in (0.1, 0.2)]
    numbers = np.arange(2000, dtype=np.float32)[:, None]
    trouble = []

    def write(seed):
        chance = random.Random(seed)
        try:
            with RegretStore(book) as ledger:
                for _ in range(30):
                    first = chance.randrange(1900)
                    part = numbers[first : first + chance.randrange(1, 100)]
                    ledger.write_blocks([RegretBlock(one, first, part) for one in series])
        except BaseException as error:
            trouble.append(error)

    threads = [threading.Thread(target=write, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert trouble == []
    with RegretStore(book, read_only=True) as ledger:
        ledger.verify()
        for number, (_, one) in ledger.read_series().items():
            runs, regrets = ledger.read_regrets(number, one)
            assert (np.diff(runs) > 0).all()
            assert (regrets[:, 0] == runs).all()
            out = np.full((2000, 1), -1.0)
            missing = ledger.fill_stored(one, range(2000), out)
            assert sum(map(len, missing)) == 2000 - len(runs)
            assert (out[runs, 0] == runs).all()


LOOKER = """
import sys
from banditune.storage.regret_store import RegretStore
with RegretStore(sys.argv[1]) as ledger:
    print([ledger.read_regrets(number, series)[0].tolist() for number, (_, series) in ledger.read_series().items()])
"""


def is_refused(action, *arguments):
    """Whether an action on a store is refused with a sentence."""
    try:
        action(*arguments)
    except (bt.InvalidRequest, bt.errors.StoreError):
        return True
    return False


@pytest.mark.parametrize(
    ("look", "refused"),
    [
        (lambda book: None, False),
        (lambda book: RegretStore(book).close(), False),
        (lambda book: store_tables.verify_store(book), False),
        (lambda book: summary_records.load_store_summaries(book, lambda name: ()), True),
        (lambda book: read_records(book, lambda path: [read_beginning(path)]), False),
        (lambda book: check_writable(book), False),
    ],
)
def test_a_second_look_from_the_same_process_keeps_the_locks_of_the_first(book, look, refused):
    """Without the locks another process would regard itself as the last one and remove the file still in use."""
    series = STORED_SERIES

    def seen_by_another():
        command = [sys.executable, "-c", LOOKER, str(book)]
        return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    with RegretStore(book) as ledger:
        ledger.write_blocks([RegretBlock(series, 0, np.ones((1, 1), np.float32))])
        assert is_refused(look, book) == refused
        assert seen_by_another() == [[0]]
        ledger.write_blocks([RegretBlock(series, BLOCK_SIZE, np.ones((1, 1), np.float32))])
        assert seen_by_another() == [[0, BLOCK_SIZE]]


def changed(book, *statements):
    simulated(book)
    connection = sqlite3.connect(book)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    ("prepare", "sentence"),
    [
        (
            lambda book: changed(book, f"PRAGMA user_version = {FORMAT_VERSION + 1}"),
            "a newer banditune wrote it in format 2",
        ),
        (lambda book: changed(book, "PRAGMA application_id = 7"), "it is another SQLite file"),
        (lambda book: changed(book, "DROP TABLE blocks"), "its tables are not those of a store"),
        (lambda book: sqlite3.connect(book).execute("CREATE TABLE t (x)").connection.close(), "another SQLite file"),
        (lambda book: book.write_text("gamma,regret\n" * 1000), "it is no SQLite file"),
        (lambda book: book.write_text("x"), "it is no SQLite file"),
        (lambda book: book.mkdir(), "it is a folder|there is none"),
        (lambda book: changed(book) or book.chmod(0o444), "it is read-only"),
    ],
)
def test_a_file_that_is_no_ledger_of_ours_is_refused_and_left_alone(book, prepare, sentence):
    prepare(book)
    before = book.read_bytes() if book.is_file() else b""
    with pytest.raises(bt.errors.StoreError, match=sentence):
        simulated(book)
    if "read-only" in sentence:
        assert store_tables.verify_store(book)["regrets"] == 50
    else:
        with pytest.raises(bt.errors.StoreError, match=sentence):
            store_tables.verify_store(book)
    assert before == (book.read_bytes() if book.is_file() else b"")


@pytest.mark.parametrize("ledger", [7, "", "a\0b", "/no/such/folder/study.ledger", "/dev/null/x"])
def test_a_name_that_cannot_be_a_ledger_is_refused(ledger):
    with pytest.raises(bt.errors.StoreError, match=r"`store` must be the name of a file|there is no folder"):
        simulated(ledger)


def test_an_empty_file_becomes_a_ledger(book):
    book.touch()
    with pytest.raises(bt.errors.StoreError, match="it is empty"):
        store_tables.verify_store(book)
    simulated(book)
    assert store_tables.verify_store(book)["regrets"] == 50


def test_a_ledger_that_another_process_holds_is_waited_for_and_then_refused(book, monkeypatch):
    simulated(book)
    monkeypatch.setattr("banditune.storage.store_layout.LOCK_TIMEOUT", 0.05)
    holder = sqlite3.connect(book, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(bt.errors.StoreError, match="another process held it"):
        simulated(book, 0.7)
    holder.close()
    simulated(book, 0.7)


@pytest.mark.parametrize("old", [True, False])
@pytest.mark.parametrize("when", ["_connect", "_identify_file"])
@pytest.mark.parametrize("again", [True, False])
def test_a_ledger_that_is_taken_away_while_it_opens_is_refused(tmp_path, monkeypatch, old, when, again):
    book, moved = tmp_path / "book", tmp_path / "moved"
    if old:
        RegretStore(book).close()
    step = getattr(RegretStore, when)

    def slow(ledger, *text):
        found = step(ledger, *text)
        if not moved.exists():
            book.rename(moved)
            if again and (old or when == "_identify_file"):
                book.write_bytes(moved.read_bytes())
        return found

    monkeypatch.setattr(RegretStore, when, slow)
    # SQLite finds out by itself where it still has to write.
    text = "must stay where it is while a study opens it, but it was removed, moved|disk I/O error"
    with pytest.raises(bt.errors.StoreError, match=text):
        RegretStore(book)


def test_a_program_may_go_to_another_folder_while_its_ledger_is_open(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with RegretStore("book") as ledger:
        monkeypatch.chdir("/")
        ledger.write_blocks([RegretBlock(STORED_SERIES, 0, np.ones((1, 1), np.float32))])
    assert store_tables.verify_store(tmp_path / "book")["regrets"] == 1
