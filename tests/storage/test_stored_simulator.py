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
from helpers.stores import PROBLEM, SHORT_RUN, pay_mean, simulate_with_store


@pytest.fixture
def simulated_parts(monkeypatch):
    """Record what is simulated: (values, first row, runs) of each part."""
    parts = []
    inner = scheduler.run_tasks

    def record(spec, tasks, *arguments):
        parts.extend((part.params[:, 0].tolist(), part.first_row, part.runs) for part in tasks)
        inner(spec, tasks, *arguments)

    monkeypatch.setattr(stored_simulator, "run_tasks", record)
    return parts


@pytest.mark.parametrize(
    "study",
    [
        lambda **more: bt.tune(
            bt.UCB1(noise=0.5),
            PROBLEM,
            **group_settings(budget=120, validate=150, include=("curve",), **SHORT_RUN, **more),
        ),
        lambda **more: bt.tune(
            bt.UCB1(noise=0.5),
            PROBLEM,
            **group_settings(tuner=bt.NoTeS(), budget=120, common_random_numbers=False, **SHORT_RUN, **more),
        ),
        lambda **more: bt.tune(
            bt.Thompson(prior=(1, 1)), PROBLEM, **group_settings(precision=0.3, validate=50, **SHORT_RUN, **more)
        ),
        lambda **more: bt.curve(
            bt.Thompson(prior=(1, 1)), PROBLEM, **group_settings(runs=60, regret="realised", **SHORT_RUN, **more)
        ),
        lambda **more: bt.compare(
            [bt.UCB1(noise=0.5), bt.Greedy()], PROBLEM, **group_settings(budget=60, validate=90, **SHORT_RUN, **more)
        ),
    ],
)
def test_a_store_changes_no_result(study, store, simulated_parts):
    expected = study()
    assert study(store=store) == expected
    assert simulated_parts
    simulated_parts.clear()
    assert study(store=str(store)) == expected
    assert simulated_parts == []
    assert os.listdir(store.parent) == [store.name]


def test_a_store_rounds_regrets_to_float32(store):
    exact = bt.simulate(bt.UCB1(noise=0.5), PROBLEM, [0.3, 1], **group_settings(runs=20, **SHORT_RUN))
    for _ in range(2):
        regrets = simulate_with_store(store, [0.3, 1], 20)
        assert regrets.dtype == np.float64
        assert (regrets == exact.astype(np.float32)).all()
    assert (regrets != exact).any()


def test_only_missing_runs_and_values_are_simulated(store, simulated_parts):
    simulate_with_store(store, [0.3, 0.5], 300)
    simulated_parts.clear()
    whole = simulate_with_store(store, [0.1, 0.3, 0.5], 700)
    assert simulated_parts == [([0.1], 0, range(700)), ([0.3, 0.5], 1, range(300, 700))]
    assert (
        whole
        == bt.simulate(bt.UCB1(noise=0.5), PROBLEM, [0.1, 0.3, 0.5], **group_settings(runs=700, **SHORT_RUN)).astype(
            np.float32
        )
    ).all()


def test_gaps_between_stored_runs_are_filled(store, simulated_parts):
    simulate_with_store(store, runs=20, first_instance=100)
    simulate_with_store(store, runs=300, first_instance=200)
    simulated_parts.clear()
    whole = simulate_with_store(store, runs=600)
    assert [runs for _, _, runs in simulated_parts] == [range(100), range(120, 200), range(500, 600)]
    assert (
        whole
        == bt.simulate(bt.UCB1(noise=0.5), PROBLEM, 0.3, **group_settings(runs=600, **SHORT_RUN)).astype(np.float32)
    ).all()


def test_rows_that_miss_the_same_runs_are_simulated_together_with_common_random_numbers(
    store, tmp_path, simulated_parts
):
    for common, expected in ((True, [[0.1, 0.3, 0.5]]), (False, [[0.1], [0.3], [0.5]])):
        path = tmp_path / f"{common}.db"
        values = [0.1, 0.2, 0.3, 0.4, 0.5]
        # With separate random numbers, a value in another row has other regrets.
        simulate_with_store(path, [0.2, 0.4] if common else [9e-9, 0.2, 8e-9, 0.4], 40, common_random_numbers=common)
        simulated_parts.clear()
        whole = simulate_with_store(path, values, 40, common_random_numbers=common)
        assert sorted(part for part, _, _ in simulated_parts) == expected
        assert all(row == values.index(part[0]) for part, row, _ in simulated_parts)
        regrets = bt.simulate(
            bt.UCB1(noise=0.5), PROBLEM, values, **group_settings(runs=40, common_random_numbers=common, **SHORT_RUN)
        )
        assert (whole == regrets.astype(np.float32)).all()


def test_separate_random_numbers_are_stored_by_row(store, simulated_parts):
    simulate_with_store(store, [0.3, 0.5], 40, common_random_numbers=False)
    simulated_parts.clear()
    simulate_with_store(store, [0.5, 0.3], 40, common_random_numbers=False)
    assert simulated_parts == [([0.5, 0.3], 0, range(40))]


def test_regrets_at_several_checkpoints_are_stored(store, simulated_parts):
    for at in ([10, 100], [100]):
        first = simulate_with_store(store, [0.3, 1], 300, checkpoints=at)
        assert simulated_parts
        simulated_parts.clear()
        assert (simulate_with_store(store, [0.3, 1], 300, checkpoints=at) == first).all()
        assert simulated_parts == []
        assert first.shape == (2, 300, len(at))


def test_a_repeated_value_is_stored_once(store):
    regrets = simulate_with_store(store, [0.3, 0.3], 20)
    assert (regrets[0] == regrets[1]).all()
    assert store_tables.verify_store(store)["regrets"] == 20


TWO_PARAMETERS = bt.define_policy(
    "two", bt.Greedy.choose, parameters=[bt.Parameter(name, 0, 1, textbook=1) for name in "ab"]
)


EXTERNAL = bt.wrap_policy(lambda: None, (), name="guest")


@pytest.mark.parametrize(
    ("call_verb", "message"),
    [
        (
            lambda **settings: bt.tune(
                bt.UCB1(noise=0.5), PROBLEM, **group_settings(budget=12, max_time=-1, **settings)
            ),
            "`max_time > 0`",
        ),
        (
            lambda **settings: bt.tune(
                bt.UCB1(noise=0.5), PROBLEM, **group_settings(tuner=bt.NoTeS(), budget=1, **settings)
            ),
            "`budget >= 8`",
        ),
        (
            lambda **settings: bt.curve(bt.UCB1(noise=0.5), PROBLEM, [-5], **group_settings(**settings)),
            "`0 <= gamma <= 1e\\+06`",
        ),
        (lambda **settings: bt.curve(TWO_PARAMETERS, PROBLEM, **group_settings(**settings)), "over one parameter"),
        (lambda **settings: bt.simulate(EXTERNAL, PROBLEM, **group_settings(**settings)), "but cannot for 'guest'"),
        (
            lambda **settings: bt.compare([bt.UCB1(noise=0.5), EXTERNAL], PROBLEM, **group_settings(**settings)),
            "but cannot for 'guest'",
        ),
    ],
)
def test_a_refused_request_creates_no_store(store, call_verb, message):
    with pytest.raises(bt.InvalidRequest, match=message):
        call_verb(horizon=20, store=store)
    assert not store.exists()


def test_a_store_refuses_a_sample_that_does_not_draw_from_rng(store):
    rng = np.random.default_rng(0)
    problem = bt.define_problem("loose", lambda size, _: rng.random((size, 2)), pay_mean, arms=2)
    with pytest.raises(bt.InvalidRequest, match="must draw only from `rng`"):
        bt.simulate(bt.Greedy(), problem, horizon=10, runs=5, run=bt.Run(store=store))


def test_a_spec_keeps_its_setup_within_a_study(store):
    spec = build_spec(bt.UCB1(noise=0.5), PROBLEM, horizon=100)
    with stored_simulator.StoredSimulator(make_executor_factory(), store) as simulator:
        row = np.array([0.5])
        first, second = (simulator._make_setup(spec, True, row) for _ in range(2))
        assert first is second
        assert simulator._make_setup(replace(spec, seed=1), True, row) != simulator._make_setup(spec, True, row)
        assert simulator._make_setup(spec, False, row) != simulator._make_setup(spec, True, row)
