"""Regrets by walking every history, and Beta integrals by SciPy: slow, short and independent of the package.

Policies are functions from a history of (arm, reward) to the probabilities of the arms; no two histories are merged.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import cache
from itertools import pairwise

import numpy as np
from scipy.integrate import quad
from scipy.special import betainc, betaln

History = list[tuple[int, int]]
Choice = Callable[[History], Sequence[float]]
Shapes = tuple[float, float]


def compute_expected_reward(choose: Choice, pays: Callable[[History, int], float], horizon: int) -> float:
    """Expected total reward, where `pays(history, arm)` is the probability that the arm's next reward is 1."""

    def walk(history: History) -> float:
        if len(history) == horizon:
            return 0.0
        total = 0.0
        for arm, probability in enumerate(choose(history)):
            if probability > 0:
                paid = pays(history, arm)
                win = walk([*history, (arm, 1)]) if paid > 0 else 0.0
                loss = walk([*history, (arm, 0)]) if paid < 1 else 0.0
                total += probability * (paid * (1 + win) + (1 - paid) * loss)
        return total

    return walk([])


def compute_mixture_regret(choose: Choice, mixture: Iterable[tuple[float, Sequence[float]]], horizon: int) -> float:
    """Regret averaged over a mixture of (weight, means), whose weights sum to one: each instance on its own."""
    return math.fsum(
        weight * (horizon * max(means) - compute_expected_reward(choose, lambda _, arm, row=means: row[arm], horizon))
        for weight, means in mixture
    )


def compute_beta_regret(choose: Choice, priors: Sequence[Shapes], horizon: int) -> float:
    """Regret averaged over independent Beta priors, one for each arm."""

    def pays(history: History, arm: int) -> float:
        own = [reward for pulled, reward in history if pulled == arm]
        return (priors[arm][0] + sum(own)) / (sum(priors[arm]) + len(own))

    return horizon * compute_expected_max(tuple(priors)) - compute_expected_reward(choose, pays, horizon)


def count_history(history: History, arms: int) -> tuple[np.ndarray, np.ndarray]:
    """Pulls and total reward of each arm."""
    pulls, totals = np.zeros(arms), np.zeros(arms)
    for arm, reward in history:
        pulls[arm] += 1
        totals[arm] += reward
    return pulls, totals


@cache
def compute_expected_max(priors: tuple[Shapes, ...]) -> float:
    """The expected largest of independent Beta variables."""
    return integrate_over_unit(lambda x: 1 - math.prod(float(betainc(*prior, x)) for prior in priors), priors)


@cache
def compute_win_probability(first: Shapes, *others: Shapes) -> float:
    """P(X is above all others) for independent Beta variables X ~ Beta(*first) and others."""
    a, b = first
    constant = betaln(a, b)

    def integrand(x: float) -> float:
        density = math.exp((a - 1) * math.log(x) + (b - 1) * math.log1p(-x) - constant)
        return density * math.prod(float(betainc(*other, x)) for other in others)

    return integrate_over_unit(integrand, (first, *others))


def integrate_over_unit(function: Callable[[float], float], shapes: Sequence[Shapes]) -> float:
    """An integral over the unit interval by adaptive quadrature, split where Beta variables have their means."""
    cuts = sorted({0.0, 1.0, *(a / (a + b) for a, b in shapes)})
    return sum(quad(function, *piece, epsabs=1e-13, epsrel=1e-11, limit=200)[0] for piece in pairwise(cuts))


def compute_exact_win_probability(first: tuple[int, int], second: tuple[int, int]) -> float:
    """P(X > Y) for Beta variables of integer shapes: a finite sum of fractions."""

    def inverse_beta(a: int, b: int) -> Fraction:
        return Fraction(math.factorial(a + b - 1), math.factorial(a - 1) * math.factorial(b - 1))

    (a, b), (c, d) = first, second
    terms = (inverse_beta(1 + i, b) / ((b + i) * inverse_beta(c + i, b + d)) for i in range(a))
    return float(inverse_beta(c, d) * sum(terms))
