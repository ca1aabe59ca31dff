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
from helpers.policy_problem_pairs import PAIRS, POLICIES, SMALL_PROBLEMS
from helpers.settings import group_settings


def test_every_problem_is_tested():
    assert set(SMALL_PROBLEMS) == set(PROBLEMS)


def test_policies_refuse_exactly_the_problems_they_cannot_take():
    refused = {policy: [problem for problem in SMALL_PROBLEMS if (policy, problem) not in PAIRS] for policy in POLICIES}
    featureless = ["bernoulli", "beta", "campaigns", "gaussian", "mixture", "reward-table", "warm-up"]
    expected = {policy: [] for policy in POLICIES} | {
        **{
            policy: ["gaussian", "linear"]
            for policy in ("ts", "kl-ucb", "ucb-v", "moss", "bayes-ucb", "finite-horizon-index")
        },
        "gittins": ["beta", "gaussian", "linear", "reward-table"],
        # On a mixture both are the same policy.
        **{
            optimal: ["bernoulli", "beta", "campaigns", "gaussian", "linear", "logistic", "reward-table"]
            for optimal in ("optimal", "optimal-mixture")
        },
    }
    for policy, made in POLICIES.items():
        if made.needs_features:
            expected[policy] = sorted([*featureless, *(["linear"] if made.rewards == "unit" else [])])
    assert refused == expected


def test_a_script_has_the_same_regrets_without_the_compiler(run_python):
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
def test_threads_and_chunks_change_no_regret(policy, monkeypatch):
    spec = SimulationSpec(policy, bt.Bernoulli(arms=5), 300, seed=9, regret="realised", common_random_numbers=False)
    params = np.array([[0.1], [1.0]])
    expected = simulate_rows(spec, params, range(700), workers=1)
    assert (expected == simulate_rows(spec, params, range(700), workers=5)).all()
    monkeypatch.setattr(chunks, "ROUNDS_PER_CHUNK", 7000)
    assert (expected == simulate_rows(spec, params, range(700), workers=2)).all()
    chunk_regrets = [
        simulate_rows(spec, params, range(first, last)) for first, last in ((0, 1), (1, 255), (255, 513), (513, 700))
    ]
    assert (expected == np.concatenate(chunk_regrets, axis=1)).all()


def test_common_random_numbers_do_not_depend_on_other_values():
    alone = bt.simulate(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), [0.5], horizon=100, runs=50)
    with_another = bt.simulate(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), [0.1, 0.5], horizon=100, runs=50)
    assert (alone[0] == with_another[1]).all()


def test_separate_random_numbers_are_independent_given_the_instance():
    problem = bt.Mixture([(0.5, 0.5 - 1e-9)])
    common = bt.simulate(
        bt.UCB1(noise=0.5), problem, [1.0, 1.0], horizon=100, runs=2000, simulation=bt.Simulation(regret="realised")
    )
    separate = bt.simulate(
        bt.UCB1(noise=0.5),
        problem,
        [1.0, 1.0],
        horizon=100,
        runs=2000,
        simulation=bt.Simulation(regret="realised", common_random_numbers=False),
    )
    assert (common[0] == common[1]).all()
    assert abs(np.corrcoef(separate)[0, 1]) < 4 / math.sqrt(2000)
    assert (separate[0] != common[0]).any()


def test_a_seed_repeats_its_regrets_and_another_has_others():
    first, repeated, other = (
        bt.simulate(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), horizon=50, runs=20, seed=seed) for seed in (1, 1, 2)
    )
    assert (first == repeated).all()
    assert (first != other).any()


@pytest.mark.parametrize("shortcut", [True, False])
@pytest.mark.parametrize("policy", [bt.UCB1(noise=0.5), bt.Thompson(prior=(1, 1)), bt.EpsilonGreedy()])
def test_realised_and_expected_regret_have_the_same_mean(policy, shortcut):
    problem = bt.Bernoulli(arms=3)
    arguments = {"horizon": 200, "runs": 20_000, "shortcuts": shortcut, "seed": 4}
    expected = bt.simulate(policy, problem, [0.4], **group_settings(regret="expected", **arguments))
    realised = bt.simulate(policy, problem, [0.4], **group_settings(regret="realised", **arguments))
    difference = (expected - realised)[0]
    assert abs(difference.mean()) < 4 * difference.std() / math.sqrt(len(difference))
    assert realised.std() > expected.std()


@pytest.mark.parametrize("policy", [bt.UCB1(noise=0.5), bt.EpsilonGreedy(), bt.ExploreThenCommit()])
def test_a_checkpoint_has_the_same_regret_with_or_without_others(policy):
    checkpoints = [3, 10, 64, 65, 400]
    for regret in ("expected", "realised"):
        together = bt.simulate(
            policy,
            bt.Bernoulli(arms=3),
            horizon=400,
            runs=40,
            checkpoints=checkpoints,
            simulation=bt.Simulation(regret=regret),
        )
        assert together.shape == (1, 40, 5)
        for index, step in enumerate(checkpoints):
            regrets = bt.simulate(
                policy,
                bt.Bernoulli(arms=3),
                horizon=400,
                runs=40,
                checkpoints=[step],
                simulation=bt.Simulation(regret=regret),
            )
            assert (together[:, :, index] == regrets[:, :, 0]).all()
        assert (
            together[:, :, -1]
            == bt.simulate(policy, bt.Bernoulli(arms=3), horizon=400, runs=40, simulation=bt.Simulation(regret=regret))
        ).all()


def test_the_regret_of_greedy_on_two_arms_is_known():
    """Greedy on means 1 and 0 pulls each arm once and then arm 0. Its regret is 1."""
    regret = bt.simulate(bt.Greedy(), bt.Mixture([(1.0, 0.0)]), horizon=10, runs=5, checkpoints=[1, 2, 10])
    assert (regret == [0.0, 1.0, 1.0]).all()


def test_first_instance_is_the_number_of_the_first_run():
    expected = bt.simulate(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), [0.3], horizon=50, runs=600)
    assert (
        expected[:, 300:310]
        == bt.simulate(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), [0.3], horizon=50, runs=10, first_instance=300)
    ).all()
