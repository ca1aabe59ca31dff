"""A user's policy or problem is not taken for one of the package with the same name."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

import banditune as bt
from banditune.core.descriptions import OWN_CODE_KEY, describe
from banditune.core.space import Parameter
from banditune.study.restoration import restore_policy
from helpers.deployed_policies import SimulatedArms
from helpers.deployed_runs import deploy_policy, run_steps


@dataclass(frozen=True)
class RealBernoulli(bt.Bernoulli):
    """A problem with a name of the package and other rewards."""

    rewards = "real"
    reward = staticmethod(bt.Gaussian.reward)

    def options(self):
        return (5.0,)


def test_a_users_problem_is_distinguished_from_one_of_the_package():
    tuning = bt.tune(bt.UCB1(noise=5), bt.Bernoulli(arms=2), horizon=20, budget=12, search=bt.Search(validate=10))
    assert tuning.deploy().state.rewards == "binary"
    description = describe(RealBernoulli(arms=2))
    tuned = replace(tuning, setup=replace(tuning.setup, problem=description))
    assert tuned.deploy().state.rewards == "real"
    with pytest.raises(
        bt.InvalidRequest, match=r"'bernoulli' is your own \(test_policy_restoration.py:RealBernoulli\)"
    ):
        bt.problems.build_problem(description)


@bt.kernel.scalar
def choose_epsilon_greedy(state, setting, step, params, stream):
    """Epsilon-greedy."""
    if bt.kernel.uniform(stream) < params[0]:
        return bt.kernel.draw_arm(state, stream)
    return bt.kernel.argmax_mean(state)


def test_a_users_policy_must_be_passed_again(tmp_path):
    policy = bt.define_policy("mine", choose_epsilon_greedy, parameters=Parameter("epsilon", 0, 1, textbook=0.1))
    deployed = deploy_policy(policy, 0.5)
    run_steps(deployed, SimulatedArms(bt.Bernoulli(arms=4), 0), 30)
    deployed.save(tmp_path / "mine.json")
    with pytest.raises(bt.InvalidRequest, match="passed again"):
        bt.DeployedPolicy.load(tmp_path / "mine.json")
    loaded = bt.DeployedPolicy.load(tmp_path / "mine.json", policy)
    assert loaded.select_arms(20) == deployed.select_arms(20)
    with pytest.raises(bt.InvalidRequest, match="the one of the state"):
        bt.DeployedPolicy.load(tmp_path / "mine.json", bt.UCB1(noise=0.5))


@dataclass(frozen=True)
class RenamedUCB1(bt.UCB1):
    """UCB1 in name only."""

    choose = staticmethod(choose_epsilon_greedy)


RENAMED = [
    bt.define_policy("ucb1", choose_epsilon_greedy, parameters=Parameter("gamma", 0, 1, textbook=0.1)),
    RenamedUCB1(noise=0.5),
]


@pytest.mark.parametrize("policy", RENAMED, ids=["function", "subclass"])
def test_a_users_policy_is_distinguished_from_one_of_the_package(policy):
    tuning = bt.tune(bt.UCB1(noise=0.5), bt.Bernoulli(arms=2), horizon=20, budget=12, search=bt.Search(validate=10))
    tuned = replace(tuning, setup=replace(tuning.setup, policy=describe(policy)))
    with pytest.raises(bt.InvalidRequest, match="a policy of your own must be passed again"):
        tuned.deploy()
    with pytest.raises(bt.InvalidRequest, match="the one that was tuned"):
        tuned.deploy(bt.UCB1(noise=0.5))
    for library in ("mabwiser", "river"):
        with pytest.raises(bt.InvalidRequest, match=r"'ucb1' is your own \(test_policy_restoration.py:"):
            tuned.export_params(library)
    description = dict(describe(policy))
    assert (
        restore_policy(description | {OWN_CODE_KEY: "elsewhere.py:choose"}, policy, {}, of="", call="") is policy
    )  # its file was renamed
    del description[OWN_CODE_KEY]
    assert restore_policy(description, policy, {}, of="", call="") is policy  # saved before that was told
