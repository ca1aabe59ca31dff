"""Policies that a user defines by an index: what they declare, and how errors name it."""

from __future__ import annotations

import math

import numpy as np
import pytest

import banditune as bt
from banditune.core.descriptions import describe

GAMMA = bt.Parameter("gamma", 0, 2, textbook=1)


@bt.kernel.scalar
def rising_index(arm, setting, step, params):
    if arm.pulls == 0.0:
        return math.inf
    return arm.total / arm.pulls + params[0] * math.sqrt(math.log(step + 1.0) / arm.pulls)


def test_an_error_on_a_change_has_plain_numbers():
    policy = bt.define_index_policy("mine", rising_index, parameters=GAMMA, in_step="constant")
    with pytest.raises(bt.InvalidRequest, match=r"rises from [\d.]+ at step \d+ to [\d.]+ at step \d+") as raised:
        policy.check(np.empty((1, 0, 4)), 120)
    assert "np." not in str(raised.value)


@bt.kernel.scalar
def choose_first(state, setting, step, params, stream):
    return 0


@pytest.mark.parametrize(
    "define",
    [
        lambda rewards: bt.define_index_policy("mine", rising_index, in_step="rising", rewards=rewards),
        lambda rewards: bt.define_policy("mine", choose_first, rewards=rewards),
    ],
    ids=["index", "choose"],
)
def test_problems_with_other_rewards_than_declared_are_refused(define):
    for rewards, refused in (("unit", bt.Gaussian(arms=3)), ("binary", bt.BetaRewards(arms=3))):
        policy = define(rewards)
        with pytest.raises(bt.InvalidRequest, match="mine needs rewards"):
            bt.simulate(policy, refused, horizon=20, runs=2)
    with pytest.raises(bt.InvalidRequest, match="`rewards` must be one of"):
        define("bounded")


def test_declared_rewards_are_part_of_the_description():
    described = [describe(bt.define_policy("mine", choose_first, rewards=kind)) for kind in ("real", "unit")]
    assert [description.get("rewards") for description in described] == [None, "unit"]
