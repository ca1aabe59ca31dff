"""Tuning where the range is far wider than it need be: is the answer good, and is what is stated of it true?

python benchmarks/wide_ranges.py pools --out FILE        play six policies at values over twelve decades
python benchmarks/wide_ranges.py replay --pools FILE     tunings that draw stored runs, ranges of two to twelve decades
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from stored import Stored, load, play, save, tuned

import banditune as bt
from banditune.core.space import Range

VALUES = np.geomspace(1e-6, 1e6, 289)
"""24 a decade."""


def parameter(name: str) -> bt.Parameter:
    """As wide as any range here."""
    return bt.Parameter(name, 1e-6, 1e6, textbook=1, scale="log")


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
    if bt.kernel.uniform(stream) * (step + 1) < params[0] * setting.arms:
        return bt.kernel.draw_arm(state, stream)
    return bt.kernel.argmax_mean(state)


def softmax(state, setting, step, params, stream):
    """An arm with probability proportional to exp(mean / temperature), by Gumbel's trick."""
    best, highest = 0, -1e308
    for arm in range(setting.arms):
        if state.pulls[arm] == 0.0:
            return arm
        value = state.total[arm] / state.pulls[arm] - params[0] * math.log(
            -math.log(1.0 - bt.kernel.uniform(stream) + 1e-300)
        )
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
        value -= math.log(-math.log(1.0 - bt.kernel.uniform(stream) + 1e-300))
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
    "moss": bt.define_policy("moss", moss, parameters=parameter("width")),
    "ucb1": WideUCB1(noise=0.5),
    "gaussian-ts": WideGaussianThompson((0.5, 0.3), 0.5),
    "epsilon-greedy": WideEpsilonGreedy(),
    "rarer-epsilon": bt.define_policy("rarer-epsilon", rarer, parameters=parameter("c")),
    "softmax": bt.define_policy("softmax", softmax, parameters=parameter("temperature")),
    "sharp-softmax": bt.define_policy("sharp-softmax", sharp, parameters=parameter("sharpness")),
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


def cell(work: tuple[str, int, int, int, Stored]) -> Cell:
    """Tune many times on stored runs."""
    name, decades, budget, tunings, stored = work
    among = Range("x", 10 ** (-decades / 2), 10 ** (decades / 2), 1.0, False, "log")
    done = [tuned(bt.TwoPart(), stored, among, budget, seed=seed) for seed in range(tunings)]
    stand = [one for one in done if not one.found.posterior.misfit]
    held = sum(one.lost <= one.found.posterior.regret_gap + 1e-9 * one.best for one in stand)
    return Cell(
        name, decades, budget, tunings, len(stand), held, float(np.mean([one.lost / one.best for one in done])) * 100
    )


def replay(asked: argparse.Namespace) -> None:
    """A line for each policy, range and budget, then all together."""
    stored = load(asked.pools)
    work = [
        (name, decades, budget, asked.tunings, stored[name])
        for budget in asked.budgets
        for name in SIX
        for decades in DECADES
    ]
    cells = []
    with ProcessPoolExecutor(asked.workers, multiprocessing.get_context("spawn")) as workers:
        for one in workers.map(cell, work):
            rate = one.held / max(one.stated, 1)
            print(
                f"| {one.policy} | {one.decades} | {one.budget:,} | {rate:.0%} | {one.stated / one.tunings:.0%} | "
                f"{one.excess:.1f}% |",
                flush=True,
            )
            cells.append(one)
    for budget in asked.budgets:
        sum_up(budget, [one for one in cells if one.budget == budget])


def sum_up(budget: int, cells: list[Cell]) -> None:
    """Rates over all tunings with a budget, and the worst cells."""
    held, stated, tunings = (sum(getattr(one, name) for one in cells) for name in ("held", "stated", "tunings"))
    print(
        f"{budget:,} runs: {held / stated:.1%} of {stated:,} statements hold, the worst cell "
        f"{min(one.held / max(one.stated, 1) for one in cells):.0%}; {1 - stated / tunings:.1%} state nothing, the worst "
        f"cell {1 - min(one.stated / one.tunings for one in cells):.0%}; excess mean "
        f"{np.mean([one.excess for one in cells]):.1f}%, worst cell {max(one.excess for one in cells):.1f}%"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["pools", "replay"])
    parser.add_argument("--problem", choices=list(PROBLEMS), default="10 arms")
    parser.add_argument("--runs", type=int, default=3000)
    parser.add_argument("--truths", type=int, default=20_000)
    parser.add_argument("--tunings", type=int, default=50)
    parser.add_argument("--device", default="gpu")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--pools", type=Path, default=Path("wide.npz"))
    parser.add_argument("--budgets", type=int, nargs="+", default=[300, 1000])
    parser.add_argument("--out", type=Path, default=Path("wide.npz"))
    asked = parser.parse_args()
    {"pools": pools, "replay": replay}[asked.what](asked)


if __name__ == "__main__":
    main()
