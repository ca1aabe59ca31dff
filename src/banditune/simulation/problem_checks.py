"""Whether a user's problem and policy keep what they promise: instances by their seed, rewards as the problem says, with
the means that it says, and a policy that begins every run with the same memory.

Our own have tests. A user's are looked at before their first run, because such a slip makes every number wrong.
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
"""So many instances, arms and pulls are looked at."""


SAMPLE_SECONDS = 0.1
"""Rewards that take long are looked at for so long."""


REMEMBERED_PROBLEMS = 64
"""So many problems are remembered that keep their promises."""


_passed: OrderedDict[tuple[Any, ...], MeanTestResult | None] = OrderedDict()
"""What was seen of the problems that keep their promises, by all that decides it: each is looked at once in a process."""


def check_policy_and_problem(job: SimulationSpec) -> None:
    """Refuse a user's own policy or problem that breaks its promises."""
    check_start_writes_memory(job)
    check_custom_problem(job)


def check_custom_problem(job: SimulationSpec) -> MeanTestResult | None:
    """Refuse a user's own problem that breaks its promises; returns what was seen of its means, None if nothing was."""
    if find_own_code(job.problem) is None:
        return None
    key = _make_key(job)
    if key is None or key not in _passed:
        first, second = check_sampled_instances(job.problem, job.seed)
        check_drawn_rewards(job, first)
        # Realised regret, too, compares with the arm with the highest mean. Where means change with the step, which only
        # realised regret allows, nothing says what they are at each step.
        steady = job.regret == "expected" or not job.problem.means_by_step
        seen = check_stated_means(job, first, second) if steady else None
        if key is None:
            return seen
        _passed[key] = seen
        while len(_passed) > REMEMBERED_PROBLEMS:
            _passed.popitem(last=False)
    return _passed[key]


def _make_key(job: SimulationSpec) -> tuple[Any, ...] | None:
    """All that decides what is seen of a problem: its rewards' code with all it reaches, and its first instances."""
    problem = job.problem
    try:
        code = bind_function(problem.reward)[1]
    except InvalidRequest:
        return None  # what is wrong with the code is said where it is played
    steady = problem.per_pull and not problem.means_by_pull
    about = (problem.name, problem.rewards, job.seed, job.regret, None if steady else job.horizon)
    return (*about, code, np.array(problem.options()).tobytes(), _draw_instance_block(problem, job.seed, 0).digest)


NAN_FILLS = (0x7FF85A5A5A5A5A5A, 0x7FFCA5A5A5A5A5A5)
"""Two ways to write NaN: what holds the one and then the other was not written."""


def check_start_writes_memory(job: SimulationSpec) -> None:
    """Refuse a user's own memory of a policy of which `start` leaves a part as it was.

    Runs begin with zeros all the same. But that zeros are right there nobody has said, and a deployed policy may be made
    anew from memory that was used.
    """
    policy = job.policy
    if policy.plays_itself or (is_package_code(policy.view) and is_package_code(policy.start)):
        return
    try:
        left = _find_unwritten_memory(job)
    except Exception:
        return  # what is wrong is said where it is played
    if left is not None:
        raise InvalidRequest(
            f"`start` of the policy {policy.name!r} must give every number of its memory a value, so that no run depends "
            f"on the one before it, but it leaves {left} as it was; set it there, if only to 0.0."
        )


def _find_unwritten_memory(job: SimulationSpec) -> str | None:
    """A part of the memory that `start` does not write, or sets to NaN, by its name; None if there is none."""
    policy, problem = job.policy, job.problem
    arms, dims = problem.arms, problem.dims
    features = draw_instances(problem, job.seed, 0).features
    assert features is not None
    options = freeze_options(policy.options(arms, dims, job.horizon))
    setting = Setting(arms, dims, job.horizon, features[0], options)
    slots = {"view": policy.view, "start": policy.start, **fill_dims_slots(policy, problem)}
    unwritten: dict[str, Any] = {}
    for fill in NAN_FILLS:
        memory = allocate_aligned(policy.memory(arms, dims))
        memory.view(np.int64)[:] = fill
        with np.errstate(all="ignore"):
            before = {
                name: part.copy()
                for name, part in _list_state_arrays(bind_function(view_unstarted_state, slots)[0](memory, setting))
            }
            after = dict(_list_state_arrays(bind_function(start_state, slots)[0](memory, setting)))
        for name, part in after.items():
            same = np.isnan(part) if part.dtype.kind == "f" else part == before[name]
            unwritten[name] = same & unwritten.get(name, True)
    for name, same in unwritten.items():
        if same.any():
            place = ", ".join(map(str, np.argwhere(same)[0]))
            return f"`{name}[{place}]`"
    return None


def _list_state_arrays(state: Any) -> Iterator[tuple[str, Any]]:
    """The arrays of a state, by their names."""
    fields = state if isinstance(state, tuple) else (state,)
    names = getattr(state, "_fields", [f"state[{place}]" for place in range(len(fields))])
    for name, part in zip(names, fields, strict=True):
        if isinstance(part, np.ndarray):
            yield name, part


def check_sampled_instances(problem: Problem, seed: int) -> tuple[FloatArray, FloatArray]:
    """The means of the first two blocks of instances, which must depend on the seed, and on nothing else."""
    first, again, second = (_draw_instance_block(problem, seed, block) for block in (0, 0, 1))
    if first != again:
        raise InvalidRequest(
            f"`sample(size, rng)` of the problem {problem.name!r} must draw from `rng` alone, but called twice with the "
            "same one it drew other instances; use rng.random(...), rng.normal(...) and the like, and keep nothing between "
            "calls."
        )
    if first == second and len(np.unique(first.means, axis=0)) == len(first.means):
        raise InvalidRequest(
            f"`sample(size, rng)` of the problem {problem.name!r} must draw from `rng`, but from two different ones it "
            f"drew the same {len(first.means)} instances, so that no run would see others; use rng.random(...) and the "
            "like, or table[rng.integers(len(table), size=size)] to draw from a table."
        )
    return first.means, second.means


@dataclass(frozen=True)
class _InstanceBlock:
    """A block of instances, alike if all bits are. Of features, which may be large, a digest is kept."""

    digest: str
    means: FloatArray = field(compare=False)


def _draw_instance_block(problem: Problem, seed: int, number: int) -> _InstanceBlock:
    drawn = draw_instances(problem, seed, number)
    assert drawn.features is not None
    return _InstanceBlock(hashlib.sha256(drawn.means.tobytes() + drawn.features.tobytes()).hexdigest(), drawn.means)


def check_drawn_rewards(job: SimulationSpec, means: FloatArray) -> None:
    """Draw a few rewards, each twice: they come from their stream alone, and policies take for granted what they are."""
    problem = job.problem
    words, holds = REWARD_KINDS.get(problem.rewards, ("", None))
    reward: Any = getattr(problem.reward, "py_func", problem.reward)
    options, began = np.array(problem.options()), time.perf_counter()
    for run, arm, pull in product(*(range(min(SAMPLE_SIZE, most)) for most in (len(means), problem.arms, job.horizon))):
        try:
            # Plain Python warns where numbers overflow; compiled code, which plays, does not.
            with np.errstate(all="ignore"):
                paid, again = (
                    _draw_reward(reward, Instance(means[run], options), job.seed, run, arm, pull) for _ in range(2)
                )
        except Exception:
            return  # what is wrong is said with run and step where it is played
        if not math.isfinite(paid):
            continue
        if paid != again:
            raise InvalidRequest(
                f"`reward` of the problem {problem.name!r} must draw from `stream` alone, but asked twice for one pull it "
                f"paid {paid:g} and {again:g}; use bt.kernel.uniform(stream), bt.kernel.normal(stream) and the like."
            )
        if holds is not None and not holds(paid):
            raise SimulationError(describe_wrong_reward(job, words, run, arm, paid))
        if time.perf_counter() - began > SAMPLE_SECONDS:
            return


def _draw_reward(reward: Any, instance: Instance, seed: int, run: int, arm: int, pull: int) -> float:
    """One reward, at the first step at which an arm can have had so many pulls."""
    stream = Stream(*compute_instance_key(seed, run), np.array([0, 0, 0, REWARD_STREAM]))  # type: ignore[call-arg, no-untyped-call]
    seek(stream, arm, pull)  # type: ignore[no-untyped-call]
    return float(reward(instance, arm, pull, pull, stream))
