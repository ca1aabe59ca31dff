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


def run_with_kills(store, command, kills, seed, max_delay):
    """Run a study that is killed at random moments. Return its result and the stored runs after each kill."""
    rng = random.Random(seed)
    runs = []
    for _ in range(kills):
        process = subprocess.Popen([*command, str(store)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if rng.random() < 0.25:
            while not store.exists():  # while the store is created, or right after the start
                time.sleep(0.001)
            time.sleep(rng.uniform(0, 0.02))
        else:
            assert process.stderr.readline() == b"playing\n"
            time.sleep(rng.uniform(0, max_delay))
        process.kill()
        process.communicate()
        assert process.returncode in (-signal.SIGKILL, 0)
        runs.append(sum(setup["runs"] for setup in read_setups(store)))
    process = subprocess.run([*command, str(store)], capture_output=True, text=True, timeout=300)
    assert process.returncode == 0, process.stderr
    assert runs == sorted(runs)
    return process.stdout, runs


def read_setups(store):
    """The setups in a store, none if it does not exist yet."""
    try:
        return store_tables.read_overview(store)["setups"]
    except bt.errors.StoreError as error:  # killed before the store was written
        assert "it is empty" in str(error) or "there is none" in str(error)
        return []


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    path = tmp_path_factory.mktemp("study") / "study.py"
    path.write_text(STUDY)
    return [sys.executable, str(path)]


@pytest.fixture(scope="module")
def uninterrupted(study):
    return subprocess.run([*study, "10000"], capture_output=True, text=True, timeout=300, check=True).stdout


def test_a_study_that_was_killed_twice_has_the_same_result(store, study, uninterrupted):
    result, runs = run_with_kills(store, [*study, "10000"], 2, seed=3, max_delay=0.8)
    assert result == uninterrupted
    assert runs[-1] > 0


@pytest.mark.slow
def test_a_study_that_was_killed_twenty_times_has_the_same_result(store, study):
    # So long that no study ends before its first kill.
    uninterrupted = subprocess.run([*study, "200000"], capture_output=True, text=True, timeout=300, check=True).stdout
    result, runs = run_with_kills(store, [*study, "200000"], 20, seed=2, max_delay=2.5)
    assert result == uninterrupted
    assert len(set(runs)) > 1
    store_tables.verify_store(store)


def test_two_processes_use_one_store_at_the_same_time(store, study, uninterrupted):
    processes = [
        subprocess.Popen([*study, "10000", str(store)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for process in processes:
        result, errors = process.communicate(timeout=300)
        assert set(errors.split()) == {"playing"}
        assert result == uninterrupted
    assert store_tables.verify_store(store)["setups"] == 1


REMOVALS = {
    "removed": shutil.rmtree,
    "moved": lambda folder: folder.rename(folder.with_name("new")),
    "replaced": lambda folder: (folder / "other").replace(folder / "study.db"),
}


@pytest.mark.parametrize("remove", REMOVALS.values(), ids=REMOVALS)
def test_a_study_ends_when_its_store_is_moved_or_removed(tmp_path, monkeypatch, remove):
    monkeypatch.setattr(store_writer, "WRITE_INTERVAL_SECONDS", 0.0)
    folder = tmp_path / "study"
    folder.mkdir()
    (folder / "other").write_text("")
    removed = []

    def progress(done, total):
        if not removed and done > total / 3:
            removed.append(remove(folder))

    with pytest.raises(
        bt.errors.StoreError, match="must not be moved while a study writes to it, but it was removed, moved"
    ):
        bt.simulate(
            bt.UCB1(noise=0.5),
            PROBLEM,
            0.3,
            horizon=100,
            runs=5000,
            run=bt.Run(workers=1, store=folder / "study.db", progress=progress),
        )
    assert removed


@pytest.mark.parametrize(
    ("signal_number", "code", "message"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "ended by SIGTERM")],
)
def test_an_interrupted_command_states_how_to_continue(tmp_path, signal_number, code, message):
    store = tmp_path / "study.db"
    command = [sys.executable, "-m", "banditune", "tune", "--policy", "ucb1", "--problem", "bernoulli", "--horizon"]
    command += ["20000", "--budget", "3000", "--no-shortcuts", "--workers", "1", "--store", str(store)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not read_setups(store) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal_number)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == code
    assert f"{message}; finished runs are in {store}, and the same command continues with them." in errors
    assert store_tables.verify_store(store)["regrets"] > 0
