"""Backtests of real tests, compared with the rewards that a policy would have had in them.

python benchmarks/backtest_replay.py tests.csv    # columns test, impressions, clicks: a row per arm; two minutes

Recorded rewards are drawn without replacement. A run that is no longer than an arm's impressions has no bias, whatever
the rates are. The truth is the mean over all tests; a backtest sees some of them.
"""

from __future__ import annotations

import csv
import math
import sys
import warnings

import numba
import numpy as np

import banditune as bt

HORIZON, NOISE, TESTS, REPLAYS = 2000, 0.12, 40, 8
GAMMAS = np.array([0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.14, 0.2, 0.3, 0.5, 1.0])


def read_tests(path: str) -> list[np.ndarray]:
    """Impressions and clicks (arms, 2) of tests whose arms all have enough impressions."""
    tests: dict[str, list[tuple[int, int]]] = {}
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            tests.setdefault(row["test"], []).append((int(row["impressions"]), int(row["clicks"])))
    return [np.array(arms) for arms in tests.values() if len(arms) > 1 and min(arms)[0] >= HORIZON]


@numba.njit
def replay_ucb1(shown, clicks, gamma, replays, seed):
    """Mean reward of UCB1 on an arm's recorded rewards; written apart from the package."""
    np.random.seed(seed)
    earned = 0.0
    for _ in range(replays):
        left, paying = shown.copy(), clicks.copy()
        pulls, total = np.zeros(len(shown)), np.zeros(len(shown))
        for _ in range(HORIZON):
            best, highest = 0, -1.0
            for arm in range(len(shown)):
                index = np.inf
                if pulls[arm] > 0:
                    index = total[arm] / pulls[arm] + 2 * gamma * NOISE * math.sqrt(2 * math.log(HORIZON) / pulls[arm])
                if index > highest:
                    best, highest = arm, index
            reward = 1.0 if np.random.random() * left[best] < paying[best] else 0.0
            left[best] -= 1
            paying[best] -= reward
            pulls[best] += 1
            total[best] += reward
            earned += reward
    return earned / (replays * HORIZON)


def backtest_tests(tests: list[np.ndarray], seed: int) -> bt.results.Backtest:
    """Backtest UCB1 on some tests."""
    campaign = np.repeat(np.arange(len(tests)), [len(test) for test in tests])
    arm = np.concatenate([np.arange(len(test)) for test in tests])
    logs = bt.make_logs(campaign, arm, *np.concatenate(tests).T)
    return bt.backtest(bt.UCB1(noise=NOISE), logs, horizon=HORIZON, budget=200, seed=seed)


def main(path: str) -> None:
    """Print estimates beside the truth."""
    warnings.simplefilter("ignore")
    tests = read_tests(path)
    rewards = [
        [replay_ucb1(*test.T.astype(float), gamma, REPLAYS, number) for gamma in GAMMAS]
        for number, test in enumerate(tests)
    ]
    difference = np.array(rewards) - np.array([[test[:, 1].sum() / test[:, 0].sum()] for test in tests])
    truth, error = difference.mean(axis=0), difference.std(axis=0) / math.sqrt(len(tests))
    order = np.random.default_rng(3).permutation(len(tests))
    rows = []
    for seed in range(len(tests) // TESTS):
        result = backtest_tests([tests[place] for place in order[seed * TESTS : (seed + 1) * TESTS]], seed)
        reward = float(np.interp(math.log(result.tuning.params["gamma"]), np.log(GAMMAS), truth))
        for estimate, scale, true in (
            (result.reward_difference, 1, reward),
            (result.gain, HORIZON, reward - float(truth[-1])),
        ):
            rows.append((estimate.mean / scale, estimate.low <= scale * true <= estimate.high, true))
    found = np.array(rows, float).reshape(-1, 2, 3)
    print(
        f"{len(tests):,} tests, {len(found)} backtests of {TESTS} tests; standard error of the truth {error.max():.2g}"
    )
    for place, name in enumerate(("tuned minus logged", "gain per decision")):
        mean, covered, true = found[:, place].mean(axis=0)
        print(f"{name}: stated {mean:.6f}, true {true:.6f}, intervals that hold {100 * covered:.1f}%")


if __name__ == "__main__":
    main(sys.argv[1])
