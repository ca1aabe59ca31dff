"""Policies that a user defines: what they must define and return."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import banditune as bt


@dataclasses.dataclass(frozen=True)
class Hollow(bt.kernel.Policy):
    name = "hollow"


def test_what_a_policy_lacks_is_named():
    with pytest.raises(bt.InvalidRequest, match="'hollow' must define view, start, choose, update"):
        bt.simulate(Hollow(), bt.Bernoulli(arms=3), horizon=12, runs=3)
    with pytest.raises(bt.InvalidRequest, match="Hollow must define `memory"):
        Hollow().memory(3, 0, 100)


@bt.kernel.scalar
def falls_off(state, setting, step, params, stream):
    return 0 if step < 5 else None


@bt.kernel.scalar
def forgets(state, setting, step, params, stream):
    state.pulls[0] += 1


@bt.kernel.scalar
def takes_four(state, setting, step, params):
    return 0


@bt.kernel.scalar
def returns_at_last(state, setting, step, params, stream):
    while True:
        if bt.kernel.uniform(stream) < 0.5:
            return 1


@bt.kernel.scalar
def from_numpy(state, setting, step, params, stream):
    return np.random.randint(2)


def test_a_policy_that_forgets_its_arm_or_takes_something_else_is_refused_when_it_is_made():
    for silent in (forgets, falls_off):
        with pytest.raises(bt.InvalidRequest, match=r"must return an arm on every path, .* may end without"):
            bt.define_policy("mine", silent)
    with pytest.raises(
        bt.InvalidRequest, match=r"`choose` must take \(state, .*, stream\), but 'takes_four' takes \(state,"
    ):
        bt.kernel.define_ridge_policy("mine", takes_four)
    with pytest.raises(bt.InvalidRequest, match=r"`reward` must take \(instance, .*, stream\), but 'takes_four' takes"):
        bt.define_problem("mine", lambda size, rng: rng.random((size, 2)), takes_four, arms=2)
    assert bt.define_policy("mine", returns_at_last).choose is returns_at_last


def test_a_policy_that_draws_from_elsewhere_is_refused():
    with pytest.raises(bt.InvalidRequest, match=r"must come from `stream`, .* but 'from_numpy' uses `np.random`"):
        bt.simulate(bt.define_policy("mine", from_numpy), bt.Bernoulli(arms=2), horizon=5, runs=2)
