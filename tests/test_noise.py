"""Policies that do not know how noisy rewards are, and what is said about it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import banditune as bt
from banditune.contracts import Instances
from banditune.shelf import every_policy
from banditune.study.noise import another_range, noise_hint, noise_warnings

LOUD = bt.Gaussian(arms=3, noise=5)


def warned(policy, problem):
    return list(noise_warnings(policy, problem))


@pytest.mark.parametrize(
    ("policy", "problem", "way_out"),
    [
        (bt.UCB1(), LOUD, "ucb1:noise=5 on the command line, UCB1(noise=5) in Python"),
        (bt.UCB1Step(), LOUD, "ucb1-step:noise=5 on the command line, UCB1Step(noise=5) in Python"),
        (bt.GaussianThompson(), LOUD, "gaussian-ts:noise=5 on the command line, GaussianThompson(noise=5)"),
        (bt.LinUCB(), bt.Linear(arms=3, dims=2, noise=3), "linucb:noise=3 on the command line, LinUCB(noise=3)"),
        (bt.LinTS(), bt.Linear(arms=3, dims=2, noise=3), "lints:noise=3"),
        (bt.LinGreedy(), bt.Linear(arms=3, dims=2, noise=3), "lin-greedy:noise=3"),
        (bt.UCB1(), bt.Campaigns([[(0, 1), (1, 1)]], "real", noise=2), "UCB1(noise=2)"),
        (bt.UCB1(), bt.RewardTable([[0.0, 8.0], [4.0, 12.0]]), "UCB1(noise=2)"),
        (
            bt.ridge_policy("mine", bt.LinGreedy.choose),
            bt.Linear(arms=3, dims=2, noise=3),
            "Make it anew, as OwnRidgePolicy(..., noise=3)",
        ),
    ],
)
def test_the_policy_and_what_to_type_are_named(policy, problem, way_out):
    (sentence,) = warned(policy, problem)
    assert f"{policy.name} takes rewards" in sentence
    assert "trusts them too much" in sentence
    assert way_out in sentence


def test_what_is_typed_then_ends_the_warning():
    for name, make in every_policy().items():
        policy = make() if name not in ("optimal-mixture",) else None
        if hasattr(policy, "noise") and policy.rewards == "real":
            problem = bt.Linear(arms=3, dims=2, noise=7) if policy.needs_features else bt.Gaussian(arms=3, noise=7)
            assert len(warned(policy, problem)) == 1
            assert warned(make(noise=7.4), problem) == []


def test_too_large_a_noise_is_said_too():
    assert "too little" in warned(bt.UCB1(noise=5), bt.Gaussian(arms=3, noise=0.1))[0]


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        (bt.UCB1(), bt.Bernoulli(arms=3)),
        (bt.UCB1(noise=5), bt.Bernoulli(arms=3)),
        (bt.UCB1(), bt.BetaRewards(arms=3, v=100)),
        (bt.UCB1(), bt.Campaigns([[(1, 2), (3, 4)]])),
        (bt.LinUCB(), bt.Logistic(arms=3, dims=2)),
        (bt.UCB1(), bt.RewardTable([[0, 1], [1, 0]])),
        (bt.EpsilonGreedy(), LOUD),
        (bt.UCB1(noise=4.5), LOUD),
        (bt.UCB1(), bt.arm_problem("own", lambda size, rng: rng.random((size, 2)), bt.Gaussian.reward, arms=2)),
    ],
)
def test_nothing_is_said_where_nothing_is_wrong_or_known(policy, problem):
    assert warned(policy, problem) == []


def test_thompson_sampling_is_told_what_arms_pay_where_it_expects_something_else():
    shop = bt.Gaussian(arms=3, prior=(24.5, 2), noise=8)
    (sentence,) = warned(bt.GaussianThompson(noise=8), shop)
    assert (
        "gaussian-ts expects arms to pay 0 on average, give or take 1 (prior), but those of gaussian pay 24.5"
        in sentence
    )
    assert "look too bad. Tell it: gaussian-ts:noise=8,prior=24.5,2 on the command line" in sentence
    assert "GaussianThompson(noise=8, prior=(24.5, 2)) in Python" in sentence
    assert warned(bt.GaussianThompson(noise=8, prior=(24.5, 2)), shop) == []
    assert warned(bt.GaussianThompson(noise=8, prior=(21, 2)), shop) == []
    assert "look too good" in warned(bt.GaussianThompson(noise=8, prior=(60, 2)), shop)[0]
    past = bt.Campaigns([[(9, 1), (11, 1)]], "real", noise=1)
    assert "those of campaigns pay 9.986" in warned(bt.GaussianThompson(), past)[0]
    assert warned(bt.UCB1(noise=8), shop) == []


@dataclass(frozen=True)
class OwnUCB1(bt.UCB1):
    """A user's policy with a name of the shelf."""


@dataclass(frozen=True)
class OwnGaussian(bt.Gaussian):
    """A user's problem with a name of the shelf, whose means do not come from its prior."""

    def sample(self, size, rng):
        return Instances(rng.normal(40, 2, (size, self.arms)))


def test_a_policy_of_ones_own_is_not_taken_for_its_namesake():
    (sentence,) = warned(OwnUCB1(), LOUD)
    assert sentence.endswith("Make it anew, as OwnUCB1(..., noise=5) or the function that makes it.")
    assert "ucb1:noise" not in noise_hint(OwnUCB1())
    assert "10 times its noise: ucb1:noise=5 on" in another_range(bt.UCB1(), 10)
    assert another_range(OwnUCB1(), 10) == ""
    mine = bt.arm_policy("gaussian-ts", bt.Greedy.choose)
    assert warned(mine, bt.Gaussian(arms=3, prior=(24.5, 2))) == []


def test_means_are_drawn_where_a_problem_of_ones_own_draws_them():
    (sentence,) = warned(bt.GaussianThompson(), OwnGaussian(arms=3))
    assert "those of gaussian pay 40" in sentence


def test_tunings_comparisons_and_backtests_carry_it():
    tuning = bt.tune(bt.UCB1(), LOUD, horizon=30, budget=20, validate=20)
    assert "UCB1(noise=5)" in tuning.warnings[0]
    comparison = bt.compare([bt.UCB1(), bt.UCB1(noise=5)], LOUD, horizon=30, budget=20, validate=20)
    noise, end = comparison.warnings
    assert "ucb1 takes" in noise
    assert "gamma = 0, the end of its range, loses" in end
    assert "warning: ucb1 takes" in repr(comparison)
    assert bt.from_json(comparison.to_json()) == comparison


def test_a_fit_says_which_noise_the_policy_must_be_told():
    rng = np.random.default_rng(0)
    campaign, arm = np.repeat(np.arange(8), 60), np.tile(np.arange(3), 160)
    reward = rng.normal(0, 1, (8, 3))[campaign, arm] + rng.normal(0, 5, 480)
    logs = bt.read_logs({"campaign": campaign, "arm": arm, "reward": reward})
    fit = bt.fit(logs)
    wanted = f"ucb1:noise={fit.problem.noise:.4g} or gaussian-ts:noise={fit.problem.noise:.4g},prior="
    assert wanted in fit.notes[-1]
    prior = [float(number) for number in fit.notes[-1].partition("prior=")[2].split(",")]
    assert prior == pytest.approx(fit.problem.prior[0], rel=1e-3)
    assert warned(bt.UCB1(noise=float(f"{fit.problem.noise:.4g}")), fit.problem) == []
    tested = bt.backtest(bt.UCB1(), logs, budget=20)
    assert any("UCB1(noise=" in warning for warning in tested.warnings)
    assert "warning: on the fitted problem: ucb1 takes" in repr(tested)
