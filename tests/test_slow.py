"""Regrets and laws at the paper's scale: minutes long, run with `make slow`."""

from __future__ import annotations

import math

import pytest
from scipy import stats

import banditune as bt
from helpers.statistics import mean_agrees

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("gamma", [0.3, 1.0])
@pytest.mark.parametrize("problem", [bt.Bernoulli(arms=10), bt.BetaRewards(arms=10)])
def test_thinned_thompson_sampling_has_the_law_of_the_plain_loop_at_the_papers_scale(problem, gamma):
    thinned = bt.simulate(bt.Thompson(prior=(1, 1)), problem, [gamma], horizon=10_000, runs=10_000)[0]
    plain = bt.simulate(
        bt.Thompson(prior=(1, 1)),
        problem,
        [gamma],
        horizon=10_000,
        runs=4000,
        seed=1,
        simulation=bt.Simulation(shortcuts=False),
    )[0]
    assert abs(thinned.mean() - plain.mean()) < 4 * math.hypot(thinned.std() / 100, plain.std() / math.sqrt(4000))
    assert stats.ks_2samp(thinned, plain).pvalue > 1e-4


BEST_WIDTHS = [
    (bt.UCB1(noise=0.5), bt.Bernoulli(arms=10), 0.22, 44.0, 1.0),
    (bt.Thompson(prior=(1, 1)), bt.Bernoulli(arms=10), 0.7, 35.0, 0.5),
    (bt.UCB1(noise=0.5), bt.BetaRewards(arms=10), 0.11, 15.9, 0.4),
    (bt.Thompson(prior=(1, 1)), bt.BetaRewards(arms=10), 0.7, 35.0, 0.5),
]


@pytest.mark.parametrize(("policy", "problem", "gamma", "expected", "se"), BEST_WIDTHS)
def test_regrets_at_the_best_widths_of_the_reconstruction_agree(policy, problem, gamma, expected, se):
    """The reconstructed regrets are minima over 171 widths, so 1 to 3% too low. Half of that is in the tolerance."""
    regrets = bt.simulate(policy, problem, [gamma], horizon=10_000, runs=20_000, seed=3)[0]
    assert mean_agrees(regrets, expected * 1.015, se + 0.015 * expected / 4)


@pytest.mark.parametrize(
    ("problem", "expected", "se"), [(bt.BetaRewards(arms=10), 45.7, 0.3), (bt.Bernoulli(arms=10), 45.6, 0.3)]
)
def test_the_regret_of_thompson_sampling_at_width_1_agrees_with_the_reconstruction(problem, expected, se):
    regrets = bt.simulate(bt.Thompson(prior=(1, 1)), problem, [1.0], horizon=10_000, runs=40_000, seed=3)[0]
    assert mean_agrees(regrets, expected, se)


FEATURE_POLICIES = [
    (bt.LinUCB(prior=(0, 1), noise=0.5), bt.Linear(), 314.3, 1.1, 0.25, 49.5, 1.0),
    (bt.LinTS(prior=(0, 1), noise=0.5), bt.Linear(), 340.9, 0.9, 0.24, 56.8, 0.7),
    (bt.UCBGLM(prior=(0, 1), noise=0.5), bt.Logistic(), 170.6, 0.7, 0.35, 59.4, 0.6),
    (bt.GLMTSL(prior=(0, 1)), bt.Logistic(), 377.8, 0.9, 0.19, 67.7, 0.7),
]


@pytest.mark.parametrize(
    ("policy", "problem", "expected_at_1", "expected_at_1_se", "gamma", "expected_at_best", "expected_at_best_se"),
    FEATURE_POLICIES,
)
def test_regrets_of_feature_policies_agree_with_the_reconstruction(
    policy, problem, expected_at_1, expected_at_1_se, gamma, expected_at_best, expected_at_best_se, capsys
):
    """At width 1, and at the best widths of the reconstruction with the tolerance explained above."""
    regrets_at_1, regrets_at_best = bt.simulate(policy, problem, [1.0, gamma], horizon=10_000, runs=10_000, seed=3)
    with capsys.disabled():
        for width, regrets in ((1.0, regrets_at_1), (gamma, regrets_at_best)):
            print(f"\n{policy.name} at {width}: {regrets.mean():.2f} +- {regrets.std() / 100:.2f}")
    assert mean_agrees(regrets_at_1, expected_at_1, expected_at_1_se)
    assert mean_agrees(regrets_at_best, expected_at_best * 1.015, expected_at_best_se + 0.015 * expected_at_best / 4)


@pytest.mark.parametrize("gamma", [0.24, 1.0])
def test_thinned_lints_has_the_law_of_the_plain_loop_at_the_papers_scale(gamma):
    thinned = bt.simulate(bt.LinTS(prior=(0, 1), noise=0.5), bt.Linear(), [gamma], horizon=10_000, runs=4000)[0]
    plain = bt.simulate(
        bt.LinTS(prior=(0, 1), noise=0.5),
        bt.Linear(),
        [gamma],
        horizon=10_000,
        runs=2000,
        simulation=bt.Simulation(shortcuts=False),
    )[0]
    difference = thinned[:2000] - plain
    assert abs(difference.mean()) < 4 * difference.std() / math.sqrt(2000)
    assert stats.ks_2samp(thinned, plain).pvalue > 1e-4


@pytest.mark.parametrize("gamma", [0.25, 1.0])
def test_linucb_with_an_active_set_pulls_the_arms_of_the_plain_loop_at_the_papers_scale(gamma):
    fast = bt.simulate(bt.LinUCB(prior=(0, 1), noise=0.5), bt.Linear(), [gamma], horizon=10_000, runs=1000)
    plain = bt.simulate(
        bt.LinUCB(prior=(0, 1), noise=0.5),
        bt.Linear(),
        [gamma],
        horizon=10_000,
        runs=1000,
        simulation=bt.Simulation(shortcuts=False),
    )
    assert (abs(fast - plain) > 1e-6).sum() <= 2
