"""Damage to a store is detected: no damaged byte becomes a number."""

from __future__ import annotations

import random
import sqlite3

import numpy as np
import pytest

import banditune as bt
from banditune.simulation.instances import BLOCK_SIZE
from banditune.storage import store_tables
from helpers.stores import simulated


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
