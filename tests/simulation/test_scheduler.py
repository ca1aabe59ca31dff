"""The scheduler: chunks, lost workers and errors, on an executor that loses results."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import banditune as bt
from banditune.core import arrays
from banditune.simulation import chunks, scheduler
from banditune.simulation.executor import ChunkResult, Executor, ExecutorSession, LostChunk
from banditune.simulation.executors import threads
from banditune.simulation.simulator import Simulator
from banditune.storage import store_tables
from banditune.storage.stored_simulator import StoredSimulator
from banditune.study.requests import build_spec
from helpers.settings import group_settings

PROBLEM = bt.Bernoulli(arms=3)


SHORT = {"horizon": 50, "runs": 700}


@bt.kernel.scalar
def choose_nan(state, setting, step, params, stream):
    return math.nan if step == 7 else 0


class Unreliable(Executor):
    """Gives back results in a bad order, and loses every third piece `losses` times."""

    def __init__(self, losses):
        self.losses = losses
        self.most = 0

    @property
    def workers(self):
        return 3

    def open_session(self, spec):
        return UnreliableWork(self, Simulator(spec))

    def close(self):
        pass


class UnreliableWork(ExecutorSession):
    def __init__(self, cluster, ready):
        self.cluster, self.ready = cluster, ready
        self.flying, self.lost = {}, {}

    def submit(self, ticket, piece):
        assert ticket not in self.flying
        self.flying[ticket] = piece
        self.cluster.most = max(self.cluster.most, len(self.flying))

    def wait_for_result(self):
        ticket = max(self.flying, key=lambda ticket: hash((ticket, 5)))
        piece = self.flying.pop(ticket)
        if ticket % 3 == 0 and self.lost.get(ticket, 0) < self.cluster.losses:
            self.lost[ticket] = self.lost.get(ticket, 0) + 1
            return ticket, LostChunk("it was unplugged")
        return ticket, self.ready.simulate_chunk(piece, np.zeros(1, np.int64))

    def stop(self):
        self.flying = {}


def test_lost_pieces_are_played_again_in_any_order_with_few_in_flight(monkeypatch, tmp_path):
    monkeypatch.setattr(chunks, "ROUNDS_PER_CHUNK", 5000)
    regrets = bt.simulate(bt.UCB1(noise=0.5), PROBLEM, [0.2, 0.7], **group_settings(jobs=1, **SHORT))
    cluster = Unreliable(2)
    assert (
        bt.simulate(bt.UCB1(noise=0.5), PROBLEM, [0.2, 0.7], **group_settings(cluster=cluster, **SHORT)) == regrets
    ).all()
    assert cluster.most == scheduler.CHUNKS_PER_WORKER * 3
    book = tmp_path / "book"
    kept = bt.simulate(bt.UCB1(noise=0.5), PROBLEM, [0.2, 0.7], **group_settings(cluster=cluster, ledger=book, **SHORT))
    assert (kept == regrets.astype(np.float32)).all()
    # Every regret was written once, although blocks were complete in another order.
    assert store_tables.verify_store(book)["regrets"] == regrets.size


def test_a_piece_that_was_lost_three_times_is_named(monkeypatch):
    monkeypatch.setattr(chunks, "ROUNDS_PER_CHUNK", 5000)
    with pytest.raises(
        bt.SimulationError, match=r"runs \d+ to \d+ of the policy 'ucb1' .* 3 times \(at last: it was unplugged\)"
    ):
        bt.simulate(bt.UCB1(noise=0.5), PROBLEM, 0.2, **group_settings(cluster=Unreliable(3), **SHORT))


class Torn(UnreliableWork):
    """Cannot even be given up."""

    def stop(self):
        raise OSError("the connection is gone")


class TornPlace(Unreliable):
    def open_session(self, spec):
        return Torn(self, Simulator(spec))

    def close(self):
        raise OSError("nobody answers")


def test_what_went_wrong_first_is_told_whatever_giving_up_meets():
    with pytest.raises(bt.SimulationError, match="the policy 'nan' chose nan"), TornPlace(0) as cluster:
        bt.simulate(bt.define_policy("nan", choose_nan), PROBLEM, **group_settings(cluster=cluster, **SHORT))
    with (
        pytest.raises(bt.SimulationError, match="the policy 'nan' chose nan"),
        StoredSimulator(lambda: TornPlace(0)) as player,
    ):
        player.simulate(build_spec(bt.define_policy("nan", choose_nan), PROBLEM, horizon=50), [[]], range(9))
    with pytest.raises(OSError, match="the connection is gone"):  # an error of its own is not swallowed
        bt.simulate(bt.UCB1(noise=0.5), PROBLEM, **group_settings(cluster=TornPlace(0), **SHORT))


def test_pieces_become_longer_where_they_travel():
    spec = build_spec(bt.UCB1(noise=0.5), PROBLEM, horizon=1000)
    params = arrays.copy_read_only([[1.0]])
    part = chunks.SimulationTask(params, 0, range(100_000), np.empty((1, 100_000, 1)))
    cluster = Unreliable(0)
    pace = chunks.ChunkSizer(spec, cluster, 1)
    assert pace.find_chunk_end(part, 10) == 4096  # TASK is 4194 runs: up to the end of a block
    pace.update_size(ChunkResult(np.empty((1, 4000, 1)), np.zeros(5), 0.1))
    assert pace.find_chunk_end(part, 4096) == 4096 + 19_968  # half a second is 20,000 runs
    assert pace.find_chunk_end(part, 99_990) == 100_000
    with bt.executors.ThreadExecutor(2) as threads:
        assert chunks.ChunkSizer(spec, threads, 1).find_chunk_end(part, 10) == 256


def test_after_an_error_no_further_piece_is_begun():
    signs = []

    def play(piece, sign):
        signs.append(int(sign[0]))
        raise bt.InvalidRequest(f"piece {piece}")

    with ThreadPoolExecutor(1) as pool:
        work = threads.LocalSession(pool, play)
        for ticket in range(3):
            work.submit(ticket, ticket)
    assert signs == [0, 1, 1]
    with pytest.raises(bt.InvalidRequest, match="piece 0"):
        work.wait_for_result()
