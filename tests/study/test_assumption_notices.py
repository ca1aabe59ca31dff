"""Notices about wrong assumptions of a policy on noise and prior."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import banditune as bt
from banditune.cli.vocabulary import write_for_command_line
from banditune.core.problem import Instances
from banditune.registry import collect_policies
from banditune.study.assumption_notices import note_wrong_assumptions, suggest_noise_check
from banditune.study.options_from_problem import resolve_policy_options

NOISY = bt.Gaussian(arms=3, noise=5)


def list_messages(policy, problem):
    return list(note_wrong_assumptions(policy, problem))


@pytest.mark.parametrize(
    ("policy", "problem", "advice"),
    [
        (bt.UCB1(noise=0.5), NOISY, "Use ucb1:noise=5."),
        (bt.policies.UCB1Step(noise=0.5), NOISY, "Use ucb1-step:noise=5."),
        (
            bt.GaussianThompson(prior=(0, 1), noise=1),
            NOISY,
            "Use gaussian-ts:noise=5.",
        ),
        (
            bt.LinUCB(prior=(0, 1), noise=0.5),
            bt.Linear(arms=3, dims=2, noise=3),
            "Use linucb:noise=3.",
        ),
        (bt.LinTS(prior=(0, 1), noise=0.5), bt.Linear(arms=3, dims=2, noise=3), "lints:noise=3"),
        (bt.policies.LinGreedy(prior=(0, 1), noise=0.5), bt.Linear(arms=3, dims=2, noise=3), "lin-greedy:noise=3"),
        (bt.UCB1(noise=0.5), bt.Campaigns([[(0, 1), (1, 1)]], "real", noise=2), "Use ucb1:noise=2."),
        (bt.UCB1(noise=0.5), bt.RewardTable([[0.0, 8.0], [4.0, 12.0]]), "Use ucb1:noise=2."),
        (
            bt.kernel.define_ridge_policy("mine", bt.policies.LinGreedy.choose, noise=0.5),
            bt.Linear(arms=3, dims=2, noise=3),
            "Make the policy with CustomRidgePolicy(..., noise=3)",
        ),
    ],
)
def test_a_wrong_noise_is_named_with_advice(policy, problem, advice):
    (message,) = list_messages(policy, problem)
    assert f"{policy.name} assumes that rewards" in message
    assert "gives rewards too much weight" in message
    assert advice in write_for_command_line(message.advice)


def test_the_advice_ends_the_warning():
    names = []
    for name, make in collect_policies().items():
        policy = make()
        if hasattr(policy, "noise") and policy.rewards == "real":
            names.append(name)
            problem = bt.Linear(arms=3, dims=2, noise=7) if policy.needs_features else bt.Gaussian(arms=3, noise=7)
            assert len(list_messages(make(noise=0.5), problem)) == 1, name
            assert list_messages(make(noise=7.4), problem) == []
            assert list_messages(resolve_policy_options(policy, problem).policy, problem) == []
    assert {"ucb1", "linucb", "lints", "gaussian-ts"} <= set(names)


def test_a_too_large_noise_is_named():
    assert "too little" in list_messages(bt.UCB1(noise=5), bt.Gaussian(arms=3, noise=0.1))[0]


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
        (bt.EpsilonGreedy(), NOISY),
        (bt.UCB1(noise=4.5), NOISY),
        (
            bt.UCB1(noise=0.5),
            bt.define_problem("own", lambda size, rng: rng.random((size, 2)), bt.Gaussian.reward, arms=2),
        ),
    ],
)
def test_right_or_unknown_noise_gives_no_notice(policy, problem):
    assert list_messages(policy, problem) == []


@pytest.mark.parametrize(
    ("policy", "problem", "expected"),
    [
        (bt.UCB1(noise=0.5), bt.Bernoulli(arms=3, prior=(1, 99)), "of bernoulli have 0.099:"),
        (bt.UCB1(noise=5), bt.Bernoulli(arms=3), "of bernoulli have 0.4082"),
        (bt.UCB1(noise=0.5), bt.BetaRewards(arms=3, v=100), "of beta have 0.04062"),
        (bt.UCB1(noise=0.1), bt.Logistic(arms=3, dims=2), "of logistic have 0.4"),
        (
            bt.Thompson(prior=(1, 1)),
            bt.Bernoulli(arms=3, prior=(1, 99)),
            "probability 0.027 between 0.0005",
        ),
        (bt.Thompson(prior=(50, 50)), bt.Bernoulli(arms=3, prior=(20, 80)), "Use Thompson(prior=(20, 80))."),
        (
            bt.exact.Gittins(prior=(1, 1)),
            bt.Campaigns([[(10, 990), (12, 980)]]),
            "but 90% of the mean rewards of campaigns are there",
        ),
    ],
)
def test_wrong_noise_or_prior_for_rewards_in_the_unit_interval_is_named(policy, problem, expected):
    (message,) = list_messages(policy, problem)
    assert expected in message


def test_a_too_narrow_prior_of_theta_is_named():
    wide = bt.Linear(arms=20, dims=5, prior=(0, 25), noise=5)
    for make in (bt.LinUCB, bt.LinTS):
        (message,) = list_messages(make(prior=(0, 1), noise=5), wide)
        assert "are 4.9" in message or "are 5" in message
        assert list_messages(make(prior=(0, 10), noise=5), wide) == []
        assert list_messages(resolve_policy_options(make(), wide).policy, wide) == []
    shifted = bt.Logistic(features=[[1, 0.0], [1, 1.0]], prior=([-5, 0], [[0.1, 0], [0, 1]]))
    assert "times as large" in list_messages(bt.GLMTSL(prior=(0, 1)), shifted)[0]
    assert list_messages(bt.GLMTSL(prior=([-5, 0], [[0.1, 0], [0, 1]])), shifted) == []


def test_a_wrong_prior_of_gaussian_thompson_sampling_is_named():
    shop = bt.Gaussian(arms=3, prior=(24.5, 2), noise=8)
    (message,) = list_messages(bt.GaussianThompson(prior=(0, 1), noise=8), shop)
    assert "assumes that mean rewards have mean 0 and standard deviation 1 (prior)" in message
    assert "but those of gaussian have mean 24.5" in message
    assert "for arms without pulls are too low. Use GaussianThompson(noise=8, prior=(24.5, 2))." in message
    assert write_for_command_line(message.advice) == "Use gaussian-ts:noise=8,prior=24.5,2."
    assert list_messages(bt.GaussianThompson(noise=8, prior=(24.5, 2)), shop) == []
    assert list_messages(bt.GaussianThompson(noise=8, prior=(21, 2)), shop) == []
    assert "for arms without pulls are too high" in list_messages(bt.GaussianThompson(noise=8, prior=(60, 2)), shop)[0]
    campaigns = bt.Campaigns([[(9, 1), (11, 1)]], "real", noise=1)
    assert (
        "those of campaigns have mean 9.986" in list_messages(bt.GaussianThompson(prior=(0, 1), noise=1), campaigns)[0]
    )
    assert list_messages(bt.UCB1(noise=8), shop) == []


@dataclass(frozen=True)
class UserUCB1(bt.UCB1):
    """A user's policy with a name of the package."""


@dataclass(frozen=True)
class UserGaussian(bt.Gaussian):
    """A user's problem with a name of the package, whose means do not come from its prior."""

    def sample(self, size, rng):
        return Instances(rng.normal(40, 2, (size, self.arms)))


def test_a_users_policy_is_distinguished_from_one_of_the_package():
    (message,) = list_messages(UserUCB1(noise=0.5), NOISY)
    assert message.endswith("Make the policy with UserUCB1(..., noise=5), or change the function that makes it.")
    assert "ucb1:noise" not in suggest_noise_check(UserUCB1(noise=0.5))
    policy = bt.define_policy("gaussian-ts", bt.Greedy.choose)
    assert list_messages(policy, bt.Gaussian(arms=3, prior=(24.5, 2))) == []


def test_the_means_of_a_users_problem_are_drawn():
    (message,) = list_messages(bt.GaussianThompson(prior=(0, 1), noise=1), UserGaussian(arms=3))
    assert "those of gaussian have mean 40" in message


def test_tunings_comparisons_and_backtests_contain_the_notices():
    tuning = bt.tune(bt.UCB1(noise=0.5), NOISY, horizon=30, budget=20, search=bt.Search(validate=20))
    assert "UCB1(noise=5)" in tuning.notices[0]
    comparison = bt.compare(
        [bt.UCB1(noise=0.5), bt.UCB1(noise=5)], NOISY, horizon=30, budget=20, search=bt.Search(validate=20)
    )
    noise, end = comparison.notices
    assert "ucb1(noise=0.5) assumes" in noise
    assert "gamma = 0, the end of its range, has" in end
    assert "warning: ucb1(noise=0.5) assumes" in repr(comparison)
    assert bt.results.from_json(comparison.to_json()) == comparison


def test_a_policy_takes_noise_and_prior_of_a_fitted_problem():
    rng = np.random.default_rng(0)
    campaign, arm = np.repeat(np.arange(8), 60), np.tile(np.arange(3), 160)
    reward = rng.normal(0, 1, (8, 3))[campaign, arm] + rng.normal(0, 5, 480)
    logs = bt.read_logs({"campaign": campaign, "arm": arm, "reward": reward})
    fit = bt.fit(logs)
    policy = resolve_policy_options(bt.GaussianThompson(), fit.problem).policy
    assert policy == bt.GaussianThompson(prior=fit.problem.prior[0], noise=fit.problem.noise)
    assert list_messages(policy, fit.problem) == []
    assert bt.backtest(bt.UCB1(), logs, budget=20).tuning.setup.from_problem == {"noise": "from the problem"}
    backtest = bt.backtest(bt.UCB1(noise=0.5), logs, budget=20)
    assert any("UCB1(noise=" in warning for warning in backtest.notices)
    assert "warning: on the fitted problem: ucb1 assumes" in repr(backtest)
