"""Simulated regrets agree with exact ones: 400,000 runs each, a million in `make slow`."""

from __future__ import annotations

import math

import numpy as np
import pytest

import banditune as bt
from banditune.exact.bayes_regret import compute_bayes_regret
from helpers.statistics import mean_agrees

RUNS = pytest.mark.parametrize("runs", [200_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
TWO_ARMS = bt.Mixture(((0.6, 0.4), (0.2, 0.9)))
THREE_ARMS = bt.Mixture(((0.6, 0.4, 0.5), (0.1, 0.35, 0.3)), weights=(0.3, 0.7))
BETA_ARMS = bt.Bernoulli(arms=3, prior=((1, 1), (2, 2), (1, 3)))

CASES = [
    (bt.UCB1(noise=0.5), 1.0, THREE_ARMS, 20),
    (bt.UCB1(noise=0.5), 0.3, THREE_ARMS, 20),
    (bt.UCB1(noise=0.5), 0.0, TWO_ARMS, 20),
    (bt.UCB1(noise=1.0), 0.7, TWO_ARMS, 13),
    (bt.UCB1(noise=0.5), 0.2, BETA_ARMS, 40),
    (bt.Greedy(), 0.0, THREE_ARMS, 20),
    (bt.EpsilonGreedy(), 0.15, TWO_ARMS, 20),
    (bt.EpsilonGreedy(), 1.0, THREE_ARMS, 8),
    (bt.ExploreThenCommit(), 3.2, THREE_ARMS, 20),
    (bt.Thompson(prior=(1, 1)), 1.0, TWO_ARMS, 20),
    (bt.Thompson(prior=(1, 1)), 0.5, TWO_ARMS, 20),
    (bt.Thompson(prior=(1, 1)), 0.0, TWO_ARMS, 20),
    (bt.Thompson(prior=(2.0, 1.0)), 0.8, TWO_ARMS, 12),
    (bt.Thompson(prior=(1, 1)), 0.6, BETA_ARMS, 12),
]


CASES_AND_SHORTCUTS = [
    (*case, shortcut) for case in CASES for shortcut in (False, True) if case[0].shortcuts or not shortcut
]


@RUNS
@pytest.mark.parametrize(("policy", "value", "problem", "horizon", "shortcut"), CASES_AND_SHORTCUTS)
def test_simulated_regret_agrees_with_the_exact_regret(policy, value, problem, horizon, shortcut, runs):
    exact = compute_bayes_regret(policy, problem, [[value]], horizon)[0]
    regrets = bt.simulate(
        policy, problem, [value], horizon=horizon, runs=runs, seed=1, simulation=bt.Simulation(shortcuts=shortcut)
    )[0]
    assert mean_agrees(regrets, exact)


@RUNS
def test_gaussian_thompson_sampling_chooses_with_the_exact_probability(runs):
    """Two steps, two arms: after the first pull the arm's posterior is known, so the second choice is a Gaussian tail."""
    problem = bt.Mixture([(1.0, 0.0)])  # arm 0 pays 1, arm 1 pays 0: the first reward is its arm's mean
    policy = bt.GaussianThompson(prior=(0, 1), noise=1.0)
    regrets = bt.simulate(policy, problem, [0.6], horizon=2, runs=runs)[0]
    # A pull leaves the posterior N(reward / 2, 1/2); the draws are scaled by gamma = .6.
    spread = 0.6 * math.sqrt(1 + 0.5)
    repeat_probability = 0.5 * math.erfc(-(0.5 / spread) / math.sqrt(2))
    first_regret = 0.5
    second_regret = 0.5 * (1 - repeat_probability) + 0.5 * 0.5
    assert mean_agrees(regrets, first_regret + second_regret)
    assert np.isin(regrets, [0.0, 1.0, 2.0]).all()
