"""Beta posteriors of Thompson sampling's shortcut, and their updates from 32-bit words of outcomes."""

from __future__ import annotations

import math
from typing import NamedTuple

from banditune.core.arrays import FloatArray, IntArray
from banditune.core.binomial_draws import count_ones
from banditune.core.scalar import Slot, scalar
from banditune.core.streams import PSEUDO_STREAM, WORD_BITS, convert_to_unit, philox, seek

reward = Slot("reward")


draw_outcomes = Slot("draw_outcomes")


class BetaPosteriors(NamedTuple):
    """Beta shapes, rates of proposals, thresholds and successes of arms; words of outcomes; lists of arms that draw."""

    a: FloatArray
    b: FloatArray
    rate: FloatArray
    threshold: FloatArray
    successes: FloatArray
    word: IntArray
    word_index: IntArray
    full_draws: IntArray
    proposers: IntArray
    invalid: IntArray


@scalar
def view_posteriors(floats, integers, arms):
    """Split the memory into arrays with one number per arm."""
    return BetaPosteriors(
        floats[:arms],
        floats[arms : 2 * arms],
        floats[2 * arms : 3 * arms],
        floats[3 * arms : 4 * arms],
        floats[4 * arms : 5 * arms],
        integers[:arms],
        integers[arms : 2 * arms],
        integers[2 * arms : 3 * arms],
        integers[3 * arms : 4 * arms],
        integers[4 * arms : 4 * arms + 1],
    )


@scalar
def draw_outcome_word(instance, arm, number, stream):
    """Draw 32 pseudo-rewards, a bit each, for rewards in [0, 1]. Each has the address of its pull.

    Returns -1 if a reward is not finite, even that of a pull that the run does not reach.
    """
    word = 0
    for lane in range(WORD_BITS):
        pull = WORD_BITS * number + lane
        seek(stream, arm, pull)
        payoff = reward(instance, arm, pull, 0, stream)
        if not math.isfinite(payoff):
            return -1
        w0, w1, _, _ = philox(0, pull, arm, int(stream.cursor[3]) + PSEUDO_STREAM, stream.key0, stream.key1)
        if convert_to_unit(w0, w1) < payoff:
            word |= 1 << lane
    return word


@scalar
def read_outcomes(state, instance, arm, pull, rewards):
    """Return the outcomes of an arm's pulls from `pull` to the end of its word. The next outcome is the lowest bit."""
    if state.word_index[arm] != pull // WORD_BITS:
        seek(rewards, arm, 0)
        state.word_index[arm] = pull // WORD_BITS
        word = draw_outcomes(instance, arm, pull // WORD_BITS, rewards)
        if word < 0:
            state.invalid[0] = 1
        state.word[arm] = max(word, 0)
    return int(state.word[arm]) >> (pull % WORD_BITS)


@scalar
def update_posterior(state, setting, pulls, arm, sharpness):
    """Update an arm's posterior from its pulls and successes."""
    state.a[arm] = (state.successes[arm] + setting.options[0]) * sharpness
    state.b[arm] = (pulls[arm] - state.successes[arm] + setting.options[1]) * sharpness


@scalar
def pull_and_update(state, instance, setting, pulls, arm, rewards, sharpness):
    """Pull an arm once, and update its posterior."""
    pull = int(pulls[arm])
    state.successes[arm] += read_outcomes(state, instance, arm, pull, rewards) & 1
    pulls[arm] = pull + 1
    update_posterior(state, setting, pulls, arm, sharpness)


@scalar
def compute_posterior_mean(state, arm):
    """Compute the posterior mean of an arm."""
    return state.a[arm] / (state.a[arm] + state.b[arm])


@scalar
def find_highest_mean(state):
    """Find the arm with the highest posterior mean. Ties go to the lowest number."""
    leader = 0
    for arm in range(1, len(state.a)):
        if compute_posterior_mean(state, arm) > compute_posterior_mean(state, leader):
            leader = arm
    return leader


@scalar
def find_closest_mean(state, leader):
    """Find the rival with the highest posterior mean. Return it and its mean; without rivals, the leader and -1."""
    closest = leader
    highest = -1.0
    for arm in range(len(state.a)):
        if arm != leader and compute_posterior_mean(state, arm) > highest:
            closest = arm
            highest = compute_posterior_mean(state, arm)
    return closest, highest


@scalar
def advance_greedy_streak(state, instance, setting, pulls, leader, rewards, remaining):
    """Pull the leader while it has the highest mean, at most to the end of its word. Return the number of pulls.

    Its mean would be lowest after all failures of the word and no success. If even this mean is the highest, the whole word
    is counted at once.
    """
    rival, highest = find_closest_mean(state, leader)
    pull = int(pulls[leader])
    limit = int(min(WORD_BITS - pull % WORD_BITS, remaining))
    word = read_outcomes(state, instance, leader, pull, rewards) & ((1 << limit) - 1)
    lowest = state.a[leader] / (state.a[leader] + state.b[leader] + (limit - count_ones(word)))
    count = 0
    if lowest > highest * (1.0 + 1e-9):
        count = limit
        state.successes[leader] += count_ones(word)
    ahead = True
    while count < limit and ahead:
        state.successes[leader] += (word >> count) & 1
        count += 1
        pulls[leader] = pull + count
        update_posterior(state, setting, pulls, leader, 1.0)
        mean = compute_posterior_mean(state, leader)
        ahead = mean > highest or (mean == highest and leader < rival)
    pulls[leader] = pull + count
    update_posterior(state, setting, pulls, leader, 1.0)
    return count
