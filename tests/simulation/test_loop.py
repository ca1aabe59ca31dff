"""The plain loop: compiled code equals plain Python, and numbers do not depend on threads or chunks."""

from __future__ import annotations

import math

import numpy as np
import pytest

import banditune as bt
from banditune.problems.problem_registry import PROBLEMS
from banditune.simulation import chunks
from banditune.simulation.dispatch import simulate_rows
from banditune.simulation.spec import SimulationSpec
from helpers.policy_problem_pairs import PAIRS, POLICIES, SMALL
from helpers.settings import group_settings


def test_every_problem_on_the_shelf_is_tried():
    assert set(SMALL) == set(PROBLEMS)


def test_the_door_lets_in_what_it_should():
    refused = {policy: [problem for problem in SMALL if (policy, problem) not in PAIRS] for policy in POLICIES}
    featureless = ["bernoulli", "beta", "campaigns", "gaussian", "mixture", "reward-table", "warm-up"]
    expected = {policy: [] for policy in POLICIES} | {
        "ts": ["gaussian", "linear"],
        "gittins": ["beta", "gaussian", "linear", "reward-table"],
        # Of a mixture both are the same policy, made for it.
        **{
            optimal: ["bernoulli", "beta", "campaigns", "gaussian", "linear", "logistic", "reward-table"]
            for optimal in ("optimal", "optimal-mixture")
        },
    }
    for policy, made in POLICIES.items():
        if made.needs_features:
            expected[policy] = sorted([*featureless, *(["linear"] if made.rewards == "unit" else [])])
    assert refused == expected


def test_disabling_the_compiler_runs_the_same_file_with_the_same_numbers(run_python):
    code = """
import banditune as bt
realised = bt.Simulation(regret="realised")
for policy in (bt.UCB1(noise=0.5), bt.Thompson(prior=(1, 1))):
    print(bt.simulate(policy, bt.Bernoulli(arms=3), [0.3, 1], horizon=60, runs=3, simulation=realised).tolist())
"""
    plain, compiled = run_python(code, NUMBA_DISABLE_JIT="1"), run_python(code)
    assert plain.returncode == 0, plain.stderr
    assert plain.stderr == ""
    assert plain.stdout == compiled.stdout


@pytest.mark.parametrize("policy", [bt.UCB1(noise=0.5), bt.Thompson(prior=(1, 1)), bt.EpsilonGreedy()])
def test_threads_and_chunks_do_not_change_a_bit(policy, monkeypatch):
    spec = SimulationSpec(policy, bt.Bernoulli(arms=5), 300, seed=9, regret="realised", common_random_numbers=False)
    params = np.array([[0.1], [1.0]])
    whole = simulate_rows(spec, params, range(700), workers=1)
    assert (whole == simulate_rows(spec, params, range(700), workers=5)).all()
    monkeypatch.setattr(chunks, "ROUNDS_PER_CHUNK", 7000)
    assert (whole == simulate_rows(spec, params, range(700), workers=2)).all()
    pieces = [
        simulate_rows(spec, params, range(first, last)) for first, last in ((0, 1), (1, 255), (255, 513), (513, 700))
    ]
    assert (whole == np.concatenate(pieces, axis=1)).all()


def test_shared_noise_does_not_depend_on_the_other_values():
    one = bt.simulate(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), [0.5], horizon=100, runs=50)
    two = bt.simulate(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), [0.1, 0.5], horizon=100, runs=50)
    assert (one[0] == two[1]).all()


def test_own_noise_is_independent_given_the_instance():
    problem = bt.Mixture([(0.5, 0.5 - 1e-9)])
    shared = bt.simulate(
        bt.UCB1(noise=0.5), problem, [1.0, 1.0], horizon=100, runs=2000, simulation=bt.Simulation(regret="realised")
    )
    own = bt.simulate(
        bt.UCB1(noise=0.5),
        problem,
        [1.0, 1.0],
        horizon=100,
        runs=2000,
        simulation=bt.Simulation(regret="realised", common_random_numbers=False),
    )
    assert (shared[0] == shared[1]).all()
    assert abs(np.corrcoef(own)[0, 1]) < 4 / math.sqrt(2000)
    assert (own[0] != shared[0]).any()


def test_seeds_differ_and_repeat():
    first, again, other = (
        bt.simulate(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), horizon=50, runs=20, seed=seed) for seed in (1, 1, 2)
    )
    assert (first == again).all()
    assert (first != other).any()


@pytest.mark.parametrize("shortcut", [True, False])
@pytest.mark.parametrize("policy", [bt.UCB1(noise=0.5), bt.Thompson(prior=(1, 1)), bt.EpsilonGreedy()])
def test_realised_and_expected_regret_have_the_same_mean(policy, shortcut):
    problem = bt.Bernoulli(arms=3)
    arguments = {"horizon": 200, "runs": 20_000, "shortcut": shortcut, "seed": 4}
    expected = bt.simulate(policy, problem, [0.4], **group_settings(regret="expected", **arguments))
    realised = bt.simulate(policy, problem, [0.4], **group_settings(regret="realised", **arguments))
    difference = (expected - realised)[0]
    assert abs(difference.mean()) < 4 * difference.std() / math.sqrt(len(difference))
    assert realised.std() > expected.std()


@pytest.mark.parametrize("policy", [bt.UCB1(noise=0.5), bt.EpsilonGreedy(), bt.ExploreThenCommit()])
def test_regret_at_a_step_is_that_of_a_run_watched_there(policy):
    at = [3, 10, 64, 65, 400]
    for regret in ("expected", "realised"):
        watched = bt.simulate(
            policy, bt.Bernoulli(arms=3), horizon=400, runs=40, checkpoints=at, simulation=bt.Simulation(regret=regret)
        )
        assert watched.shape == (1, 40, 5)
        for place, step in enumerate(at):
            regrets = bt.simulate(
                policy,
                bt.Bernoulli(arms=3),
                horizon=400,
                runs=40,
                checkpoints=[step],
                simulation=bt.Simulation(regret=regret),
            )
            assert (watched[:, :, place] == regrets[:, :, 0]).all()
        assert (
            watched[:, :, -1]
            == bt.simulate(policy, bt.Bernoulli(arms=3), horizon=400, runs=40, simulation=bt.Simulation(regret=regret))
        ).all()


def test_regret_of_two_arms_can_be_counted_by_hand():
    """Greedy on means 1 and 0 pulls each arm once and then arm 0: one step lost."""
    regret = bt.simulate(bt.Greedy(), bt.Mixture([(1.0, 0.0)]), horizon=10, runs=5, checkpoints=[1, 2, 10])
    assert (regret == [0.0, 1.0, 1.0]).all()


def test_first_names_the_first_run():
    whole = bt.simulate(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), [0.3], horizon=50, runs=600)
    assert (
        whole[:, 300:310]
        == bt.simulate(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), [0.3], horizon=50, runs=10, first_instance=300)
    ).all()
