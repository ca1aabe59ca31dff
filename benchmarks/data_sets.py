"""The coverage of the 95% interval of the validated regret on new tables or campaigns, after tuning on data sets.

python benchmarks/data_sets.py --workers 16 --out data_sets.json     # 200 data sets a row, about 6 minutes on one core

Data sets of 40 tables or campaigns, in one row 8, are drawn from a known population: five arms with uniform rates, 0/1
rewards, 50 steps. UCB1 is tuned on each with 200 runs and validated with 500. Its true regret at the chosen value is
simulated on 40,000 new tables. Rows with `population=True` take the data to be all there is: nothing is held out, and
errors are over runs. They show what that costs where it is not so, and have no bar.
"""

from __future__ import annotations

import argparse
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from pass_criteria import Verdicts, count_needed

import banditune as bt

ARMS, HORIZON, UNITS, NEW_TABLES = 5, 50, 40, 40_000
POLICY = bt.UCB1(noise=0.5)


def draw_tables(count: int, rng: np.random.Generator) -> np.ndarray:
    """Tables of 0/1 rewards; the arms' rates are uniform."""
    return (rng.random((count, HORIZON, ARMS)) < rng.random((count, 1, ARMS))).astype(float)


def draw_campaigns(count: int, rng: np.random.Generator) -> Any:
    """Posteriors of campaigns whose arms were pulled 30 times each; the arms' rates are uniform, and priors know that."""
    successes = rng.binomial(30, rng.random((count, ARMS)))
    return np.stack([1 + successes, 31 - successes], axis=2)


@lru_cache(maxsize=1)
def make_new_tables(shuffled: bool) -> bt.RewardTable:
    """The tables on which true regrets are simulated."""
    return bt.RewardTable(draw_tables(NEW_TABLES, np.random.default_rng(999)), shuffled, population=True)


KINDS: dict[str, tuple[Callable[..., bt.kernel.Problem], Callable[[], bt.kernel.Problem]]] = {
    "40 tables in their order": (
        lambda rng, **options: bt.RewardTable(draw_tables(UNITS, rng), **options),
        lambda: make_new_tables(False),
    ),
    "40 tables, shuffled": (
        lambda rng, **options: bt.RewardTable(draw_tables(UNITS, rng), True, **options),
        lambda: make_new_tables(True),
    ),
    "8 tables in their order": (
        lambda rng, **options: bt.RewardTable(draw_tables(8, rng), **options),
        lambda: make_new_tables(False),
    ),
    "40 campaigns": (
        lambda rng, **options: bt.Campaigns(draw_campaigns(UNITS, rng), **options),
        lambda: bt.Bernoulli(ARMS, prior=(1, 1)),
    ),
}
"""How a data set of each kind is drawn, and the population."""


def tune_data_set(work: tuple[str, bool, int]) -> tuple[float, ...]:
    """The value that is chosen on a data set, and the stated regret: mean, standard error and interval."""
    kind, population, number = work
    problem = KINDS[kind][0](np.random.default_rng([7, number]), population=population)
    tuning = bt.tune(
        POLICY,
        problem,
        horizon=HORIZON,
        budget=200,
        seed=number,
        include=("no_lower_bound",),
        search=bt.Search(validate=500),
        run=bt.Run(workers=1),
    )
    regret = tuning.regret
    return tuning.params["gamma"], regret.mean, regret.se, regret.low, regret.high


def simulate_truths(kind: str, chosen: list[float], workers: int) -> np.ndarray:
    """The regrets of the chosen values on new tables or instances."""
    values = sorted(set(chosen))
    means = bt.simulate(
        POLICY, KINDS[kind][1](), values, horizon=HORIZON, runs=NEW_TABLES, seed=1, run=bt.Run(workers=workers)
    ).mean(axis=1)
    return means[np.searchsorted(values, chosen)]


def judge_kind(
    kind: str, population: bool, stated: np.ndarray, workers: int, verdicts: Verdicts
) -> dict[str, str | list[float]]:
    """Compare what tunings state with the truth: a row of the table, and its bar."""
    chosen, mean, se, low, high = stated.T
    truth = simulate_truths(kind, chosen.tolist(), workers)
    held, sets, off = int(((low <= truth) & (truth <= high)).sum()), len(stated), mean - truth
    done, sides = "population=True" if population else "held out", (int((truth < low).sum()), int((truth > high).sum()))
    print(
        f"| {kind} | {done} | {held} of {sets} | {sides[0]}, {sides[1]} | {se.mean():.3f} | {off.std(ddof=1):.3f} | "
        f"{off.mean():+.3f} ± {off.std(ddof=1) / sets**0.5:.3f} | {truth.mean():.2f} |",
        flush=True,
    )
    needed = count_needed(sets)
    if not population:
        verdicts.require(f"{kind}: at least {needed} of {sets} intervals hold", held >= needed, f"{held}")
    names = ("chosen", "mean", "se", "low", "high", "truth")
    numbers = dict(zip(names, (column.tolist() for column in (*stated.T, truth)), strict=True))
    return {"kind": kind, "treated_as": done, **numbers}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=200, help="data sets a row")
    parser.add_argument("--first", type=int, default=0, help="number of the first data set; others are other data sets")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--only", default="", help="kinds whose name contains this")
    parser.add_argument("--out", type=Path, help="file for all numbers")
    options = parser.parse_args()
    numbers = range(options.first, options.first + options.sets)
    verdicts, rows = Verdicts(), []
    print(
        "| data sets | treated as | intervals that hold | truth below, above | stated se | spread | bias | true regret |"
    )
    with ProcessPoolExecutor(options.workers, multiprocessing.get_context("spawn")) as workers:
        for kind in (kind for kind in KINDS if options.only in kind):
            for population in (False, True):
                work = [(kind, population, number) for number in numbers]
                stated = np.array(list(workers.map(tune_data_set, work, chunksize=4)))
                rows.append(judge_kind(kind, population, stated, options.workers, verdicts))
    verdicts.finish(options.out, rows=rows)


if __name__ == "__main__":
    main()
