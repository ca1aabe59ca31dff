"""The loop: plain Python equals compiled, the same numbers however the work is cut, faults named."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

import banditune as bt
from banditune.engine import loop
from banditune.engine import run as engine
from banditune.engine.bind import bound
from banditune.engine.run import Job, kernel_for, play, shortcut_for
from banditune.policies import SHELF as POLICIES
from banditune.problems import SHELF as PROBLEMS

SMALL = {
    "bernoulli": lambda: bt.Bernoulli(arms=4, prior=(2, 5)),
    "beta": lambda: bt.BetaRewards(arms=4, v=3),
    "gaussian": lambda: bt.Gaussian(arms=4, prior=(1, 2), noise=0.7),
    "mixture": lambda: bt.Mixture([(0.1, 0.5, 0.4), (1.0, 0.0, 0.9)], weights=(1, 2)),
    "warm-up": bt.warm_up,
}


def test_every_problem_on_the_shelf_is_tried():
    assert set(SMALL) == set(PROBLEMS)


PAIRS = [
    (policy, problem)
    for policy in POLICIES
    for problem in SMALL
    if POLICIES[policy].rewards == "real" or SMALL[problem]().rewards != "real"
]


def params_for(job: Job) -> np.ndarray:
    """Theory's value and two others."""
    found = [p.within(job.problem.arms, job.horizon) for p in job.policy.parameters]
    if not found:
        return np.array([[0.0]])
    return np.array([[found[0].theory], [found[0].at(0.15)], [found[0].at(0.0)]])


def plain_python(job: Job, params: np.ndarray, runs: int) -> np.ndarray:
    """The kernel as plain Python, never compiled."""
    policy, problem = job.policy, job.problem
    slots = {name: getattr(policy, name) for name in ("view", "start", "choose", "update")}
    kernel, _ = bound(loop.play_block, slots | {"reward": problem.reward, "play": loop.play_steps})
    arms = problem.arms
    at = np.array(job.at or (job.horizon,), np.int64)
    out = np.empty((len(params), runs, len(at)))
    kernel(
        engine.instances(problem, job.seed, 0).means[:runs], job.seed, 0, np.array(problem.options()), params,
        np.array(policy.options(arms, job.horizon)), job.horizon, job.noise == "own", at, job.regret == "realised",
        np.zeros(policy.memory(arms)), np.zeros(0, np.int64), np.zeros(arms, np.int64), np.zeros(arms),
        np.zeros((3, 4), np.int64), out, np.zeros(5), np.zeros(1, np.int64),
    )  # fmt: skip
    return out


@pytest.mark.parametrize(("policy", "problem"), PAIRS)
def test_plain_python_equals_compiled_to_the_last_bit(policy, problem):
    job = Job(POLICIES[policy](), SMALL[problem](), 200, seed=3, regret="realised", at=(17, 200), shortcut=False)
    params = params_for(job)
    assert (plain_python(job, params, 3) == play(job, params, range(3))).all()
    expected = dataclasses.replace(job, regret="expected", noise="own")
    assert (plain_python(expected, params, 2) == play(expected, params, range(2))).all()


def test_disabling_the_compiler_runs_the_same_file_with_the_same_numbers(run_python):
    code = """
import banditune as bt
for policy in (bt.UCB1(), bt.Thompson()):
    print(bt.simulate(policy, bt.Bernoulli(arms=3), [0.3, 1], horizon=60, runs=3, regret="realised").tolist())
"""
    plain, compiled = run_python(code, NUMBA_DISABLE_JIT="1"), run_python(code)
    assert plain.returncode == 0, plain.stderr
    assert plain.stderr == ""
    assert plain.stdout == compiled.stdout


@pytest.mark.parametrize("policy", [bt.UCB1(), bt.Thompson(), bt.EpsilonGreedy()])
def test_threads_and_chunks_do_not_change_a_bit(policy, monkeypatch):
    job = Job(policy, bt.Bernoulli(arms=5), 300, seed=9, regret="realised", noise="own")
    params = np.array([[0.1], [1.0]])
    whole = play(job, params, range(700), jobs=1)
    assert (whole == play(job, params, range(700), jobs=5)).all()
    monkeypatch.setattr(engine, "TASK", 7000)
    assert (whole == play(job, params, range(700), jobs=2)).all()
    pieces = [play(job, params, range(first, last)) for first, last in ((0, 1), (1, 255), (255, 513), (513, 700))]
    assert (whole == np.concatenate(pieces, axis=1)).all()


def test_shared_noise_does_not_depend_on_the_other_values():
    one = bt.simulate(bt.UCB1(), bt.Bernoulli(arms=3), [0.5], horizon=100, runs=50)
    two = bt.simulate(bt.UCB1(), bt.Bernoulli(arms=3), [0.1, 0.5], horizon=100, runs=50)
    assert (one[0] == two[1]).all()


def test_own_noise_is_independent_given_the_instance():
    problem = bt.Mixture([(0.5, 0.5 - 1e-9)])
    shared = bt.simulate(bt.UCB1(), problem, [1.0, 1.0], horizon=100, runs=2000, regret="realised")
    own = bt.simulate(bt.UCB1(), problem, [1.0, 1.0], horizon=100, runs=2000, regret="realised", noise="own")
    assert (shared[0] == shared[1]).all()
    assert abs(np.corrcoef(own)[0, 1]) < 4 / math.sqrt(2000)
    assert (own[0] != shared[0]).any()


def test_seeds_differ_and_repeat():
    first, again, other = (
        bt.simulate(bt.UCB1(), bt.Bernoulli(arms=3), horizon=50, runs=20, seed=seed) for seed in (1, 1, 2)
    )
    assert (first == again).all()
    assert (first != other).any()


@pytest.mark.parametrize("shortcut", [True, False])
@pytest.mark.parametrize("policy", [bt.UCB1(), bt.Thompson(), bt.EpsilonGreedy()])
def test_realised_and_expected_regret_have_the_same_mean(policy, shortcut):
    problem = bt.Bernoulli(arms=3)
    arguments = {"horizon": 200, "runs": 20_000, "shortcut": shortcut, "seed": 4}
    expected = bt.simulate(policy, problem, [0.4], regret="expected", **arguments)
    realised = bt.simulate(policy, problem, [0.4], regret="realised", **arguments)
    difference = (expected - realised)[0]
    assert abs(difference.mean()) < 4 * difference.std() / math.sqrt(len(difference))
    assert realised.std() > expected.std()


@pytest.mark.parametrize("policy", [bt.UCB1(), bt.EpsilonGreedy(), bt.ExploreThenCommit()])
def test_regret_at_a_step_is_that_of_a_run_watched_there(policy):
    at = [3, 10, 64, 65, 400]
    for regret in ("expected", "realised"):
        watched = bt.simulate(policy, bt.Bernoulli(arms=3), horizon=400, runs=40, at=at, regret=regret)
        assert watched.shape == (1, 40, 5)
        for place, step in enumerate(at):
            alone = bt.simulate(policy, bt.Bernoulli(arms=3), horizon=400, runs=40, at=[step], regret=regret)
            assert (watched[:, :, place] == alone[:, :, 0]).all()
        assert (
            watched[:, :, -1] == bt.simulate(policy, bt.Bernoulli(arms=3), horizon=400, runs=40, regret=regret)
        ).all()


def test_regret_of_two_arms_can_be_counted_by_hand():
    """Greedy on means 1 and 0 pulls each arm once and then arm 0: one step lost."""
    regret = bt.simulate(bt.Greedy(), bt.Mixture([(1.0, 0.0)]), horizon=10, runs=5, at=[1, 2, 10])
    assert (regret == [0.0, 1.0, 1.0]).all()


def test_shortcuts_are_chosen_where_they_apply_and_only_there():
    assert shortcut_for(bt.UCB1(), bt.Bernoulli()).name == "level"
    assert shortcut_for(bt.UCB1(), bt.BetaRewards()).name == "stay"
    assert shortcut_for(bt.Thompson(), bt.BetaRewards()).name == "lazy"
    assert shortcut_for(bt.Thompson(prior=(0.5, 1)), bt.Bernoulli()) is None
    assert shortcut_for(bt.EpsilonGreedy(), bt.Bernoulli()) is None


@bt.scalar
def eleventh_arm(state, setting, step, params, stream):
    return setting.arms if step == 7 else 0


@bt.scalar
def not_an_arm(state, setting, step, params, stream):
    return math.log(state.pulls[0] + 1.0) * math.inf if step == 3 else 0.0


@bt.scalar
def half_an_arm(state, setting, step, params, stream):
    return 0.5


@bt.scalar
def below_zero(state, setting, step, params, stream):
    return -1


@pytest.mark.parametrize(
    ("choose", "culprit", "step"),
    [(eleventh_arm, "10", 7), (not_an_arm, "inf", 3), (half_an_arm, "0.5", 0), (below_zero, "-1", 0)],
)
def test_a_bad_arm_is_named_with_the_run_and_step(choose, culprit, step):
    policy = bt.arm_policy("broken", choose)
    with pytest.raises(bt.Fault) as error:
        bt.simulate(policy, bt.Bernoulli(arms=10), horizon=20, runs=300, seed=5)
    message = str(error.value)
    assert "from 0 to 9" in message
    assert f"'broken' chose {culprit} at step {step} of run 0" in message
    assert "seed=5" in message


@bt.scalar
def nan_reward(instance, arm, pull, step, stream):
    return math.nan if pull == 2 else 1.0


def test_a_reward_that_is_not_a_number_is_named():
    problem = bt.arm_problem("strange", lambda size, rng: rng.random((size, 3)), nan_reward, arms=3)
    for shortcut in (True, False):
        with pytest.raises(bt.Fault, match=r"'strange' paid another for arm 0 at step . of run 0"):
            bt.simulate(bt.Greedy(), problem, horizon=20, runs=5, shortcut=shortcut)


@bt.scalar
def reaches_out(state, setting, step, params, stream):
    state.total[setting.arms] = 1.0
    return 0


def test_a_policy_that_writes_outside_its_memory_is_stopped():
    with pytest.raises(bt.Fault, match="outside its memory"):
        bt.simulate(bt.arm_policy("wild", reaches_out), bt.Bernoulli(arms=3), horizon=20, runs=5)


@bt.scalar
def uses_a_list(state, setting, step, params, stream):
    return [state].index(step)


def test_code_that_cannot_be_compiled_is_one_sentence_with_the_policy():
    with pytest.raises(bt.Fault, match="'listy' on the problem 'bernoulli' cannot be compiled"):
        bt.simulate(bt.arm_policy("listy", uses_a_list), bt.Bernoulli(arms=3), horizon=20, runs=5)


def test_a_problem_with_wrong_means_is_named():
    problem = bt.arm_problem("thin", lambda size, rng: rng.random((size, 2)), nan_reward, arms=3)
    with pytest.raises(bt.Fault, match=r"'thin' must return finite means of shape \(size, 3\)"):
        bt.simulate(bt.Greedy(), problem, horizon=20, runs=5)


def test_a_million_runs_need_little_memory(run_python):
    code = """
import banditune as bt
assert len(bt.simulate(bt.UCB1(), bt.warm_up(), [0.3], horizon=200, runs=1_000_000)[0]) == 1_000_000
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""
    done = run_python(code)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 500 * 1024


def test_the_kernel_is_bound_once_in_a_process():
    job = Job(bt.UCB1(), bt.Bernoulli(arms=3), 10)
    assert kernel_for(job)[0] is kernel_for(dataclasses.replace(job, policy=bt.UCB1(noise=2.0), horizon=20))[0]
