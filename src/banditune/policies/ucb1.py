"""UCB1 (Auer, Cesa-Bianchi and Fischer 2002) with the log of the horizon, and its two exact shortcuts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from banditune.checks import check_number, is_open
from banditune.contracts import PROBLEM, BadRequest, Floats, Play, Policy, Slot, scalar
from banditune.policies.arms import recall_totals, start_totals, width_parameter
from banditune.streams import LANES, NOWHERE, aim, ones

reward = Slot("reward")
words = Slot("words")

FEW = 400
"""Steps that are quicker played by staying than by one more level."""

WIDEST_SCALE = 1e100
"""Squares of gamma times the scale must be finite: up to this number the level shortcut plays."""


class Bounds(NamedTuple):
    """Pulls, total reward, mean and unscaled width of every arm."""

    pulls: Floats
    total: Floats
    mean: Floats
    width: Floats


@scalar
def view_bounds(memory, setting):
    """Four strips of one float per arm."""
    arms = setting.arms
    return Bounds(memory[:arms], memory[arms : 2 * arms], memory[2 * arms : 3 * arms], memory[3 * arms : 4 * arms])


@scalar
def width(scale, pulls):
    """Theory's confidence width after so many pulls; `scale` is 2 noise sqrt(2 log horizon)."""
    return scale / math.sqrt(pulls)


@scalar
def index(total, pulls, gamma, scale):
    """The upper confidence bound, Eq. (3) of the paper: the same operations in the loop and in the shortcuts."""
    return total / pulls + gamma * width(scale, pulls)


@scalar
def choose_bound(state, setting, step, params, stream):
    """Each arm once, then the highest upper confidence bound."""
    if step < setting.arms:
        return step
    best = 0
    highest = -1e308
    for arm in range(setting.arms):
        value = state.mean[arm] + params[0] * state.width[arm]
        if value > highest:
            best = arm
            highest = value
    return best


@scalar
def update_bound(state, setting, arm, reward, stream):
    """A pull changes its own arm's mean and width only, because the log is of the horizon."""
    state.pulls[arm] += 1.0
    state.total[arm] += reward
    state.mean[arm] = state.total[arm] / state.pulls[arm]
    state.width[arm] = width(setting.options[0], state.pulls[arm])


@scalar
def resume_bounds(state, setting, params, pulls, totals):
    """Know every arm's pulls and total reward, by the operations of `update_bound`."""
    for arm in range(setting.arms):
        state.pulls[arm] = pulls[arm]
        state.total[arm] = totals[arm]
        state.mean[arm] = totals[arm] / pulls[arm] if pulls[arm] > 0.0 else 0.0
        state.width[arm] = width(setting.options[0], pulls[arm]) if pulls[arm] > 0.0 else 0.0


@scalar
def leader_and_rival(value):
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
def stays(value, leader, rival):
    """Whether the leader, whose index may have changed, is still the arm to pull."""
    return leader == rival or value[leader] > value[rival] or (value[leader] == value[rival] and leader < rival)


@scalar
def advance_stay(instance, setting, params, agent, rewards, floats, integers, pulls, first, last):
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
        if not pull_once(instance, setting, params, rewards, total, value, pulls, step):
            return False
        step += 1
    leader, rival = leader_and_rival(value)
    # One pull in each turn of the loop, whether the leader stays or not: threads of a GPU stay together so.
    while step < last:
        if not pull_once(instance, setting, params, rewards, total, value, pulls, leader):
            return False
        step += 1
        if not stays(value, leader, rival):
            leader, rival = leader_and_rival(value)
    return True


@scalar
def pull_once(instance, setting, params, rewards, total, value, pulls, arm):
    """Pull an arm and renew its index; False where the reward is not finite."""
    pull = int(pulls[arm])
    aim(rewards, arm, pull)
    paid = reward(instance, arm, pull, 0, rewards)
    total[arm] += paid
    pulls[arm] = pull + 1
    value[arm] = index(total[arm], pull + 1.0, params[0], setting.options[0])
    return math.isfinite(paid)


class Walk(NamedTuple):
    """What the level shortcut keeps: total rewards and indices, a copy to go back to, each arm's current word."""

    total: Floats
    value: Floats
    saved_total: Floats
    saved_pulls: Floats
    word: Floats
    number: Floats


@scalar
def advance_level(instance, setting, params, agent, rewards, floats, integers, pulls, first, last):
    """UCB1 on 0/1 rewards as a merge: lower one common level until it has used up the steps.

    Why this is UCB1. An arm's index depends on its own pulls alone. UCB1 pulls the highest index, so before it pulls
    anything whose index is below a level v it has pulled every arm until its index first fell below v; if those first
    passages need no more steps than are left, UCB1's counts at that moment are exactly they, whatever the order was.
    So: guess a level, walk each arm to its first passage, go back if that was too far, and play the last few steps by
    staying. Rewards have addresses, so going back costs nothing, and the counts are those of the plain loop, bit by
    bit, ties included.

    `descend` looks for the first passage below a convex boundary, which needs a gamma that is not negative.
    """
    arms = setting.arms
    walk = Walk(
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
        walk.number[step] = NOWHERE
        pull_once(instance, setting, params, rewards, walk.total, walk.value, pulls, step)
        step += 1
    share = 0.6
    while last - step > FEW and gamma * scale > 0.0 and share > 0.1:
        level = likely_level(walk, pulls, gamma * scale, step + share * (last - step))
        save(walk, pulls)
        left = last - step
        for arm in range(arms):
            left = descend(instance, rewards, walk, pulls, arm, level, True, left, gamma, scale)
            if left < 0:
                break
        if left < 0:
            restore(walk, pulls, gamma, scale)
            share *= 0.5
        else:
            step = last - left
    while step < last:
        leader, rival = leader_and_rival(walk.value)
        level = walk.value[rival] if arms > 1 else -1e308
        left = last - step
        descended = descend(instance, rewards, walk, pulls, leader, level, leader <= rival, left, gamma, scale)
        step = last - max(descended, 0)
    return True


@scalar
def descend(instance, rewards, walk, pulls, arm, level, at_level, left, gamma, scale):
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
    aim(rewards, arm, 0)
    while left > 0 and (value > level or (at_level and value == level)):
        if walk.number[arm] != count >> 5:
            walk.number[arm] = count >> 5
            walk.word[arm] = words(instance, arm, count >> 5, rewards)
        lane = count & (LANES - 1)
        rest = min(LANES - lane, left)
        word = (int(walk.word[arm]) >> lane) & ((1 << rest) - 1)
        low = level * count - gamma * scale * math.sqrt(count)
        high = level * (count + rest) - gamma * scale * math.sqrt(count + rest)
        slope = max((high - low) / rest, 0.0)
        rounding = 1e-15 * (abs(level) * (count + rest) + gamma * scale * math.sqrt(count + rest))
        spare = total - low - 1e-9 - rounding
        successes = ones(word)
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
                value = index(total, (count + done) * 1.0, gamma, scale)
        count += done
        left -= done
    walk.total[arm] = total
    pulls[arm] = count
    walk.value[arm] = index(total, count * 1.0, gamma, scale)
    if left == 0 and (walk.value[arm] > level or (at_level and walk.value[arm] == level)):
        return -1
    return left


@scalar
def likely_level(walk, pulls, scale, target):
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
            used += passage(walk.total[arm] / pulls[arm], pulls[arm], scale, level)
        if used > target:
            low = level
        else:
            high = level
    return high


@scalar
def passage(mean, pulls, scale, level):
    """Pulls after which an arm with this mean would fall below the level; never fewer than it has."""
    if level <= mean:
        return 1e18
    root = scale / (level - mean)
    return max(root * root, pulls * 1.0)


@scalar
def save(walk, pulls):
    """Remember counts and totals."""
    for arm in range(len(pulls)):
        walk.saved_total[arm] = walk.total[arm]
        walk.saved_pulls[arm] = pulls[arm]


@scalar
def restore(walk, pulls, gamma, scale):
    """Go back to what was remembered."""
    for arm in range(len(pulls)):
        walk.total[arm] = walk.saved_total[arm]
        pulls[arm] = int(walk.saved_pulls[arm])
        walk.value[arm] = index(walk.total[arm], walk.saved_pulls[arm], gamma, scale)


STAY = Play(
    "stay",
    advance_stay,
    (choose_bound, update_bound),
    lambda arms, dims: (2 * arms, 0),
    holds=lambda options, row: True,
    exact_bits=True,
)
LEVEL = Play(
    "level",
    advance_level,
    (choose_bound, update_bound),
    lambda arms, dims: (4 * arms, 2 * arms),
    holds=lambda options, row: 0 <= row[0] * options[0] <= WIDEST_SCALE,
    exact_bits=True,
    applies=lambda policy, problem: problem.words is not None,
    reads=lambda problem: False,
)


@dataclass(frozen=True)
class UCB1(Policy):
    """Highest mean plus gamma times theory's confidence width.

    The width is 2 noise sqrt(2 log(horizon) / pulls). `noise` is the standard deviation of a reward around its mean, the
    problem's by default; 0.5, the most that rewards in [0, 1] can have, gives the textbook's sqrt(2 log(horizon) / pulls)
    at gamma = 1.
    """

    noise: Any = PROBLEM

    name = "ucb1"
    parameters = (width_parameter(),)
    plays: ClassVar[tuple[Play, ...]] = (LEVEL, STAY)
    pulls_every_arm: ClassVar[bool] = True
    textbook_options: ClassVar[Mapping[str, Any]] = {"noise": 0.5}

    view = staticmethod(view_bounds)
    start = staticmethod(start_totals)
    choose = staticmethod(choose_bound)
    update = staticmethod(update_bound)
    recall = staticmethod(recall_totals)
    resume = staticmethod(resume_bounds)

    def __post_init__(self) -> None:
        if is_open(self.noise):
            return
        noise = check_number("noise", self.noise)
        if not 0 < noise < 1e100:
            raise BadRequest(f"`0 < noise < 1e100` must hold for ucb1, but got noise={self.noise!r}.")
        object.__setattr__(self, "noise", noise)

    def memory(self, arms: int, dims: int) -> int:
        return 4 * arms

    def options(self, arms: int, dims: int, horizon: int) -> Sequence[float]:
        return (2 * self.noise * math.sqrt(2 * math.log(horizon)),)
