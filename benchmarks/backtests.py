"""Are standard errors of a backtest right? Numbers told of many logs beside their true spread and the truth.

python benchmarks/backtests.py 400             # every design, an hour on one core
python benchmarks/backtests.py 400 "5 pulls"   # one of them
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from recovery import MU3, S3, X10, binary, cells, real, thompson, within

import banditune as bt
from banditune.logs.backtest import groups_of, judged, judged_by_groups, played
from banditune.logs.judges import judge_of
from banditune.logs.record import Logs

KINDS = ("regret", "theory", "gain", "reward", "theory reward")
HORIZON, TRUE_RUNS = 200, 100_000
Rng = np.random.Generator
Design = tuple[bt.Policy, list[list[float]], bt.Problem, Callable[[Rng], Logs]]


def centres(rng: Rng, campaigns: int) -> np.ndarray:
    return rng.beta(4, 16, campaigns)


def independent(rng: Rng, pulls: int, campaigns: int = 20) -> Logs:
    """Five arms, each with as many pulls, means from Beta(2, 8)."""
    wins = rng.binomial(pulls, rng.beta(2, 8, (campaigns, 5)))
    return binary(campaigns, np.full(wins.shape, pulls), wins)


def together(rng: Rng, pulls: int, campaigns: int = 20) -> Logs:
    """Arms of a campaign lie around its own centre."""
    return within(rng, centres(rng, campaigns), 5, 30, pulls)


def by_thompson(rng: Rng, steps: int, campaigns: int = 20) -> Logs:
    """Thompson sampling chose the arms."""
    return binary(campaigns, *thompson(rng, rng.beta(2, 8, (campaigns, 5)), steps))


def normal(rng: Rng, pulls: int, campaigns: int = 20) -> Logs:
    """Real rewards with a noise of 1, arms of a campaign around its own centre."""
    means = rng.normal(1, 0.5, (campaigns, 1)) + rng.normal(0, 0.4, (campaigns, 5))
    return real(rng, campaigns, 5, 5 * pulls, means.ravel(), 1.0)


def featured(rng: Rng, pulls: int, campaigns: int = 20) -> Logs:
    """Ten arms with three features, real rewards with a noise of 1."""
    means = rng.multivariate_normal(MU3, S3, campaigns) @ X10.T
    return real(rng, campaigns, 10, 10 * pulls, means.ravel(), 1.0, features=X10[cells(campaigns, 10)[1]])


def around_centres() -> bt.Problem:
    rng = np.random.default_rng(11)
    middle = centres(rng, 20_000)[:, None]
    return bt.Mixture(rng.beta(30 * middle, 30 * (1 - middle), (20_000, 5)))


WIDTHS = [[0.2], [1.0]]
LINEAR = bt.Linear(prior=(MU3.tolist(), S3.tolist()), features=X10, noise=1.0)
BETA, MIXED, NORMAL = bt.Bernoulli(5, (2, 8)), around_centres(), bt.Gaussian(5, (1, 0.4), 1.0)
DESIGNS: dict[str, Design] = {
    **{f"{n} pulls": (bt.UCB1(), WIDTHS, BETA, partial(independent, pulls=n)) for n in (5, 20, 40, 200)},
    "20 pulls, 6 campaigns": (bt.UCB1(), WIDTHS, BETA, partial(independent, pulls=20, campaigns=6)),
    "20 pulls, 60 campaigns": (bt.UCB1(), WIDTHS, BETA, partial(independent, pulls=20, campaigns=60)),
    **{f"{n} pulls, centres": (bt.UCB1(), WIDTHS, MIXED, partial(together, pulls=n)) for n in (5, 20, 200)},
    "100 steps of Thompson": (bt.UCB1(), WIDTHS, BETA, partial(by_thompson, steps=100)),
    **{f"{n} pulls, real": (bt.UCB1(noise=1), WIDTHS, NORMAL, partial(normal, pulls=n)) for n in (5, 20, 200)},
    **{f"{n} pulls, features": (bt.LinUCB(noise=1), WIDTHS, LINEAR, partial(featured, pulls=n)) for n in (2, 20)},
}


def measured(name: str, repetitions: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Estimates (repetitions, kinds, 4): mean, standard error and interval; and what is true of all campaigns."""
    policy, rows, problem, make = DESIGNS[name]
    truth = played(policy, problem, rows, HORIZON, range(TRUE_RUNS), 12_345, 1)[0].mean(axis=1)
    found = []
    for repetition in range(repetitions):
        logs = make(np.random.default_rng([seed, repetition]))

        def play(one: bt.Problem, runs: range, at: int = repetition) -> tuple[np.ndarray, np.ndarray]:
            return played(policy, one, rows, HORIZON, runs, at, 1)

        if logs.features is None:
            told = judged(judge_of(logs), play)
        else:
            told = judged_by_groups(groups_of(logs, "linear", intercept=False), play)
        found.append([(one.mean, one.se, one.low, one.high) for one in told])
    return np.array(found), truth


def told(name: str, repetitions: int) -> None:
    """A line for each kind of number."""
    begun = time.time()
    found, truth = measured(name, repetitions)
    pace = (time.time() - begun) / repetitions
    for kind, values, true in zip(KINDS, found.swapaxes(0, 1), truth, strict=True):
        mean, se, low, high = values.T
        spread = mean.std(ddof=1)
        cover = ((low <= true) & (true <= high)).mean()
        print(
            f"| {name} | {kind} | {true:.4g} | {100 * (mean.mean() / true - 1):+.1f}% "
            f"+- {100 * spread / math.sqrt(repetitions) / abs(true):.1f} | {spread:.3g} | "
            f"{math.sqrt((se**2).mean()) / spread:.2f} | {np.median(se) / spread:.2f} | {100 * cover:.1f} | {pace:.2f} s |",
            flush=True,
        )


if __name__ == "__main__":
    print("| logs | number | truth | bias | true spread | told (root mean square) | told (median) | coverage | |")
    for design in sys.argv[2:] or DESIGNS:
        told(design, int(sys.argv[1]))
