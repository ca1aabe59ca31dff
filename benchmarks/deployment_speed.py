"""Deployed policies: microseconds of a decision and of an update, and the regret that late rewards add.

python benchmarks/deployment_speed.py speed     # every registered policy, ten arms and ten features
python benchmarks/deployment_speed.py delays    # regret where every reward comes 100 decisions late
"""

from __future__ import annotations

import sys
import time
from collections import deque

import numpy as np

import banditune as bt
from banditune.registry import collect_policies
from banditune.study.options_from_problem import resolve_policy_options

ARMS, DIMS, HORIZON = 10, 10, 1000

NOT_DEPLOYABLE = ("optimal-mixture", "ucb-v")
"""Their memory is not a function of pulls and totals."""


def deploy_policy(name: str, pending: str) -> bt.DeployedPolicy:
    """Deploy a registered policy."""
    policy = collect_policies()[name]()
    arms = 2 if name == "optimal" else ARMS
    if policy.needs_features:
        problem = (bt.Linear if policy.rewards == "real" else bt.Logistic)(arms=arms, dims=DIMS)
    else:
        problem = bt.Gaussian(arms=arms) if name == "gaussian-ts" else bt.Bernoulli(arms=arms)
    policy = resolve_policy_options(policy, problem).policy
    features = np.random.default_rng(0).normal(size=(arms, DIMS)) if policy.needs_features else None
    horizon = 200 if name in ("gittins", "optimal") else HORIZON
    return bt.deploy(policy, horizon=horizon, arms=arms, features=features, pending=pending)


def measure_times(deployed: bt.DeployedPolicy, rounds: int) -> tuple[float, float]:
    """Measure `select_arm` and `update` in turn, in microseconds."""
    rng = np.random.default_rng(1)
    choosing = updating = 0.0
    for _ in range(rounds):
        start = time.perf_counter()
        arm = deployed.select_arm()
        middle = time.perf_counter()
        deployed.update(arm, 1.0 if rng.random() < 0.5 else 0.0)
        choosing += middle - start
        updating += time.perf_counter() - middle
    return 1e6 * choosing / rounds, 1e6 * updating / rounds


def print_speed() -> None:
    """Print a line for each policy: the best of five measurements."""
    for name in collect_policies():
        if name in NOT_DEPLOYABLE:
            continue
        start = time.perf_counter()
        deployed = deploy_policy(name, "ignore")
        ready = time.perf_counter() - start
        best = np.min([measure_times(deployed, 30) for _ in range(5)], axis=0)
        averaging = deploy_policy(name, "mean")
        averaging.select_arms(2)
        averaging_times = np.min([measure_times(averaging, 30) for _ in range(5)], axis=0)
        print(
            f"{name:20} select {best[0]:6.1f}  update {best[1]:6.1f}  "
            f"select with mean {averaging_times[0]:6.1f}  ready {ready:.2f} s"
        )


def simulate_regret(
    policy: bt.kernel.Policy, value: float, means: np.ndarray, delay: int, pending: str, seed: int, horizon: int
) -> float:
    """Expected regret of a run in which every reward comes `delay` decisions late."""
    rng = np.random.default_rng(seed)
    deployed = bt.deploy(policy, value, horizon=horizon, arms=len(means), seed=seed, pending=pending)
    late: deque[tuple[int, float]] = deque()
    total = 0.0
    for _ in range(horizon):
        arm = deployed.select_arm()
        total += means.max() - means[arm]
        late.append((arm, float(rng.random() < means[arm])))
        if len(late) > delay:
            deployed.update(*late.popleft())
    return total


def print_delays(runs: int = 100, horizon: int = 2000, delay: int = 100) -> None:
    """Print regret with rewards at once and with late rewards, under both settings, on the same instances."""
    instances = np.random.default_rng(0).uniform(size=(runs, ARMS))
    for policy, value in ((bt.UCB1(noise=0.5), 0.25), (bt.Thompson(prior=(1, 1)), 0.6), (bt.EpsilonGreedy(), 0.05)):
        for wait, pending in ((0, "ignore"), (delay, "ignore"), (delay, "mean")):
            regrets = [
                simulate_regret(policy, value, means, wait, pending, seed, horizon)
                for seed, means in enumerate(instances)
            ]
            se = np.std(regrets, ddof=1) / np.sqrt(runs)
            print(f"{policy.name:15} delay {wait:4} {pending:7} {np.mean(regrets):7.1f} +- {se:.1f}", flush=True)


if __name__ == "__main__":
    {"speed": print_speed, "delays": print_delays}[sys.argv[1] if len(sys.argv) > 1 else "speed"]()
