"""Rewards that come late: pending pulls, and the setting for them."""

from __future__ import annotations

from collections import Counter

import numpy as np

import banditune as bt
from banditune.registry import collect_policies
from helpers.deployed_runs import deploy_policy


def test_first_pulls_alternate_while_no_reward_has_arrived():
    for policy in (bt.UCB1(noise=0.5), bt.Greedy(), bt.EpsilonGreedy(), bt.ExploreThenCommit()):
        deployed = deploy_policy(
            policy, None if policy.name == "greedy" else 0 if policy.name == "epsilon-greedy" else 1, arms=4
        )
        assert deployed.select_arms(8) == [0, 1, 2, 3] * 2


def test_an_arm_without_rewards_is_pulled_sometimes():
    for policy in (bt.UCB1(noise=0.5), bt.EpsilonGreedy()):
        deployed = deploy_policy(policy, 0.3, arms=3)
        rng = np.random.default_rng(0)
        counts = Counter()
        for _ in range(600):
            arm = deployed.select_arm()
            counts[arm] += 1
            if arm != 1:
                deployed.update(arm, float(rng.random() < (0.2, 0.0, 0.6)[arm]))
        assert counts[2] > 300
        assert counts[1] >= 2


def test_a_dropped_first_pull_is_repeated():
    deployed = deploy_policy(arms=3)
    assert deployed.select_arms(3) == [0, 1, 2]
    deployed.update(0, 1.0)
    deployed.update(2, 1.0)
    deployed.drop_pending(1)
    assert deployed.step == 2
    assert deployed.select_arm() == 1


def test_pending_pulls_are_ignored_or_count_as_the_mean():
    rewards = [(arm, paid) for arm, mean in enumerate((0.5, 0.6, 0.4)) for paid in (1.0,) * int(10 * mean)]
    rewards += [(arm, 0.0) for arm, mean in enumerate((0.5, 0.6, 0.4)) for _ in range(10 - int(10 * mean))]
    ignoring, counting = (deploy_policy(value=0.5, arms=3, pending=pending) for pending in ("ignore", "mean"))
    for deployed in (ignoring, counting):
        deployed.update_many(rewards)
        assert deployed.step == 30
    assert set(ignoring.select_arms(30)) == {1}
    assert set(counting.select_arms(30)) == {0, 1, 2}
    # By hand: the highest mean + width, where pulls that wait add to the pulls alone.
    pulls, chosen = np.array([10.0, 10.0, 10.0]), []
    for _ in range(30):
        chosen.append(int(np.argmax([0.5, 0.6, 0.4] + 0.5 * np.sqrt(2 * np.log(1000) / pulls))))
        pulls[chosen[-1]] += 1
    fresh = deploy_policy(value=0.5, arms=3, pending="mean")
    fresh.update_many(rewards)
    assert fresh.select_arms(30) == chosen


def test_every_policy_has_a_default_for_pending_pulls():
    # As measured by benchmarks/pending.py; the rest waits by the mean, and so do policies of users.
    ignored = {"ts", "epsilon-greedy", "explore-then-commit", "greedy", "lints", "glm-tsl"}
    ignored |= {"lin-epsilon-greedy", "glm-epsilon-greedy"}
    defaults = {name: made().pending_rewards for name, made in collect_policies().items()}
    assert {name for name, pending in defaults.items() if pending == "ignore"} == ignored
    assert set(defaults.values()) == {"ignore", "mean"}
    assert bt.define_policy("own", lambda state, setting, step, params, stream: 0).pending_rewards == "mean"
    assert deploy_policy(bt.UCB1(noise=0.5)).state.pending == "mean"
    assert deploy_policy(bt.UCB1(noise=0.5), pending="ignore").state.pending == "ignore"
    assert deploy_policy(bt.Thompson(prior=(1, 1))).state.pending == "ignore"


def test_a_state_keeps_its_setting_for_pending_pulls():
    deployed = deploy_policy(bt.UCB1(noise=0.5), pending="ignore")
    assert bt.DeployedPolicy.from_json(deployed.to_json()).state.pending == "ignore"


def test_the_default_for_pending_pulls_lowers_the_regret_of_ucb1_with_batches():
    def compute_regret(pending, seed):
        rng = np.random.default_rng(seed)
        means, rewards = rng.random(5), rng.random((5, 400))
        deployed = deploy_policy(bt.UCB1(noise=0.5), value=0.25, arms=5, horizon=400, seed=seed, pending=pending)
        pulls = [0] * 5
        for _ in range(10):
            batch = []
            for _ in range(40):
                arm = deployed.select_arm()
                batch.append((arm, float(rewards[arm, pulls[arm]] < means[arm])))
                pulls[arm] += 1
            deployed.update_many(batch)
        return float((means.max() - means) @ pulls)

    saved = np.array([compute_regret("ignore", seed) - compute_regret(None, seed) for seed in range(40)])
    assert saved.mean() > 2 * saved.std(ddof=1) / len(saved) ** 0.5
    assert saved.mean() > 3


def test_a_deployed_policy_states_how_pending_pulls_count():
    assert (
        "a pending pull counts as a pull with its arm's mean (pending=mean)"
        in deploy_policy(bt.UCB1(noise=0.5)).delay_notice
    )
    ignoring = deploy_policy(bt.UCB1(noise=0.5), pending="ignore")
    assert "does not count until its reward arrives (pending=ignore)" in ignoring.delay_notice
    assert "`banditune explain assumptions`" in ignoring.delay_notice
