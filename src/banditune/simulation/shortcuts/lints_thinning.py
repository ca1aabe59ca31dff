"""Linear Thompson sampling by staying with a leader until a rival may win: an exact shortcut."""

from __future__ import annotations

import math

from banditune.core.scalar import Slot, noinline, scalar
from banditune.core.streams import seek, uniform
from banditune.simulation.estimators.ridge_regression import (
    REFRESH_INTERVAL,
    count_pulls,
    draw_theta,
    move_arms,
    multiply_arms,
    refresh_ridge,
    sample_scores,
    score_ridge_arms,
    start_ridge,
    view_ridge,
    whiten_arm,
)
from banditune.simulation.estimators.vector_layout import argmax_score, dims, pad_dims, subtract_outer
from banditune.simulation.estimators.whitened_features import read_policy_option
from banditune.simulation.shortcuts.lints_proposals import (
    bound_rivals,
    draw_quiet_rounds,
    find_proposer,
    thin_proposal,
    view_leader,
)
from banditune.simulation.shortcuts.linucb_active_set import compute_interval_pulls

reward = Slot("reward")


FULL_DRAW_BOUND = 0.6
"""Sum of bounds from which on the draw is made in full: a visit costs more than a round of the plain loop."""


INTERVAL_HALF_WIDTH = 2.5
"""Half the length of an interval for e, in standard deviations of what rewards add to it meanwhile."""


LONGEST_PAUSE = 15
"""Rounds drawn in full, at most, before the rivals are bounded again."""


@noinline
def set_leader(state, lead, leader):
    """Take a leader."""
    whiten_arm(state, leader, lead.turned, lead.gain)
    multiply_arms(state, lead.gain, lead.shifts)


@scalar
def shrink_covariance_root(factor, turned, gain, pulls, q):
    """Learn some pulls of x: from `turned` = factor x and `gain` = factor' turned renew the factor.

    This is Potter's update (1963) of any root of a covariance: the factor need not be triangular here.
    """
    root = math.sqrt(1.0 + pulls * q)
    subtract_outer(factor, turned, gain, pulls / (root * (1.0 + root)))


@noinline
def end_lints_stay(state, lead, leader, pulls, total, score, q):
    """Learn the pulls of a stay. G^-1 x_leader becomes smaller by 1 + k q, and factor x_leader by its root."""
    count_pulls(state, leader, pulls, total + pulls * score)
    grown = 1.0 + pulls * q
    move_arms(state, lead.gain, lead.shifts, total / grown, pulls / grown)
    shrink_covariance_root(state.factor, lead.turned, lead.gain, pulls, q)
    less = 1.0 / grown
    root = math.sqrt(less)
    for j in range(dims()):
        lead.turned[j] *= root
        lead.gain[j] *= less
    for place in range(len(lead.shifts)):
        lead.shifts[place] *= less


@scalar
def count_higher(scores, arm):
    """How many scores are above an arm's."""
    score = scores[arm]
    higher = 0
    for place in range(len(scores)):
        higher += 1 if scores[place] > score else 0
    return higher


@noinline
def resolve_proposal(state, lead, rival, leader, t, scale, stream):
    """The arm to pull after a rival's proposal.

    Draws theta given that (x - x_leader)'(theta - estimate) is t of its standard deviations; the best arm under it is
    taken with probability 1 / (arms that beat the leader), else the leader. Leaves the rival's `turned` and `gain`.
    """
    draw_theta(state, scale, lead.theta, stream)
    whiten_arm(state, rival, state.turned, state.gain)
    square = 0.0
    moved = 0.0
    for j in range(dims()):
        apart = state.rows[rival * pad_dims() + j] - state.rows[leader * pad_dims() + j]
        square += apart * (state.gain[j] - lead.gain[j])
        moved += apart * (lead.theta[j] - state.estimate[j])
    square = max(square, 1e-130)
    lacking = (t * scale * math.sqrt(square) - moved) / square
    for j in range(pad_dims()):
        lead.theta[j] += lacking * (state.gain[j] - lead.gain[j])
    score_ridge_arms(state, lead.theta, lead.drawn)
    beating = count_higher(lead.drawn, leader)
    if beating <= 1:
        return rival
    if uniform(stream) * beating < 1.0:
        return argmax_score(lead.drawn)
    return leader


@scalar
def update_leader(state, lead, leader, arm):
    """After a pull of an arm: G^-1 x_leader is less by a multiple of what G^-1 x of that arm was, and so is all else."""
    variance = state.shift[arm]
    along = state.shift[leader]
    root = math.sqrt(1.0 + variance)
    turned = along / (root * (1.0 + root))
    share = along / (1.0 + variance)
    for j in range(pad_dims()):
        lead.turned[j] -= turned * state.turned[j]
        lead.gain[j] -= share * state.gain[j]
    for place in range(len(lead.shifts)):
        lead.shifts[place] -= share * state.shifts[place]


@scalar
def advance_lints_thinning(instance, setting, params, agent, rewards, floats, integers, pulls, first, last):
    """Linear Thompson sampling from proposal to proposal; the module's docstring says why this is its law."""
    state = view_ridge(floats, setting)
    lead = view_leader(floats, setting)
    scale = params[0] * read_policy_option(setting, 0)
    positive = max(scale, 1e-100)
    noise = math.sqrt(setting.options[0])
    if first == 0:
        start_ridge(state, setting)
    step = first
    wait = 0
    pause = 0
    leader = -1
    while step < last:
        if state.age[0] >= REFRESH_INTERVAL:
            refresh_ridge(state, setting)
            leader = -1
        if wait > 0:
            wait -= 1
            leader = -1
            sample_scores(state, setting, scale, agent)
            best = argmax_score(state.shift)
            whiten_arm(state, best, state.turned, state.gain)
            if not pull_and_learn(instance, state, best, rewards, pulls):
                return False
            step += 1
            continue
        if leader < 0 or count_higher(state.scores, leader) > 0:
            leader = argmax_score(state.score)
            set_leader(state, lead, leader)
        q = max(lead.shifts[leader], 1e-300)
        score = state.score[leader]
        before = pulls[leader]
        left = last - step
        stayed = 0
        total = 0.0
        error = 0.0
        t = -1.0
        rival = -1
        chance = 0.0
        while stayed < left and t < 0.0:
            coming = compute_interval_pulls(stayed, q)
            until = int(min(stayed + coming, left))
            grown = 1.0 + stayed * q
            width = (INTERVAL_HALF_WIDTH * noise * math.sqrt(coming) + abs(error) * coming * q) / grown
            low = error - width
            high = error + width
            chance = bound_rivals(state, lead, leader, 1.0 * stayed, low, high, q, positive)
            if chance > FULL_DRAW_BOUND:
                break
            inside = True
            # The round of a proposal that came to nothing is the leader's.
            refused = 0
            while inside and stayed < until and t < 0.0:
                quiet = min(stayed + refused + draw_quiet_rounds(chance, until - stayed, agent), until)
                while inside and stayed < quiet:
                    seek(rewards, leader, before + stayed)
                    total += reward(instance, leader, before + stayed, 0, rewards) - score
                    stayed += 1
                    grown = 1.0 + stayed * q
                    inside = total > low * grown and total < high * grown
                error = total / (1.0 + stayed * q)
                if inside and stayed < until:
                    rival = find_proposer(lead, chance * uniform(agent))
                    t = thin_proposal(state, lead, rival, leader, stayed, error, low, high, q, positive, agent)
                    refused = 1
        if not math.isfinite(total):
            return False
        if stayed > 0:
            pulls[leader] = before + stayed
            step += stayed
            end_lints_stay(state, lead, leader, 1.0 * stayed, total, score, q)
        if t >= 0.0:
            arm = resolve_proposal(state, lead, rival, leader, t, positive, agent)
            if arm != rival:
                whiten_arm(state, arm, state.turned, state.gain)
            if not pull_and_learn(instance, state, arm, rewards, pulls):
                return False
            update_leader(state, lead, leader, arm)
            step += 1
        # Where bounds are in vain, the next rounds are drawn in full: twice as many each time.
        pause = min(2 * pause + 1, LONGEST_PAUSE) if stayed == 0 and chance > FULL_DRAW_BOUND else 0
        wait = 1 if chance > FULL_DRAW_BOUND and pause == 0 else pause
    return True


@noinline
def pull_and_learn(instance, state, arm, rewards, pulls):
    """Pull the arm that `turned` and `gain` belong to and learn what it pays; False where that is not finite."""
    seek(rewards, arm, pulls[arm])
    paid = reward(instance, arm, pulls[arm], 0, rewards)
    pulls[arm] += 1
    multiply_arms(state, state.gain, state.shifts)
    count_pulls(state, arm, 1.0, paid)
    shrink = 1.0 / (1.0 + state.shift[arm])
    move_arms(state, state.gain, state.shifts, shrink * (paid - state.score[arm]), shrink)
    shrink_covariance_root(state.factor, state.turned, state.gain, 1.0, state.shift[arm])
    return math.isfinite(paid)
