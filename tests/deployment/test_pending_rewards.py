"""Rewards that come late: pending pulls, and the setting for them."""

from __future__ import annotations

from collections import Counter

import numpy as np

import banditune as bt
from banditune.registry import collect_policies
from helpers.deployed_runs import of


def test_first_pulls_are_spread_over_the_arms_while_no_reward_is_there():
    for policy in (bt.UCB1(noise=0.5), bt.Greedy(), bt.EpsilonGreedy(), bt.ExploreThenCommit()):
        live = of(policy, None if policy.name == "greedy" else 0 if policy.name == "epsilon-greedy" else 1, arms=4)
        assert live.select_arms(8) == [0, 1, 2, 3] * 2


def test_an_arm_whose_first_reward_is_lost_neither_starves_nor_gets_everything():
    for policy in (bt.UCB1(noise=0.5), bt.EpsilonGreedy()):
        live = of(policy, 0.3, arms=3)
        rng = np.random.default_rng(0)
        counts = Counter()
        for _ in range(600):
            arm = live.select_arm()
            counts[arm] += 1
            if arm != 1:
                live.update(arm, float(rng.random() < (0.2, 0.0, 0.6)[arm]))
        assert counts[2] > 300
        assert counts[1] >= 2


def test_a_dropped_first_pull_is_made_again():
    live = of(arms=3)
    assert live.select_arms(3) == [0, 1, 2]
    live.update(0, 1.0)
    live.update(2, 1.0)
    live.drop_pending(1)
    assert live.step == 2
    assert live.select_arm() == 1


def test_pending_pulls_count_when_their_reward_arrives_or_by_their_mean():
    rewards = [(arm, paid) for arm, mean in enumerate((0.5, 0.6, 0.4)) for paid in (1.0,) * int(10 * mean)]
    rewards += [(arm, 0.0) for arm, mean in enumerate((0.5, 0.6, 0.4)) for _ in range(10 - int(10 * mean))]
    ignoring, counting = (of(value=0.5, arms=3, pending=pending) for pending in ("ignore", "mean"))
    for live in (ignoring, counting):
        live.update_many(rewards)
        assert live.step == 30
    assert set(ignoring.select_arms(30)) == {1}
    assert set(counting.select_arms(30)) == {0, 1, 2}
    # By hand: the highest mean + width, where pulls that wait add to the pulls alone.
    pulls, chosen = np.array([10.0, 10.0, 10.0]), []
    for _ in range(30):
        chosen.append(int(np.argmax([0.5, 0.6, 0.4] + 0.5 * np.sqrt(2 * np.log(1000) / pulls))))
        pulls[chosen[-1]] += 1
    fresh = of(value=0.5, arms=3, pending="mean")
    fresh.update_many(rewards)
    assert fresh.select_arms(30) == chosen


def test_a_policy_has_its_own_setting_for_pulls_that_wait():
    # As measured by benchmarks/pending.py; the rest waits by the mean, and so do policies of users.
    ignored = {"ts", "epsilon-greedy", "explore-then-commit", "greedy", "lints", "glm-tsl"}
    ignored |= {"lin-epsilon-greedy", "glm-epsilon-greedy"}
    found = {name: made().pending_rewards for name, made in collect_policies().items()}
    assert {name for name, pending in found.items() if pending == "ignore"} == ignored
    assert set(found.values()) == {"ignore", "mean"}
    assert bt.define_policy("own", lambda state, setting, step, params, stream: 0).pending_rewards == "mean"
    assert of(bt.UCB1(noise=0.5)).state.pending == "mean"
    assert of(bt.UCB1(noise=0.5), pending="ignore").state.pending == "ignore"
    assert of(bt.Thompson(prior=(1, 1))).state.pending == "ignore"


def test_states_keep_the_setting_that_they_recorded():
    live = of(bt.UCB1(noise=0.5), pending="ignore")
    assert bt.DeployedPolicy.from_json(live.to_json()).state.pending == "ignore"


def test_ucb1_loses_less_by_its_own_setting_where_rewards_come_in_batches():
    def lost(pending, seed):
        rng = np.random.default_rng(seed)
        means, rewards = rng.random(5), rng.random((5, 400))
        live = of(bt.UCB1(noise=0.5), value=0.25, arms=5, horizon=400, seed=seed, pending=pending)
        pulls = [0] * 5
        for _ in range(10):
            late = []
            for _ in range(40):
                arm = live.select_arm()
                late.append((arm, float(rewards[arm, pulls[arm]] < means[arm])))
                pulls[arm] += 1
            live.update_many(late)
        return float((means.max() - means) @ pulls)

    saved = np.array([lost("ignore", seed) - lost(None, seed) for seed in range(40)])
    assert saved.mean() > 2 * saved.std(ddof=1) / len(saved) ** 0.5
    assert saved.mean() > 3


def test_a_deployed_policy_says_which_assumption_changes():
    assert (
        "a pending pull counts as if it had paid its arm's mean (pending=mean)" in of(bt.UCB1(noise=0.5)).delay_notice
    )
    ignoring = of(bt.UCB1(noise=0.5), pending="ignore")
    assert "does not count until its reward arrives (pending=ignore)" in ignoring.delay_notice
    assert "`banditune explain assumptions`" in ignoring.delay_notice
