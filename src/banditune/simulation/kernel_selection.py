"""Selects the shortcut, the warp version, the slots and the kernel with which a simulation is played."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import groupby
from typing import Any

from banditune.core.arrays import FloatArray
from banditune.core.policy import Policy, Shortcut, WarpVersion
from banditune.core.problem import Problem
from banditune.simulation import loop
from banditune.simulation.compilation import compile_kernel
from banditune.simulation.devices import is_cuda_simulated
from banditune.simulation.spec import SimulationSpec


def select_warp_version(job: SimulationSpec) -> WarpVersion | None:
    """The policy's team, if it plays the policy's own functions; none in the simulator, which has no warps."""
    policy, team = job.policy, job.policy.team
    own = (policy.view, policy.start, policy.choose, policy.update)
    if team is None or is_cuda_simulated() or not job.shortcut or not job.problem.per_pull:
        return None
    return team if all(function in own for function in team.stands_for) else None


def select_shortcut(policy: Policy, problem: Problem) -> Shortcut | None:
    """The policy's best shortcut that is exact for this problem."""
    own = (policy.view, policy.start, policy.choose, policy.update)
    for play in policy.plays:
        if problem.per_pull and all(function in own for function in play.stands_for) and play.applies(policy, problem):
            return play
    return None


def select_shortcut_rows(job: SimulationSpec, params: FloatArray) -> list[bool]:
    """For each row of parameters whether the job's `shortcut` is as asked for, or must be left out for that row.

    It is left out where its proof does not hold for the row. The row alone decides, so that its regrets are the same
    whatever else is played.
    """
    fast: Shortcut | WarpVersion | None = select_shortcut(job.policy, job.problem) if job.shortcut else None
    if job.device == "gpu":
        # dropped import

        fast = select_warp_version(job) or fast
    if fast is None:
        return [job.shortcut] * len(params)
    options = job.policy.options(job.problem.arms, job.problem.dims, job.horizon)
    return [bool(fast.holds(options, row)) for row in params]


def set_shortcut(job: SimulationSpec, shortcut: bool) -> SimulationSpec:
    """The job with or without its shortcut; the same object where nothing changes."""
    return job if job.shortcut == shortcut else replace(job, shortcut=shortcut)


def fill_slots(job: SimulationSpec) -> tuple[dict[Any, Any], int, int]:
    """What the slots of a loop are filled with for a job, and the floats and integers that it needs for a run."""
    policy, problem = job.policy, job.problem
    shortcut = select_shortcut(policy, problem) if job.shortcut else None
    slots: dict[Any, Any] = {"reward": problem.reward, **fill_dims_slots(policy, problem)}
    if shortcut is None:
        floats, integers = policy.memory(problem.arms, problem.dims), 0
        slots |= {name: getattr(policy, name) for name in ("view", "start", "choose", "update")}
        slots |= {"play": loop.play_steps}
    else:
        floats, integers = shortcut.memory(problem.arms, problem.dims)
        integers += problem.arms
        reward_sum = loop.sum_bit_packed_rewards if problem.words else loop.sum_rewards
        slots |= {
            "play": loop.play_shortcut,
            "advance": shortcut.advance,
            "reward_sum": reward_sum,
            "words": problem.words,
        }
        slots |= shortcut.slots(problem)
    return slots, floats, integers


def select_kernel(job: SimulationSpec) -> tuple[Callable[..., Any], int, int]:
    """The compiled kernel for a job, and the floats and integers that it needs for a run."""
    slots, floats, integers = fill_slots(job)
    return compile_kernel(loop.play_block, slots), floats, integers


def fill_dims_slots(policy: Policy, problem: Problem) -> dict[str, Callable[..., Any]]:
    """Slots for the number of features: a constant of the kernel where the policy looks at features."""
    if policy.needs_features:
        return {"known": loop.fix_dims, "dims": make_constant_function(int(problem.dims))}
    return {"known": loop.keep_runtime_dims}


def make_constant_function(value: int) -> Callable[[], int]:
    """A function of nothing: what a slot for a number is filled with."""
    return lambda: value


def group_alike_rows(job: SimulationSpec, params: FloatArray) -> Iterator[tuple[bool, range]]:
    """Neighbouring rows that are all played by the shortcut, or all step by step."""
    fast = select_shortcut_rows(job, params)
    for shortcut, rows in groupby(range(len(params)), fast.__getitem__):
        first, *others = rows
        yield shortcut, range(first, first + 1 + len(others))
