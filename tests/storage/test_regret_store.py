"""The ledger: what is stored is not played again, and changes no result; no damage ever becomes a number."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

import banditune as bt
from banditune.cli import app
from banditune.core.atomic_files import check_writable, read_beginning
from banditune.core.problem import Instances
from banditune.reports.report_files import read_records
from banditune.simulation import scheduler, spec
from banditune.simulation.executors.executor_factory import make_executor_factory
from banditune.simulation.instances import BLOCK_SIZE
from banditune.storage import provenance, store_keys, store_tables, store_writer, stored_simulator, summary_records
from banditune.storage.regret_store import RegretStore
from banditune.storage.store_layout import (
    FORMAT_VERSION,
    RegretBlock,
    StoredSeries,
    StoredSetup,
    cut_at_blocks,
    find_ranges,
)
from banditune.study.requests import build_spec
from banditune.study.search import FIRST_VALIDATION_INSTANCE
from conftest import ROOT
from helpers.settings import group_settings

PROBLEM = bt.Bernoulli(arms=3)
USUAL = {"horizon": 100, "jobs": 1}


@pytest.fixture
def book(tmp_path):
    return tmp_path / "study.ledger"


@pytest.fixture
def played(monkeypatch):
    """What the engine was asked to play: (first row, runs) of each part."""
    asked = []
    inner = scheduler.run_tasks

    def watched(job, parts, *others):
        asked.extend((part.params[:, 0].tolist(), part.first_row, part.runs) for part in parts)
        inner(job, parts, *others)

    monkeypatch.setattr(stored_simulator, "run_tasks", watched)
    return asked


def simulated(book, values=0.3, runs=50, **others):
    return bt.simulate(bt.UCB1(noise=0.5), PROBLEM, values, **group_settings(runs=runs, ledger=book, **USUAL | others))


# The same answer


@pytest.mark.parametrize(
    "study",
    [
        lambda **more: bt.tune(
            bt.UCB1(noise=0.5), PROBLEM, **group_settings(budget=120, validate=150, curve=True, **USUAL, **more)
        ),
        lambda **more: bt.tune(
            bt.UCB1(noise=0.5), PROBLEM, **group_settings(tuner=bt.NoTeS(), budget=120, noise="own", **USUAL, **more)
        ),
        lambda **more: bt.tune(
            bt.Thompson(prior=(1, 1)), PROBLEM, **group_settings(within=0.3, validate=50, **USUAL, **more)
        ),
        lambda **more: bt.curve(
            bt.Thompson(prior=(1, 1)), PROBLEM, **group_settings(runs=60, regret="realised", **USUAL, **more)
        ),
        lambda **more: bt.compare(
            [bt.UCB1(noise=0.5), bt.Greedy()], PROBLEM, **group_settings(budget=60, validate=90, **USUAL, **more)
        ),
    ],
)
def test_a_study_is_the_same_without_a_ledger_with_one_and_from_one(study, book, played):
    usual = study()
    assert study(ledger=book) == usual
    assert played
    played.clear()
    assert study(ledger=str(book)) == usual
    assert played == []
    assert os.listdir(book.parent) == [book.name]


def test_simulate_gives_float32_from_a_ledger_and_all_digits_without(book):
    exact = bt.simulate(bt.UCB1(noise=0.5), PROBLEM, [0.3, 1], **group_settings(runs=20, **USUAL))
    for _ in range(2):
        regrets = simulated(book, [0.3, 1], 20)
        assert regrets.dtype == np.float64
        assert (regrets == exact.astype(np.float32)).all()
    assert (regrets != exact).any()


def test_regrets_beyond_float32_are_refused_in_a_sentence():
    spec = build_spec(bt.UCB1(noise=0.5), PROBLEM, horizon=10)
    with pytest.raises(bt.SimulationError, match=r"regrets must be below 3.4e38, .* scale the rewards down"):
        store_writer.convert_to_float32(spec, np.array([1.0, 1e39]))


@bt.kernel.scalar
def constant_reward(instance, arm, pull, step, stream):
    return instance.means[arm]


# What is stored is not played again


def test_more_runs_and_more_values_play_only_what_is_missing(book, played):
    simulated(book, [0.3, 0.5], 300)
    played.clear()
    whole = simulated(book, [0.1, 0.3, 0.5], 700)
    assert played == [([0.1], 0, range(700)), ([0.3, 0.5], 1, range(300, 700))]
    assert (
        whole
        == bt.simulate(bt.UCB1(noise=0.5), PROBLEM, [0.1, 0.3, 0.5], **group_settings(runs=700, **USUAL)).astype(
            np.float32
        )
    ).all()


def test_runs_between_others_are_filled_in(book, played):
    simulated(book, runs=20, first=100)
    simulated(book, runs=300, first=200)
    played.clear()
    whole = simulated(book, runs=600)
    assert [runs for _, _, runs in played] == [range(100), range(120, 200), range(500, 600)]
    assert (
        whole == bt.simulate(bt.UCB1(noise=0.5), PROBLEM, 0.3, **group_settings(runs=600, **USUAL)).astype(np.float32)
    ).all()


def test_rows_that_miss_the_same_runs_are_played_together_unless_their_noise_is_numbered(book, tmp_path, played):
    for noise, parts in (("shared", [[0.1, 0.3, 0.5]]), ("own", [[0.1], [0.3], [0.5]])):
        file = tmp_path / f"{noise}.ledger"
        every = [0.1, 0.2, 0.3, 0.4, 0.5]
        # With noise of its own a row is another one at another place.
        simulated(file, [9e-9, 0.2, 8e-9, 0.4] if noise == "own" else [0.2, 0.4], 40, noise=noise)
        played.clear()
        whole = simulated(file, every, 40, noise=noise)
        assert sorted(values for values, _, _ in played) == parts
        assert all(row == every.index(values[0]) for values, row, _ in played)
        regrets = bt.simulate(bt.UCB1(noise=0.5), PROBLEM, every, **group_settings(runs=40, noise=noise, **USUAL))
        assert (whole == regrets.astype(np.float32)).all()


def test_own_noise_is_kept_by_its_number(book, played):
    simulated(book, [0.3, 0.5], 40, noise="own")
    played.clear()
    simulated(book, [0.5, 0.3], 40, noise="own")
    assert played == [([0.5, 0.3], 0, range(40))]


def test_regrets_after_several_steps_are_kept(book, played):
    for at in ([10, 100], [100]):
        first = simulated(book, [0.3, 1], 300, at=at)
        assert played
        played.clear()
        assert (simulated(book, [0.3, 1], 300, at=at) == first).all()
        assert played == []
        assert first.shape == (2, 300, len(at))


def test_blocks_are_stored_while_others_are_played(book, monkeypatch):
    """A study that breaks off leaves what it had."""
    seen = []

    def stop(done, total):
        seen.append(done)
        if done > 1000:
            raise KeyboardInterrupt

    monkeypatch.setattr(store_writer, "WRITE_INTERVAL_SECONDS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        simulated(book, runs=3000, progress=stop)
    (setup,) = store_tables.read_overview(book)["setups"]
    assert setup["runs"] >= 1000 - BLOCK_SIZE
    assert (simulated(book, runs=3000) == simulated(book.with_name("new"), runs=3000)).all()


def test_regrets_of_slow_runs_are_stored_before_their_block_is_complete(book, monkeypatch):
    monkeypatch.setattr(store_writer, "WRITE_INTERVAL_SECONDS", 0.0)
    monkeypatch.setattr(store_writer, "MAX_WAIT_SECONDS", 0.0)

    def stop(done, total):
        if done >= 60:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bt.simulate(
            bt.UCB1(noise=0.5),
            PROBLEM,
            0.3,
            horizon=400_000,
            runs=100,
            run=bt.Run(workers=1, store=book, progress=stop),
        )
    (setup,) = store_tables.read_overview(book)["setups"]
    assert 40 <= setup["runs"] < 100


@pytest.mark.parametrize(("first", "size"), [(0, 256), (0, 257), (255, 2), (300, 700), (2**40 + 5, 600)])
def test_blocks_end_at_multiples_of_256_runs(first, size):
    regrets = np.arange(size, dtype=np.float32)[:, None]
    parts = list(cut_at_blocks(first, regrets))
    assert (np.concatenate([part for _, part in parts]) == regrets).all()
    for start, part in parts:
        assert start // BLOCK_SIZE == (start + len(part) - 1) // BLOCK_SIZE
    assert [start for start, _ in parts][1:] == [start + len(part) for start, part in parts][:-1]


def test_chosen_runs_become_ranges():
    assert find_ranges(np.array([1, 1, 0, 1, 0, 0, 1], bool), 10) == [range(10, 12), range(13, 14), range(16, 17)]
    assert find_ranges(np.zeros(3, bool), 10) == []


# Everything that made a regret is part of its key


def told(policy=None, problem=PROBLEM, **others):
    spec = build_spec(policy or bt.UCB1(noise=0.5), problem, **group_settings(**{"horizon": 100} | others))
    return store_keys.serialize_key(store_keys.build_key(spec))


def test_the_key_is_the_same_in_every_process(run_python):
    code = """
import banditune as bt
from banditune.study.requests import build_spec
from banditune.storage.store_keys import build_key, serialize_key
pairs = (bt.UCB1(noise=0.5), bt.Bernoulli(arms=3)), (bt.LinTS(prior=(0, 1), noise=0.5), bt.Linear(arms=5, dims=2))
for policy, problem in pairs:
    print(serialize_key(build_key(build_spec(policy, problem, horizon=100))))
"""
    here = [told(), told(bt.LinTS(prior=(0, 1), noise=0.5), bt.Linear(arms=5, dims=2))]
    for seed in ("1", "2"):
        assert run_python(code, PYTHONHASHSEED=seed).stdout.split("\n")[:2] == here


@pytest.mark.parametrize(
    "other",
    [
        {"policy": bt.UCB1(noise=1)},
        {"policy": bt.Thompson(prior=(1, 1))},
        {"problem": bt.Bernoulli(arms=4)},
        {"problem": bt.Bernoulli(arms=3, prior=(1, 2))},
        {"horizon": 101},
        {"seed": 1},
        {"regret": "realised"},
        {"noise": "own"},
        {"at": [50, 100]},
        {"shortcut": False},
    ],
)
def test_another_request_has_another_key(other):
    assert told(**other) != told()


def test_on_a_gpu_team_and_precision_are_part_of_the_key():
    def found(policy, problem, kind=None):
        job = replace(build_spec(policy, problem, horizon=100), device="gpu")
        told = store_keys.build_key(job, kind)
        return told["device"], told["play"], told["precision"], told["code"]

    linear = found(bt.LinUCB(prior=(0, 1), noise=0.5), bt.Linear(arms=5, dims=2))
    assert linear[:3] == ("gpu", "team", "float64")
    assert (
        linear[3]["choose"]
        != json.loads(told(bt.LinUCB(prior=(0, 1), noise=0.5), bt.Linear(arms=5, dims=2)))["code"]["choose"]
    )
    single, double = (found(bt.Thompson(prior=(1, 1)), PROBLEM, kind) for kind in (None, "float64"))
    assert single[:3] == ("gpu", "lazy", "float32")
    assert double[:3] == ("gpu", "lazy", "float64")
    assert single[3]["advance"] != double[3]["advance"]
    job = replace(build_spec(bt.Thompson(prior=(1, 1)), PROBLEM, horizon=100), device="gpu")
    assert [store_keys.find_row_precision(job, np.array([value])) for value in (0.0, 1e-4, 0.5)] == [
        None,
        "float64",
        None,
    ]


def test_of_large_options_the_key_holds_a_digest():
    features = np.random.default_rng(0).normal(size=(300, 3))
    key = told(bt.policies.LinGreedy(prior=(0, 1), noise=0.5), bt.Linear(features=features))
    assert len(key) < 2000
    assert "300 x 3 " in key
    features[299, 2] += 1e-9
    assert "problem" in parts_that_differ(
        key, told(bt.policies.LinGreedy(prior=(0, 1), noise=0.5), bt.Linear(features=features))
    )


def test_a_value_that_is_asked_for_twice_is_stored_once(book):
    regrets = simulated(book, [0.3, 0.3], 20)
    assert (regrets[0] == regrets[1]).all()
    assert store_tables.verify_store(book)["regrets"] == 20


def test_a_shortcut_that_does_not_apply_does_not_count():
    assert told(bt.EpsilonGreedy(), shortcut=False) == told(bt.EpsilonGreedy())


SOURCE = """
import numpy as np
import banditune as bt

SCALE = 1.0
TABLE = np.array([0.2, 0.5, 0.9])


@bt.kernel.scalar
def helper(state):
    return bt.kernel.argmax_mean(state)


@bt.kernel.scalar
def choose(state, setting, step, params, stream):
    return helper(state) if step > 3 else step % setting.arms


@bt.kernel.scalar
def reward(instance, arm, pull, step, stream):
    return bt.kernel.bernoulli(stream, instance.means[arm])


def spread(rng, size):
    return rng.random((size, 3))


def sample(size, rng, low=0.0):
    kind = "a" if size in {1, 2} else "b"
    return SCALE * TABLE * spread(rng, size) + low


policy = bt.define_policy("mine", choose)
problem = bt.define_problem("mine", sample, reward, arms=3)
"""


def of_source(text, folder):
    path = folder / f"own_{abs(hash(text))}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return told(module.policy, module.problem)


def parts_that_differ(one, other):
    one, other = json.loads(one), json.loads(other)
    return {key for key in one if one[key] != other[key]}


@pytest.mark.parametrize(
    ("before", "after", "where"),
    [
        ("step > 3", "step > 4", {"code"}),
        ("return bt.kernel.argmax_mean(state)", "return bt.kernel.argmax_mean(state) * 1", {"code"}),
        ("instance.means[arm])", "1.0 * instance.means[arm])", {"code"}),
        ("rng.random((size, 3))", "0.0 + rng.random((size, 3))", {"sample"}),
        ('"a" if', '"c" if', {"sample"}),
        ("SCALE = 1.0", "SCALE = 0.5", {"sample", "instances"}),
        ("0.2, 0.5", "0.1, 0.5", {"sample", "instances"}),
        ("low=0.0", "low=0.01", {"sample", "instances"}),
        ("# nothing", "# a comment", set()),
        ("\n\n\ndef sample", "\n\n\n# a comment\ndef sample", set()),
    ],
)
def test_edited_code_has_another_key(before, after, where, tmp_path):
    source = SOURCE + "# nothing\n"
    assert before in source
    assert parts_that_differ(of_source(source, tmp_path), of_source(source.replace(before, after), tmp_path)) == where


class Halved(bt.Bernoulli):
    """Overrides a method, and calls the one that it overrides."""

    def sample(self, size, rng):
        return Instances(self.factor() * super().sample(size, rng).means)

    def factor(self):
        return 0.5


class Thirded(Halved):
    def factor(self):
        return 1 / 3


def test_methods_that_sample_calls_and_those_that_it_overrides_count(monkeypatch):
    halved = provenance.digest_sampling_code(Halved(arms=3))
    assert provenance.digest_sampling_code(Thirded(arms=3)) != halved
    monkeypatch.setattr(bt.Bernoulli, "sample", lambda self, size, rng: Instances(rng.random((size, self.arms))))
    assert provenance.digest_sampling_code(Halved(arms=3)) != halved


class ByKey(bt.Bernoulli):
    """An instance is a function of its key."""

    is_keyed = True
    late = 0.5

    def sample_keyed(self, keys):
        return Instances(np.random.default_rng(int(keys[0, 0])).random((len(keys), self.arms)) * self.scale())

    def scale(self):
        return self.late


class ByKeyOtherwise(ByKey):
    def scale(self):
        return self.late**2


def test_what_makes_instances_of_keys_counts(monkeypatch):
    assert provenance.digest_sampling_code(ByKey(arms=3)) != provenance.digest_sampling_code(ByKeyOtherwise(arms=3))
    before = provenance.digest_sampling_code(ByKey(arms=3))
    monkeypatch.setattr(ByKey, "late", 0.25)
    assert provenance.digest_sampling_code(ByKey(arms=3)) != before


def test_a_reward_tables_ledgers_from_before_keys_counted_are_still_known():
    table = bt.RewardTable(np.eye(3))
    assert provenance.digest_sampling_code(table) == provenance.digest_sampling_code(SampleOnly())


class SampleOnly(bt.kernel.Problem):
    """Has the same `sample` as a reward table: that of every problem, which refuses."""


def test_a_file_that_sample_reads_counts(tmp_path):
    file = tmp_path / "means.npy"

    def sample(size, rng):
        return np.load(file) * rng.random((size, 2))

    problem = bt.define_problem("from a file", sample, constant_reward, arms=2)
    keys = []
    for means in ([0.5, 0.6], [0.5, 0.7]):
        np.save(file, means)
        keys.append(told(bt.Greedy(), problem))
    assert parts_that_differ(*keys) == {"instances"}


TWO = bt.define_policy("two", bt.Greedy.choose, parameters=[bt.Parameter(name, 0, 1, textbook=1) for name in "ab"])
GUEST = bt.wrap_policy(lambda: None, (), name="guest")


@pytest.mark.parametrize(
    ("refused", "sentence"),
    [
        (
            lambda **asked: bt.tune(bt.UCB1(noise=0.5), PROBLEM, **group_settings(budget=12, max_time=-1, **asked)),
            "`max_time > 0`",
        ),
        (
            lambda **asked: bt.tune(bt.UCB1(noise=0.5), PROBLEM, **group_settings(tuner=bt.NoTeS(), budget=1, **asked)),
            "`budget >= 8`",
        ),
        (
            lambda **asked: bt.curve(bt.UCB1(noise=0.5), PROBLEM, [-5], **group_settings(**asked)),
            "`0 <= gamma <= 1e\\+06`",
        ),
        (lambda **asked: bt.curve(TWO, PROBLEM, **group_settings(**asked)), "over one parameter"),
        (lambda **asked: bt.simulate(GUEST, PROBLEM, **group_settings(**asked)), "but cannot for 'guest'"),
        (
            lambda **asked: bt.compare([bt.UCB1(noise=0.5), GUEST], PROBLEM, **group_settings(**asked)),
            "but cannot for 'guest'",
        ),
    ],
)
def test_what_is_refused_leaves_no_ledger(book, refused, sentence):
    with pytest.raises(bt.InvalidRequest, match=sentence):
        refused(horizon=20, ledger=book)
    assert not book.exists()


def test_a_sample_with_randomness_of_its_own_is_refused(book):
    rng = np.random.default_rng(0)
    problem = bt.define_problem("loose", lambda size, _: rng.random((size, 2)), constant_reward, arms=2)
    with pytest.raises(bt.InvalidRequest, match="must draw from `rng` alone"):
        bt.simulate(bt.Greedy(), problem, horizon=10, runs=5, run=bt.Run(store=book))


def test_the_same_seed_draws_what_stream_version_1_drew():
    """If this fails because draws were changed on purpose: raise STREAM_VERSION, or old ledgers give old numbers."""
    assert spec.STREAM_VERSION == 1
    regrets = bt.simulate(
        bt.UCB1(noise=0.5),
        PROBLEM,
        0.3,
        **group_settings(runs=4, seed=5, first=254, shortcut=False, regret="realised", **USUAL),
    )
    assert regrets.tolist() == [PINNED["ucb1"]]
    for name, policy, problem in (
        ("ts", bt.Thompson(prior=(1, 1)), bt.BetaRewards(arms=3)),
        ("gaussian-ts", bt.GaussianThompson(prior=(0, 1), noise=1), bt.Gaussian(arms=3)),
        ("lints", bt.LinTS(prior=(0, 1), noise=0.5), bt.Linear(arms=4, dims=2)),
    ):
        regrets = bt.simulate(
            policy, problem, 0.5, **group_settings(runs=4, seed=5, first=254, shortcut=False, **USUAL)
        )
        assert regrets[0] == pytest.approx(PINNED[name], rel=1e-9)


PINNED = {
    "ucb1": [2.0, 1.0, 2.0, 5.0],
    "ts": [0.0, 2.2566196687956372, 2.3637648491638323, 3.2614373884465238],
    "gaussian-ts": [28.06252872872615, 4.928348229641875, 4.018052499293468, 4.584072221605365],
    "lints": [0.0, 3.816717406910502, 1.5650152655614327, 3.664964513359629],
}


# Kills, and two at once

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


STORED_SERIES = StoredSeries(
    StoredSetup.from_key_text(json.dumps({"at": [1], "policy": {"name": "x"}, "problem": {"name": "y"}})),
    np.array([0.1]).tobytes(),
    0,
)


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


# Damage


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A ledger's bytes, and the regrets in it."""
    book = tmp_path_factory.mktemp("small") / "study.ledger"
    regrets = simulated(book, [0.3, 0.5], 600)
    return book.read_bytes(), regrets


def used(book, regrets):
    """Use a ledger in every way: a sentence or the right numbers."""
    sentences = 0
    ways = (
        lambda: simulated(book, [0.3, 0.5], 600),
        lambda: store_tables.verify_store(book),
        lambda: store_tables.summarize_regrets(book),
        lambda: store_tables.read_overview(book),
    )
    for way in ways:
        try:
            found = way()
            assert not isinstance(found, np.ndarray) or (found == regrets).all()
        except bt.errors.StoreError as error:
            sentences += 1
            assert str(book) in str(error)
    return sentences


def test_no_flipped_byte_becomes_a_number_or_a_traceback(book, small):
    content, regrets = small
    chance = random.Random(3)
    places = sorted(chance.sample(range(len(content)), 60)) + list(range(0, 100, 7))
    sentences = 0
    for place in places:
        damaged = bytearray(content)
        damaged[place] ^= 1 << chance.randrange(8)
        book.write_bytes(damaged)
        sentences += used(book, regrets)
        for rest in book.parent.iterdir():
            rest.unlink()
    assert sentences > 10


def test_every_flipped_bit_of_a_stored_number_is_found(book, small):
    content, regrets = small
    place = content.find(regrets[0, :BLOCK_SIZE].astype("<f4").tobytes())
    assert place > 0
    damaged = bytearray(content)
    damaged[place + 500] ^= 1
    book.write_bytes(damaged)
    with pytest.raises(
        bt.errors.StoreError, match=r"is damaged: the checksum of the block of run 0 is wrong; use a copy"
    ):
        simulated(book, [0.3, 0.5], 600)
    with pytest.raises(bt.errors.StoreError, match="checksum"):
        store_tables.verify_store(book)
    with pytest.raises(bt.errors.StoreError, match="checksum"):
        store_tables.summarize_regrets(book)
    with pytest.raises(bt.errors.StoreError, match=r"^the \w+ .* checksum"):
        store_tables.export_store(book, book.with_name("all.csv"))
    assert not book.with_name("all.csv").exists()


def test_no_truncated_file_becomes_a_number_or_a_traceback(book, small):
    content, regrets = small
    chance = random.Random(4)
    for size in [*chance.sample(range(1, len(content)), 12), 1, 16, 99, 100, len(content) - 1]:
        book.write_bytes(content[:size])
        assert used(book, regrets) >= 1
        for rest in book.parent.iterdir():
            rest.unlink()


def test_a_block_in_the_wrong_place_is_found(book):
    simulated(book, [0.3, 0.5], 600)
    connection = sqlite3.connect(book)
    connection.execute("UPDATE series SET params = x'00' WHERE id = 1")
    connection.execute("UPDATE blocks SET series = series + 10")
    connection.execute("UPDATE blocks SET series = 13 - series")
    connection.commit()
    connection.close()
    with pytest.raises(bt.errors.StoreError, match="checksum"):
        simulated(book, [0.5], 600)
    with pytest.raises(bt.errors.StoreError, match="series 1 is not what was written"):
        store_tables.verify_store(book)


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


def test_a_full_disk_is_a_sentence(book, run_python):
    code = f"""
import resource
import banditune as bt

resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
try:
    bt.simulate(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), 0.3, horizon=100, runs=100_000,
                run=bt.Run(workers=1, store={str(book)!r}))
except bt.errors.StoreError as error:
    print(error)
"""
    process = run_python(code)
    assert process.returncode == 0, process.stderr
    assert "cannot be written or read here" in process.stdout
    store_tables.verify_store(book)


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


# On a disk of its own, which can be full and grow


ON_A_SMALL_DISK = """
import json, os, subprocess, sys
import banditune as bt
from banditune.storage import store_tables

def study(ledger=None):
    return bt.tune(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), horizon=50, budget=200_000, include="no_lower_bound",
                   search=bt.Search(tuner=bt.tuners.Uniform(), validate=20_000),
                   run=bt.Run(workers=1, store=ledger)).to_json()

book = os.path.join(sys.argv[1], "book")
try:
    study(book)
except bt.errors.StoreError as error:
    told = str(error)
room = os.statvfs(sys.argv[1])
kept = store_tables.verify_store(book)["regrets"]  # also while the disk is full
subprocess.run(["mount", "-o", "remount,size=8m", sys.argv[1]], check=True)
print(json.dumps({"told": told, "free": room.f_bavail * room.f_frsize, "kept": kept, "same": study(book) == study(),
                  "all": store_tables.verify_store(book)["regrets"]}))
"""


def test_a_disk_that_is_full_keeps_a_good_ledger_and_the_study_goes_on_when_there_is_room(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = f'unshare --mount sh -c \'mount -t tmpfs -o size=400k none {disk} && exec "$0" "$@"\''
    if subprocess.run(f"{mount} true", shell=True, capture_output=True).returncode:
        pytest.skip("a small disk can be mounted by root only")
    script = tmp_path / "script.py"
    script.write_text(ON_A_SMALL_DISK)
    process = subprocess.run(
        f"{mount} {sys.executable} {script} {disk}", shell=True, capture_output=True, text=True, timeout=300
    )
    assert process.returncode == 0, process.stderr
    data = json.loads(process.stdout)
    assert "cannot be written or read here: database or disk is full" in data["told"]
    assert data["free"] < 65536
    assert 0 < data["kept"] < data["all"]
    assert data["same"]


# Reading it


def test_the_summary_tells_each_value_of_each_setup(book):
    regrets = simulated(book, [0.3, 1], 600)
    fresh = simulated(book, [0.3], 50, first=FIRST_VALIDATION_INSTANCE)
    simulated(book, [0.3], 1, at=[10, 100], noise="own")
    lines = store_tables.summarize_regrets(book)
    assert [(line["setup"], line["params"], line["instances"], line["step"], line["runs"]) for line in lines] == [
        (1, "0.3", "search", 100, 600),
        (1, "0.3", "fresh", 100, 50),
        (1, "1.0", "search", 100, 600),
        (2, "0.3", "search", 10, 1),
        (2, "0.3", "search", 100, 1),
    ]
    assert [line["noise"] for line in lines] == [0, 0, 0, 1, 1]
    assert lines[0]["mean"] == regrets[0].mean()
    assert lines[0]["se"] == bt.results.Estimate.from_sample(regrets[0]).se
    assert lines[0]["q95"] == np.percentile(regrets[0], 95)
    assert lines[0]["max"] == regrets[0].max()
    assert lines[1]["mean"] == fresh.mean()
    assert np.isnan(lines[3]["se"])


def test_csv_brings_back_every_bit(book, tmp_path):
    regrets = simulated(book, [0.3, 1], 300, at=[10, 100])
    store_tables.export_store(book, tmp_path / "all.csv")
    with open(tmp_path / "all.csv") as file:
        lines = list(csv.DictReader(file))
    assert list(lines[0]) == list(store_tables.REGRET_COLUMNS)
    found = np.array([np.float32(line["regret"]) for line in lines]).reshape(2, 300, 2)
    assert (found == regrets).all()
    assert [line["run"] for line in lines[:4]] == ["0", "0", "1", "1"]
    assert [line["step"] for line in lines[:4]] == ["10", "100", "10", "100"]


def test_parquet_is_written_or_a_sentence_says_what_it_needs(book, tmp_path):
    regrets = simulated(book, [0.3, 1], 30)
    if importlib.util.find_spec("pyarrow") is None:
        with pytest.raises(bt.errors.MissingDependency, match="Parquet needs pandas and pyarrow; install them with"):
            store_tables.export_store(book, tmp_path / "all.parquet")
        return
    import pandas

    store_tables.export_store(book, tmp_path / "all.parquet")
    store_tables.export_store(book, tmp_path / "few.parquet", whole=False)
    assert (pandas.read_parquet(tmp_path / "all.parquet")["regret"] == regrets.reshape(-1)).all()
    assert (pandas.read_parquet(tmp_path / "few.parquet")["mean"] == regrets.mean(axis=1)).all()


def test_the_file_is_as_the_documentation_has_it(book, tmp_path, run_python):
    regrets = simulated(book, [0.3, 1], 600)
    text = (ROOT / "docs" / "how-to" / "store.md").read_text()
    code = text.split("```python\n")[1].split("```")[0].replace('"study.db"', repr(str(book)))
    process = run_python(code + "\nprint([np.array(regrets[1, value], float).tolist() for value in (0.3, 1.0)])")
    assert process.returncode == 0, process.stderr
    assert json.loads(process.stdout) == regrets.tolist()


def test_the_command_line_keeps_shows_checks_and_exports(banditune, tmp_path, monkeypatch, capsys):
    study = ["curve", "--policy", "ucb1", "--problem", "bernoulli", "--arms", "3", "--horizon", "50", "--runs", "20"]
    first = banditune(*study, "--store", "my study.ledger", "--json")
    assert first.returncode == 0, first.stderr
    assert banditune(*study, "--json").stdout == first.stdout
    assert (
        "680 regrets; all of them are as they were written." in banditune("store", "verify", "my study.ledger").stdout
    )
    wrong = banditune("store", "show", "none")
    assert wrong.returncode == 2
    assert wrong.stderr == "banditune: the store 'none' must be a file, but there is none.\n"

    def ledger(*arguments):
        app(["store", *arguments], standalone_mode=False)
        return capsys.readouterr().out

    monkeypatch.chdir(tmp_path)
    shown = ledger("show", "my study.ledger")
    assert "ucb1(noise=0.408248) on bernoulli(arms=3, prior=(1, 1)), horizon 50" in shown
    assert "33 values, 680 runs" in shown
    assert json.loads(ledger("show", "my study.ledger", "--json"))["setups"][0]["runs"] == 680
    assert json.loads(ledger("verify", "my study.ledger", "--json"))["regrets"] == 680
    assert ledger("export", "my study.ledger", "-o", "few.csv", "--summary") == ""
    assert len((tmp_path / "few.csv").read_text().splitlines()) == 1 + 34
    with pytest.raises(bt.errors.StoreError, match="no SQLite file"):
        ledger("verify", "few.csv")
    with pytest.raises(bt.InvalidRequest, match="--output must name another file than those that"):
        ledger("export", "few.csv", "-o", "few.csv")
    with pytest.raises(bt.InvalidRequest, match="--output must name another file than those that"):
        app([*study, "--store", "a", "-o", "a"], standalone_mode=False)
    with pytest.raises(bt.InvalidRequest, match=r"written as .csv or .parquet, but got 'all.txt'"):
        ledger("export", "my study.ledger", "-o", "all.txt")


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


def test_a_job_keeps_its_key_within_a_study(book):
    spec = build_spec(bt.UCB1(noise=0.5), PROBLEM, horizon=100)
    with stored_simulator.StoredSimulator(make_executor_factory(), book) as one:
        row = np.array([0.5])
        first, second = (one._make_setup(spec, True, row) for _ in range(2))
        assert first is second
        assert one._make_setup(replace(spec, seed=1), True, row) != one._make_setup(spec, True, row)
        assert one._make_setup(spec, False, row) != one._make_setup(spec, True, row)
