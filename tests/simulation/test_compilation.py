"""Code that cannot be compiled, or that writes to what it may only read."""

from __future__ import annotations

import pytest

import banditune as bt


@bt.kernel.scalar
def write_params(state, setting, step, params, stream):
    params[0] = 1.0
    return 0


def test_parameters_cannot_be_written():
    with pytest.raises(bt.SimulationError, match="cannot be compiled"):
        bt.simulate(bt.define_policy("writer", write_params), bt.Bernoulli(arms=3), horizon=20, runs=5)


@bt.kernel.scalar
def choose_by_list(state, setting, step, params, stream):
    return [state].index(step)  # a line to be named


@bt.kernel.scalar
def uses_no_field(state, setting, step, params, stream):
    return int(state.shift[0])


@pytest.mark.parametrize(
    ("choose", "reason"), [(choose_by_list, ""), (uses_no_field, "Unknown attribute 'shift' of type")]
)
def test_code_that_cannot_be_compiled_is_an_error_of_one_line(choose, reason):
    with pytest.raises(
        bt.SimulationError,
        match=rf"'listy' on the problem 'bernoulli' cannot be compiled: {reason}.* in test_compilation.py, line",
    ) as raised:
        bt.simulate(bt.define_policy("listy", choose), bt.Bernoulli(arms=3), horizon=20, runs=5)
    # Numba's own colors, and the passes of the compiler that failed, say nothing to a user.
    assert "\x1b" not in str(raised.value)
    assert "nopython" not in str(raised.value)
