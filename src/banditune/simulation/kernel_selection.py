"""Selects the shortcut, the warp version, the slots and the kernel of a simulation."""

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
from banditune.simulation.scratch_arrays import count_policy_floats, fill_choose_slots
from banditune.simulation.spec import SimulationSpec


def select_warp_version(spec: SimulationSpec) -> WarpVersion | None:
    """Select the warp version, if it replaces the functions of this policy; None in CUDA's simulator, without warps."""
    policy, warp_version = spec.policy, spec.policy.warp_version
    if warp_version is None or is_cuda_simulated() or not spec.use_shortcut or not spec.problem.has_step_free_rewards:
        return None
    return warp_version if replaces_all_functions(warp_version, policy) else None


def replaces_all_functions(fast: Shortcut | WarpVersion, policy: Policy) -> bool:
    """Return whether each function of a policy is one that is replaced. A subclass may have overridden any of them."""
    return all(function in fast.replaces for function in (policy.view, policy.start, policy.choose, policy.update))


def select_shortcut(policy: Policy, problem: Problem) -> Shortcut | None:
    """Select the first shortcut of the policy that is exact for this problem."""
    for shortcut in policy.shortcuts:
        if (
            problem.has_step_free_rewards
            and replaces_all_functions(shortcut, policy)
            and shortcut.is_applicable(policy, problem)
        ):
            return shortcut
    return None


def select_shortcut_rows(spec: SimulationSpec, params: FloatArray) -> list[bool]:
    """Decide for each row of parameters whether it may use the shortcut of the spec.

    It may not if the proof of the shortcut does not hold for the row. The decision depends only on the row, so that its
    regrets do not depend on other rows.
    """
    fast: Shortcut | WarpVersion | None = select_shortcut(spec.policy, spec.problem) if spec.use_shortcut else None
    if spec.device == "gpu":
        fast = select_warp_version(spec) or fast
    if fast is None:
        return [spec.use_shortcut] * len(params)
    options = spec.policy.options(spec.problem.arms, spec.problem.dims, spec.horizon)
    return [bool(fast.is_valid(options, row)) for row in params]


def set_shortcut(spec: SimulationSpec, shortcut: bool) -> SimulationSpec:
    """Return the spec with or without its shortcut. If nothing changes, this is the same object."""
    return spec if spec.use_shortcut == shortcut else replace(spec, use_shortcut=shortcut)


def fill_slots(spec: SimulationSpec) -> tuple[dict[Any, Any], int, int]:
    """Fill the slots of a loop for a spec. Return them with the numbers of floats and integers that a run needs."""
    policy, problem = spec.policy, spec.problem
    shortcut = select_shortcut(policy, problem) if spec.use_shortcut else None
    slots: dict[Any, Any] = {"reward": problem.reward, **fill_dims_slots(policy, problem)}
    if shortcut is None:
        floats, integers = count_policy_floats(policy, problem.arms, problem.dims, spec.horizon), 0
        slots |= {name: getattr(policy, name) for name in ("view", "start", "choose", "update")}
        slots |= {"simulate_run": loop.simulate_steps, **fill_choose_slots(policy)}
    else:
        floats, integers = shortcut.memory(problem.arms, problem.dims, spec.horizon)
        integers += problem.arms
        reward_sum = loop.sum_bit_packed_rewards if problem.bit_packed_reward else loop.sum_rewards
        slots |= {
            "simulate_run": loop.simulate_by_shortcut,
            "advance": shortcut.advance,
            "sum_reward_range": reward_sum,
            "reward_word": problem.bit_packed_reward,
        }
        slots |= shortcut.fill_slots(problem)
    return slots, floats, integers


def select_kernel(spec: SimulationSpec) -> tuple[Callable[..., Any], int, int]:
    """Compile the kernel of a spec. Return it with the numbers of floats and integers that a run needs."""
    slots, floats, integers = fill_slots(spec)
    return compile_kernel(loop.simulate_block, slots), floats, integers


def fill_dims_slots(policy: Policy, problem: Problem) -> dict[str, Callable[..., Any]]:
    """Fill the slots for the number of features: a constant of the kernel if the policy reads features."""
    if policy.needs_features:
        return {"resolve_setting": loop.fix_dims, "dims": make_constant_function(int(problem.dims))}
    return {"resolve_setting": loop.keep_runtime_dims}


def make_constant_function(value: int) -> Callable[[], int]:
    """Make a function without arguments that returns a constant, to fill a slot."""
    return lambda: value


def group_alike_rows(spec: SimulationSpec, params: FloatArray) -> Iterator[tuple[bool, range]]:
    """Group neighbouring rows that all use the shortcut, and neighbouring rows that do not."""
    fast = select_shortcut_rows(spec, params)
    for shortcut, rows in groupby(range(len(params)), fast.__getitem__):
        first, *others = rows
        yield shortcut, range(first, first + 1 + len(others))
