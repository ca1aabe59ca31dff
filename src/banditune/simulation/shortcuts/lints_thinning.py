"""An exact shortcut for linear Thompson sampling: the leader is pulled until a rival may have a higher draw.

While the leader is pulled, each rival makes proposals with a probability that bounds that of a higher draw. Proposals are
thinned to the true probability, so the distribution of the pulls is that of the plain loop (docs/research/decisions.md).
"""

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
    draw_rounds_until_proposal,
    find_proposer,
    thin_proposal,
    view_leader,
)
from banditune.simulation.shortcuts.linucb_active_set import compute_interval_pulls

reward = Slot("reward")


FULL_DRAW_BOUND = 0.6
"""The sum of bounds above which the draw is made without them: a streak would take more time than the plain loop."""


INTERVAL_HALF_WIDTH = 2.5
"""Half the length of an interval for e, in standard deviations of what rewards add to it in its rounds."""


LONGEST_PAUSE = 15
"""The largest number of rounds with full draws before the bounds are computed again."""


@noinline
def set_leader(state, leader_state, leader):
    """Set the leader."""
    whiten_arm(state, leader, leader_state.whitened, leader_state.gain)
    multiply_arms(state, leader_state.gain, leader_state.padded_arm_values)


@scalar
def shrink_covariance_root(factor, turned, gain, pulls, q):
    """Update the factor for some pulls of x, from `turned` = factor x and `gain` = factor' turned.

    This is Potter's update (1963) of any root of a covariance. The factor need not be triangular.
    """
    root = math.sqrt(1.0 + pulls * q)
    subtract_outer(factor, turned, gain, pulls / (root * (1.0 + root)))


@noinline
def end_lints_streak(state, leader_state, leader, pulls, total, score, q):
    """Update for the pulls of a streak. G^-1 x_leader is divided by 1 + k q, and factor x_leader by its root."""
    count_pulls(state, leader, pulls, total + pulls * score)
    growth = 1.0 + pulls * q
    move_arms(state, leader_state.gain, leader_state.padded_arm_values, total / growth, pulls / growth)
    shrink_covariance_root(state.factor, leader_state.whitened, leader_state.gain, pulls, q)
    factor = 1.0 / growth
    root = math.sqrt(factor)
    for j in range(dims()):
        leader_state.whitened[j] *= root
        leader_state.gain[j] *= factor
    for position in range(len(leader_state.padded_arm_values)):
        leader_state.padded_arm_values[position] *= factor


@scalar
def count_higher(scores, arm):
    """Count the scores above an arm's."""
    score = scores[arm]
    higher = 0
    for position in range(len(scores)):
        higher += 1 if scores[position] > score else 0
    return higher


@noinline
def resolve_proposal(state, leader_state, rival, leader, t, scale, stream):
    """Return the arm to pull after a rival's proposal.

    Theta is drawn given that (x - x_leader)'(theta - estimate) is t of its standard deviations. The best arm under it is
    chosen with probability 1 / (number of arms better than the leader), else the leader. Afterwards `whitened` and `gain`
    are those of the rival.
    """
    draw_theta(state, scale, leader_state.theta, stream)
    whiten_arm(state, rival, state.whitened, state.gain)
    square = 0.0
    shift = 0.0
    for j in range(dims()):
        contrast = state.rows[rival * pad_dims() + j] - state.rows[leader * pad_dims() + j]
        square += contrast * (state.gain[j] - leader_state.gain[j])
        shift += contrast * (leader_state.theta[j] - state.estimate[j])
    square = max(square, 1e-130)
    correction = (t * scale * math.sqrt(square) - shift) / square
    for j in range(pad_dims()):
        leader_state.theta[j] += correction * (state.gain[j] - leader_state.gain[j])
    score_ridge_arms(state, leader_state.theta, leader_state.sampled_score)
    better_count = count_higher(leader_state.sampled_score, leader)
    if better_count <= 1:
        return rival
    if uniform(stream) * better_count < 1.0:
        return argmax_score(leader_state.sampled_score)
    return leader


@scalar
def update_leader(state, leader_state, leader, arm):
    """Update the leader's vectors after a pull of an arm, by multiples of that arm's vectors."""
    variance = state.arm_values[arm]
    covariance = state.arm_values[leader]
    root = math.sqrt(1.0 + variance)
    turned = covariance / (root * (1.0 + root))
    share = covariance / (1.0 + variance)
    for j in range(pad_dims()):
        leader_state.whitened[j] -= turned * state.whitened[j]
        leader_state.gain[j] -= share * state.gain[j]
    for position in range(len(leader_state.padded_arm_values)):
        leader_state.padded_arm_values[position] -= share * state.padded_arm_values[position]


@scalar
def advance_lints_thinning(instance, setting, params, agent, rewards, floats, integers, pulls, first, last):
    """Advance linear Thompson sampling from proposal to proposal. Pulls have the distribution of the plain loop."""
    state = view_ridge(floats, setting)
    leader_state = view_leader(floats, setting)
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
            best = argmax_score(state.arm_values)
            whiten_arm(state, best, state.whitened, state.gain)
            if not pull_and_learn(instance, state, best, rewards, pulls):
                return False
            step += 1
            continue
        if leader < 0 or count_higher(state.padded_score, leader) > 0:
            leader = argmax_score(state.score)
            set_leader(state, leader_state, leader)
        q = max(leader_state.padded_arm_values[leader], 1e-300)
        score = state.score[leader]
        before = pulls[leader]
        remaining = last - step
        streak = 0
        total = 0.0
        error = 0.0
        t = -1.0
        rival = -1
        chance = 0.0
        while streak < remaining and t < 0.0:
            interval_pulls = compute_interval_pulls(streak, q)
            until = int(min(streak + interval_pulls, remaining))
            growth = 1.0 + streak * q
            width = (INTERVAL_HALF_WIDTH * noise * math.sqrt(interval_pulls) + abs(error) * interval_pulls * q) / growth
            low = error - width
            high = error + width
            chance = bound_rivals(state, leader_state, leader, 1.0 * streak, low, high, q, positive)
            if chance > FULL_DRAW_BOUND:
                break
            in_interval = True
            # In the round of a rejected proposal the leader is pulled.
            rejections = 0
            while in_interval and streak < until and t < 0.0:
                next_proposal = min(
                    streak + rejections + draw_rounds_until_proposal(chance, until - streak, agent), until
                )
                while in_interval and streak < next_proposal:
                    seek(rewards, leader, before + streak)
                    total += reward(instance, leader, before + streak, 0, rewards) - score
                    streak += 1
                    growth = 1.0 + streak * q
                    in_interval = total > low * growth and total < high * growth
                error = total / (1.0 + streak * q)
                if in_interval and streak < until:
                    rival = find_proposer(leader_state, chance * uniform(agent))
                    t = thin_proposal(state, leader_state, rival, leader, streak, error, low, high, q, positive, agent)
                    rejections = 1
        if not math.isfinite(total):
            return False
        if streak > 0:
            pulls[leader] = before + streak
            step += streak
            end_lints_streak(state, leader_state, leader, 1.0 * streak, total, score, q)
        if t >= 0.0:
            arm = resolve_proposal(state, leader_state, rival, leader, t, positive, agent)
            if arm != rival:
                whiten_arm(state, arm, state.whitened, state.gain)
            if not pull_and_learn(instance, state, arm, rewards, pulls):
                return False
            update_leader(state, leader_state, leader, arm)
            step += 1
        # If bounds are of no use, the next rounds have full draws. Their number is doubled each time.
        pause = min(2 * pause + 1, LONGEST_PAUSE) if streak == 0 and chance > FULL_DRAW_BOUND else 0
        wait = 1 if chance > FULL_DRAW_BOUND and pause == 0 else pause
    return True


@noinline
def pull_and_learn(instance, state, arm, rewards, pulls):
    """Pull the arm of `whitened` and `gain`, and update for its reward. Return False if the reward is not finite."""
    seek(rewards, arm, pulls[arm])
    payoff = reward(instance, arm, pulls[arm], 0, rewards)
    pulls[arm] += 1
    multiply_arms(state, state.gain, state.padded_arm_values)
    count_pulls(state, arm, 1.0, payoff)
    shrink = 1.0 / (1.0 + state.arm_values[arm])
    move_arms(state, state.gain, state.padded_arm_values, shrink * (payoff - state.score[arm]), shrink)
    shrink_covariance_root(state.factor, state.whitened, state.gain, 1.0, state.arm_values[arm])
    return math.isfinite(payoff)
