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


class UnreliableExecutor(Executor):
    """Returns results in another order, and loses every third chunk `losses` times."""

    def __init__(self, losses):
        self.losses = losses
        self.largest_in_flight = 0

    @property
    def workers(self):
        return 3

    def open_session(self, spec):
        return UnreliableSession(self, Simulator(spec))

    def close(self):
        pass


class UnreliableSession(ExecutorSession):
    def __init__(self, executor, simulator):
        self.executor, self.simulator = executor, simulator
        self.in_flight, self.loss_counts = {}, {}

    def submit(self, ticket, chunk):
        assert ticket not in self.in_flight
        self.in_flight[ticket] = chunk
        self.executor.largest_in_flight = max(self.executor.largest_in_flight, len(self.in_flight))

    def wait_for_result(self):
        ticket = max(self.in_flight, key=lambda ticket: hash((ticket, 5)))
        chunk = self.in_flight.pop(ticket)
        if ticket % 3 == 0 and self.loss_counts.get(ticket, 0) < self.executor.losses:
            self.loss_counts[ticket] = self.loss_counts.get(ticket, 0) + 1
            return ticket, LostChunk("it was unplugged")
        return ticket, self.simulator.simulate_chunk(chunk, np.zeros(1, np.int64))

    def stop(self):
        self.in_flight = {}


def test_lost_chunks_are_simulated_again(monkeypatch, tmp_path):
    monkeypatch.setattr(chunks, "ROUNDS_PER_CHUNK", 5000)
    regrets = bt.simulate(bt.UCB1(noise=0.5), PROBLEM, [0.2, 0.7], **group_settings(workers=1, **SHORT))
    executor = UnreliableExecutor(2)
    assert (
        bt.simulate(bt.UCB1(noise=0.5), PROBLEM, [0.2, 0.7], **group_settings(executor=executor, **SHORT)) == regrets
    ).all()
    assert executor.largest_in_flight == scheduler.CHUNKS_PER_WORKER * 3
    store = tmp_path / "book"
    stored = bt.simulate(
        bt.UCB1(noise=0.5), PROBLEM, [0.2, 0.7], **group_settings(executor=executor, store=store, **SHORT)
    )
    assert (stored == regrets.astype(np.float32)).all()
    # Every regret is stored once, although blocks were completed in another order.
    assert store_tables.verify_store(store)["regrets"] == regrets.size


def test_a_chunk_that_was_lost_three_times_is_an_error(monkeypatch):
    monkeypatch.setattr(chunks, "ROUNDS_PER_CHUNK", 5000)
    with pytest.raises(
        bt.SimulationError, match=r"runs \d+ to \d+ of the policy 'ucb1' .* 3 times \(at last: it was unplugged\)"
    ):
        bt.simulate(bt.UCB1(noise=0.5), PROBLEM, 0.2, **group_settings(executor=UnreliableExecutor(3), **SHORT))


class BrokenSession(UnreliableSession):
    """A session that cannot be stopped."""

    def stop(self):
        raise OSError("the connection is gone")


class BrokenExecutor(UnreliableExecutor):
    def open_session(self, spec):
        return BrokenSession(self, Simulator(spec))

    def close(self):
        raise OSError("nobody answers")


def test_the_first_error_is_reported_although_stopping_fails():
    with pytest.raises(bt.SimulationError, match="the policy 'nan' chose nan"), BrokenExecutor(0) as executor:
        bt.simulate(bt.define_policy("nan", choose_nan), PROBLEM, **group_settings(executor=executor, **SHORT))
    with (
        pytest.raises(bt.SimulationError, match="the policy 'nan' chose nan"),
        StoredSimulator(lambda: BrokenExecutor(0)) as stored_simulator,
    ):
        stored_simulator.simulate(build_spec(bt.define_policy("nan", choose_nan), PROBLEM, horizon=50), [[]], range(9))
    with pytest.raises(OSError, match="the connection is gone"):  # an error of stopping alone is reported
        bt.simulate(bt.UCB1(noise=0.5), PROBLEM, **group_settings(executor=BrokenExecutor(0), **SHORT))


def test_chunks_for_other_processes_are_longer():
    spec = build_spec(bt.UCB1(noise=0.5), PROBLEM, horizon=1000)
    params = arrays.copy_read_only([[1.0]])
    task = chunks.SimulationTask(params, 0, range(100_000), np.empty((1, 100_000, 1)))
    executor = UnreliableExecutor(0)
    sizer = chunks.ChunkSizer(spec, executor, 1)
    assert sizer.find_chunk_end(task, 10) == 4096  # TASK is 4194 runs: up to the end of a block
    sizer.update_size(ChunkResult(np.empty((1, 4000, 1)), np.zeros(5), 0.1))
    assert sizer.find_chunk_end(task, 4096) == 4096 + 19_968  # half a second is 20,000 runs
    assert sizer.find_chunk_end(task, 99_990) == 100_000
    with bt.executors.ThreadExecutor(2) as threads:
        assert chunks.ChunkSizer(spec, threads, 1).find_chunk_end(task, 10) == 256


def test_after_an_error_no_other_chunk_is_simulated():
    stop_flags = []

    def fail(chunk, stop_flag):
        stop_flags.append(int(stop_flag[0]))
        raise bt.InvalidRequest(f"chunk {chunk}")

    with ThreadPoolExecutor(1) as pool:
        session = threads.LocalSession(pool, fail)
        for ticket in range(3):
            session.submit(ticket, ticket)
    assert stop_flags == [0, 1, 1]
    with pytest.raises(bt.InvalidRequest, match="chunk 0"):
        session.wait_for_result()
