"""The oracles against walks over all histories, with the policies written a second time on histories."""

import math
from fractions import Fraction
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betainc, betaln

import oracles

HORIZON = 6
MEANS = [(0.7, 0.4), (0.3, 0.9), (0.5, 0.3, 0.6), (0.2, 0.8, 0.8)]
TWO_ARMS = MEANS[:2]


def tally(history, arms):
    """Pulls and total reward of each arm."""
    pulls, totals = np.zeros(arms), np.zeros(arms)
    for arm, reward in history:
        pulls[arm] += 1
        totals[arm] += reward
    return pulls, totals


def greedy_choice(history, arms):
    """One-hot choice of the first unpulled arm, else of the highest mean."""
    pulls, totals = tally(history, arms)
    return np.eye(arms)[np.argmax(totals / pulls) if pulls.all() else np.argmin(pulls > 0)]


@cache
def quad_win(first, second):
    """P(X > Y) for two Beta variables by adaptive quadrature, split at both means."""
    a, b = first
    constant = betaln(a, b)

    def integrand(x):
        return math.exp((a - 1) * math.log(x) + (b - 1) * math.log1p(-x) - constant) * betainc(*second, x)

    cuts = sorted({0, 1, a / (a + b), second[0] / sum(second)})
    return sum(quad(integrand, *piece, epsabs=1e-11, epsrel=1e-11)[0] for piece in pairwise(cuts))


def exact_win(first, second):
    """P(X > Y) for Beta variables of integer shapes: a finite sum of fractions."""

    def inverse_beta(a, b):
        return Fraction(math.factorial(a + b - 1), math.factorial(a - 1) * math.factorial(b - 1))

    (a, b), (c, d) = first, second
    terms = (inverse_beta(1 + i, b) / ((b + i) * inverse_beta(c + i, b + d)) for i in range(a))
    return float(inverse_beta(c, d) * sum(terms))


@pytest.mark.parametrize("means", MEANS)
@pytest.mark.parametrize(("gamma", "noise"), [(0.0, 0.5), (0.3, 0.5), (1.0, 0.25)])
def test_ucb1(means, gamma, noise):
    arms, scale = len(means), 2 * noise * math.sqrt(2 * math.log(HORIZON))

    def choose(history):
        if len(history) < arms:
            return np.eye(arms)[len(history)]
        pulls, totals = tally(history, arms)
        return np.eye(arms)[np.argmax(totals / pulls + gamma * (scale / np.sqrt(pulls)))]

    expected = oracles.brute_force(choose, means, HORIZON)
    assert oracles.ucb1(means, HORIZON, gamma, noise) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("means", MEANS)
def test_greedy(means):
    expected = oracles.brute_force(lambda history: greedy_choice(history, len(means)), means, HORIZON)
    assert oracles.greedy(means, HORIZON) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("means", MEANS)
@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_epsilon_greedy(means, epsilon):
    def choose(history):
        return epsilon / len(means) + (1 - epsilon) * greedy_choice(history, len(means))

    expected = oracles.brute_force(choose, means, HORIZON)
    assert oracles.epsilon_greedy(means, HORIZON, epsilon) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("means", MEANS)
@pytest.mark.parametrize("pulls", [1, 2, 5])
def test_explore_then_commit(means, pulls):
    arms = len(means)

    def choose(history):
        if len(history) < pulls * arms:
            return np.eye(arms)[len(history) % arms]
        return greedy_choice(history[: pulls * arms], arms)

    expected = oracles.brute_force(choose, means, HORIZON)
    assert oracles.explore_then_commit(means, HORIZON, pulls) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("means", TWO_ARMS)
@pytest.mark.parametrize(("gamma", "prior"), [(1.0, (1, 1)), (0.5, (1, 1)), (0.8, (2, 1))])
def test_thompson(means, gamma, prior):
    def choose(history):
        pulls, totals = tally(history, 2)
        shapes = np.transpose([totals + prior[0], pulls - totals + prior[1]]) / gamma**2
        win = quad_win(tuple(shapes[0]), tuple(shapes[1]))
        return win, 1 - win

    expected = oracles.brute_force(choose, means, HORIZON)
    assert oracles.thompson(means, HORIZON, gamma, prior) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("means", TWO_ARMS)
def test_thompson_without_noise(means):
    def choose(history):
        pulls, totals = tally(history, 2)
        return np.eye(2)[np.argmax((totals + 1) / (pulls + 2))]

    expected = oracles.brute_force(choose, means, HORIZON)
    assert oracles.thompson(means, HORIZON, 0.0) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("first", "second"),
    [((1, 1), (1, 1)), ((2.5, 1.5), (1.2, 3.4)), ((40, 60), (44, 56)), ((900, 1100), (950, 1050)), ((300, 4), (90, 1))],
)
def test_win_probability_by_quadrature(first, second):
    assert oracles.win_probability(first, second) == pytest.approx(quad_win(first, second), abs=1e-10)


def test_win_probability_by_exact_sums():
    shapes = [(1, 1), (1, 8), (3, 2), (20, 1), (7, 15), (100, 130)]
    for first in shapes:
        for second in shapes:
            assert oracles.win_probability(first, second) == pytest.approx(exact_win(first, second), abs=1e-10)


@pytest.mark.parametrize("shape", [0.06, 0.25, 1.0, 50.0, 20000.0])
def test_win_probability_of_extreme_shapes(shape):
    first, second = (shape, 2 * shape), (1.5 * shape, shape)
    assert oracles.win_probability(first, first) == pytest.approx(0.5, abs=1e-10)
    wins = oracles.win_probability(first, second) + oracles.win_probability(second, first)
    assert wins == pytest.approx(1, abs=1e-10)


def test_brute_force_of_uniform_choice():
    assert oracles.brute_force(lambda history: [0.25, 0.75], (0.9, 0.5), 5) == pytest.approx(5 * 0.75 * 0.4)


def test_bayes():
    mixture = [(0.25, (0.7, 0.4)), (0.75, (0.3, 0.9))]
    expected = 0.25 * oracles.greedy((0.7, 0.4), 5) + 0.75 * oracles.greedy((0.3, 0.9), 5)
    assert oracles.bayes(lambda means: oracles.greedy(means, 5), mixture) == pytest.approx(expected)
