"""Rounds per second, next to NumPy simulations in the same run: `make benchmark` or `python benchmarks/throughput.py`.

Bernoulli arms with uniform means, K = 10, horizon 10,000, one thread. The NumPy simulations are vectorised over 10,000
instances and keep each arm's index or posterior up to date in place: what one would write in an afternoon.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable

import numpy as np

import banditune as bt

ARMS, HORIZON, INSTANCES = 10, 10_000, 10_000


def numpy_ucb1(gamma: float, steps: int) -> float:
    """UCB1 over all instances at once; returns the seconds for so many steps."""
    rng = np.random.default_rng(0)
    means = rng.random((INSTANCES, ARMS))
    rows = np.arange(INSTANCES)
    best = means.max(axis=1)
    regret = np.zeros(INSTANCES)
    scale = gamma * math.sqrt(2 * math.log(HORIZON))
    pulls = np.ones((INSTANCES, ARMS))
    total = (rng.random((INSTANCES, ARMS)) < means).astype(float)
    index = total + scale
    before = time.perf_counter()
    for _ in range(steps):
        arm = index.argmax(axis=1)
        mean = means[rows, arm]
        count = pulls[rows, arm] + 1
        sum_ = total[rows, arm] + (rng.random(INSTANCES) < mean)
        pulls[rows, arm] = count
        total[rows, arm] = sum_
        index[rows, arm] = sum_ / count + scale / np.sqrt(count)
        regret += best - mean
    return time.perf_counter() - before


def numpy_thompson(gamma: float, steps: int) -> float:
    """Thompson sampling over all instances at once; returns the seconds for so many steps."""
    rng = np.random.default_rng(0)
    means = rng.random((INSTANCES, ARMS))
    rows = np.arange(INSTANCES)
    best = means.max(axis=1)
    regret = np.zeros(INSTANCES)
    a = np.full((INSTANCES, ARMS), 1 / gamma**2)
    b = a.copy()
    before = time.perf_counter()
    for _ in range(steps):
        arm = rng.beta(a, b).argmax(axis=1)
        mean = means[rows, arm]
        success = rng.random(INSTANCES) < mean
        a[rows, arm] += success / gamma**2
        b[rows, arm] += ~success / gamma**2
        regret += best - mean
    return time.perf_counter() - before


def ours(policy: bt.Policy, gamma: float, runs: int, *, jobs: int = 1, shortcut: bool = True) -> float:
    """Seconds for so many runs, with a warm kernel."""
    before = time.perf_counter()
    bt.simulate(policy, bt.Bernoulli(arms=ARMS), [gamma], horizon=HORIZON, runs=runs, jobs=jobs, shortcut=shortcut)
    return time.perf_counter() - before


def best_rate(measure: Callable[[], float], rounds: float, repeats: int) -> float:
    """Millions of rounds per second, best of several."""
    return rounds / min(measure() for _ in range(repeats)) / 1e6


def rows(repeats: int) -> list[dict[str, float | str]]:
    """One row per policy and width: NumPy and ours in turn, so that a noisy neighbour hits both."""
    found = []
    cases = [("ucb1", bt.UCB1(), numpy_ucb1, 1000, 20_000, 400), ("ts", bt.Thompson(), numpy_thompson, 300, 3000, 60)]
    for name, policy, reference, steps, runs, plain_runs in cases:
        for gamma in (1.0, 0.3):
            ours(policy, gamma, 4)
            ours(policy, gamma, 4, shortcut=False)
            numpy_rate = best_rate(lambda r=reference, g=gamma, s=steps: r(g, s), INSTANCES * steps, repeats)
            one = best_rate(lambda p=policy, g=gamma, n=runs: ours(p, g, n), runs * HORIZON, repeats)
            two = best_rate(lambda p=policy, g=gamma, n=runs: ours(p, g, 2 * n, jobs=2), 2 * runs * HORIZON, repeats)
            plain = best_rate(
                lambda p=policy, g=gamma, n=plain_runs: ours(p, g, n, shortcut=False), plain_runs * HORIZON, repeats
            )
            found.append(
                {"policy": name, "gamma": gamma, "numpy": numpy_rate, "plain loop": plain, "shortcut": one,
                 "ratio": one / numpy_rate, "two threads": two / one}
            )  # fmt: skip
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = rows(options.repeats)
    if options.json:
        print(json.dumps(found))
        return
    print("million rounds per second, one thread, best of", options.repeats)
    print(f"{'policy':8}{'gamma':>6}{'NumPy':>9}{'plain':>9}{'shortcut':>10}{'ratio':>8}{'2 threads':>11}")
    for row in found:
        print(
            f"{row['policy']:8}{row['gamma']:>6}{row['numpy']:>9.2f}{row['plain loop']:>9.2f}{row['shortcut']:>10.1f}"
            f"{row['ratio']:>7.1f}x{row['two threads']:>10.2f}x"
        )


if __name__ == "__main__":
    main()
