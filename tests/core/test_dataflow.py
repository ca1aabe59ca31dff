"""Whether a reward function reads the step."""

from __future__ import annotations

import dis
import math
from types import SimpleNamespace

import pytest

import banditune as bt
from banditune.core.dataflow import loads_variable
from banditune.core.problem import depends_on_step


@bt.kernel.scalar
def pay_by_step(instance, arm, pull, step, stream):
    return 1.0 if (step < 50) == (arm == 0) else 0.0


@pytest.mark.parametrize("opname", ["LOAD_FAST", "LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW"])
@pytest.mark.parametrize("name", ["step", "pull"])
def test_a_variable_is_found_where_one_instruction_loads_two(monkeypatch, opname, name):
    """Python 3.13 and later join two loads in one instruction."""
    argval = name if opname == "LOAD_FAST" else (name, "stream")
    monkeypatch.setattr(dis, "get_instructions", lambda code: [SimpleNamespace(opname=opname, argval=argval)])
    assert loads_variable.__wrapped__(pay_by_step.__code__, "step") == (name == "step")


@pytest.mark.parametrize(
    ("reward", "reads"),
    [
        (lambda instance, arm, pull, step, stream: pull + step, True),
        (lambda instance, arm, pull, step, stream: math.pow(step, stream), True),
        (lambda instance, arm, pull, step, stream: pull + arm, False),
        (lambda instance, arm, pull, time, stream: math.sin(time), True),
        (lambda instance, arm, pull, time, step: step, False),
        (lambda *told: told[0], True),
        (math.sin, True),
    ],
)
def test_it_is_known_from_its_code_whether_a_reward_depends_on_the_step(reward, reads):
    assert depends_on_step(reward) == reads


def ignore(step):
    return 1.0


def test_a_helper_that_is_defined_again_is_analysed_again(monkeypatch):
    def pay(instance, arm, pull, step, stream):
        return ignore(step)

    assert not depends_on_step(pay)
    monkeypatch.setitem(globals(), "ignore", lambda step: step * 1.0)
    assert depends_on_step(pay)
