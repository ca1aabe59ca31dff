"""The regret that a tuned value adds if an assumption is wrong: the table of docs/explanation/assumptions.md.

python benchmarks/assumptions.py                           # about 8 minutes on one core
python benchmarks/assumptions.py --runs 200 --workers 2    # a quick look

UCB1 and Thompson sampling (Gaussian Thompson sampling for real rewards) are tuned on ten arms and 3,000 rounds. Worlds
that break one assumption each are then simulated here, step by step in NumPy, without the engine. A line has the value,
its regret in that world and the lowest regret of a grid of values there. The first world is the expected one. Regret is
counted against the best arm of each step, and of each user where users differ.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import Pool

import numpy as np

import banditune as bt

ARMS, HORIZON = 10, 3000
GRID = np.array([0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.7, 1.0])


class World:
    """What the simulation assumes: means are drawn once, rewards are 0 or 1."""

    horizon = HORIZON

    def __init__(self, runs: int, rng: np.random.Generator) -> None:
        self.rng, self.rows = rng, np.arange(runs)
        self.means = self.draw(runs)

    def draw(self, runs: int) -> np.ndarray:
        """Means of instances."""
        return self.rng.random((runs, ARMS))

    def step(self, number: int) -> None:
        """What changes before a round."""

    def pay(self, arm: np.ndarray) -> np.ndarray:
        """Rewards of the arms that were pulled, one per run."""
        return (self.rng.random(len(arm)) < self.means[self.rows, arm]).astype(float)


class Changed(World):
    """All means are drawn again half-way."""

    def step(self, number: int) -> None:
        if number == HORIZON // 2:
            self.means = self.draw(len(self.rows))


class Drift(World):
    """Each round every arm's mean is drawn again with probability 1 in 3,000: once a horizon on average."""

    def step(self, number: int) -> None:
        again = self.rng.random(self.means.shape) < 1 / HORIZON
        self.means = np.where(again, self.rng.random(self.means.shape), self.means)


class Users(World):
    """Two kinds of users with means of their own come at random; the policy does not see which."""

    def __init__(self, runs: int, rng: np.random.Generator) -> None:
        super().__init__(runs, rng)
        self.kinds = self.means, self.draw(runs)

    def step(self, number: int) -> None:
        first = self.rng.random((len(self.rows), 1)) < 0.5
        self.means = np.where(first, *self.kinds)


class Alike(World):
    """Arms of an instance are alike: beta around a centre of the instance; each arm by itself is nearly as expected."""

    def draw(self, runs: int) -> np.ndarray:
        centre = self.rng.random((runs, 1))
        return self.rng.beta(1e-6 + 10 * centre, 1e-6 + 10 * (1 - centre), (runs, ARMS))


class Rare(World):
    """Instances are not those of the prior: means from Beta(1, 19) instead of Beta(1, 1)."""

    def draw(self, runs: int) -> np.ndarray:
        return self.rng.beta(1, 19, (runs, ARMS))


class Longer(World):
    """The service goes on for ten times the horizon."""

    horizon = 10 * HORIZON


class Normal(World):
    """Means from N(0, 1), rewards with normal noise of 1."""

    def draw(self, runs: int) -> np.ndarray:
        return self.rng.standard_normal((runs, ARMS))

    def pay(self, arm: np.ndarray) -> np.ndarray:
        return self.means[self.rows, arm] + self.noise(len(arm))

    def noise(self, count: int) -> np.ndarray:
        """Noise with standard deviation 1."""
        return self.rng.standard_normal(count)


class Student(Normal):
    """Noise is Student's with 3 degrees of freedom and the same standard deviation."""

    def noise(self, count: int) -> np.ndarray:
        return self.rng.standard_t(3, count) / 3**0.5


class Skewed(Normal):
    """Noise is log-normal (sigma 1.5) less its mean, and has the same standard deviation."""

    def noise(self, count: int) -> np.ndarray:
        raw = np.exp(1.5 * self.rng.standard_normal(count))
        return (raw - np.exp(1.125)) / np.sqrt((np.exp(2.25) - 1) * np.exp(2.25))


def ucb1(noise: float) -> Callable[..., np.ndarray]:
    """UCB1's index."""

    def index(pulls: np.ndarray, totals: np.ndarray, gamma: float, rng: np.random.Generator) -> np.ndarray:
        width = gamma * 2 * noise * np.sqrt(2 * np.log(HORIZON) / np.maximum(pulls, 1))
        return np.where(pulls == 0, np.inf, totals / np.maximum(pulls, 1) + width)

    return index


def thompson(pulls: np.ndarray, totals: np.ndarray, gamma: float, rng: np.random.Generator) -> np.ndarray:
    """Draws from the posteriors of a uniform prior."""
    return rng.beta((1 + totals) / gamma**2, (1 + pulls - totals) / gamma**2)


def gaussian_thompson(pulls: np.ndarray, totals: np.ndarray, gamma: float, rng: np.random.Generator) -> np.ndarray:
    """Draws from the posteriors of the prior N(0, 1) and noise 1."""
    return (totals + gamma * np.sqrt(1 + pulls) * rng.standard_normal(pulls.shape)) / (1 + pulls)


def simulate_world(kind: type[World], index: Callable[..., np.ndarray], gamma: float, runs: int) -> np.ndarray:
    """The regret of each run, against the best arm of each step."""
    world = kind(runs, np.random.default_rng(1))
    rng, rows = np.random.default_rng(2), np.arange(runs)
    pulls, totals, regret = np.zeros((runs, ARMS)), np.zeros((runs, ARMS)), np.zeros(runs)
    for number in range(world.horizon):
        world.step(number)
        arm = index(pulls, totals, gamma, rng).argmax(axis=1)
        pulls[rows, arm] += 1
        totals[rows, arm] += world.pay(arm)
        regret += world.means.max(axis=1) - world.means[rows, arm]
    return regret


@dataclass(frozen=True)
class Case:
    """A policy, its index in NumPy, the problem that it is tuned on, and the worlds that come."""

    policy: bt.kernel.Policy
    index: Callable[..., np.ndarray]
    problem: bt.kernel.Problem
    worlds: tuple[type[World], ...]


BINARY = (World, Changed, Drift, Users, Alike, Rare, Longer)
REAL = (Normal, Student, Skewed)
UNIFORM, GAUSSIAN = bt.Bernoulli(ARMS, prior=(1, 1)), bt.Gaussian(ARMS, prior=(0, 1), noise=1.0)
CASES = {
    "ucb1": Case(bt.UCB1(noise=0.5), ucb1(0.5), UNIFORM, BINARY),
    "ts": Case(bt.Thompson(prior=(1, 1)), thompson, UNIFORM, BINARY),
    "ucb1, noise 1": Case(bt.UCB1(noise=1.0), ucb1(1.0), GAUSSIAN, REAL),
    "gaussian-ts": Case(bt.GaussianThompson(prior=(0, 1), noise=1.0), gaussian_thompson, GAUSSIAN, REAL),
}


def simulate_cell(arguments: tuple[str, str, float, int]) -> np.ndarray:
    """A value in a world, as a task of a pool."""
    name, world, gamma, runs = arguments
    case = CASES[name]
    return simulate_world(next(kind for kind in case.worlds if kind.__name__ == world), case.index, gamma, runs)


def tune_policy(name: str) -> bt.results.Tuning:
    """A policy tuned on what is expected."""
    return bt.tune(
        CASES[name].policy,
        CASES[name].problem,
        horizon=HORIZON,
        budget=3000,
        include=("no_lower_bound",),
        run=bt.Run(workers=1),
    )


def main() -> None:
    """A line for every policy and world."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=1)
    arguments = parser.parse_args()
    grid_runs = max(50, arguments.runs // 5)
    with Pool(arguments.workers) as pool:
        values = {
            name: tuning.params["gamma"] for name, tuning in zip(CASES, pool.map(tune_policy, CASES), strict=True)
        }
        cells = [(name, kind.__name__) for name, case in CASES.items() for kind in case.worlds]
        grid = [(*cell, gamma, grid_runs) for cell in cells for gamma in GRID.tolist()]
        means = [row.mean() for row in pool.map(simulate_cell, grid, chunksize=1)]
        best = [GRID[place] for place in np.array(means).reshape(len(cells), -1).argmin(axis=1)]
        tuned_regrets = pool.map(
            simulate_cell, [(*cell, values[cell[0]], arguments.runs) for cell in cells], chunksize=1
        )
        best_regrets = pool.map(
            simulate_cell,
            [(*cell, gamma, arguments.runs) for cell, gamma in zip(cells, best, strict=True)],
            chunksize=1,
        )
    for cell, tuned_regret, gamma, best_regret in zip(cells, tuned_regrets, best, best_regrets, strict=True):
        errors = [row.std(ddof=1) / arguments.runs**0.5 for row in (tuned_regret, best_regret)]
        print(
            f"{cell[0]:14} {values[cell[0]]:.3f}  {cell[1]:9} {tuned_regret.mean():8.1f} +- {errors[0]:4.1f}; "
            f"best of the grid {gamma:5.2f}: {best_regret.mean():8.1f} +- {errors[1]:4.1f}"
        )


if __name__ == "__main__":
    main()
