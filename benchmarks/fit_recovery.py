"""Fits of logs with known truth: the coverage of 95% intervals, and the regret added by tuning on a fitted prior.

python benchmarks/fit_recovery.py coverage                 # 1,000 repetitions of every design, 10 minutes on one core
python benchmarks/fit_recovery.py coverage linear gaussian  # some of them
python benchmarks/fit_recovery.py tuning                   # tuned on fitted priors, played on the true one
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator

import numpy as np

import banditune as bt
from banditune.logs.campaign_logs import Logs
from banditune.logs.models.fitted_model import FitOptions
from banditune.logs.models.fitting import MODELS

REPETITIONS = 1000
LOW, HIGH = 0.925, 0.975

Truth = dict[str, float]
Design = tuple[str, Callable[[np.random.Generator], Logs], Truth]


def cells(campaigns: int, arms: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of campaign and arm, in order."""
    return np.repeat(np.arange(campaigns), arms), np.tile(np.arange(arms), campaigns)


def uniform_pulls(rng: np.random.Generator, campaigns: int, arms: int, steps: int) -> np.ndarray:
    """How often arms are pulled that are chosen at random; none is left out."""
    return np.maximum(rng.multinomial(steps, np.full(arms, 1 / arms), campaigns), 2).ravel()


def thompson(rng: np.random.Generator, means: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Pulls and successes of Thompson sampling on every row of means."""
    pulls, wins = np.zeros(means.shape, np.int64), np.zeros(means.shape, np.int64)
    rows = np.arange(len(means))
    for _ in range(steps):
        arm = rng.beta(1 + wins, 1 + pulls - wins).argmax(axis=1)
        pulls[rows, arm] += 1
        wins[rows, arm] += rng.random(len(rows)) < means[rows, arm]
    return pulls, wins


def binary(campaigns: int, pulls: np.ndarray, wins: np.ndarray, features: np.ndarray | None = None) -> Logs:
    """Logs of 0/1 rewards; arms without a pull are not in them."""
    campaign, arm = cells(campaigns, pulls.size // campaigns)
    seen = pulls.ravel() > 0
    table = None if features is None else features[arm[seen]]
    return bt.make_logs(campaign[seen], arm[seen], pulls.ravel()[seen], wins.ravel()[seen], features=table)


def beta_binomial(rng: np.random.Generator) -> Logs:
    """50 campaigns of ten arms, 1,000 decisions each, arms chosen at random."""
    pulls = uniform_pulls(rng, 50, 10, 1000)
    return binary(50, pulls, rng.binomial(pulls, rng.beta(2, 5, 500)))


def beta_binomial_adaptive(rng: np.random.Generator) -> Logs:
    """The same with arms chosen by Thompson sampling: good arms have most pulls."""
    return binary(50, *thompson(rng, rng.beta(2, 5, (50, 10)), 1000))


def beta_binomial_few(rng: np.random.Generator) -> Logs:
    """Rare rewards and few pulls: 2 in 100 pay, 200 decisions a campaign."""
    pulls = uniform_pulls(rng, 100, 5, 200)
    return binary(100, pulls, rng.binomial(pulls, rng.beta(1, 49, 500)))


def real(
    rng: np.random.Generator, campaigns: int, arms: int, steps: int, means: np.ndarray, noise: float, **more
) -> Logs:
    """Logs of rewards with normal noise."""
    pulls = uniform_pulls(rng, campaigns, arms, steps)
    campaign, arm = cells(campaigns, arms)
    total = pulls * means + noise * np.sqrt(pulls) * rng.standard_normal(len(pulls))
    return bt.make_logs(campaign, arm, pulls, total, noise**2 * rng.chisquare(pulls - 1), rewards="real", **more)


def gaussian(rng: np.random.Generator) -> Logs:
    """50 campaigns of ten arms, 1,000 decisions each."""
    return real(rng, 50, 10, 1000, rng.normal(1, 0.3, 500), 2.0)


def gaussian_few(rng: np.random.Generator) -> Logs:
    """4 campaigns of five arms, 100 decisions each."""
    return real(rng, 4, 5, 100, rng.normal(1, 0.5, 20), 1.0)


def gaussian_campaigns(rng: np.random.Generator) -> Logs:
    """Arms of a campaign rise and fall together."""
    means = rng.normal(1, 1, (50, 1)) + rng.normal(0, 0.3, (50, 10))
    return real(rng, 50, 10, 1000, means.ravel(), 2.0)


def within(rng: np.random.Generator, centres: np.ndarray, arms: int, size: float, pulls: int) -> Logs:
    """Binary rewards; arms are beta around their campaign's centre."""
    middle = np.repeat(centres, arms)
    counts = np.maximum(rng.poisson(pulls, len(middle)), 2)
    return binary(len(centres), counts, rng.binomial(counts, rng.beta(size * middle, size * (1 - middle))))


def campaigns_binary(rng: np.random.Generator) -> Logs:
    """50 campaigns of five arms, 500 decisions each."""
    return within(rng, rng.beta(6, 14, 50), 5, 50, 100)


def campaigns_ten(rng: np.random.Generator) -> Logs:
    """10 campaigns of two arms, 400 decisions each."""
    return within(rng, rng.beta(6, 14, 10), 2, 30, 200)


def campaigns_rare(rng: np.random.Generator) -> Logs:
    """50 campaigns of three arms, 12,000 decisions each; 1 in 1,000 pays, and arms differ by a third of that."""
    return within(rng, rng.gamma(4, 0.001 / 4, 50), 3, 8000, 4000)


def campaigns_adaptive(rng: np.random.Generator) -> Logs:
    """50 campaigns of ten arms, 1,000 decisions of Thompson sampling each; 1 in 10 pays, in some campaigns many more."""
    middle = rng.beta(2, 18, 50)[:, None]
    return binary(50, *thompson(rng, rng.beta(20 * middle, 20 * (1 - middle), (50, 10)), 1000))


def campaigns_long(rng: np.random.Generator) -> Logs:
    """40 campaigns of four arms, 800 decisions each; two of them are 250 times longer."""
    middle = rng.beta(2, 18, 40)[:, None]
    pulls = np.maximum(rng.poisson(np.where(np.arange(40) < 2, 50_000, 200)[:, None], (40, 4)), 2)
    return binary(40, pulls, rng.binomial(pulls, rng.beta(50 * middle, 50 * (1 - middle), (40, 4))))


def one_arm(campaigns: int) -> Callable[[np.random.Generator], Logs]:
    """An arm in so few campaigns, 100 pulls in each: what `per_arm` has of it."""

    def logs(rng: np.random.Generator) -> Logs:
        pulls = np.full(campaigns, 100)
        wins = np.zeros(campaigns, np.int64)
        while not 0 < wins.sum() < pulls.sum():
            wins = rng.binomial(pulls, rng.beta(2, 5, campaigns))
        return binary(campaigns, pulls, wins)

    return logs


def one_real_arm(campaigns: int) -> Callable[[np.random.Generator], Logs]:
    """The same with normal rewards."""
    return lambda rng: real(rng, campaigns, 1, 100, rng.normal(1, 0.5, campaigns), 1.0)


X20 = np.random.default_rng(1).uniform(-1, 1, (20, 5))
X10 = np.random.default_rng(2).uniform(-1, 1, (10, 3))
MU5, SD5 = np.array([1.0, -0.5, 0.2, 0.0, 0.8]), np.array([0.5, 0.4, 0.3, 0.6, 0.2])
S5 = np.outer(SD5, SD5) * (0.7 * np.eye(5) + 0.3)
MU3, SD3 = np.array([1.0, -1.0, 0.3]), np.array([0.8, 0.5, 0.6])
S3 = np.outer(SD3, SD3) * (0.7 * np.eye(3) + 0.3)
MU4, SD4 = np.array([-2.5, -2.0, -1.5, -2.0]), np.array([0.5, 0.6, 0.7, 0.5])
S4 = np.outer(SD4, SD4) * (0.4 * np.eye(4) + 0.6)


def linear(rng: np.random.Generator, campaigns: int = 50) -> Logs:
    """Campaigns of 20 arms with five features, 1,000 decisions each."""
    theta = rng.multivariate_normal(MU5, S5, campaigns)
    _, arm = cells(campaigns, 20)
    return real(rng, campaigns, 20, 1000, (theta @ X20.T).ravel(), 0.5, features=X20[arm])


def linear_few(rng: np.random.Generator) -> Logs:
    """12 campaigns of 60 decisions."""
    theta = rng.multivariate_normal(MU5, S5, 12)
    _, arm = cells(12, 20)
    return real(rng, 12, 20, 60, (theta @ X20.T).ravel(), 0.5, features=X20[arm])


def logistic(rng: np.random.Generator) -> Logs:
    """50 campaigns of ten arms with three features, 500 decisions each."""
    theta = rng.multivariate_normal(MU3, S3, 50)
    pulls = uniform_pulls(rng, 50, 10, 500)
    return binary(50, pulls, rng.binomial(pulls, 1 / (1 + np.exp(-(theta @ X10.T).ravel()))), X10)


def correlated(rng: np.random.Generator) -> Logs:
    """50 campaigns of the same four arms, 800 decisions each."""
    pulls = uniform_pulls(rng, 50, 4, 800)
    theta = rng.multivariate_normal(MU4, S4, 50)
    return binary(50, pulls, rng.binomial(pulls, 1 / (1 + np.exp(-theta.ravel()))))


def unit(rng: np.random.Generator) -> Logs:
    """50 campaigns of ten arms, 300 decisions each, with beta rewards."""
    pulls = uniform_pulls(rng, 50, 10, 300)
    campaign, arm = cells(50, 10)
    means = np.repeat(rng.beta(2, 5, 500), pulls)
    rewards = rng.beta(4 * means, 4 * (1 - means))
    starts = np.concatenate([[0], np.cumsum(pulls)[:-1]])
    total = np.add.reduceat(rewards, starts)
    squares = np.add.reduceat((rewards - np.repeat(total / pulls, pulls)) ** 2, starts)
    return bt.make_logs(campaign, arm, pulls, total, squares, rewards="unit")


def beta_truth(a: float, b: float) -> Truth:
    mean = a / (a + b)
    return {"a": a, "b": b, "mean": mean, "sd": (mean * (1 - mean) / (a + b + 1)) ** 0.5}


def within_truth(mean: float, size: float) -> Truth:
    return {"sd within campaigns": (mean * (1 - mean) / (size + 1)) ** 0.5}


def gauss_truth(mean: np.ndarray, sd: np.ndarray, **more: float) -> Truth:
    told = {f"mean[{place}]": float(value) for place, value in enumerate(mean)}
    return told | {f"sd[{place}]": float(value) for place, value in enumerate(sd)} | more


DESIGNS: dict[str, Design] = {
    "beta-binomial": ("beta-binomial", beta_binomial, beta_truth(2, 5)),
    "beta-binomial, Thompson": ("beta-binomial", beta_binomial_adaptive, beta_truth(2, 5)),
    "beta-binomial, rare": ("beta-binomial", beta_binomial_few, beta_truth(1, 49)),
    "gaussian": ("gaussian", gaussian, {"mean": 1, "sd": 0.3, "noise": 2}),
    "gaussian, few": ("gaussian", gaussian_few, {"mean": 1, "sd": 0.5, "noise": 1}),
    "campaigns, real": ("campaigns", gaussian_campaigns, {"sd within campaigns": 0.3}),
    "campaigns": ("campaigns", campaigns_binary, within_truth(0.3, 50)),
    "campaigns, ten of two arms": ("campaigns", campaigns_ten, within_truth(0.3, 30)),
    "campaigns, rare": ("campaigns", campaigns_rare, within_truth(0.001, 8000)),
    "campaigns, Thompson": ("campaigns", campaigns_adaptive, within_truth(0.1, 20)),
    "campaigns, two long": ("campaigns", campaigns_long, within_truth(0.1, 50)),
    "one arm in 2 campaigns": ("beta-binomial", one_arm(2), beta_truth(2, 5)),
    "one arm in 3 campaigns": ("beta-binomial", one_arm(3), beta_truth(2, 5)),
    "one arm in 4 campaigns": ("beta-binomial", one_arm(4), beta_truth(2, 5)),
    "one real arm in 3 campaigns": ("gaussian", one_real_arm(3), {"mean": 1, "sd": 0.5}),
    "one real arm in 4 campaigns": ("gaussian", one_real_arm(4), {"mean": 1, "sd": 0.5}),
    "linear": ("linear", linear, gauss_truth(MU5, SD5, noise=0.5)),
    "linear, few": ("linear", linear_few, gauss_truth(MU5, SD5, noise=0.5)),
    "beta": ("beta", unit, beta_truth(2, 5) | {"v": 4}),
    "correlated": ("correlated", correlated, gauss_truth(MU4, SD4, correlation=0.6)),
    "logistic": ("logistic", logistic, gauss_truth(MU3, SD3)),
}


def covered(name: str, repetitions: int, seed: int = 0) -> dict[str, float]:
    """The share of repetitions in which each 95% interval holds the truth."""
    model, make, truth = DESIGNS[name]
    hits = dict.fromkeys(truth, 0)
    for repetition in range(repetitions):
        logs = make(np.random.default_rng([seed, repetition]))
        found = {
            e.name: e
            for e in MODELS[model](logs, FitOptions(False, max(int(np.median(logs.arm_counts)), 2), 0.95)).estimates
        }
        for key, value in truth.items():
            hits[key] += found[key].low <= value <= found[key].high
    return {key: count / repetitions for key, count in hits.items()}


def coverage(names: list[str]) -> None:
    """A line of the table for each design."""
    for name in names or DESIGNS:
        begun = time.time()
        shares = covered(name, REPETITIONS)
        told = ", ".join(f"{key} {100 * share:.1f}" for key, share in shares.items())
        outside = [key for key, share in shares.items() if not LOW <= share <= HIGH]
        verdict = f"OUTSIDE: {', '.join(outside)}" if outside else "all within 92.5 to 97.5"
        print(f"| {name} | {told} | {verdict} | {(time.time() - begun) / REPETITIONS:.3f} s |", flush=True)


LINEAR = bt.Linear(prior=(MU5.tolist(), S5.tolist()), features=X20, noise=0.5)

TUNINGS = {
    "bernoulli, K = 10": ("beta-binomial", beta_binomial, bt.Bernoulli(10, (2, 5)), bt.UCB1(noise=0.5)),
    "bernoulli, K = 10, Thompson's logs": (
        "beta-binomial",
        beta_binomial_adaptive,
        bt.Bernoulli(10, (2, 5)),
        bt.UCB1(noise=0.5),
    ),
    "linear, K = 20, d = 5": ("linear", linear, LINEAR, bt.LinUCB(prior=(0, 1), noise=0.5)),
}


def tuning(names: list[str], fits: int = 20, runs: int = 10_000, horizon: int = 1000) -> None:
    """Tune on priors fitted to 50 campaigns and as often on the true one; play all on the same fresh instances of it."""
    for name in names or TUNINGS:
        model, make, problem, policy = TUNINGS[name]

        def tuned(problem: bt.kernel.Problem, seed: int, policy: bt.kernel.Policy = policy) -> float:
            (value,) = bt.tune(
                policy,
                problem,
                horizon=horizon,
                budget=2000,
                seed=seed,
                search=bt.Search(validate=100),
                run=bt.Run(workers=1),
            ).params.values()
            return value

        on_fits, on_truth = [], []
        for repetition in range(fits):
            logs = make(np.random.default_rng([1, repetition]))
            on_fits.append(tuned(MODELS[model](logs, FitOptions(False, problem.arms, 0.95)).problem, repetition))
            on_truth.append(tuned(problem, repetition))
        regrets = bt.simulate(
            policy,
            problem,
            [*on_fits, *on_truth],
            horizon=horizon,
            runs=runs,
            seed=12345,
            first_instance=1_000_000,
            run=bt.Run(workers=1),
        )
        base = regrets[fits:].mean(axis=0)
        mean, se = paired(regrets[:fits].mean(axis=0) - base, base.mean())
        worst, worst_se = max(paired(row - base, base.mean()) for row in regrets[:fits])
        print(
            f"| {name} | {policy.name} | {min(on_truth):.3f} to {max(on_truth):.3f} | {min(on_fits):.3f} to "
            f"{max(on_fits):.3f} | {base.mean():.2f} | {100 * mean:+.2f}% +- {100 * se:.2f} | "
            f"{100 * worst:+.2f}% +- {100 * worst_se:.2f} |",
            flush=True,
        )


def paired(more: np.ndarray, base: float) -> tuple[float, float]:
    """A mean difference and its standard error, as shares of the regret."""
    return float(more.mean() / base), float(more.std(ddof=1) / len(more) ** 0.5 / base)


def main(words: list[str]) -> Iterator[str]:
    if not words or words[0] not in ("coverage", "tuning"):
        yield __doc__ or ""
    elif words[0] == "coverage":
        coverage(words[1:])
    else:
        tuning(words[1:])


if __name__ == "__main__":
    for line in main(sys.argv[1:]):
        print(line)
