"""`deploy`: from results and from settings, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

import banditune as bt
from banditune.core.descriptions import describe
from banditune.core.policy import Policy
from helpers.deployed_runs import of


def test_a_tuning_gives_its_policy():
    problem = bt.Bernoulli(arms=3, names=["x", "y", "z"])
    tuning = bt.tune(bt.UCB1(noise=0.4), problem, horizon=50, budget=20, search=bt.Search(validate=20))
    live = bt.results.from_json(tuning.to_json()).deploy(pending="mean")
    assert live.arms == ("x", "y", "z")
    assert live.horizon == 50
    assert live.state.params == tuning.params
    assert live.state.policy == {"name": "ucb1", "noise": 0.4}
    assert live.state.pending == "mean"
    assert tuning.deploy(names=[7, 8, 9]).select_arm() == 7
    with pytest.raises(bt.InvalidRequest, match="the one that was tuned"):
        tuning.deploy(bt.UCB1(noise=0.5))
    compared = bt.compare(
        [bt.UCB1(noise=0.5), bt.Thompson(prior=(1, 1))], problem, horizon=50, budget=20, search=bt.Search(validate=20)
    )
    best = bt.deployment.deploy_result(compared)
    assert best.state.params == compared.entries[0].params
    with pytest.raises(bt.InvalidRequest, match="tuning or a comparison"):
        bt.deployment.deploy_result(compared.entries[0])


class Fixed:
    """An object of another library."""

    def pull(self, arms):
        return 0

    def update(self, arm, reward):
        """Learn nothing."""


def make_fixed(delta):
    return Fixed()


def test_a_guest_that_is_deployed_is_told_where_to_work():
    guest = bt.wrap_policy(
        make_fixed, bt.Parameter("delta", 0, 1, textbook=1), name="river", select="pull", update="update"
    )
    with pytest.raises(
        bt.InvalidRequest, match=r"create it there with delta=0.25, or tune and deploy a policy of this package"
    ):
        bt.deploy(guest, {"delta": 0.25}, horizon=10, arms=2)
    tuning = bt.tune(bt.UCB1(noise=0.5), bt.Bernoulli(arms=2), horizon=20, budget=12, search=bt.Search(validate=10))
    tuned = replace(tuning, setup=replace(tuning.setup, policy=describe(guest)))
    for call in (tuned.deploy, lambda: tuned.deploy(guest)):
        with pytest.raises(
            bt.InvalidRequest, match=r"'river' is an object of another one.*create it there with gamma=0\."
        ):
            call()


@dataclass(frozen=True)
class Forgetful(Policy):
    """A policy that does not say what it knows."""

    name = "forgetful"


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (lambda: of(Forgetful(), None), "`recall` and `resume`"),
        (
            lambda: of(bt.exact.OptimalMixture(bt.problems.two_point_mixture().means), None, arms=2),
            "`recall` and `resume`",
        ),
        (lambda: of(bt.UCB1, 0.3), "must be a policy"),
        (lambda: of(value=-2.0), r"0 <= gamma <= 1e\+06"),
        (lambda: of(value={"width": 1}), "parameters of ucb1 are gamma"),
        (lambda: of(arms=0), "arms"),
        (lambda: of(arms=None), "must be given"),
        (lambda: of(arms=None, names="abc"), "list of names"),
        (lambda: of(arms=None, names=["a", "a"]), "different names"),
        (lambda: of(arms=None, names=["1", 1]), "different names"),
        (lambda: of(arms=None, names=["a", ""]), "1 to 200"),
        (lambda: of(arms=3, names=["a", "b"]), "same number"),
        (lambda: of(horizon=0), "horizon"),
        (lambda: of(seed=-1), "seed"),
        (lambda: of(pending="never"), "pending"),
        (lambda: of(bt.LinUCB(prior=(0, 1), noise=0.5)), "pass `features`"),
        (lambda: of(features=np.eye(4)), "does not use features"),
        (lambda: of(bt.LinUCB(prior=(0, 1), noise=0.5), arms=None, features=[1, 2]), "row of numbers"),
        (lambda: of(bt.LinUCB(prior=(0, 1), noise=0.5), arms=None, features=np.full((2, 2), np.nan)), "finite numbers"),
        (lambda: of(bt.exact.Optimal(prior=(1, 1)), None, arms=3), "arms = 2"),
    ],
)
def test_what_cannot_be_deployed_is_refused_with_a_sentence(request_, said):
    with pytest.raises(bt.InvalidRequest, match=said):
        request_()


def test_a_policy_that_knows_arms_by_number_is_deployed_from_a_problem_with_features():
    problem = bt.Logistic(features=[[1.0, 0.0], [0.0, 1.0]], names=("left", "right"))
    tuning = bt.tune(bt.UCB1(noise=0.5), problem, horizon=30, budget=20, search=bt.Search(validate=10))
    assert tuning.deploy().select_arm() == "left"
