"""An exact shortcut for LinUCB: streaks of one arm among a few active arms.

A streak is a number of consecutive pulls of the leader. Between two factorisations of G an arm's index is at most index0 +
||theta - theta0|| width0 (Cauchy and Schwarz), so arms with enough slack are inactive. During a streak, by the formula of
Sherman and Morrison, all indices are functions of the pulls and one error. The leader has the highest index while the
error is in an interval. The pulled arms are those of the plain loop, except for rounding between equal indices.
"""

from __future__ import annotations

import math

from banditune.core.scalar import Slot, scalar
from banditune.core.streams import seek
from banditune.simulation.estimators.confidence_factor import compute_confidence_factor
from banditune.simulation.estimators.vector_layout import argmax_score
from banditune.simulation.shortcuts.linucb_epochs import (
    ACTIVE_COUNT,
    EPOCH_END,
    FACTOR,
    INACTIVE_BOUND,
    REACH,
    RHO,
    start_active_set,
    start_epoch,
    view_active_set,
)

reward = Slot("reward")


INTERVAL_GROWTH = 0.125
"""The length of an interval: the pulls in which the leader's precision (1 / q, and 1 per pull) grows by this share."""


NEAR_REACH = 0.8
"""The share of the reach at which a new epoch starts, because the next streak would soon end."""


@scalar
def begin_active_streak(state, setting, leader):
    """Compute x' G^-1 x_leader of all active arms, and `gain` = G^-1 x_leader. Return q = x_leader' G^-1 x_leader."""
    dims = setting.dims
    active_count = state.counts[ACTIVE_COUNT]
    for j in range(dims):
        state.gain[j] = 0.0
    for i in range(dims):
        entry = state.active_features[i * active_count + leader]
        for j in range(dims):
            state.gain[j] += entry * state.inverse[i * dims + j]
    for position in range(active_count):
        state.leader_covariance[position] = 0.0
    for j in range(dims):
        entry = state.gain[j]
        for position in range(active_count):
            state.leader_covariance[position] += entry * state.active_features[j * active_count + position]
    return max(state.leader_covariance[leader], 1e-300)


@scalar
def find_best_active(state, pulls, error, q):
    """Find the active arm with the highest index after some pulls of a streak. Return the arm and its index."""
    active_count = state.counts[ACTIVE_COUNT]
    factor = state.scalars[FACTOR]
    shrink = pulls / (1.0 + pulls * q)
    for position in range(active_count):
        covariance = state.leader_covariance[position]
        variance = max(state.active_variance[position] - covariance * covariance * shrink, 0.0)
        state.upper_bound[position] = state.active_score[position] + error * covariance + factor * math.sqrt(variance)
    best = argmax_score(state.upper_bound[:active_count])
    return best, state.upper_bound[best]


@scalar
def compute_error_interval(state, leader, pulls, error, last, q, reach):
    """Compute the interval of `error` in which the leader has the highest index up to `last` pulls of this streak."""
    active_count = state.counts[ACTIVE_COUNT]
    factor = state.scalars[FACTOR]
    now = pulls / (1.0 + pulls * q)
    width = math.sqrt(max(state.active_variance[leader] - q * q * (last / (1.0 + last * q)), 0.0))
    score = state.active_score[leader]
    high = reach / math.sqrt(q)
    low = max(-high, (state.scalars[INACTIVE_BOUND] - score - factor * width) / q)
    for position in range(active_count):
        covariance = state.leader_covariance[position]
        variance = max(state.active_variance[position] - covariance * covariance * now, 0.0)
        needed = factor * (math.sqrt(variance) - width) - (score - state.active_score[position])
        contrast = q - covariance
        if position != leader:
            if contrast > 0.0:
                low = max(low, needed / contrast)
            elif contrast < 0.0:
                high = min(high, needed / contrast)
            elif needed >= 0.0:
                high = -math.inf
    return low, high


@scalar
def compute_interval_pulls(pulls, q):
    """Compute the number of pulls of a streak for which an interval holds."""
    return 1.0 + INTERVAL_GROWTH * (pulls + 1.0 / q)


@scalar
def end_active_streak(state, setting, leader, pulls, error, q):
    """Update for the pulls of a streak."""
    dims = setting.dims
    active_count = state.counts[ACTIVE_COUNT]
    shrink = pulls / (1.0 + pulls * q)
    for position in range(active_count):
        covariance = state.leader_covariance[position]
        state.active_score[position] += error * covariance
        state.active_variance[position] = max(state.active_variance[position] - covariance * covariance * shrink, 0.0)
    arm = state.active[leader]
    # Rewards minus the prior's score: E + pulls (score - prior score), with the score before the streak.
    rewards_sum = error * (1.0 + pulls * q) + pulls * (state.active_score[leader] - error * q - state.prior_score[arm])
    for i in range(dims):
        scaled = shrink * state.gain[i]
        weighted = pulls * state.active_features[i * active_count + leader]
        for j in range(dims):
            state.inverse[i * dims + j] -= scaled * state.gain[j]
            state.gram[i * dims + j] += weighted * state.active_features[j * active_count + leader]
    for j in range(dims):
        state.drift[j] += error * state.gain[j]
        state.moment[j] += rewards_sum * state.active_features[j * active_count + leader]
    square = 0.0
    for i in range(dims):
        row = 0.0
        for j in range(dims):
            row += state.epoch_gram[i * dims + j] * state.drift[j]
        square += row * state.drift[i]
    state.scalars[RHO] = math.sqrt(max(square, 0.0))


@scalar
def advance_active_set(instance, setting, params, agent, rewards, floats, integers, pulls, first, last):
    """Advance LinUCB from streak to streak and epoch to epoch; the docstring of this module has the proof."""
    state = view_active_set(floats, integers, setting)
    scalars = state.scalars
    if first == 0:
        start_active_set(state, setting, params[0] * compute_confidence_factor(setting))
        start_epoch(state, setting, 0)
    leader, highest = find_best_active(state, 0.0, 0.0, 0.0)
    step = first
    while step < last:
        q = begin_active_streak(state, setting, leader)
        arm = state.active[leader]
        score = state.active_score[leader]
        before = pulls[arm]
        remaining = last - step
        streak = 0
        until = 1
        patience = 8
        checked = 0
        wait = 0
        total = 0.0
        low = -math.inf
        high = math.inf
        best = leader
        while True:
            in_interval = True
            while in_interval and streak < until:
                seek(rewards, arm, before + streak)
                total += reward(instance, arm, before + streak, 0, rewards) - score
                streak += 1
                growth = 1.0 + streak * q
                in_interval = total > low * growth and total < high * growth
            if not math.isfinite(total):
                return False
            error = total / (1.0 + streak * q)
            best, highest = find_best_active(state, 1.0 * streak, error, q)
            reach = scalars[REACH] - scalars[RHO]
            if (
                streak >= remaining
                or best != leader
                or highest <= scalars[INACTIVE_BOUND]
                or abs(error) * math.sqrt(q) > reach
            ):
                break
            # If the last interval ended after a few pulls, more pulls precede the next one.
            if until > checked + 1:
                wait = 0 if streak > checked + 4 else 2 * wait + 4
                patience = streak + wait
            checked = streak
            until = streak + 1
            if streak >= patience:
                until = int(min(streak + compute_interval_pulls(streak, q), remaining))
                low, high = compute_error_interval(state, leader, streak, error, until, q, reach)
        pulls[arm] = before + streak
        step += streak
        end_active_streak(state, setting, leader, streak, error, q)
        leader = best
        ends_epoch = highest <= scalars[INACTIVE_BOUND] or scalars[RHO] > NEAR_REACH * scalars[REACH]
        if ends_epoch or step >= state.counts[EPOCH_END]:
            start_epoch(state, setting, step)
            leader, highest = find_best_active(state, 0.0, 0.0, 0.0)
    return True
