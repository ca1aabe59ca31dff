"""Rounds per second, beside NumPy simulations in the same run.

python benchmarks/throughput.py                  # or `make benchmark`
python benchmarks/throughput.py --only ucb1 --repeats 1    # a quick look

The horizon is 10,000, on one thread. Bernoulli arms have uniform means, K = 10. Their NumPy simulations are vectorised over
10,000 instances and keep each arm's index or posterior up to date in place.

Linear and logistic bandits have K = 100 arms with d = 10 features. For the linear ones NumPy is vectorised over 200
instances and updates scores, variances and roots by rank one. For the logistic ones a plain NumPy loop simulates one
instance after the other.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

os.environ.update(OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", OMP_NUM_THREADS="1")  # read when NumPy loads

import numpy as np

import banditune as bt

HORIZON = 10_000
ARMS, INSTANCES = 10, 10_000
STRUCTURED_ARMS, DIMS, LINEAR_INSTANCES, LOGISTIC_INSTANCES = 100, 10, 200, 2
NOISE, KAPPA = 0.5, 0.25
IDENTITY = np.eye(DIMS)

Timed = tuple[float, float]
"""Seconds for so many steps of all instances, and the mean regret."""


def numpy_ucb1(gamma: float, steps: int) -> Timed:
    """UCB1 over all instances at once."""
    rng = np.random.default_rng(0)
    means = rng.random((INSTANCES, ARMS))
    rows = np.arange(INSTANCES)
    best = means.max(axis=1)
    regret = np.zeros(INSTANCES)
    scale = gamma * math.sqrt(2 * math.log(HORIZON))
    pulls = np.ones((INSTANCES, ARMS))
    total = (rng.random((INSTANCES, ARMS)) < means).astype(float)
    index = total + scale
    start = time.perf_counter()
    for _ in range(steps):
        arm = index.argmax(axis=1)
        mean = means[rows, arm]
        count = pulls[rows, arm] + 1
        sum_ = total[rows, arm] + (rng.random(INSTANCES) < mean)
        pulls[rows, arm] = count
        total[rows, arm] = sum_
        index[rows, arm] = sum_ / count + scale / np.sqrt(count)
        regret += best - mean
    return time.perf_counter() - start, regret.mean()


def numpy_thompson(gamma: float, steps: int) -> Timed:
    """Thompson sampling over all instances at once."""
    rng = np.random.default_rng(0)
    means = rng.random((INSTANCES, ARMS))
    rows = np.arange(INSTANCES)
    best = means.max(axis=1)
    regret = np.zeros(INSTANCES)
    a = np.full((INSTANCES, ARMS), 1 / gamma**2)
    b = a.copy()
    start = time.perf_counter()
    for _ in range(steps):
        arm = rng.beta(a, b).argmax(axis=1)
        mean = means[rows, arm]
        success = rng.random(INSTANCES) < mean
        a[rows, arm] += success / gamma**2
        b[rows, arm] += ~success / gamma**2
        regret += best - mean
    return time.perf_counter() - start, regret.mean()


def linear_instances(size: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Features (size, arms, dims) and their products with theta (size, arms), both uniform."""
    features = rng.uniform(-1, 1, (size, STRUCTURED_ARMS, DIMS))
    return features, np.einsum("nkd,nd->nk", features, rng.uniform(-1, 1, (size, DIMS)))


def numpy_linucb(gamma: float, steps: int) -> Timed:
    """LinUCB over all instances at once: scores and variances of all arms by Sherman-Morrison."""
    rng = np.random.default_rng(0)
    size = LINEAR_INSTANCES
    features, means = linear_instances(size, rng)
    squares = np.square(features).sum(axis=2)
    grown = np.log((1 + HORIZON * squares.max(axis=1)) * HORIZON)
    factor = gamma * NOISE * (math.sqrt(DIMS) + NOISE * np.sqrt(DIMS * grown))
    # Small matrices have their instances last, so that inner loops are long; the product with all features is BLAS's.
    # `variance` holds factor^2 x' G^-1 x, which saves a product a round.
    inverse = np.tile(np.eye(DIMS)[:, :, None] / NOISE**2, (1, 1, size))
    by_dimension = np.ascontiguousarray(features.transpose(0, 2, 1)) * factor[:, None, None]
    by_arm, first = features.reshape(-1, DIMS), np.arange(size) * STRUCTURED_ARMS
    score, variance = np.zeros_like(means), squares * (factor**2 / NOISE**2)[:, None]
    flat_means, flat_score, flat_variance = means.reshape(-1), score.reshape(-1), variance.reshape(-1)
    index, shift, square = np.empty_like(score), np.empty_like(score), np.empty_like(inverse)
    best, regret = means.max(axis=1), np.zeros(size)
    start = time.perf_counter()
    for _ in range(steps):
        np.sqrt(variance, out=index)
        index += score
        pick = first + index.argmax(axis=1)
        mean = flat_means.take(pick)
        root = np.sqrt(1 + flat_variance.take(pick) / factor**2)
        error = (mean + NOISE * rng.standard_normal(size) - flat_score.take(pick)) / (root * factor)
        gain = np.einsum("ijn,jn->in", inverse, by_arm.take(pick, axis=0).T.copy())
        gain /= root
        np.matmul(gain.T.copy()[:, None], by_dimension, out=shift[:, None])
        score += np.multiply(shift, error[:, None], out=index)
        shift *= shift
        variance -= shift
        inverse -= np.multiply(gain[:, None], gain, out=square)
        regret += best - mean
    return time.perf_counter() - start, regret.mean()


def numpy_lints(gamma: float, steps: int) -> Timed:
    """LinTS over all instances at once: Potter's rank-one update of a root of the covariance."""
    rng = np.random.default_rng(0)
    size = LINEAR_INSTANCES
    features, means = linear_instances(size, rng)
    scale = gamma * math.sqrt(DIMS) * NOISE
    root = np.tile(np.eye(DIMS)[:, :, None] / NOISE, (1, 1, size))
    theta = np.zeros((DIMS, size))
    by_dimension = np.ascontiguousarray(features.transpose(0, 2, 1))
    by_arm, first = features.reshape(-1, DIMS), np.arange(size) * STRUCTURED_ARMS
    flat_means, score, product = means.reshape(-1), np.empty_like(means), np.empty_like(root)
    best, regret = means.max(axis=1), np.zeros(size)
    start = time.perf_counter()
    for _ in range(steps):
        draw = np.einsum("ijn,jn->in", root, rng.standard_normal((DIMS, size)))
        draw *= scale
        draw += theta
        np.matmul(draw.T.copy()[:, None], by_dimension, out=score[:, None])
        pick = first + score.argmax(axis=1)
        mean = flat_means.take(pick)
        x = by_arm.take(pick, axis=0).T.copy()
        turned = np.einsum("jin,jn->in", root, x)
        gain = np.einsum("ijn,jn->in", root, turned)
        grown = 1 + np.einsum("in,in->n", turned, turned)
        error = mean + NOISE * rng.standard_normal(size) - np.einsum("in,in->n", theta, x)
        theta += gain * (error / grown)
        turned /= grown + np.sqrt(grown)
        root -= np.multiply(gain[:, None], turned, out=product)
        regret += best - mean
    return time.perf_counter() - start, regret.mean()


def sum_weighted_squares(x: Any, weights: Any) -> Any:
    """I + sum of weight x x'."""
    return IDENTITY + (x.T * weights) @ x


def find_posterior_mode(theta: Any, x: Any, pulls: Any, wins: Any) -> tuple[Any, Any]:
    """The mode of logistic regression by Newton's method from `theta`, and the chances of a win there."""
    while True:
        chance = 1 / (1 + np.exp(-(x @ theta)))
        gradient = (wins - pulls * chance) @ x - theta
        if gradient @ gradient < 1e-16:
            return theta, chance
        theta = theta + np.linalg.solve(sum_weighted_squares(x, pulls * chance * (1 - chance)), gradient)


def loop_glm(steps: int, choices: Callable[[Any, np.random.Generator], Callable[..., int]]) -> Timed:
    """One logistic instance after the other; `choices(features, rng)` is a function that chooses arms by the mode."""
    rng = np.random.default_rng(0)
    seconds = regret = 0.0
    for features, products in zip(*linear_instances(LOGISTIC_INSTANCES, rng), strict=True):
        means = 1 / (1 + np.exp(-products))
        best, choose = means.max(), choices(features, rng)
        pulls, wins, theta = np.zeros(STRUCTURED_ARMS), np.zeros(STRUCTURED_ARMS), np.zeros(DIMS)
        played = np.flatnonzero(pulls)
        x = features[played]
        start = time.perf_counter()
        for _ in range(steps):
            count = pulls[played]
            theta, chance = find_posterior_mode(theta, x, count, wins[played])
            arm = choose(theta, x, count, chance)
            if pulls[arm] == 0:
                played = np.append(played, arm)
                x = features[played]
            pulls[arm] += 1
            wins[arm] += rng.random() < means[arm]
            regret += best - means[arm]
        seconds += time.perf_counter() - start
    return seconds, regret / LOGISTIC_INSTANCES


def loop_ucb_glm(gamma: float, steps: int) -> Timed:
    """UCB-GLM in a plain loop, variances of all arms by Sherman-Morrison."""
    grown = DIMS / 2 * math.log(1 + 2 * HORIZON / DIMS) + math.log(HORIZON)
    factor = gamma * NOISE / KAPPA * math.sqrt(grown)

    def choices(features: Any, rng: np.random.Generator) -> Callable[..., int]:
        inverse, variance = np.eye(DIMS), np.square(features).sum(axis=1)

        def choose(theta: Any, x: Any, pulls: Any, chance: Any) -> int:
            nonlocal inverse, variance
            arm = (features @ theta + factor * np.sqrt(variance)).argmax()
            gain = inverse @ features[arm] / math.sqrt(1 + variance[arm])
            inverse -= gain[:, None] * gain
            variance -= np.square(features @ gain)
            return arm

        return choose

    return loop_glm(steps, choices)


def loop_glm_tsl(gamma: float, steps: int) -> Timed:
    """GLM-TSL in a plain loop, with a Cholesky factor of the Hessian a round."""
    scale = gamma * math.sqrt(DIMS)

    def choices(features: Any, rng: np.random.Generator) -> Callable[..., int]:
        def choose(theta: Any, x: Any, pulls: Any, chance: Any) -> int:
            factor = np.linalg.cholesky(sum_weighted_squares(x, pulls * chance * (1 - chance)))
            draw = theta + scale * np.linalg.solve(factor.T, rng.standard_normal(DIMS))
            return (features @ draw).argmax()

        return choose

    return loop_glm(steps, choices)


class Case(NamedTuple):
    """A policy on a problem, the widths to play, and what it is held against."""

    policy: bt.kernel.Policy
    problem: bt.kernel.Problem
    gammas: tuple[float, float]
    kind: str
    reference: Callable[[float, int], Timed]
    instances: int
    steps: int
    runs: int
    plain_runs: int


def list_cases() -> dict[str, Case]:
    """All cases by the policy's name, each at theory's width and a good one."""
    arms = bt.Bernoulli(arms=ARMS)
    linear, logistic = (problem(arms=STRUCTURED_ARMS, dims=DIMS) for problem in (bt.Linear, bt.Logistic))
    size, few = LINEAR_INSTANCES, LOGISTIC_INSTANCES
    listed = (
        Case(bt.UCB1(noise=0.5), arms, (1.0, 0.3), "NumPy", numpy_ucb1, INSTANCES, 1000, 20_000, 400),
        Case(bt.Thompson(prior=(1, 1)), arms, (1.0, 0.3), "NumPy", numpy_thompson, INSTANCES, 300, 3000, 60),
        Case(bt.LinUCB(prior=(0, 1), noise=0.5), linear, (1.0, 0.25), "NumPy", numpy_linucb, size, 3000, 256, 64),
        Case(bt.LinTS(prior=(0, 1), noise=0.5), linear, (1.0, 0.24), "NumPy", numpy_lints, size, 3000, 256, 64),
        Case(bt.UCBGLM(prior=(0, 1), noise=0.5), logistic, (1.0, 0.35), "loop", loop_ucb_glm, few, HORIZON, 64, 16),
        Case(bt.GLMTSL(prior=(0, 1)), logistic, (1.0, 0.19), "loop", loop_glm_tsl, few, HORIZON, 64, 16),
    )
    return {case.policy.name: case for case in listed}


def measure_seconds(case: Case, gamma: float, runs: int, *, workers: int = 1, shortcut: bool = True) -> float:
    """Seconds for so many runs, with a warm kernel."""
    start = time.perf_counter()
    bt.simulate(
        case.policy,
        case.problem,
        [gamma],
        horizon=HORIZON,
        runs=runs,
        simulation=bt.Simulation(shortcuts=shortcut),
        run=bt.Run(workers=workers),
    )
    return time.perf_counter() - start


def measure_best_rates(measures: dict[str, tuple[Callable[[], float], int]], repeats: int) -> dict[str, float]:
    """Millions of rounds per second, best of several; measured in turn, so that a noisy neighbour hits all."""
    least = dict.fromkeys(measures, math.inf)
    for _ in range(repeats):
        for name, (measure, _) in measures.items():
            least[name] = min(least[name], measure())
    return {name: rounds / least[name] / 1e6 for name, (_, rounds) in measures.items()}


def measure_row(case: Case, gamma: float, repeats: int) -> dict[str, float | str]:
    """The reference and ours at one width."""
    measure_seconds(case, gamma, 4)
    measure_seconds(case, gamma, 4, shortcut=False)
    runs, plain = case.runs, case.plain_runs
    measures: dict[str, tuple[Callable[[], float], int]] = {
        "reference": (lambda: case.reference(gamma, case.steps)[0], case.instances * case.steps),
        "plain": (lambda: measure_seconds(case, gamma, plain, shortcut=False), plain * HORIZON),
        "one": (lambda: measure_seconds(case, gamma, runs), runs * HORIZON),
        "two": (lambda: measure_seconds(case, gamma, 2 * runs, workers=2), 2 * runs * HORIZON),
    }
    rates = measure_best_rates(measures, repeats)
    return {
        "policy": case.policy.name,
        "gamma": gamma,
        "kind": case.kind,
        "reference": rates["reference"],
        "plain loop": rates["plain"],
        "shortcut": rates["one"],
        "ratio": rates["one"] / rates["reference"],
        "two threads": rates["two"] / rates["one"],
    }


def measure_rows(repeats: int, only: str | None = None) -> Iterator[dict[str, float | str]]:
    """One row per policy and width."""
    for name, case in list_cases().items():
        if only in (None, name):
            for gamma in case.gammas:
                yield measure_row(case, gamma, repeats)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument(
        "--only", choices=list(list_cases()), metavar="NAME", help="one policy: " + ", ".join(list_cases())
    )
    options = parser.parse_args()
    lines = measure_rows(options.repeats, options.only)
    if options.json:
        print(json.dumps(list(lines)))
        return
    print("million rounds per second, one thread, best of", options.repeats)
    print(f"{'policy':9}{'gamma':>6}{'against':>9}{'rate':>9}{'plain':>9}{'shortcut':>10}{'ratio':>8}{'2 threads':>11}")
    for line in lines:
        print(
            f"{line['policy']:9}{line['gamma']:>6}{line['kind']:>9}{line['reference']:>9.3g}{line['plain loop']:>9.3g}"
            f"{line['shortcut']:>10.3g}{line['ratio']:>7.1f}x{line['two threads']:>10.2f}x",
            flush=True,
        )


if __name__ == "__main__":
    main()
