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
def eleventh_arm(state, setting, step, params, stream):
    return setting.arms if step == 7 else 0


@bt.kernel.scalar
def not_an_arm(state, setting, step, params, stream):
    return math.log(state.pulls[0] + 1.0) * math.inf if step == 3 else 0.0


@bt.kernel.scalar
def half_an_arm(state, setting, step, params, stream):
    return 0.5


@bt.kernel.scalar
def below_zero(state, setting, step, params, stream):
    return -1


@pytest.mark.parametrize(
    ("choose", "culprit", "step"),
    [(eleventh_arm, "10", 7), (not_an_arm, "inf", 3), (half_an_arm, "0.5", 0), (below_zero, "-1", 0)],
)
def test_a_bad_arm_is_named_with_the_run_and_step(choose, culprit, step):
    policy = bt.define_policy("broken", choose)
    with pytest.raises(bt.SimulationError) as error:
        bt.simulate(policy, bt.Bernoulli(arms=10), horizon=20, runs=300, seed=5)
    message = str(error.value)
    assert "from 0 to 9" in message
    assert f"'broken' chose {culprit} at step {step} of run 0" in message
    assert "seed=5" in message


@bt.kernel.scalar
def pays_its_mean(instance, arm, pull, step, stream):
    return instance.means[arm]


@bt.kernel.scalar
def strange_reward(instance, arm, pull, step, stream):
    return instance.options[0] if pull == 2 else 1.0


@pytest.mark.parametrize("shortcut", [True, False])
@pytest.mark.parametrize("paid", [math.nan, math.inf])
@pytest.mark.parametrize(
    "policy", [bt.UCB1(noise=0.5), pytest.param(bt.Thompson(prior=(1, 1)), marks=pytest.mark.slow), bt.Greedy()]
)
def test_a_reward_that_is_not_a_number_is_named(policy, paid, shortcut):
    problem = bt.define_problem(
        "strange", lambda size, rng: rng.random((size, 3)), strange_reward, arms=3, rewards="unit", options=[paid]
    )
    with pytest.raises(bt.SimulationError, match=r"'strange' paid another for arm . at step . of run 0"):
        simulate_rows(SimulationSpec(policy, problem, 20, use_shortcut=shortcut), [[1.0]], range(5))


@bt.kernel.scalar
def sometimes_strange(instance, arm, pull, step, stream):
    return math.nan if pull >= 2 and bt.kernel.uniform(stream) < 0.2 else 1.0


@pytest.mark.parametrize("common", [True, False])
def test_a_reward_that_is_not_a_number_is_named_with_its_step_whatever_the_noise(common):
    """The plain loop, which plays the run again to find the step, must draw the noise of the same row."""
    problem = bt.define_problem(
        "at times", lambda size, rng: rng.random((size, 3)), sometimes_strange, arms=3, rewards="unit"
    )
    told = []
    for shortcut in (True, False):
        spec = SimulationSpec(
            bt.UCB1(noise=0.5), problem, 15, seed=10, common_random_numbers=common, use_shortcut=shortcut
        )
        with pytest.raises(
            bt.SimulationError, match=r"'at times' paid another for arm . at step \d+ of run 0"
        ) as error:
            simulate_rows(spec, [[0.4]], range(1), first_row=5)
        told.append(str(error.value))
    assert told[0] == told[1]


@bt.kernel.scalar
def reward_of_a_bad_best_arm(instance, arm, pull, step, stream):
    return math.inf if arm == 0 and pull == 5 else 1.0 - 0.1 * arm


@bt.kernel.scalar
def never_the_best(state, setting, step, params, stream):
    return 1


@pytest.mark.parametrize("policy", [bt.define_policy("second", never_the_best), bt.UCB1(noise=100)])
def test_a_reward_that_was_not_seen_is_checked_too(policy):
    """Realised regret draws what the best arm would have paid."""
    problem = bt.define_problem(
        "hidden", lambda size, rng: np.tile([0.9, 0.1], (size, 1)), reward_of_a_bad_best_arm, arms=2
    )
    for shortcut in (True, False):
        with pytest.raises(bt.SimulationError, match="'hidden' paid another for arm 0 at step"):
            simulate_rows(
                SimulationSpec(policy, problem, 12, regret="realised", use_shortcut=shortcut), [[1.0]], range(3)
            )


@dataclasses.dataclass(frozen=True)
class Cramped(bt.Greedy):
    def memory(self, arms, dims, horizon):
        return arms


@bt.kernel.scalar
def first_arm(state, setting, step, params, stream):
    return 0


class CrampedOwn(Cramped):
    choose = staticmethod(first_arm)


def test_helpers_are_checked_too_in_a_users_policy():
    with pytest.raises(bt.SimulationError, match="outside its memory"):
        bt.simulate(CrampedOwn(), bt.Bernoulli(arms=3), horizon=20, runs=5)


@bt.kernel.scalar
def falls_off(state, setting, step, params, stream):
    return 0 if step < 5 else None


def test_a_policy_that_returns_nothing_is_named():
    with pytest.raises(bt.SimulationError, match="must return an arm on every path"):
        bt.simulate(CustomPolicy("silent", falls_off), bt.Bernoulli(arms=3), horizon=20, runs=5)


def test_a_sample_that_fails_is_named():
    problem = bt.define_problem("failing", lambda size, rng: 1 / 0, pays_its_mean, arms=3)
    with pytest.raises(bt.SimulationError, match="'failing' failed: ZeroDivisionError"):
        bt.simulate(bt.Greedy(), problem, horizon=20, runs=5)


def test_a_fault_can_be_repeated_from_what_it_says():
    @bt.kernel.scalar
    def breaks_later(state, setting, step, params, stream):
        return 9 if bt.kernel.uniform(stream) < 0.001 else 0

    policy = bt.define_policy("late", breaks_later)
    with pytest.raises(bt.SimulationError) as error:
        bt.simulate(policy, bt.Bernoulli(arms=3), horizon=20, runs=500)
    run, step = (
        re.search(r"first_instance=(\d+)", str(error.value)).group(1),
        re.search(r"at step (\d+)", str(error.value)).group(1),
    )
    with pytest.raises(bt.SimulationError, match=f"at step {step} of run {run} "):
        bt.simulate(policy, bt.Bernoulli(arms=3), horizon=20, runs=1, first_instance=int(run))


@bt.kernel.scalar
def reaches_out(state, setting, step, params, stream):
    state.total[setting.arms] = 1.0
    return 0


def test_a_policy_that_writes_outside_its_memory_is_stopped():
    with pytest.raises(bt.SimulationError, match="outside its memory"):
        bt.simulate(bt.define_policy("wild", reaches_out), bt.Bernoulli(arms=3), horizon=20, runs=5)


def test_a_problem_with_wrong_means_is_named():
    never = bt.define_problem("never", lambda size, rng: rng.random((size, 2)) * np.nan, pays_its_mean, arms=2)
    with pytest.raises(bt.SimulationError, match="but for size=256 it returned some that are not finite"):
        bt.simulate(bt.UCB1(noise=0.5), never, horizon=5, runs=2)
    problem = bt.define_problem("thin", lambda size, rng: rng.random((size, 2)), pays_its_mean, arms=3)
    with pytest.raises(bt.SimulationError, match=r"'thin' must return finite means of shape \(size, 3\)"):
        bt.simulate(bt.Greedy(), problem, horizon=20, runs=5)


def test_a_users_compiled_function_is_checked_too():
    def far(instance, arm, pull, step, stream):
        return instance.means[arm + 1000]

    problem = bt.define_problem("far", lambda size, rng: rng.random((size, 2)), numba.njit(far), arms=2)
    with pytest.raises(bt.SimulationError, match="reached outside its memory"):
        bt.simulate(bt.Greedy(), problem, horizon=5, runs=1)


def pays_five(instance, arm, pull, step, stream):
    return 5.0


@pytest.mark.parametrize(("rewards", "message"), [("unit", "in .0, 1."), ("binary", "0 or 1")])
def test_rewards_that_are_not_what_the_problem_says_are_named(rewards, message):
    problem = bt.define_problem("five", lambda size, rng: rng.random((size, 3)), pays_five, arms=3, rewards=rewards)
    with pytest.raises(bt.SimulationError, match=f"rewards of 'five' must be {message}, .* but arm 0 of run 0 pays 5"):
        bt.simulate(bt.UCB1(noise=0.5), problem, [0.3], horizon=5, runs=2)
