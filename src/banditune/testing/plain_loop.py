"""Runs a policy as plain Python, without the compiler: the loop, and choices before any reward."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from banditune.core.arrays import FloatArray, allocate_aligned, copy_read_only, freeze_options
from banditune.core.errors import SimulationError
from banditune.core.policy import Setting
from banditune.core.streams import AGENT_STREAM, Stream
from banditune.simulation import loop
from banditune.simulation.bind import bind_function
from banditune.simulation.executor import Chunk
from banditune.simulation.failures import describe_failure
from banditune.simulation.instances import draw_instances
from banditune.simulation.kernel_selection import fill_slots
from banditune.simulation.simulator import NO_STOP_SIGNAL, Simulator
from banditune.simulation.spec import SimulationSpec


class PlainSimulator(Simulator):
    """Simulates chunks with the same code, which is bound and not compiled."""

    def _load_kernel(self) -> tuple[Callable[..., Any], int, int]:
        slots, floats, integers = fill_slots(self.spec)
        return bind_function(loop.simulate_block, slots)[0], floats, integers


def simulate_in_python(spec: SimulationSpec, params: Any, runs: range) -> FloatArray:
    """Simulate rows of parameters as plain Python. Return regrets as an array (rows, runs, checkpoints)."""
    rows = copy_read_only(params)
    with np.errstate(all="ignore"):  # compiled code has no warnings either
        result = PlainSimulator(spec).simulate_chunk(Chunk(rows, 0, runs), NO_STOP_SIGNAL)
    if result.failure[0]:
        raise SimulationError(describe_failure(spec, rows, runs, result.failure))
    return result.regrets


def choose_repeatedly(floats, setting, params, stream, choices):  # type: ignore[no-untyped-def]
    """Choose at successive steps without any reward, as with late feedback."""
    setting = loop.resolve_setting(setting)
    memory, scratch = loop.split_floats(floats, setting)
    state = loop.view(memory, setting)
    loop.start(state, setting)
    for step in range(len(choices)):
        choices[step] = loop.select_arm(state, scratch, setting, step, params, stream)


def choose_without_rewards(spec: SimulationSpec, row: FloatArray, steps: int) -> FloatArray:
    """Call a policy's `choose` at `steps` steps without a reward. Return the arms."""
    policy, problem = spec.policy, spec.problem
    features = draw_instances(problem, spec.seed, 0).features
    assert features is not None
    options = freeze_options(policy.options(problem.arms, problem.dims, spec.horizon))
    setting = Setting(problem.arms, problem.dims, spec.horizon, features[0], options)
    stream = Stream(*loop.compute_instance_key(spec.seed, 0), np.array([0, 0, 0, AGENT_STREAM]))  # type: ignore[call-arg, no-untyped-call]
    choices = np.full(steps, np.nan)
    slots, size, _ = fill_slots(replace(spec, use_shortcut=False))
    floats = allocate_aligned(size)
    bind_function(choose_repeatedly, slots)[0](floats, setting, copy_read_only(row), stream, choices)
    return choices
