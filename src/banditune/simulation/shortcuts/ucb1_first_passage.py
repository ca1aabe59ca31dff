"""UCB1's two exact shortcuts: stays with the leader, and first passages of all indices below a common level."""

from __future__ import annotations

import math
from typing import NamedTuple

from banditune.core.arrays import FloatArray
from banditune.core.binomial_draws import count_ones
from banditune.core.scalar import Slot, scalar
from banditune.core.streams import NO_WORD, WORD_BITS, seek
from banditune.simulation.estimators.ucb_index import compute_ucb_index

reward = Slot("reward")


draw_word = Slot("words")


FEWEST_STEPS = 400
"""Number of steps below which stays are faster than another level."""


@scalar
def find_leader_and_rival(value):
    """Find the arms with the highest and the second highest index. Ties go to the lowest number."""
    leader = 0
    for arm in range(1, len(value)):
        if value[arm] > value[leader]:
            leader = arm
    rival = 1 if leader == 0 and len(value) > 1 else 0
    for arm in range(len(value)):
        if arm != leader and value[arm] > value[rival]:
            rival = arm
    return leader, rival


@scalar
def is_leader_ahead(value, leader, rival):
    """Return whether the leader, whose index may have changed, is still the arm to pull."""
    return leader == rival or value[leader] > value[rival] or (value[leader] == value[rival] and leader < rival)


@scalar
def advance_ucb1_stays(instance, setting, params, agent, rewards, floats, integers, pulls, first, last):
    """Advance UCB1 by stays: pull the leader until its index falls behind the second best.

    With the log of the horizon, a pull changes only the index of its arm, so the second best stays the same. The order
    of pulls is that of UCB1, for any gamma.
    """
    arms = setting.arms
    total = floats[:arms]
    value = floats[arms : 2 * arms]
    step = first
    while step < min(arms, last):
        total[step] = 0.0
        if not pull_and_index(instance, setting, params, rewards, total, value, pulls, step):
            return False
        step += 1
    leader, rival = find_leader_and_rival(value)
    # One pull per iteration, whether the leader stays or not, keeps the threads of a GPU together.
    while step < last:
        if not pull_and_index(instance, setting, params, rewards, total, value, pulls, leader):
            return False
        step += 1
        if not is_leader_ahead(value, leader, rival):
            leader, rival = find_leader_and_rival(value)
    return True


@scalar
def pull_and_index(instance, setting, params, rewards, total, value, pulls, arm):
    """Pull an arm and update its index; return False if the reward is not finite."""
    pull = int(pulls[arm])
    seek(rewards, arm, pull)
    paid = reward(instance, arm, pull, 0, rewards)
    total[arm] += paid
    pulls[arm] = pull + 1
    value[arm] = compute_ucb_index(total[arm], pull + 1.0, params[0], setting.options[0])
    return math.isfinite(paid)


class PassageState(NamedTuple):
    """The memory of the first-passage shortcut: total rewards and indices, a copy to restore, each arm's current word."""

    total: FloatArray
    indices: FloatArray
    saved_total: FloatArray
    saved_pulls: FloatArray
    word: FloatArray
    word_index: FloatArray


@scalar
def advance_ucb1_levels(instance, setting, params, agent, rewards, floats, integers, pulls, first, last):
    """Advance UCB1 on 0/1 rewards as a merge: lower a common level until it has used up the steps.

    This is UCB1 for the following reason. An arm's index depends on its pulls alone, and UCB1 pulls the highest index.
    So before it pulls any arm whose index is below a level v, it has pulled every arm until its index first fell below
    v. If those first passages need no more steps than are left, UCB1's counts at that moment are these, in whatever
    order.

    The shortcut guesses a level, walks each arm to its first passage, goes back if that was too far, and does the last
    steps by stays. Rewards have addresses, so going back costs nothing. The counts are those of the plain loop, bit by
    bit, ties included.

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
    while last - step > FEWEST_STEPS and gamma * scale > 0.0 and share > 0.1:
        level = guess_level(walk, pulls, gamma * scale, step + share * (last - step))
        save_passages(walk, pulls)
        left = last - step
        for arm in range(arms):
            left = descend_to_level(instance, rewards, walk, pulls, arm, level, True, left, gamma, scale)
            if left < 0:
                break
        if left < 0:
            restore_passages(walk, pulls, gamma, scale)
            share *= 0.5
        else:
            step = last - left
    while step < last:
        leader, rival = find_leader_and_rival(walk.indices)
        level = walk.indices[rival] if arms > 1 else -1e308
        left = last - step
        descended = descend_to_level(instance, rewards, walk, pulls, leader, level, leader <= rival, left, gamma, scale)
        step = last - max(descended, 0)
    return True


@scalar
def descend_to_level(instance, rewards, walk, pulls, arm, level, at_level, left, gamma, scale):
    """Pull an arm while its index is above the level (or at it, if `at_level`); return the steps that are left.

    It returns -1 if the arm is still above the level when the steps run out. An arm is above the level after n pulls
    while its total exceeds b(n) = level n - gamma scale sqrt(n). b is convex, so over one word of rewards it lies below
    its chord. If the total exceeds the chord even with all zeros of the word before its ones, the whole word is counted
    at once. Otherwise its bits are walked, and the index is computed exactly where the chord is met.
    """
    total = walk.total[arm]
    count = int(pulls[arm])
    value = walk.indices[arm]
    seek(rewards, arm, 0)
    while left > 0 and (value > level or (at_level and value == level)):
        if walk.word_index[arm] != count >> 5:
            walk.word_index[arm] = count >> 5
            walk.word[arm] = draw_word(instance, arm, count >> 5, rewards)
        lane = count & (WORD_BITS - 1)
        rest = min(WORD_BITS - lane, left)
        word = (int(walk.word[arm]) >> lane) & ((1 << rest) - 1)
        low = level * count - gamma * scale * math.sqrt(count)
        high = level * (count + rest) - gamma * scale * math.sqrt(count + rest)
        slope = max((high - low) / rest, 0.0)
        rounding = 1e-15 * (abs(level) * (count + rest) + gamma * scale * math.sqrt(count + rest))
        spare = total - low - 1e-9 - rounding
        successes = count_ones(word)
        done = 0
        if slope < 1.0 and (rest - successes) * slope < spare:
            total += successes
            done = rest
        while done < rest and (value > level or (at_level and value == level)):
            total += word & 1
            spare += (word & 1) - slope
            word = word >> 1
            done += 1
            if spare <= 0.0:
                value = compute_ucb_index(total, (count + done) * 1.0, gamma, scale)
        count += done
        left -= done
    walk.total[arm] = total
    pulls[arm] = count
    walk.indices[arm] = compute_ucb_index(total, count * 1.0, gamma, scale)
    if left == 0 and (walk.indices[arm] > level or (at_level and walk.indices[arm] == level)):
        return -1
    return left


@scalar
def guess_level(walk, pulls, scale, target):
    """Guess the level at which first passages would use `target` steps, if every arm kept its present mean."""
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
    """Estimate the pulls after which an arm with this mean falls below the level; never fewer than it has."""
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
