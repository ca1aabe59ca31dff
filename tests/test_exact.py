"""Simulation against exact expected regret, a million runs each."""

from __future__ import annotations

import math

import numpy as np
import pytest

import banditune as bt
import oracles
from conftest import close

RUNS = 1_000_000
TWO = [(0.5, (0.6, 0.4)), (0.5, (0.2, 0.9))]
THREE = [(0.3, (0.6, 0.4, 0.5)), (0.7, (0.1, 0.35, 0.3))]

CASES = [
    (bt.UCB1(), 1.0, THREE, 20, lambda means, n: oracles.ucb1(means, n, 1.0)),
    (bt.UCB1(), 0.3, THREE, 20, lambda means, n: oracles.ucb1(means, n, 0.3)),
    (bt.UCB1(), 0.0, TWO, 20, lambda means, n: oracles.ucb1(means, n, 0.0)),
    (bt.UCB1(noise=1.0), 0.7, TWO, 13, lambda means, n: oracles.ucb1(means, n, 0.7, noise=1.0)),
    (bt.Greedy(), 0.0, THREE, 20, oracles.greedy),
    (bt.EpsilonGreedy(), 0.15, TWO, 20, lambda means, n: oracles.epsilon_greedy(means, n, 0.15)),
    (bt.EpsilonGreedy(), 1.0, THREE, 8, lambda means, n: oracles.epsilon_greedy(means, n, 1.0)),
    (bt.ExploreThenCommit(), 3.2, THREE, 20, lambda means, n: oracles.explore_then_commit(means, n, 3)),
    (bt.Thompson(), 1.0, TWO, 20, lambda means, n: oracles.thompson(means, n, 1.0)),
    (bt.Thompson(), 0.5, TWO, 20, lambda means, n: oracles.thompson(means, n, 0.5)),
    (bt.Thompson(), 0.0, TWO, 20, lambda means, n: oracles.thompson(means, n, 0.0)),
    (bt.Thompson(prior=(2.0, 1.0)), 0.8, TWO, 12, lambda means, n: oracles.thompson(means, n, 0.8, prior=(2.0, 1.0))),
]


PLAYED = [(*case, shortcut) for case in CASES for shortcut in (False, True) if case[0].plays or not shortcut]


@pytest.mark.parametrize(("policy", "value", "mixture", "horizon", "regret_of", "shortcut"), PLAYED)
def test_simulated_regret_is_the_exact_one(policy, value, mixture, horizon, regret_of, shortcut):
    weights, means = zip(*mixture, strict=True)
    exact = oracles.bayes(lambda row: regret_of(row, horizon), mixture)
    problem = bt.Mixture(means, weights=weights)
    regrets = bt.simulate(policy, problem, [value], horizon=horizon, runs=RUNS, seed=1, shortcut=shortcut)[0]
    assert close(regrets, exact)


def test_gaussian_thompson_chooses_with_the_exact_probability():
    """Two steps, two arms: after the first pull the arm's posterior is known, so the second choice is a Gaussian tail."""
    problem = bt.Mixture([(1.0, 0.0)])  # arm 0 pays 1, arm 1 pays 0: the first reward is its arm's mean
    policy = bt.GaussianThompson(prior=(0, 1), noise=1.0)
    regrets = bt.simulate(policy, problem, [0.6], horizon=2, runs=RUNS)[0]
    # A pull leaves the posterior N(reward / 2, 1/2); the draws are scaled by gamma = .6.
    spread = 0.6 * math.sqrt(1 + 0.5)
    again_after_one = 0.5 * math.erfc(-(0.5 / spread) / math.sqrt(2))
    first_wrong = 0.5
    second_wrong = 0.5 * (1 - again_after_one) + 0.5 * 0.5
    assert close(regrets, first_wrong + second_wrong)
    assert np.isin(regrets, [0.0, 1.0, 2.0]).all()
