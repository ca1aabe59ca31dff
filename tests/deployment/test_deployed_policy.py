"""Deployed policies: rewards in any order, arms that are added and retired, threads."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import banditune as bt
from helpers.deployed_runs import deploy_policy


def test_the_prior_is_updated_for_retired_arms():
    rng = np.random.default_rng(0)
    features, pulls, means = rng.normal(size=(6, 3)), rng.integers(1, 9, 6).astype(float), rng.uniform(0, 1, 6)
    likely = (rng.normal(size=3), np.diag([1.0, 0.5, 0.2]))
    policy = bt.LinTS(prior=likely, noise=0.7)
    whole = policy.learn_from_retired_arms(features, pulls, pulls * means)
    parts = policy.learn_from_retired_arms(features[:2], pulls[:2], (pulls * means)[:2])
    parts = parts.learn_from_retired_arms(features[2:], pulls[2:], (pulls * means)[2:])
    assert np.allclose(whole.prior[0], parts.prior[0], atol=1e-12)
    assert np.allclose(whole.prior[1], parts.prior[1], atol=1e-12)
    # By hand: precision adds up.
    precision = np.linalg.inv(likely[1]) + (features.T * pulls) @ features / 0.49
    moment = np.linalg.solve(likely[1], likely[0]) + features.T @ (pulls * means) / 0.49
    assert np.allclose(np.linalg.inv(precision), whole.prior[1], atol=1e-12)
    assert np.allclose(np.linalg.solve(precision, moment), whole.prior[0], atol=1e-12)


def test_logistic_policies_learn_from_retired_arms_by_laplaces_approximation():
    rng = np.random.default_rng(1)
    features, pulls = 3 * rng.normal(size=(6, 2)), rng.integers(1, 90, 6).astype(float)
    totals = np.floor(pulls * rng.uniform(0, 1, 6))
    mean, covariance = np.array([0.5, -1.0]), np.array([[1.0, 0.3], [0.3, 2.0]])
    learned = bt.GLMTSL(prior=(mean, covariance)).learn_from_retired_arms(features, pulls, totals)
    theta = np.array(learned.prior[0])
    chances = 1 / (1 + np.exp(-features @ theta))
    slope = features.T @ (totals - pulls * chances) - np.linalg.solve(covariance, theta - mean)
    hessian = np.linalg.inv(covariance) + (features.T * (pulls * chances * (1 - chances))) @ features
    assert np.abs(slope).max() < 1e-7
    assert np.allclose(np.linalg.inv(hessian), learned.prior[1], rtol=1e-8)


def test_rewards_in_any_order_give_the_same_estimates():
    rewards = [(arm, float(paid)) for arm, paid in np.random.default_rng(0).integers(0, 2, (50, 2))]
    first, second = deploy_policy(bt.Thompson(prior=(1, 1)), arms=2), deploy_policy(bt.Thompson(prior=(1, 1)), arms=2)
    first.update_many(rewards)
    for arm, paid in reversed(rewards):
        second.update(arm, paid)
    assert first.state == second.state
    assert first.select_arms(20) == second.select_arms(20)


def test_steps_count_rewarded_and_pending_pulls():
    deployed = deploy_policy()
    deployed.select_arms(5)
    deployed.update(0, 1.0)
    assert deployed.step == 5
    deployed.update(3, 1.0)
    deployed.update(3, 0.0)  # from elsewhere
    assert deployed.step == 6
    deployed.drop_pending(1)
    assert deployed.step == 5
    deployed.update(np.int64(2), np.float64(1))
    with pytest.raises(bt.InvalidRequest, match="count"):
        deployed.select_arms(-1)
    with pytest.raises(bt.InvalidRequest, match="has none"):
        deployed.drop_pending(1, 5)


def test_wrong_rewards_are_refused_and_change_nothing():
    for policy, wrong_rewards in (
        (bt.UCB1(noise=0.5), (float("nan"), float("inf"), "1", None, 1e101, [1])),
        (bt.Thompson(prior=(1, 1)), (-0.1, 1.1, float("nan"))),
        (bt.exact.Gittins(prior=(1, 1), discount=0.5), (0.5, 2)),
    ):
        deployed = deploy_policy(policy, None if policy.name == "gittins" else 0.3, arms=2, horizon=5)
        deployed.update(0, 1)
        before = deployed.to_json()
        for reward in wrong_rewards:
            with pytest.raises(bt.InvalidRequest, match="reward must be"):
                deployed.update(1, reward)
            with pytest.raises(bt.InvalidRequest, match="reward must be"):
                deployed.update_many([(0, 1), (1, reward)])
        for arm in (7, "0", None, [0], 0.5):
            with pytest.raises(bt.InvalidRequest, match="must be one of 0, 1"):
                deployed.update(arm, 1)
        assert deployed.to_json() == before


def test_arms_are_added_and_retired():
    deployed = deploy_policy(names=["a", "b", "c"], arms=None, value=0.1)
    for _ in range(60):
        arm = deployed.select_arm()
        deployed.update(arm, {"a": 0.9, "b": 0.5, "c": 0.1}[arm])
    assert deployed.select_arm() == "a"
    deployed.retire_arm("a")
    assert deployed.arms == ("b", "c")
    assert "a" not in deployed.select_arms(5)
    step = deployed.step
    deployed.update("a", 0.9)  # it was waiting for this
    assert deployed.step == step
    deployed.add_arm("d")
    assert deployed.select_arm() == "d"  # no rewards: it comes first
    deployed.update("d", 1.0)
    with pytest.raises(bt.InvalidRequest, match="is or was"):
        deployed.add_arm("a")
    with pytest.raises(bt.InvalidRequest, match="retired already"):
        deployed.retire_arm("a")
    with pytest.raises(bt.InvalidRequest, match="must be one of"):
        deployed.retire_arm("z")
    deployed.retire_arm("b")
    deployed.retire_arm("c")
    with pytest.raises(bt.InvalidRequest, match="not retired"):
        deployed.retire_arm("d")
    assert deployed.select_arms(3) == ["d"] * 3
    assert bt.DeployedPolicy.from_json(deployed.to_json()).state == deployed.state
    assert "retired" in repr(deployed)


def test_decisions_continue_after_the_horizon():
    deployed = deploy_policy(horizon=20, arms=2)
    for _ in range(40):
        deployed.update(deployed.select_arm(), 0.5)
    assert deployed.is_beyond_horizon
    table = bt.deploy(bt.exact.Gittins(prior=(1, 1)), horizon=20, arms=2)
    for _ in range(20):
        assert not table.is_beyond_horizon
        arm = table.select_arm()
        table.update(arm, arm)
    pulls = {arm.name: (arm.pulls, arm.total) for arm in table.state.arms}
    means = [(pulls[arm][1] + 1) / (pulls[arm][0] + 2) for arm in (0, 1)]
    assert table.is_beyond_horizon
    assert table.select_arms(30) == [int(np.argmax(means))] * 30


@pytest.mark.parametrize("pending", ["ignore", "mean"])
def test_no_decision_or_reward_of_concurrent_threads_is_missing(pending, tmp_path):
    deployed = deploy_policy(bt.Thompson(prior=(1, 1)), pending=pending, horizon=4000)
    rewards = [0] * 4

    def work(number):
        rng = np.random.default_rng(number)
        for turn in range(400):
            arm = deployed.select_arm()
            reward = int(rng.random() < (arm + 1) / 5)
            rewards[number] += reward
            deployed.update(arm, reward)
            if turn % 100 == 50:
                deployed.save(tmp_path / "state.json")
                bt.DeployedPolicy.load(tmp_path / "state.json")
            if turn == 200 and number == 0:
                deployed.add_arm(4)
                deployed.retire_arm(4)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    arms = deployed.state.arms
    assert sum(arm.pulls for arm in arms) == deployed.step == 1600
    assert sum(arm.total for arm in arms) == sum(rewards)
    assert sum(arm.pending_pulls for arm in arms) == 0


@pytest.mark.parametrize("problem", [bt.Bernoulli(arms=2), bt.BetaRewards(arms=2), bt.problems.two_point_mixture()])
def test_unexpected_rewards_warn_once_and_are_learned(problem, tmp_path):
    deployed = bt.tune(bt.UCB1(noise=0.5), problem, horizon=50, budget=20, search=bt.Search(validate=20)).deploy()
    deployed.update(0, 0.5)
    with pytest.warns(UserWarning, match=r"0 paid 5, but ucb1 was tuned for rewards in \[0, 1\].*scale rewards"):
        deployed.update(0, 5)
    deployed.update_many([(1, -3), (1, 4)])
    assert [arm.total for arm in deployed.state.arms] == [5.5, 1.0]
    deployed.save(tmp_path / "state.json")
    with pytest.warns(UserWarning, match="1 paid -1"):
        bt.DeployedPolicy.load(tmp_path / "state.json").update(1, -1)


def test_warnings_as_errors_change_nothing():
    deployed = bt.deploy(bt.UCB1(noise=0.5), 0.2, horizon=50, arms=2, rewards="unit")
    for _ in range(2):
        with pytest.raises(UserWarning):
            deployed.update(0, 5)
        with pytest.raises(UserWarning):
            deployed.update_many([(0, 1), (1, 5)])
    assert deployed.step == 0


def test_a_refused_batch_does_not_warn():
    deployed = bt.deploy(bt.UCB1(noise=0.5), 0.2, horizon=50, arms=2, rewards="binary")
    with pytest.raises(bt.InvalidRequest, match="a reward must be"):
        deployed.update_many([(0, 5), (1, "much")])
    assert deployed.step == 0
    with pytest.warns(UserWarning, match="0 paid 5.*is created or loaded") as warnings:
        deployed.update_many([(1, 0.5), (0, 5), (0, 6)])
    assert [warning.filename for warning in warnings] == [__file__]
    assert deployed.step == 3


def test_real_rewards_do_not_warn_where_real_rewards_were_tuned_for():
    deployed = bt.tune(
        bt.UCB1(noise=1), bt.Gaussian(arms=2), horizon=50, budget=20, search=bt.Search(validate=20)
    ).deploy()
    assert deployed.state.rewards == "real"
    deployed.update(0, 5e9)
    bt.deploy(bt.UCB1(noise=0.5), 0.2, horizon=50, arms=2).update(0, 7)
    with pytest.raises(bt.InvalidRequest, match="`rewards` must be one of"):
        bt.deploy(bt.UCB1(noise=0.5), 0.2, horizon=50, arms=2, rewards="euros")
