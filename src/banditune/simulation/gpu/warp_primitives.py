"""Operations of the lanes of a warp: sums, votes, shuffles. A single thread is a warp with one lane."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from banditune.core.scalar import Slot, scalar

get_lane = Slot("get_lane")
"""The number of this thread in its warp, its lane."""


count_lanes = Slot("count_lanes")
"""The number of lanes, a constant."""


count_arms_per_lane = Slot("count_arms_per_lane")
"""The number of arms of each lane, a constant. The last ones may be padding."""


sync_lanes = Slot("sync_lanes")
"""Synchronises the warp. Writes to shared memory before it are visible after it."""


sum_over_lanes = Slot("sum_over_lanes")
"""The sum of the numbers of all lanes."""


argmax_over_lanes = Slot("argmax_over_lanes")
"""The (value, arm) with the highest value of all lanes; ties go to the lowest arm."""


vote_any = Slot("vote_any")
"""Whether the condition holds in any lane."""


shuffle_from_lane = Slot("shuffle_from_lane")
"""The number of a given lane."""


shuffle_xor = Slot("shuffle_xor")
"""The number of the lane whose index differs in the bits of a mask. A warp with one lane does not use it."""


cast_real = Slot("cast_real")
"""A number in the float type of the warp."""


compute_reciprocal = Slot("compute_reciprocal")
"""1 / value, to rounding, for values between 1e-30 and 1e30."""


compute_reciprocal_root = Slot("compute_reciprocal_root")
"""1 / sqrt(value), to rounding, for values between 1e-30 and 1e30."""


@scalar
def _get_only_lane():
    return 0


@scalar
def _count_only_lane():
    return 1


@scalar
def _do_nothing():
    return None


@scalar
def _return_value(value):
    return value


@scalar
def _return_pair(value, arm):
    return value, arm


@scalar
def _return_own_value(value, lane):
    return value


@scalar
def _divide_one_by(value):
    return 1.0 / value


@scalar
def _divide_one_by_root(value):
    return 1.0 / math.sqrt(value)


SINGLE_THREAD_SLOTS: dict[str, Callable[..., Any]] = {
    "get_lane": _get_only_lane,
    "count_lanes": _count_only_lane,
    "sync_lanes": _do_nothing,
    "sum_over_lanes": _return_value,
    "argmax_over_lanes": _return_pair,
    "vote_any": _return_value,
    "shuffle_from_lane": _return_own_value,
    "shuffle_xor": _return_own_value,
    "cast_real": _return_value,
    "compute_reciprocal": _divide_one_by,
    "compute_reciprocal_root": _divide_one_by_root,
}
"""The slots of a warp with one lane."""


@scalar
def get_opaque_lane():
    """Return this thread's lane, for rarely executed code. All lanes call this together.

    The lane is passed through a shuffle, so that the compiler treats it as unknown. Otherwise the compiler would compute
    all that depends on it, such as addresses of features, before the loop over steps, and use too many registers.
    """
    return shuffle_from_lane(get_lane(), get_lane()) & (count_lanes() - 1)
