"""The bound of `one_arm_bound` with all arms coupled: on every path, their pulls must sum to the horizon.

In `one_arm_bound` each arm stops at any time, and the sum of all pulls is near the horizon only because of a price. Here
the paths of all arms are sampled. A clairvoyant, who knows all rewards and means, chooses numbers of pulls n_a that sum to
T. Let U_a be the smallest mean of (T - tau) d_tau, over stopping times tau, against the best mean M_a of the other arms.
For every pull of arm a the clairvoyant pays a penalty: the change of U_a by the reward, minus the mean of this change
before the reward. The penalty has mean zero for every policy, even given all means and rewards of the other arms, so it may
depend on M_a. Let U_a(i) be U_a after the first i rewards of the path. Arm a's term is that of `one_arm_bound` plus

    slack_a(n) = sum over i < n of (E[U_a(i + 1) | i rewards] - U_a(i)) + (T - n) d_n - U_a(n).

No part of it is negative: U is at most its mean after another pull, and at most the value of stopping now. Hence

regret >= the bound of `one_arm_bound`, with the same price, + E[min of sum_a slack_a(n_a) over counts that sum to T].

The minimum is exact. As no slack is negative, only counts with a slack below that of some counts that sum to T
are tried. Convex functions below the slacks give such counts (`sampled_bounds.maximise_counts`).
"""

from __future__ import annotations

import math

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.scalar import noinline, optimize_separately, scalar
from banditune.exact.beta_quadrature import NODE_STEP, QUADRATURE_NODES, compute_beta_cdf, compute_beta_weights
from banditune.exact.one_arm_bound import (
    BOUND_TOLERANCE,
    OneArmBound,
    compute_band,
    compute_beta_moment,
    fill_last_gains,
    step_one_pull_back,
    widen_band,
)
from banditune.exact.sampled_bounds import map_over_paths, maximise_counts, maximise_split
from banditune.problems.bernoulli_arms import Bernoulli
from banditune.simulation.compilation import compile_kernel

PILOT_FIRST_RUN = 1 << 40
"""The number of the first run that is used to choose the price. Estimates use smaller numbers."""


def count_pilot_runs(horizon: int) -> int:
    """Choose the number of pilot runs, which is smaller for long runs."""
    return 256 if horizon <= 2000 else 32


class CoupledBound:
    """The bound for Bernoulli arms, from the one-arm bound with its best price and power.

    Slacks are larger at higher prices. So a higher price may be better for all arms together, in particular for two arms.
    """

    def __init__(
        self, problem: Bernoulli, seed: int, one_arm_bound: OneArmBound, price: float, power: int, *, climb: bool = True
    ) -> None:
        self.problem, self.horizon, self.seed, self.power = problem, one_arm_bound.horizon, seed, power
        self.price, self.base = price, one_arm_bound.compute_bound(price, power)
        if not climb:
            return
        best = self._evaluate_price()
        # L' <= 1 must hold.
        while price * 1.25 * max(power, 1) <= 1.0:
            before = self.price, self.base
            price *= 1.25
            self.price, self.base = price, one_arm_bound.compute_bound(price, power)
            candidate = self._evaluate_price()
            if candidate <= best:
                self.price, self.base = before
                break
            best = candidate

    def sample(self, runs: range) -> FloatArray:
        """Sample the bound of each run."""
        return self.base + map_over_paths(self.problem, self.horizon, runs, self.seed, self._compute_slacks)

    def _evaluate_price(self) -> float:
        return float(self.sample(range(PILOT_FIRST_RUN, PILOT_FIRST_RUN + count_pilot_runs(self.horizon))).mean())

    def _compute_slacks(self, truths: FloatArray, rewards: FloatArray) -> FloatArray:
        return compute_least_slacks(self.problem, truths, rewards, self.price, self.power)


def compute_least_slacks(
    problem: Bernoulli, truths: FloatArray, rewards: FloatArray, price: float, power: int
) -> FloatArray:
    """Compute the minimum of the sum of slacks of each path."""
    runs, arms, horizon = rewards.shape
    priors = problem.prior * (arms // len(problem.prior))
    order = np.sort(truths, axis=1)
    rivals = np.where(truths == order[:, -1:], order[:, -2:-1], order[:, -1:])
    # Means that were rounded to 0 or 1 have no finite logit.
    rivals = np.clip(rivals, 1e-300, 1 - 2.0**-53)
    logits = np.log(rivals) - np.log1p(-rivals)
    above = np.stack([_compute_tail_probability(prior, logits[:, arm]) for arm, prior in enumerate(priors)], axis=1)
    tables = np.empty((3, horizon + 2)), np.empty((2, horizon + 1))
    scratch = np.empty((arms, horizon + 1)), np.empty((arms, horizon + 1), np.int64), np.empty(arms, np.int64)
    out = np.empty(runs)
    compile_kernel(minimise_slack_sums)(rewards, logits, above, np.array(priors), price, power, *tables, *scratch, out)
    return out


def _compute_tail_probability(prior: tuple[float, float], logits: FloatArray) -> FloatArray:
    """Compute P(theta > M) for a Beta variable, by cubic interpolation between nodes, at which the density is known too."""
    below, slope = compute_beta_cdf(*prior), compute_beta_weights(*prior)
    at = (np.arcsinh(logits) - QUADRATURE_NODES[0]) / NODE_STEP
    index = np.clip(np.floor(at).astype(int), 0, len(QUADRATURE_NODES) - 2)
    x = np.clip(at - index, 0.0, 1.0)
    rise = below[index + 1] - below[index]
    bend = x * (1 - x) * ((1 - x) * (slope[index] - rise) - x * (slope[index + 1] - rise))
    tail: FloatArray = np.clip(1.0 - (below[index] + x * rise + bend), 0.0, 1.0)
    return tail


def minimise_slack_sums(rewards, logits, above, priors, price, power, tables, path, nets, corners, corner_index, out):
    """Compute the minimum of the sum of slacks of each path."""
    runs, arms, horizon = rewards.shape
    for run in range(runs):
        for arm in range(arms):
            a = priors[arm, 0]
            b = priors[arm, 1]
            fill_slacks(rewards[run, arm], a, b, price, power, logits[run, arm], above[run, arm], tables, path)
            spent = 0.0
            for n in range(horizon + 1):
                nets[arm, n] = -(spent + path[1, n])
                spent += path[0, n]
        if arms == 2:
            out[run] = -maximise_split(nets[0], nets[1], horizon)
        else:
            threshold = find_feasible_counts(nets, corners, corner_index, horizon) - 1e-9
            out[run] = -maximise_counts_above(threshold, nets, corner_index, path, horizon)


@noinline
def find_feasible_counts(nets, corners, corner_index, horizon):
    """Compute the net gain of feasible counts: corners of majorants, reduced for one arm so that they sum to T."""
    maximise_counts(nets, corners, corner_index, horizon)
    excess = -horizon
    net = 0.0
    for arm in range(len(nets)):
        count = corners[arm, corner_index[arm]]
        excess += count
        net += nets[arm, count]
    best_net = -math.inf
    for arm in range(len(nets)):
        count = corners[arm, corner_index[arm]]
        if count >= excess:
            best_net = max(best_net, net - nets[arm, count] + nets[arm, count - excess])
    return best_net


@noinline
def maximise_counts_above(threshold, nets, corner_index, path, horizon):
    """Compute the largest sum of nets, which are 0 or less, over counts that sum to T. It must be above the threshold.

    After each arm, path[0, n] is the largest net gain of the arms so far with n pulls. The arm with the most counts above
    the threshold is the last one, because its number of pulls is then determined.
    """
    arms = len(nets)
    last = 0
    for arm in range(arms):
        corner_index[arm] = 0
        for n in range(horizon + 1):
            corner_index[arm] += 1 if nets[arm, n] >= threshold else 0
        if corner_index[arm] > corner_index[last]:
            last = arm
    now, then = path[0], path[1]
    now[0] = 0.0
    top = 0
    for arm in range(arms):
        if arm != last:
            for n in range(horizon + 1):
                then[n] = -math.inf
            for n in range(horizon + 1):
                if nets[arm, n] >= threshold:
                    raise_maximum(then[n:], now[: min(top, horizon - n) + 1], nets[arm, n])
            now, then = then, now
            top = horizon
            while now[top] < threshold:
                top -= 1
    net = -math.inf
    for n in range(top + 1):
        net = max(net, now[n] + nets[last, horizon - n])
    return net


@optimize_separately
def raise_maximum(target, source, more):
    """Raise each number of a target to at least the number of a source plus `more`."""
    for n in range(len(source)):
        value = source[n] + more
        target[n] = value if value > target[n] else target[n]


@scalar
def fill_slacks(rewards, a, b, price, power, logit, above, tables, path):
    """Compute for an arm, after n of its rewards, the slack of another pull and that of stopping."""
    horizon = len(rewards)
    successes, gains, stops = tables[0], tables[1], tables[2]
    wins = 0
    for s in range(horizon):
        successes[s] = a + s
        wins += 1 if rewards[s] > 0.0 else 0
    reach = math.log(4.0 * horizon / BOUND_TOLERANCE) / 2.0
    rival = 1.0 / (1.0 + math.exp(-logit))
    low, high = compute_band(a, b, rival, price * rival**power, reach, horizon)
    fill_last_gains(horizon, a, b, price, power, logit, above, low, high + 1, gains, stops)
    path[0, horizon] = 0.0
    path[1, horizon] = 0.0
    for pulls in range(horizon - 1, -1, -1):
        wins -= 1 if rewards[pulls] > 0.0 else 0
        low, high = widen_band(horizon, a, b, price, power, rival, reach, pulls, low, high, gains, stops)
        total = a + b + pulls
        remaining = float(horizon - pulls)
        inside = low <= wins <= high
        go_on = 0.0
        if inside:
            go_on = stops[wins] + (a + wins) / total * (stops[wins + 1] - stops[wins])
        part = slice(low, high + 2)
        step_one_pull_back(successes[part], gains[part], stops[part], 1.0 / total, remaining)
        if inside:
            path[0, pulls] = go_on - stops[wins]
            path[1, pulls] = remaining * gains[wins] - stops[wins]
        elif wins < low:
            path[0, pulls] = rival - (a + wins) / total - price * rival**power
            path[1, pulls] = 0.0
        else:
            path[0, pulls] = 0.0
            path[1, pulls] = remaining * price * compute_beta_moment(a + wins, total, power)
