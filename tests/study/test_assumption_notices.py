"""Policies that do not know how noisy rewards are, and what is said about it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import banditune as bt
from banditune.core.problem import Instances
from banditune.registry import collect_policies
from banditune.study.assumption_notices import note_wrong_assumptions, suggest_noise_check
from banditune.study.options_from_problem import resolve_policy_options

LOUD = bt.Gaussian(arms=3, noise=5)


def warned(policy, problem):
    return list(note_wrong_assumptions(policy, problem))


@pytest.mark.parametrize(
    ("policy", "problem", "way_out"),
    [
        (bt.UCB1(noise=0.5), LOUD, "ucb1:noise=5 on the command line, UCB1(noise=5) in Python"),
        (bt.policies.UCB1Step(noise=0.5), LOUD, "ucb1-step:noise=5 on the command line, UCB1Step(noise=5) in Python"),
        (
            bt.GaussianThompson(prior=(0, 1), noise=1),
            LOUD,
            "gaussian-ts:noise=5 on the command line, GaussianThompson(noise=5)",
        ),
        (
            bt.LinUCB(prior=(0, 1), noise=0.5),
            bt.Linear(arms=3, dims=2, noise=3),
            "linucb:noise=3 on the command line, LinUCB(noise=3)",
        ),
        (bt.LinTS(prior=(0, 1), noise=0.5), bt.Linear(arms=3, dims=2, noise=3), "lints:noise=3"),
        (bt.policies.LinGreedy(prior=(0, 1), noise=0.5), bt.Linear(arms=3, dims=2, noise=3), "lin-greedy:noise=3"),
        (bt.UCB1(noise=0.5), bt.Campaigns([[(0, 1), (1, 1)]], "real", noise=2), "UCB1(noise=2)"),
        (bt.UCB1(noise=0.5), bt.RewardTable([[0.0, 8.0], [4.0, 12.0]]), "UCB1(noise=2)"),
        (
            bt.kernel.define_ridge_policy("mine", bt.policies.LinGreedy.choose, noise=0.5),
            bt.Linear(arms=3, dims=2, noise=3),
            "Make it again, as CustomRidgePolicy(..., noise=3)",
        ),
    ],
)
def test_the_policy_and_what_to_type_are_named(policy, problem, way_out):
    (sentence,) = warned(policy, problem)
    assert f"{policy.name} takes rewards" in sentence
    assert "trusts them too much" in sentence
    assert way_out in sentence


def test_what_is_typed_then_ends_the_warning():
    seen = []
    for name, make in collect_policies().items():
        policy = make()
        if hasattr(policy, "noise") and policy.rewards == "real":
            seen.append(name)
            problem = bt.Linear(arms=3, dims=2, noise=7) if policy.needs_features else bt.Gaussian(arms=3, noise=7)
            assert len(warned(make(noise=0.5), problem)) == 1, name
            assert warned(make(noise=7.4), problem) == []
            assert warned(resolve_policy_options(policy, problem).policy, problem) == []
    assert {"ucb1", "linucb", "lints", "gaussian-ts"} <= set(seen)


def test_too_large_a_noise_is_said_too():
    assert "too little" in warned(bt.UCB1(noise=5), bt.Gaussian(arms=3, noise=0.1))[0]


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        (bt.UCB1(noise=0.5), bt.Bernoulli(arms=3)),
        (bt.UCB1(noise=0.5), bt.Bernoulli(arms=3, prior=(1, 25))),
        (bt.UCB1(noise=0.5), bt.BetaRewards(arms=3)),
        (bt.Thompson(prior=(1, 1)), bt.Bernoulli(arms=3, prior=(2, 38))),
        (bt.Thompson(prior=(1, 1)), bt.Mixture([[0.5, 0.5]])),
        (bt.UCB1(noise=0.5), bt.Campaigns([[(1, 2), (3, 4)]])),
        (bt.LinUCB(prior=(0, 1), noise=0.5), bt.Logistic(arms=3, dims=2)),
        (bt.UCB1(noise=0.5), bt.RewardTable([[0, 1], [1, 0]])),
        (bt.EpsilonGreedy(), LOUD),
        (bt.UCB1(noise=4.5), LOUD),
        (
            bt.UCB1(noise=0.5),
            bt.define_problem("own", lambda size, rng: rng.random((size, 2)), bt.Gaussian.reward, arms=2),
        ),
    ],
)
def test_nothing_is_said_where_nothing_is_wrong_or_known(policy, problem):
    assert warned(policy, problem) == []


@pytest.mark.parametrize(
    ("policy", "problem", "words"),
    [
        (bt.UCB1(noise=0.5), bt.Bernoulli(arms=3, prior=(1, 99)), "of bernoulli have 0.099:"),
        (bt.UCB1(noise=5), bt.Bernoulli(arms=3), "of bernoulli have 0.4082"),
        (bt.UCB1(noise=0.5), bt.BetaRewards(arms=3, v=100), "of beta have 0.04062"),
        (bt.UCB1(noise=0.1), bt.Logistic(arms=3, dims=2), "of logistic have 0.4"),
        (
            bt.Thompson(prior=(1, 1)),
            bt.Bernoulli(arms=3, prior=(1, 99)),
            "with a probability of 0.027 between 0.0005",
        ),
        (bt.Thompson(prior=(50, 50)), bt.Bernoulli(arms=3, prior=(20, 80)), "ts:prior=20,80 on the command line"),
        (
            bt.exact.Gittins(prior=(1, 1)),
            bt.Campaigns([[(10, 990), (12, 980)]]),
            "where 90% of the arms of campaigns are",
        ),
    ],
)
def test_noise_and_prior_far_from_rewards_in_the_unit_interval_are_named(policy, problem, words):
    (sentence,) = warned(policy, problem)
    assert words in sentence


def test_a_prior_of_theta_that_is_too_narrow_is_named():
    wide = bt.Linear(arms=20, dims=5, prior=(0, 25), noise=5)
    for make in (bt.LinUCB, bt.LinTS):
        (sentence,) = warned(make(prior=(0, 1), noise=5), wide)
        assert "are 4.9" in sentence or "are 5" in sentence
        assert warned(make(prior=(0, 10), noise=5), wide) == []
        assert warned(resolve_policy_options(make(), wide).policy, wide) == []
    shifted = bt.Logistic(features=[[1, 0.0], [1, 1.0]], prior=([-5, 0], [[0.1, 0], [0, 1]]))
    assert "times as large" in warned(bt.GLMTSL(prior=(0, 1)), shifted)[0]
    assert warned(bt.GLMTSL(prior=([-5, 0], [[0.1, 0], [0, 1]])), shifted) == []


def test_thompson_sampling_is_told_what_arms_pay_where_it_expects_something_else():
    shop = bt.Gaussian(arms=3, prior=(24.5, 2), noise=8)
    (sentence,) = warned(bt.GaussianThompson(prior=(0, 1), noise=8), shop)
    assert (
        "gaussian-ts expects arms to pay 0 on average, give or take 1 (prior), but those of gaussian pay 24.5"
        in sentence
    )
    assert "look too bad. Give it: gaussian-ts:noise=8,prior=24.5,2 on the command line" in sentence
    assert "GaussianThompson(noise=8, prior=(24.5, 2)) in Python" in sentence
    assert warned(bt.GaussianThompson(noise=8, prior=(24.5, 2)), shop) == []
    assert warned(bt.GaussianThompson(noise=8, prior=(21, 2)), shop) == []
    assert "look too good" in warned(bt.GaussianThompson(noise=8, prior=(60, 2)), shop)[0]
    past = bt.Campaigns([[(9, 1), (11, 1)]], "real", noise=1)
    assert "those of campaigns pay 9.986" in warned(bt.GaussianThompson(prior=(0, 1), noise=1), past)[0]
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
    (sentence,) = warned(OwnUCB1(noise=0.5), LOUD)
    assert sentence.endswith("Make it again, as OwnUCB1(..., noise=5) or by the function that makes it.")
    assert "ucb1:noise" not in suggest_noise_check(OwnUCB1(noise=0.5))
    mine = bt.define_policy("gaussian-ts", bt.Greedy.choose)
    assert warned(mine, bt.Gaussian(arms=3, prior=(24.5, 2))) == []


def test_means_are_drawn_where_a_problem_of_ones_own_draws_them():
    (sentence,) = warned(bt.GaussianThompson(prior=(0, 1), noise=1), OwnGaussian(arms=3))
    assert "those of gaussian pay 40" in sentence


def test_tunings_comparisons_and_backtests_carry_it():
    tuning = bt.tune(bt.UCB1(noise=0.5), LOUD, horizon=30, budget=20, search=bt.Search(validate=20))
    assert "UCB1(noise=5)" in tuning.notices[0]
    comparison = bt.compare(
        [bt.UCB1(noise=0.5), bt.UCB1(noise=5)], LOUD, horizon=30, budget=20, search=bt.Search(validate=20)
    )
    noise, end = comparison.notices
    assert "ucb1(noise=0.5) takes" in noise
    assert "gamma = 0, the end of its range, has" in end
    assert "warning: ucb1(noise=0.5) takes" in repr(comparison)
    assert bt.results.from_json(comparison.to_json()) == comparison


def test_a_policy_takes_noise_and_prior_of_a_fitted_problem():
    rng = np.random.default_rng(0)
    campaign, arm = np.repeat(np.arange(8), 60), np.tile(np.arange(3), 160)
    reward = rng.normal(0, 1, (8, 3))[campaign, arm] + rng.normal(0, 5, 480)
    logs = bt.read_logs({"campaign": campaign, "arm": arm, "reward": reward})
    fit = bt.fit(logs)
    fitted = resolve_policy_options(bt.GaussianThompson(), fit.problem).policy
    assert fitted == bt.GaussianThompson(prior=fit.problem.prior[0], noise=fit.problem.noise)
    assert warned(fitted, fit.problem) == []
    assert bt.backtest(bt.UCB1(), logs, budget=20).tuning.setup.from_problem == {"noise": "from the problem"}
    tested = bt.backtest(bt.UCB1(noise=0.5), logs, budget=20)
    assert any("UCB1(noise=" in warning for warning in tested.notices)
    assert "warning: on the fitted problem: ucb1 takes" in repr(tested)
