"""The kernels for a GPU: one thread for a run, or one warp."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from numba import cuda
from numpy import float64, int32, int64, uint32

from banditune.core.policy import Setting
from banditune.core.scalar import Slot, scalar
from banditune.core.streams import REWARD_STREAM, Stream, seek
from banditune.simulation.gpu.cuda_primitives import WARP_SIZE
from banditune.simulation.loop import compute_instance_key, play_run, reset_cursors

lane = Slot("lane")


arms_capacity = Slot("arms_room")


floats_capacity = Slot("floats_room")


integers_capacity = Slot("integers_room")


registers_capacity = Slot("held_room")


shared_capacity = Slot("common_room")


warps_per_block = Slot("teams")


dtype = Slot("precision")


draw_reward = Slot("drawn")


class PredrawnInstance(NamedTuple):
    """An `Instance` with predrawn rewards, a row per arm."""

    means: Any
    options: Any
    predrawn: Any


@scalar
def read_predrawn_reward(instance, arm, pull, step, stream):
    """A predrawn reward, if there are any; unseen rewards are drawn when they are needed."""
    if stream.cursor[3] == REWARD_STREAM and instance.predrawn.shape[1] > max(1, pull):
        return instance.predrawn[arm, pull]
    return draw_reward(instance, arm, pull, step, stream)


def predraw_rewards(means, seed, first_run, options, paid):
    """The kernel that draws the rewards of all pulls; neighbouring threads draw neighbouring pulls of one arm."""
    arms, horizon = paid.shape[1], paid.shape[2]
    run = cuda.blockIdx.y
    place = cuda.grid(1)
    if place >= arms * horizon:
        return
    arm = place // horizon
    pull = place - arm * horizon
    cursor = cuda.local.array(4, int64)
    cursor[3] = REWARD_STREAM
    key0, key1 = compute_instance_key(seed, first_run + run)
    stream = Stream(key0, key1, cursor)
    seek(stream, arm, pull)
    paid[run, arm, pull] = draw_reward(PredrawnInstance(means[run], options, paid[run]), arm, pull, 0, stream)


@scalar
def make_run_streams(cursors, seed, run, noise):
    """The streams of agent, rewards and unseen rewards of a run, at their beginnings."""
    key0, key1 = compute_instance_key(seed, run)
    reset_cursors(cursors, noise * 256)
    return Stream(key0, key1, cursors[0]), Stream(key0, key1, cursors[1]), Stream(key0, key1, cursors[2])


def play_by_threads(means, features, seed, first_run, options, params, policy_options, horizon, first_noise, at, realised,
                 paid, out):  # fmt: skip
    """The kernel with a thread per run. `out` is (instances, params, checkpoints), NaN where a run failed."""
    number = cuda.grid(1)
    rows = params.shape[0]
    if number >= rows * means.shape[0]:
        return
    run = number // rows
    row = number - run * rows
    arms = means.shape[1]
    floats = cuda.local.array(floats_capacity, dtype)
    # Half the size of the CPU's: what all threads of a GPU keep at a time decides how far away they must keep it.
    integers = cuda.local.array(integers_capacity, uint32)
    pulls = cuda.local.array(arms_capacity, int32)
    totals = cuda.local.array(arms_capacity, float64)
    cursors = cuda.local.array((3, 4), int64)
    trouble = cuda.local.array(3, float64)
    # As on the CPU, where memory starts from zeros: what is multiplied by 0 must be a number.
    for place in range(floats_capacity):
        floats[place] = 0.0
    for place in range(integers_capacity):
        integers[place] = 0
    for arm in range(arms):
        pulls[arm] = 0
        totals[arm] = 0.0
    setting = Setting(arms, features.shape[1], horizon, features[run if features.shape[0] > 1 else 0], policy_options)
    instance = PredrawnInstance(means[run], options, paid[run if paid.shape[2] > 1 else 0])
    agent, rewards, unseen = make_run_streams(
        cursors, seed, first_run + run, (first_noise + row if first_noise > 0 else 0)
    )
    fine = play_run(instance, setting, params[row], agent, rewards, unseen, floats, integers, pulls[:arms], totals[:arms],
                at, realised, out[run, row], trouble)  # fmt: skip
    if not fine:
        out[run, row, 0] = math.nan


def play_by_warps(means, features, seed, first_run, options, params, policy_options, horizon, first_noise, at, realised,
               paid, out):  # fmt: skip
    """The kernel with a warp per run."""
    number = cuda.grid(1) // WARP_SIZE
    rows = params.shape[0]
    if number >= rows * means.shape[0]:
        return
    run = number // rows
    row = number - run * rows
    arms = means.shape[1]
    place = cuda.threadIdx.x // WARP_SIZE
    held = cuda.local.array(registers_capacity, dtype)
    commons = cuda.shared.array((warps_per_block, shared_capacity), dtype)
    counts = cuda.shared.array((warps_per_block, arms_capacity), int64)
    sums = cuda.shared.array((warps_per_block, arms_capacity), float64)
    cursors = cuda.local.array((3, 4), int64)
    setting = Setting(arms, features.shape[1], horizon, features[run if features.shape[0] > 1 else 0], policy_options)
    instance = PredrawnInstance(means[run], options, paid[run if paid.shape[2] > 1 else 0])
    agent, rewards, unseen = make_run_streams(
        cursors, seed, first_run + run, (first_noise + row if first_noise > 0 else 0)
    )
    fine = play_run(instance, setting, params[row], agent, rewards, unseen, held, commons[place], counts[place, :arms],
                sums[place, :arms], at, realised, out[run, row])  # fmt: skip
    if not fine and lane() == 0:
        out[run, row, 0] = math.nan
