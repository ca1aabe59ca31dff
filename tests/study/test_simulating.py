"""`simulate`: rows of values, paired instances, and policies with several parameters."""

from __future__ import annotations

import banditune as bt
from banditune.simulation.dispatch import simulate_rows, simulate_rows_separately
from banditune.simulation.spec import SimulationSpec
from helpers.example_policies import TWO_PARAMETERS

PROBLEM = bt.Bernoulli(arms=3)


def test_runs_are_paired_over_values():
    regrets = bt.simulate(bt.UCB1(noise=0.5), PROBLEM, [0.2, 0.3, 1.0], horizon=300, runs=50)
    assert regrets.shape == (3, 50)
    assert (regrets[1] == bt.simulate(bt.UCB1(noise=0.5), PROBLEM, 0.3, horizon=300, runs=50)[0]).all()


def test_without_values_the_textbook_value_is_simulated():
    assert (
        bt.simulate(bt.UCB1(noise=0.5), PROBLEM, horizon=50, runs=9)
        == bt.simulate(bt.UCB1(noise=0.5), PROBLEM, 1, horizon=50, runs=9)
    ).all()


def test_a_policy_without_parameters_takes_any_value_and_ignores_it():
    regrets = bt.simulate(bt.Greedy(), PROBLEM, [0.0, 7.5], horizon=50, runs=9)
    assert (regrets[0] == regrets[1]).all()


def test_several_parameters_come_in_rows():
    problem = bt.Mixture([(1.0, 0.0)])
    regrets = bt.simulate(TWO_PARAMETERS, problem, [(1, 0), (0, 1)], horizon=10, runs=2)
    assert regrets.tolist() == [[0, 0], [10, 10]]
    assert (bt.simulate(TWO_PARAMETERS, problem, {"a": 0, "b": 1}, horizon=10, runs=2) == 10).all()


def test_named_arms_and_priors_per_arm():
    problem = bt.Bernoulli(arms=2, prior=[(1000, 1), (1, 1000)], names=["left", "right"])
    assert problem.names == ("left", "right")
    regrets = bt.simulate(bt.UCB1(noise=0.5), problem, [0.3], horizon=50, runs=50)
    assert regrets.mean() < 2
    assert bt.results.from_json(
        bt.curve(bt.UCB1(noise=0.5), problem, [0.3], horizon=50, runs=9).to_json()
    ).setup.problem["names"]


def test_each_value_may_have_its_own_instances():
    spec = SimulationSpec(bt.UCB1(noise=0.5), PROBLEM, 300, common_random_numbers=False, checkpoints=(100, 300))
    parts = simulate_rows_separately(spec, [[0.1], [0.4], [1.0]], [3, 1, 300], 250, workers=3)
    expected = simulate_rows(spec, [[0.1], [0.4], [1.0]], range(250, 554))
    assert [part.shape for part in parts] == [(3, 2), (1, 2), (300, 2)]
    assert (parts[0] == expected[0, :3]).all()
    assert (parts[1] == expected[1, 3:4]).all()
    assert (parts[2] == expected[2, 4:]).all()
