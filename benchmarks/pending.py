"""The regret added by delayed rewards with both settings of `pending`, for every registered policy that can be deployed.

python benchmarks/pending.py --workers 16 --runs 300 --out pending.json     # about 6 minutes on 16 cores
python benchmarks/pending.py --workers 1 --runs 4 --scale 0.05              # a quick look

Every policy is tuned on its problem with rewards at once. It then plays the same instances and rewards three times:
with rewards at once, and with rewards that come in batches (10 or 30 over the horizon, as daily updates do) under
`pending="ignore"` and `pending="mean"`. The difference of the two settings is paired.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable
from multiprocessing import Pool
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import banditune as bt
from banditune.simulation.instances import draw_instances

CHUNK = 25
"""Runs of one task."""

BATCHES = (10, 30)
SETTINGS = ("ignore", "mean")


@bt.kernel.scalar
def choose_index(state, setting, step, params, stream):
    """A user's own deterministic index: every arm once, then the mean with a bonus that shrinks with the pulls."""
    if step < setting.arms:
        return step
    best, highest = 0, -1e308
    for arm in range(setting.arms):
        pulls = max(state.pulls[arm], 1.0)
        index = state.total[arm] / pulls + params[0] * math.sqrt(math.log(1.0 + step) / pulls)
        if index > highest:
            best, highest = arm, index
    return best


@bt.kernel.scalar
def choose_random(state, setting, step, params, stream):
    """A user's own random index: the mean with noise that shrinks with the pulls."""
    best, highest = 0, -1e308
    for arm in range(setting.arms):
        pulls = state.pulls[arm] + 1.0
        index = (state.total[arm] + 0.5) / pulls + params[0] * (2.0 * bt.kernel.uniform(stream) - 1.0) / math.sqrt(
            pulls
        )
        if index > highest:
            best, highest = arm, index
    return best


OWN = bt.Parameter("gamma", 0.0, 2.0, 1.0)


class Cell(NamedTuple):
    """A problem, its horizon and the policies that play there."""

    problem: Callable[[], bt.kernel.Problem]
    horizon: int
    policies: dict[str, Callable[[], bt.kernel.Policy]]


FREE = {
    "epsilon-greedy": bt.EpsilonGreedy,
    "explore-then-commit": bt.ExploreThenCommit,
    "greedy": bt.Greedy,
}
CELLS = {
    "Bernoulli, 10 arms": Cell(
        lambda: bt.Bernoulli(arms=10, prior=(1, 1)),
        10_000,
        {
            "ucb1": lambda: bt.UCB1(noise=0.5),
            "ucb1-step": lambda: bt.policies.UCB1Step(noise=0.5),
            "ts": lambda: bt.Thompson(prior=(1, 1)),
            "gaussian-ts": lambda: bt.GaussianThompson(prior=(0.5, 0.29), noise=0.5),
            "moss": bt.policies.MOSS,
            "kl-ucb": bt.policies.KLUCB,
            "bayes-ucb": lambda: bt.policies.BayesUCB(prior=(1, 1)),
            "finite-horizon-index": lambda: bt.policies.FiniteHorizonIndex(prior=(1, 1)),
            **FREE,
            "own index": lambda: bt.define_policy("own index", choose_index, parameters=OWN),
            "own random": lambda: bt.define_policy("own random", choose_random, parameters=OWN),
        },
    ),
    "Gaussian, 10 arms": Cell(
        lambda: bt.Gaussian(arms=10, prior=(0, 1), noise=1.0),
        3000,
        {
            "ucb1": lambda: bt.UCB1(noise=1.0),
            "ucb1-step": lambda: bt.policies.UCB1Step(noise=1.0),
            "gaussian-ts": lambda: bt.GaussianThompson(prior=(0, 1), noise=1.0),
            "gaussian-finite-horizon-index": lambda: bt.policies.GaussianFiniteHorizonIndex(prior=(0, 1), noise=1.0),
            **FREE,
        },
    ),
    "linear, 20 arms, 5 features": Cell(
        lambda: bt.Linear(arms=20, dims=5, noise=0.5),
        3000,
        {
            "linucb": lambda: bt.LinUCB(prior=(0.0, 1.0), noise=0.5),
            "lints": lambda: bt.LinTS(prior=(0.0, 1.0), noise=0.5),
            "lin-epsilon-greedy": lambda: bt.policies.LinEpsilonGreedy(prior=(0.0, 1.0), noise=0.5),
            "lin-greedy": lambda: bt.policies.LinGreedy(prior=(0.0, 1.0), noise=0.5),
        },
    ),
    "logistic, 20 arms, 5 features": Cell(
        lambda: bt.Logistic(arms=20, dims=5),
        3000,
        {
            "ucb-glm": lambda: bt.UCBGLM(prior=(0.0, 1.0), noise=0.5),
            "glm-tsl": lambda: bt.GLMTSL(prior=(0.0, 1.0)),
            "glm-epsilon-greedy": lambda: bt.policies.GLMEpsilonGreedy(prior=(0.0, 1.0)),
            "glm-greedy": lambda: bt.policies.GLMGreedy(prior=(0.0, 1.0)),
        },
    ),
    "Bernoulli, 5 arms, table": Cell(
        lambda: bt.Bernoulli(arms=5, prior=(1, 1)), 500, {"gittins": lambda: bt.exact.Gittins(prior=(1, 1))}
    ),
    "Bernoulli, 2 arms, table": Cell(
        lambda: bt.Bernoulli(arms=2, prior=(1, 1)), 200, {"optimal": lambda: bt.exact.Optimal(prior=(1, 1))}
    ),
}


FIXED = {
    "finite-horizon-index": {"d": 0.115, "e": 1.239, "s": 3.549},
    "gaussian-finite-horizon-index": {"d": 0.3, "e": 1.0, "s": 0.7},
}
"""Parameters that are not tuned."""


class Task(NamedTuple):
    """Some runs of a policy on a cell: `batches` 0 means rewards at once."""

    cell: str
    policy: str
    params: tuple[float, ...]
    horizon: int
    batches: int
    pending: str
    first: int
    runs: int


def tune_policy(pair: tuple[str, str, int]) -> tuple[float, ...]:
    """The policy's parameters with rewards at once, the first one tuned; none where it has none."""
    cell, name, horizon = pair
    policy = CELLS[cell].policies[name]()
    if not policy.parameters:
        return ()
    tuning = bt.tune(
        policy,
        CELLS[cell].problem(),
        horizon=horizon,
        budget=1000,
        include=("no_lower_bound",),
        search=bt.Search(validate=20, fixed=FIXED.get(name, {})),
        run=bt.Run(workers=1),
    )
    return tuple(tuning.params.values())


def simulate_task(task: Task) -> list[float]:
    """The expected regret of each run."""
    cell = CELLS[task.cell]
    problem, policy = cell.problem(), cell.policies[task.policy]()
    return [simulate_run(task, policy, problem, run) for run in range(task.first, task.first + task.runs)]


def simulate_run(task: Task, policy: bt.kernel.Policy, problem: Any, run: int) -> float:
    """Rewards are functions of arm and pull, so all settings draw the same ones."""
    drawn = draw_instances(problem, 0, run // 256)
    means = drawn.means[run % 256]
    features = None
    if policy.needs_features:
        table = drawn.features
        features = table[run % 256 if len(table) > 1 else 0].T
    rewards = draw_rewards(problem, means, task.horizon, run)
    deployed = bt.deploy(
        policy,
        list(task.params) or None,
        horizon=task.horizon,
        arms=None if features is not None else len(means),
        features=features,
        seed=run,
        pending=task.pending,
    )
    size = max(1, task.horizon // task.batches) if task.batches else 1
    pulls = [0] * len(means)
    waiting: list[tuple[int, float]] = []
    for step in range(task.horizon):
        arm = deployed.select_arm()
        waiting.append((arm, rewards[arm][pulls[arm]]))
        pulls[arm] += 1
        if (step + 1) % size == 0:
            deployed.update_many(waiting)
            waiting.clear()
    return float((means.max() - means) @ pulls)


def draw_rewards(problem: Any, means: Any, horizon: int, run: int) -> list[list[float]]:
    """What each arm pays at each pull."""
    rng = np.random.default_rng([run, 1])
    shape = (len(means), horizon)
    if problem.rewards == "binary":
        return (rng.random(shape) < means[:, None]).astype(float).tolist()
    return (means[:, None] + problem.noise * rng.standard_normal(shape)).tolist()


def is_default_worse(policy: bt.kernel.Policy, numbers: dict[str, tuple[float, float]]) -> bool:
    """Whether a policy's own setting of `pending` is surely worse than the other: by 1% and three standard errors.

    Every measurement is looked at: over all of them two standard errors are exceeded by chance.
    """
    for batches in BATCHES:
        (difference, se), (lowest, _) = (
            numbers[f"{batches} difference"],
            min(numbers[f"{batches} {pending}"] for pending in SETTINGS),
        )
        worse = difference if policy.pending_rewards == "ignore" else -difference
        if worse > max(3 * se, 0.01 * lowest):
            return True
    return False


def main() -> None:
    """Tune, play, print a line for each policy, and write the numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--scale", type=float, default=1.0, help="shortens the horizons")
    parser.add_argument("--only", default="", help="cells whose name contains this")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    pairs = [
        (cell, name, max(60, round(arguments.scale * found.horizon)))
        for cell, found in CELLS.items()
        if arguments.only in cell
        for name in found.policies
    ]
    records = []
    with Pool(arguments.workers, maxtasksperchild=None) as pool:
        params = pool.map(tune_policy, pairs, chunksize=1)
        lines = [(0, "ignore"), *((batches, pending) for batches in BATCHES for pending in SETTINGS)]
        tasks = [
            Task(*pair[:2], found, pair[2], *line, first, min(CHUNK, arguments.runs - first))
            for pair, found in zip(pairs, params, strict=True)
            for line in lines
            for first in range(0, arguments.runs, CHUNK)
        ]
        # The longest come first, so that no core is left with one at the end.
        ordered = sorted(tasks, key=lambda task: -task.horizon)
        done = dict(zip(ordered, pool.map(simulate_task, ordered, chunksize=1), strict=True))
    print(
        f"{'':52} {'at once':>14}  " + "".join(f"{b:>4} batches: ignore, mean, ignore - mean{'':12}" for b in BATCHES)
    )
    for pair, found in zip(pairs, params, strict=True):
        cell, name, horizon = pair
        regrets = {
            line: np.concatenate(
                [done[task] for task in tasks if task[:2] == pair[:2] and (task.batches, task.pending) == line]
            )
            for line in lines
        }
        rows = [("at once", regrets[0, "ignore"])]
        for batches in BATCHES:
            rows += [(f"{batches} {pending}", regrets[batches, pending]) for pending in SETTINGS]
            rows += [(f"{batches} difference", regrets[batches, "ignore"] - regrets[batches, "mean"])]
        numbers = {label: (float(row.mean()), float(row.std(ddof=1) / len(row) ** 0.5)) for label, row in rows}
        words = "  ".join(f"{mean:7.1f} +- {se:4.1f}" for mean, se in numbers.values())
        policy = CELLS[cell].policies[name]()
        verdict = "WORSE" if is_default_worse(policy, numbers) else "fine"
        print(f"{cell[:30]:31}{name:20} {words}  {policy.pending_rewards}: {verdict}", flush=True)
        records.append(
            {"cell": cell, "policy": name, "horizon": horizon, "params": found, "runs": arguments.runs} | numbers
        )
    if arguments.out:
        arguments.out.write_text(json.dumps(records, indent=1))


if __name__ == "__main__":
    sys.exit(main())
