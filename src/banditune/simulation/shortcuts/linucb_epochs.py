"""Epochs of LinUCB's shortcut: its memory, and the choice of active arms until G is factorised again."""

from __future__ import annotations

import math
from typing import NamedTuple

from banditune.core.arrays import FloatArray, IntArray
from banditune.core.scalar import noinline, scalar
from banditune.simulation.estimators.matrices import factorise_cholesky, invert_triangle
from banditune.simulation.estimators.vector_layout import argmax_score
from banditune.simulation.estimators.whitened_features import whiten_features

INITIAL_ACTIVE = 16
"""The number of active arms of the first epoch. It is doubled after a short epoch and halved after a long one."""


SHORT_EPOCH, LONG_EPOCH = 4, 32
"""Numbers of steps per active arm: an epoch with fewer is short, and an epoch ends after more.

An epoch also ends after half of all earlier steps, but a streak is not interrupted. Every epoch factorises G again, so
rounding errors do not accumulate.
"""


class ActiveSetState(NamedTuple):
    """The memory of the shortcut: entries per arm, entries per active arm, matrices, vectors, numbers.

    `upper_bound` holds upper confidence bounds: of all arms while the active ones are chosen, later of the active ones.
    `scratch` is for sums and sorting. `leader_covariance` is x' G^-1 x_leader. `gram` is G, `epoch_gram` G at the start
    of the epoch. `factor` is the inverse of its Cholesky factor, and `inverse` is G^-1. `drift` is theta - theta0,
    `gain` G^-1 x_leader.
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
    scalars: FloatArray
    active: IntArray
    counts: IntArray


def count_active_set_numbers(arms: int, dims: int, horizon: int) -> tuple[int, int]:
    """Return the number of floats and integers in an `ActiveSetState`."""
    return 9 * arms + 2 * arms * dims + 4 * dims * dims + 4 * dims + 4, arms + 4


@scalar
def view_active_set(floats, integers, setting):
    """Split the memory into arrays, in the order of the record."""
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


REACH, INACTIVE_BOUND, FACTOR, RHO = 0, 1, 2, 3
"""Positions in `scalars`.

REACH is the least slack of the inactive arms. Their indices are below INACTIVE_BOUND. FACTOR is gamma times the textbook
factor, RHO the distance of theta from its value at the epoch's start.
"""


ACTIVE_COUNT, TARGET_COUNT, EPOCH_START, EPOCH_END = 0, 1, 2, 3
"""Positions in `counts`: active arms, their intended number, the epoch's first step, and the step at which it ends."""


@scalar
def start_active_set(state, setting, factor):
    """Reset the memory to the prior."""
    whiten_features(state.features, state.prior_score, setting)
    for position in range(setting.dims * setting.dims):
        state.gram[position] = 0.0
    for j in range(setting.dims):
        state.gram[j * setting.dims + j] = setting.options[0]
        state.moment[j] = 0.0
    state.scalars[FACTOR] = factor
    state.counts[TARGET_COUNT] = min(INITIAL_ACTIVE, setting.arms)
    state.counts[EPOCH_START] = 0


@noinline
def start_epoch(state, setting, step):
    """Factorise G, compute every arm's score and width, and choose the active arms."""
    arms = setting.arms
    dims = setting.dims
    lasted = step - state.counts[EPOCH_START]
    if step > 0 and step >= state.counts[EPOCH_END]:
        state.counts[TARGET_COUNT] = max(state.counts[TARGET_COUNT] // 2, min(8, arms))
    elif step > 0 and lasted < SHORT_EPOCH * state.counts[TARGET_COUNT]:
        state.counts[TARGET_COUNT] = min(2 * state.counts[TARGET_COUNT], arms)
    state.counts[EPOCH_START] = step
    state.counts[EPOCH_END] = step + min(
        LONG_EPOCH * state.counts[TARGET_COUNT], state.counts[TARGET_COUNT] + step // 2
    )
    factorise_gram(state, setting)
    score_all_arms(state, setting)
    choose_active_arms(state, setting)
    state.scalars[RHO] = 0.0
    for j in range(dims):
        state.drift[j] = 0.0
    active_count = state.counts[ACTIVE_COUNT]
    for position in range(active_count):
        arm = state.active[position]
        state.active_score[position] = state.score[arm]
        state.active_variance[position] = state.width[arm] * state.width[arm]
        for j in range(dims):
            state.active_features[j * active_count + position] = state.features[j * arms + arm]


@scalar
def factorise_gram(state, setting):
    """Compute G^-1 and theta from the sums, and store G."""
    dims = setting.dims
    factor = state.factor
    for position in range(dims * dims):
        state.epoch_gram[position] = state.gram[position]
        factor[position] = state.gram[position]
        state.inverse[position] = 0.0
    factorise_cholesky(factor, dims)
    invert_triangle(factor, dims)
    for k in range(dims):
        for i in range(k + 1):
            entry = factor[k * dims + i]
            for j in range(k + 1):
                state.inverse[i * dims + j] += entry * factor[k * dims + j]
    for j in range(dims):
        state.estimate[j] = 0.0
    for i in range(dims):
        entry = state.moment[i]
        for j in range(dims):
            state.estimate[j] += entry * state.inverse[i * dims + j]


@scalar
def score_all_arms(state, setting):
    """Compute every arm's score and width: x' G^-1 x is the squared norm of factor x."""
    arms = setting.arms
    dims = setting.dims
    for arm in range(arms):
        state.score[arm] = state.prior_score[arm]
        state.width[arm] = 0.0
    for j in range(dims):
        entry = state.estimate[j]
        for arm in range(arms):
            state.score[arm] += entry * state.features[j * arms + arm]
    for i in range(dims):
        for arm in range(arms):
            state.scratch[arm] = 0.0
        for j in range(i + 1):
            entry = state.factor[i * dims + j]
            for arm in range(arms):
                state.scratch[arm] += entry * state.features[j * arms + arm]
        for arm in range(arms):
            state.width[arm] += state.scratch[arm] * state.scratch[arm]
    for arm in range(arms):
        state.width[arm] = math.sqrt(state.width[arm])


@scalar
def choose_active_arms(state, setting):
    """Choose the arms of least slack, in the order of their numbers. The least slack of the other arms is the reach."""
    arms = setting.arms
    target_count = state.counts[TARGET_COUNT]
    factor = state.scalars[FACTOR]
    all_active = target_count >= arms
    for arm in range(arms):
        state.upper_bound[arm] = state.score[arm] + factor * state.width[arm]
    lead = argmax_score(state.upper_bound)
    highest = state.upper_bound[lead]
    for arm in range(arms):
        state.slack[arm] = (highest - state.upper_bound[arm]) / max(state.width[arm] + state.width[lead], 1e-300)
    least = math.inf if all_active else find_order_statistic(state.slack, state.scratch, target_count)
    # This is slightly less than the proof allows, because of rounding.
    reach = 0.999999 * least
    state.scalars[REACH] = reach
    state.scalars[INACTIVE_BOUND] = -math.inf if all_active else highest - reach * state.width[lead]
    active_count = 0
    for arm in range(arms):
        state.leader_covariance[arm] = 0.0
        if all_active or state.slack[arm] < least or arm == lead:
            state.active[active_count] = arm
            active_count += 1
    state.counts[ACTIVE_COUNT] = active_count


@scalar
def find_order_statistic(values, sorted_, count):
    """Return the (count + 1)-th smallest of some values. `sorted_` is scratch memory."""
    filled = 0
    for position in range(len(values)):
        value = values[position]
        if filled <= count or value < sorted_[filled - 1]:
            at = min(filled, count)
            while at > 0 and sorted_[at - 1] > value:
                sorted_[at] = sorted_[at - 1]
                at -= 1
            sorted_[at] = value
            filled = min(filled + 1, count + 1)
    return sorted_[count]
