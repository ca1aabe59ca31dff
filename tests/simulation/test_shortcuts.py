"""Shortcuts, compared with the plain loop: UCB1 bitwise, LinUCB by its arms, samplers by their law."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import banditune as bt
from banditune.core.arrays import copy_read_only
from banditune.policies.ucb1 import FIRST_PASSAGE, STREAKS
from banditune.simulation.dispatch import simulate_rows
from banditune.simulation.instances import BLOCK_SIZE, draw_instances
from banditune.simulation.kernel_selection import select_kernel
from banditune.simulation.spec import SimulationSpec
from helpers.settings import group_settings

CLOSE = bt.Mixture([(0.5, 0.495), (0.5, 0.505)])
SHAPES = [
    (bt.problems.two_point_mixture(), 200),
    (bt.Bernoulli(arms=2), 1000),
    (bt.Bernoulli(arms=3, prior=(2, 5)), 500),
    (bt.Bernoulli(arms=10), 1000),
    (bt.Bernoulli(arms=40, prior=(1, 20)), 300),
    (bt.Bernoulli(arms=5, prior=(0.05, 0.05)), 400),
    (CLOSE, 600),
    (bt.Mixture([(1.0, 0.0, 0.5), (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)]), 300),
    (bt.BetaRewards(arms=5), 300),
    (bt.BetaRewards(arms=3, v=0.5, prior=(3, 1)), 200),
]
GAMMAS = [0.0, 0.02, 0.3, 1.0]


class FirstPassageOnly(bt.UCB1):
    shortcuts = (FIRST_PASSAGE,)


class StreaksOnly(bt.UCB1):
    shortcuts = (STREAKS,)


@pytest.mark.parametrize(("problem", "horizon"), [*SHAPES, (bt.Gaussian(arms=4), 300), (bt.Bernoulli(arms=7), 20_000)])
def test_ucb1_shortcuts_have_the_regrets_of_the_plain_loop(problem, horizon):
    checkpoints = [min(problem.arms, horizon), horizon // 3, horizon // 3 + 1, horizon]
    runs = 3 if horizon > 5000 else 60
    for noise, regret in ((0.5, "expected"), (2.0, "realised"), (1e6, "expected")):
        arguments = {
            "horizon": horizon,
            "runs": runs,
            "checkpoints": sorted(set(checkpoints)),
            "regret": regret,
            "seed": 2,
        }
        plain = bt.simulate(bt.UCB1(noise=noise), problem, GAMMAS, **group_settings(shortcuts=False, **arguments))
        assert (plain == bt.simulate(StreaksOnly(noise=noise), problem, GAMMAS, **group_settings(**arguments))).all()
        if problem.bit_packed_reward:
            assert (
                plain == bt.simulate(FirstPassageOnly(noise=noise), problem, GAMMAS, **group_settings(**arguments))
            ).all()


THINNING_SHAPES = [
    pytest.param(*shape, marks=[pytest.mark.slow] if place in (4, 8, 9) else []) for place, shape in enumerate(SHAPES)
]
"""Some of them need kernels of their own."""


@pytest.mark.parametrize(("problem", "horizon"), THINNING_SHAPES)
def test_thinned_thompson_sampling_has_the_law_of_the_plain_loop(problem, horizon):
    runs = 4000
    gammas = [0.05, 0.4, 1.0]
    checkpoints = [horizon // 4, horizon]
    thinned = bt.simulate(
        bt.Thompson(prior=(1, 1)), problem, gammas, horizon=horizon, runs=runs, checkpoints=checkpoints
    )
    plain = bt.simulate(
        bt.Thompson(prior=(1, 1)),
        problem,
        gammas,
        horizon=horizon,
        runs=runs,
        checkpoints=checkpoints,
        seed=77,
        simulation=bt.Simulation(shortcuts=False),
    )
    compared = 0
    for fast, slow in zip(thinned.reshape(-1, runs, 2), plain.reshape(-1, runs, 2), strict=True):
        for column in range(2):
            x, y = fast[:, column], slow[:, column]
            assert abs(x.mean() - y.mean()) <= 4 * math.sqrt((x.var() + y.var()) / runs) + 1e-12
            if len(np.unique(x)) > 1:
                compared += 1
                assert stats.ks_2samp(x, y).pvalue > 1e-4
    assert compared > 0


def count_pulls(policy, problem, gamma, horizon, runs, *, shortcut, seed):
    """The pulls of each arm in an array (runs, arms). Arms are in the order of their means."""
    spec = SimulationSpec(policy, problem, horizon, seed=seed, use_shortcut=shortcut)
    kernel, floats, integers = select_kernel(spec)
    arms = problem.arms
    counts = np.empty((runs, arms))
    pulls = np.zeros(arms, np.int64)
    scratch = (np.zeros(floats), np.zeros(integers, np.int64), pulls, np.zeros(arms), np.zeros((3, 4), np.int64))
    options = (
        copy_read_only(problem.options()),
        copy_read_only([[gamma]]),
        copy_read_only(policy.options(arms, 0, horizon)),
    )
    no_features = copy_read_only(np.zeros((1, 0, arms)))
    checkpoints, outputs = np.array([horizon]), (np.empty((1, 1, 1)), np.zeros(5), np.zeros(1, np.int64))
    for run in range(runs):
        if run % BLOCK_SIZE == 0:
            means = draw_instances(problem, seed, run // BLOCK_SIZE).means
        instance = means[run % BLOCK_SIZE : run % BLOCK_SIZE + 1]
        kernel(instance, no_features, seed, run, *options, horizon, 0, checkpoints, False, *scratch, *outputs)
        counts[run] = pulls[np.argsort(-instance[0], kind="stable")]
    return counts


@pytest.mark.parametrize(("problem", "horizon"), THINNING_SHAPES)
def test_thinned_thompson_sampling_pulls_arms_as_often_as_the_plain_loop(problem, horizon):
    for gamma in (0.3, 1.0):
        thinned = count_pulls(bt.Thompson(prior=(1, 1)), problem, gamma, horizon, 3000, shortcut=True, seed=0)
        plain = count_pulls(bt.Thompson(prior=(1, 1)), problem, gamma, horizon, 3000, shortcut=False, seed=1)
        assert (thinned.sum(axis=1) == horizon).all()
        for arm in {0, 1, problem.arms // 2, problem.arms - 1}:
            assert stats.ks_2samp(thinned[:, arm], plain[:, arm]).pvalue > 1e-4


@pytest.mark.parametrize(("problem", "horizon"), SHAPES)
def test_ucb1_shortcuts_pull_the_arms_as_often_as_the_plain_loop(problem, horizon):
    for gamma in (0.1, 1.0):
        fast, plain = (
            count_pulls(bt.UCB1(noise=0.5), problem, gamma, horizon, 50, shortcut=shortcut, seed=0)
            for shortcut in (True, False)
        )
        assert (fast == plain).all()


@pytest.mark.parametrize("prior", [(1, 1), (2.2, 1.1), (1.1, 2.2)])
def test_thinned_thompson_sampling_at_gamma_zero_is_the_plain_loop(prior):
    binary = [(problem, horizon) for problem, horizon in SHAPES if problem.rewards == "binary"]
    assert binary
    for problem, horizon in binary:
        arguments = {"horizon": horizon, "runs": 60, "regret": "realised", "checkpoints": [1, 33, horizon - 1, horizon]}
        fast, plain = (
            bt.simulate(bt.Thompson(prior=prior), problem, [0.0], **group_settings(shortcuts=shortcuts, **arguments))
            for shortcuts in (True, False)
        )
        assert (fast == plain).all()


def test_thinned_thompson_sampling_is_right_at_tiny_widths():
    problem = bt.Mixture([(0.5, 0.45, 0.4)])
    gammas = [2e-9, 1e-8, 1e-6, 1e-4]
    thinned = bt.simulate(bt.Thompson(prior=(1, 1)), problem, gammas, horizon=40, runs=60_000)
    plain = bt.simulate(
        bt.Thompson(prior=(1, 1)),
        problem,
        [1e-6],
        horizon=40,
        runs=60_000,
        seed=5,
        simulation=bt.Simulation(shortcuts=False),
    )[0]
    for fast in thinned:
        assert abs(fast.mean() - plain.mean()) < 4 * math.sqrt((fast.var() + plain.var()) / 60_000)


def test_shortcuts_can_be_switched_off():
    fast, plain = (
        bt.simulate(
            bt.Thompson(prior=(1, 1)),
            bt.Bernoulli(arms=3),
            horizon=100,
            runs=30,
            simulation=bt.Simulation(shortcuts=shortcut),
        )
        for shortcut in (True, False)
    )
    assert (fast != plain).any()


def test_blocks_of_instances_are_functions_of_the_seed_and_their_number():
    first = draw_instances(bt.Bernoulli(arms=3), 1, 5).means
    draw_instances(bt.Bernoulli(arms=3), 1, 4)
    assert (draw_instances(bt.Bernoulli(arms=3), 1, 5).means == first).all()
    other_blocks = [(1, 4), (2, 5), (1 + 5 * 2**32, 0), (1, 5 + 2**32), (1 + 2**32, 5)]
    for seed, block in other_blocks:
        assert (draw_instances(bt.Bernoulli(arms=3), seed, block).means != first).any()


def make_covariance(dims: int) -> np.ndarray:
    """A covariance that is not the identity."""
    return 0.3 * np.eye(dims) + 0.7


COPIES = np.repeat(np.random.default_rng(0).normal(size=(4, 3)), 2, axis=0)
NEARLY = COPIES + 1e-7 * np.random.default_rng(1).normal(size=COPIES.shape)
LINEAR_CASES = [
    (bt.Linear(arms=30, dims=3), {}),
    (bt.Linear(arms=3, dims=3), {"noise": 0.1}),
    (bt.Linear(arms=12, dims=3, noise=3.0), {"noise": 1.5}),
    (bt.Linear(arms=60, dims=3, prior=(0.5, make_covariance(3))), {"prior": (0.5, make_covariance(3))}),
    (bt.Linear(features=NEARLY), {}),
    (bt.Logistic(arms=30, dims=3), {}),
]


@pytest.mark.parametrize(
    ("problem", "options"),
    [
        *LINEAR_CASES[:-1],
        pytest.param(*LINEAR_CASES[-1], marks=pytest.mark.slow),
        (bt.Linear(features=COPIES), {}),
    ],
)
def test_linucb_with_an_active_set_pulls_the_arms_of_the_plain_loop(problem, options):
    """Rounding may decide between indices that are equal in all digits: in one run or two of hundreds."""
    for horizon in (50, 1500):
        arguments = {"horizon": horizon, "runs": 100, "checkpoints": [1, 7, 41, horizon], "seed": 5}
        plain = bt.simulate(
            bt.LinUCB(**{"prior": (0, 1), "noise": 0.5} | options),
            problem,
            [0.0, 0.1, 1.0],
            **group_settings(shortcuts=False, **arguments),
        )
        fast = bt.simulate(
            bt.LinUCB(**{"prior": (0, 1), "noise": 0.5} | options),
            problem,
            [0.0, 0.1, 1.0],
            **group_settings(**arguments),
        )
        assert (np.abs(plain - fast).max(axis=2) > 1e-9 * (1 + plain[..., -1])).sum() <= 1


@pytest.mark.parametrize(
    ("problem", "options"), [*LINEAR_CASES[:-1], pytest.param(*LINEAR_CASES[-1], marks=pytest.mark.slow)]
)
def test_thinned_lints_has_the_law_of_the_plain_loop(problem, options):
    runs = 4000
    gammas = [0.1, 0.4, 1.0]
    checkpoints = [30, 300]
    thinned = bt.simulate(
        bt.LinTS(**{"prior": (0, 1), "noise": 0.5} | options),
        problem,
        gammas,
        horizon=300,
        runs=runs,
        checkpoints=checkpoints,
    )
    plain = bt.simulate(
        bt.LinTS(**{"prior": (0, 1), "noise": 0.5} | options),
        problem,
        gammas,
        horizon=300,
        runs=runs,
        checkpoints=checkpoints,
        simulation=bt.Simulation(shortcuts=False),
    )
    for fast, slow in zip(thinned, plain, strict=True):
        for column in range(2):
            # The same instances: their differences have mean 0.
            difference = fast[:, column] - slow[:, column]
            assert abs(difference.mean()) < 4 * difference.std() / math.sqrt(runs)
            assert stats.ks_2samp(fast[:, column], slow[:, column], method="asymp").pvalue > 1e-4


@pytest.mark.slow
def test_thinned_lints_at_gamma_0_is_greedy():
    problem = bt.Linear(arms=30, dims=3)
    greedy = bt.simulate(bt.policies.LinGreedy(prior=(0, 1), noise=0.5), problem, horizon=300, runs=200)
    assert np.allclose(
        greedy, bt.simulate(bt.LinTS(prior=(0, 1), noise=0.5), problem, [0.0], horizon=300, runs=200), rtol=1e-9
    )


def test_the_bound_of_proposals_is_above_the_normal_tail():
    """The bound of thinned LinTS: the product of two ratios, against the mass that it must cover."""
    tau = np.concatenate([np.linspace(0, 10, 100_001), np.linspace(10, 35, 10_001)])
    alpha = (tau + np.sqrt(tau**2 + 4)) / 2
    mass = np.exp(1 - alpha**2 / 2) / (alpha * math.sqrt(2 * math.pi))
    bound = (1 + tau**2 / 512) ** -256 * 0.66 * (1 + 0.08 * tau**2) / (1 + 0.8 * tau**2)
    assert (bound > mass).all()
    assert (mass > stats.norm.sf(tau)).all()


@pytest.mark.parametrize("policy", [bt.LinUCB(prior=(0, 1), noise=0.5), bt.LinTS(prior=(0, 1), noise=0.5)])
def test_shortcuts_of_linear_policies_take_short_horizons(policy):
    problem = bt.Linear(arms=30, dims=3)
    for horizon in (1, 2, 3):
        fast, plain = (
            bt.simulate(
                policy, problem, [0.5], horizon=horizon, runs=2000, simulation=bt.Simulation(shortcuts=shortcut)
            )[0]
            for shortcut in (True, False)
        )
        difference = fast - plain
        assert abs(difference.mean()) <= 4 * difference.std() / math.sqrt(2000)


def test_thinned_lints_is_right_with_nearly_equal_arms():
    """Distances between arms are differences of variances. Below a share of these they are rounding."""
    for scale in (1e-5, 1e-7):
        problem = bt.Linear(features=1 + scale * NEARLY[:, :3], prior=(0.5, 1.0))
        thinned, plain = (
            bt.simulate(
                bt.LinTS(prior=(0, 1), noise=0.5),
                problem,
                [1.0],
                horizon=300,
                runs=4000,
                simulation=bt.Simulation(shortcuts=shortcut),
            )[0]
            / scale
            for shortcut in (True, False)
        )
        difference = thinned - plain
        assert abs(difference.mean()) < 4 * difference.std() / math.sqrt(4000)


@bt.kernel.scalar
def pay_wrong_fifth(instance, arm, pull, step, stream):
    return instance.options[0] if pull == 5 else instance.means[arm]


@pytest.mark.slow
@pytest.mark.parametrize("policy", [bt.LinUCB(prior=(0, 1), noise=0.5), bt.LinTS(prior=(0, 1), noise=0.5)])
def test_linear_policies_report_rewards_that_are_not_finite(policy):
    def sample(size, rng):
        return rng.random((size, 6)), NEARLY[:6]

    for wrong_reward in (math.nan, math.inf):
        problem = bt.define_problem("broken", sample, pay_wrong_fifth, arms=6, dims=3, options=[wrong_reward])
        with pytest.raises(bt.SimulationError, match="'broken' paid another for arm"):
            simulate_rows(SimulationSpec(policy, problem, 100), [[1.0]], range(3))
