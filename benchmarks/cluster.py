"""The speed of two workers compared with two threads, and the number of chunks per second that a cluster starts.

python benchmarks/cluster.py            # processes
python benchmarks/cluster.py dask://HOST:8786 ray://HOST:10001

Executors take turns, so that other load on the machine affects all alike.
"""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack

import numpy as np

import banditune as bt
from banditune.core.arrays import copy_read_only
from banditune.simulation import chunks
from banditune.simulation.executor import Chunk, ChunkResult, Executor
from banditune.simulation.executors.executor_factory import make_executor_factory
from banditune.simulation.spec import SimulationSpec

WORK = {"horizon": 10_000, "runs": 6000, "simulation": bt.Simulation(shortcuts=False)}
"""Some seconds on one core, in pieces of half a second."""

TURNS = 5
TINY = 2000


def measure_seconds(executor: Executor) -> tuple[float, float]:
    """Seconds for the work, and the share of them that workers spent playing."""
    playing = 0.0
    learn = chunks.ChunkSizer.update_size

    def record_seconds(pace: chunks.ChunkSizer, played: ChunkResult) -> None:
        nonlocal playing
        playing += played.seconds
        learn(pace, played)

    chunks.ChunkSizer.update_size = record_seconds  # type: ignore[method-assign]
    start = time.perf_counter()
    try:
        bt.simulate(bt.UCB1(noise=0.5), bt.Bernoulli(arms=10), [0.2], run=bt.Run(executor=executor), **WORK)
    finally:
        chunks.ChunkSizer.update_size = learn  # type: ignore[method-assign]
    times = time.perf_counter() - start
    return times, playing / times / executor.workers


def measure_rate(executor: Executor) -> float:
    """Pieces a second that take no time to play."""
    spec = SimulationSpec(bt.UCB1(noise=0.5), bt.Bernoulli(arms=10), 1)
    session = executor.open_session(spec)
    chunk = Chunk(copy_read_only(np.ones((1, 1))), 0, range(1))
    session.submit(0, chunk)
    session.wait_for_result()
    start = time.perf_counter()
    sent = received = 0
    while received < TINY:
        while sent < TINY and sent - received < 64:
            session.submit(sent, chunk)
            sent += 1
        session.wait_for_result()
        received += 1
    session.stop()
    return TINY / (time.perf_counter() - start)


def main() -> None:
    """Measure each place against threads."""
    names = ["threads", *(sys.argv[1:] or ["processes"])]
    with ExitStack() as stack:
        executors = {
            name: stack.enter_context(make_executor_factory(name, 2 if name in ("threads", "processes") else None)())
            for name in names
        }
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
        for name, executor in executors.items():
            measure_seconds(executor)  # compile
            print(
                f"{name}: {measure_rate(executor):,.0f} empty pieces a second, {executor.workers} workers", flush=True
            )
        for _ in range(TURNS):
            for name, executor in executors.items():
                times[name].append(measure_seconds(executor))
        for name in names:
            seconds, busy = (np.array(each) for each in zip(*times[name], strict=True))
            share = np.array([first[0] for first in times["threads"]]) / seconds
            print(
                f"{name}: {seconds.min():.2f} s at best, workers busy {np.median(busy):.0%} of the time, "
                f"{np.median(share):.0%} of the speed of threads (from {share.min():.0%} to {share.max():.0%})"
            )


if __name__ == "__main__":
    main()
