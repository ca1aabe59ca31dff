"""Tuning UCB1 where rewards are rare: is the answer good, and is what is stated of it true?

python benchmarks/rare_rewards.py pools --seed 1 --out FILE     play random problems at many widths (a GPU: two minutes)
python benchmarks/rare_rewards.py replay --pools FILE           tunings that draw stored runs
python benchmarks/rare_rewards.py product --seed 2 --jobs 16    the product itself on other problems, truths from other runs

Problems have click rates of 0.1 to 2%, 5 to 60 arms and horizons of 3,000 to 200,000. The first one, of which no tuning knew
the optimum once, is 46 arms at 0.43% and 30,000 rounds.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
from stored import Stored, play, save

import banditune as bt

WIDTHS = np.geomspace(1e-4, 1, 97)
"""24 a decade."""


class Case(NamedTuple):
    """A problem and its horizon."""

    name: str
    problem: bt.Bernoulli
    horizon: int


POLICIES = {"ucb1": bt.UCB1(noise=0.5), "ts": bt.Thompson(prior=(1, 1))}
FIRST = Case("first", bt.Bernoulli(arms=46, prior=(3.35722, 771.387)), 30_000)


def cases(seed: int, count: int) -> list[Case]:
    """Problems drawn at random."""
    rng = np.random.default_rng([seed, 21])

    def drawn(low: float, high: float) -> float:
        return float(np.exp(rng.uniform(np.log(low), np.log(high))))

    found = []
    for number in range(count):
        arms, horizon, rate, shape = (
            round(drawn(5, 60)),
            round(drawn(3000, 200_000)),
            drawn(0.001, 0.02),
            drawn(0.5, 10),
        )
        prior = (round(shape, 4), round(shape * (1 - rate) / rate, 3))
        found.append(Case(f"{number}", bt.Bernoulli(arms=arms, prior=prior), horizon))
    return found


def pools(asked: argparse.Namespace) -> None:
    """Play all problems at all widths."""
    found: dict[str, Stored] = {}
    drawn = cases(asked.seed, asked.problems)
    policy = POLICIES[asked.policy]
    for case in [FIRST, *drawn]:
        name = f"{policy.name} {case.name}"
        found[name] = play(policy, case.problem, WIDTHS, case.horizon, asked.runs, asked.truths, asked.device)
        best = found[name].truth.argmin()
        print(f"{name}: {case.problem}, {case.horizon}: {WIDTHS[best]:.4g} {found[name].truth[best]:.4g}", flush=True)
    save(asked.out, found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["pools"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--policy", choices=list(POLICIES), default="ucb1")
    parser.add_argument("--problems", type=int, default=24)
    parser.add_argument("--runs", type=int, default=3000)
    parser.add_argument("--truths", type=int, default=40_000)
    parser.add_argument("--device", default="gpu")
    parser.add_argument("--out", type=Path, default=Path("rare.npz"))
    asked = parser.parse_args()
    {"pools": pools}[asked.what](asked)


if __name__ == "__main__":
    main()
