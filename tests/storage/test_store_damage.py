"""Damage to a store is detected: no damaged byte becomes a number."""

from __future__ import annotations

import random
import sqlite3

import numpy as np
import pytest

import banditune as bt
from banditune.simulation.instances import BLOCK_SIZE
from banditune.storage import store_tables
from helpers.stores import simulate_with_store


@pytest.fixture(scope="module")
def stored_content(tmp_path_factory):
    """The bytes of a store, and the regrets in it."""
    path = tmp_path_factory.mktemp("small") / "study.db"
    regrets = simulate_with_store(path, [0.3, 0.5], 600)
    return path.read_bytes(), regrets


def use_store(store, regrets):
    """Use a damaged store in four ways. Each fails, or gives the right numbers. Return how many failed."""
    errors = 0
    actions = (
        lambda: simulate_with_store(store, [0.3, 0.5], 600),
        lambda: store_tables.verify_store(store),
        lambda: store_tables.summarize_regrets(store),
        lambda: store_tables.read_overview(store),
    )
    for action in actions:
        try:
            result = action()
            assert not isinstance(result, np.ndarray) or (result == regrets).all()
        except bt.errors.StoreError as error:
            errors += 1
            assert str(store) in str(error)
    return errors


def test_flipped_bits_are_errors_or_change_nothing(store, stored_content):
    content, regrets = stored_content
    rng = random.Random(3)
    positions = sorted(rng.sample(range(len(content)), 60)) + list(range(0, 100, 7))
    errors = 0
    for position in positions:
        damaged = bytearray(content)
        damaged[position] ^= 1 << rng.randrange(8)
        store.write_bytes(damaged)
        errors += use_store(store, regrets)
        for path in store.parent.iterdir():
            path.unlink()
    assert errors > 10


def test_a_flipped_bit_of_a_stored_regret_is_detected(store, stored_content):
    content, regrets = stored_content
    position = content.find(regrets[0, :BLOCK_SIZE].astype("<f4").tobytes())
    assert position > 0
    damaged = bytearray(content)
    damaged[position + 500] ^= 1
    store.write_bytes(damaged)
    with pytest.raises(
        bt.errors.StoreError, match=r"is damaged: the checksum of the block of run 0 is wrong; use a copy"
    ):
        simulate_with_store(store, [0.3, 0.5], 600)
    with pytest.raises(bt.errors.StoreError, match="checksum"):
        store_tables.verify_store(store)
    with pytest.raises(bt.errors.StoreError, match="checksum"):
        store_tables.summarize_regrets(store)
    with pytest.raises(bt.errors.StoreError, match=r"^the \w+ .* checksum"):
        store_tables.export_store(store, store.with_name("all.csv"))
    assert not store.with_name("all.csv").exists()


def test_truncated_stores_are_errors(store, stored_content):
    content, regrets = stored_content
    rng = random.Random(4)
    for size in [*rng.sample(range(1, len(content)), 12), 1, 16, 99, 100, len(content) - 1]:
        store.write_bytes(content[:size])
        assert use_store(store, regrets) >= 1
        for path in store.parent.iterdir():
            path.unlink()


def test_exchanged_blocks_are_detected(store):
    simulate_with_store(store, [0.3, 0.5], 600)
    connection = sqlite3.connect(store)
    connection.execute("UPDATE series SET params = x'00' WHERE id = 1")
    connection.execute("UPDATE blocks SET series = series + 10")
    connection.execute("UPDATE blocks SET series = 13 - series")
    connection.commit()
    connection.close()
    with pytest.raises(bt.errors.StoreError, match="checksum"):
        simulate_with_store(store, [0.5], 600)
    with pytest.raises(bt.errors.StoreError, match="series 1 is not what was written"):
        store_tables.verify_store(store)
