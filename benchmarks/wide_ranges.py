"""Tuning where the range is far wider than it need be: is the answer good, and is what is stated of it true?

python benchmarks/wide_ranges.py pools --out FILE        play six policies at values over twelve decades
python benchmarks/wide_ranges.py product --truths 4000 --jobs 16
                                the product itself, 50 tunings a cell, ranges of two to twelve decades
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from stored import TRUTH, Stored, play, save

import banditune as bt

VALUES = np.geomspace(1e-6, 1e6, 289)
"""24 a decade."""


def parameter(name: str) -> bt.Parameter:
    """As wide as any range here."""
    return bt.Parameter(name, 1e-6, 1e6, theory=1, scale="log")


def moss(state, setting, step, params, stream):
    """Audibert and Bubeck's index, its width times a parameter."""
    best, highest = 0, -1.0
    for arm in range(setting.arms):
        if state.pulls[arm] == 0.0:
            return arm
        ratio = setting.horizon / (setting.arms * state.pulls[arm])
        width = math.sqrt(max(0.0, math.log(ratio)) / state.pulls[arm])
        index = state.total[arm] / state.pulls[arm] + params[0] * width
        if index > highest:
            best, highest = arm, index
    return best


def rarer(state, setting, step, params, stream):
    """A random arm with a probability that falls like 1 / step."""
    if bt.uniform(stream) * (step + 1) < params[0] * setting.arms:
        return bt.random_arm(state, stream)
    return bt.best_mean(state)


def softmax(state, setting, step, params, stream):
    """An arm with probability proportional to exp(mean / temperature), by Gumbel's trick."""
    best, highest = 0, -1e308
    for arm in range(setting.arms):
        if state.pulls[arm] == 0.0:
            return arm
        value = state.total[arm] / state.pulls[arm] - params[0] * math.log(-math.log(1.0 - bt.uniform(stream) + 1e-300))
        if value > highest:
            best, highest = arm, value
    return best


def sharp(state, setting, step, params, stream):
    """The same with the temperature's inverse: it explores the less the larger its parameter is."""
    best, highest = 0, -1e308
    for arm in range(setting.arms):
        if state.pulls[arm] == 0.0:
            return arm
        value = params[0] * state.total[arm] / state.pulls[arm]
        value -= math.log(-math.log(1.0 - bt.uniform(stream) + 1e-300))
        if value > highest:
            best, highest = arm, value
    return best


@dataclass(frozen=True)
class WideUCB1(bt.UCB1):
    parameters = (parameter("gamma"),)


@dataclass(frozen=True)
class WideThompson(bt.Thompson):
    parameters = (parameter("gamma"),)


@dataclass(frozen=True)
class WideGaussianThompson(bt.GaussianThompson):
    parameters = (parameter("gamma"),)


@dataclass(frozen=True)
class WideEpsilonGreedy(bt.EpsilonGreedy):
    parameters = (parameter("epsilon"),)


POLICIES: dict[str, Any] = {
    "moss": bt.arm_policy("moss", moss, parameters=parameter("width")),
    "ucb1": WideUCB1(noise=0.5),
    "gaussian-ts": WideGaussianThompson((0.5, 0.3), 0.5),
    "epsilon-greedy": WideEpsilonGreedy(),
    "rarer-epsilon": bt.arm_policy("rarer-epsilon", rarer, parameters=parameter("c")),
    "softmax": bt.arm_policy("softmax", softmax, parameters=parameter("temperature")),
    "sharp-softmax": bt.arm_policy("sharp-softmax", sharp, parameters=parameter("sharpness")),
    "ts": WideThompson(prior=(1, 1)),
}
PROBLEMS = {"10 arms": (bt.Bernoulli(arms=10), 1000), "20 arms": (bt.Bernoulli(arms=20, prior=(1, 4)), 3000)}


def pools(asked: argparse.Namespace) -> None:
    """Play all policies at all values."""
    problem, horizon = PROBLEMS[asked.problem]
    found: dict[str, Stored] = {}
    for name, policy in POLICIES.items():
        found[name] = play(policy, problem, VALUES, horizon, asked.runs, asked.truths, asked.device)
        best = found[name].truth.argmin()
        print(f"{name}: {VALUES[best]:.4g} {found[name].truth[best]:.4g}", flush=True)
    save(asked.out, found)


SIX = ("moss", "ucb1", "gaussian-ts", "epsilon-greedy", "rarer-epsilon", "softmax")
DECADES = (2, 4, 6, 9, 12)


class Cell(NamedTuple):
    """Tunings of a policy on a range: how many state a gap, how many of these hold, the mean excess in %."""

    policy: str
    decades: float
    budget: int
    tunings: int
    stated: int
    held: int
    excess: float


def ranged(name: str, decades: float) -> Any:
    """A policy whose range spans so many powers of ten, from 1 to both sides."""
    policy = POLICIES[name]
    there = bt.Parameter(policy.parameters[0].name, 10 ** (-decades / 2), 10 ** (decades / 2), theory=1, scale="log")
    if isinstance(policy, bt.Policy) and hasattr(policy, "choose") and name in ("moss", "rarer-epsilon", "softmax"):
        return bt.arm_policy(
            policy.name, {"moss": moss, "rarer-epsilon": rarer, "softmax": softmax}[name], parameters=there
        )
    return type(type(policy).__name__, (type(policy),), {"parameters": (there,)})(
        **{field.name: getattr(policy, field.name) for field in fields(policy)}
    )


def cell(work: tuple[str, float, int, int, str, Stored]) -> Cell:
    """The product, many times."""
    name, decades, budget, tunings, problem, stored = work
    policy, (on, horizon) = ranged(name, decades), PROBLEMS[problem]
    inside = stored.truth[stored.among(10 ** (-decades / 2), 10 ** (decades / 2))].min()
    stated, held, excess = 0, 0, []
    for seed in range(tunings):
        found = bt.tune(policy, on, horizon=horizon, budget=budget, seed=seed, validate=2, floor=False, jobs=1)
        (value,) = found.params.values()
        lost = float(np.interp(math.log(value), np.log(stored.values), stored.truth))
        excess.append((lost / inside - 1) * 100)
        stated += not found.belief.misfit
        held += not found.belief.misfit and lost - inside <= found.belief.gap * (1 + 1e-9)
    return Cell(name, decades, budget, tunings, stated, held, float(np.mean(excess)))


def truth(work: tuple[str, str, int]) -> Stored:
    """True regrets of a policy at all values."""
    name, problem, runs = work
    on, horizon = PROBLEMS[problem]
    means = bt.simulate(POLICIES[name], on, VALUES, horizon=horizon, runs=runs, seed=TRUTH, jobs=1).mean(axis=1)
    return Stored(VALUES, np.empty((len(VALUES), 0)), means)


def product(asked: argparse.Namespace) -> None:
    """A line for each policy, range and budget, then all together."""
    with ProcessPoolExecutor(asked.jobs, multiprocessing.get_context("spawn")) as workers:
        known = dict(zip(SIX, workers.map(truth, [(name, asked.problem, asked.truths) for name in SIX]), strict=True))
        work = [
            (name, decades, budget, asked.tunings, asked.problem, known[name])
            for budget in (1000, 300)
            for name in SIX
            for decades in DECADES
        ]
        cells = []
        for one in workers.map(cell, work):
            rate = one.held / max(one.stated, 1)
            print(
                f"| {one.policy} | {one.decades} | {one.budget:,} | {rate:.0%} | {one.stated / one.tunings:.0%} | "
                f"{one.excess:.1f}% |",
                flush=True,
            )
            cells.append(one)
    for budget in (300, 1000):
        some = [one for one in cells if one.budget == budget]
        held, stated, tunings = (sum(getattr(one, name) for one in some) for name in ("held", "stated", "tunings"))
        print(
            f"{budget:,} runs: {held / stated:.1%} of {stated:,} statements hold, the worst cell "
            f"{min(one.held / max(one.stated, 1) for one in some):.0%}; {1 - stated / tunings:.1%} state nothing; "
            f"excess mean {np.mean([one.excess for one in some]):.1f}%, worst cell {max(one.excess for one in some):.1f}%"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["pools", "product"])
    parser.add_argument("--problem", choices=list(PROBLEMS), default="10 arms")
    parser.add_argument("--runs", type=int, default=3000)
    parser.add_argument("--truths", type=int, default=20_000)
    parser.add_argument("--tunings", type=int, default=50)
    parser.add_argument("--device", default="gpu")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("wide.npz"))
    asked = parser.parse_args()
    {"pools": pools, "product": product}[asked.what](asked)


if __name__ == "__main__":
    main()
