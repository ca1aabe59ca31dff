"""A parameter without an effect is named, instead of stating its best value."""

from __future__ import annotations

import pytest

import banditune as bt
from helpers.settings import group_settings

PROBLEM = bt.Bernoulli(arms=3)
MESSAGE = "`x` does not change the decisions of the policy: all "


@bt.kernel.scalar
def choose_without_parameter(state, setting, step, params, stream):
    return bt.kernel.draw_arm(state, stream) if bt.kernel.uniform(stream) < 0.2 else bt.kernel.argmax_mean(state)


@bt.kernel.scalar
def choose_by_parameter(state, setting, step, params, stream):
    return bt.kernel.draw_arm(state, stream) if bt.kernel.uniform(stream) < params[0] else bt.kernel.argmax_mean(state)


@bt.kernel.scalar
def choose_by_parameter_rarely(state, setting, step, params, stream):
    probability = 0.9 if params[0] > 0.5 and step == 30 and bt.kernel.uniform(stream) < 0.05 else 0.2
    return (
        bt.kernel.draw_arm(state, stream) if bt.kernel.uniform(stream) < probability else bt.kernel.argmax_mean(state)
    )


@bt.kernel.scalar
def choose_by_parameter_in_a_part(state, setting, step, params, stream):
    probability = 0.9 if 0.4 < params[0] < 0.45 else 0.2
    return (
        bt.kernel.draw_arm(state, stream) if bt.kernel.uniform(stream) < probability else bt.kernel.argmax_mean(state)
    )


def make_policy(choose):
    return bt.define_policy("own", choose, parameters=[bt.Parameter("x", 0, 1, textbook=1)])


def is_named(result):
    return any(MESSAGE in warning for warning in result.notices)


@pytest.mark.parametrize("common", [True, False])
def test_a_parameter_that_is_never_read_is_named(common):
    arguments = {"horizon": 60, "common_random_numbers": common}
    tuning = bt.tune(
        make_policy(choose_without_parameter), PROBLEM, **group_settings(budget=100, validate=50, **arguments)
    )
    (message,) = [warning for warning in tuning.notices if MESSAGE in warning]
    assert "values tried had the same regret on the same 1,000 instances" in message
    assert "20 values across the range on 64 of them" in message
    assert "fewer than 3 of 1,000 runs" in message
    assert tuning.posterior is None
    assert "95% sure: nothing" not in repr(tuning)
    assert ("exactly as much as the textbook default x = 1." in repr(tuning)) == common
    assert tuning.notices == (message,)
    assert is_named(
        bt.curve(make_policy(choose_without_parameter), PROBLEM, [0.1, 0.2], **group_settings(runs=50, **arguments))
    )
    comparison = bt.compare(
        [make_policy(choose_without_parameter), bt.EpsilonGreedy()],
        PROBLEM,
        **group_settings(budget=100, validate=50, **arguments),
    )
    (message,) = [warning for warning in comparison.notices if MESSAGE in warning]
    assert message.startswith("own: ")


@pytest.mark.parametrize("choose", [choose_by_parameter, choose_by_parameter_rarely, choose_by_parameter_in_a_part])
def test_a_parameter_with_an_effect_is_not_named(choose):
    """Also one that matters in a few runs of a hundred, or in a small part of its range."""
    tuning = bt.tune(make_policy(choose), PROBLEM, horizon=60, budget=100, search=bt.Search(validate=400))
    assert not is_named(tuning)
    assert tuning.posterior is not None
    assert not is_named(bt.curve(make_policy(choose), PROBLEM, runs=400, horizon=60))


@pytest.mark.parametrize("policy", [bt.UCB1(noise=0.5), bt.Thompson(prior=(1, 1)), bt.ExploreThenCommit()])
def test_parameters_of_the_package_are_not_named(policy):
    assert not is_named(bt.curve(policy, PROBLEM, [1, 2], runs=100, horizon=60))


def test_with_equal_arms_the_parameter_is_not_named():
    """All choices have regret 0. That shows nothing about the parameter."""
    equal = bt.Mixture([(0.5, 0.5, 0.5)])
    tuning = bt.tune(make_policy(choose_by_parameter), equal, horizon=60, budget=100, search=bt.Search(validate=50))
    assert not is_named(tuning)
    assert any(
        "regret 0 on the same 1,000 instances, so the parameter need not be tuned" in warning
        for warning in tuning.notices
    )


def test_a_policy_without_parameters_has_none_to_name():
    assert bt.curve(bt.Greedy(), PROBLEM, runs=10, horizon=60).notices == ()


def test_few_instances_raise_no_false_alarm():
    """Two instances would often show no effect of a parameter that matters in a few runs of a hundred."""
    for seed in range(10):
        assert not is_named(
            bt.tune(
                make_policy(choose_by_parameter_rarely),
                PROBLEM,
                horizon=60,
                budget=100,
                seed=seed,
                search=bt.Search(validate=2),
            )
        )
