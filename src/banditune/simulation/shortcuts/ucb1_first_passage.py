"""Two exact shortcuts for UCB1: streaks of the leader, and first passages of all indices below a common level."""

from __future__ import annotations

import math
from typing import NamedTuple

from banditune.core.arrays import FloatArray
from banditune.core.binomial_draws import count_ones
from banditune.core.scalar import Slot, scalar
from banditune.core.streams import NO_WORD, WORD_BITS, seek
from banditune.simulation.estimators.ucb_index import compute_ucb_index

reward = Slot("reward")


draw_word = Slot("reward_word")


FEWEST_PASSAGE_STEPS = 400
"""The number of steps below which streaks are faster than another level."""


@scalar
def find_leader_and_rival(indices):
    """Find the arms with the highest and the second highest index. Ties go to the lowest number."""
    leader = 0
    for arm in range(1, len(indices)):
        if indices[arm] > indices[leader]:
            leader = arm
    rival = 1 if leader == 0 and len(indices) > 1 else 0
    for arm in range(len(indices)):
        if arm != leader and indices[arm] > indices[rival]:
            rival = arm
    return leader, rival


@scalar
def is_leader_ahead(indices, leader, rival):
    """Return whether the leader, whose index may have changed, still has the highest index."""
    return leader == rival or indices[leader] > indices[rival] or (indices[leader] == indices[rival] and leader < rival)


@scalar
def advance_ucb1_streaks(instance, setting, params, agent, rewards, floats, integers, pulls, first, last):
    """Advance UCB1 by streaks: pull the leader until its index falls below the second highest.

    With the log of the horizon, a pull changes only the index of its arm, so the second highest does not change. The
    order of pulls is that of UCB1, for any gamma.
    """
    arms = setting.arms
    total = floats[:arms]
    indices = floats[arms : 2 * arms]
    step = first
    while step < min(arms, last):
        total[step] = 0.0
        if not pull_and_index(instance, setting, params, rewards, total, indices, pulls, step):
            return False
        step += 1
    leader, rival = find_leader_and_rival(indices)
    # Each iteration is one pull, even if the leader changes, so that the threads of a GPU do not diverge.
    while step < last:
        if not pull_and_index(instance, setting, params, rewards, total, indices, pulls, leader):
            return False
        step += 1
        if not is_leader_ahead(indices, leader, rival):
            leader, rival = find_leader_and_rival(indices)
    return True


@scalar
def pull_and_index(instance, setting, params, rewards, total, indices, pulls, arm):
    """Pull an arm and update its index. Return False if the reward is not finite."""
    pull = int(pulls[arm])
    seek(rewards, arm, pull)
    payoff = reward(instance, arm, pull, 0, rewards)
    total[arm] += payoff
    pulls[arm] = pull + 1
    indices[arm] = compute_ucb_index(total[arm], pull + 1.0, params[0], setting.options[0])
    return math.isfinite(payoff)


class PassageState(NamedTuple):
    """The memory of the first-passage shortcut: total rewards and indices, a copy to restore, each arm's current word."""

    total: FloatArray
    indices: FloatArray
    saved_total: FloatArray
    saved_pulls: FloatArray
    word: FloatArray
    word_index: FloatArray


@scalar
def advance_ucb1_passages(instance, setting, params, agent, rewards, floats, integers, pulls, first, last):
    """Advance UCB1 on 0/1 rewards: lower a common level of all indices until no steps remain.

    This is UCB1 for the following reason. An arm's index depends only on its pulls, and UCB1 pulls the highest index. So
    before it pulls any arm whose index is below a level v, it has pulled every arm until its index first fell below v. If
    these first passages need no more steps than remain, they give UCB1's counts at that step, in any order of the arms.

    The shortcut guesses a level and pulls each arm to its first passage. If this needs too many steps, it returns to the
    saved counts. The last steps are made by streaks. Rewards have addresses, so they can be read again. The counts are
    exactly those of the plain loop, also with ties.

    `descend_to_level` finds the first passage below a convex boundary, which needs gamma >= 0.
    """
    arms = setting.arms
    walk = PassageState(
        floats[:arms],
        floats[arms : 2 * arms],
        floats[2 * arms : 3 * arms],
        floats[3 * arms : 4 * arms],
        integers[:arms],
        integers[arms : 2 * arms],
    )
    gamma = params[0]
    scale = setting.options[0]
    step = first
    while step < min(arms, last):
        walk.total[step] = 0.0
        walk.word_index[step] = NO_WORD
        pull_and_index(instance, setting, params, rewards, walk.total, walk.indices, pulls, step)
        step += 1
    share = 0.6
    while last - step > FEWEST_PASSAGE_STEPS and gamma * scale > 0.0 and share > 0.1:
        level = guess_level(walk, pulls, gamma * scale, step + share * (last - step))
        save_passages(walk, pulls)
        remaining = last - step
        for arm in range(arms):
            remaining = descend_to_level(instance, rewards, walk, pulls, arm, level, True, remaining, gamma, scale)
            if remaining < 0:
                break
        if remaining < 0:
            restore_passages(walk, pulls, gamma, scale)
            share *= 0.5
        else:
            step = last - remaining
    while step < last:
        leader, rival = find_leader_and_rival(walk.indices)
        level = walk.indices[rival] if arms > 1 else -1e308
        remaining = last - step
        wins_ties = leader <= rival
        descended = descend_to_level(instance, rewards, walk, pulls, leader, level, wins_ties, remaining, gamma, scale)
        step = last - max(descended, 0)
    return True


@scalar
def descend_to_level(instance, rewards, walk, pulls, arm, level, at_level, remaining, gamma, scale):
    """Pull an arm while its index is above the level (or at it, if `at_level`). Return the number of steps that remain.

    It is -1 if the arm is still above the level after the last step. After n pulls, an arm is above the level if its total
    exceeds b(n) = level n - gamma scale sqrt(n). b is convex, so over one word of rewards it is below its chord. If the
    total exceeds the chord even with all zeros of the word before its ones, the whole word is counted at once. Otherwise
    its bits are read one by one. The index is computed exactly when the total reaches the chord.
    """
    total = walk.total[arm]
    count = int(pulls[arm])
    index = walk.indices[arm]
    seek(rewards, arm, 0)
    while remaining > 0 and (index > level or (at_level and index == level)):
        if walk.word_index[arm] != count >> 5:
            walk.word_index[arm] = count >> 5
            walk.word[arm] = draw_word(instance, arm, count >> 5, rewards)
        lane = count & (WORD_BITS - 1)
        bits = min(WORD_BITS - lane, remaining)
        word = (int(walk.word[arm]) >> lane) & ((1 << bits) - 1)
        chord_start = level * count - gamma * scale * math.sqrt(count)
        chord_end = level * (count + bits) - gamma * scale * math.sqrt(count + bits)
        slope = max((chord_end - chord_start) / bits, 0.0)
        rounding = 1e-15 * (abs(level) * (count + bits) + gamma * scale * math.sqrt(count + bits))
        spare = total - chord_start - 1e-9 - rounding
        successes = count_ones(word)
        counted = 0
        if slope < 1.0 and (bits - successes) * slope < spare:
            total += successes
            counted = bits
        while counted < bits and (index > level or (at_level and index == level)):
            total += word & 1
            spare += (word & 1) - slope
            word = word >> 1
            counted += 1
            if spare <= 0.0:
                index = compute_ucb_index(total, (count + counted) * 1.0, gamma, scale)
        count += counted
        remaining -= counted
    walk.total[arm] = total
    pulls[arm] = count
    walk.indices[arm] = compute_ucb_index(total, count * 1.0, gamma, scale)
    if remaining == 0 and (walk.indices[arm] > level or (at_level and walk.indices[arm] == level)):
        return -1
    return remaining


@scalar
def guess_level(walk, pulls, scale, target):
    """Guess the level whose first passages need `target` steps, provided that every arm keeps its present mean."""
    low = -1e308
    high = -1e308
    for arm in range(len(pulls)):
        low = max(low, walk.total[arm] / pulls[arm])
        high = max(high, walk.indices[arm])
    for _ in range(16):
        level = 0.5 * (low + high)
        used = 0.0
        for arm in range(len(pulls)):
            used += estimate_passage(walk.total[arm] / pulls[arm], pulls[arm], scale, level)
        if used > target:
            low = level
        else:
            high = level
    return high


@scalar
def estimate_passage(mean, pulls, scale, level):
    """Estimate the number of pulls after which an arm with this mean is below the level; at least its present number."""
    if level <= mean:
        return 1e18
    root = scale / (level - mean)
    return max(root * root, pulls * 1.0)


@scalar
def save_passages(walk, pulls):
    """Save counts and totals."""
    for arm in range(len(pulls)):
        walk.saved_total[arm] = walk.total[arm]
        walk.saved_pulls[arm] = pulls[arm]


@scalar
def restore_passages(walk, pulls, gamma, scale):
    """Restore the saved counts and totals."""
    for arm in range(len(pulls)):
        walk.total[arm] = walk.saved_total[arm]
        pulls[arm] = int(walk.saved_pulls[arm])
        walk.indices[arm] = compute_ucb_index(walk.total[arm], walk.saved_pulls[arm], gamma, scale)
