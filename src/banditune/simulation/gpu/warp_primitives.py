"""What the lanes of a warp do together: sums, votes, shuffles. A single thread is a warp of one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from banditune.core.scalar import Slot, scalar

get_lane = Slot("lane")
"""The number of this thread in its warp."""


count_lanes = Slot("members")
"""The number of threads in a warp, a constant."""


count_arms_per_lane = Slot("share")
"""How many arms each thread takes, a constant: the last ones may not exist."""


sync_lanes = Slot("sync")
"""Synchronise the warp: shared memory that was written before can be read after."""


sum_over_lanes = Slot("total")
"""The sum of every thread's number."""


argmax_over_lanes = Slot("best")
"""Of every thread's (value, arm), the one with the highest value; ties go to the lowest arm."""


vote_any = Slot("any_of")
"""Whether the condition holds in any thread."""


shuffle_from_lane = Slot("from_lane")
"""The number that the thread `get_lane` has."""


shuffle_xor = Slot("exchange")
"""The number that the thread has whose number differs in the bits of a mask; a warp of one never asks."""


cast_real = Slot("real")
"""A number in the precision of the warp."""


compute_reciprocal = Slot("inverse")
"""1 / value, to rounding, for values between 1e-30 and 1e30."""


compute_reciprocal_root = Slot("inverse_root")
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
    "lane": _get_only_lane,
    "members": _count_only_lane,
    "sync": _do_nothing,
    "total": _return_value,
    "best": _return_pair,
    "any_of": _return_value,
    "from_lane": _return_own_value,
    "exchange": _return_own_value,
    "real": _return_value,
    "inverse": _divide_one_by,
    "inverse_root": _divide_one_by_root,
}
"""The slots of a warp of one thread."""


@scalar
def get_opaque_lane():
    """This thread's number, for use off the hot path; all threads call this together.

    It is handed around so that the compiler cannot know it before: else it computes all that depends on it, such as
    addresses of features, ahead of the loop over steps, and no registers are left.
    """
    return shuffle_from_lane(get_lane(), get_lane()) & (count_lanes() - 1)
