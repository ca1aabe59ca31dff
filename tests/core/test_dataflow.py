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
def changing_reward(instance, arm, pull, step, stream):
    return 1.0 if (step < 50) == (arm == 0) else 0.0


@pytest.mark.parametrize("opname", ["LOAD_FAST", "LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW"])
@pytest.mark.parametrize("name", ["step", "pull"])
def test_the_step_is_seen_where_one_instruction_loads_two_names(monkeypatch, opname, name):
    """Python 3.13 and later join two loads; the older ones, with which this may run, do not."""
    argval = name if opname == "LOAD_FAST" else (name, "stream")
    monkeypatch.setattr(dis, "get_instructions", lambda code: [SimpleNamespace(opname=opname, argval=argval)])
    assert loads_variable.__wrapped__(changing_reward.__code__, "step") == (name == "step")


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
def test_whether_a_reward_looks_at_its_fourth_argument_is_seen_in_its_code(reward, reads):
    assert depends_on_step(reward) == reads
