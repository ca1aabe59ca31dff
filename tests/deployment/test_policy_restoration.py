"""Users' own policies and problems are not mistaken for those of the package."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

import banditune as bt
from banditune.core.descriptions import OWN_CODE_KEY, describe
from banditune.core.space import Parameter
from banditune.deployment.policy_restoration import restore_policy
from helpers.deployed import Nature
from helpers.deployed_runs import of, played


@dataclass(frozen=True)
class Euros(bt.Bernoulli):
    """A problem with a name of the shelf that pays other rewards."""

    rewards = "real"
    reward = staticmethod(bt.Gaussian.reward)

    def options(self):
        return (5.0,)


def test_a_problem_of_your_own_is_never_taken_for_its_namesake_on_the_shelf():
    tuning = bt.tune(bt.UCB1(noise=5), bt.Bernoulli(arms=2), horizon=20, budget=12, search=bt.Search(validate=10))
    assert tuning.deploy().state.rewards == "binary"
    description = describe(Euros(arms=2))
    tuned = replace(tuning, setup=replace(tuning.setup, problem=description))
    assert tuned.deploy().state.rewards == "real"
    with pytest.raises(bt.InvalidRequest, match=r"'bernoulli' is your own \(test_policy_restoration.py:Euros\)"):
        bt.problems.build_problem(description)


@bt.kernel.scalar
def choose_rarely(state, setting, step, params, stream):
    """Epsilon-greedy."""
    if bt.kernel.uniform(stream) < params[0]:
        return bt.kernel.draw_arm(state, stream)
    return bt.kernel.argmax_mean(state)


def test_a_policy_of_your_own_is_passed_again(tmp_path):
    mine = bt.define_policy("mine", choose_rarely, parameters=Parameter("epsilon", 0, 1, textbook=0.1))
    live = of(mine, 0.5)
    played(live, Nature(bt.Bernoulli(arms=4), 0), 30)
    live.save(tmp_path / "mine.json")
    with pytest.raises(bt.InvalidRequest, match="passed again"):
        bt.DeployedPolicy.load(tmp_path / "mine.json")
    loaded = bt.DeployedPolicy.load(tmp_path / "mine.json", mine)
    assert loaded.select_arms(20) == live.select_arms(20)
    with pytest.raises(bt.InvalidRequest, match="the one of the state"):
        bt.DeployedPolicy.load(tmp_path / "mine.json", bt.UCB1(noise=0.5))


@dataclass(frozen=True)
class Lower(bt.UCB1):
    """UCB1 in name only."""

    choose = staticmethod(choose_rarely)


NAMESAKES = [
    bt.define_policy("ucb1", choose_rarely, parameters=Parameter("gamma", 0, 1, textbook=0.1)),
    Lower(noise=0.5),
]


@pytest.mark.parametrize("mine", NAMESAKES, ids=["function", "subclass"])
def test_a_policy_of_your_own_is_never_taken_for_its_namesake_on_the_shelf(mine):
    tuning = bt.tune(bt.UCB1(noise=0.5), bt.Bernoulli(arms=2), horizon=20, budget=12, search=bt.Search(validate=10))
    tuned = replace(tuning, setup=replace(tuning.setup, policy=describe(mine)))
    with pytest.raises(bt.InvalidRequest, match="a policy of your own must be passed again"):
        tuned.deploy()
    with pytest.raises(bt.InvalidRequest, match="the one that was tuned"):
        tuned.deploy(bt.UCB1(noise=0.5))
    for library in ("mabwiser", "river"):
        with pytest.raises(bt.InvalidRequest, match=r"'ucb1' is your own \(test_policy_restoration.py:"):
            tuned.export_params(library)
    description = dict(describe(mine))
    assert (
        restore_policy(description | {OWN_CODE_KEY: "elsewhere.py:choose"}, mine, {}, of="", call="") is mine
    )  # its file was renamed
    del description[OWN_CODE_KEY]
    assert restore_policy(description, mine, {}, of="", call="") is mine  # saved before that was told
