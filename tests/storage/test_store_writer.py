"""Regrets are stored in blocks while others are simulated."""

from __future__ import annotations

import numpy as np
import pytest

import banditune as bt
from banditune.simulation.instances import BLOCK_SIZE
from banditune.storage import store_tables, store_writer
from banditune.storage.store_layout import (
    cut_at_blocks,
    find_ranges,
)
from banditune.study.requests import build_spec
from helpers.stores import PROBLEM, simulate_with_store


def test_regrets_beyond_float32_are_refused():
    spec = build_spec(bt.UCB1(noise=0.5), PROBLEM, horizon=10)
    with pytest.raises(bt.SimulationError, match=r"regrets must be below 3.4e38, .* scale the rewards down"):
        store_writer.convert_to_float32(spec, np.array([1.0, 1e39]))


def test_an_interrupted_study_keeps_its_finished_blocks(store, monkeypatch):
    seen = []

    def stop(done, total):
        seen.append(done)
        if done > 1000:
            raise KeyboardInterrupt

    monkeypatch.setattr(store_writer, "WRITE_INTERVAL_SECONDS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        simulate_with_store(store, runs=3000, progress=stop)
    (setup,) = store_tables.read_overview(store)["setups"]
    assert setup["runs"] >= 1000 - BLOCK_SIZE
    assert (simulate_with_store(store, runs=3000) == simulate_with_store(store.with_name("new"), runs=3000)).all()


def test_slow_runs_are_stored_before_their_block_is_complete(store, monkeypatch):
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
            run=bt.Run(workers=1, store=store, progress=stop),
        )
    (setup,) = store_tables.read_overview(store)["setups"]
    assert 40 <= setup["runs"] < 100


@pytest.mark.parametrize(("first", "size"), [(0, 256), (0, 257), (255, 2), (300, 700), (2**40 + 5, 600)])
def test_blocks_end_at_multiples_of_256_runs(first, size):
    regrets = np.arange(size, dtype=np.float32)[:, None]
    parts = list(cut_at_blocks(first, regrets))
    assert (np.concatenate([part for _, part in parts]) == regrets).all()
    for start, part in parts:
        assert start // BLOCK_SIZE == (start + len(part) - 1) // BLOCK_SIZE
    assert [start for start, _ in parts][1:] == [start + len(part) for start, part in parts][:-1]


def test_selected_runs_become_ranges():
    assert find_ranges(np.array([1, 1, 0, 1, 0, 0, 1], bool), 10) == [range(10, 12), range(13, 14), range(16, 17)]
    assert find_ranges(np.zeros(3, bool), 10) == []
