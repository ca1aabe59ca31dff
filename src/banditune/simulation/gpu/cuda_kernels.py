"""The kernels for a GPU, which simulate a run by one thread or by one warp."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from numba import cuda
from numpy import float64, int32, int64, uint32

from banditune.core.policy import Setting
from banditune.core.scalar import Slot, scalar
from banditune.core.streams import REWARD_STREAM, Stream, seek
from banditune.simulation.gpu.cuda_primitives import WARP_SIZE
from banditune.simulation.loop import compute_instance_key, reset_cursors, simulate_run

get_lane = Slot("get_lane")


arms_capacity = Slot("arms_capacity")


floats_capacity = Slot("floats_capacity")


integers_capacity = Slot("integers_capacity")


registers_capacity = Slot("registers_capacity")


shared_capacity = Slot("shared_capacity")


warps_per_block = Slot("warps_per_block")


dtype = Slot("dtype")


draw_reward = Slot("draw_reward")


class PredrawnInstance(NamedTuple):
    """An `Instance` with predrawn rewards, a row per arm."""

    means: Any
    options: Any
    predrawn: Any


@scalar
def read_predrawn_reward(instance, arm, pull, step, stream):
    """Read a predrawn reward if there are any. Unseen rewards are drawn when they are needed."""
    if stream.cursor[3] == REWARD_STREAM and instance.predrawn.shape[1] > max(1, pull):
        return instance.predrawn[arm, pull]
    return draw_reward(instance, arm, pull, step, stream)


def predraw_rewards(means, seed, first_run, options, predrawn):
    """The kernel that draws the rewards of all pulls. Neighbouring threads draw neighbouring pulls of one arm."""
    arms, horizon = predrawn.shape[1], predrawn.shape[2]
    run = cuda.blockIdx.y
    position = cuda.grid(1)
    if position >= arms * horizon:
        return
    arm = position // horizon
    pull = position - arm * horizon
    cursor = cuda.local.array(4, int64)
    cursor[3] = REWARD_STREAM
    key0, key1 = compute_instance_key(seed, first_run + run)
    stream = Stream(key0, key1, cursor)
    seek(stream, arm, pull)
    predrawn[run, arm, pull] = draw_reward(PredrawnInstance(means[run], options, predrawn[run]), arm, pull, 0, stream)


@scalar
def make_run_streams(cursors, seed, run, noise):
    """Make the streams of agent, rewards and unseen rewards of a run, at their first positions."""
    key0, key1 = compute_instance_key(seed, run)
    reset_cursors(cursors, noise * 256)
    return Stream(key0, key1, cursors[0]), Stream(key0, key1, cursors[1]), Stream(key0, key1, cursors[2])


def simulate_by_threads(means, features, seed, first_run, options, params, policy_options, horizon, first_noise, at,
                        realised, predrawn, out):  # fmt: skip
    """The kernel with a thread per run. `out` is (instances, params, checkpoints), NaN where a run failed."""
    number = cuda.grid(1)
    rows = params.shape[0]
    if number >= rows * means.shape[0]:
        return
    run = number // rows
    row = number - run * rows
    arms = means.shape[1]
    floats = cuda.local.array(floats_capacity, dtype)
    # Integers have half the size of the CPU's, so that more memory of all threads fits into the fast caches.
    integers = cuda.local.array(integers_capacity, uint32)
    pulls = cuda.local.array(arms_capacity, int32)
    totals = cuda.local.array(arms_capacity, float64)
    cursors = cuda.local.array((3, 4), int64)
    trouble = cuda.local.array(3, float64)
    # As on the CPU, memory is initialised with zeros, because NaN times 0 would be NaN.
    for position in range(floats_capacity):
        floats[position] = 0.0
    for position in range(integers_capacity):
        integers[position] = 0
    for arm in range(arms):
        pulls[arm] = 0
        totals[arm] = 0.0
    setting = Setting(arms, features.shape[1], horizon, features[run if features.shape[0] > 1 else 0], policy_options)
    instance = PredrawnInstance(means[run], options, predrawn[run if predrawn.shape[2] > 1 else 0])
    agent, rewards, unseen = make_run_streams(
        cursors, seed, first_run + run, (first_noise + row if first_noise > 0 else 0)
    )
    succeeded = simulate_run(instance, setting, params[row], agent, rewards, unseen, floats, integers, pulls[:arms],
                             totals[:arms], at, realised, out[run, row], trouble)  # fmt: skip
    if not succeeded:
        out[run, row, 0] = math.nan


def simulate_by_warps(means, features, seed, first_run, options, params, policy_options, horizon, first_noise, at, realised,
                      predrawn, out):  # fmt: skip
    """The kernel with a warp per run."""
    number = cuda.grid(1) // WARP_SIZE
    rows = params.shape[0]
    if number >= rows * means.shape[0]:
        return
    run = number // rows
    row = number - run * rows
    arms = means.shape[1]
    warp = cuda.threadIdx.x // WARP_SIZE
    registers = cuda.local.array(registers_capacity, dtype)
    shared = cuda.shared.array((warps_per_block, shared_capacity), dtype)
    counts = cuda.shared.array((warps_per_block, arms_capacity), int64)
    sums = cuda.shared.array((warps_per_block, arms_capacity), float64)
    cursors = cuda.local.array((3, 4), int64)
    setting = Setting(arms, features.shape[1], horizon, features[run if features.shape[0] > 1 else 0], policy_options)
    instance = PredrawnInstance(means[run], options, predrawn[run if predrawn.shape[2] > 1 else 0])
    agent, rewards, unseen = make_run_streams(
        cursors, seed, first_run + run, (first_noise + row if first_noise > 0 else 0)
    )
    succeeded = simulate_run(instance, setting, params[row], agent, rewards, unseen, registers, shared[warp],
                             counts[warp, :arms], sums[warp, :arms], at, realised, out[run, row])  # fmt: skip
    if not succeeded and get_lane() == 0:
        out[run, row, 0] = math.nan
