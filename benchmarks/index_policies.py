"""The speed of index policies, compared with NumPy code that is vectorised over instances, in turn on one core.

python benchmarks/index_policies.py                     # ten Bernoulli arms, 10,000 rounds; about three minutes
python benchmarks/index_policies.py --horizon 2000      # a quick look

Policies are written as a user writes them, with `define_index_policy`; the last row is one of this package. Both sides have
the same parameters, near their best values. Figures are million rounds a second of CPU time, the best of several turns.
The regrets show that both play the same game. NumPy computes the quantiles of Bayes-UCB for a twentieth of the rounds.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

import numpy as np  # noqa: E402

import banditune as bt  # noqa: E402
from banditune.policies.kl_ucb import compute_kl_index, exceeds_kl_bound  # noqa: E402
from banditune.policies.moss import compute_moss_index  # noqa: E402
from banditune.policies.ucb_v import compute_ucb_v_index  # noqa: E402

TAIL_MARGIN = 1e-9

ARMS = 10


@bt.kernel.scalar
def horizon_index(arm, setting, step, params):
    """An index of the rounds that are left; p is shrunk towards a half."""
    left = setting.horizon - step
    pulls = arm.pulls + 2.0 * params[3]
    p = (arm.total + params[3]) / pulls
    width = 2.0 * params[0] * p * (1.0 - p) * math.log(1.0 + left / (params[1] * pulls ** params[2])) / pulls
    return p + math.sqrt(width)


@bt.kernel.scalar
def exceeds_horizon_index(arm, setting, step, params, bound):
    """The index is not below p."""
    return (arm.total + params[3]) / (arm.pulls + 2.0 * params[3]) > bound


@bt.kernel.scalar
def bayes_index(arm, setting, step, params):
    """An upper quantile of the posterior, with a uniform prior; the posterior mean if that is higher."""
    a, b = 1.0 + arm.total, 1.0 + arm.pulls - arm.total
    tail = min(0.5, math.exp(-params[0] * params[0] * math.log(max(step, 1.0))))
    return max(a / (a + b), bt.kernel.beta_upper_quantile(tail, a, b))


@bt.kernel.scalar
def exceeds_bayes_index(arm, setting, step, params, bound):
    a, b = 1.0 + arm.total, 1.0 + arm.pulls - arm.total
    if bound < a / (a + b) * (1.0 - TAIL_MARGIN):
        return True
    tail = min(0.5, math.exp(-params[0] * params[0] * math.log(max(step, 1.0))))
    return bound < 1.0 - 1e-6 and bt.kernel.beta_tail(bound, a, b) > tail * (1.0 + TAIL_MARGIN)


def numpy_moss(pulls, total, step, horizon, params):
    bonus = np.maximum(np.log(horizon / (ARMS * pulls)), 0)
    return total / pulls + params[0] * np.sqrt(bonus / pulls)


def numpy_ucb_v(pulls, total, step, horizon, params):
    """Rewards are 0 or 1, so that the variance is p (1 - p)."""
    p = total / pulls
    e = params[0] ** 2 * math.log(max(step, 1)) / pulls
    return p + np.sqrt(2 * p * (1 - p) * e) + 3 * e


def numpy_horizon_index(pulls, total, step, horizon, params):
    c, d, e, s = params
    pulls = pulls + 2 * s
    p = (total + s) / pulls
    return p + np.sqrt(2 * c * p * (1 - p) * np.log(1 + (horizon - step) / (d * pulls**e)) / pulls)


def numpy_kl_ucb(pulls, total, step, horizon, params):
    """Newton's method from Pinsker's bound, for all arms and instances together."""
    p = np.clip(total / pulls, 1e-12, 1 - 1e-12)
    level = params[0] ** 2 * math.log(max(step, 1)) / pulls
    entropy = p * np.log(p) + (1 - p) * np.log1p(-p)
    u = np.maximum((entropy - level) / (1 - p), np.log(np.maximum(1 - p - np.sqrt(level / 2), 1e-300)))
    for _ in range(8):
        gap = np.exp(u)
        q = 1 - gap
        u = u + np.where(q > p, (entropy - p * np.log1p(-gap) - (1 - p) * u - level) * q / np.maximum(q - p, 1e-300), 0)
    return np.maximum(p, 1 - np.exp(u))


def numpy_bayes_ucb(pulls, total, step, horizon, params):
    from scipy.special import betaincinv

    tail = min(0.5, max(step, 1) ** -(params[0] ** 2))
    return betaincinv(1 + total, 1 + pulls - total, 1 - tail)


class Contest(NamedTuple):
    """A policy with its parameters, its NumPy version, and the ratio that is wanted."""

    policy: Any
    params: list[float]
    numpy_index: Callable[..., Any]
    pulls_first: bool
    wanted: float


def define(name: str, index: Any, in_step: str, count: int = 1, **options: Any) -> Any:
    """Define an index policy as a user does."""
    parameters = [bt.Parameter(f"p{number}", 0.01, 10, textbook=1) for number in range(count)]
    return bt.define_index_policy(name, index, parameters=parameters, in_step=in_step, **options)


CONSTANTS = [0.485, 0.115, 1.239, 3.549]


CONTESTS = [
    Contest(define("moss", compute_moss_index, "constant"), [0.3], numpy_moss, True, 5),
    Contest(define("ucb-v", compute_ucb_v_index, "rising", squares=True), [0.2], numpy_ucb_v, True, 5),
    Contest(define("horizon index", horizon_index, "falling", 4), CONSTANTS, numpy_horizon_index, False, 5),
    Contest(
        define("horizon index, exceeds", horizon_index, "falling", 4, exceeds=exceeds_horizon_index),
        CONSTANTS,
        numpy_horizon_index,
        False,
        5,
    ),
    Contest(define("kl-ucb", compute_kl_index, "rising"), [0.5], numpy_kl_ucb, True, 2),
    Contest(
        define("kl-ucb, exceeds", compute_kl_index, "rising", exceeds=exceeds_kl_bound), [0.5], numpy_kl_ucb, True, 5
    ),
    Contest(define("bayes-ucb", bayes_index, "rising"), [0.8], numpy_bayes_ucb, False, 2),
    Contest(
        define("bayes-ucb, exceeds", bayes_index, "rising", exceeds=exceeds_bayes_index),
        [0.8],
        numpy_bayes_ucb,
        False,
        5,
    ),
    Contest(bt.policies.FiniteHorizonIndex(prior=(1, 1)), CONSTANTS, numpy_horizon_index, False, 5),
]


def play_numpy(contest: Contest, instances: int, horizon: int, rng: np.random.Generator) -> np.ndarray:
    """Simulate all instances step by step with NumPy; returns regrets."""
    means = rng.random((instances, ARMS))
    pulls, total = np.zeros((instances, ARMS)), np.zeros((instances, ARMS))
    rows = np.arange(instances)
    for step in range(horizon):
        if contest.pulls_first and step < ARMS:
            arm = np.full(instances, step)
        else:
            arm = contest.numpy_index(pulls, total, step, horizon, contest.params).argmax(axis=1)
        total[rows, arm] += rng.random(instances) < means[rows, arm]
        pulls[rows, arm] += 1
    return (pulls * (means.max(axis=1, keepdims=True) - means)).sum(axis=1)


def measure(contest: Contest, horizon: int, runs: int, instances: int, turns: int) -> tuple[float, float, str]:
    """Measure both in turn; returns million rounds a second of each, and the regrets."""
    problem, run = bt.Bernoulli(arms=ARMS), bt.Run(workers=1)
    bt.simulate(contest.policy, problem, [contest.params], horizon=horizon, runs=1, run=run)
    ours, theirs = [], []
    steps = horizon
    if contest.numpy_index is numpy_bayes_ucb:
        steps, runs = max(horizon // 20, 100), runs // 10
    for turn in range(turns):
        began = time.process_time()
        regrets = bt.simulate(contest.policy, problem, [contest.params], horizon=horizon, runs=runs, run=run)[0]
        ours.append(horizon * runs / (time.process_time() - began) / 1e6)
        began = time.process_time()
        other = play_numpy(contest, instances, steps, np.random.default_rng(turn))
        theirs.append(steps * instances / (time.process_time() - began) / 1e6)
    shown = f"{regrets.mean():.1f} ± {regrets.std() / math.sqrt(runs):.1f}"
    if steps == horizon:
        shown += f" and {other.mean():.1f} ± {other.std() / math.sqrt(instances):.1f}"
    return max(ours), max(theirs), shown


def main() -> None:
    """Print a row for every policy."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--horizon", type=int, default=10_000)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    print("| policy | ours, million rounds a second | NumPy | ratio | wanted | regret, ours and NumPy |")
    print("|---|---|---|---|---|---|")
    for contest in CONTESTS:
        ours, theirs, regrets = measure(contest, options.horizon, 1000, 1000, options.turns)
        print(
            f"| {contest.policy.name} | {ours:.2f} | {theirs:.3f} | {ours / theirs:.1f} | {contest.wanted} | {regrets} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
