"""Rewards that change with the step or with the pulls of their arm."""

from __future__ import annotations

import re

import numpy as np
import pytest

import banditune as bt
from banditune.core.dataflow import depends_on_argument
from banditune.problems.bernoulli_arms import draw_bernoulli_reward
from banditune.problems.beta_arms import draw_beta_reward
from banditune.problems.residual_noise import draw_gaussian_reward, draw_residual_reward
from banditune.problems.reward_table import read_table_reward
from banditune.simulation.fixed_arms import estimate_fixed_arm_advantage
from banditune.simulation.instances import draw_instances
from banditune.study.requests import build_spec
from helpers.settings import group_settings


@bt.kernel.scalar
def exchange_arms(instance, arm, pull, step, stream):
    """The arms change places after half of the steps."""
    return bt.kernel.bernoulli(stream, instance.means[arm if step < 500 else 1 - arm])


@bt.kernel.scalar
def pay_half(instance, arm, pull, step, stream):
    return 0.5 * bt.kernel.bernoulli(stream, instance.means[arm]) + 0.0 * step


@bt.kernel.scalar
def pay_100_times(instance, arm, pull, step, stream):
    """Arm 0 pays 1 for 100 pulls, then nothing; arm 1 always pays 1/2."""
    return (1.0 if pull < 100 else 0.0) if arm == 0 else 0.5


@bt.kernel.scalar
def read_cursor(instance, arm, pull, step, stream):
    return 1.0 if stream.cursor[1] < 100 else 0.0


@bt.kernel.scalar
def pay_by_helper(instance, arm, pull, step, stream):
    return pay_100_times(instance, arm, pull, step, stream)


def sample_two_arms(size, rng):
    return np.tile([0.7, 0.3], (size, 1))


def define_problem(reward, **options):
    return bt.define_problem("mine", sample_two_arms, reward, arms=2, **options)


SETTINGS = {"horizon": 1000, "runs": 5}


@pytest.mark.parametrize("reward", [exchange_arms, pay_half])
def test_expected_regret_is_refused_where_a_reward_reads_the_step(reward):
    text = "`reward` of the problem 'mine' reads `step`; use regret='realised', which compares with one fixed arm"
    own = define_problem(reward, rewards="unit")
    for verb in (bt.simulate, bt.curve, bt.tune):
        with pytest.raises(bt.InvalidRequest, match=text):
            verb(bt.UCB1(noise=0.5), own, horizon=1000)
    with pytest.raises(bt.InvalidRequest, match=text):
        bt.compare([bt.UCB1(noise=0.5), bt.Greedy()], own, horizon=1000)
    assert np.isfinite(bt.simulate(bt.UCB1(noise=0.5), own, **group_settings(regret="realised", **SETTINGS))).all()


@pytest.mark.parametrize("regret", ["expected", "realised"])
@pytest.mark.parametrize("reward", [pay_100_times, read_cursor, pay_by_helper])
def test_both_regrets_are_refused_where_a_reward_reads_the_pull(reward, regret):
    with pytest.raises(
        bt.InvalidRequest, match=r"must not depend on how often it was pulled.*Let the reward change with `step`"
    ):
        bt.simulate(
            bt.UCB1(noise=0.5), define_problem(reward, rewards="unit"), **group_settings(regret=regret, **SETTINGS)
        )


def test_a_result_states_that_it_compares_with_one_fixed_arm():
    own, options = define_problem(exchange_arms, rewards="binary"), {"horizon": 1000, "regret": "realised"}
    tuner = bt.tuners.Uniform()
    for result in (
        bt.tune(bt.UCB1(noise=0.5), own, **group_settings(tuner=tuner, budget=60, validate=50, **options)),
        bt.curve(bt.UCB1(noise=0.5), own, [0.1, 1], **group_settings(runs=20, **options)),
        bt.compare(
            [bt.UCB1(noise=0.5), bt.Greedy()], own, **group_settings(tuner=tuner, budget=60, validate=50, **options)
        ),
    ):
        assert "horizon 1,000, regret against one fixed arm\n" in str(result)
        assert bt.results.from_json(result.to_json()).setup.compared_with == "one fixed arm"
    curve = bt.curve(
        bt.UCB1(noise=0.5),
        bt.problems.two_point_mixture(),
        [0.1, 1],
        horizon=10,
        runs=5,
        simulation=bt.Simulation(regret="realised"),
    )
    assert "fixed arm" not in str(curve)
    assert curve.setup.compared_with is None


@bt.kernel.scalar
def exchange_arms_soon(instance, arm, pull, step, stream):
    """The arms change places after a tenth."""
    return bt.kernel.bernoulli(stream, instance.means[arm if step < 100 else 1 - arm])


def test_a_notice_states_how_much_more_another_fixed_arm_pays_than_the_one_that_regret_compares_with():
    options = {"horizon": 1000, "regret": "realised", "runs": 5}
    late, fair = (
        bt.curve(bt.UCB1(noise=0.5), define_problem(reward, rewards="binary"), [1.0], **group_settings(**options))
        for reward in (exchange_arms_soon, exchange_arms)
    )
    (notice,) = late.notices
    assert notice.code == "better-fixed-arm"
    # Arm 1 pays 0.3 for 100 steps and 0.7 for 900, the other one the reverse: 660 and 340.
    low, high = (float(number) for number in re.search(r"pays 3\d\d\S* \(95%: (\S+) to (\S+)\)", notice).groups())
    assert low < 320 < high
    assert high - low < 20
    assert fair.notices == ()


def test_the_best_arm_of_the_first_rows_of_tables_is_seen_in_every_row():
    tables = np.random.default_rng(1).random((20, 60, 5))
    own = bt.RewardTable(tables)
    for horizon in (60, 30):
        spec = build_spec(bt.Greedy(), own, horizon=horizon)
        means = draw_instances(own, 0, 0).means
        # The table of each instance is the one with these means.
        found = np.abs(tables.mean(axis=1)[None] - means[:, None]).sum(axis=2).argmin(axis=1)
        totals = tables[found, :horizon].sum(axis=1)
        exact = totals.max(axis=1) - totals[np.arange(len(means)), means.argmax(axis=1)]
        ahead = horizon * estimate_fixed_arm_advantage(spec)
        assert ahead.mean() < exact.mean() + 4 * ahead.std() / 16
        assert (ahead.mean() > 4 * ahead.std() / 16) == (exact.mean() > 0) == (horizon == 30)


def test_what_changes_is_not_assumed_to_stay():
    own = bt.RewardTable(np.random.default_rng(0).random((8, 30, 2)))
    changing = str(bt.curve(bt.Greedy(), own, horizon=30, runs=5))
    assert "arms do not change" not in changing
    assert "future problems are like those simulated, with the same changes" in changing
    constant = str(bt.curve(bt.Greedy(), bt.RewardTable(np.random.default_rng(0).random((30, 2))), horizon=30, runs=5))
    assert "arms do not change, and future problems are like those simulated; see" in constant


def test_a_negative_regret_advises_another_tuner():
    own = define_problem(exchange_arms, rewards="binary")
    result = bt.tune(
        bt.UCB1(noise=0.5),
        own,
        horizon=1000,
        budget=300,
        search=bt.Search(validate=250),
        simulation=bt.Simulation(regret="realised"),
    )
    notices = " ".join(result.notices)
    assert "a regret below 0, here -1" in notices
    assert "more was earned than by one fixed arm" in notices
    assert "Use another tuner, such as uniform" in notices
    assert "raise the budget" not in notices
    uniform = bt.tune(
        bt.UCB1(noise=0.5),
        own,
        horizon=1000,
        budget=300,
        search=bt.Search(tuner=bt.tuners.Uniform(), validate=250),
        simulation=bt.Simulation(regret="realised"),
    )
    assert uniform.regret.high < result.regret.low - 50
    assert "another tuner" not in " ".join(uniform.notices)


def test_ordered_tables_have_changing_means_and_shuffled_tables_constant_ones():
    rows = np.random.default_rng(0).random((30, 2))
    in_order, shuffled = bt.RewardTable([rows, rows]), bt.RewardTable(rows)
    assert (in_order.has_step_dependent_means, shuffled.has_step_dependent_means) == (True, False)
    assert build_spec(bt.Greedy(), in_order, horizon=30).regret == "realised"
    assert build_spec(bt.Greedy(), shuffled, horizon=30).regret == "expected"


class TableWithOtherRewards(bt.RewardTable):
    """A table with other rewards."""

    reward = staticmethod(exchange_arms)


def test_a_table_with_changing_rewards_has_changing_means():
    own = TableWithOtherRewards(np.random.default_rng(0).random((30, 2)), shuffled=True)
    assert own.has_step_dependent_means
    with pytest.raises(bt.InvalidRequest, match="reads `step`"):
        build_spec(bt.Greedy(), own, horizon=30)


PACKAGE_REWARDS = [draw_bernoulli_reward, draw_beta_reward, draw_gaussian_reward, draw_residual_reward]


@pytest.mark.parametrize("reward", PACKAGE_REWARDS, ids=lambda reward: reward.__name__)
def test_rewards_of_the_package_use_the_pull_as_an_address_only(reward):
    def wrapped(instance, arm, pull, step, stream):
        return reward(instance, arm, pull, step, stream)

    for function in (reward, wrapped):
        problem = define_problem(function)
        assert (problem.has_step_dependent_means, problem.has_pull_dependent_means, problem.has_step_free_rewards) == (
            False,
            False,
            True,
        )
    assert depends_on_argument(read_table_reward, "step")


def ignore_second(first, second):
    return first


def read_second(first, second=1):
    return first + second


def pass_to_ignoring(x):
    return ignore_second(1, x)


def pass_by_name_to_ignoring(x):
    return ignore_second(second=x, first=1)


def pass_to_reading(x):
    return read_second(1, x)


def rename_only(x):
    y = x
    return ignore_second(1, y)


def rename_and_read(x):
    y = x
    return y + 1


def pass_a_sum(x):
    return ignore_second(1, x + 1)


def pass_to_either(x):
    helper = ignore_second if len("ab") == 2 else read_second
    return helper(1, x)


def decide(x):
    if x:
        return 1
    return 2


def store_in_array(x):
    table = np.zeros(2)
    table[0] = x
    return table[0]


def read_item(x):
    return np.zeros(9)[x]


def loop(x):
    total = 0
    for _ in range(x):
        total += 1
    return total


def call_int(x):
    return int(x)


def unpack(x):
    return ignore_second(*(1, x))


def read_in_closure(x):
    def inner():
        return x

    return inner()


def recurse(x):
    return recurse(x)


@pytest.mark.parametrize(
    "function",
    [ignore_second, pass_to_ignoring, pass_by_name_to_ignoring, rename_only],
    ids=lambda function: function.__name__,
)
def test_an_unused_argument_is_not_read(function):
    assert not depends_on_argument(function, function.__code__.co_argcount - 1)


@pytest.mark.parametrize(
    "function",
    [
        read_second,
        pass_to_reading,
        rename_and_read,
        pass_a_sum,
        pass_to_either,
        decide,
        store_in_array,
        read_item,
        loop,
        call_int,
        unpack,
        read_in_closure,
        recurse,
    ],
    ids=lambda function: function.__name__,
)
def test_an_argument_that_may_matter_is_read(function):
    assert depends_on_argument(function, function.__code__.co_argcount - 1)


def test_functions_without_source_may_read_an_argument():
    assert depends_on_argument(int, 0)
    assert depends_on_argument(lambda *arguments: 1, 0)
    assert depends_on_argument(ignore_second, 5)
