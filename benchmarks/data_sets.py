"""Tuning on data sets: how often the 95% interval of the validated regret covers the regret on new tables or campaigns.

python benchmarks/data_sets.py                 # 200 data sets a line, about 6 minutes on one core
python benchmarks/data_sets.py --sets 20 --workers 2

Data sets of 40 tables, or campaigns, are drawn from a population that is known. UCB1 is tuned on each. Its true regret at
the chosen value is played on 40,000 new tables. Lines with `population=True` take the data for all there is, with errors
over runs: what every study did before tables were held out.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import lru_cache
from multiprocessing import Pool
from typing import Any

import numpy as np

import banditune as bt

ARMS, HORIZON, UNITS, NEW = 5, 50, 40, 40_000
POLICY = bt.UCB1(noise=0.5)


def tables(count: int, rng: np.random.Generator) -> np.ndarray:
    """Tables of 0/1 rewards; the arms' rates are uniform."""
    return (rng.random((count, HORIZON, ARMS)) < rng.random((count, 1, ARMS))).astype(float)


def campaigns(count: int, rng: np.random.Generator) -> Any:
    """Campaigns whose arms were pulled 30 times each; the arms' rates are uniform, and posteriors know that."""
    paid = rng.binomial(30, rng.random((count, ARMS)))
    return np.stack([1 + paid, 31 - paid], axis=2)


@lru_cache(maxsize=1)
def new_tables(shuffled: bool) -> bt.RewardTable:
    return bt.RewardTable(tables(NEW, np.random.default_rng(999)), shuffled, population=True)


KINDS: dict[str, tuple[Callable[..., bt.kernel.Problem], Callable[[], bt.kernel.Problem]]] = {
    "tables, in order": (
        lambda rng, **told: bt.RewardTable(tables(UNITS, rng), **told),
        lambda: new_tables(False),
    ),
    "tables, shuffled": (
        lambda rng, **told: bt.RewardTable(tables(UNITS, rng), True, **told),
        lambda: new_tables(True),
    ),
    "8 tables, in order": (
        lambda rng, **told: bt.RewardTable(tables(8, rng), **told),
        lambda: new_tables(False),
    ),
    "campaigns": (
        lambda rng, **told: bt.Campaigns(campaigns(UNITS, rng), **told),
        lambda: bt.Bernoulli(ARMS, prior=(1, 1)),
    ),
}


def tuned(asked: tuple[str, bool, int]) -> tuple[float, ...]:
    """The value that is chosen on a data set, and the stated regret: mean, standard error and interval."""
    kind, population, number = asked
    problem = KINDS[kind][0](np.random.default_rng([7, number]), population=population)
    found = bt.tune(
        POLICY,
        problem,
        horizon=HORIZON,
        budget=200,
        seed=number,
        include=("no_lower_bound",),
        search=bt.Search(validate=500),
        run=bt.Run(workers=1),
    )
    regret = found.regret
    return found.params["gamma"], regret.mean, regret.se, regret.low, regret.high


def line(kind: str, population: bool, told: np.ndarray) -> str:
    """Compare what tunings state with new tables."""
    chosen, mean, se, low, high = told.T
    played = sorted(set(chosen.tolist()))
    means = bt.simulate(POLICY, KINDS[kind][1](), played, horizon=HORIZON, runs=NEW, seed=1).mean(axis=1)
    truth = dict(zip(played, means, strict=True))
    true = np.array([truth[value] for value in chosen.tolist()])
    covered = ((low <= true) & (true <= high)).sum()
    off = mean - true
    return (
        f"{kind:20} {'population=True' if population else 'held out':16} covered {covered:4} of {len(told)}; "
        f"stated standard error {se.mean():.3f}, spread of (stated - true) {off.std(ddof=1):.3f}, "
        f"bias {off.mean():+.3f} +- {off.std(ddof=1) / len(told) ** 0.5:.3f}; true regret {true.mean():.2f}"
    )


def main() -> None:
    """A line for every kind of data set, held out and not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--only", default="", help="kinds whose name contains this")
    asked = parser.parse_args()
    with Pool(asked.workers) as pool:
        for kind in (kind for kind in KINDS if asked.only in kind):
            for population in (False, True):
                told = pool.map(tuned, [(kind, population, number) for number in range(asked.sets)])
                print(line(kind, population, np.array(told)), flush=True)


if __name__ == "__main__":
    main()
