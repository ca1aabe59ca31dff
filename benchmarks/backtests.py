"""Are backtests right? Numbers of many simulated logs beside the truth, without and with differences between arms.

python benchmarks/backtests.py 200                    # everything, some hours on one core
python benchmarks/backtests.py 200 --processes 16     # the same on 16 cores
python benchmarks/backtests.py 200 "5 pulls" "no spread, ads"   # some of it

If the name of a design begins with "no spread", all arms of a campaign are equal, and the whole backtest is made: fit,
tuning on one half, evaluation on the other. For the others only the evaluation is made, of two given values of gamma.
Truth has two meanings. "These" is the mean over the evaluated campaigns of expected values at their true means. "All" is
the mean of that over all logs, which is that of the population. Intervals are made for the second.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from fit_recovery import MU3, S3, X10, binary, cells, thompson

import banditune as bt
from banditune.logs.campaign_logs import Logs
from banditune.results.log_results import SHAPE_SIGNIFICANCE_LEVEL
from banditune.study.backtest_estimates import PairRuns
from banditune.study.backtest_evaluators import make_evaluator
from banditune.study.backtesting import simulate_pair

KINDS = ("regret", "textbook_regret", "gain", "reward", "textbook_reward", "reward_difference")
HORIZON, TRUE_RUNS = 200, 8000
WIDTHS = [[0.2], [1.0]]
CLICKS = 0.00433
SINGLE = bt.Run(workers=1)
Rng = np.random.Generator


class Past(NamedTuple):
    """Logs and the true means of each campaign's arms, as these stand in the logs."""

    logs: Logs
    means: list[np.ndarray]


class Design(NamedTuple):
    policy: bt.kernel.Policy
    make: Callable[[Rng], Past]
    horizon: int = HORIZON
    model: str = "auto"


def split(logs: Logs, means: np.ndarray) -> Past:
    """Means of all cells, campaign by campaign."""
    return Past(logs, np.split(means, np.cumsum(logs.arm_counts)[:-1]))


def of_clicks(pulls: np.ndarray, means: np.ndarray, rng: Rng) -> Past:
    """0/1 rewards; (campaigns, arms)."""
    return split(binary(len(means), pulls, rng.binomial(pulls, means)), means.ravel())


def ads(rng: Rng, campaigns: int, scale: float = 1, size: float = math.inf) -> Past:
    """The shape of display ads: 3 to 46 arms, 3,000 to 300,000 impressions, 0.433% clicks; a + b of arms is `size`."""
    campaign, arm, pulls, means = [], [], [], []
    for number in range(campaigns):
        arms = int(math.exp(rng.uniform(math.log(3), math.log(46.99))))
        shown = scale * math.exp(rng.uniform(math.log(3e3), math.log(3e5)))
        pulls.append(np.maximum(rng.multinomial(int(shown), rng.dirichlet(np.full(arms, 2.0))), 2))
        rate = CLICKS * rng.gamma(20, 1 / 20)
        rates = np.full(arms, rate) if size == math.inf else rng.beta(size * rate, size * (1 - rate), arms)
        means.append(rates)
        campaign += [number] * arms
        arm += range(arms)
    shown, rates = np.concatenate(pulls), np.concatenate(means)
    return split(bt.make_logs(campaign, arm, shown, rng.binomial(shown, rates)), rates)


def independent(rng: Rng, pulls: int, campaigns: int = 20) -> Past:
    """Five arms, each with as many pulls, means from Beta(2, 8)."""
    return of_clicks(np.full((campaigns, 5), pulls), rng.beta(2, 8, (campaigns, 5)), rng)


def around(rng: Rng, pulls: np.ndarray, size: float = 30.0, a: float = 4.0, b: float = 16.0) -> Past:
    """Arms of a campaign lie around its own centre, from Beta(a, b)."""
    middle = rng.beta(a, b, (len(pulls), 1))
    means = np.repeat(middle, pulls.shape[1], axis=1)
    return of_clicks(
        pulls, means if size == math.inf else rng.beta(size * middle, size * (1 - middle), pulls.shape), rng
    )


def together(rng: Rng, pulls: int, campaigns: int = 20, size: float = 30.0) -> Past:
    """About as many pulls of each of five arms."""
    return around(rng, np.maximum(rng.poisson(pulls, (campaigns, 5)), 2), size)


def uneven(rng: Rng, size: float = 30.0) -> Past:
    """Pulls of arms from 3 to 3,000."""
    return around(rng, np.exp(rng.uniform(math.log(3), math.log(3000), (20, 5))).astype(int), size)


def rare(rng: Rng, size: float = 800.0) -> Past:
    """Few clicks: 500 pulls of an arm, of which 5 pay."""
    return around(rng, np.full((20, 5), 500), size, 10, 990)


def half_equal(rng: Rng, pulls: int) -> Past:
    """In half of the campaigns all arms are equal, in the others one of five pays twice as much."""
    means = np.full((20, 5), 0.15)
    means[rng.random(20) < 0.5, 0] = 0.3
    return of_clicks(np.full((20, 5), pulls), means, rng)


def odd_arm(rng: Rng, pulls: int, rate: float, odd: int = 1) -> Past:
    """One (or more) of five arms pays at this rate, the others 0.15."""
    means = np.full((20, 5), 0.15)
    means[:, :odd] = rate
    return of_clicks(np.full((20, 5), pulls), means, rng)


def varied(rng: Rng, pulls: int) -> Past:
    """Arms of half of the campaigns differ much, those of the others little."""
    middle, size = rng.beta(4, 16, (20, 1)), rng.choice([10.0, 200.0], (20, 1))
    return of_clicks(np.full((20, 5), pulls), rng.beta(size * middle, size * (1 - middle), (20, 5)), rng)


def log_normal(rng: Rng, pulls: int) -> Past:
    """0.4% clicks: log-normal rates around those of the campaigns, six arms with uneven pulls."""
    rates = 0.004 * np.exp(rng.normal(0, 0.3, (20, 1)) + rng.normal(0, 0.35, (20, 6)))
    shown = np.maximum((6 * pulls * rng.dirichlet(np.full(6, 3.0), 20)).astype(int), 2)
    return of_clicks(shown, rates, rng)


def by_thompson(rng: Rng, steps: int, size: float = 0.0) -> Past:
    """Thompson sampling chose the arms."""
    means = rng.beta(2, 8, (20, 5)) if size == 0 else np.repeat(rng.beta(2, 8, (20, 1)), 5, axis=1)
    pulls, wins = thompson(rng, means, steps)
    return split(binary(20, pulls, wins), means[pulls > 0])


def normal(rng: Rng, pulls: int, sd: float = 0.4, campaigns: int = 20) -> Past:
    """Real rewards with a noise of 1, arms of a campaign around its own centre."""
    means = (rng.normal(1, 0.5, (campaigns, 1)) + rng.normal(0, 1, (campaigns, 5)) * sd).ravel()
    counts = np.maximum(rng.multinomial(5 * pulls, np.full(5, 0.2), campaigns), 2).ravel()
    total = counts * means + np.sqrt(counts) * rng.standard_normal(len(counts))
    squares = rng.chisquare(counts - 1)
    return split(bt.make_logs(*cells(campaigns, 5), counts, total, squares, rewards="real"), means)


def unit(rng: Rng, pulls: int, size: float = 10.0) -> Past:
    """Beta rewards with v = 4, 20 campaigns of five arms around centres from Beta(5, 5)."""
    middle = rng.beta(5, 5, (20, 1))
    means = np.repeat(middle, 5, axis=1) if size == math.inf else rng.beta(size * middle, size * (1 - middle), (20, 5))
    rewards = rng.beta(4 * means.ravel(), 4 * (1 - means.ravel()), (pulls, 100))
    squares = ((rewards - rewards.mean(axis=0)) ** 2).sum(axis=0)
    logs = bt.make_logs(*cells(20, 5), np.full(100, pulls), rewards.sum(axis=0), squares, rewards="unit")
    return split(logs, means.ravel())


def featured(rng: Rng, pulls: int, sd: float = 1.0) -> Past:
    """Ten arms with three features, real rewards with a noise of 1; without spread all arms pay 0."""
    theta = rng.multivariate_normal(MU3, S3, 20)
    means = (theta @ X10.T).ravel() if sd else np.zeros(200)
    counts = np.maximum(rng.multinomial(10 * pulls, np.full(10, 0.1), 20), 2).ravel()
    total = counts * means + np.sqrt(counts) * rng.standard_normal(200)
    campaign, arm = cells(20, 10)
    return split(
        bt.make_logs(campaign, arm, counts, total, rng.chisquare(counts - 1), rewards="real", features=X10[arm]), means
    )


UCB, ADS, REAL = bt.UCB1(noise=0.5), bt.UCB1(noise=math.sqrt(CLICKS)), bt.UCB1(noise=1.0)
NULL: dict[str, Design] = {
    "no spread, ads": Design(ADS, partial(ads, campaigns=21), 20_000),
    "no spread, ads, ten times the data": Design(ADS, partial(ads, campaigns=21, scale=10), 20_000),
    "no spread, 5 pulls": Design(UCB, partial(together, pulls=5, campaigns=40, size=math.inf)),
    "no spread, 200 pulls": Design(UCB, partial(together, pulls=200, campaigns=40, size=math.inf)),
    "no spread, uneven": Design(UCB, partial(uneven, size=math.inf)),
    "no spread, few clicks": Design(UCB, partial(rare, size=math.inf)),
    "no spread, Thompson": Design(UCB, partial(by_thompson, steps=100, size=math.inf)),
    "no spread, real": Design(REAL, partial(normal, pulls=20, sd=0.0, campaigns=40)),
    "no spread, unit": Design(UCB, partial(unit, pulls=20, size=math.inf)),
    "no spread, features": Design(bt.LinUCB(prior=(0, 1), noise=1.0), partial(featured, pulls=20, sd=0.0)),
}
DESIGNS: dict[str, Design] = {
    "ads": Design(ADS, partial(ads, campaigns=20, size=2000.0), 20_000),
    **{f"{n} pulls": Design(UCB, partial(independent, pulls=n)) for n in (5, 20, 200)},
    "20 pulls, 6 campaigns": Design(UCB, partial(independent, pulls=20, campaigns=6)),
    "20 pulls, 60 campaigns": Design(UCB, partial(independent, pulls=20, campaigns=60)),
    **{f"{n} pulls, centres": Design(UCB, partial(together, pulls=n)) for n in (5, 20, 200)},
    "uneven": Design(UCB, uneven),
    "few clicks": Design(bt.UCB1(noise=0.1), rare, 2000),
    **{f"clicks of 0.4%, {n:,} pulls": Design(ADS, partial(log_normal, pulls=n), 10_000) for n in (500, 4000)},
    **{f"{n} pulls, campaigns differ": Design(UCB, partial(varied, pulls=n)) for n in (20, 200)},
    **{f"{n} pulls, half equal": Design(UCB, partial(half_equal, pulls=n)) for n in (20, 200)},
    **{f"{n} pulls, one arm better": Design(UCB, partial(odd_arm, pulls=n, rate=0.22)) for n in (50, 200)},
    **{f"{n} pulls, one arm worse": Design(UCB, partial(odd_arm, pulls=n, rate=0.08)) for n in (50, 200)},
    **{f"{n} pulls, two arms better": Design(UCB, partial(odd_arm, pulls=n, rate=0.22, odd=2)) for n in (50, 200)},
    "100 steps of Thompson": Design(UCB, partial(by_thompson, steps=100)),
    **{f"{n} pulls, real": Design(REAL, partial(normal, pulls=n)) for n in (5, 20, 200)},
    **{f"{n} pulls, unit": Design(UCB, partial(unit, pulls=n)) for n in (5, 50)},
    **{
        f"{n} pulls, features": Design(bt.LinUCB(prior=(0, 1), noise=1), partial(featured, pulls=n), HORIZON, "linear")
        for n in (2, 20)
    },
}


def evaluate_logs(design: Design, logs: Logs, seed: int) -> tuple[list[tuple[float, ...]], float]:
    """Mean, standard error and interval of each kind of number for two values of gamma; the p-value of arms' shape."""
    evaluator = make_evaluator(logs, design.model, intercept=False)
    found = evaluator.evaluate(lambda problem, runs: play(design, problem, runs, seed))
    estimates = (getattr(found, kind) for kind in KINDS)
    return [(one.mean, one.se, one.low, one.high) for one in estimates], evaluator.compute_arm_shape_p()


def play(design: Design, problem: bt.kernel.Problem, runs: range, seed: int) -> PairRuns:
    """Both values of gamma on the same runs."""
    return simulate_pair([(design.policy, row) for row in WIDTHS], problem, design.horizon, runs, seed, SINGLE)


def compute_truth(design: Design, past: Past, seed: int) -> list[float]:
    """The expected values at the true means of these campaigns."""
    found = []
    for number, means in enumerate(past.means):
        pulls = past.logs.pulls[past.logs.campaign == number]
        runs = range(max(TRUE_RUNS // len(past.means), 100))
        one = play(design, true_problem(past.logs, means, pulls), runs, 10**6 + 1000 * seed + number)
        regret, textbook = one.regrets.mean(axis=1)
        reward, other = one.rewards.mean(axis=1)
        found.append([regret, textbook, textbook - regret, reward, other, reward - pulls @ means / pulls.sum()])
    return np.mean(found, axis=0).tolist()


def true_problem(logs: Logs, means: np.ndarray, pulls: np.ndarray) -> bt.kernel.Problem:
    """A campaign whose arms have these means."""
    if logs.features is not None:
        # Means of arms with features follow from a theta that is known.
        theta = np.linalg.lstsq(X10, means, rcond=None)[0]
        return bt.Linear(prior=(theta.tolist(), (1e-12 * np.eye(3)).tolist()), features=X10, noise=1.0)
    if logs.rewards == "real":
        return bt.Gaussian(len(means), [(float(mean), 1e-9) for mean in means], 1.0)
    if logs.rewards == "unit":
        return bt.BetaRewards(len(means), [(1e9 * float(mean), 1e9 * (1 - float(mean))) for mean in means], 4.0)
    return bt.Mixture(means[None])


def measure_with_spread(name: str, repetition: int, seed: int) -> tuple[list[tuple[float, ...]], list[float]]:
    """Estimates for logs with spread, and the truth of their campaigns; then the p-value of arms' shape."""
    design = DESIGNS[name]
    past = design.make(np.random.default_rng([seed, repetition]))
    found, shape_p = evaluate_logs(design, past.logs, repetition)
    return found, [*compute_truth(design, past, repetition), shape_p]


def measure_without_spread(name: str, repetition: int, seed: int) -> tuple[list[tuple[float, ...]], list[float]]:
    """Estimates of a whole backtest for logs without spread; then the reward over the logged one, and the p-value."""
    design = NULL[name]
    logs = design.make(np.random.default_rng([seed, repetition])).logs
    found = bt.backtest(
        design.policy,
        logs,
        horizon=design.horizon,
        budget=100,
        seed=repetition,
        fit_settings=bt.FitSettings(model=design.model),
        run=bt.Run(workers=1),
    )
    ratio = found.reward.mean / found.logged_reward.mean
    rows = [(one.mean, one.se, one.low, one.high) for one in (getattr(found, kind) for kind in KINDS)]
    return rows, [ratio, found.equal_arms_p]


def measure(name: str, repetitions: int, seed: int = 0, processes: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Estimates (repetitions, kinds, 4), and truths with p-values (repetitions, numbers)."""
    work = partial(measure_without_spread if name in NULL else measure_with_spread, name, seed=seed)
    if processes == 1:
        found = [work(repetition) for repetition in range(repetitions)]
    else:
        with multiprocessing.Pool(processes) as pool:
            found = pool.map(work, range(repetitions), chunksize=1)
    estimates, truths = zip(*found, strict=True)
    return np.array(estimates), np.array(truths)


def cover(found: np.ndarray, truth: np.ndarray | float) -> np.ndarray:
    """The share of intervals (repetitions, kinds, 4) that hold the truth."""
    return ((found[..., 2] <= truth) & (truth <= found[..., 3])).mean(axis=0)


def format_without_spread(found: np.ndarray, truth: np.ndarray) -> str:
    """The cells of a design without spread."""
    difference = found[:, KINDS.index("reward_difference"), 0]
    error = difference.std(ddof=1) / math.sqrt(len(found))
    away = difference.mean() / error if error else 0.0
    excluded = 100 * (1 - cover(found, 0.0))
    parts = [f"{excluded[KINDS.index(kind)]:.1f}%" for kind in ("reward_difference", "gain")]
    p_share = 100 * (truth[:, 1] < 0.05).mean()
    return " | ".join([f"{away:+.1f}", *parts, f"{truth[:, 0].mean():.4f}", f"{p_share:.1f}%"])


def format_with_spread(found: np.ndarray, truth: np.ndarray) -> str:
    """The cells of a design with spread."""
    noted = 100 * (truth[:, -1] <= SHAPE_SIGNIFICANCE_LEVEL).mean()
    truth = truth[:, :-1]
    these, every = 100 * cover(found, truth), 100 * cover(found, truth.mean(axis=0))
    bias = 100 * (found[..., 0] - truth).mean(axis=0) / np.abs(truth.mean(axis=0))
    error = 100 * (found[..., 0] - truth).std(axis=0, ddof=1) / np.abs(truth.mean(axis=0)) / math.sqrt(len(found))
    stated = np.sqrt((found[..., 1] ** 2).mean(axis=0)) / found[..., 0].std(axis=0, ddof=1)
    cells = [
        f"{bias[place]:+.1f} ± {error[place]:.1f}, {every[place]:.1f}, {these[place]:.1f}"
        for place in map(KINDS.index, ("regret", "gain", "reward", "reward_difference"))
    ]
    return " | ".join([*cells, f"{stated[KINDS.index('reward_difference')]:.2f}", f"{noted:.1f}%"])


def main() -> None:
    """Print a row for each design."""
    parser = argparse.ArgumentParser()
    parser.add_argument("repetitions", type=int)
    parser.add_argument("names", nargs="*", default=[*NULL, *DESIGNS])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1)
    wanted = parser.parse_args()
    print("| no spread | away | difference excludes 0 | gain excludes 0 | reward over logged | p below 0.05 | |")
    numbers = "regret: bias, all, these | gain | reward | tuned minus logged"
    print(f"| spread | {numbers} | stated error / true | shape noted | |", flush=True)
    for name in wanted.names:
        begin = time.time()
        found, truth = measure(name, wanted.repetitions, wanted.seed, wanted.processes)
        cells = (format_without_spread if name in NULL else format_with_spread)(found, truth)
        print(f"| {name} | {cells} | {time.time() - begin:.0f} s |", flush=True)


if __name__ == "__main__":
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    main()
