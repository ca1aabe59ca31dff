"""Policies that use scratch arrays, for tests on several devices."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import banditune as bt
from banditune.kernel import Policy


@bt.kernel.scalar
def choose_by_softmax(state, setting, step, params, stream, scratch):
    """An arm with a probability proportional to exp(mean / temperature); reads what it writes, and counts on zeros."""
    highest = 0.0
    for arm in range(setting.arms):
        if state.pulls[arm] == 0.0:
            return arm
        highest = max(highest, state.total[arm] / state.pulls[arm])
    total = 0.0
    for arm in range(setting.arms):
        scratch.weights[arm] += math.exp((state.total[arm] / state.pulls[arm] - highest) / params[0])
        total += scratch.weights[arm]
        scratch.sums[setting.arms + arm] = total
    threshold = bt.kernel.uniform(stream) * total
    for arm in range(setting.arms):
        if threshold < scratch.sums[setting.arms + arm]:
            return arm
    return setting.arms - 1


TEMPERATURE = bt.Parameter("temperature", 0.01, 1, textbook=0.1)
SOFTMAX = bt.define_policy(
    "softmax", choose_by_softmax, parameters=TEMPERATURE, scratch={"weights": "arms", "sums": (2, "arms")}
)


class CountState(NamedTuple):
    pulls: Any
    total: Any
    rest: Any


@bt.kernel.scalar
def view_counts(memory, setting):
    return CountState(memory[: setting.arms], memory[setting.arms : 2 * setting.arms], memory[2 * setting.arms :])


@bt.kernel.scalar
def start_counts(state, setting):
    for arm in range(setting.arms):
        state.pulls[arm] = 0.0
        state.total[arm] = 0.0
    for place in range(len(state.rest)):
        state.rest[place] = 7.0


@bt.kernel.scalar
def choose_median(state, setting, step, params, stream, scratch):
    """Each arm once, then the arm with the median mean: arms are sorted by insertion, ties by their number."""
    for arm in range(setting.arms):
        if state.pulls[arm] == 0.0:
            return arm
        place = arm
        mean = state.total[arm] / state.pulls[arm]
        while place > 0 and scratch.mean[place - 1] > mean:
            scratch.mean[place] = scratch.mean[place - 1]
            scratch.order[place] = scratch.order[place - 1]
            place -= 1
        scratch.mean[place] = mean
        scratch.order[place] = arm
    return int(scratch.order[setting.arms // 2])


@bt.kernel.scalar
def update_counts(state, setting, step, params, arm, reward, stream):
    state.pulls[arm] += 1.0
    state.total[arm] += reward


@dataclass(frozen=True)
class MedianArm(Policy):
    """A policy with its own memory beside scratch arrays, which draws nothing."""

    name = "median-arm"
    scratch = MappingProxyType({"mean": "arms", "order": "arms"})
    view = staticmethod(view_counts)
    start = staticmethod(start_counts)
    choose = staticmethod(choose_median)
    update = staticmethod(update_counts)

    def memory(self, arms, dims, horizon):
        return 2 * arms + 1


@bt.kernel.scalar
def choose_median_by_counting(state, setting, step, params, stream):
    """The same without scratch arrays: the arm with as many arms before it as the median has."""
    for arm in range(setting.arms):
        if state.pulls[arm] == 0.0:
            return arm
    for arm in range(setting.arms):
        mean = state.total[arm] / state.pulls[arm]
        before = 0
        for rival in range(setting.arms):
            rival_mean = state.total[rival] / state.pulls[rival]
            if rival_mean < mean or (rival_mean == mean and rival < arm):
                before += 1
        if before == setting.arms // 2:
            return arm
    return -1


COUNTED_MEDIAN = bt.define_policy("counted-median", choose_median_by_counting)


@bt.kernel.scalar
def choose_by_flag(state, setting, step, params, stream, scratch):
    """Arm 0 if no number of an earlier step is left, else arm 1."""
    seen = scratch.flag[0] + scratch.flag[setting.horizon - 1]
    scratch.flag[0] = 1.0
    scratch.flag[setting.horizon - 1] = 1.0
    return 1 if seen > 0.0 else 0


FLAG = bt.define_policy("flag", choose_by_flag, scratch={"flag": "horizon"})
