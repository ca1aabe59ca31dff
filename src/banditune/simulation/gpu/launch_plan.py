"""Plans the launch of a simulation on a GPU: a warp or a thread per run, float type, slots and block size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from banditune.core.arrays import FloatArray, freeze_options
from banditune.core.errors import InvalidRequest
from banditune.core.policy import Shortcut, WarpVersion
from banditune.core.problem import Problem
from banditune.simulation import compilation, instances, kernel_selection
from banditune.simulation.devices import is_cuda_simulated
from banditune.simulation.gpu import cuda_kernels, cuda_primitives, cuda_targets, warp_loop
from banditune.simulation.gpu.cuda_targets import (
    DTYPE_SLOTS,
    FLOAT32_SLOTS,
    GPU_COMPILE_LOCK,
    TABLE_TARGETS,
    THREAD_TARGETS,
    WARP_TARGETS,
)
from banditune.simulation.kernel_selection import (
    fill_dims_slots,
    fill_slots,
    make_constant_function,
    select_shortcut,
)
from banditune.simulation.spec import SimulationSpec, describe_spec

THREADS_PER_BLOCK = 64
"""Threads in a block: few, so that one that ends late keeps little waiting."""


SHARED_MEMORY_LIMIT = 48 << 10
"""Bytes of shared memory of the warps of a block."""


LOCAL_MEMORY_LIMIT = 128 << 10
"""Bytes of memory that a thread may have of its own; a GPU sets them aside for all threads that it can hold."""


class LaunchPlan(NamedTuple):
    """The plan of a launch: source, slots and target of the kernel, threads per run and per block, and whether rewards
    are read one by one, so that they may be drawn ahead.
    """

    kernel: Callable[..., Any]
    slots: dict[Any, Any]
    target: compilation.CompileTarget
    threads_per_run: int
    threads_per_block: int
    reads_rewards: bool


def plan_launch(spec: SimulationSpec, precision: str | None = None) -> LaunchPlan:
    """Plan a warp for each run if the policy has a warp version and it fits, else a thread."""
    team = kernel_selection.select_warp_version(spec)
    if team is not None:
        precision = precision or select_warp_dtype(spec, team)
        for teams in (4, 2, 1):
            found = plan_warp_launch(spec, team, precision, teams)
            if found:
                return found
    slots, floats, integers = fill_slots(spec)
    shortcut = select_shortcut(spec.policy, spec.problem) if spec.use_shortcut else None
    precision = select_thread_dtype(spec, shortcut, precision)
    if shortcut and precision == "float32":
        slots = {**slots, **FLOAT32_SLOTS, **shortcut.float32_functions}
    arms = spec.problem.arms
    size = 8 * round_up_size(floats) + 4 * round_up_size(integers) + 12 * round_up_size(arms)
    if size > LOCAL_MEMORY_LIMIT:
        raise InvalidRequest(
            f"a run must fit into {LOCAL_MEMORY_LIMIT >> 10} KiB on a GPU, but {describe_spec(spec)} needs "
            f'{size >> 10:,} KiB; use fewer arms or features, or device="cpu".'
        )
    reads = spec.problem.has_step_free_rewards and (shortcut is None or shortcut.reads_rewards(spec.problem))
    slots |= {
        "floats_room": round_up_size(floats),
        "integers_room": round_up_size(integers),
        "arms_room": round_up_size(arms),
    }
    slots |= {"precision": getattr(np, precision), **fill_reward_slots(spec.problem, reads)}
    return LaunchPlan(
        cuda_kernels.play_by_threads, slots, select_thread_target(spec, precision), 1, THREADS_PER_BLOCK, reads
    )


def select_thread_target(spec: SimulationSpec, precision: str) -> compilation.CompileTarget:
    """Select the target of a kernel with a thread per run, by the type of the options of the policy."""
    options = freeze_options(spec.policy.options(spec.problem.arms, spec.problem.dims, spec.horizon)).dtype.name
    if options == "float64":
        return THREAD_TARGETS[precision]
    if options not in TABLE_TARGETS:
        raise InvalidRequest(
            f"a policy's table must be of one of the types {', '.join(TABLE_TARGETS)} on a GPU, but that of "
            f'{spec.policy.name!r} is {options}; change it, or use device="cpu".'
        )
    return TABLE_TARGETS[options]


def select_thread_dtype(spec: SimulationSpec, shortcut: Shortcut | None, requested: str | None) -> str:
    """Select the float type of a thread; float64 if there is no choice."""
    if shortcut is None or not shortcut.float32_functions or is_cuda_simulated():
        return "float64"
    return requested or shortcut.select_dtype(spec.policy, spec.problem, spec.horizon)


def fill_reward_slots(problem: Problem, reads: bool) -> dict[str, Any]:
    """The slots for rewards."""
    return (
        {"reward": cuda_kernels.read_predrawn_reward, "drawn": problem.reward} if reads else {"reward": problem.reward}
    )


def select_warp_dtype(spec: SimulationSpec, team: WarpVersion) -> str:
    """Select the float type of a warp. It depends on the spec alone, not on its chunks."""
    features = instances.draw_instances(spec.problem, spec.seed, 0).features
    assert features is not None
    return team.select_dtype(spec.policy, features, spec.horizon)


def plan_warp_launch(spec: SimulationSpec, team: WarpVersion, precision: str, teams: int) -> LaunchPlan | None:
    """Plan a launch with this many warps per block; None if the shared memory does not suffice."""
    policy, problem = spec.policy, spec.problem
    arms, dims = problem.arms, problem.dims
    share = -(-arms // cuda_primitives.WARP_SIZE)
    dtype = np.dtype(precision)
    held, common = max(1, team.count_registers(share, dims)), max(1, team.count_shared(arms, dims))
    if (
        teams * (16 * round_up_size(arms) + dtype.itemsize * common) > SHARED_MEMORY_LIMIT
        or held * dtype.itemsize > LOCAL_MEMORY_LIMIT // 2
    ):
        return None
    slots: dict[str, Any] = {
        **fill_reward_slots(problem, True),
        **fill_dims_slots(policy, problem),
        **cuda_targets.WARP_SLOTS,
    }
    slots |= {name: getattr(team, name) for name in ("view", "start", "choose", "update")}
    slots |= {
        "play": warp_loop.play_warp, "share": make_constant_function(share), "teams": teams, "precision": dtype.type,
        "held_room": held, "common_room": common, "arms_room": round_up_size(arms), **DTYPE_SLOTS[precision],
    }  # fmt: skip
    return LaunchPlan(
        cuda_kernels.play_by_warps,
        slots,
        WARP_TARGETS[precision],
        cuda_primitives.WARP_SIZE,
        cuda_primitives.WARP_SIZE * teams,
        True,
    )


def round_up_size(size: int) -> int:
    """Memory in steps of about a quarter, so that kernels are shared between similar sizes."""
    step = max(4, 1 << max(0, size.bit_length() - 3))
    return max(1, -(-size // step)) * step


def compile_launch_plan(spec: SimulationSpec, planned: LaunchPlan) -> Any:
    """Compile the kernel of a plan, from this process or the disk cache where it is there."""
    with compilation.translate_compile_errors(describe_spec(spec)), GPU_COMPILE_LOCK:
        return compilation.compile_kernel(planned.kernel, planned.slots, planned.target)


def select_row_dtype(spec: SimulationSpec, row: FloatArray) -> str | None:
    """Return "float64" if a row of parameters needs it; else None, for the float type of the spec."""
    fast = kernel_selection.select_warp_version(spec) or (
        select_shortcut(spec.policy, spec.problem) if spec.use_shortcut else None
    )
    return "float64" if fast is not None and fast.needs_float64(row) else None
