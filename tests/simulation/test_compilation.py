"""Code that cannot be compiled, or that writes to what it may only read."""

from __future__ import annotations

import pytest

import banditune as bt


@bt.kernel.scalar
def writes_params(state, setting, step, params, stream):
    params[0] = 1.0
    return 0


def test_what_a_policy_is_told_it_cannot_change():
    with pytest.raises(bt.SimulationError, match="cannot be compiled"):
        bt.simulate(bt.define_policy("writer", writes_params), bt.Bernoulli(arms=3), horizon=20, runs=5)


@bt.kernel.scalar
def uses_a_list(state, setting, step, params, stream):
    return [state].index(step)  # a line to be named


def test_code_that_cannot_be_compiled_is_one_sentence_with_the_policy():
    with pytest.raises(
        bt.SimulationError,
        match=r"'listy' on the problem 'bernoulli' cannot be compiled: .* in test_compilation.py, line",
    ):
        bt.simulate(bt.define_policy("listy", uses_a_list), bt.Bernoulli(arms=3), horizon=20, runs=5)
