"""The rate at which checks of a fit fail on logs of a policy, for right and for wrong models.

python benchmarks/fit_checks.py 200                # 200 logs of every design, ten minutes on one core
python benchmarks/fit_checks.py 200 linear         # one design
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable

import numpy as np
from fit_recovery import binary, cells, thompson, uniform_pulls

import banditune as bt
from banditune.logs.campaign_logs import Logs
from banditune.logs.models.fitted_model import FitOptions
from banditune.logs.models.fitting import MODELS
from banditune.logs.models.posterior_predictive import run_predictive_checks

CAMPAIGNS, ARMS, STEPS = 25, 6, 300
FEATURES = np.random.default_rng(5).uniform(-1, 1, (ARMS, 2))
COVARIANCE = np.array([[0.3, 0.05], [0.05, 0.2]])

Rng = np.random.Generator


def make_real_logs(
    pulls: np.ndarray, total: np.ndarray, squares: np.ndarray, features: np.ndarray | None = None
) -> Logs:
    """Logs of real rewards, from sums of rewards and of their squares."""
    campaign, arm = cells(CAMPAIGNS, ARMS)
    pulled = pulls.ravel() > 0
    pulls, total, squares = (table.ravel()[pulled] for table in (pulls, total, squares))
    deviations = np.maximum(squares - total**2 / pulls, 0)
    table = None if features is None else features[arm[pulled]]
    return bt.make_logs(campaign[pulled], arm[pulled], pulls, total, deviations, rewards="real", features=table)


def play_index_policy(
    rng: Rng, means: np.ndarray, noise: float, index: Callable, learn: Callable
) -> tuple[np.ndarray, ...]:
    """Pulls, sums and sums of squares where the arm of the highest index is pulled; the policy learns from every reward."""
    sums = tuple(np.zeros(means.shape) for _ in range(3))
    rows = np.arange(len(means))
    for _ in range(STEPS):
        arm = index(*sums).argmax(axis=1)
        reward = means[rows, arm] + noise * rng.standard_normal(len(rows))
        learn(arm, reward)
        for table, value in zip(sums, (1, reward, reward**2), strict=True):
            table[rows, arm] += value
    return sums


def make_gaussian_logs(rng: Rng) -> Logs:
    """Gaussian Thompson sampling."""
    means = rng.normal(1, 0.5, (CAMPAIGNS, ARMS))

    def index(pulls: np.ndarray, total: np.ndarray, squares: np.ndarray) -> np.ndarray:
        return total / (pulls + 1) + rng.standard_normal(pulls.shape) / np.sqrt(pulls + 1)

    return make_real_logs(*play_index_policy(rng, means, 1.0, index, lambda arm, reward: None))


def make_linear_logs(rng: Rng) -> Logs:
    """Linear Thompson sampling."""
    noise = 0.5
    means = rng.multivariate_normal([0.5, -0.2], COVARIANCE, CAMPAIGNS) @ FEATURES.T
    precision, product = np.tile(np.eye(2), (CAMPAIGNS, 1, 1)), np.zeros((CAMPAIGNS, 2))

    def index(*_: np.ndarray) -> np.ndarray:
        inverse = np.linalg.inv(precision)
        away = noise * np.einsum("cab,cb->ca", np.linalg.cholesky(inverse), rng.standard_normal(product.shape))
        return (np.einsum("cab,cb->ca", inverse, product) + away) @ FEATURES.T

    def learn(arm: np.ndarray, reward: np.ndarray) -> None:
        nonlocal precision, product
        rows = FEATURES[arm]
        precision = precision + rows[:, :, None] * rows[:, None, :]
        product = product + rows * reward[:, None]

    return make_real_logs(*play_index_policy(rng, means, noise, index, learn), FEATURES)


def compute_chance(scores: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-scores))


def make_bernoulli_logs(rng: Rng) -> Logs:
    """Bernoulli Thompson sampling."""
    return binary(CAMPAIGNS, *thompson(rng, rng.beta(2, 5, (CAMPAIGNS, ARMS)), STEPS))


def make_logistic_logs(rng: Rng) -> Logs:
    """The same where arms have features."""
    theta = rng.multivariate_normal([0.5, -0.2], 3 * COVARIANCE, CAMPAIGNS)
    return binary(CAMPAIGNS, *thompson(rng, compute_chance(theta @ FEATURES.T), STEPS), FEATURES)


def make_correlated_logs(rng: Rng) -> Logs:
    """The same where arms of a campaign rise and fall together."""
    logits = rng.normal(-1, 0.8, (CAMPAIGNS, 1)) + rng.normal(0, 0.5, (CAMPAIGNS, ARMS))
    return binary(CAMPAIGNS, *thompson(rng, compute_chance(logits), STEPS))


def make_random_choice_logs(rng: Rng) -> Logs:
    """Arms chosen at random."""
    pulls = uniform_pulls(rng, CAMPAIGNS, ARMS, STEPS)
    return binary(CAMPAIGNS, pulls, rng.binomial(pulls, rng.beta(2, 5, CAMPAIGNS * ARMS)))


def make_stopped_logs(rng: Rng, means: np.ndarray, look: int = 50, looks: int = 20) -> Logs:
    """Tests of arms with equally many pulls that end when the best leads the second by 1.96 standard errors, or in time."""
    pulls, wins = np.zeros(means.shape, np.int64), np.zeros(means.shape, np.int64)
    going = np.ones(len(means), bool)
    for _ in range(looks):
        pulls[going] += look
        wins[going] += rng.binomial(look, means[going])
        share = np.sort(wins / pulls, axis=1)
        rate = (wins.sum(axis=1) + 0.5) / (pulls.sum(axis=1) + 1)
        error = np.sqrt(2 * rate * (1 - rate) / pulls[:, 0])
        going &= share[:, -1] - share[:, -2] < 1.96 * error
    return binary(len(means), pulls, wins)


def make_uneven_logs(rng: Rng, means: np.ndarray) -> Logs:
    """Lengths that have nothing to do with rewards."""
    pulls = np.repeat(rng.integers(1, 21, (len(means), 1)) * 50, means.shape[1], axis=1)
    return binary(len(means), pulls, rng.binomial(pulls, means))


def draw_correlated_means(rng: Rng, arms: int = 2) -> np.ndarray:
    """Means of 60 campaigns whose arms rise and fall together."""
    return compute_chance(rng.normal(-1, 0.5, (60, 1)) + rng.normal(0, 0.3, (60, arms)))


def draw_outlier_means(rng: Rng, arms: int = 2) -> np.ndarray:
    """Means of another shape: most arms alike, and one in five much better."""
    return np.where(rng.random((60, arms)) < 0.2, 0.5, 0.2)


DESIGNS: dict[str, tuple[str, Callable[[Rng], Logs]]] = {
    "beta-binomial": ("beta-binomial", make_bernoulli_logs),
    "gaussian": ("gaussian", make_gaussian_logs),
    "linear": ("linear", make_linear_logs),
    "campaigns": ("campaigns", make_correlated_logs),
    "logistic": ("logistic", make_logistic_logs),
    "correlated": ("correlated", make_correlated_logs),
    "beta-binomial, at random": ("beta-binomial", make_random_choice_logs),
    "beta-binomial, WRONG: arms rise and fall together": ("beta-binomial", make_correlated_logs),
    "beta-binomial, stopped": ("beta-binomial", lambda rng: make_stopped_logs(rng, rng.beta(10, 40, (60, 2)))),
    "beta-binomial, stopped, four arms": (
        "beta-binomial",
        lambda rng: make_stopped_logs(rng, rng.beta(10, 40, (60, 4))),
    ),
    "campaigns, stopped": ("campaigns", lambda rng: make_stopped_logs(rng, draw_correlated_means(rng))),
    "beta-binomial, stopped, WRONG: together": (
        "beta-binomial",
        lambda rng: make_stopped_logs(rng, draw_correlated_means(rng)),
    ),
    "beta-binomial, uneven": ("beta-binomial", lambda rng: make_uneven_logs(rng, rng.beta(10, 40, (60, 2)))),
    "campaigns, uneven": ("campaigns", lambda rng: make_uneven_logs(rng, draw_correlated_means(rng))),
    "beta-binomial, uneven, WRONG: together": (
        "beta-binomial",
        lambda rng: make_uneven_logs(rng, draw_correlated_means(rng)),
    ),
    "beta-binomial, uneven, WRONG: shape": (
        "beta-binomial",
        lambda rng: make_uneven_logs(rng, draw_outlier_means(rng, 4)),
    ),
}


def count_alarms(name: str, repetitions: int) -> str:
    """In how many of the logs any check failed, and which."""
    model, make = DESIGNS[name]
    fails: Counter[str] = Counter()
    alarmed = 0
    for repetition in range(repetitions):
        logs = make(np.random.default_rng([9, repetition]))
        arms = len(logs.arms) if model == "correlated" else int(np.median(logs.arm_counts))
        checks = run_predictive_checks(
            logs, MODELS[model](logs, FitOptions(False, arms, 0.95)), model, repetition
        ).checks
        alarmed += any(check.has_failed for check in checks)
        fails.update({check.statistic: int(check.has_failed) for check in checks})
    counts = ", ".join(f"{statistic} {count}" for statistic, count in fails.items())
    return f"| {name} | {alarmed} of {repetitions} | {counts} |"


if __name__ == "__main__":
    for design in sys.argv[2:] or DESIGNS:
        print(count_alarms(design, int(sys.argv[1])), flush=True)
