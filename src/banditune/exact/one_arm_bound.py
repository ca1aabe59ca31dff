"""A computed lower bound on the Bayes regret of any policy: each arm against the known best mean of the others.

Let theta* be the best mean and L any function of it. Exactly one arm is pulled in each of the T steps, so with N_a
pulls of arm a, on every path,

    regret = sum_a N_a (theta* - theta_a) = T L(theta*) + sum_a N_a (theta* - theta_a - L(theta*)):

L(theta*) is added in each step, and subtracted for each pull. Let M be the best mean of the other arms, so that theta* is
the larger of theta_a and M. The mean of arm a's term is at least its minimum over a larger class of policies. They know
all other arms, and so M, and they may pull arm a in any of the T steps. Given the rewards of arm a so far, the gain of a
pull is

    d = E[L(max(theta_a, M))] - E[(M - theta_a)^+].

Not pulling has no gain and gives no information, so pulls come first. Arm a's term is -R(M), where R(M) is the largest
mean of the sum of d over the first tau <= T pulls, with a stopping time tau. As d is a martingale, R(M) = T d_0 - U(M).
U, the smallest mean of (T - tau) d_tau, is computed backwards. E[(M - theta_a)^+] has mean E[theta*] - E[theta_a], so that
for K arms

    regret >= sum_a E[U_a(M_a)] + T ((1 - K) E[L(theta*)] + K E[theta*] - sum_a E[theta_a]).

Every L gives a bound, and the bound is deterministic, so L may be chosen by a search. Here L(x) = price x^power.

**Between nodes.** U is computed only at some M. As a function of M, d has the second derivative L''(M) F(M) - (1 - L'(M))
F'(M), where F is the distribution function of theta_a. With L' <= 1 this is at most `bend`, the largest L''. U is a minimum
over stopping times, hence U(M) - T bend M^2 / 2 is concave and not below its chords. The integral of the chords is exact
(`compute_hat_weights`).

**Few states.** The mean theta of a posterior Beta(a, b) is sub-Gaussian: it is x below, or above, its expectation with
probability at most exp(-2 (a + b + 1) x^2). Let x be such that this is `BOUND_TOLERANCE` / (4 T). Then U has a closed
form with an error of at most `BOUND_TOLERANCE` for two kinds of states: with a posterior mean above M + x, where all
pulls have a gain, and below M - L(M) - x, where none has.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from banditune.core.arrays import FloatArray
from banditune.core.scalar import noinline, optimize_separately, scalar
from banditune.exact.beta_quadrature import (
    NODE_LOGITS,
    NODE_MEANS,
    NODE_STEP,
    QUADRATURE_NODES,
    compute_beta_cdf,
    compute_beta_weights,
    integrate_cumulatively,
)
from banditune.problems.bernoulli_arms import Bernoulli
from banditune.simulation.compilation import compile_kernel

BOUND_TOLERANCE = 1e-7
"""The largest error by which a value of U may be too high. It is subtracted."""


PRICE_POWERS = (0, 1, 2, 4, 8)


PILOT_POINTS = 24
"""The number of values of M with which L is chosen."""


ONE_ARM_WORK = 4e9
"""The approximate number of states for the final value."""


class OneArmBound:
    """The bound for Bernoulli arms. `choose_price` returns a price and a power for `compute_bound`."""

    def __init__(self, problem: Bernoulli, horizon: int) -> None:
        self.priors = problem.prior * (problem.arms // len(problem.prior))
        self.horizon = horizon
        self.rivals = [_RivalArms(prior, count, self.priors, horizon) for prior, count in Counter(self.priors).items()]

    def choose_price(self) -> tuple[float, int]:
        """Choose the price and the power whose bound is approximately the largest."""

        def guess(price: float, power: int) -> float:
            return self.compute_constant(price, power) + sum(
                arm.count * arm.estimate_mean(price, power) for arm in self.rivals
            )

        return find_best_price(guess, 2.0 / self.horizon**0.6)

    def compute_bound(self, price: float, power: int) -> float:
        """Compute the bound with this price and power."""
        return self.compute_constant(price, power) + sum(
            arm.count * arm.bound_mean(price, power) for arm in self.rivals
        )

    def compute_constant(self, price: float, power: int) -> float:
        """Compute the part of the bound that does not depend on stopping times."""
        arms = len(self.priors)
        _, mass = _compute_max_distribution(self.priors)
        top, cost = float(mass @ NODE_MEANS), price * float(mass @ NODE_MEANS**power)
        means = sum(a / (a + b) for a, b in self.priors)
        return float(self.horizon * ((1 - arms) * cost + arms * top - means))


def find_best_price(guess: Callable[[float, int], float], first: float) -> tuple[float, int]:
    """Find the price and the power with the largest guess. The power is increased while this improves the guess."""
    best = climb_price(lambda price: guess(price, 0), first)
    power = 0
    for next_power in PRICE_POWERS[1:]:

        def guess_with_power(price: float, power: int = next_power) -> float:
            return guess(price, power)

        candidate = climb_price(guess_with_power, best[0], limit=1.0 / next_power)
        if candidate[1] <= best[1]:
            break
        best, power = candidate, next_power
    return best[0], power


def climb_price(guess: Callable[[float], float], first: float, limit: float = 1.0) -> tuple[float, float]:
    """Maximise over the logarithm of the price, with steps that shrink from a factor 1.5 to 1.1."""
    price = min(first, limit)
    best = guess(price)
    for step in (1.5, 1.2, 1.1):
        for factor in (step, 1 / step):
            has_moved = False
            while (candidate := guess(min(price * factor, limit))) > best:
                price, best, has_moved = min(price * factor, limit), candidate, True
            if has_moved:
                break
    return price, best


def _compute_max_distribution(priors: tuple[tuple[float, float], ...]) -> tuple[FloatArray, FloatArray]:
    """Compute distribution function and probabilities, at the nodes, of the maximum of Beta variables."""
    below = np.ones_like(NODE_MEANS)
    mass = np.zeros_like(NODE_MEANS)
    for prior in priors:
        mass = mass * compute_beta_cdf(*prior) + below * compute_beta_weights(*prior)
        below = below * compute_beta_cdf(*prior)
    return np.clip(below, 0, 1), mass


class _RivalArms:
    """An arm, one of `count` with the same prior, against the largest mean M of the others."""

    def __init__(
        self, prior: tuple[float, float], count: int, priors: tuple[tuple[float, float], ...], horizon: int
    ) -> None:
        other_priors = list(priors)
        other_priors.remove(prior)
        self.prior, self.count, self.horizon = prior, count, horizon
        self.below, self.mass = _compute_max_distribution(tuple(other_priors))
        self.above = 1.0 - compute_beta_cdf(*prior)
        self.scratch = np.empty((3, horizon + 2))

    def estimate_mean(self, price: float, power: int) -> float:
        """Estimate E[U(M)]. U - T d_0 is smooth in M, so few values of M are enough; E[T d_0] uses all nodes."""
        nodes = self.select_nodes(PILOT_POINTS)
        levels, start = self.compute_stopping_values(nodes, price, power)
        below = compute_beta_cdf(*self.prior)
        loss = integrate_cumulatively(NODE_STEP * below * NODE_MEANS * (1 - NODE_MEANS) * np.cosh(QUADRATURE_NODES))
        tail = compute_beta_weights(*self.prior) * price * NODE_MEANS**power
        expected_price = tail.sum() - integrate_cumulatively(tail) + price * NODE_MEANS**power * below
        return float(
            self.compute_hat_weights(nodes) @ (levels - self.horizon * start)
            + self.horizon * (self.mass @ (expected_price - loss))
        )

    def bound_mean(self, price: float, power: int) -> float:
        """Bound E[U(M)] from below by chords."""
        per_node = min(self.horizon**2 / 2, 6 * self.horizon**1.5)
        nodes = self.select_nodes(int(np.clip(ONE_ARM_WORK / per_node, 60, 1000)))
        levels, _ = self.compute_stopping_values(nodes, price, power)
        hats = self.compute_hat_weights(nodes)
        bend = price * power * (power - 1)
        slack = float(hats @ NODE_MEANS[nodes] ** 2 - self.mass @ NODE_MEANS**2)
        return float(hats @ levels) - self.horizon * bend / 2 * max(slack, 0.0) - BOUND_TOLERANCE

    def select_nodes(self, count: int) -> NDArray[np.int64]:
        """Select nodes for chords, denser where M is more likely.

        U falls by at most T per unit of M. Beyond the last node its value is too large by at most T times the mean excess
        of M, less than 1e-12; before the first node it is too small.
        """
        inside = np.flatnonzero((self.below > 1e-13) & (self.below < 1 - 1e-13) & (abs(NODE_MEANS - 0.5) < 0.5 - 1e-12))
        width = (NODE_STEP * NODE_MEANS * (1 - NODE_MEANS) * np.cosh(QUADRATURE_NODES))[inside]
        density = np.maximum(self.mass[inside], 0) / width
        # The error of a chord is its length cubed times the density: equal errors need this many nodes per length.
        share = np.cumsum(width * (np.cbrt(density) + 0.1))
        return np.unique(
            inside[np.searchsorted(share, np.linspace(share[0], share[-1], count)).clip(0, len(inside) - 1)]
        )

    def compute_hat_weights(self, nodes: NDArray[np.int64]) -> FloatArray:
        """Compute the weights of values at nodes in the mean of their piecewise linear interpolation.

        They are second differences of the integral of M's distribution function.
        """
        integral = integrate_cumulatively(
            NODE_STEP * self.below * NODE_MEANS * (1 - NODE_MEANS) * np.cosh(QUADRATURE_NODES)
        )[nodes]
        slopes = np.diff(integral) / np.diff(NODE_MEANS[nodes])
        return np.diff(slopes, prepend=0.0, append=1.0)

    def compute_stopping_values(
        self, nodes: NDArray[np.int64], price: float, power: int
    ) -> tuple[FloatArray, FloatArray]:
        """Compute U and d_0 at nodes."""
        a, b = self.prior
        out = np.empty((2, len(nodes)))
        above = np.ascontiguousarray(self.above[nodes])
        compile_kernel(fill_stopping_values)(
            self.horizon, a, b, price, power, NODE_LOGITS[nodes], above, *self.scratch, out
        )
        return out[0], out[1]


def fill_stopping_values(horizon, a, b, price, power, logits, above, successes, gains, stops, out):
    """Compute U and d_0 of a Beta(a, b) arm against each M = expit(logit); `above` are its probabilities to exceed M."""
    reach = math.log(4.0 * horizon / BOUND_TOLERANCE) / 2.0
    for s in range(horizon + 1):
        successes[s] = a + s
    for node in range(len(logits)):
        logit = logits[node]
        rival = 1.0 / (1.0 + math.exp(-logit))
        low, high = compute_band(a, b, rival, price * rival**power, reach, horizon)
        fill_last_gains(horizon, a, b, price, power, logit, above[node], low, high + 1, gains, stops)
        for pulls in range(horizon - 1, -1, -1):
            low, high = widen_band(horizon, a, b, price, power, rival, reach, pulls, low, high, gains, stops)
            part = slice(low, high + 2)
            step_one_pull_back(successes[part], gains[part], stops[part], 1.0 / (a + b + pulls), float(horizon - pulls))
        out[0, node] = stops[0]
        out[1, node] = gains[0]


@noinline
def widen_band(horizon, a, b, price, power, rival, reach, pulls, later_low, later_high, gains, stops):
    """Compute the band before a pull. Set d and U after the pull for its next states that are outside the later band."""
    rival_price = price * rival**power
    low, high = compute_band(a, b, rival, rival_price, reach, pulls)
    total = a + b + pulls + 1.0
    for s in range(low, later_low):
        gains[s] = rival_price - (rival - (a + s) / total)
        stops[s] = (horizon - pulls - 1.0) * gains[s]
    for s in range(later_high + 1, high + 2):
        gains[s] = price * compute_beta_moment(a + s, total, power)
        stops[s] = 0.0
    return low, high


@optimize_separately
def step_one_pull_back(successes, gains, stops, share, remaining):
    """Replace d and U after a pull by those before it. The last position belongs to a neighbour."""
    for s in range(len(gains) - 1):
        mean = successes[s] * share
        gain = gains[s] + mean * (gains[s + 1] - gains[s])
        continue_value = stops[s] + mean * (stops[s + 1] - stops[s])
        gains[s] = gain
        stop = remaining * gain
        stops[s] = continue_value if continue_value < stop else stop


@scalar
def compute_band(a, b, rival, rival_price, reach, pulls):
    """Compute the first and last number of successes in `pulls` for which the sign of the gain is not known."""
    total = a + b + pulls
    wide = math.sqrt(reach / (total + 1.0))
    low = math.floor(total * (rival - rival_price - wide) - a)
    high = math.ceil(total * (rival + wide) - a)
    return int(min(max(low, 0.0), pulls)), int(min(max(high, 0.0), pulls))


@noinline
def fill_last_gains(horizon, a, b, price, power, logit, above, low, high, gains, stops):
    """Compute d and U after all pulls, for low..high successes.

    E[L(max(theta, M)); theta > M] is E[theta^power] times the probability that a Beta(a + power, b) exceeds M, and the
    sum over successes above `low` is taken upwards, where all terms are positive.
    """
    rival = 1.0 / (1.0 + math.exp(-logit))
    chance = 0.0
    lifted = 0.0
    if low == 0:
        chance, lifted = compute_tail_probabilities(a, b, power, logit, above, horizon)
    for s in range(low, min(high, horizon) + 1):
        shape = a + s
        other = b + horizon - s
        total = a + b + horizon
        stops[s] = 0.0
        loss = (rival - shape / total) * (1.0 - chance) + compute_beta_term(shape, other, logit) / total
        gains[s] = price * (compute_beta_moment(shape, total, power) * lifted + rival**power * (1.0 - chance)) - loss
        if s < horizon:
            chance += compute_beta_term(shape, other - 1.0, logit) * (1.0 / shape + 1.0 / (other - 1.0))
            raised = shape + power
            lifted += compute_beta_term(raised, other - 1.0, logit) * (1.0 / raised + 1.0 / (other - 1.0))
    if high > horizon:
        # This is only read as the neighbour of a state that cannot be reached.
        gains[high] = 0.0
        stops[high] = 0.0


@noinline
def compute_tail_probabilities(a, b, power, logit, above, failures):
    """Compute P(theta > M) under Beta(a, b + failures) and Beta(a + power, b + failures), from that under Beta(a, b)."""
    chance = above
    for i in range(failures):
        chance -= compute_beta_term(a, b + i, logit) / (b + i)
    chance = max(chance, 0.0)
    lifted = chance
    for i in range(power):
        lifted += compute_beta_term(a + i, b + failures, logit) / (a + i)
    return chance, lifted


@scalar
def compute_beta_term(a, b, logit):
    """Compute M^a (1 - M)^b / B(a, b)."""
    if logit > 0.0:
        log_more = math.log1p(math.exp(-logit))
        log_less = logit + log_more
    else:
        log_less = math.log1p(math.exp(logit))
        log_more = log_less - logit
    return math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) - a * log_more - b * log_less)


@scalar
def compute_beta_moment(a, total, power):
    """Compute E[theta^power] for theta ~ Beta(a, total - a)."""
    product = 1.0
    for i in range(power):
        product *= (a + i) / (total + i)
    return product
