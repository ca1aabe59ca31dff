"""Plans the launch of a simulation on a GPU: a warp or a thread per run, float type, slots and block size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from banditune.core.arrays import FloatArray, freeze_options
from banditune.core.errors import InvalidRequest
from banditune.core.messages import Setting
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
"""The number of threads in a block. A block ends when its slowest thread does, so large blocks would wait longer."""


SHARED_MEMORY_LIMIT = 48 << 10
"""The number of bytes of shared memory of the warps of a block."""


LOCAL_MEMORY_LIMIT = 128 << 10
"""The largest number of bytes of a thread's local memory. A GPU reserves it for all threads that it can run at once."""


class LaunchPlan(NamedTuple):
    """The plan of a launch: source, slots and target of the kernel, and threads per run and per block.

    `reads_rewards` is true if rewards are read one by one, so that they can be predrawn.
    """

    kernel: Callable[..., Any]
    slots: dict[Any, Any]
    target: compilation.CompileTarget
    threads_per_run: int
    threads_per_block: int
    reads_rewards: bool


def plan_launch(spec: SimulationSpec, dtype: str | None = None) -> LaunchPlan:
    """Plan a launch with a warp for each run if the policy has a warp version that fits, else with a thread."""
    warp_version = kernel_selection.select_warp_version(spec)
    if warp_version is not None:
        dtype = dtype or select_warp_dtype(spec, warp_version)
        for warps in (4, 2, 1):
            plan = plan_warp_launch(spec, warp_version, dtype, warps)
            if plan:
                return plan
    slots, floats, integers = fill_slots(spec)
    shortcut = select_shortcut(spec.policy, spec.problem) if spec.use_shortcut else None
    dtype = select_thread_dtype(spec, shortcut, dtype)
    if shortcut and dtype == "float32":
        slots = {**slots, **FLOAT32_SLOTS, **shortcut.float32_functions}
    arms = spec.problem.arms
    size = 8 * round_up_size(floats) + 4 * round_up_size(integers) + 12 * round_up_size(arms)
    if size > LOCAL_MEMORY_LIMIT:
        raise InvalidRequest(
            "a run must fit into {} KiB on a GPU, but {} needs {:,} KiB; use fewer arms or features, or {}.",
            *(LOCAL_MEMORY_LIMIT >> 10, describe_spec(spec), size >> 10, Setting("device", "cpu")),
            argument="device",
            code="too-large",
        )
    reads = spec.problem.has_step_free_rewards and (shortcut is None or shortcut.reads_rewards(spec.problem))
    slots |= {
        "floats_capacity": round_up_size(floats),
        "integers_capacity": round_up_size(integers),
        "arms_capacity": round_up_size(arms),
    }
    slots |= {"dtype": getattr(np, dtype), **fill_reward_slots(spec.problem, reads)}
    return LaunchPlan(
        cuda_kernels.simulate_by_threads, slots, select_thread_target(spec, dtype), 1, THREADS_PER_BLOCK, reads
    )


def select_thread_target(spec: SimulationSpec, dtype: str) -> compilation.CompileTarget:
    """Select the target of a kernel with a thread per run, by the type of the options of the policy."""
    options = freeze_options(spec.policy.options(spec.problem.arms, spec.problem.dims, spec.horizon)).dtype.name
    if options == "float64":
        return THREAD_TARGETS[dtype]
    if options not in TABLE_TARGETS:
        raise InvalidRequest(
            "a policy's table must be of one of the types {} on a GPU, but that of {!r} is {}; change it, or use {}.",
            *(", ".join(TABLE_TARGETS), spec.policy.name, options, Setting("device", "cpu")),
            argument="device",
            code="unsupported",
        )
    return TABLE_TARGETS[options]


def select_thread_dtype(spec: SimulationSpec, shortcut: Shortcut | None, requested: str | None) -> str:
    """Select the float type of a thread; float64 if there is no choice."""
    if shortcut is None or not shortcut.float32_functions or is_cuda_simulated():
        return "float64"
    return requested or shortcut.select_dtype(spec.policy, spec.problem, spec.horizon)


def fill_reward_slots(problem: Problem, reads: bool) -> dict[str, Any]:
    """Fill the slots for rewards."""
    return (
        {"reward": cuda_kernels.read_predrawn_reward, "draw_reward": problem.reward}
        if reads
        else {"reward": problem.reward}
    )


def select_warp_dtype(spec: SimulationSpec, warp_version: WarpVersion) -> str:
    """Select the float type of a warp. It depends only on the spec, not on its chunks."""
    features = instances.draw_instances(spec.problem, spec.seed, 0).features
    assert features is not None
    return warp_version.select_dtype(spec.policy, features, spec.horizon)


def plan_warp_launch(spec: SimulationSpec, warp_version: WarpVersion, dtype: str, warps: int) -> LaunchPlan | None:
    """Plan a launch with this many warps per block; None if there is not enough shared memory."""
    policy, problem = spec.policy, spec.problem
    arms, dims = problem.arms, problem.dims
    share = -(-arms // cuda_primitives.WARP_SIZE)
    float_type = np.dtype(dtype)
    register_count = max(1, warp_version.count_registers(share, dims))
    shared_count = max(1, warp_version.count_shared(arms, dims))
    if (
        warps * (16 * round_up_size(arms) + float_type.itemsize * shared_count) > SHARED_MEMORY_LIMIT
        or register_count * float_type.itemsize > LOCAL_MEMORY_LIMIT // 2
    ):
        return None
    slots: dict[str, Any] = {
        **fill_reward_slots(problem, True),
        **fill_dims_slots(policy, problem),
        **cuda_targets.WARP_SLOTS,
    }
    slots |= {name: getattr(warp_version, name) for name in ("view", "start", "choose", "update")}
    slots |= {
        "simulate_run": warp_loop.simulate_run_by_warp,
        "count_arms_per_lane": make_constant_function(share),
        "warps_per_block": warps,
        "dtype": float_type.type,
        "registers_capacity": register_count,
        "shared_capacity": shared_count,
        "arms_capacity": round_up_size(arms),
        **DTYPE_SLOTS[dtype],
    }
    return LaunchPlan(
        cuda_kernels.simulate_by_warps,
        slots,
        WARP_TARGETS[dtype],
        cuda_primitives.WARP_SIZE,
        cuda_primitives.WARP_SIZE * warps,
        True,
    )


def round_up_size(size: int) -> int:
    """Round a size up to steps of about a quarter, so that similar sizes share a kernel."""
    step = max(4, 1 << max(0, size.bit_length() - 3))
    return max(1, -(-size // step)) * step


def compile_launch_plan(spec: SimulationSpec, plan: LaunchPlan) -> Any:
    """Compile the kernel of a plan, or take it from this process or the disk cache."""
    with compilation.translate_compile_errors(describe_spec(spec)), GPU_COMPILE_LOCK:
        return compilation.compile_kernel(plan.kernel, plan.slots, plan.target)


def select_row_dtype(spec: SimulationSpec, row: FloatArray) -> str | None:
    """Return "float64" if a row of parameters needs it; else None, for the float type of the spec."""
    fast = kernel_selection.select_warp_version(spec) or (
        select_shortcut(spec.policy, spec.problem) if spec.use_shortcut else None
    )
    return "float64" if fast is not None and fast.needs_float64(row) else None
