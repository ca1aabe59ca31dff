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
from banditune.core.streams import NO_WORD, WORD_BITS, seek

reward = Slot("reward")


draw_word = Slot("reward_word")


SLACK = 1e-12
"""The relative slack of a bound. An index that is monotone in exact arithmetic may not be so after rounding."""


BLOCK_DIVISOR = 16
"""A bound of a rising index holds for the number of steps so far divided by this."""


NEVER = -1.0
"""The last step of an unknown bound."""


class LeaderState(NamedTuple):
    """Pulls, sums of rewards and squares, bounds of indices with their last steps, and each arm's word of rewards."""

    pulls: FloatArray
    total: FloatArray
    squares: FloatArray
    bound: FloatArray
    until: FloatArray
    word: IntArray
    word_index: IntArray


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
        integers[arms : 2 * arms],
    )


@scalar
def start_leader_state(state, setting):
    """Reset the memory: no arm has a reward, a bound or a word."""
    for arm in range(setting.arms):
        state.pulls[arm] = 0.0
        state.total[arm] = 0.0
        state.squares[arm] = 0.0
        state.bound[arm] = 0.0
        state.until[arm] = NEVER
        state.word_index[arm] = NO_WORD


@scalar
def add_slack(value):
    """Increase a bound by its slack."""
    return value + SLACK * abs(value) if abs(value) < 1e300 else value


@scalar
def pull_single_reward(instance, rewards, state, pulls, arm):
    """Pull an arm, and return its reward."""
    pull = int(pulls[arm])
    seek(rewards, arm, pull)
    paid = reward(instance, arm, pull, 0, rewards)
    state.total[arm] += paid
    state.squares[arm] += paid * paid
    pulls[arm] = pull + 1
    state.pulls[arm] = pull + 1
    return paid


@scalar
def pull_bit_packed_reward(instance, rewards, state, pulls, arm):
    """The same for 0/1 rewards, which are drawn 32 at a time."""
    pull = int(pulls[arm])
    if state.word_index[arm] != pull // WORD_BITS:
        state.word_index[arm] = pull // WORD_BITS
        seek(rewards, arm, 0)
        state.word[arm] = draw_word(instance, arm, pull // WORD_BITS, rewards)
    paid = (int(state.word[arm]) >> (pull % WORD_BITS)) & 1
    state.total[arm] += paid
    state.squares[arm] += paid
    pulls[arm] = pull + 1
    state.pulls[arm] = pull + 1
    return paid


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
    def store_bound(state, setting, step, params, arm, value):
        """Bound the index of an arm, whose value at this step is known, until it is pulled or for a block of steps."""
        if rises:
            # If a bound was too high to decide, the next one is for half as many steps.
            ahead = step // BLOCK_DIVISOR if state.until[arm] < step else (int(state.until[arm]) - step) // 2
            later = min(step + ahead, setting.horizon - 1)
            state.until[arm] = later
            if later > step:
                value = compute_value(state, setting, later, params, arm)
        else:
            state.until[arm] = setting.horizon
        state.bound[arm] = value if constant else add_slack(value)

    @scalar
    def find_leader(state, setting, step, params, leader, highest):
        """Find the arm with the highest index. The index of one arm is known."""
        known = leader
        for arm in range(setting.arms):
            if arm != known and (state.until[arm] < step or state.bound[arm] >= highest):
                if constant and state.until[arm] >= step:
                    value = state.bound[arm]
                else:
                    value = compute_value(state, setting, step, params, arm)
                    store_bound(state, setting, step, params, arm, value)
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
    pull_arm: Callable[..., Any],
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
            state.until[leader] = NEVER
            store_bound(state, setting, step, params, leader, highest)
            leader = find_leader(state, setting, step, params, leader, highest)
            rival, bound, until = find_rival(state, setting, leader)
            ahead = True
            while ahead:
                if not math.isfinite(pull_arm(instance, rewards, state, pulls, leader)):
                    return False
                step += 1
                if step >= last:
                    # The next call begins with the index of arm 0, so the bound of this arm is unknown.
                    state.until[leader] = NEVER
                    return True
                ahead = step <= until and exceeds(read_arm(state, leader), setting, step, params, bound)
                if not ahead:
                    highest = compute_value(state, setting, step, params, leader)
                    ahead = step <= until and (highest > bound or (constant and highest == bound and leader < rival))
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
        make_leader_advance(index, test, in_step, read_arm, pull)
        for pull in (pull_bit_packed_reward, pull_single_reward)
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
    return 5 * arms, 2 * arms
