"""Policies and problems of users."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

import banditune as bt
from banditune.policies.base_policies import TotalsPolicy


@bt.kernel.scalar
def choose_first(state, setting, step, params, stream):
    return 0


def test_a_users_epsilon_greedy_has_the_regrets_of_the_package():
    @bt.kernel.scalar
    def choose(state, setting, step, params, stream):
        if bt.kernel.uniform(stream) < params[0]:
            return bt.kernel.draw_arm(state, stream)
        return bt.kernel.argmax_mean(state)

    policy = bt.define_policy("epsilon-greedy", choose, parameters=[bt.Parameter("epsilon", 0, 1, textbook=0.1)])
    result = bt.tune(policy, bt.Bernoulli(arms=10), horizon=1000, budget=1000)
    assert 0 <= result.params["epsilon"] <= 1
    regrets = bt.simulate(bt.EpsilonGreedy(), bt.Bernoulli(arms=10), [0.1], horizon=500, runs=50)
    assert (regrets == bt.simulate(policy, bt.Bernoulli(arms=10), [0.1], horizon=500, runs=50)).all()


def test_a_users_problem_has_equal_expected_and_realised_regret():
    @bt.kernel.scalar
    def reward(instance, arm, pull, step, stream):
        return instance.means[arm] * bt.kernel.exponential(stream) * instance.options[0]

    def sample(size, rng):
        return rng.gamma(2, 1, (size, 4))

    problem = bt.define_problem("exponential", sample, reward, arms=4, options=[1.0])
    regrets = bt.simulate(
        bt.UCB1(noise=2), problem, [0.1, 1.0], horizon=200, runs=400, simulation=bt.Simulation(regret="realised")
    )
    expected = bt.simulate(bt.UCB1(noise=2), problem, [0.1, 1.0], horizon=200, runs=400)
    difference = (regrets - expected)[0]
    assert abs(difference.mean()) < 4 * difference.std() / math.sqrt(len(difference))
    assert expected[0].mean() < expected[1].mean()
    assert np.isfinite(regrets).all()


@pytest.mark.slow
def test_a_users_problem_may_have_features():
    """One feature matrix for all instances, with means that no linear model has."""
    table = np.random.default_rng(0).normal(size=(6, 3))

    def sample(size, rng):
        return 1 / (1 + np.exp(-(table @ rng.normal(size=(3, size))).T)) ** 2, table

    problem = bt.define_problem("squared", sample, bt.Bernoulli().reward, arms=6, dims=3, rewards="unit")
    linear, greedy = (
        bt.simulate(policy, problem, horizon=300, runs=200).mean()
        for policy in (bt.LinUCB(prior=(0, 1), noise=0.5), bt.Greedy())
    )
    assert 0 < linear < greedy * 2
    problem_of_wrong_size = bt.define_problem(
        "wrong", lambda size, rng: (rng.random((size, 6)), table), bt.Bernoulli().reward, arms=6, dims=2
    )
    with pytest.raises(bt.SimulationError, match=r"'wrong' must return finite features of shape \(size, 6, 2\)"):
        bt.simulate(bt.LinUCB(prior=(0, 1), noise=0.5), problem_of_wrong_size, horizon=20, runs=2)


@dataclass(frozen=True)
class ProblemWithMethod(bt.kernel.Problem):
    """The reward is a method, although scalar functions have no self."""

    arms: int = 2
    name = "bound"
    reward = choose_first

    def sample(self, size, rng):
        return bt.kernel.Instances(rng.random((size, self.arms)))


def test_a_reward_that_is_a_method_is_refused():
    with pytest.raises(
        bt.InvalidRequest, match=r"`reward` of 'bound' must be a function without self.*@staticmethod above it"
    ):
        bt.simulate(bt.Greedy(), ProblemWithMethod(), horizon=5, runs=2)


def test_parameters_must_have_distinct_names_and_numeric_bounds():
    equal_names = [bt.Parameter("a", 0, 1, textbook=0.5), bt.Parameter("a", 0, 2, textbook=1)]
    with pytest.raises(bt.InvalidRequest, match=r"must have distinct names, but they are \['a', 'a'\]"):
        bt.simulate(
            bt.define_policy("mine", choose_first, parameters=equal_names), bt.Bernoulli(arms=2), horizon=5, runs=2
        )
    with pytest.raises(
        bt.InvalidRequest, match=r"`high` of the parameter 'a' must be a number or a function of \(arms, horizon\)"
    ):
        bt.Parameter("a", 0, "1", textbook=0.5)


@bt.kernel.scalar
def update_without_step(state, setting, arm, reward, stream):
    state.pulls[arm] += 1.0


@dataclass(frozen=True)
class UpdateWithoutStep(TotalsPolicy):
    name = "without-step"
    choose = staticmethod(choose_first)
    update = staticmethod(update_without_step)


@dataclass(frozen=True)
class MemoryWithoutHorizon(TotalsPolicy):
    name = "without-horizon"
    choose = staticmethod(choose_first)

    def memory(self, arms, dims):
        return 2 * arms


def test_an_update_with_wrong_arguments_is_refused():
    message = (
        r"`update` must take \(state, setting, step, params, arm, reward, stream\), but 'update_without_step' takes "
        r"\(state, setting, arm, reward, stream\)"
    )
    with pytest.raises(bt.InvalidRequest, match=message):
        bt.simulate(UpdateWithoutStep(), bt.Bernoulli(arms=2), horizon=5, runs=2)
    with pytest.raises(bt.InvalidRequest, match=message):
        bt.deploy(UpdateWithoutStep(), {}, horizon=5, arms=2)


def test_a_memory_without_the_horizon_is_refused():
    with pytest.raises(
        bt.InvalidRequest, match=r"`memory` must take \(arms, dims, horizon\), but .* takes \(arms, dims\)"
    ):
        bt.simulate(MemoryWithoutHorizon(), bt.Bernoulli(arms=2), horizon=5, runs=2)
    with pytest.raises(bt.InvalidRequest, match=r"`memory` must take \(arms, dims, horizon\)"):
        bt.deploy(MemoryWithoutHorizon(), {}, horizon=5, arms=2)


@bt.kernel.scalar
def update_next_arm(state, setting, step, params, arm, reward, stream):
    state.pulls[arm] += 1.0
    state.total[0] = step + params[0]


@bt.kernel.scalar
def choose_next_arm(state, setting, step, params, stream):
    return int(state.total[0]) % setting.arms


@bt.kernel.scalar
def choose_by_step(state, setting, step, params, stream):
    return int(step - 1 + params[0]) % setting.arms if step > 0 else 0


@dataclass(frozen=True)
class StepsByUpdate(TotalsPolicy):
    """The next arm is the sum of the last step and the parameter, which `update` stores."""

    name = "learns-steps"
    parameters = (bt.Parameter("shift", 0, 10, textbook=1, integer=True),)
    choose = staticmethod(choose_next_arm)
    update = staticmethod(update_next_arm)


class StepsByChoose(StepsByUpdate):
    choose = staticmethod(choose_by_step)


def test_an_update_receives_the_step_and_the_parameters():
    by_update, by_choose = (
        bt.simulate(policy, bt.Bernoulli(arms=3), [0, 1, 2], horizon=20, runs=5)
        for policy in (StepsByUpdate(), StepsByChoose())
    )
    assert (by_update == by_choose).all()
    assert len(np.unique(by_update[:, 0])) == 3


@bt.kernel.scalar
def update_sum_of_steps(state, setting, step, params, arm, reward, stream):
    state.pulls[arm] += 1.0
    state.total[arm] += step + params[0]


class SumOfSteps(StepsByUpdate):
    choose = staticmethod(choose_by_step)
    update = staticmethod(update_sum_of_steps)


def test_a_deployed_policy_updates_with_the_step_of_the_latest_decision():
    deployed = bt.deploy(SumOfSteps(), {"shift": 1}, horizon=50, arms=3)

    def update_and_read_step(arm):
        before = deployed.state.arms[arm].total
        deployed.update(arm, 0.5)
        return deployed.state.arms[arm].total - before - 1

    for step in range(3):
        assert deployed.select_arm() == step
        assert update_and_read_step(step) == step  # at once: the step of this decision
    late_arms = [deployed.select_arm() for _ in range(3)]
    assert [update_and_read_step(arm) for arm in late_arms] == [5, 5, 5]  # late: the latest step
    assert update_and_read_step(2) == 6  # without a decision: the next step
    assert deployed.step == 7
