"""Skewed and heavy-tailed rewards: what backtests say of them, and regret if they are taken for Gaussian.

python benchmarks/reward_shapes.py cover 200       # intervals of backtests beside the truth, 200 logs of each kind
python benchmarks/reward_shapes.py effect          # regret with Gaussian rewards, with residuals, and with the actual law

The first takes 16 minutes of CPU, all cores share it; the second half a minute.
"""

from __future__ import annotations

import functools
import math
import multiprocessing
import os
import sys
import time
import warnings

import numpy as np

import banditune as bt

ARMS, HORIZON, NOISE = 4, 200, 1.0
WIDTHS = np.geomspace(0.01, 1.0, 25)
TRUE_RUNS = 40_000
SIGMA = 1.0
"""The standard deviation of a log-normal reward's logarithm."""


@bt.kernel.scalar
def lognormal_reward(instance, arm, pull, step, stream):
    """The mean plus noise whose shape is log-normal."""
    sigma = instance.options[1]
    centre = math.exp(0.5 * sigma * sigma)
    away = math.exp(sigma * bt.kernel.normal(stream)) - centre
    return instance.means[arm] + instance.options[0] * away / (centre * math.sqrt(math.exp(sigma * sigma) - 1.0))


@bt.kernel.scalar
def minus_lognormal_reward(instance, arm, pull, step, stream):
    """The same to the other side, as costs are."""
    return 2.0 * instance.means[arm] - lognormal_reward(instance, arm, pull, step, stream)


@bt.kernel.scalar
def student_reward(instance, arm, pull, step, stream):
    """The mean plus noise whose shape is Student's t with three degrees of freedom."""
    square = bt.kernel.normal(stream) ** 2 + bt.kernel.normal(stream) ** 2 + bt.kernel.normal(stream) ** 2
    return instance.means[arm] + instance.options[0] * bt.kernel.normal(stream) / math.sqrt(square)


REWARDS = {
    "log-normal": lognormal_reward,
    "minus log-normal": minus_lognormal_reward,
    "Student-3": student_reward,
    "Gaussian": None,
}


def shape_of(law: str, rng: np.random.Generator, size: int) -> np.ndarray:
    """Noise of mean 0 and sd 1."""
    if law == "log-normal":
        centre = math.exp(0.5 * SIGMA**2)
        return (rng.lognormal(0, SIGMA, size) - centre) / (centre * math.sqrt(math.exp(SIGMA**2) - 1))
    if law == "minus log-normal":
        return -shape_of("log-normal", rng, size)
    return rng.standard_t(3, size) / math.sqrt(3) if law == "Student-3" else rng.standard_normal(size)


def truth_of(law: str, spread: float, noise: float = NOISE, arms: int = ARMS) -> bt.kernel.Problem:
    """Arms with means from N(1, spread^2) and rewards of this law."""
    if law == "Gaussian":
        return bt.Gaussian(arms, (1, spread), noise)

    def means(size: int, rng: np.random.Generator) -> np.ndarray:
        return rng.normal(1, spread, (size, arms))

    return bt.define_problem(law, means, REWARDS[law], arms=arms, options=(noise, SIGMA))


def logs_of(law: str, rng: np.random.Generator, campaigns: int, pulls: int, spread: float) -> bt.logs.Logs:
    """A row per decision: every arm is pulled as often in every campaign."""
    cells = campaigns * ARMS
    means = np.repeat(rng.normal(1, spread, cells), pulls)
    return bt.read_logs(
        {
            "campaign": np.repeat(np.arange(campaigns), ARMS * pulls),
            "arm": np.tile(np.repeat(np.arange(ARMS), pulls), campaigns),
            "reward": means + NOISE * shape_of(law, rng, cells * pulls),
        }
    )


DESIGNS = {
    f"{law}, {pulls} pulls": (law, 40, pulls, 0.4)
    for law in ("log-normal", "Student-3", "Gaussian")
    for pulls in (20, 100)
}


@functools.cache
def true_regrets(law: str, spread: float) -> tuple[np.ndarray, np.ndarray]:
    """True regret at all widths, and its standard error."""
    problem = truth_of(law, spread)
    found = bt.simulate(
        bt.UCB1(noise=NOISE), problem, WIDTHS[:, None], horizon=HORIZON, runs=TRUE_RUNS, seed=987, run=bt.Run(workers=1)
    )
    return found.mean(axis=1), found.std(axis=1) / math.sqrt(TRUE_RUNS)


def regret_at(law: str, spread: float, width: float) -> float:
    """True regret of a width, between those that were played."""
    return float(np.interp(math.log(max(width, WIDTHS[0])), np.log(WIDTHS), true_regrets(law, spread)[0]))


def one(name: str, seed: int) -> list[tuple[float, float, float, float, float]]:
    """Mean, standard error, interval and truth of the regret of the tuned and of the textbook's width, and of the gain."""
    warnings.simplefilter("ignore")
    law, campaigns, pulls, spread = DESIGNS[name]
    logs = logs_of(law, np.random.default_rng([seed, 77]), campaigns, pulls, spread)
    found = bt.backtest(bt.UCB1(noise=NOISE), logs, horizon=HORIZON, budget=100, seed=seed, run=bt.Run(workers=1))
    tuned, textbook = (
        regret_at(law, spread, next(iter(params.values())))
        for params in (found.tuning.params, found.tuning.textbook_params)
    )
    truths = (tuned, textbook, textbook - tuned)
    return [
        (one.mean, one.se, one.low, one.high, true)
        for one, true in zip((found.regret, found.textbook_regret, found.gain), truths, strict=True)
    ]


def cover(repetitions: int, names: list[str]) -> None:
    """How many intervals hold the truth."""
    print(
        "| logs | number | truth | bias | true spread | stated error / true spread | coverage | CPU a log |", flush=True
    )
    print("|---|---|---|---|---|---|---|---|")
    for name in names:
        true_regrets(*(DESIGNS[name][place] for place in (0, 3)))
    with multiprocessing.get_context("fork").Pool(len(os.sched_getaffinity(0))) as pool:
        for name in names:
            begun = time.time()
            found = np.array(pool.starmap(one, [(name, seed) for seed in range(repetitions)], chunksize=4))
            pace = (time.time() - begun) * len(os.sched_getaffinity(0)) / repetitions
            for number, values in zip(("regret", "textbook's regret", "gain"), found.swapaxes(0, 1), strict=True):
                mean, se, low, high, true = values.T
                off = mean - true
                covered = ((low <= true) & (true <= high)).mean()
                print(
                    f"| {name} | {number} | {true.mean():.4g} | {100 * off.mean() / true.mean():+.1f}% "
                    f"± {100 * off.std() / math.sqrt(repetitions) / abs(true.mean()):.1f} | {off.std():.3g} "
                    f"| {math.sqrt((se**2).mean()) / off.std():.2f} | {100 * covered:.1f} | {pace:.2f} s |",
                    flush=True,
                )


def effect() -> None:
    """Eight arms whose gaps are a sixth of the noise: regret of two widths as the fit has it, and as it is."""
    print("| law | horizon | width | Gaussian rewards | residuals of the logs | actual law |")
    print("|---|---|---|---|---|---|")
    rng = np.random.default_rng(5)
    for law in ("log-normal", "minus log-normal", "Student-3"):
        campaign, arm = rng.integers(60, size=240_000), rng.integers(8, size=240_000)
        means = rng.normal(1, 1, (60, 8))
        logs = bt.read_logs(
            {"campaign": campaign, "arm": arm, "reward": means[campaign, arm] + 6 * shape_of(law, rng, len(arm))}
        )
        sums = bt.make_logs(logs.campaign, logs.arm, logs.pulls, logs.total, logs.squares, rewards="real")
        for horizon in (100, 1000):
            problems = bt.fit(sums).problem, bt.fit(logs).problem, truth_of(law, 1.0, 6.0, 8)
            found = [
                bt.simulate(bt.UCB1(noise=6.0), problem, [[0.1], [0.4]], horizon=horizon, runs=40_000, seed=3)
                for problem in problems
            ]
            for place, width in enumerate((0.1, 0.4)):
                cells = [f"{regrets[place].mean():.2f} ± {regrets[place].std() / 200:.2f}" for regrets in found]
                print(f"| {law} | {horizon:,} | {width} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "effect":
        effect()
    else:
        cover(int(sys.argv[2]), sys.argv[3:] or list(DESIGNS))
