"""Regrets at many values of a parameter, from which tunings draw their runs; for `wide_ranges.py`.

A tuning draws runs with replacement. A value between two stored ones has the runs of the nearer one. Truths are means of
other runs. This module has only functions for that benchmark.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import banditune as bt
from banditune.core.space import Range
from banditune.core.tuner import SPEND_BUDGET, Goal, SearchAnswer, Tuner
from banditune.study.search import start_search

POOL, TRUTH = 1, 2
"""Seeds of the runs that tunings draw and of those that are the truth."""


@dataclass(frozen=True)
class Stored:
    """Values in rising order, regrets (values, runs) and the true means."""

    values: np.ndarray
    regrets: np.ndarray
    truth: np.ndarray

    def place(self, value: Any) -> Any:
        """The nearest stored value on a log scale."""
        logs = np.log(self.values)
        return np.abs(np.subtract.outer(np.log(np.maximum(value, self.values[0])), logs)).argmin(axis=-1)

    def among(self, low: float, high: float) -> np.ndarray:
        """Which values lie in a range."""
        return (self.values >= low * (1 - 1e-9)) & (self.values <= high * (1 + 1e-9))


def play(
    policy: Any,
    problem: Any,
    values: np.ndarray,
    horizon: int,
    runs: int,
    truths: int,
    device: str,
    at_once: int = 2000,
) -> Stored:
    """Play a pool, each value with noise of its own, and a truth, all values with the same noise."""

    def played(seed: int, count: int, noise: str, first: int) -> np.ndarray:
        return bt.simulate(
            policy,
            problem,
            values,
            horizon=horizon,
            runs=count,
            seed=seed,
            first_instance=first,
            simulation=bt.Simulation(common_random_numbers=noise == "shared"),
            run=bt.Run(device=device),
        )

    regrets = played(POOL, runs, "own", 0)
    parts = [(first, min(at_once, truths - first)) for first in range(0, truths, at_once)]
    sums = sum(played(TRUTH, size, "shared", first).sum(axis=1) for first, size in parts)
    return Stored(values, regrets.astype(np.float32), sums / truths)


def save(path: Path, pools: dict[str, Stored]) -> None:
    """Keep pools in one file; regrets in half precision."""
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays = {}
    for name, pool in pools.items():
        arrays |= {f"{name}/values": pool.values, f"{name}/truth": pool.truth}
        arrays[f"{name}/regrets"] = pool.regrets.astype(np.float16)
    np.savez_compressed(path, **arrays)


def load(path: Path) -> dict[str, Stored]:
    """Pools of a file by their names."""
    kept = np.load(path)
    names = dict.fromkeys(key.rpartition("/")[0] for key in kept)
    return {
        name: Stored(kept[f"{name}/values"], kept[f"{name}/regrets"].astype(np.float32), kept[f"{name}/truth"])
        for name in names
    }


class Outcome(NamedTuple):
    """An answer, what is stated of it, the runs that it took, and what it truly loses over the best value."""

    found: SearchAnswer
    runs: int
    lost: float
    best: float


def tuned(tuner: Tuner, pool: Stored, among: Range, budget: int, goal: Goal = SPEND_BUDGET, seed: int = 0) -> Outcome:
    """One tuning on stored runs."""
    rng = np.random.default_rng([seed, 7])
    search = start_search(tuner, among, budget, goal, seed)
    runs = 0
    try:
        trial = next(search)
        while True:
            assert isinstance(trial.size, tuple)
            runs += sum(trial.size)
            told = [
                pool.regrets[place, rng.integers(pool.regrets.shape[1], size=size)].astype(float)
                for place, size in zip(pool.place(np.array(trial.values)), trial.size, strict=True)
            ]
            trial = search.send(told)
    except StopIteration as answer:
        found = answer.value
    best = float(pool.truth[pool.among(among.low, among.high)].min())
    return Outcome(found, runs, float(pool.truth[pool.place(found.value)]) - best, best)
