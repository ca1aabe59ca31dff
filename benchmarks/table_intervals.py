"""The coverage and the width of 95% intervals over a few tables for the mean regret of all.

python benchmarks/table_intervals.py                 # about a minute on one core

UCB1 is simulated on 60,000 tables of five arms with uniform rates, 0/1 rewards and 50 steps, in their order. Samples of
these regrets are drawn for several widths and numbers of tables, and also normal numbers, which are not skewed. Other
tables: --arms 3 --steps 200 --rates 1 9.
"""

from __future__ import annotations

import argparse
import math

import numpy as np

import banditune as bt
from banditune.results import Estimate

WIDTHS = (0.05, 0.1, 0.15, 0.2, 0.3)
COUNTS = (3, 5, 8, 13, 20, 27, 60, 133)
TABLES = 60_000


def simulate_populations(
    arms: int, steps: int, rates: tuple[float, float], rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """The regrets of all tables by the width, and normal numbers."""
    tables = (rng.random((TABLES, steps, arms)) < rng.beta(*rates, (TABLES, 1, arms))).astype(float)
    problem = bt.RewardTable(tables, shuffled=False, population=True)
    regrets = bt.simulate(bt.UCB1(noise=0.5), problem, WIDTHS, horizon=steps, runs=TABLES, seed=3)
    by_width = {f"gamma = {width}": row for width, row in zip(WIDTHS, regrets, strict=True)}
    return by_width | {"normal": rng.standard_normal(TABLES)}


def compute_skewness(sample: np.ndarray) -> float:
    return float(np.mean((sample - sample.mean()) ** 3) / sample.std() ** 3)


def judge(population: np.ndarray, count: int, samples: int, rng: np.random.Generator) -> str:
    """A cell: how often both intervals hold in %, and the median ratio of their widths."""
    truth = population.mean()
    drawn = population[rng.integers(len(population), size=(samples, count))]
    kinds = [
        [make(sample) for sample in drawn]
        for make in (lambda row: Estimate.from_units(row, "table"), Estimate.from_sample)
    ]
    held = [100 * np.mean([one.low <= truth <= one.high for one in estimates]) for estimates in kinds]
    ratio = np.median(
        [(one.high - one.low) / (other.high - other.low) for one, other in zip(*kinds, strict=True) if other.se > 0]
    )
    return f"{held[0]:.1f}, {held[1]:.1f}, x{ratio:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=3000, help="samples a cell")
    parser.add_argument("--arms", type=int, default=5)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--rates", type=float, nargs=2, default=(1, 1), help="Beta prior of the arms' rates")
    options = parser.parse_args()
    rng = np.random.default_rng(11)
    populations = simulate_populations(options.arms, options.steps, options.rates, rng)
    error = 100 * math.sqrt(0.95 * 0.05 / options.samples)
    print(
        f"% of intervals that hold, % of Student's, widening against Student's; the standard error of 95% is {error:.1f}"
    )
    print(
        "| tables | "
        + " | ".join(f"{name} (skewness {compute_skewness(row):.1f})" for name, row in populations.items())
        + " |"
    )
    for count in COUNTS:
        cells = [judge(row, count, options.samples, rng) for row in populations.values()]
        print(f"| {count} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
