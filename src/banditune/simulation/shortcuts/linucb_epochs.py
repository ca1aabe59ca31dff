"""Epochs of LinUCB's shortcut: its memory, and which arms are active until G is factorised again."""

from __future__ import annotations

import math
from typing import NamedTuple

from banditune.core.arrays import FloatArray, IntArray
from banditune.core.scalar import noinline, scalar
from banditune.simulation.estimators.matrices import factorise_cholesky, invert_triangle
from banditune.simulation.estimators.vector_layout import argmax_score
from banditune.simulation.estimators.whitened_features import whiten_features

INITIAL_ACTIVE = 16
"""Active arms of the first epoch: twice as many after a short epoch, half after a long one."""


SHORT_EPOCH, LONG_EPOCH = 4, 32
"""Steps per active arm: an epoch with fewer is short, and none continues after more, or after half of all earlier steps.

A stay is not cut. Every epoch factorises G again, so rounding errors do not accumulate.
"""


class ActiveSetState(NamedTuple):
    """The memory of the shortcut: entries per arm, entries per active arm, matrices, vectors, numbers.

    `upper_bound` holds upper confidence bounds: of all arms while active ones are chosen, later of these. `scratch` is
    for sums and sorting. `leader_covariance` is x' G^-1 x_leader. `gram` is G, `epoch_gram` G at the start of the
    epoch. `factor` is the inverse of its Cholesky factor, and `inverse` is G^-1. `drift` is theta - theta0, `gain` G^-1
    x_leader.
    """

    prior_score: FloatArray
    score: FloatArray
    width: FloatArray
    slack: FloatArray
    upper_bound: FloatArray
    scratch: FloatArray
    active_score: FloatArray
    active_variance: FloatArray
    leader_covariance: FloatArray
    features: FloatArray
    active_features: FloatArray
    gram: FloatArray
    epoch_gram: FloatArray
    factor: FloatArray
    inverse: FloatArray
    moment: FloatArray
    estimate: FloatArray
    drift: FloatArray
    gain: FloatArray
    numbers: FloatArray
    active: IntArray
    counts: IntArray


def count_active_set_numbers(arms: int, dims: int, horizon: int) -> tuple[int, int]:
    """Return the number of floats and integers in an `ActiveSetState`."""
    return 9 * arms + 2 * arms * dims + 4 * dims * dims + 4 * dims + 4, arms + 4


@scalar
def view_active_set(floats, integers, setting):
    """Split the strips, in the order of the record."""
    arms = setting.arms
    dims = setting.dims
    a = 9 * arms
    b = a + 2 * arms * dims
    c = b + 4 * dims * dims
    e = c + 4 * dims
    return ActiveSetState(
        floats[:arms],
        floats[arms : 2 * arms],
        floats[2 * arms : 3 * arms],
        floats[3 * arms : 4 * arms],
        floats[4 * arms : 5 * arms],
        floats[5 * arms : 6 * arms],
        floats[6 * arms : 7 * arms],
        floats[7 * arms : 8 * arms],
        floats[8 * arms : 9 * arms],
        floats[a : a + arms * dims],
        floats[a + arms * dims : b],
        floats[b : b + dims * dims],
        floats[b + dims * dims : b + 2 * dims * dims],
        floats[b + 2 * dims * dims : b + 3 * dims * dims],
        floats[b + 3 * dims * dims : c],
        floats[c : c + dims],
        floats[c + dims : c + 2 * dims],
        floats[c + 2 * dims : c + 3 * dims],
        floats[c + 3 * dims : e],
        floats[e : e + 4],
        integers[:arms],
        integers[arms : arms + 4],
    )


REACH, FLOOR, FACTOR, RHO = 0, 1, 2, 3
"""Positions in `numbers`.

FACTOR is gamma times the textbook factor, RHO the distance of theta from the epoch's start.
"""


ACTIVE_COUNT, WANTED_COUNT, EPOCH_START, EPOCH_END = 0, 1, 2, 3
"""Positions in `counts`: active arms, their target number, the epoch's first step, and the step at which it ends."""


@scalar
def start_active_set(field, setting, factor):
    """Reset the memory to the prior."""
    whiten_features(field.features, field.prior_score, setting)
    for place in range(setting.dims * setting.dims):
        field.gram[place] = 0.0
    for j in range(setting.dims):
        field.gram[j * setting.dims + j] = setting.options[0]
        field.moment[j] = 0.0
    field.numbers[FACTOR] = factor
    field.counts[WANTED_COUNT] = min(INITIAL_ACTIVE, setting.arms)
    field.counts[EPOCH_START] = 0


@noinline
def start_epoch(field, setting, step):
    """Factorise G, compute every arm's score and width, and choose the active arms."""
    arms = setting.arms
    dims = setting.dims
    lasted = step - field.counts[EPOCH_START]
    if step > 0 and step >= field.counts[EPOCH_END]:
        field.counts[WANTED_COUNT] = max(field.counts[WANTED_COUNT] // 2, min(8, arms))
    elif step > 0 and lasted < SHORT_EPOCH * field.counts[WANTED_COUNT]:
        field.counts[WANTED_COUNT] = min(2 * field.counts[WANTED_COUNT], arms)
    field.counts[EPOCH_START] = step
    field.counts[EPOCH_END] = step + min(
        LONG_EPOCH * field.counts[WANTED_COUNT], field.counts[WANTED_COUNT] + step // 2
    )
    factorise_gram(field, setting)
    score_all_arms(field, setting)
    choose_active_arms(field, setting)
    field.numbers[RHO] = 0.0
    for j in range(dims):
        field.drift[j] = 0.0
    active_count = field.counts[ACTIVE_COUNT]
    for place in range(active_count):
        arm = field.active[place]
        field.active_score[place] = field.score[arm]
        field.active_variance[place] = field.width[arm] * field.width[arm]
        for j in range(dims):
            field.active_features[j * active_count + place] = field.features[j * arms + arm]


@scalar
def factorise_gram(field, setting):
    """Compute G^-1 and theta from the sums, and store G."""
    dims = setting.dims
    factor = field.factor
    for place in range(dims * dims):
        field.epoch_gram[place] = field.gram[place]
        factor[place] = field.gram[place]
        field.inverse[place] = 0.0
    factorise_cholesky(factor, dims)
    invert_triangle(factor, dims)
    for k in range(dims):
        for i in range(k + 1):
            entry = factor[k * dims + i]
            for j in range(k + 1):
                field.inverse[i * dims + j] += entry * factor[k * dims + j]
    for j in range(dims):
        field.estimate[j] = 0.0
    for i in range(dims):
        entry = field.moment[i]
        for j in range(dims):
            field.estimate[j] += entry * field.inverse[i * dims + j]


@scalar
def score_all_arms(field, setting):
    """Compute every arm's score and width: x' G^-1 x is the squared norm of factor x."""
    arms = setting.arms
    dims = setting.dims
    for arm in range(arms):
        field.score[arm] = field.prior_score[arm]
        field.width[arm] = 0.0
    for j in range(dims):
        entry = field.estimate[j]
        for arm in range(arms):
            field.score[arm] += entry * field.features[j * arms + arm]
    for i in range(dims):
        for arm in range(arms):
            field.scratch[arm] = 0.0
        for j in range(i + 1):
            entry = field.factor[i * dims + j]
            for arm in range(arms):
                field.scratch[arm] += entry * field.features[j * arms + arm]
        for arm in range(arms):
            field.width[arm] += field.scratch[arm] * field.scratch[arm]
    for arm in range(arms):
        field.width[arm] = math.sqrt(field.width[arm])


@scalar
def choose_active_arms(field, setting):
    """Choose the arms of least slack, in the order of their numbers. The least slack of the others is the reach."""
    arms = setting.arms
    target_count = field.counts[WANTED_COUNT]
    factor = field.numbers[FACTOR]
    all_active = target_count >= arms
    for arm in range(arms):
        field.upper_bound[arm] = field.score[arm] + factor * field.width[arm]
    lead = argmax_score(field.upper_bound)
    highest = field.upper_bound[lead]
    for arm in range(arms):
        field.slack[arm] = (highest - field.upper_bound[arm]) / max(field.width[arm] + field.width[lead], 1e-300)
    least = math.inf if all_active else find_order_statistic(field.slack, field.scratch, target_count)
    # Slightly less than the proof allows, for rounding.
    reach = 0.999999 * least
    field.numbers[REACH] = reach
    field.numbers[FLOOR] = -math.inf if all_active else highest - reach * field.width[lead]
    active_count = 0
    for arm in range(arms):
        field.leader_covariance[arm] = 0.0
        if all_active or field.slack[arm] < least or arm == lead:
            field.active[active_count] = arm
            active_count += 1
    field.counts[ACTIVE_COUNT] = active_count


@scalar
def find_order_statistic(values, sorted_, count):
    """Return the (count + 1)-th smallest of some values. `sorted_` is scratch memory."""
    filled = 0
    for place in range(len(values)):
        value = values[place]
        if filled <= count or value < sorted_[filled - 1]:
            at = min(filled, count)
            while at > 0 and sorted_[at - 1] > value:
                sorted_[at] = sorted_[at - 1]
                at -= 1
            sorted_[at] = value
            filled = min(filled + 1, count + 1)
    return sorted_[count]
