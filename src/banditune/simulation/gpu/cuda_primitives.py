"""CUDA operations for kernels: communication between the lanes of a warp, and fast arithmetic in float32 and float64."""

from __future__ import annotations

from numba import cuda
from numpy import float32, float64, int32

from banditune.core.scalar import scalar

WARP_SIZE = 32
"""Threads in a warp."""


FULL_WARP_MASK = 0xFFFFFFFF
"""All lanes of a warp."""


ARM_NUMBER_LIMIT = int32(1 << 30)
"""Larger than any arm number."""


# The slots of `warp_primitives` for a real warp.


@scalar
def get_lane():
    return cuda.laneid & 31  # because of the mask, the compiler knows that the lane is not negative


@scalar
def get_warp_size():
    return WARP_SIZE


@scalar
def sync_warp():
    cuda.syncwarp(FULL_WARP_MASK)


@scalar
def sum_over_warp(value):
    value += cuda.shfl_xor_sync(FULL_WARP_MASK, value, 16)
    value += cuda.shfl_xor_sync(FULL_WARP_MASK, value, 8)
    value += cuda.shfl_xor_sync(FULL_WARP_MASK, value, 4)
    value += cuda.shfl_xor_sync(FULL_WARP_MASK, value, 2)
    value += cuda.shfl_xor_sync(FULL_WARP_MASK, value, 1)
    return value


@scalar
def find_best_in_warp(value, arm):
    """Find the highest value and its arm. If several lanes have this value, the lowest arm is returned."""
    highest = value
    for turn in range(5):
        rival_value = cuda.shfl_xor_sync(FULL_WARP_MASK, highest, 16 >> turn)
        highest = rival_value if rival_value > highest else highest
    highest = cuda.shfl_sync(FULL_WARP_MASK, highest, 0)  # all lanes have the same value, even if one value is NaN
    tied = cuda.ballot_sync(FULL_WARP_MASK, value == highest)
    if cuda.popc(tied) == 1:
        return highest, cuda.shfl_sync(FULL_WARP_MASK, arm, cuda.ffs(tied) - 1)
    arm = arm if value == highest else int32(arm + ARM_NUMBER_LIMIT)
    for turn in range(5):
        rival = cuda.shfl_xor_sync(FULL_WARP_MASK, arm, 16 >> turn)
        arm = rival if rival < arm else arm
    return highest, int32(arm & (ARM_NUMBER_LIMIT - 1))


@scalar
def is_true_in_any_lane(condition):
    return cuda.any_sync(FULL_WARP_MASK, condition)


@scalar
def read_from_lane(value, lane):
    return cuda.shfl_sync(FULL_WARP_MASK, value, lane)


@scalar
def exchange_between_lanes(value, mask):
    return cuda.shfl_xor_sync(FULL_WARP_MASK, value, mask)


@scalar
def invert_float64(value):
    """Refine the hardware's approximation in single precision by a step that triples its digits."""
    guess = float64(cuda.libdevice.fast_fdividef(float32(1.0), float32(value)))
    residual = 1.0 - value * guess
    return guess + guess * (residual + residual * residual)


@scalar
def invert_float32(value):
    return cuda.libdevice.fast_fdividef(float32(1.0), value)


@scalar
def invert_root_float64(value):
    """Refine the hardware's approximation in single precision by a step that triples its digits."""
    guess = float64(cuda.libdevice.rsqrtf(float32(value)))
    residual = 1.0 - value * guess * guess
    return guess + guess * (residual * (0.5 + 0.375 * residual))


@scalar
def invert_root_float32(value):
    return cuda.libdevice.rsqrtf(value)


@scalar
def cast_float64(value):
    return float64(value)


@scalar
def cast_float32(value):
    return float32(value)


@scalar
def compute_log_float32(value):
    return cuda.libdevice.fast_logf(value)


@scalar
def compute_exp_float32(value):
    return cuda.libdevice.fast_expf(value)
