"""`deploy`: from results and from settings, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

import banditune as bt
from banditune.core.descriptions import describe
from banditune.core.policy import Policy
from helpers.deployed_runs import deploy_policy


def test_a_tuning_deploys_its_policy():
    problem = bt.Bernoulli(arms=3, names=["x", "y", "z"])
    tuning = bt.tune(bt.UCB1(noise=0.4), problem, horizon=50, budget=20, search=bt.Search(validate=20))
    deployed = bt.results.from_json(tuning.to_json()).deploy(pending="mean")
    assert deployed.arms == ("x", "y", "z")
    assert deployed.horizon == 50
    assert deployed.state.params == tuning.params
    assert deployed.state.policy == {"name": "ucb1", "noise": 0.4}
    assert deployed.state.pending == "mean"
    assert tuning.deploy(names=[7, 8, 9]).select_arm() == 7
    with pytest.raises(bt.InvalidRequest, match="the one that was tuned"):
        tuning.deploy(bt.UCB1(noise=0.5))
    comparison = bt.compare(
        [bt.UCB1(noise=0.5), bt.Thompson(prior=(1, 1))], problem, horizon=50, budget=20, search=bt.Search(validate=20)
    )
    best = bt.deployment.deploy_result(comparison)
    assert best.state.params == comparison.entries[0].params
    with pytest.raises(bt.InvalidRequest, match="tuning or a comparison"):
        bt.deployment.deploy_result(comparison.entries[0])


class FixedArm:
    """An object of another library."""

    def pull(self, arms):
        return 0

    def update(self, arm, reward):
        """Learn nothing."""


def make_fixed_arm(delta):
    return FixedArm()


def test_an_external_object_is_not_deployed():
    external = bt.wrap_policy(
        make_fixed_arm, bt.Parameter("delta", 0, 1, textbook=1), name="river", select="pull", update="update"
    )
    with pytest.raises(
        bt.InvalidRequest, match=r"create it there with delta=0.25, or tune and deploy a policy of this package"
    ):
        bt.deploy(external, {"delta": 0.25}, horizon=10, arms=2)
    tuning = bt.tune(bt.UCB1(noise=0.5), bt.Bernoulli(arms=2), horizon=20, budget=12, search=bt.Search(validate=10))
    external_tuning = replace(tuning, setup=replace(tuning.setup, policy=describe(external)))
    for call in (external_tuning.deploy, lambda: external_tuning.deploy(external)):
        with pytest.raises(
            bt.InvalidRequest, match=r"'river' is an object of another one.*create it there with gamma=0\."
        ):
            call()


@dataclass(frozen=True)
class PolicyWithoutRecall(Policy):
    """A policy that does not say what it knows."""

    name = "forgetful"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: deploy_policy(PolicyWithoutRecall(), None), "`recall` and `resume`"),
        (
            lambda: deploy_policy(bt.exact.OptimalMixture(bt.problems.two_point_mixture().means), None, arms=2),
            "`recall` and `resume`",
        ),
        (lambda: deploy_policy(bt.UCB1, 0.3), "must be a policy"),
        (lambda: deploy_policy(value=-2.0), r"0 <= gamma <= 1e\+06"),
        (lambda: deploy_policy(value={"width": 1}), "parameters of ucb1 are gamma"),
        (lambda: deploy_policy(arms=0), "arms"),
        (lambda: deploy_policy(arms=None), "must be given"),
        (lambda: deploy_policy(arms=None, names="abc"), "list of names"),
        (lambda: deploy_policy(arms=None, names=["a", "a"]), "different names"),
        (lambda: deploy_policy(arms=None, names=["1", 1]), "different names"),
        (lambda: deploy_policy(arms=None, names=["a", ""]), "1 to 200"),
        (lambda: deploy_policy(arms=3, names=["a", "b"]), "same number"),
        (lambda: deploy_policy(horizon=0), "horizon"),
        (lambda: deploy_policy(seed=-1), "seed"),
        (lambda: deploy_policy(pending="never"), "pending"),
        (lambda: deploy_policy(bt.LinUCB(prior=(0, 1), noise=0.5)), "pass `features`"),
        (lambda: deploy_policy(features=np.eye(4)), "does not use features"),
        (lambda: deploy_policy(bt.LinUCB(prior=(0, 1), noise=0.5), arms=None, features=[1, 2]), "row of numbers"),
        (
            lambda: deploy_policy(bt.LinUCB(prior=(0, 1), noise=0.5), arms=None, features=np.full((2, 2), np.nan)),
            "finite numbers",
        ),
        (lambda: deploy_policy(bt.exact.Optimal(prior=(1, 1)), None, arms=3), "arms = 2"),
    ],
)
def test_wrong_deployments_are_refused(make, message):
    with pytest.raises(bt.InvalidRequest, match=message):
        make()


def test_a_policy_without_features_is_deployed_from_a_problem_with_features():
    problem = bt.Logistic(features=[[1.0, 0.0], [0.0, 1.0]], names=("left", "right"))
    tuning = bt.tune(bt.UCB1(noise=0.5), problem, horizon=30, budget=20, search=bt.Search(validate=10))
    assert tuning.deploy().select_arm() == "left"
