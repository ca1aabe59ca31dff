"""Scratch arrays of a policy's `choose`: floats behind its memory, which are 0 at every call of `choose`."""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from banditune.core.policy import Policy, ScratchShape, Setting
from banditune.core.scalar import Slot, scalar

choose = Slot("choose")


def count_policy_floats(policy: Policy, arms: int, dims: int, horizon: int) -> int:
    """Count the floats that a run of a policy needs: its memory and its scratch arrays."""
    setting = Setting(arms, dims, horizon, np.empty((0, 0)), np.empty(0))
    count_scratch = _make_counter(tuple(dict(policy.scratch).values()))
    return policy.memory(arms, dims, horizon) + int(count_scratch(setting))


def fill_choose_slots(policy: Policy) -> dict[str, Callable[..., Any]]:
    """Fill the slots that split the floats of a run and call `choose`, with scratch arrays if the policy has some."""
    if policy.scratch:
        return {"split_floats": make_splitter(dict(policy.scratch)), "select_arm": select_arm_with_scratch}
    return {"split_floats": keep_floats, "select_arm": select_arm_without_scratch}


@scalar
def keep_floats(floats, setting):
    """Return the memory, and no scratch arrays."""
    return floats, ()


@scalar
def select_arm_without_scratch(state, scratch, setting, step, params, stream):
    """Call `choose`."""
    return choose(state, setting, step, params, stream)


@scalar
def select_arm_with_scratch(state, scratch, setting, step, params, stream):
    """Call `choose` with its scratch arrays, and clear them, so that they are 0 at the next step."""
    arm = choose(state, setting, step, params, stream, scratch)
    for array in scratch:
        for position in range(len(array)):
            array[position] = 0.0
    return arm


def make_splitter(scratch: Mapping[str, ScratchShape]) -> Callable[..., Any]:
    """Make the scalar function that splits floats into the memory and, behind it, a record of scratch arrays."""
    record = namedtuple("Scratch", scratch)  # type: ignore[misc]
    shapes = tuple(scratch.values())
    count_floats, slice_arrays = _make_counter(shapes), _make_slicer(shapes)

    @scalar
    def split_floats(floats, setting):
        first = len(floats) - count_floats(setting)
        return floats[:first], record(*slice_arrays(floats[first:], setting))

    return split_floats


def _make_slicer(shapes: Sequence[ScratchShape]) -> Callable[..., Any]:
    """Make the scalar function that slices floats into arrays of these shapes."""
    if not shapes:
        return _slice_nothing
    slice_before, count_before, count_all = _make_slicer(shapes[:-1]), _make_counter(shapes[:-1]), _make_counter(shapes)

    @scalar
    def slice_arrays(floats, setting):
        return (*slice_before(floats, setting), floats[count_before(setting) : count_all(setting)])

    return slice_arrays


def _make_counter(shapes: Sequence[ScratchShape]) -> Callable[..., Any]:
    """Make the scalar function that counts the floats of arrays of these shapes."""
    if not shapes:
        return _count_nothing
    factors = shapes[-1] if isinstance(shapes[-1], tuple) else (shapes[-1],)
    count_before, number = (
        _make_counter(shapes[:-1]),
        math.prod(factor for factor in factors if isinstance(factor, int)),
    )
    by_arms, by_dims, by_horizon = (factors.count(word) for word in ("arms", "dims", "horizon"))

    @scalar
    def count_floats(setting):
        size = number
        for _ in range(by_arms):
            size *= setting.arms
        for _ in range(by_dims):
            size *= setting.dims
        for _ in range(by_horizon):
            size *= setting.horizon
        return count_before(setting) + size

    return count_floats


@scalar
def _slice_nothing(floats, setting):
    return ()


@scalar
def _count_nothing(setting):
    return 0
