"""LinUCB by stays with one arm among a few active arms: an exact shortcut.

Between two factorisations of G an arm's index is at most index0 + ||theta - theta0|| width0 (Cauchy and Schwarz), so
arms with enough slack are inactive. During a stay with the leader, the formula of Sherman and Morrison makes all
indices a function of the pulls and one error. An interval for the error says how long the leader stays the leader. The
arms are those of the plain loop, except for rounding between equal indices.
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
    FLOOR,
    REACH,
    RHO,
    start_active_set,
    start_epoch,
    view_active_set,
)

reward = Slot("reward")


INTERVAL_GROWTH = 0.125
"""An interval is for the pulls in which the leader's precision (1 / q, and 1 per pull) grows by this share."""


NEAR_REACH = 0.8
"""Share of the reach beyond which a new epoch starts, because the next stay would soon end."""


@scalar
def begin_active_stay(field, setting, leader):
    """Compute x' G^-1 x_leader of all active arms, and G^-1 x_leader into `gain`; return q = x_leader' G^-1 x_leader."""
    dims = setting.dims
    active_count = field.counts[ACTIVE_COUNT]
    for j in range(dims):
        field.gain[j] = 0.0
    for i in range(dims):
        entry = field.active_features[i * active_count + leader]
        for j in range(dims):
            field.gain[j] += entry * field.inverse[i * dims + j]
    for place in range(active_count):
        field.leader_covariance[place] = 0.0
    for j in range(dims):
        entry = field.gain[j]
        for place in range(active_count):
            field.leader_covariance[place] += entry * field.active_features[j * active_count + place]
    return max(field.leader_covariance[leader], 1e-300)


@scalar
def find_best_active(field, pulls, error, q):
    """Find the active arm with the highest index after some pulls of a stay; return it and its index."""
    active_count = field.counts[ACTIVE_COUNT]
    factor = field.numbers[FACTOR]
    shrink = pulls / (1.0 + pulls * q)
    for place in range(active_count):
        along = field.leader_covariance[place]
        variance = max(field.active_variance[place] - along * along * shrink, 0.0)
        field.upper_bound[place] = field.active_score[place] + error * along + factor * math.sqrt(variance)
    best = argmax_score(field.upper_bound[:active_count])
    return best, field.upper_bound[best]


@scalar
def compute_error_interval(field, leader, pulls, error, last, q, reach):
    """Compute the interval of `error` in which the leader stays the leader up to `last` pulls of this stay."""
    active_count = field.counts[ACTIVE_COUNT]
    factor = field.numbers[FACTOR]
    now = pulls / (1.0 + pulls * q)
    width = math.sqrt(max(field.active_variance[leader] - q * q * (last / (1.0 + last * q)), 0.0))
    score = field.active_score[leader]
    high = reach / math.sqrt(q)
    low = max(-high, (field.numbers[FLOOR] - score - factor * width) / q)
    for place in range(active_count):
        along = field.leader_covariance[place]
        variance = max(field.active_variance[place] - along * along * now, 0.0)
        needed = factor * (math.sqrt(variance) - width) - (score - field.active_score[place])
        apart = q - along
        if place != leader:
            if apart > 0.0:
                low = max(low, needed / apart)
            elif apart < 0.0:
                high = min(high, needed / apart)
            elif needed >= 0.0:
                high = -math.inf
    return low, high


@scalar
def compute_interval_pulls(pulls, q):
    """Return the number of pulls of a stay that an interval is for."""
    return 1.0 + INTERVAL_GROWTH * (pulls + 1.0 / q)


@scalar
def end_active_stay(field, setting, leader, pulls, error, q):
    """Learn from the pulls of a stay."""
    dims = setting.dims
    active_count = field.counts[ACTIVE_COUNT]
    shrink = pulls / (1.0 + pulls * q)
    for place in range(active_count):
        along = field.leader_covariance[place]
        field.active_score[place] += error * along
        field.active_variance[place] = max(field.active_variance[place] - along * along * shrink, 0.0)
    arm = field.active[leader]
    # Rewards minus the prior's score: E + pulls (score - prior score), with the score before the stay.
    rewards_sum = error * (1.0 + pulls * q) + pulls * (field.active_score[leader] - error * q - field.prior_score[arm])
    for i in range(dims):
        taken = shrink * field.gain[i]
        added = pulls * field.active_features[i * active_count + leader]
        for j in range(dims):
            field.inverse[i * dims + j] -= taken * field.gain[j]
            field.gram[i * dims + j] += added * field.active_features[j * active_count + leader]
    for j in range(dims):
        field.drift[j] += error * field.gain[j]
        field.moment[j] += rewards_sum * field.active_features[j * active_count + leader]
    square = 0.0
    for i in range(dims):
        row = 0.0
        for j in range(dims):
            row += field.epoch_gram[i * dims + j] * field.drift[j]
        square += row * field.drift[i]
    field.numbers[RHO] = math.sqrt(max(square, 0.0))


@scalar
def advance_active_set(instance, setting, params, agent, rewards, floats, integers, pulls, first, last):
    """Advance LinUCB from stay to stay and epoch to epoch; the module's docstring says why this is LinUCB."""
    field = view_active_set(floats, integers, setting)
    numbers = field.numbers
    if first == 0:
        start_active_set(field, setting, params[0] * compute_confidence_factor(setting))
        start_epoch(field, setting, 0)
    leader, highest = find_best_active(field, 0.0, 0.0, 0.0)
    step = first
    while step < last:
        q = begin_active_stay(field, setting, leader)
        arm = field.active[leader]
        score = field.active_score[leader]
        before = pulls[arm]
        left = last - step
        stayed = 0
        until = 1
        patience = 8
        checked = 0
        wait = 0
        total = 0.0
        low = -math.inf
        high = math.inf
        best = leader
        while True:
            inside = True
            while inside and stayed < until:
                seek(rewards, arm, before + stayed)
                total += reward(instance, arm, before + stayed, 0, rewards) - score
                stayed += 1
                grown = 1.0 + stayed * q
                inside = total > low * grown and total < high * grown
            if not math.isfinite(total):
                return False
            error = total / (1.0 + stayed * q)
            best, highest = find_best_active(field, 1.0 * stayed, error, q)
            reach = numbers[REACH] - numbers[RHO]
            if stayed >= left or best != leader or highest <= numbers[FLOOR] or abs(error) * math.sqrt(q) > reach:
                break
            # If the last interval lasted only a few pulls, wait longer before the next.
            if until > checked + 1:
                wait = 0 if stayed > checked + 4 else 2 * wait + 4
                patience = stayed + wait
            checked = stayed
            until = stayed + 1
            if stayed >= patience:
                until = int(min(stayed + compute_interval_pulls(stayed, q), left))
                low, high = compute_error_interval(field, leader, stayed, error, until, q, reach)
        pulls[arm] = before + stayed
        step += stayed
        end_active_stay(field, setting, leader, stayed, error, q)
        leader = best
        ends_epoch = highest <= numbers[FLOOR] or numbers[RHO] > NEAR_REACH * numbers[REACH]
        if ends_epoch or step >= field.counts[EPOCH_END]:
            start_epoch(field, setting, step)
            leader, highest = find_best_active(field, 0.0, 0.0, 0.0)
    return True
