"""What LinUCB and linear Thompson sampling share where a warp plays them: stays, and learning afresh."""

from __future__ import annotations

import math

from numpy import int32

from banditune.core.scalar import scalar
from banditune.simulation.gpu.warp_primitives import (
    cast_real,
    count_arms_per_lane,
    count_lanes,
    get_lane,
    get_opaque_lane,
    sync_lanes,
)

REFRESH_STAYS = 1000
"""Stays after which everything is computed afresh."""


EXCLUDED_SCORE = -1e100
"""The score of an arm that is not looked at: the leader while it is pulled, places behind the last arm."""


INTERVAL_PATIENCE = 8
"""Pulls of a stay before the first interval, and pulls that an interval must last to be worth its while."""


MAX_LANES = 32
"""Threads of the largest team."""


NORMALS_PER_DRAW = 64
"""Normals drawn at once, or the next multiple of a step's."""


PULLS, TOTAL, FIRST, AT, LOW, HIGH, UNTIL, SINCE, WAIT = range(9)
"""Places of `numbers`: m and E; FIRST is the m from which on r and b are ready; AT is the place of the step's normals. LOW,
HIGH and UNTIL are an interval for e and the m at which it ends; SINCE is the m at which it was computed, WAIT how many
pulls to wait before the next."""


LEADER, Q, SCORE, REACH, SCALE, AGE = range(6)
"""Places of `facts`: the leader, q and the leader's score when the stay began. SCALE is LinUCB's factor before widths and
REACH that times the leader's width when the stay began. AGE counts stays since all was computed afresh. Where every thread
writes, all write the same."""


LANE_SCALARS, WARP_SCALARS = 9, 6


def count_most_places(arms: int) -> int:
    """The places for arms in a team, with those behind the last arm; a constant number, so that addresses are too."""
    return arms + MAX_LANES - 1


@scalar
def locate_arm(me, place):
    """The arm in a place of a thread's share."""
    return me + place * count_lanes()


@scalar
def read_feature(setting, me, place, j):
    """A feature of the arm in a place of a thread's share; behind the last arm, one of the last arm."""
    return cast_real(setting.features[j, min(locate_arm(me, place), setting.arms - 1)])


@scalar
def start_linear_warp(state, setting):
    """Nothing was pulled. All else waits for the first step, which knows the parameters: no normals and an old age."""
    for arm in range(get_lane(), setting.arms, count_lanes()):
        state.pulled[arm] = cast_real(0.0)
        state.totals[arm] = cast_real(0.0)
    state.numbers[PULLS] = cast_real(0.0)
    state.warp_scalars[AGE] = cast_real(REFRESH_STAYS)
    state.numbers[AT] = cast_real(NORMALS_PER_DRAW + setting.dims)


@scalar
def read_prior_root(setting, i, j):
    """An entry of the lower triangular root of the prior's covariance."""
    return cast_real(setting.options[1 + setting.dims + i * setting.dims + j])


@scalar
def recompute_scores(state, setting):
    """Every arm's score under theta."""
    me = get_opaque_lane()
    for place in range(count_arms_per_lane()):
        score = cast_real(0.0)
        for j in range(setting.dims):
            score += state.theta[j] * read_feature(setting, me, place, j)
        state.score[place] = score if locate_arm(me, place) < setting.arms else cast_real(EXCLUDED_SCORE)
    state.warp_scalars[AGE] = cast_real(0.0)


@scalar
def replay_stay(theta, setting, gain, q, arm, count, paid, me):
    """Move theta as if all pulls of an arm were one stay; returns their r and b."""
    score = cast_real(0.0)
    for j in range(setting.dims):
        score += theta[j] * cast_real(setting.features[j, arm])
    r, taken = compute_root_and_correction(count, q)
    error = (paid - count * score) * r * r
    sync_lanes()
    for j in range(me, setting.dims, count_lanes()):
        theta[j] += error * gain[j]
    return r, taken


@scalar
def begin_linear_stay(state, arm, score, q):
    """Everybody knows who leads from now on. Between this and the last look at the last stay all have met."""
    numbers = state.numbers
    facts = state.warp_scalars
    facts[LEADER] = cast_real(arm)
    numbers[PULLS] = cast_real(0.0)
    numbers[TOTAL] = cast_real(0.0)
    numbers[UNTIL] = cast_real(0.0)
    numbers[SINCE] = cast_real(0.0)
    numbers[WAIT] = cast_real(INTERVAL_PATIENCE)
    facts[Q] = q
    facts[SCORE] = score
    compute_ahead(state, q)


@scalar
def compute_ahead(state, q):
    """Compute r and b for the present number of pulls and the next ones, one per thread."""
    numbers = state.numbers
    pulls = numbers[PULLS] + cast_real(get_lane())
    numbers[FIRST] = numbers[PULLS]
    state.roots[get_lane()], state.corrections[get_lane()] = compute_root_and_correction(pulls, q)
    sync_lanes()


@scalar
def compute_root_and_correction(pulls, q):
    """The r and b of so many pulls. With r = 1 / root, b = pulls / (root (1 + root)): one division for both."""
    root = math.sqrt(cast_real(1.0) + pulls * q)
    more = cast_real(1.0) + root
    unit = cast_real(1.0) / (root * more)
    return more * unit, pulls * unit


@scalar
def read_ahead(numbers, ready):
    """What was computed ahead for the present number of pulls."""
    return ready[int32(numbers[PULLS] - numbers[FIRST])]


@scalar
def update_linear_warp(state, setting, step, params, arm, reward, stream):
    """Learn a reward of the leader."""
    numbers = state.numbers
    facts = state.warp_scalars
    numbers[PULLS] += cast_real(1.0)
    numbers[TOTAL] += cast_real(reward) - facts[SCORE]
    if numbers[PULLS] - numbers[FIRST] >= cast_real(count_lanes()):
        compute_ahead(state, facts[Q])


@scalar
def record_stay(state):
    """Remember what the stay's pulls paid."""
    numbers = state.numbers
    facts = state.warp_scalars
    sync_lanes()
    if get_lane() == 0:
        facts[AGE] += cast_real(1.0)
        if numbers[PULLS] > cast_real(0.0):
            arm = int32(facts[LEADER])
            state.pulled[arm] += numbers[PULLS]
            state.totals[arm] += numbers[TOTAL] + numbers[PULLS] * facts[SCORE]
