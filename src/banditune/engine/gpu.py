"""Plays jobs on an NVIDIA GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda, types

from banditune.engine import bind, grid, loop
from banditune.engine.run import Job, constant, dims_of, shortcut_for


def _helper(copy: Any, original: Any, outside: bool) -> Any:
    return cuda.jit(copy, device=True, forceinline=not hasattr(original, "__rare__"), lto=False)


def _whole(copy: Any, cache: bool) -> Any:
    return cuda.jit(copy, cache=cache, lto=False)


GPU = bind.Target("gpu", _helper, _whole)

WARP_SLOTS = {
    "lane": grid.warp_lane, "members": grid.warp_members, "sync": grid.warp_sync, "total": grid.warp_total,
    "best": grid.warp_best, "any_of": grid.warp_any, "from_lane": grid.warp_from_lane,
}  # fmt: skip


def room(size: int) -> int:
    """Memory in steps of about a quarter, so that kernels are shared between similar sizes."""
    if size <= 8:
        return 8
    step = 1 << (size - 1).bit_length() - 3
    return -(-size // step) * step


def slots_for(job: Job) -> tuple[Any, dict[str, Any]]:
    policy, problem = job.policy, job.problem
    arms, dims = problem.arms, problem.dims
    shortcut = shortcut_for(policy, problem) if job.shortcut else None
    slots: dict[str, Any] = {"reward": problem.reward, **dims_of(policy, problem)}
    if shortcut is None:
        floats, integers = policy.memory(arms, dims), 0
        slots |= {name: getattr(policy, name) for name in ("view", "start", "choose", "update")}
        slots |= {"play": loop.play_steps}
    else:
        floats, integers = shortcut.memory(arms, dims)
        integers += arms
        slots |= {
            "play": loop.play_leaps,
            "advance": shortcut.advance,
            "words": problem.words,
            "reward_sum": loop.sum_of_words if problem.words else loop.sum_of_rewards,
        }
        slots |= shortcut.slots(problem)
    slots |= {"floats_room": room(floats), "integers_room": room(integers), "arms_room": room(arms)}
    return grid.play_threads, slots


def team_slots(job: Job, team: Any, precision: Any = np.float64) -> tuple[Any, dict[str, Any]]:
    policy, problem = job.policy, job.problem
    arms, dims = problem.arms, problem.dims
    share = -(-arms // grid.WARP)
    slots: dict[str, Any] = {"reward": problem.reward, **dims_of(policy, problem), **WARP_SLOTS}
    slots |= {name: getattr(team, name) for name in ("view", "start", "choose", "update")}
    slots |= {
        "play": loop.play_together,
        "share": constant(share),
        "precision": precision,
        "real": grid.double if precision is np.float64 else grid.single,
    }
    slots |= {"held_room": team.held(share, dims), "common_room": team.common(arms, dims), "arms_room": room(arms)}
    return grid.play_teams, slots


def given(ndim: int, dtype: Any = types.float64) -> Any:
    return types.Array(dtype, ndim, "C", readonly=True)


SIGNATURE = (given(2), given(3), types.int64, types.int64, given(1), given(2), given(1), types.int64, types.int64,
             given(1, types.int64), types.boolean, types.Array(types.float64, 3, "C"))  # fmt: skip


def lowered(function: Any, slots: dict[str, Any], cc: tuple[int, int] = (9, 0)) -> str:
    """The PTX of a kernel; needs no GPU."""
    from types import SimpleNamespace
    from unittest.mock import patch

    compiled = bind.kernel(function, slots, GPU)
    with patch("numba.cuda.dispatcher.get_current_device", lambda: SimpleNamespace(compute_capability=cc)):
        ptx, _ = cuda.compile_ptx(compiled.py_func, SIGNATURE, cc=cc, device=False)
    return str(ptx)
