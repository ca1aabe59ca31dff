"""Tuning on ranges that are much wider than needed: the quality of the answers, and the coverage of the stated gaps.

python benchmarks/wide_ranges.py pools --pools wide.npz
                                six policies at values over twelve decades, stored runs (on a GPU; `--device cpu` is slow)
python benchmarks/wide_ranges.py replay --pools wide.npz --workers 16 --out wide.json
                                tunings that draw stored runs, on ranges of two to twelve decades around 1

`--problem "20 arms"` of `pools` takes the other problem.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pass_criteria import Verdicts, compute_rate_error
from stored_runs import Stored, load, play, save, tuned

import banditune as bt
from banditune.core.space import Range
from banditune.simulation.blas_threads import limit_blas_threads

VALUES = np.geomspace(1e-6, 1e6, 289)
"""24 a decade."""


def parameter(name: str) -> bt.Parameter:
    """As wide as any range here."""
    return bt.Parameter(name, 1e-6, 1e6, textbook=1, scale="log")


@bt.kernel.scalar
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


@bt.kernel.scalar
def rarer(state, setting, step, params, stream):
    """A random arm with a probability that falls like 1 / step."""
    if bt.kernel.uniform(stream) * (step + 1) < params[0] * setting.arms:
        return bt.kernel.draw_arm(state, stream)
    return bt.kernel.argmax_mean(state)


@bt.kernel.scalar
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


@dataclass(frozen=True)
class WideUCB1(bt.UCB1):
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
}
PROBLEMS = {"10 arms": (bt.Bernoulli(arms=10), 1000), "20 arms": (bt.Bernoulli(arms=20, prior=(1, 4)), 3000)}


def simulate_pools(options: argparse.Namespace) -> None:
    """Simulate all policies at all values."""
    problem, horizon = PROBLEMS[options.problem]
    pools: dict[str, Stored] = {}
    for name, policy in POLICIES.items():
        pools[name] = play(policy, problem, VALUES, horizon, options.runs, options.truths, options.device)
        best = pools[name].truth.argmin()
        print(f"{name}: the lowest regret is {pools[name].truth[best]:.4g}, at {VALUES[best]:.4g}", flush=True)
    save(options.pools, pools)


DECADES = (2, 4, 6, 9, 12)

LEAST_HOLDING, LEAST_IN_CELL, MOST_SILENT, MOST_EXCESS, EXCESS_BUDGET = 0.92, 0.8, 0.1, 10.0, 1000
"""Bars: the share of statements that hold, in all and in a cell; the share of tunings that state nothing; and the mean
excess in %, in a cell with this budget."""


@dataclass(frozen=True)
class Cell:
    """Tunings of a policy on a range: how many state a gap, how many of these hold, the excess in %."""

    policy: str
    decades: int
    budget: int
    tunings: int
    stated: int
    held: int
    excess: float
    excess_se: float

    @property
    def rate(self) -> float:
        """The share of statements that hold; 1 if there is none."""
        return self.held / self.stated if self.stated else 1.0

    def __str__(self) -> str:
        return (
            f"| {self.policy} | {self.decades} | {self.budget:,} | {self.rate:.0%} | {self.stated / self.tunings:.0%} | "
            f"{self.excess:.1f} ± {self.excess_se:.1f}% |"
        )


def tune_cell(work: tuple[str, int, int, int, Stored]) -> Cell:
    """Tune many times on stored runs."""
    name, decades, budget, tunings, stored = work
    search_range = Range("x", 10 ** (-decades / 2), 10 ** (decades / 2), 1.0, False, "log")
    with limit_blas_threads():
        outcomes = [tuned(bt.TwoPart(), stored, search_range, budget, seed=seed) for seed in range(tunings)]
    stating = [one for one in outcomes if not one.found.posterior.misfit]
    held = sum(one.lost <= one.found.posterior.regret_gap + 1e-9 * one.best for one in stating)
    excess = 100 * np.array([one.lost / one.best for one in outcomes])
    return Cell(
        policy=name,
        decades=decades,
        budget=budget,
        tunings=tunings,
        stated=len(stating),
        held=held,
        excess=float(excess.mean()),
        excess_se=float(excess.std(ddof=1)) / len(excess) ** 0.5,
    )


def replay(options: argparse.Namespace) -> None:
    """A line for each policy, range and budget, then the bars."""
    pools = load(options.pools)
    work = [
        (name, decades, budget, options.tunings, pools[name])
        for budget in options.budgets
        for name in POLICIES
        for decades in DECADES
    ]
    print("| policy | decades | runs | gaps that hold | tunings that state one | excess |")
    cells = []
    with ProcessPoolExecutor(options.workers, multiprocessing.get_context("spawn")) as workers:
        for cell in workers.map(tune_cell, work):
            print(cell, flush=True)
            cells.append(cell)
    verdicts = Verdicts()
    for budget in options.budgets:
        judge_budget(budget, [cell for cell in cells if cell.budget == budget], verdicts)
    verdicts.finish(options.out, cells=[asdict(cell) for cell in cells])


def judge_budget(budget: int, cells: list[Cell], verdicts: Verdicts) -> None:
    """Rates over all tunings with a budget, and the worst cells."""
    held, stated, tunings = (sum(getattr(cell, name) for cell in cells) for name in ("held", "stated", "tunings"))
    name, rate, silent = f"{budget:,} runs", held / max(stated, 1), 1 - stated / tunings
    verdicts.require(
        f"{name}: at least {LEAST_HOLDING:.0%} of stated gaps hold",
        rate >= LEAST_HOLDING,
        f"{rate:.1%} ± {compute_rate_error(held, stated):.1%} of {stated:,}",
    )
    worst = min(cells, key=lambda cell: cell.rate)
    verdicts.require(
        f"{name}: no cell below {LEAST_IN_CELL:.0%}",
        worst.rate >= LEAST_IN_CELL,
        f"{worst.rate:.0%} ({worst.policy}, {worst.decades} decades)",
    )
    verdicts.require(f"{name}: at most {MOST_SILENT:.0%} state nothing", silent <= MOST_SILENT, f"{silent:.1%}")
    worst, mean = max(cells, key=lambda cell: cell.excess), float(np.mean([cell.excess for cell in cells]))
    figure = (
        f"mean {mean:.1f}%, most {worst.excess:.1f} ± {worst.excess_se:.1f}% ({worst.policy}, {worst.decades} decades)"
    )
    if budget >= EXCESS_BUDGET:
        verdicts.require(f"{name}: excess below {MOST_EXCESS:.0f}% in every cell", worst.excess < MOST_EXCESS, figure)
    else:
        print(f"{name}: excess (no bar): {figure}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["pools", "replay"])
    parser.add_argument("--problem", choices=list(PROBLEMS), default="10 arms")
    parser.add_argument("--runs", type=int, default=3000, help="runs at each value that tunings draw from")
    parser.add_argument("--truths", type=int, default=20_000, help="other runs at each value")
    parser.add_argument("--device", default="gpu")
    parser.add_argument("--pools", type=Path, default=Path("wide.npz"), help="file of stored runs")
    parser.add_argument("--tunings", type=int, default=50, help="tunings a cell")
    parser.add_argument("--budgets", type=int, nargs="+", default=[300, 1000])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, help="file for all numbers of a replay")
    options = parser.parse_args()
    {"pools": simulate_pools, "replay": replay}[options.what](options)


if __name__ == "__main__":
    main()
