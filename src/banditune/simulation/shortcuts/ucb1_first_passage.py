"""UCB1's two exact shortcuts: stay with the leader, and let every arm's index fall to a common level."""

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
"""Steps that are quicker played by staying than by one more level."""


@scalar
def find_leader_and_rival(value):
    """The arm with the highest index and the next one; ties go to the lowest number."""
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
    """Whether the leader, whose index may have changed, is still the arm to pull."""
    return leader == rival or value[leader] > value[rival] or (value[leader] == value[rival] and leader < rival)


@scalar
def advance_ucb1_stays(instance, setting, params, agent, rewards, floats, integers, pulls, first, last):
    """UCB1 by staying: pull the leader until its index falls behind the second best.

    With the log of the horizon, a pull changes only its own arm's index, so the second best needs no second look. The
    arms are pulled in UCB1's very order. This holds for any gamma.
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
    # One pull in each turn of the loop, whether the leader stays or not: threads of a GPU stay together so.
    while step < last:
        if not pull_and_index(instance, setting, params, rewards, total, value, pulls, leader):
            return False
        step += 1
        if not is_leader_ahead(value, leader, rival):
            leader, rival = find_leader_and_rival(value)
    return True


@scalar
def pull_and_index(instance, setting, params, rewards, total, value, pulls, arm):
    """Pull an arm and renew its index; False where the reward is not finite."""
    pull = int(pulls[arm])
    seek(rewards, arm, pull)
    paid = reward(instance, arm, pull, 0, rewards)
    total[arm] += paid
    pulls[arm] = pull + 1
    value[arm] = compute_ucb_index(total[arm], pull + 1.0, params[0], setting.options[0])
    return math.isfinite(paid)


class PassageState(NamedTuple):
    """What the level shortcut keeps: total rewards and indices, a copy to go back to, each arm's current word."""

    total: FloatArray
    value: FloatArray
    saved_total: FloatArray
    saved_pulls: FloatArray
    word: FloatArray
    number: FloatArray


@scalar
def advance_ucb1_levels(instance, setting, params, agent, rewards, floats, integers, pulls, first, last):
    """UCB1 on 0/1 rewards as a merge: lower one common level until it has used up the steps.

    Why this is UCB1. An arm's index depends on its own pulls alone. UCB1 pulls the highest index, so before it pulls
    anything whose index is below a level v it has pulled every arm until its index first fell below v; if those first
    passages need no more steps than are left, UCB1's counts at that moment are exactly they, whatever the order was.
    So: guess a level, walk each arm to its first passage, go back if that was too far, and play the last few steps by
    staying. Rewards have addresses, so going back costs nothing, and the counts are those of the plain loop, bit by
    bit, ties included.

    `descend_to_level` looks for the first passage below a convex boundary, which needs a gamma that is not negative.
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
        walk.number[step] = NO_WORD
        pull_and_index(instance, setting, params, rewards, walk.total, walk.value, pulls, step)
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
        leader, rival = find_leader_and_rival(walk.value)
        level = walk.value[rival] if arms > 1 else -1e308
        left = last - step
        descended = descend_to_level(instance, rewards, walk, pulls, leader, level, leader <= rival, left, gamma, scale)
        step = last - max(descended, 0)
    return True


@scalar
def descend_to_level(instance, rewards, walk, pulls, arm, level, at_level, left, gamma, scale):
    """Pull an arm while its index is above the level (or at it, if `at_level`) and steps are left; returns those left.

    Where the arm is still above the level when the steps run out, it returns -1.

    An arm is above the level after n pulls while its total exceeds b(n) = level n - gamma scale sqrt(n). b is convex, so
    over one word of rewards it lies below its chord. If the total would exceed the chord even with all of the word's
    zeros before its ones, the whole word is counted in one go; otherwise its bits are walked, with an exact look at the
    index where the chord is met.
    """
    total = walk.total[arm]
    count = int(pulls[arm])
    value = walk.value[arm]
    seek(rewards, arm, 0)
    while left > 0 and (value > level or (at_level and value == level)):
        if walk.number[arm] != count >> 5:
            walk.number[arm] = count >> 5
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
    walk.value[arm] = compute_ucb_index(total, count * 1.0, gamma, scale)
    if left == 0 and (walk.value[arm] > level or (at_level and walk.value[arm] == level)):
        return -1
    return left


@scalar
def guess_level(walk, pulls, scale, target):
    """The level at which the first passages would use `target` steps, if every arm kept its present mean."""
    low = -1e308
    high = -1e308
    for arm in range(len(pulls)):
        low = max(low, walk.total[arm] / pulls[arm])
        high = max(high, walk.value[arm])
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
    """Pulls after which an arm with this mean would fall below the level; never fewer than it has."""
    if level <= mean:
        return 1e18
    root = scale / (level - mean)
    return max(root * root, pulls * 1.0)


@scalar
def save_passages(walk, pulls):
    """Remember counts and totals."""
    for arm in range(len(pulls)):
        walk.saved_total[arm] = walk.total[arm]
        walk.saved_pulls[arm] = pulls[arm]


@scalar
def restore_passages(walk, pulls, gamma, scale):
    """Go back to what was remembered."""
    for arm in range(len(pulls)):
        walk.total[arm] = walk.saved_total[arm]
        pulls[arm] = int(walk.saved_pulls[arm])
        walk.value[arm] = compute_ucb_index(walk.total[arm], walk.saved_pulls[arm], gamma, scale)
