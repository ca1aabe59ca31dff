"""Policies played by a team of threads in lock-step: what a GPU gives to one run of a policy that looks at many numbers.

A team is a warp of a GPU, or a single thread: then this is scalar code like any other, and the oracle for the GPU's. All
threads of a team run the same code on the same run. What they agree on (the arm, the reward, the step) all of them
compute; what is a loop over arms or dimensions they share: thread `lane()` takes arms lane(), lane() + members(), ...

Memory comes in two parts. `held` belongs to one thread and stays in registers, so it may only be indexed by constants and
by loops of constant length. `common` belongs to the team: between a write and a read by another thread stands `sync()`.
`total`, `best`, `any_of`, `from_lane` and `exchange` are called by all threads of a team together, so never in a branch on
which they do not agree; the first three return the same bits to every thread.

Numbers of a team are float32 or float64, as its memory is; `real` makes a constant of that kind.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from banditune.contracts import Slot, scalar

lane = Slot("lane")
"""The number of this thread in its team."""
members = Slot("members")
"""How many threads a team has, a constant."""
share = Slot("share")
"""How many arms each thread takes, a constant: the last ones may not exist."""
sync = Slot("sync")
"""Wait for the team: what was written to `common` before can be read after."""
total = Slot("total")
"""The sum of every thread's number."""
best = Slot("best")
"""Of every thread's (value, arm), the one with the highest value; ties go to the lowest arm."""
any_of = Slot("any_of")
"""Whether any thread says so."""
from_lane = Slot("from_lane")
"""The number that the thread `lane` has."""
exchange = Slot("exchange")
"""The number that the thread has whose number differs in the bits of a mask; a team of one never asks."""
real = Slot("real")
"""A number in the team's precision."""
inverse = Slot("inverse")
"""1 / value, to rounding, for values between 1e-30 and 1e30."""
inverse_root = Slot("inverse_root")
"""1 / sqrt(value), to rounding, for values between 1e-30 and 1e30."""


@scalar
def _first():
    return 0


@scalar
def _single():
    return 1


@scalar
def _nothing():
    return None


@scalar
def _itself(value):
    return value


@scalar
def _pair(value, arm):
    return value, arm


@scalar
def _mine(value, lane):
    return value


@scalar
def _inverse(value):
    return 1.0 / value


@scalar
def _inverse_root(value):
    return 1.0 / math.sqrt(value)


ALONE: dict[str, Callable[..., Any]] = {
    "lane": _first, "members": _single, "sync": _nothing, "total": _itself, "best": _pair, "any_of": _itself,
    "from_lane": _mine, "exchange": _mine, "real": _itself, "inverse": _inverse, "inverse_root": _inverse_root,
}  # fmt: skip
"""What the slots are filled with for a team of one."""
