"""The finite-horizon index, next to the exact Gittins index and to other tuned policies, on common instances.

python benchmarks/horizon_index.py gittins --horizon 200     # differences to the exact index; a minute
python benchmarks/horizon_index.py gittins --horizon 1000    # computes a table of 638 MiB first: minutes on many cores
python benchmarks/horizon_index.py tuned --rewards gaussian --horizon 1000            # tunes policies, then compares them
python benchmarks/horizon_index.py tuned --rewards bernoulli --prior 1 19 --arms 10 --horizon 1000

The constants of the index are searched by CMA-ES on 20,000 runs, the one parameter of other policies by `tune`. The
comparison has other instances than every search. Errors are those of means of paired differences.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

import banditune as bt

KNOWN = {
    200: (0.365, 1.496, 0.483, 2.037),
    500: (0.483, 0.757, 1.066, 2.786),
    1000: (0.53, 0.854, 1.073, 3.077),
    10_000: (0.485, 0.115, 1.239, 3.549),
}
"""Good constants for ten Bernoulli arms with a uniform prior, by the horizon."""


FRESH = 10_000_000
"""The first instance of a comparison."""


def search_constants(
    policy: Any, problem: Any, horizon: int, generations: int, rng: np.random.Generator
) -> list[float]:
    """Search by CMA-ES (Hansen's standard constants) on the logarithms of the constants.

    A generation is ten rows of constants on 50 instances that all of them share. The answer is the average of the means
    of the last half of the generations.
    """
    ranges = [parameter.resolve(problem.arms, horizon) for parameter in policy.parameters]
    size, rows, runs = len(ranges), 10, 50
    weights = np.log(rows / 2 + 0.5) - np.log(np.arange(1, rows // 2 + 1))
    weights /= weights.sum()
    mass = 1 / (weights**2).sum()
    path_rate, shape_rate = (mass + 2) / (size + mass + 5), (4 + mass / size) / (size + 4 + 2 * mass / size)
    one_rate = 2 / ((size + 1.3) ** 2 + mass)
    many_rate = min(1 - one_rate, 2 * (mass - 2 + 1 / mass) / ((size + 2) ** 2 + mass))
    damping = 1 + path_rate + 2 * max(0, math.sqrt((mass - 1) / (size + 1)) - 1)
    usual = math.sqrt(size) * (1 - 1 / (4 * size) + 1 / (21 * size**2))
    mean, spread, shape = np.full(size, 0.5), 0.25, np.eye(size)
    path, shape_path, answers = np.zeros(size), np.zeros(size), []
    for generation in range(generations):
        squares, axes = np.linalg.eigh(shape)
        root = axes * np.sqrt(np.maximum(squares, 1e-20))
        points = np.clip(mean + spread * rng.standard_normal((rows, size)) @ root.T, -0.5, 1.5)
        table = [
            [
                math.exp(math.log(one.low) + unit * math.log(one.high / one.low))
                for one, unit in zip(ranges, point, strict=True)
            ]
            for point in points
        ]
        regrets = bt.simulate(policy, problem, table, horizon=horizon, runs=runs, first_instance=generation * runs)
        steps = (points[np.argsort(regrets.mean(axis=1))[: rows // 2]] - mean) / spread
        step = weights @ steps
        mean = mean + spread * step
        path = (1 - path_rate) * path + math.sqrt(path_rate * (2 - path_rate) * mass) * (
            axes @ ((axes.T @ step) / np.sqrt(np.maximum(squares, 1e-20)))
        )
        shape_path = (1 - shape_rate) * shape_path + math.sqrt(shape_rate * (2 - shape_rate) * mass) * step
        shape = (
            (1 - one_rate - many_rate) * shape
            + one_rate * np.outer(shape_path, shape_path)
            + many_rate * (steps.T * weights) @ steps
        )
        spread *= math.exp(path_rate / damping * (np.linalg.norm(path) / usual - 1))
        answers.append(mean)
    unit = np.mean(answers[generations // 2 :], axis=0)
    return [
        math.exp(math.log(one.low) + share * math.log(one.high / one.low))
        for one, share in zip(ranges, unit, strict=True)
    ]


def tune_one(policy: Any, problem: Any, horizon: int) -> list[float]:
    """Tune the first parameter of a policy; others have the textbook's values."""
    search = bt.Search(fixed={parameter.name: parameter.textbook for parameter in policy.parameters[1:]})
    include: Any = ("no_lower_bound",)
    result = bt.tune(policy, problem, horizon=horizon, budget=4000, include=include, search=search)
    return list(result.params.values())


def print_differences(regrets: dict[str, np.ndarray], reference: str) -> None:
    """Print mean regrets, and the means of their differences to one of them."""
    print(f"| policy | regret | difference to {reference} |\n|---|---|---|")
    for name, values in regrets.items():
        root = math.sqrt(len(values))
        difference = values - regrets[reference]
        shown = "" if name == reference else f"{difference.mean():+.3f} ± {difference.std(ddof=1) / root:.3f}"
        print(f"| {name} | {values.mean():.3f} ± {values.std(ddof=1) / root:.3f} | {shown} |", flush=True)


def simulate_fresh(policy: Any, problem: Any, row: Any, options: argparse.Namespace) -> np.ndarray:
    """Simulate one row of parameters on the instances of the comparison."""
    table = [row] if len(row) else None
    return bt.simulate(policy, problem, table, horizon=options.horizon, runs=options.instances, first_instance=FRESH)[0]


def compare_with_gittins(options: argparse.Namespace) -> None:
    """Compare the index with the exact one on uniform Bernoulli arms."""
    problem = bt.Bernoulli(arms=options.arms)
    index = bt.policies.FiniteHorizonIndex()
    contenders = [
        ("Gittins, exact", bt.policies.Gittins(), ()),
        ("index", index, KNOWN[options.horizon]),
        ("index, textbook", index, (1, 1, 1, 1)),
        ("Thompson sampling, tuned", bt.Thompson(), tune_one(bt.Thompson(), problem, options.horizon)),
    ]
    print_differences(
        {name: simulate_fresh(policy, problem, row, options) for name, policy, row in contenders}, "Gittins, exact"
    )


def list_contenders(options: argparse.Namespace, problem: Any) -> Iterator[tuple[str, Any, Any]]:
    """Tune policies for a problem; yields a name, the policy and its parameters."""
    gaussian = options.rewards == "gaussian"
    index = bt.policies.GaussianFiniteHorizonIndex() if gaussian else bt.policies.FiniteHorizonIndex()
    for seed in range(options.searches):
        row = search_constants(index, problem, options.horizon, options.generations, np.random.default_rng(seed))
        shown = ", ".join(f"{value:.3g}" for value in row)
        yield f"index, search {seed + 1} ({shown})", index, row
    row = tune_one(index, problem, options.horizon)
    yield f"index, only c tuned ({row[0]:.3g})", index, row
    yield "index, known for ten Bernoulli arms", index, KNOWN.get(options.horizon, KNOWN[1000])
    yield "index, textbook", index, (1, 1, 1, 1)
    for policy in (bt.GaussianThompson() if gaussian else bt.Thompson(), bt.UCB1()):
        row = tune_one(policy, problem, options.horizon)
        yield f"{policy.name}, tuned ({row[0]:.3g})", policy, row
        yield f"{policy.name}, textbook", policy, (1,)


def compare_tuned(options: argparse.Namespace) -> None:
    """Compare tuned policies."""
    prior = tuple(options.prior or ((0, 1) if options.rewards == "gaussian" else (1, 1)))
    if options.rewards == "gaussian":
        problem: Any = bt.Gaussian(arms=options.arms, prior=prior, noise=options.noise)
    else:
        problem = bt.Bernoulli(arms=options.arms, prior=prior)
    regrets = {
        name: simulate_fresh(policy, problem, row, options) for name, policy, row in list_contenders(options, problem)
    }
    print_differences(regrets, next(iter(regrets)))


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["gittins", "tuned"])
    parser.add_argument("--rewards", choices=["bernoulli", "gaussian"], default="bernoulli")
    parser.add_argument("--arms", type=int, default=10)
    parser.add_argument("--horizon", type=int, default=1000)
    parser.add_argument("--prior", type=float, nargs=2)
    parser.add_argument("--noise", type=float, default=1.0)
    parser.add_argument("--instances", type=int, default=20_000)
    parser.add_argument("--generations", type=int, default=40)
    parser.add_argument("--searches", type=int, default=2)
    options = parser.parse_args()
    {"gittins": compare_with_gittins, "tuned": compare_tuned}[options.what](options)


if __name__ == "__main__":
    main()
