"""Studies that are killed, interrupted, or lose their store."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import time

import pytest

import banditune as bt
from banditune.storage import store_tables, store_writer
from helpers.stores import PROBLEM

STUDY = """
import sys
import banditune as bt

result = bt.tune(
    bt.UCB1(noise=0.5), bt.Bernoulli(arms=10), horizon=int(sys.argv[1]), budget=400,
    search=bt.Search(validate=200),
    simulation=bt.Simulation(shortcuts=False),
    run=bt.Run(
        workers=1,
        store=sys.argv[2] if len(sys.argv) > 2 else None,
        progress=lambda done, total: print("playing", file=sys.stderr, flush=True),
    ),
)
print(result.to_json())
"""


def killed_until_done(book, command, kills, seed, longest):
    """Start a study again and again, and kill it at random moments; then let it end. Returns its result, and how many runs
    were stored after each kill.
    """
    chance = random.Random(seed)
    runs = []
    for _ in range(kills):
        process = subprocess.Popen([*command, str(book)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if chance.random() < 0.25:
            while not book.exists():  # while the file is made, or right after the start
                time.sleep(0.001)
            time.sleep(chance.uniform(0, 0.02))
        else:
            assert process.stderr.readline() == b"playing\n"
            time.sleep(chance.uniform(0, longest))
        process.kill()
        process.communicate()
        assert process.returncode in (-signal.SIGKILL, 0)
        runs.append(sum(setup["runs"] for setup in stored(book)))
    done = subprocess.run([*command, str(book)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert runs == sorted(runs)
    return done.stdout, runs


def stored(book):
    try:
        return store_tables.read_overview(book)["setups"]
    except bt.errors.StoreError as error:  # killed before there was anything
        assert "it is empty" in str(error) or "there is none" in str(error)
        return []


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    path = tmp_path_factory.mktemp("study") / "study.py"
    path.write_text(STUDY)
    return [sys.executable, str(path)]


@pytest.fixture(scope="module")
def unbroken(study):
    return subprocess.run([*study, "10000"], capture_output=True, text=True, timeout=300, check=True).stdout


def test_a_study_that_was_killed_twice_ends_with_the_same_result(book, study, unbroken):
    result, runs = killed_until_done(book, [*study, "10000"], 2, seed=3, longest=0.8)
    assert result == unbroken
    assert runs[-1] > 0


@pytest.mark.slow
def test_a_study_that_was_killed_twenty_times_ends_with_the_same_result(book, study):
    # So long that no study ends before its first kill.
    unbroken = subprocess.run([*study, "200000"], capture_output=True, text=True, timeout=300, check=True).stdout
    result, runs = killed_until_done(book, [*study, "200000"], 20, seed=2, longest=2.5)
    assert result == unbroken
    assert len(set(runs)) > 1
    store_tables.verify_store(book)


def test_two_processes_use_one_ledger_at_the_same_time(book, study, unbroken):
    both = [
        subprocess.Popen([*study, "10000", str(book)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for process in both:
        result, errors = process.communicate(timeout=300)
        assert set(errors.split()) == {"playing"}
        assert result == unbroken
    assert store_tables.verify_store(book)["setups"] == 1


TAKE = {
    "removed": shutil.rmtree,
    "moved": lambda folder: folder.rename(folder.with_name("new")),
    "replaced": lambda folder: (folder / "other").replace(folder / "study.ledger"),
}


@pytest.mark.parametrize("take", TAKE.values(), ids=TAKE)
def test_a_ledger_that_is_taken_away_ends_the_study(tmp_path, monkeypatch, take):
    monkeypatch.setattr(store_writer, "WRITE_INTERVAL_SECONDS", 0.0)
    folder = tmp_path / "study"
    folder.mkdir()
    (folder / "other").write_text("")
    taken = []

    def progress(done, total):
        if not taken and done > total / 3:
            taken.append(take(folder))

    with pytest.raises(
        bt.errors.StoreError, match="must stay where it is while a study writes to it, but it was removed, moved"
    ):
        bt.simulate(
            bt.UCB1(noise=0.5),
            PROBLEM,
            0.3,
            horizon=100,
            runs=5000,
            run=bt.Run(workers=1, store=folder / "study.ledger", progress=progress),
        )
    assert taken


@pytest.mark.parametrize(
    ("sign", "code", "word"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "ended by SIGTERM")]
)
def test_ctrl_c_and_the_end_of_a_jobs_time_say_how_to_go_on(tmp_path, sign, code, word):
    book = tmp_path / "study.ledger"
    command = [sys.executable, "-m", "banditune", "tune", "--policy", "ucb1", "--problem", "bernoulli", "--horizon"]
    command += ["20000", "--budget", "3000", "--no-shortcuts", "--workers", "1", "--store", str(book)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 60
    while not stored(book) and time.monotonic() < end:
        time.sleep(0.05)
    process.send_signal(sign)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == code
    assert f"{word}; finished runs are in {book}, and the same command goes on from there." in errors
    assert store_tables.verify_store(book)["regrets"] > 0
