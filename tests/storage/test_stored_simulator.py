"""What is stored is not simulated again, and changes no result."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest

import banditune as bt
from banditune.simulation import scheduler
from banditune.simulation.executors.executor_factory import make_executor_factory
from banditune.storage import store_tables, stored_simulator
from banditune.study.requests import build_spec
from helpers.settings import group_settings
from helpers.stores import PROBLEM, USUAL, constant_reward, simulated


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


def test_a_value_that_is_asked_for_twice_is_stored_once(book):
    regrets = simulated(book, [0.3, 0.3], 20)
    assert (regrets[0] == regrets[1]).all()
    assert store_tables.verify_store(book)["regrets"] == 20


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


def test_a_job_keeps_its_key_within_a_study(book):
    spec = build_spec(bt.UCB1(noise=0.5), PROBLEM, horizon=100)
    with stored_simulator.StoredSimulator(make_executor_factory(), book) as one:
        row = np.array([0.5])
        first, second = (one._make_setup(spec, True, row) for _ in range(2))
        assert first is second
        assert one._make_setup(replace(spec, seed=1), True, row) != one._make_setup(spec, True, row)
        assert one._make_setup(spec, False, row) != one._make_setup(spec, True, row)
