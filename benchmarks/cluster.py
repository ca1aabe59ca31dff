"""How much of two threads' speed two workers keep, and how many pieces a second a cluster can hand out.

    python benchmarks/cluster.py            # processes
    python benchmarks/cluster.py dask://HOST:8786 ray://HOST:10001

Places take turns, so that others on the machine disturb all alike.
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


def timed(place: Executor) -> tuple[float, float]:
    """Seconds for the work, and the share of them that workers spent playing."""
    playing = 0.0
    learn = chunks.ChunkSizer.update_size

    def watched(pace: chunks.ChunkSizer, played: ChunkResult) -> None:
        nonlocal playing
        playing += played.seconds
        learn(pace, played)

    chunks.ChunkSizer.update_size = watched  # type: ignore[method-assign]
    began = time.perf_counter()
    try:
        bt.simulate(bt.UCB1(noise=0.5), bt.Bernoulli(arms=10), [0.2], run=bt.Run(executor=place), **WORK)
    finally:
        chunks.ChunkSizer.update_size = learn  # type: ignore[method-assign]
    took = time.perf_counter() - began
    return took, playing / took / place.workers


def rate(place: Executor) -> float:
    """Pieces a second that take no time to play."""
    job = SimulationSpec(bt.UCB1(noise=0.5), bt.Bernoulli(arms=10), 1)
    work = place.open_session(job)
    piece = Chunk(copy_read_only(np.ones((1, 1))), 0, range(1))
    work.submit(0, piece)
    work.wait_for_result()
    began = time.perf_counter()
    sent = came = 0
    while came < TINY:
        while sent < TINY and sent - came < 64:
            work.submit(sent, piece)
            sent += 1
        work.wait_for_result()
        came += 1
    work.stop()
    return TINY / (time.perf_counter() - began)


def main() -> None:
    """Measure each place against threads."""
    names = ["threads", *(sys.argv[1:] or ["processes"])]
    with ExitStack() as stack:
        places = {
            name: stack.enter_context(make_executor_factory(name, 2 if name in ("threads", "processes") else None)())
            for name in names
        }
        took: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
        for name, place in places.items():
            timed(place)  # compile
            print(f"{name}: {rate(place):,.0f} empty pieces a second, {place.workers} workers", flush=True)
        for _ in range(TURNS):
            for name, place in places.items():
                took[name].append(timed(place))
        for name in names:
            seconds, busy = (np.array(each) for each in zip(*took[name], strict=True))
            share = np.array([first[0] for first in took["threads"]]) / seconds
            print(
                f"{name}: {seconds.min():.2f} s at best, workers busy {np.median(busy):.0%} of the time, "
                f"{np.median(share):.0%} of the speed of threads (from {share.min():.0%} to {share.max():.0%})"
            )


if __name__ == "__main__":
    main()
