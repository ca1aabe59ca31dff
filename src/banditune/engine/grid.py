"""The loops on a GPU: one thread for a job, or one team of threads.

A job is one parameter row on one instance. Neighbouring jobs play neighbouring rows on the same instance, so that they read
the same means and features. Numba compiles this for the GPU; nothing here runs on the CPU but in CUDA's simulator.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from numba import cuda
from numpy import float32, float64, int32, int64, uint32

from banditune.contracts import Setting, Slot, scalar
from banditune.engine.loop import aim_all, instance_key, play
from banditune.streams import REWARDS, Stream, aim

lane = Slot("lane")
arms_room = Slot("arms_room")
floats_room = Slot("floats_room")
integers_room = Slot("integers_room")
held_room = Slot("held_room")
common_room = Slot("common_room")
teams = Slot("teams")
precision = Slot("precision")
drawn = Slot("drawn")

WARP = 32
"""Threads in a team on a GPU."""

EVERYONE = 0xFFFFFFFF
"""All threads of a warp."""

MANY = int32(1 << 30)
"""More than there are arms."""


class Drawn(NamedTuple):
    """What nature knows on a GPU: an `Instance` with the rewards that were drawn ahead, a row per arm."""

    means: Any
    options: Any
    paid: Any


@scalar
def paid_ahead(instance, arm, pull, step, stream):
    """A reward that was drawn ahead, if they were; unseen rewards are drawn when they are asked for."""
    if stream.cursor[3] == REWARDS and instance.paid.shape[1] > max(1, pull):
        return instance.paid[arm, pull]
    return drawn(instance, arm, pull, step, stream)


def draw_ahead(means, seed, first_run, options, paid):
    """The kernel that draws the rewards of all pulls; neighbouring threads draw neighbouring pulls of one arm."""
    arms, horizon = paid.shape[1], paid.shape[2]
    run = cuda.blockIdx.y
    place = cuda.grid(1)
    if place >= arms * horizon:
        return
    arm = place // horizon
    pull = place - arm * horizon
    cursor = cuda.local.array(4, int64)
    cursor[3] = REWARDS
    key0, key1 = instance_key(seed, first_run + run)
    stream = Stream(key0, key1, cursor)
    aim(stream, arm, pull)
    paid[run, arm, pull] = drawn(Drawn(means[run], options, paid[run]), arm, pull, 0, stream)


@scalar
def streams_of(cursors, seed, run, noise):
    """The streams of agent, rewards and unseen rewards of a run, at their beginnings."""
    key0, key1 = instance_key(seed, run)
    aim_all(cursors, noise * 256)
    return Stream(key0, key1, cursors[0]), Stream(key0, key1, cursors[1]), Stream(key0, key1, cursors[2])


def play_threads(means, features, seed, first_run, options, params, policy_options, horizon, first_noise, at, realised,
                 paid, out):  # fmt: skip
    """The kernel with a thread per job. `out` is (instances, params, checkpoints), NaN where a job could not go on."""
    job = cuda.grid(1)
    rows = params.shape[0]
    if job >= rows * means.shape[0]:
        return
    run = job // rows
    row = job - run * rows
    arms = means.shape[1]
    floats = cuda.local.array(floats_room, precision)
    # Half the size of the CPU's: what all threads of a GPU keep at a time decides how far away they must keep it.
    integers = cuda.local.array(integers_room, uint32)
    pulls = cuda.local.array(arms_room, int32)
    totals = cuda.local.array(arms_room, float64)
    cursors = cuda.local.array((3, 4), int64)
    trouble = cuda.local.array(3, float64)
    # As on the CPU, where memory starts from zeros: what is multiplied by 0 must be a number.
    for place in range(floats_room):
        floats[place] = 0.0
    for place in range(integers_room):
        integers[place] = 0
    for arm in range(arms):
        pulls[arm] = 0
        totals[arm] = 0.0
    setting = Setting(arms, features.shape[1], horizon, features[run if features.shape[0] > 1 else 0], policy_options)
    instance = Drawn(means[run], options, paid[run if paid.shape[2] > 1 else 0])
    agent, rewards, unseen = streams_of(cursors, seed, first_run + run, (first_noise + row if first_noise > 0 else 0))
    fine = play(instance, setting, params[row], agent, rewards, unseen, floats, integers, pulls[:arms], totals[:arms],
                at, realised, out[run, row], trouble)  # fmt: skip
    if not fine:
        out[run, row, 0] = math.nan


def play_teams(means, features, seed, first_run, options, params, policy_options, horizon, first_noise, at, realised,
               paid, out):  # fmt: skip
    """The kernel with a team per job."""
    number = cuda.grid(1) // WARP
    rows = params.shape[0]
    if number >= rows * means.shape[0]:
        return
    run = number // rows
    row = number - run * rows
    arms = means.shape[1]
    place = cuda.threadIdx.x // WARP
    held = cuda.local.array(held_room, precision)
    commons = cuda.shared.array((teams, common_room), precision)
    counts = cuda.shared.array((teams, arms_room), int64)
    sums = cuda.shared.array((teams, arms_room), float64)
    cursors = cuda.local.array((3, 4), int64)
    setting = Setting(arms, features.shape[1], horizon, features[run if features.shape[0] > 1 else 0], policy_options)
    instance = Drawn(means[run], options, paid[run if paid.shape[2] > 1 else 0])
    agent, rewards, unseen = streams_of(cursors, seed, first_run + run, (first_noise + row if first_noise > 0 else 0))
    fine = play(instance, setting, params[row], agent, rewards, unseen, held, commons[place], counts[place, :arms],
                sums[place, :arms], at, realised, out[run, row])  # fmt: skip
    if not fine and lane() == 0:
        out[run, row, 0] = math.nan


# What a team's slots are filled with where it is a warp; `policies.team` says what each of them does.


@scalar
def warp_lane():
    return cuda.laneid & 31  # so that the compiler knows that it is no less than 0


@scalar
def warp_members():
    return WARP


@scalar
def warp_sync():
    cuda.syncwarp(EVERYONE)


@scalar
def warp_total(value):
    value += cuda.shfl_xor_sync(EVERYONE, value, 16)
    value += cuda.shfl_xor_sync(EVERYONE, value, 8)
    value += cuda.shfl_xor_sync(EVERYONE, value, 4)
    value += cuda.shfl_xor_sync(EVERYONE, value, 2)
    value += cuda.shfl_xor_sync(EVERYONE, value, 1)
    return value


@scalar
def warp_best(value, arm):
    """First the highest value; mostly one thread has it, and says which arm it is."""
    highest = value
    for turn in range(5):
        other = cuda.shfl_xor_sync(EVERYONE, highest, 16 >> turn)
        highest = other if other > highest else highest
    highest = cuda.shfl_sync(EVERYONE, highest, 0)  # all agree, even where a value is not a number
    tied = cuda.ballot_sync(EVERYONE, value == highest)
    if cuda.popc(tied) == 1:
        return highest, cuda.shfl_sync(EVERYONE, arm, cuda.ffs(tied) - 1)
    arm = arm if value == highest else int32(arm + MANY)
    for turn in range(5):
        rival = cuda.shfl_xor_sync(EVERYONE, arm, 16 >> turn)
        arm = rival if rival < arm else arm
    return highest, int32(arm & (MANY - 1))


@scalar
def warp_any(said):
    return cuda.any_sync(EVERYONE, said)


@scalar
def warp_from_lane(value, lane):
    return cuda.shfl_sync(EVERYONE, value, lane)


@scalar
def warp_exchange(value, mask):
    return cuda.shfl_xor_sync(EVERYONE, value, mask)


@scalar
def double_inverse(value):
    """The hardware's guess in single precision, then a step that triples its digits."""
    guess = float64(cuda.libdevice.fast_fdividef(float32(1.0), float32(value)))
    left = 1.0 - value * guess
    return guess + guess * (left + left * left)


@scalar
def single_inverse(value):
    return cuda.libdevice.fast_fdividef(float32(1.0), value)


@scalar
def double_inverse_root(value):
    """The hardware's guess in single precision, then a step that triples its digits."""
    guess = float64(cuda.libdevice.rsqrtf(float32(value)))
    left = 1.0 - value * guess * guess
    return guess + guess * (left * (0.5 + 0.375 * left))


@scalar
def single_inverse_root(value):
    return cuda.libdevice.rsqrtf(value)


@scalar
def double(value):
    return float64(value)


@scalar
def single(value):
    return float32(value)


@scalar
def single_log(value):
    return cuda.libdevice.fast_logf(value)


@scalar
def single_exp(value):
    return cuda.libdevice.fast_expf(value)
