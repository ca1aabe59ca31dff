"""Decides how a simulation is launched on a GPU: a warp or a thread for each run, the float type, the slots and the block size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from banditune.core.arrays import FloatArray, freeze_options
from banditune.core.errors import InvalidRequest
from banditune.core.policy import Shortcut, WarpVersion
from banditune.core.problem import Problem
from banditune.simulation import compilation, instances, kernel_selection, spec
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
from banditune.simulation.spec import SimulationSpec

THREADS_PER_BLOCK = 64
"""Threads in a block: few, so that one that ends late keeps little waiting."""


SHARED_MEMORY_LIMIT = 48 << 10
"""Bytes of memory that the teams of a block can share."""


LOCAL_MEMORY_LIMIT = 128 << 10
"""Bytes of memory that a thread may have of its own; a GPU sets them aside for all threads that it can hold."""


class LaunchPlan(NamedTuple):
    """How a job is played: the kernel's source, slots and target, threads for a job and in a block, and whether rewards are
    read one by one, so that they may be drawn ahead.
    """

    source: Callable[..., Any]
    slots: dict[Any, Any]
    target: compilation.CompileTarget
    members: int
    block: int
    reads: bool


def plan_launch(job: SimulationSpec, precision: str | None = None) -> LaunchPlan:
    """A team for each job where the policy has one and it fits, else a thread."""
    team = kernel_selection.select_warp_version(job)
    if team is not None:
        precision = precision or select_warp_dtype(job, team)
        for teams in (4, 2, 1):
            found = plan_warp_launch(job, team, precision, teams)
            if found:
                return found
    slots, floats, integers = fill_slots(job)
    shortcut = select_shortcut(job.policy, job.problem) if job.shortcut else None
    precision = select_thread_dtype(job, shortcut, precision)
    if shortcut and precision == "float32":
        slots = {**slots, **FLOAT32_SLOTS, **shortcut.single}
    arms = job.problem.arms
    size = 8 * round_up_size(floats) + 4 * round_up_size(integers) + 12 * round_up_size(arms)
    if size > LOCAL_MEMORY_LIMIT:
        raise InvalidRequest(
            f"a run must fit into {LOCAL_MEMORY_LIMIT >> 10} KiB on a GPU, but {spec.describe_spec(job)} needs {size >> 10:,} KiB; use fewer arms "
            'or features, or device="cpu".'
        )
    reads = job.problem.per_pull and (shortcut is None or shortcut.reads(job.problem))
    slots |= {
        "floats_room": round_up_size(floats),
        "integers_room": round_up_size(integers),
        "arms_room": round_up_size(arms),
    }
    slots |= {"precision": getattr(np, precision), **fill_reward_slots(job.problem, reads)}
    return LaunchPlan(
        cuda_kernels.play_by_threads, slots, select_thread_target(job, precision), 1, THREADS_PER_BLOCK, reads
    )


def select_thread_target(job: SimulationSpec, precision: str) -> compilation.CompileTarget:
    """What a kernel with a thread for a job is compiled for: it must know the type of the policy's options."""
    options = freeze_options(job.policy.options(job.problem.arms, job.problem.dims, job.horizon)).dtype.name
    if options == "float64":
        return THREAD_TARGETS[precision]
    if options not in TABLE_TARGETS:
        raise InvalidRequest(
            f"a policy's table must be of one of the types {', '.join(TABLE_TARGETS)} on a GPU, but that of {job.policy.name!r} "
            f'is {options}; change it, or use device="cpu".'
        )
    return TABLE_TARGETS[options]


def select_thread_dtype(job: SimulationSpec, shortcut: Shortcut | None, asked: str | None) -> str:
    """The kind of numbers that a thread plays a job with; float64 where there is no choice."""
    if shortcut is None or not shortcut.single or is_cuda_simulated():
        return "float64"
    return asked or shortcut.precision(job.policy, job.problem, job.horizon)


def fill_reward_slots(problem: Problem, reads: bool) -> dict[str, Any]:
    """The slots for rewards."""
    return (
        {"reward": cuda_kernels.read_predrawn_reward, "drawn": problem.reward} if reads else {"reward": problem.reward}
    )


def select_warp_dtype(job: SimulationSpec, team: WarpVersion) -> str:
    """The kind of numbers that a team plays a job with: a function of the job alone, however its runs are cut."""
    features = instances.draw_instances(job.problem, job.seed, 0).features
    assert features is not None
    return team.precision(job.policy, features, job.horizon)


def plan_warp_launch(job: SimulationSpec, team: WarpVersion, precision: str, teams: int) -> LaunchPlan | None:
    """So many teams in a block; None where they have not enough memory to share."""
    policy, problem = job.policy, job.problem
    arms, dims = problem.arms, problem.dims
    share = -(-arms // cuda_primitives.WARP_SIZE)
    dtype = np.dtype(precision)
    held, common = max(1, team.held(share, dims)), max(1, team.common(arms, dims))
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


def compile_launch_plan(job: SimulationSpec, planned: LaunchPlan) -> Any:
    """The compiled kernel of a plan, from this process or the disk cache where it is there."""
    with compilation.translate_compile_errors(spec.describe_spec(job)), GPU_COMPILE_LOCK:
        return compilation.compile_kernel(planned.source, planned.slots, planned.target)


def select_row_dtype(job: SimulationSpec, row: FloatArray) -> str | None:
    """ "float64" where a row of parameters needs it; else None, for what the job is played in."""
    fast = kernel_selection.select_warp_version(job) or (
        select_shortcut(job.policy, job.problem) if job.shortcut else None
    )
    return "float64" if fast is not None and fast.needs_double(row) else None
