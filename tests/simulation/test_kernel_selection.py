"""Which kernel and which shortcut simulate a policy on a problem."""

from __future__ import annotations

import dataclasses

import numpy as np

import banditune as bt
from banditune.simulation.kernel_selection import select_kernel, select_shortcut
from banditune.simulation.spec import SimulationSpec


def test_shortcuts_are_selected_where_they_apply():
    assert select_shortcut(bt.UCB1(noise=0.5), bt.Bernoulli()).name == "first-passage"
    assert select_shortcut(bt.UCB1(noise=0.5), bt.BetaRewards()).name == "streaks"
    assert select_shortcut(bt.Thompson(prior=(1, 1)), bt.BetaRewards()).name == "thinning"
    # The proof holds where posteriors have shapes of at least 1: prior / gamma^2.
    half = bt.Thompson(prior=(0.5, 1))
    lazy = select_shortcut(half, bt.Bernoulli())
    assert [lazy.is_valid(half.options(10, 0, 99), np.array([gamma])) for gamma in (0.7, 0.71)] == [True, False]
    assert select_shortcut(bt.EpsilonGreedy(), bt.Bernoulli()) is None


@bt.kernel.scalar
def pay_wrong_third(instance, arm, pull, step, stream):
    return instance.options[0] if pull == 2 else 1.0


@bt.kernel.scalar
def pay_by_step(instance, arm, pull, step, stream):
    return 1.0 if (step < 50) == (arm == 0) else 0.0


def test_rewards_that_depend_on_the_step_have_no_shortcut():
    problem = bt.define_problem(
        "changing", lambda size, rng: rng.random((size, 2)), pay_by_step, arms=2, rewards="unit"
    )
    for policy in (bt.UCB1(noise=0.5), bt.Thompson(prior=(1, 1))):
        assert select_shortcut(policy, problem) is None
        assert select_shortcut(
            policy, bt.define_problem("n", lambda size, rng: 0, pay_wrong_third, arms=2, rewards="unit")
        )


class ChangingBernoulli(bt.Bernoulli):
    reward = staticmethod(pay_by_step)


def test_a_subclass_with_rewards_by_step_has_no_shortcut():
    """Arm 0 pays until step 50, arm 1 from then on, whatever their means."""
    assert bt.Bernoulli().has_step_free_rewards
    assert not ChangingBernoulli(arms=2).has_step_free_rewards
    assert select_shortcut(bt.UCB1(noise=0.5), ChangingBernoulli(arms=2)) is None
    table = bt.RewardTable(np.repeat([[1.0, 0.0], [0.0, 1.0]], 50, axis=0), shuffled=False)
    regrets, expected = (
        bt.simulate(
            bt.UCB1(noise=0.5), problem, [0.1, 1.0], horizon=100, runs=2, simulation=bt.Simulation(regret="realised")
        )
        for problem in (ChangingBernoulli(arms=2), table)
    )
    assert not table.has_step_free_rewards
    assert (regrets == expected).all()


class SecondArmUCB1(bt.UCB1):
    choose = staticmethod(bt.kernel.scalar(lambda state, setting, step, params, stream: 1))


class ConstantBernoulli(bt.Bernoulli):
    reward = staticmethod(bt.kernel.scalar(lambda instance, arm, pull, step, stream: 1.0))


def test_a_subclass_with_another_function_has_no_shortcut_of_its_parent():
    assert select_shortcut(SecondArmUCB1(), bt.Bernoulli()) is None
    assert (bt.simulate(SecondArmUCB1(), bt.Mixture([(1.0, 0.0)]), horizon=10, runs=2) == 10).all()
    assert ConstantBernoulli().bit_packed_reward is None
    assert select_shortcut(bt.UCB1(noise=0.5), ConstantBernoulli()).name == "streaks"


def test_a_kernel_is_bound_once_in_a_process():
    spec = SimulationSpec(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), 10)
    assert select_kernel(spec)[0] is select_kernel(dataclasses.replace(spec, policy=bt.UCB1(noise=2.0), horizon=20))[0]
