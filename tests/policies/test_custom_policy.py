"""Policies that a user defines: what they must define and return."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import banditune as bt


@dataclasses.dataclass(frozen=True)
class EmptyPolicy(bt.kernel.Policy):
    name = "hollow"


def test_missing_functions_of_a_policy_are_named():
    with pytest.raises(bt.InvalidRequest, match="'hollow' must define view, start, choose, update"):
        bt.simulate(EmptyPolicy(), bt.Bernoulli(arms=3), horizon=12, runs=3)
    with pytest.raises(bt.InvalidRequest, match="EmptyPolicy must define `memory"):
        EmptyPolicy().memory(3, 0, 100)


@bt.kernel.scalar
def choose_none_later(state, setting, step, params, stream):
    return 0 if step < 5 else None


@bt.kernel.scalar
def choose_nothing(state, setting, step, params, stream):
    state.pulls[0] += 1


@bt.kernel.scalar
def choose_with_four_arguments(state, setting, step, params):
    return 0


@bt.kernel.scalar
def choose_in_a_loop(state, setting, step, params, stream):
    while True:
        if bt.kernel.uniform(stream) < 0.5:
            return 1


@bt.kernel.scalar
def choose_by_numpy(state, setting, step, params, stream):
    return np.random.randint(2)


def test_a_wrong_choose_is_refused_when_the_policy_is_defined():
    for choose in (choose_nothing, choose_none_later):
        with pytest.raises(bt.InvalidRequest, match=r"must return an arm on every path, .* may end without"):
            bt.define_policy("mine", choose)
    with pytest.raises(
        bt.InvalidRequest,
        match=r"`choose` must take \(state, .*, stream\), but 'choose_with_four_arguments' takes \(state,",
    ):
        bt.kernel.define_ridge_policy("mine", choose_with_four_arguments)
    with pytest.raises(
        bt.InvalidRequest, match=r"`reward` must take \(instance, .*, stream\), but 'choose_with_four_arguments' takes"
    ):
        bt.define_problem("mine", lambda size, rng: rng.random((size, 2)), choose_with_four_arguments, arms=2)
    assert bt.define_policy("mine", choose_in_a_loop).choose is choose_in_a_loop


def test_a_policy_that_draws_from_numpy_is_refused():
    with pytest.raises(bt.InvalidRequest, match=r"must come from `stream`, .* but 'choose_by_numpy' uses `np.random`"):
        bt.simulate(bt.define_policy("mine", choose_by_numpy), bt.Bernoulli(arms=2), horizon=5, runs=2)
