"""Deployed policies: microseconds of a decision and of learning a reward, and what late rewards cost.

python benchmarks/live.py speed     # every policy on the shelf: ten arms, ten features
python benchmarks/live.py delays    # regret where every reward comes 100 decisions late
"""

from __future__ import annotations

import sys
import time
from collections import deque

import numpy as np

import banditune as bt
from banditune.registry import collect_policies

ARMS, DIMS, HORIZON = 10, 10, 1000


def made(name: str, pending: str) -> bt.DeployedPolicy:
    """A policy from the shelf at work."""
    policy = collect_policies()[name]()
    arms = 2 if name == "optimal" else ARMS
    features = np.random.default_rng(0).normal(size=(arms, DIMS)) if policy.needs_features else None
    horizon = 200 if name in ("gittins", "optimal") else HORIZON
    return bt.deploy(policy, horizon=horizon, arms=arms, features=features, pending=pending)


def times(live: bt.DeployedPolicy, rounds: int) -> tuple[float, float]:
    """Microseconds of `select_arm` and of `update`, in turns."""
    rng = np.random.default_rng(1)
    chosen = learnt = 0.0
    for _ in range(rounds):
        start = time.perf_counter()
        arm = live.select_arm()
        middle = time.perf_counter()
        live.update(arm, 1.0 if rng.random() < 0.5 else 0.0)
        chosen += middle - start
        learnt += time.perf_counter() - middle
    return 1e6 * chosen / rounds, 1e6 * learnt / rounds


def speed() -> None:
    """A line for each policy: the best of five."""
    for name in collect_policies():
        if name == "optimal-mixture":
            continue
        start = time.perf_counter()
        live = made(name, "ignore")
        ready = time.perf_counter() - start
        best = np.min([times(live, 30) for _ in range(5)], axis=0)
        imagining = made(name, "mean")
        imagining.select_arms(2)
        waits = np.min([times(imagining, 30) for _ in range(5)], axis=0)
        print(
            f"{name:20} select {best[0]:6.1f}  update {best[1]:6.1f}  select with mean {waits[0]:6.1f}  ready {ready:.2f} s"
        )


def regret(
    policy: bt.kernel.Policy, value: float, means: np.ndarray, delay: int, pending: str, seed: int, horizon: int
) -> float:
    """Expected regret of a run in which every reward comes `delay` decisions late."""
    rng = np.random.default_rng(seed)
    live = bt.deploy(policy, value, horizon=horizon, arms=len(means), seed=seed, pending=pending)
    late: deque[tuple[int, float]] = deque()
    lost = 0.0
    for _ in range(horizon):
        arm = live.select_arm()
        lost += means.max() - means[arm]
        late.append((arm, float(rng.random() < means[arm])))
        if len(late) > delay:
            live.update(*late.popleft())
    return lost


def delays(runs: int = 100, horizon: int = 2000, delay: int = 100) -> None:
    """Regret at once, and with late rewards under both rules, on the same instances."""
    instances = np.random.default_rng(0).uniform(size=(runs, ARMS))
    for policy, value in ((bt.UCB1(noise=0.5), 0.25), (bt.Thompson(prior=(1, 1)), 0.6), (bt.EpsilonGreedy(), 0.05)):
        for wait, pending in ((0, "ignore"), (delay, "ignore"), (delay, "mean")):
            lost = [regret(policy, value, means, wait, pending, seed, horizon) for seed, means in enumerate(instances)]
            se = np.std(lost, ddof=1) / np.sqrt(runs)
            print(f"{policy.name:15} delay {wait:4} {pending:7} {np.mean(lost):7.1f} +- {se:.1f}", flush=True)


if __name__ == "__main__":
    {"speed": speed, "delays": delays}[sys.argv[1] if len(sys.argv) > 1 else "speed"]()
