"""An exact shortcut for index policies: the leader is pulled while its index exceeds a bound of all other indices."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from banditune.core.arrays import FloatArray, IntArray
from banditune.core.nan_errors import reject_nan_in_choose
from banditune.core.policy import Shortcut
from banditune.core.scalar import Slot, scalar
from banditune.core.streams import WORD_BITS, seek
from banditune.simulation.estimators.arm_moments import ArmRecord

reward = Slot("reward")


draw_word = Slot("reward_word")


SLACK = 1e-12
"""The relative slack of a bound. An index that is monotone in exact arithmetic may not be so after rounding."""


BLOCK_DIVISOR = 4
"""A bound of an index that rises holds for a quarter of the steps so far."""


NEVER = -1.0
"""The last step of an unknown bound."""


class LeaderState(NamedTuple):
    """Pulls, sums of rewards and squares, bounds of the indices with their last steps, and arms' words of rewards."""

    pulls: FloatArray
    total: FloatArray
    squares: FloatArray
    bound: FloatArray
    until: FloatArray
    word: IntArray


@scalar
def view_leader_state(setting, floats, integers):
    """Split the memory of the shortcut."""
    arms = setting.arms
    return LeaderState(
        floats[:arms],
        floats[arms : 2 * arms],
        floats[2 * arms : 3 * arms],
        floats[3 * arms : 4 * arms],
        floats[4 * arms : 5 * arms],
        integers[:arms],
    )


@scalar
def start_leader_state(state, setting):
    """No arm has a reward or a bound."""
    for arm in range(setting.arms):
        state.pulls[arm] = 0.0
        state.total[arm] = 0.0
        state.squares[arm] = 0.0
        state.bound[arm] = 0.0
        state.until[arm] = NEVER


@scalar
def add_slack(value):
    """Increase a bound by its slack."""
    return value + SLACK * abs(value) if abs(value) < 1e300 else value


@scalar
def draw_single_reward(instance, rewards, state, arm, pull):
    """Draw the reward of a pull of an arm."""
    seek(rewards, arm, pull)
    return reward(instance, arm, pull, 0, rewards)


@scalar
def draw_bit_packed_reward(instance, rewards, state, arm, pull):
    """The same for 0/1 rewards, which are drawn 32 at a time. An arm's pulls come in order, from the first one."""
    lane = pull & (WORD_BITS - 1)
    if lane == 0:
        seek(rewards, arm, 0)
        state.word[arm] = draw_word(instance, arm, pull // WORD_BITS, rewards)
    return (int(state.word[arm]) >> lane) & 1


@scalar
def exceeds_never(arm, setting, step, params, bound):
    """Return False for all arms. Policies without a test of their own use this, so that every index is computed."""
    return False


class IndexScan(NamedTuple):
    """Scalar functions on the indices of all arms at a step; see `make_leader_advance`."""

    compute_value: Callable[..., Any]
    store_bound: Callable[..., Any]
    find_leader: Callable[..., Any]


def make_index_scan(index: Callable[..., Any], in_step: str, read_arm: Callable[..., Any]) -> IndexScan:
    """Make the functions that compute indices and bounds of them."""
    constant, rises = in_step == "constant", in_step == "rising"

    @scalar
    def compute_value(state, setting, step, params, arm):
        """Compute the index of an arm at a step."""
        return reject_nan_in_choose(index(read_arm(state, arm), setting, step, params))

    @scalar
    def bound_ahead(state, setting, step, params, arm, ahead):
        """Bound an index that rises by its value some steps ahead."""
        later = min(step + ahead, setting.horizon - 1)
        state.until[arm] = later
        state.bound[arm] = add_slack(compute_value(state, setting, later, params, arm))

    @scalar
    def store_bound(state, setting, step, params, arm, value):
        """Bound the index of an arm, whose value at this step is known, until it is pulled or for a block of steps."""
        if rises:
            bound_ahead(state, setting, step, params, arm, step // BLOCK_DIVISOR)
        else:
            state.until[arm] = setting.horizon
            state.bound[arm] = value if constant else add_slack(value)

    @scalar
    def resolve_value(state, setting, step, params, arm):
        """Compute the index of an arm whose bound does not decide, and a better bound."""
        if constant and state.until[arm] >= step:
            return state.bound[arm]
        value = compute_value(state, setting, step, params, arm)
        if rises:
            # A bound that was too high is followed by one for half of its steps.
            bound_ahead(state, setting, step, params, arm, (int(state.until[arm]) - step) // 2)
        else:
            store_bound(state, setting, step, params, arm, value)
        return value

    @scalar
    def find_leader(state, setting, step, params, leader, highest):
        """Find the arm with the highest index. The index of one arm is known."""
        known = leader
        for arm in range(setting.arms):
            if arm != known:
                if rises and state.until[arm] < step:
                    bound_ahead(state, setting, step, params, arm, step // BLOCK_DIVISOR)
                if state.until[arm] < step or state.bound[arm] >= highest:
                    value = resolve_value(state, setting, step, params, arm)
                    if value > highest or (value == highest and arm < leader):
                        leader = arm
                        highest = value
        return leader

    return IndexScan(compute_value, store_bound, find_leader)


@scalar
def find_rival(state, setting, leader):
    """Find the arm with the highest bound of all others, this bound, and the last step at which all bounds hold."""
    rival = leader
    bound = -math.inf
    until = setting.horizon * 1.0
    for arm in range(setting.arms):
        if arm != leader:
            until = min(until, state.until[arm])
            if state.bound[arm] > bound or rival == leader:
                rival = arm
                bound = state.bound[arm]
    return rival, bound, until


@lru_cache(maxsize=256)
def make_leader_advance(
    index: Callable[..., Any],
    exceeds: Callable[..., Any],
    in_step: str,
    read_arm: Callable[..., Any],
    draw_reward: Callable[..., Any],
) -> Callable[..., Any]:
    """Make the `advance` of a shortcut for an index.

    Proof that it is exact: the policy pulls the arm with the highest index. Between two pulls of an arm, its index is
    constant, falls or rises with the step. So its present value bounds the values until its next pull, or its value at a
    later step bounds those up to that step. While the leader's index exceeds the bounds of all others, the leader is the
    arm to pull. Otherwise, all indices whose bounds reach the leader's index are computed. Ties go to the lowest number.
    """
    constant = in_step == "constant"
    compute_value, store_bound, find_leader = make_index_scan(index, in_step, read_arm)

    @scalar
    def advance(instance, setting, params, agent, rewards, floats, integers, pulls, first, last):
        state = view_leader_state(setting, floats, integers)
        if first == 0:
            start_leader_state(state, setting)
        step = first
        leader = first - first  # a zero that is not a literal: for a literal Numba would compile once more
        highest = compute_value(state, setting, step, params, leader)
        while step < last:
            known = leader
            leader = find_leader(state, setting, step, params, known, highest)
            if leader != known:
                store_bound(state, setting, step, params, known, highest)
            rival, bound, until = find_rival(state, setting, leader)
            end = min(last, int(until) + 1)
            arm = read_arm(state, leader)
            pull = int(pulls[leader])
            ahead = True
            while ahead:
                paid = draw_reward(instance, rewards, state, leader, pull)
                if not math.isfinite(paid):
                    return False
                pull += 1
                pulls[leader] = pull  # at once, because an error in the index names the step by the pulls
                step += 1
                arm = ArmRecord(arm.pulls + 1.0, arm.total + paid, arm.squares + paid * paid)
                ahead = step < end and exceeds(arm, setting, step, params, bound)
                if not ahead and step < last:
                    highest = reject_nan_in_choose(index(arm, setting, step, params))
                    ahead = step < end and (highest > bound or (constant and highest == bound and leader < rival))
            state.pulls[leader] = arm.pulls
            state.total[leader] = arm.total
            state.squares[leader] = arm.squares
        # The next call begins with the index of arm 0, so the bound of the leader's is not known.
        state.until[leader] = NEVER
        return True

    return advance


def make_leader_shortcuts(
    replaces: tuple[Callable[..., Any], ...],
    index: Callable[..., Any],
    in_step: str,
    exceeds: Callable[..., Any] | None,
    read_arm: Callable[..., Any],
) -> tuple[Shortcut, ...]:
    """Make the shortcuts of an index policy: for 0/1 rewards that are drawn 32 at a time, and for others."""
    test = exceeds or exceeds_never
    packed, single = (
        make_leader_advance(index, test, in_step, read_arm, draw)
        for draw in (draw_bit_packed_reward, draw_single_reward)
    )
    return (
        Shortcut(
            "index-leader-bits",
            packed,
            replaces,
            count_leader_memory,
            is_valid=lambda options, row: True,
            is_bitwise_exact=True,
            is_applicable=lambda policy, problem: problem.bit_packed_reward is not None,
            reads_rewards=lambda problem: False,
        ),
        Shortcut(
            "index-leader",
            single,
            replaces,
            count_leader_memory,
            is_valid=lambda options, row: True,
            is_bitwise_exact=True,
        ),
    )


def count_leader_memory(arms: int, dims: int, horizon: int) -> tuple[int, int]:
    """Count the floats and integers that the shortcut keeps."""
    return 5 * arms, arms
