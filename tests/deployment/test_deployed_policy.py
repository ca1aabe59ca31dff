"""Policies at work: the simulator's own steps, late rewards, arms that come and go, many threads."""

from __future__ import annotations

import threading
import time
from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np
import pytest

import banditune as bt
from banditune.core.descriptions import OWN_CODE_KEY, describe
from banditune.core.policy import Policy
from banditune.core.space import Parameter
from banditune.deployment.policy_restoration import restore_policy
from banditune.registry import collect_policies
from conftest import ROOT
from helpers.deployed import DEPLOYABLE, Nature, deployed, policy_called, problem_for, value_for


def played(live, nature, steps):
    """The arms of so many steps, each rewarded at once."""
    arms = []
    for _ in range(steps):
        arms.append(live.select_arm())
        live.update(arms[-1], nature.pay(arms[-1]))
    return arms


def simulated_gaps(policy, problem, seed, horizon):
    """What each step of run 0 lost, by the engine's plain loop."""
    value = value_for(policy)
    regrets = bt.simulate(
        policy,
        problem,
        [0.0 if value is None else value],
        horizon=horizon,
        runs=1,
        seed=seed,
        checkpoints=list(range(1, horizon + 1)),
        simulation=bt.Simulation(shortcuts=False),
    )
    return np.diff(regrets[0, 0], prepend=0.0)


def agrees_step_by_step(name, seed, horizon):
    """Whether live and simulated runs pull the same arms: all gaps of an instance are different."""
    policy = policy_called(name)
    nature = Nature(problem_for(policy), seed)
    arms = played(deployed(policy, nature, horizon, seed), nature, horizon)
    gaps = nature.means.max() - nature.means
    assert np.diff(np.sort(gaps)).min() > 1e-6
    return np.allclose(gaps[arms], simulated_gaps(policy, nature.problem, seed, horizon), rtol=0, atol=1e-9)


def goes_on_alike(name, seed):
    """Whether a policy that is saved and loaded goes on as it would have, and as its twin that was not saved."""
    policy = policy_called(name)
    natures = [Nature(problem_for(policy), seed) for _ in range(2)]
    live, twin = (deployed(policy, nature, 60, seed) for nature in natures)
    assert played(live, natures[0], 12) == played(twin, natures[1], 12)
    again = bt.DeployedPolicy.from_json(live.to_json(), policy)
    assert again.state == live.state
    later = deepcopy(natures[0])
    return played(live, natures[0], 6) == played(twin, natures[1], 6) == played(again, later, 6)


def arms_come_and_go(name):
    """Whether only arms that are there are selected, and a state survives JSON."""
    policy = policy_called(name)
    nature = Nature(problem_for(policy), 2)
    live = deployed(policy, nature, 100, 2)
    played(live, nature, 10)
    if name == "optimal":  # for two arms only
        with pytest.raises(bt.InvalidRequest, match="arms = 2"):
            live.add_arm("new")
        return live.arms == (0, 1)
    live.add_arm("new", () if nature.features is None else nature.features[0] + 0.1)
    live.retire_arm(0)
    live.update(0, 1.0)
    selected = set(live.select_arms(8))
    assert selected <= set(live.arms)
    assert 0 not in live.arms
    return bt.DeployedPolicy.from_json(live.to_json(), policy).state == live.state


@pytest.mark.parametrize("name", ["ucb1", "ts"])
def test_live_and_simulated_runs_agree_step_by_step(name):
    assert agrees_step_by_step(name, 3, 300)
    assert goes_on_alike(name, 5)
    assert arms_come_and_go(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", DEPLOYABLE)
def test_live_and_simulated_runs_of_every_policy_agree_step_by_step(name):
    for seed in (0, 1, 2):
        assert agrees_step_by_step(name, seed, 200)
        assert goes_on_alike(name, seed)
    assert arms_come_and_go(name)


def test_every_policy_agrees_with_the_simulator_goes_on_and_changes_arms_in_plain_python(run_python):
    code = f"""
import sys
sys.path[:0] = [{str(ROOT / "src")!r}, {str(ROOT / "tests")!r}, {str(ROOT / "tests" / "deployment")!r}]
from test_deployed_policy import DEPLOYABLE, agrees_step_by_step, arms_come_and_go, goes_on_alike
from banditune.exact.table_policies import TABLE_POLICIES as TABLES
for name in set(DEPLOYABLE) - set(TABLES):  # tables take minutes in plain Python; compiled code plays them in other tests
    assert agrees_step_by_step(name, 3, 16), name
    assert goes_on_alike(name, 3), name
    assert arms_come_and_go(name), name
"""
    process = run_python(code, NUMBA_DISABLE_JIT="1")
    assert process.returncode == 0, process.stderr


def test_compiled_and_plain_decisions_are_the_same(run_python):
    code = f"""
import sys
sys.path[:0] = [{str(ROOT / "src")!r}, {str(ROOT / "tests")!r}, {str(ROOT / "tests" / "deployment")!r}]
from test_deployed_policy import *
nature = Nature(bt.Bernoulli(arms=5), 1)
print(played(deployed(bt.Thompson(prior=(1, 1)), nature, 100, 1), nature, 100))
"""
    nature = Nature(bt.Bernoulli(arms=5), 1)
    arms = played(deployed(bt.Thompson(prior=(1, 1)), nature, 100, 1), nature, 100)
    assert run_python(code, NUMBA_DISABLE_JIT="1").stdout.strip() == str(arms)


def test_what_retired_arms_taught_is_in_the_prior():
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


def test_what_retired_arms_taught_logistic_policies_is_laplaces_approximation():
    rng = np.random.default_rng(1)
    features, pulls = 3 * rng.normal(size=(6, 2)), rng.integers(1, 90, 6).astype(float)
    totals = np.floor(pulls * rng.uniform(0, 1, 6))
    mean, covariance = np.array([0.5, -1.0]), np.array([[1.0, 0.3], [0.3, 2.0]])
    found = bt.GLMTSL(prior=(mean, covariance)).learn_from_retired_arms(features, pulls, totals)
    theta = np.array(found.prior[0])
    chances = 1 / (1 + np.exp(-features @ theta))
    slope = features.T @ (totals - pulls * chances) - np.linalg.solve(covariance, theta - mean)
    hessian = np.linalg.inv(covariance) + (features.T * (pulls * chances * (1 - chances))) @ features
    assert np.abs(slope).max() < 1e-7
    assert np.allclose(np.linalg.inv(hessian), found.prior[1], rtol=1e-8)


def of(policy=None, value=0.3, arms=4, **told):
    """A deployed policy, UCB1 unless told otherwise."""
    return bt.deploy(policy or bt.UCB1(noise=0.5), value, **({"horizon": 1000, "arms": arms} | told))


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


def test_rewards_in_any_order_give_the_same_estimates():
    rewards = [(arm, float(paid)) for arm, paid in np.random.default_rng(0).integers(0, 2, (50, 2))]
    first, second = of(bt.Thompson(prior=(1, 1)), arms=2), of(bt.Thompson(prior=(1, 1)), arms=2)
    first.update_many(rewards)
    for arm, paid in reversed(rewards):
        second.update(arm, paid)
    assert first.state == second.state
    assert first.select_arms(20) == second.select_arms(20)


def test_steps_are_pulls_with_a_reward_and_pulls_that_wait():
    live = of()
    live.select_arms(5)
    live.update(0, 1.0)
    assert live.step == 5
    live.update(3, 1.0)
    live.update(3, 0.0)  # from elsewhere
    assert live.step == 6
    live.drop_pending(1)
    assert live.step == 5
    live.update(np.int64(2), np.float64(1))
    with pytest.raises(bt.InvalidRequest, match="count"):
        live.select_arms(-1)
    with pytest.raises(bt.InvalidRequest, match="has none"):
        live.drop_pending(1, 5)


def test_rewards_that_cannot_be_are_refused_and_nothing_is_changed():
    for policy, wrong in (
        (bt.UCB1(noise=0.5), (float("nan"), float("inf"), "1", None, 1e101, [1])),
        (bt.Thompson(prior=(1, 1)), (-0.1, 1.1, float("nan"))),
        (bt.exact.Gittins(prior=(1, 1), discount=0.5), (0.5, 2)),
    ):
        live = of(policy, None if policy.name == "gittins" else 0.3, arms=2, horizon=5)
        live.update(0, 1)
        before = live.to_json()
        for reward in wrong:
            with pytest.raises(bt.InvalidRequest, match="reward must be"):
                live.update(1, reward)
            with pytest.raises(bt.InvalidRequest, match="reward must be"):
                live.update_many([(0, 1), (1, reward)])
        for arm in (7, "0", None, [0], 0.5):
            with pytest.raises(bt.InvalidRequest, match="must be one of 0, 1"):
                live.update(arm, 1)
        assert live.to_json() == before


def test_arms_are_added_and_retired():
    live = of(names=["a", "b", "c"], arms=None, value=0.1)
    for _ in range(60):
        arm = live.select_arm()
        live.update(arm, {"a": 0.9, "b": 0.5, "c": 0.1}[arm])
    assert live.select_arm() == "a"
    live.retire_arm("a")
    assert live.arms == ("b", "c")
    assert "a" not in live.select_arms(5)
    step = live.step
    live.update("a", 0.9)  # it was waiting for this
    assert live.step == step
    live.add_arm("d")
    assert live.select_arm() == "d"  # no rewards: it comes first
    live.update("d", 1.0)
    with pytest.raises(bt.InvalidRequest, match="is or was"):
        live.add_arm("a")
    with pytest.raises(bt.InvalidRequest, match="retired already"):
        live.retire_arm("a")
    with pytest.raises(bt.InvalidRequest, match="must be one of"):
        live.retire_arm("z")
    live.retire_arm("b")
    live.retire_arm("c")
    with pytest.raises(bt.InvalidRequest, match="not retired"):
        live.retire_arm("d")
    assert live.select_arms(3) == ["d"] * 3
    assert bt.DeployedPolicy.from_json(live.to_json()).state == live.state
    assert "retired" in repr(live)


def test_after_the_horizon_it_goes_on():
    live = of(horizon=20, arms=2)
    for _ in range(40):
        live.update(live.select_arm(), 0.5)
    assert live.is_beyond_horizon
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
def test_many_threads_lose_nothing(pending, tmp_path):
    live = of(bt.Thompson(prior=(1, 1)), pending=pending, horizon=4000)
    paid = [0] * 4

    def work(number):
        rng = np.random.default_rng(number)
        for turn in range(400):
            arm = live.select_arm()
            reward = int(rng.random() < (arm + 1) / 5)
            paid[number] += reward
            live.update(arm, reward)
            if turn % 100 == 50:
                live.save(tmp_path / "state.json")
                bt.DeployedPolicy.load(tmp_path / "state.json")
            if turn == 200 and number == 0:
                live.add_arm(4)
                live.retire_arm(4)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    arms = live.state.arms
    assert sum(arm.pulls for arm in arms) == live.step == 1600
    assert sum(arm.total for arm in arms) == sum(paid)
    assert sum(arm.pending_pulls for arm in arms) == 0


@pytest.mark.parametrize("policy", [bt.UCB1(noise=0.5), bt.Thompson(prior=(1, 1))])
def test_a_decision_for_ten_arms_takes_less_than_20_microseconds(policy):
    live = of(policy, 0.22, arms=10, horizon=10_000)
    for arm in range(10):
        live.update(arm, 0.5)
    times = []
    for _ in range(20):
        start = time.perf_counter()
        live.select_arms(200)
        times.append((time.perf_counter() - start) / 200)
    assert min(times) < 20e-6


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


@pytest.mark.parametrize("problem", [bt.Bernoulli(arms=2), bt.BetaRewards(arms=2), bt.problems.two_point_mixture()])
def test_rewards_that_it_was_not_tuned_for_raise_a_warning_once_and_are_learnt(problem, tmp_path):
    live = bt.tune(bt.UCB1(noise=0.5), problem, horizon=50, budget=20, search=bt.Search(validate=20)).deploy()
    live.update(0, 0.5)
    with pytest.warns(UserWarning, match=r"0 paid 5, but ucb1 was tuned for rewards in \[0, 1\].*scale rewards"):
        live.update(0, 5)
    live.update_many([(1, -3), (1, 4)])
    assert [arm.total for arm in live.state.arms] == [5.5, 1.0]
    live.save(tmp_path / "state.json")
    with pytest.warns(UserWarning, match="1 paid -1"):
        bt.DeployedPolicy.load(tmp_path / "state.json").update(1, -1)


def test_warnings_that_are_errors_change_nothing():
    live = bt.deploy(bt.UCB1(noise=0.5), 0.2, horizon=50, arms=2, rewards="unit")
    for _ in range(2):
        with pytest.raises(UserWarning):
            live.update(0, 5)
        with pytest.raises(UserWarning):
            live.update_many([(0, 1), (1, 5)])
    assert live.step == 0


def test_a_batch_that_is_refused_warns_of_nothing():
    live = bt.deploy(bt.UCB1(noise=0.5), 0.2, horizon=50, arms=2, rewards="binary")
    with pytest.raises(bt.InvalidRequest, match="a reward must be"):
        live.update_many([(0, 5), (1, "much")])
    assert live.step == 0
    with pytest.warns(UserWarning, match="0 paid 5.*is created or loaded") as said:
        live.update_many([(1, 0.5), (0, 5), (0, 6)])
    assert [one.filename for one in said] == [__file__]
    assert live.step == 3


def test_any_reward_is_expected_where_any_was_tuned_for():
    live = bt.tune(bt.UCB1(noise=1), bt.Gaussian(arms=2), horizon=50, budget=20, search=bt.Search(validate=20)).deploy()
    assert live.state.rewards == "real"
    live.update(0, 5e9)
    bt.deploy(bt.UCB1(noise=0.5), 0.2, horizon=50, arms=2).update(0, 7)
    with pytest.raises(bt.InvalidRequest, match="`rewards` must be one of"):
        bt.deploy(bt.UCB1(noise=0.5), 0.2, horizon=50, arms=2, rewards="euros")


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
    with pytest.raises(bt.InvalidRequest, match=r"'bernoulli' is your own \(test_deployed_policy.py:Euros\)"):
        bt.problems.build_problem(description)


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
        with pytest.raises(bt.InvalidRequest, match=r"'ucb1' is your own \(test_deployed_policy.py:"):
            tuned.export_params(library)
    description = dict(describe(mine))
    assert (
        restore_policy(description | {OWN_CODE_KEY: "elsewhere.py:choose"}, mine, {}, of="", call="") is mine
    )  # its file was renamed
    del description[OWN_CODE_KEY]
    assert restore_policy(description, mine, {}, of="", call="") is mine  # saved before that was told


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
