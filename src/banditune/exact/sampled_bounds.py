"""Lower bounds on the Bayes regret of any policy from sampled rewards, by information relaxation.

A clairvoyant knows all rewards in advance and pays a penalty that has mean zero for every policy. So the mean of its
largest net reward is at least the expected reward of any policy (information relaxation; the penalties are those of Min,
Maglaras and Moallemi, 2019). Let m_a(i) be arm a's posterior mean after its first i rewards and T the horizon.

"future"
    The net reward of each pull of arm a is m_a(T - 1). A policy has at most T - 1 rewards of an arm when it pulls the arm,
    so the mean of the net reward is its expected reward. The net reward of the clairvoyant is T max_a m_a(T - 1).

"posterior mean"
    The net reward of pull i + 1 of arm a is m_a(i), the mean reward given the rewards that a policy may have. The
    clairvoyant chooses the number of pulls of each arm: max of sum_a S_a(n_a), S_a(n) = m_a(0) + ... + m_a(n - 1), over
    counts that sum to T.

"value", for two arms
    As "posterior mean", minus (T - 1 - t) times the change in step t of a martingale, G(y) = E[max of the means | rewards
    so far]. After summation by parts, the bound is the mean of the smallest sum over t of G(y_t) - m_a(y_t) along a
    sequence of pulls.

A sampled regret is T max_a mu_a minus the net reward of the clairvoyant. From it, T (mu_b - m_b(T)) is subtracted, where
arm b has the highest posterior mean after all rewards. This term has mean zero given all rewards, and removes most of the
noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.scalar import noinline, scalar
from banditune.exact.beta_quadrature import compute_win_probability
from banditune.problems.bernoulli_arms import Bernoulli
from banditune.problems.gaussian_arms import Gaussian
from banditune.simulation.compilation import compile_kernel

RUNS_PER_BLOCK = 16
"""The number of runs in a block. Runs are drawn in blocks; block b depends only on the seed and b."""


def sample_bounds(
    problem: Bernoulli | Gaussian, horizon: int, names: tuple[str, ...], runs: range, seed: int
) -> FloatArray:
    """Sample bounds on the regret: a row per name, a column per run."""

    def compute_rows(truths: FloatArray, rewards: FloatArray) -> FloatArray:
        bounds = compute_path_bounds(problem, names, truths, rewards)
        return np.array([bounds[name] for name in names])

    return map_over_paths(problem, horizon, runs, seed, compute_rows)


def map_over_paths(
    problem: Bernoulli | Gaussian,
    horizon: int,
    runs: range,
    seed: int,
    compute_rows: Callable[[FloatArray, FloatArray], FloatArray],
) -> FloatArray:
    """Apply `rows(means, rewards)` to the paths of these runs, with a column per run. Chunks do not change the result."""
    parts = []
    for block in range(runs.start // RUNS_PER_BLOCK, -(-runs.stop // RUNS_PER_BLOCK)):
        part = slice(
            max(runs.start - block * RUNS_PER_BLOCK, 0), min(runs.stop - block * RUNS_PER_BLOCK, RUNS_PER_BLOCK)
        )
        truths, rewards = draw_paths(problem, horizon, seed, block)
        parts.append(compute_rows(truths[part], rewards[part]))
    values: FloatArray = np.concatenate(parts, axis=-1)
    return values


def draw_paths(problem: Bernoulli | Gaussian, horizon: int, seed: int, block: int) -> tuple[FloatArray, FloatArray]:
    """Draw means (runs, arms) and all their rewards (runs, arms, horizon) of a block."""
    sequence = np.random.SeedSequence(seed, spawn_key=(0xB0D5, block & 0xFFFFFFFF, block >> 32))
    rng = np.random.Generator(np.random.Philox(sequence))
    truths = problem.sample(RUNS_PER_BLOCK, rng).means
    shape = (RUNS_PER_BLOCK, problem.arms, horizon)
    if isinstance(problem, Bernoulli):
        return truths, (rng.random(shape, np.float32) < truths[:, :, None]).astype(np.float64)
    rewards: FloatArray = rng.standard_normal(shape)
    rewards *= problem.noise
    rewards += truths[:, :, None]
    return truths, rewards


def compute_path_bytes(arms: int, horizon: int) -> float:
    """Compute the bytes of a block of paths."""
    return 8.0 * arms * horizon * (2.0 * RUNS_PER_BLOCK + 2.0)


def compute_posterior_parameters(problem: Bernoulli | Gaussian) -> tuple[FloatArray, FloatArray]:
    """Compute (top, base) per arm: the posterior mean after i rewards is (top + their sum) / (base + i)."""
    first, second = np.broadcast_to(np.array(problem.prior), (problem.arms, 2)).T
    if isinstance(problem, Bernoulli):
        return first.copy(), first + second
    base = (problem.noise / second) ** 2
    return first * base, base


def compute_path_bounds(
    problem: Bernoulli | Gaussian, names: tuple[str, ...], truths: FloatArray, rewards: FloatArray
) -> dict[str, FloatArray]:
    """Compute sampled bounds by name, a number per path."""
    runs, arms, horizon = rewards.shape
    tops, bases = compute_posterior_parameters(problem)
    bounds = {}
    if "future" in names or "posterior mean" in names:
        out = np.empty((2, runs))
        scratch = np.empty((arms, horizon + 1)), np.empty((arms, horizon + 1), np.int64), np.empty(arms, np.int64)
        compile_kernel(fill_separable_bounds)(rewards, np.ascontiguousarray(truths), tops, bases, *scratch, out)
        bounds = {"future": out[0], "posterior mean": out[1]}
    if "value" in names:
        out = np.empty((1, runs))
        shapes, cost = np.empty((2, horizon + 1)), np.empty(horizon + 1)
        if isinstance(problem, Bernoulli):
            priors = problem.prior * (arms // len(problem.prior))
            compile_kernel(fill_beta_value_bounds)(
                rewards, tops, bases, compute_win_probability(*priors), shapes, cost, out[0]
            )
        else:
            compile_kernel(fill_gaussian_value_bounds)(rewards, tops, bases, problem.noise, shapes, cost, out[0])
        bounds["value"] = out[0]
    return bounds


def fill_separable_bounds(rewards, truths, tops, bases, sums, corners, corner_index, out):
    """Compute the bounds "future" and "posterior mean" of each path."""
    runs, arms, horizon = rewards.shape
    for run in range(runs):
        highest_future = -math.inf
        last = -math.inf
        luck = 0.0
        best = -math.inf
        for arm in range(arms):
            before, after = fill_mean_sums(rewards[run, arm], tops[arm], bases[arm], sums[arm])
            highest_future = max(highest_future, before)
            best = max(best, truths[run, arm])
            if after > last:
                last = after
                luck = truths[run, arm] - after
        out[0, run] = horizon * (best - luck - highest_future)
        if arms == 2:
            net = maximise_split(sums[0], sums[1], horizon)
        else:
            net = maximise_counts(sums, corners, corner_index, horizon)
        out[1, run] = horizon * (best - luck) - net


@scalar
def fill_mean_sums(rewards, top, base, sums):
    """Compute S(0..T). Return the posterior means before and after the last reward."""
    horizon = len(rewards)
    sums[0] = 0.0
    before = 0.0
    for i in range(horizon):
        before = top / (base + i)
        sums[i + 1] = sums[i] + before
        top += rewards[i]
    return before, top / (base + horizon)


@scalar
def maximise_split(first, second, horizon):
    """Find the largest S_1(n) + S_2(T - n)."""
    net = -math.inf
    for n in range(horizon + 1):
        net = max(net, first[n] + second[horizon - n])
    return net


@noinline
def maximise_counts(sums, corners, corner_index, horizon):
    """Maximise the sum of concave majorants of S_a over counts that sum to T.

    A majorant is nowhere below S_a, so the result is at least the largest sum of S_a(n_a), and a larger net gain only
    lowers the bound. A sum of concave functions is maximised by adding the steepest pieces first. In the end all arms
    except one are at corners, where majorant and S_a are equal. So the result is too large by at most the height of one
    piece above one S_a.
    """
    arms = len(sums)
    for arm in range(arms):
        fill_concave_majorant(sums[arm], corners[arm])
        corner_index[arm] = 0
    net = 0.0
    for arm in range(arms):
        net += sums[arm, 0]
    remaining = horizon
    while remaining > 0:
        steepest = -math.inf
        best_arm = 0
        for arm in range(arms):
            start = corners[arm, corner_index[arm]]
            if start < horizon:
                end = corners[arm, corner_index[arm] + 1]
                slope = (sums[arm, end] - sums[arm, start]) / (end - start)
                if slope > steepest:
                    steepest = slope
                    best_arm = arm
        length = min(
            remaining, corners[best_arm, corner_index[best_arm] + 1] - corners[best_arm, corner_index[best_arm]]
        )
        net += steepest * length
        remaining -= length
        corner_index[best_arm] += 1
    return net


@scalar
def fill_concave_majorant(sums, corners):
    """Compute the corners of the smallest concave function above S, from 0 to T."""
    count = 0
    for n in range(len(sums)):
        while count >= 2:
            middle = corners[count - 1]
            previous = corners[count - 2]
            if (sums[middle] - sums[previous]) * (n - middle) > (sums[n] - sums[middle]) * (middle - previous):
                break
            count -= 1
        corners[count] = n
        count += 1


def fill_beta_value_bounds(rewards, tops, bases, first_wins, means, cost, out):
    """Compute the bound "value" of each path of two Bernoulli arms: a shortest path over (pulls of arm 1, pulls of arm 2).

    Let X ~ Beta(a, b), Y ~ Beta(c, d), wins = P(X > Y) and h = B(a + c, b + d) / (B(a, b) B(c, d)). Another success of X
    adds h / a to `wins`, and a failure subtracts h / b. Outcomes of Y have the opposite effect, with c and d. E max(X, Y)
    is m_x wins + m_y (1 - wins) + h (1 / (a + b) + 1 / (c + d)).
    """
    horizon = rewards.shape[2]
    for run in range(len(rewards)):
        a = tops[0]
        b = bases[0] - a
        wins = first_wins
        overlap = math.exp(
            compute_log_beta(a + tops[1], bases[0] + bases[1] - a - tops[1])
            - compute_log_beta(a, b)
            - compute_log_beta(tops[1], bases[1] - tops[1])
        )
        fill_posterior_means(rewards[run], tops, bases, means)
        reset_costs(cost)
        for i in range(horizon):
            row_wins = wins
            row_overlap = overlap
            c = tops[1]
            d = bases[1] - c
            for j in range(horizon - i):
                expected_max = (
                    means[0, i] * wins + means[1, j] * (1.0 - wins) + overlap * (1.0 / (a + b) + 1.0 / (c + d))
                )
                relax_costs(cost, i, j, expected_max - means[0, i], expected_max - means[1, j])
                if rewards[run, 1, j] > 0.0:
                    wins -= overlap / c
                    overlap *= (a + c) * (c + d) / ((a + b + c + d) * c)
                    c += 1.0
                else:
                    wins += overlap / d
                    overlap *= (b + d) * (c + d) / ((a + b + c + d) * d)
                    d += 1.0
            wins = row_wins
            overlap = row_overlap
            c = tops[1]
            d = bases[1] - c
            if rewards[run, 0, i] > 0.0:
                wins += overlap / a
                overlap *= (a + c) * (a + b) / ((a + b + c + d) * a)
                a += 1.0
            else:
                wins -= overlap / b
                overlap *= (b + d) * (a + b) / ((a + b + c + d) * b)
                b += 1.0
        out[run] = find_least_cost(cost)


def fill_gaussian_value_bounds(rewards, tops, bases, noise, means, cost, out):
    """Compute the bound "value" of each path of two Gaussian arms."""
    horizon = rewards.shape[2]
    for run in range(len(rewards)):
        fill_posterior_means(rewards[run], tops, bases, means)
        reset_costs(cost)
        for i in range(horizon):
            for j in range(horizon - i):
                spread = noise * math.sqrt(1.0 / (bases[0] + i) + 1.0 / (bases[1] + j))
                distance = (means[1, j] - means[0, i]) / spread
                expected_max = means[0, i] + spread * compute_normal_excess(distance)
                relax_costs(cost, i, j, expected_max - means[0, i], expected_max - means[1, j])
        out[run] = find_least_cost(cost)


@scalar
def fill_posterior_means(rewards, tops, bases, means):
    """Compute both arms' posterior means after 0, 1, ... rewards."""
    for arm in range(2):
        top = tops[arm]
        for i in range(rewards.shape[1]):
            means[arm, i] = top / (bases[arm] + i)
            top += rewards[arm, i]


@scalar
def reset_costs(cost):
    """Reset the smallest costs to reach (0, j): 0 for the start, infinite for the others."""
    cost[0] = 0.0
    for j in range(1, len(cost)):
        cost[j] = math.inf


@scalar
def relax_costs(cost, i, j, by_first, by_second):
    """Relax the steps from (i, j), whose smallest cost is cost[j], to (i, j + 1) and to (i + 1, j), which replaces it."""
    if i == 0 or cost[j] + by_second < cost[j + 1]:
        cost[j + 1] = cost[j] + by_second
    cost[j] += by_first


@scalar
def find_least_cost(cost):
    """Find the smallest cost of an end."""
    least = cost[0]
    for j in range(1, len(cost)):
        least = min(least, cost[j])
    return least


@scalar
def compute_log_beta(a, b):
    """Compute the logarithm of the Beta function."""
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


@scalar
def compute_normal_excess(z):
    """Compute E max(0, z + Z) for a standard normal Z."""
    return z * 0.5 * math.erfc(-z * math.sqrt(0.5)) + math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
