"""Checks custom problems and policies before their first run.

Instances must depend only on the seed. Rewards must be of the stated kind and have the stated means. A policy must start
every run with the same memory. Problems and policies of this package are tested instead.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from banditune.core.arrays import FloatArray, allocate_aligned, freeze_options
from banditune.core.descriptions import find_own_code
from banditune.core.errors import InvalidRequest, SimulationError
from banditune.core.policy import Setting
from banditune.core.problem import Instance, Problem
from banditune.core.scalar import is_package_code
from banditune.core.streams import REWARD_STREAM, Stream, seek
from banditune.simulation.bind import bind_function
from banditune.simulation.instances import draw_instances
from banditune.simulation.kernel_selection import fill_dims_slots
from banditune.simulation.loop import compute_instance_key, start_state, view_unstarted_state
from banditune.simulation.mean_test import REWARD_KINDS, MeanTestResult, check_stated_means, describe_wrong_reward
from banditune.simulation.spec import SimulationSpec

SAMPLE_SIZE = 4
"""Numbers of instances, arms and pulls that are checked."""


SAMPLE_SECONDS = 0.1
"""The number of seconds after which checks of slow rewards end."""


REMEMBERED_PROBLEMS = 64
"""The number of correct problems whose results are kept."""


_passed: OrderedDict[tuple[Any, ...], MeanTestResult | None] = OrderedDict()
"""Results of correct problems, by a key of all that they depend on. Each problem is checked once per process."""


def check_policy_and_problem(spec: SimulationSpec) -> None:
    """Raise an error if a custom policy or problem violates its contract."""
    check_start_writes_memory(spec)
    check_custom_problem(spec)


def check_custom_problem(spec: SimulationSpec) -> MeanTestResult | None:
    """Raise an error if a custom problem violates its contract. Return the test of its means, or None without one."""
    if find_own_code(spec.problem) is None:
        return None
    key = _make_key(spec)
    if key is None or key not in _passed:
        first, second = check_sampled_instances(spec.problem, spec.seed)
        check_drawn_rewards(spec, first)
        # Realised regret, too, compares with the arm with the highest mean. But it allows means that change with the step,
        # which a problem does not state.
        steady = spec.regret == "expected" or not spec.problem.has_step_dependent_means
        result = check_stated_means(spec, first, second) if steady else None
        if key is None:
            return result
        _passed[key] = result
        while len(_passed) > REMEMBERED_PROBLEMS:
            _passed.popitem(last=False)
    return _passed[key]


def _make_key(spec: SimulationSpec) -> tuple[Any, ...] | None:
    """Make the key of a check: the code of rewards and all that it calls, and the first instances."""
    problem = spec.problem
    try:
        code = bind_function(problem.reward)[1]
    except InvalidRequest:
        return None  # the simulation reports the error in the code
    steady = problem.has_step_free_rewards and not problem.has_pull_dependent_means
    scenario = (problem.name, problem.rewards, spec.seed, spec.regret, None if steady else spec.horizon)
    return (*scenario, code, np.array(problem.options()).tobytes(), _draw_instance_block(problem, spec.seed, 0).digest)


NAN_FILLS = (0x7FF85A5A5A5A5A5A, 0x7FFCA5A5A5A5A5A5)
"""Two bit patterns of NaN. A number that keeps first one and then the other was not written."""


def check_start_writes_memory(spec: SimulationSpec) -> None:
    """Raise an error if `start` of a custom policy does not write all of its memory.

    Before `start`, memory is zero. But zero may be a wrong value, and a deployed policy may be restored into used memory.
    """
    policy = spec.policy
    if policy.is_external or (is_package_code(policy.view) and is_package_code(policy.start)):
        return
    try:
        field = _find_unwritten_memory(spec)
    except Exception:
        return  # the simulation reports the error
    if field is not None:
        raise InvalidRequest(
            f"`start` of the policy {policy.name!r} must set every number of its memory, so that no run depends on the "
            f"previous one, but it does not set {field}; set it in `start`, for example to 0.0.",
            argument="policy",
            code="own-code",
        )


def _find_unwritten_memory(spec: SimulationSpec) -> str | None:
    """Find a number of the memory that `start` does not write, or sets to NaN; None if there is none."""
    policy, problem = spec.policy, spec.problem
    arms, dims = problem.arms, problem.dims
    features = draw_instances(problem, spec.seed, 0).features
    assert features is not None
    options = freeze_options(policy.options(arms, dims, spec.horizon))
    setting = Setting(arms, dims, spec.horizon, features[0], options)
    slots = {"view": policy.view, "start": policy.start, **fill_dims_slots(policy, problem)}
    unwritten: dict[str, Any] = {}
    for fill in NAN_FILLS:
        memory = allocate_aligned(policy.memory(arms, dims, spec.horizon))
        memory.view(np.int64)[:] = fill
        with np.errstate(all="ignore"):
            before = {
                name: array.copy()
                for name, array in _list_state_arrays(bind_function(view_unstarted_state, slots)[0](memory, setting))
            }
            after = dict(_list_state_arrays(bind_function(start_state, slots)[0](memory, setting)))
        for name, array in after.items():
            unwritten_entries = np.isnan(array) if array.dtype.kind == "f" else array == before[name]
            unwritten[name] = unwritten_entries & unwritten.get(name, True)
    for name, unwritten_entries in unwritten.items():
        if unwritten_entries.any():
            position = ", ".join(map(str, np.argwhere(unwritten_entries)[0]))
            return f"`{name}[{position}]`"
    return None


def _list_state_arrays(state: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """List the arrays of a state with their names. Arrays in a nested record have the record's name as a prefix."""
    fields = state if isinstance(state, tuple) else (state,)
    numbered = [f"{prefix or 'state'}[{position}]" for position in range(len(fields))]
    named = [f"{prefix}.{name}" if prefix else name for name in getattr(state, "_fields", ())]
    for name, value in zip(named or numbered, fields, strict=True):
        if isinstance(value, np.ndarray):
            yield name, value
        elif isinstance(value, tuple):
            yield from _list_state_arrays(value, name)


def check_sampled_instances(problem: Problem, seed: int) -> tuple[FloatArray, FloatArray]:
    """Check that instances depend only on the seed. Return the means of the first two blocks."""
    first, repeated, second = (_draw_instance_block(problem, seed, block) for block in (0, 0, 1))
    if first != repeated:
        raise InvalidRequest(
            f"`sample(size, rng)` of the problem {problem.name!r} must draw only from `rng`, but two calls with the same "
            "`rng` drew different instances; use methods such as rng.random(...), and keep nothing between "
            "calls.",
            argument="problem",
            code="own-code",
        )
    if first == second and len(np.unique(first.means, axis=0)) == len(first.means):
        raise InvalidRequest(
            f"`sample(size, rng)` of the problem {problem.name!r} must draw from `rng`, but from two different ones it "
            f"drew the same {len(first.means)} instances, so that all runs would have the same ones; use methods such as "
            "rng.random(...), or table[rng.integers(len(table), size=size)] to draw from a table.",
            argument="problem",
            code="own-code",
        )
    return first.means, second.means


@dataclass(frozen=True)
class _InstanceBlock:
    """A block of instances. Two blocks are equal if all bits are. Features may be large, so only their digest is kept."""

    digest: str
    means: FloatArray = field(compare=False)


def _draw_instance_block(problem: Problem, seed: int, number: int) -> _InstanceBlock:
    block = draw_instances(problem, seed, number)
    assert block.features is not None
    return _InstanceBlock(hashlib.sha256(block.means.tobytes() + block.features.tobytes()).hexdigest(), block.means)


def check_drawn_rewards(spec: SimulationSpec, means: FloatArray) -> None:
    """Draw a few rewards twice. They must depend only on their stream and be of the stated kind."""
    problem = spec.problem
    description, holds = REWARD_KINDS.get(problem.rewards, ("", None))
    reward: Any = getattr(problem.reward, "py_func", problem.reward)
    options, start = np.array(problem.options()), time.perf_counter()
    for run, arm, pull in product(
        *(range(min(SAMPLE_SIZE, most)) for most in (len(means), problem.arms, spec.horizon))
    ):
        try:
            # Unlike compiled code, plain Python warns of overflows.
            with np.errstate(all="ignore"):
                payoff, repeated = (
                    _draw_reward(reward, Instance(means[run], options), spec.seed, run, arm, pull) for _ in range(2)
                )
        except Exception:
            return  # the simulation reports the error, with run and step
        if not math.isfinite(payoff):
            continue
        if payoff != repeated:
            raise InvalidRequest(
                f"`reward` of the problem {problem.name!r} must draw only from `stream`, but two calls for one pull "
                f"returned {payoff:g} and {repeated:g}; use functions such as bt.kernel.uniform(stream).",
                argument="problem",
                code="own-code",
            )
        if holds is not None and not holds(payoff):
            raise SimulationError(describe_wrong_reward(spec, description, run, arm, payoff))
        if time.perf_counter() - start > SAMPLE_SECONDS:
            return


def _draw_reward(reward: Any, instance: Instance, seed: int, run: int, arm: int, pull: int) -> float:
    """Draw one reward, at the first step at which an arm can have this number of pulls."""
    stream = Stream(*compute_instance_key(seed, run), np.array([0, 0, 0, REWARD_STREAM]))  # type: ignore[call-arg, no-untyped-call]
    seek(stream, arm, pull)  # type: ignore[no-untyped-call]
    return float(reward(instance, arm, pull, pull, stream))
