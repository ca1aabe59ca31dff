"""Epochs of LinUCB's shortcut: what it keeps, and which arms are active until G is factorised again."""

from __future__ import annotations

import math
from typing import NamedTuple

from banditune.core.arrays import FloatArray, IntArray
from banditune.core.scalar import noinline, scalar
from banditune.simulation.estimators.matrices import factorise_cholesky, invert_triangle
from banditune.simulation.estimators.vector_layout import argmax_score
from banditune.simulation.estimators.whitened_features import whiten_features

INITIAL_ACTIVE = 16
"""Live arms of the first epoch; twice as many after a short one, half after a long one."""


SHORT_EPOCH, LONG_EPOCH = 4, 32
"""Steps for each live arm: an epoch with fewer is short, and none goes on after more, or after half of all steps before it
(a stay is not cut). Every epoch factorises G afresh, so rounding cannot pile up."""


class ActiveSetState(NamedTuple):
    """What the shortcut keeps: an entry per arm, an entry per live arm, matrices, vectors, numbers.

    `bounds` holds upper confidence bounds, of all arms while live ones are chosen and of these later; `room` is for sums
    and sorting; `along` is u of the module's docstring. `gram` is G, `gram_then` G0; `factor` is the inverse of G0's
    Cholesky factor and `inverse` G^-1. `moved` is theta - theta0, `gain` G^-1 x_leader.
    """

    prior_score: FloatArray
    score: FloatArray
    width: FloatArray
    slack: FloatArray
    bounds: FloatArray
    room: FloatArray
    live_score: FloatArray
    live_variance: FloatArray
    along: FloatArray
    features: FloatArray
    live_features: FloatArray
    gram: FloatArray
    gram_then: FloatArray
    factor: FloatArray
    inverse: FloatArray
    moment: FloatArray
    estimate: FloatArray
    moved: FloatArray
    gain: FloatArray
    numbers: FloatArray
    live: IntArray
    counts: IntArray


def count_active_set_numbers(arms: int, dims: int) -> tuple[int, int]:
    """Floats and integers in a `ActiveSetState`."""
    return 9 * arms + 2 * arms * dims + 4 * dims * dims + 4 * dims + 4, arms + 4


@scalar
def view_active_set(floats, integers, setting):
    """The parts of the strips, in the order of the record."""
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
"""Places of `numbers`; FACTOR is gamma times theory's factor, RHO is how far theta has moved in this epoch."""


ACTIVE_COUNT, WANTED_COUNT, EPOCH_START, EPOCH_END = 0, 1, 2, 3
"""Places of `counts`: live arms, how many were asked for, the epoch's first step and the one at which it ends."""


@scalar
def start_active_set(field, setting, factor):
    """Forget everything but the prior."""
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
    """Factorise G, compute every arm's score and width, choose the live arms."""
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
        field.moved[j] = 0.0
    living = field.counts[ACTIVE_COUNT]
    for place in range(living):
        arm = field.live[place]
        field.live_score[place] = field.score[arm]
        field.live_variance[place] = field.width[arm] * field.width[arm]
        for j in range(dims):
            field.live_features[j * living + place] = field.features[j * arms + arm]


@scalar
def factorise_gram(field, setting):
    """G^-1 and theta from the sums; remembers G."""
    dims = setting.dims
    factor = field.factor
    for place in range(dims * dims):
        field.gram_then[place] = field.gram[place]
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
    """Every arm's score and width: x' G^-1 x is the square of factor x."""
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
            field.room[arm] = 0.0
        for j in range(i + 1):
            entry = field.factor[i * dims + j]
            for arm in range(arms):
                field.room[arm] += entry * field.features[j * arms + arm]
        for arm in range(arms):
            field.width[arm] += field.room[arm] * field.room[arm]
    for arm in range(arms):
        field.width[arm] = math.sqrt(field.width[arm])


@scalar
def choose_active_arms(field, setting):
    """The arms of least slack, in the order of their numbers; the least slack of the others is the reach."""
    arms = setting.arms
    wanted = field.counts[WANTED_COUNT]
    factor = field.numbers[FACTOR]
    everyone = wanted >= arms
    for arm in range(arms):
        field.bounds[arm] = field.score[arm] + factor * field.width[arm]
    lead = argmax_score(field.bounds)
    highest = field.bounds[lead]
    for arm in range(arms):
        field.slack[arm] = (highest - field.bounds[arm]) / max(field.width[arm] + field.width[lead], 1e-300)
    least = math.inf if everyone else find_order_statistic(field.slack, field.room, wanted)
    # A hair less than what the proof allows, for rounding.
    reach = 0.999999 * least
    field.numbers[REACH] = reach
    field.numbers[FLOOR] = -math.inf if everyone else highest - reach * field.width[lead]
    living = 0
    for arm in range(arms):
        field.along[arm] = 0.0
        if everyone or field.slack[arm] < least or arm == lead:
            field.live[living] = arm
            living += 1
    field.counts[ACTIVE_COUNT] = living


@scalar
def find_order_statistic(values, sorted_, count):
    """The (count + 1)-th smallest of some values; `sorted_` is room for them."""
    held = 0
    for place in range(len(values)):
        value = values[place]
        if held <= count or value < sorted_[held - 1]:
            at = min(held, count)
            while at > 0 and sorted_[at - 1] > value:
                sorted_[at] = sorted_[at - 1]
                at -= 1
            sorted_[at] = value
            held = min(held + 1, count + 1)
    return sorted_[count]
