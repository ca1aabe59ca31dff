"""A lower bound on the Bayes regret of any policy without sampling: each arm against the known best of the others.

Let theta* be the best mean and L any function of it. Exactly one arm is pulled in each of the T steps, so with N_a
pulls of arm a, on every path,

    regret = sum_a N_a (theta* - theta_a) = T L(theta*) + sum_a N_a (theta* - theta_a - L(theta*)):

each step is paid L(theta*), and each pull costs as much. Let M be the best mean of the other arms, so that theta* is
the larger of theta_a and M. The mean of arm a's term is not below its minimum over policies that know all other arms,
and M with them, and that may pull arm a in as many of the T steps as they like. Given the rewards of arm a so far, a
pull pays

    d = E[L(max(theta_a, M))] - E[(M - theta_a)^+],

and not pulling pays and teaches nothing, so pulls come first: arm a's term is -R(M), R(M) the largest mean of the sum
of d over the first tau <= T pulls, tau a stopping time. As d is a martingale, R(M) = T d_0 - U(M), and U, the least
mean of (T - tau) d_tau, is found backwards. E[(M - theta_a)^+] has mean E[theta*] - E[theta_a], so that for K arms

    regret >= sum_a E[U_a(M_a)] + T ((1 - K) E[L(theta*)] + K E[theta*] - sum_a E[theta_a]).

Every L gives a bound, and the bound is deterministic, so L may be chosen by search. Here L(x) = price x^power.

**Between nodes.** We know U at some M only. In M, d has the second derivative L''(M) F(M) - (1 - L'(M)) F'(M), F the
distribution function of theta_a. With L' <= 1 this is at most `bend`, the largest L''; U is a minimum over stopping
times, hence U(M) - T bend M^2 / 2 is concave and not below its chords. Integrating the chords is exact
(`compute_hat_weights`).

**Few states.** The mean theta of a posterior Beta(a, b) is sub-Gaussian: it is x below, or above, its expectation with
probability at most exp(-2 (a + b + 1) x^2). With x such that this is `BOUND_TOLERANCE` / (4 T), states with a posterior
mean above M + x, where pulling pays for ever, and below M - L(M) - x, where it never pays, are known in closed form to
within `BOUND_TOLERANCE`.
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
"""The allowed error of a value of U from above; it is subtracted."""


PRICE_POWERS = (0, 1, 2, 4, 8)


PILOT_POINTS = 24
"""Values of M at which L is chosen."""


ONE_ARM_WORK = 4e9
"""About this many states are visited for the final value."""


class OneArmBound:
    """The bound for Bernoulli arms: `choose_price` gives a price and a power for `compute_bound`."""

    def __init__(self, problem: Bernoulli, horizon: int) -> None:
        self.priors = problem.prior * (problem.arms // len(problem.prior))
        self.horizon = horizon
        self.rivals = [_RivalArms(prior, count, self.priors, horizon) for prior, count in Counter(self.priors).items()]

    def choose_price(self) -> tuple[float, int]:
        """Choose the price and the power with about the largest bound."""

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
        top, paid = float(mass @ NODE_MEANS), price * float(mass @ NODE_MEANS**power)
        means = sum(a / (a + b) for a, b in self.priors)
        return float(self.horizon * ((1 - arms) * paid + arms * top - means))


def find_best_price(guess: Callable[[float, int], float], first: float) -> tuple[float, int]:
    """Find the price and power with the largest guess. Powers rise as long as that improves it."""
    best = climb_price(lambda price: guess(price, 0), first)
    power = 0
    for other in PRICE_POWERS[1:]:
        candidate = climb_price(lambda price, other=other: guess(price, other), best[0], most=1.0 / other)  # type: ignore[misc]
        if candidate[1] <= best[1]:
            break
        best, power = candidate, other
    return best[0], power


def climb_price(guess: Callable[[float], float], first: float, most: float = 1.0) -> tuple[float, float]:
    """Climb in the logarithm of the price, with steps that shrink from a factor 1.5 to 1.1."""
    price = min(first, most)
    best = guess(price)
    for step in (1.5, 1.2, 1.1):
        for factor in (step, 1 / step):
            moved = False
            while (other := guess(min(price * factor, most))) > best:
                price, best, moved = min(price * factor, most), other, True
            if moved:
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
        others = list(priors)
        others.remove(prior)
        self.prior, self.count, self.horizon = prior, count, horizon
        self.below, self.mass = _compute_max_distribution(tuple(others))
        self.above = 1.0 - compute_beta_cdf(*prior)
        self.scratch = np.empty((3, horizon + 2))

    def estimate_mean(self, price: float, power: int) -> float:
        """Estimate E[U(M)]. U - T d_0 is smooth in M, so few values of M suffice; E[T d_0] uses all nodes."""
        places = self.select_nodes(PILOT_POINTS)
        levels, start = self.compute_stopping_values(places, price, power)
        below = compute_beta_cdf(*self.prior)
        loss = integrate_cumulatively(NODE_STEP * below * NODE_MEANS * (1 - NODE_MEANS) * np.cosh(QUADRATURE_NODES))
        tail = compute_beta_weights(*self.prior) * price * NODE_MEANS**power
        paid = tail.sum() - integrate_cumulatively(tail) + price * NODE_MEANS**power * below
        return float(
            self.compute_hat_weights(places) @ (levels - self.horizon * start)
            + self.horizon * (self.mass @ (paid - loss))
        )

    def bound_mean(self, price: float, power: int) -> float:
        """Bound E[U(M)] from below by chords."""
        per_node = min(self.horizon**2 / 2, 6 * self.horizon**1.5)
        places = self.select_nodes(int(np.clip(ONE_ARM_WORK / per_node, 60, 1000)))
        levels, _ = self.compute_stopping_values(places, price, power)
        hats = self.compute_hat_weights(places)
        bend = price * power * (power - 1)
        slack = float(hats @ NODE_MEANS[places] ** 2 - self.mass @ NODE_MEANS**2)
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

    def compute_hat_weights(self, places: NDArray[np.int64]) -> FloatArray:
        """Compute the weights of values at nodes in the mean of their piecewise linear interpolation.

        They are second differences of the integral of M's distribution function.
        """
        integral = integrate_cumulatively(
            NODE_STEP * self.below * NODE_MEANS * (1 - NODE_MEANS) * np.cosh(QUADRATURE_NODES)
        )[places]
        slopes = np.diff(integral) / np.diff(NODE_MEANS[places])
        return np.diff(slopes, prepend=0.0, append=1.0)

    def compute_stopping_values(
        self, places: NDArray[np.int64], price: float, power: int
    ) -> tuple[FloatArray, FloatArray]:
        """Compute U and d_0 at nodes."""
        a, b = self.prior
        out = np.empty((2, len(places)))
        above = np.ascontiguousarray(self.above[places])
        compile_kernel(fill_stopping_values)(
            self.horizon, a, b, price, power, NODE_LOGITS[places], above, *self.scratch, out
        )
        return out[0], out[1]


def fill_stopping_values(horizon, a, b, price, power, logits, above, successes, pays, stops, out):
    """U and d_0 of a Beta(a, b) arm against each M = expit(logit); `above` are its prior probabilities to exceed M."""
    reach = math.log(4.0 * horizon / BOUND_TOLERANCE) / 2.0
    for s in range(horizon + 1):
        successes[s] = a + s
    for place in range(len(logits)):
        logit = logits[place]
        rival = 1.0 / (1.0 + math.exp(-logit))
        low, high = compute_band(a, b, rival, price * rival**power, reach, horizon)
        fill_last_pays(horizon, a, b, price, power, logit, above[place], low, high + 1, pays, stops)
        for pulls in range(horizon - 1, -1, -1):
            low, high = widen_band(horizon, a, b, price, power, rival, reach, pulls, low, high, pays, stops)
            part = slice(low, high + 2)
            step_one_pull_back(successes[part], pays[part], stops[part], 1.0 / (a + b + pulls), float(horizon - pulls))
        out[0, place] = stops[0]
        out[1, place] = pays[0]


@noinline
def widen_band(horizon, a, b, price, power, rival, reach, pulls, later_low, later_high, pays, stops):
    """The band before a pull, with d and U after it filled in where that band leads to and the later one does not."""
    paid = price * rival**power
    low, high = compute_band(a, b, rival, paid, reach, pulls)
    total = a + b + pulls + 1.0
    for s in range(low, later_low):
        pays[s] = paid - (rival - (a + s) / total)
        stops[s] = (horizon - pulls - 1.0) * pays[s]
    for s in range(later_high + 1, high + 2):
        pays[s] = price * compute_beta_moment(a + s, total, power)
        stops[s] = 0.0
    return low, high


@optimize_separately
def step_one_pull_back(successes, pays, stops, share, left):
    """From d and U after a pull to those before it; the last place is that of a neighbour."""
    for s in range(len(pays) - 1):
        mean = successes[s] * share
        pay = pays[s] + mean * (pays[s + 1] - pays[s])
        go_on = stops[s] + mean * (stops[s + 1] - stops[s])
        pays[s] = pay
        stop = left * pay
        stops[s] = go_on if go_on < stop else stop


@scalar
def compute_band(a, b, rival, paid, reach, pulls):
    """The first and last number of successes in `pulls` for which pulling may or may not pay."""
    total = a + b + pulls
    wide = math.sqrt(reach / (total + 1.0))
    low = math.floor(total * (rival - paid - wide) - a)
    high = math.ceil(total * (rival + wide) - a)
    return int(min(max(low, 0.0), pulls)), int(min(max(high, 0.0), pulls))


@noinline
def fill_last_pays(horizon, a, b, price, power, logit, above, low, high, pays, stops):
    """d and U after all pulls, for low..high successes.

    E[L(max(theta, M)); theta > M] is E[theta^power] times the probability that a Beta(a + power, b) exceeds M, and the
    sum of what is above `low` is taken upwards, where all terms are positive.
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
        pays[s] = price * (compute_beta_moment(shape, total, power) * lifted + rival**power * (1.0 - chance)) - loss
        if s < horizon:
            chance += compute_beta_term(shape, other - 1.0, logit) * (1.0 / shape + 1.0 / (other - 1.0))
            raised = shape + power
            lifted += compute_beta_term(raised, other - 1.0, logit) * (1.0 / raised + 1.0 / (other - 1.0))
    if high > horizon:
        # Never read but as the neighbour of a state that cannot be.
        pays[high] = 0.0
        stops[high] = 0.0


@noinline
def compute_tail_probabilities(a, b, power, logit, above, failures):
    """P(theta > M) for theta ~ Beta(a, b + failures) and Beta(a + power, b + failures), from that for Beta(a, b)."""
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
    """M^a (1 - M)^b / B(a, b)."""
    if logit > 0.0:
        log_more = math.log1p(math.exp(-logit))
        log_less = logit + log_more
    else:
        log_less = math.log1p(math.exp(logit))
        log_more = log_less - logit
    return math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) - a * log_more - b * log_less)


@scalar
def compute_beta_moment(a, total, power):
    """E[theta^power] for theta ~ Beta(a, total - a)."""
    product = 1.0
    for i in range(power):
        product *= (a + i) / (total + i)
    return product
