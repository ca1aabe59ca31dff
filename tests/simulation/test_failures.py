"""Errors of policies and problems name the run and the step."""

from __future__ import annotations

import dataclasses
import math
import re

import numba
import numpy as np
import pytest

import banditune as bt
from banditune.policies.custom_policy import CustomPolicy
from banditune.simulation.dispatch import simulate_rows
from banditune.simulation.spec import SimulationSpec


@bt.kernel.scalar
def choose_11th_arm(state, setting, step, params, stream):
    return setting.arms if step == 7 else 0


@bt.kernel.scalar
def choose_infinity(state, setting, step, params, stream):
    return math.log(state.pulls[0] + 1.0) * math.inf if step == 3 else 0.0


@bt.kernel.scalar
def choose_one_half(state, setting, step, params, stream):
    return 0.5


@bt.kernel.scalar
def choose_minus_one(state, setting, step, params, stream):
    return -1


@pytest.mark.parametrize(
    ("choose", "chosen", "step"),
    [(choose_11th_arm, "10", 7), (choose_infinity, "inf", 3), (choose_one_half, "0.5", 0), (choose_minus_one, "-1", 0)],
)
def test_a_wrong_arm_is_an_error_with_run_and_step(choose, chosen, step):
    policy = bt.define_policy("broken", choose)
    with pytest.raises(bt.SimulationError) as error:
        bt.simulate(policy, bt.Bernoulli(arms=10), horizon=20, runs=300, seed=5)
    message = str(error.value)
    assert "from 0 to 9" in message
    assert f"'broken' chose {chosen} at step {step} of run 0" in message
    assert "seed=5" in message


@bt.kernel.scalar
def pay_mean(instance, arm, pull, step, stream):
    return instance.means[arm]


@bt.kernel.scalar
def pay_wrong_third(instance, arm, pull, step, stream):
    return instance.options[0] if pull == 2 else 1.0


@pytest.mark.parametrize("shortcut", [True, False])
@pytest.mark.parametrize("wrong_reward", [math.nan, math.inf])
@pytest.mark.parametrize(
    "policy", [bt.UCB1(noise=0.5), pytest.param(bt.Thompson(prior=(1, 1)), marks=pytest.mark.slow), bt.Greedy()]
)
def test_a_reward_that_is_not_finite_is_an_error(policy, wrong_reward, shortcut):
    problem = bt.define_problem(
        "strange",
        lambda size, rng: rng.random((size, 3)),
        pay_wrong_third,
        arms=3,
        rewards="unit",
        options=[wrong_reward],
    )
    with pytest.raises(bt.SimulationError, match=r"'strange' paid another for arm . at step . of run 0"):
        simulate_rows(SimulationSpec(policy, problem, 20, use_shortcut=shortcut), [[1.0]], range(5))


@bt.kernel.scalar
def pay_nan_rarely(instance, arm, pull, step, stream):
    return math.nan if pull >= 2 and bt.kernel.uniform(stream) < 0.2 else 1.0


@pytest.mark.parametrize("common", [True, False])
def test_the_step_of_a_wrong_reward_is_right_for_any_row(common):
    """The plain loop repeats the run to find the step. It must draw the random numbers of the same row."""
    problem = bt.define_problem(
        "at times", lambda size, rng: rng.random((size, 3)), pay_nan_rarely, arms=3, rewards="unit"
    )
    messages = []
    for shortcut in (True, False):
        spec = SimulationSpec(
            bt.UCB1(noise=0.5), problem, 15, seed=10, common_random_numbers=common, use_shortcut=shortcut
        )
        with pytest.raises(
            bt.SimulationError, match=r"'at times' paid another for arm . at step \d+ of run 0"
        ) as error:
            simulate_rows(spec, [[0.4]], range(1), first_row=5)
        messages.append(str(error.value))
    assert messages[0] == messages[1]


@bt.kernel.scalar
def pay_wrong_sixth(instance, arm, pull, step, stream):
    return math.inf if arm == 0 and pull == 5 else 1.0 - 0.1 * arm


@bt.kernel.scalar
def choose_second(state, setting, step, params, stream):
    return 1


@pytest.mark.parametrize("policy", [bt.define_policy("second", choose_second), bt.UCB1(noise=100)])
def test_the_unseen_reward_of_the_best_arm_is_checked(policy):
    """Realised regret draws what the best arm would have paid."""
    problem = bt.define_problem("hidden", lambda size, rng: np.tile([0.9, 0.1], (size, 1)), pay_wrong_sixth, arms=2)
    for shortcut in (True, False):
        with pytest.raises(bt.SimulationError, match="'hidden' paid another for arm 0 at step"):
            simulate_rows(
                SimulationSpec(policy, problem, 12, regret="realised", use_shortcut=shortcut), [[1.0]], range(3)
            )


@dataclasses.dataclass(frozen=True)
class SmallMemoryGreedy(bt.Greedy):
    def memory(self, arms, dims, horizon):
        return arms


@bt.kernel.scalar
def choose_first(state, setting, step, params, stream):
    return 0


class SmallMemoryPolicy(SmallMemoryGreedy):
    choose = staticmethod(choose_first)


def test_memory_bounds_are_checked_in_helpers_of_a_users_policy():
    with pytest.raises(bt.SimulationError, match="outside its memory"):
        bt.simulate(SmallMemoryPolicy(), bt.Bernoulli(arms=3), horizon=20, runs=5)


@bt.kernel.scalar
def choose_none_later(state, setting, step, params, stream):
    return 0 if step < 5 else None


def test_a_policy_that_returns_nothing_is_an_error():
    with pytest.raises(bt.SimulationError, match="must return an arm on every path"):
        bt.simulate(CustomPolicy("silent", choose_none_later), bt.Bernoulli(arms=3), horizon=20, runs=5)


def test_a_sample_that_fails_is_an_error():
    problem = bt.define_problem("failing", lambda size, rng: 1 / 0, pay_mean, arms=3)
    with pytest.raises(bt.SimulationError, match="'failing' failed: ZeroDivisionError"):
        bt.simulate(bt.Greedy(), problem, horizon=20, runs=5)


def test_an_error_states_how_to_repeat_its_run():
    @bt.kernel.scalar
    def choose_9_rarely(state, setting, step, params, stream):
        return 9 if bt.kernel.uniform(stream) < 0.001 else 0

    policy = bt.define_policy("late", choose_9_rarely)
    with pytest.raises(bt.SimulationError) as error:
        bt.simulate(policy, bt.Bernoulli(arms=3), horizon=20, runs=500)
    run, step = (
        re.search(r"first_instance=(\d+)", str(error.value)).group(1),
        re.search(r"at step (\d+)", str(error.value)).group(1),
    )
    with pytest.raises(bt.SimulationError, match=f"at step {step} of run {run} "):
        bt.simulate(policy, bt.Bernoulli(arms=3), horizon=20, runs=1, first_instance=int(run))


@bt.kernel.scalar
def write_beyond_memory(state, setting, step, params, stream):
    state.total[setting.arms] = 1.0
    return 0


def test_writing_outside_the_memory_is_an_error():
    with pytest.raises(bt.SimulationError, match="outside its memory"):
        bt.simulate(bt.define_policy("wild", write_beyond_memory), bt.Bernoulli(arms=3), horizon=20, runs=5)


def test_wrong_means_of_a_sample_are_an_error():
    nan_means = bt.define_problem("never", lambda size, rng: rng.random((size, 2)) * np.nan, pay_mean, arms=2)
    with pytest.raises(bt.SimulationError, match="but for size=256 it returned some that are not finite"):
        bt.simulate(bt.UCB1(noise=0.5), nan_means, horizon=5, runs=2)
    problem = bt.define_problem("thin", lambda size, rng: rng.random((size, 2)), pay_mean, arms=3)
    with pytest.raises(bt.SimulationError, match=r"'thin' must return finite means of shape \(size, 3\)"):
        bt.simulate(bt.Greedy(), problem, horizon=20, runs=5)


def test_memory_bounds_are_checked_in_a_users_compiled_function():
    def read_far(instance, arm, pull, step, stream):
        return instance.means[arm + 1000]

    problem = bt.define_problem("far", lambda size, rng: rng.random((size, 2)), numba.njit(read_far), arms=2)
    with pytest.raises(bt.SimulationError, match="reached outside its memory"):
        bt.simulate(bt.Greedy(), problem, horizon=5, runs=1)


def pay_five(instance, arm, pull, step, stream):
    return 5.0


@pytest.mark.parametrize(("rewards", "message"), [("unit", "in .0, 1."), ("binary", "0 or 1")])
def test_rewards_outside_the_stated_kind_are_an_error(rewards, message):
    problem = bt.define_problem("five", lambda size, rng: rng.random((size, 3)), pay_five, arms=3, rewards=rewards)
    with pytest.raises(bt.SimulationError, match=f"rewards of 'five' must be {message}, .* but arm 0 of run 0 pays 5"):
        bt.simulate(bt.UCB1(noise=0.5), problem, [0.3], horizon=5, runs=2)
