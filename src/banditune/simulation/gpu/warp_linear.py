"""Functions of the warp versions of LinUCB and linear Thompson sampling: streaks, and recomputation from totals.

A streak is a number m of pulls of one arm, the leader, in a row. Let x be its features, G^-1 and theta those before the
streak, q = x' G^-1 x, and E the sum of its rewards minus m times its score. With r = 1 / sqrt(1 + m q), theta moves by
E r^2 G^-1 x, and G^-1 by -m r^2 G^-1 x x' G^-1. A root S of G^-1 moves by -b (S t) t', with t = S'x and b = m r^2 / (1
+ r). So during a streak e = E r^2 and m determine all scores and widths, and matrices change only at its end.
"""

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

REFRESH_STREAKS = 1000
"""The number of streaks after which everything is recomputed from pulls and totals."""


EXCLUDED_SCORE = -1e100
"""The score of an arm that is not a rival: the leader while it is pulled, and padding behind the last arm."""


INTERVAL_PATIENCE = 8
"""The number of pulls before the first interval of a streak, and the fewest pulls for which an interval saves time."""


MAX_LANES = 32
"""The largest number of threads that simulate one run together: those of a warp."""


NORMALS_PER_DRAW = 64
"""The number of normals that are drawn together, for one or more steps."""


PULLS, TOTAL, FIRST_READY, NEXT_NORMAL, LOW, HIGH, UNTIL, SINCE, WAIT = range(9)
"""Positions in `lane_scalars`: m and E; the first m for which r and b are computed; the position of the step's normals.

LOW, HIGH and UNTIL are an interval for e and the m at which it ends. SINCE is the m at which it was computed, and WAIT the
pulls to wait before the next.
"""


LEADER, Q, SCORE, LEADER_RADIUS, SCALE, AGE = range(6)
"""Positions in `warp_scalars`: the leader, q, and the leader's score at the start of the streak.

SCALE is LinUCB's factor of widths, and LEADER_RADIUS that times the leader's width at the start of the streak. AGE counts
the streaks since the last recomputation. If all lanes write one of these, they write the same number.
"""


LANE_SCALARS, WARP_SCALARS = 9, 6


def count_padded_arms(arms: int) -> int:
    """Count arms with the padding behind the last one: a constant, so that addresses are constants too."""
    return arms + MAX_LANES - 1


@scalar
def locate_arm(lane, position):
    """Return the arm at a position in a lane's share of the arms."""
    return lane + position * count_lanes()


@scalar
def read_feature(setting, lane, position, j):
    """Read a feature of the arm at a position in a lane's share; for padding, one of the last arm."""
    return cast_real(setting.features[j, min(locate_arm(lane, position), setting.arms - 1)])


@scalar
def start_linear_warp(state, setting):
    """Reset pulls and totals. The first step computes the rest, because it has the parameters."""
    for arm in range(get_lane(), setting.arms, count_lanes()):
        state.pulled[arm] = cast_real(0.0)
        state.totals[arm] = cast_real(0.0)
    state.lane_scalars[PULLS] = cast_real(0.0)
    state.warp_scalars[AGE] = cast_real(REFRESH_STREAKS)
    state.lane_scalars[NEXT_NORMAL] = cast_real(NORMALS_PER_DRAW + setting.dims)


@scalar
def read_prior_root(setting, i, j):
    """Read an entry of the lower triangular root of the prior's covariance."""
    return cast_real(setting.options[1 + setting.dims + i * setting.dims + j])


@scalar
def recompute_scores(state, setting):
    """Compute every arm's score under theta."""
    lane = get_opaque_lane()
    for position in range(count_arms_per_lane()):
        score = cast_real(0.0)
        for j in range(setting.dims):
            score += state.theta[j] * read_feature(setting, lane, position, j)
        state.score[position] = score if locate_arm(lane, position) < setting.arms else cast_real(EXCLUDED_SCORE)
    state.warp_scalars[AGE] = cast_real(0.0)


@scalar
def replay_streak(theta, setting, gain, q, arm, pulls, total, lane):
    """Move theta as if all pulls of an arm were one streak. Return r and b of this streak."""
    score = cast_real(0.0)
    for j in range(setting.dims):
        score += theta[j] * cast_real(setting.features[j, arm])
    r, correction = compute_root_and_correction(pulls, q)
    error = (total - pulls * score) * r * r
    sync_lanes()
    for j in range(lane, setting.dims, count_lanes()):
        theta[j] += error * gain[j]
    return r, correction


@scalar
def begin_linear_streak(state, arm, score, q):
    """Begin a streak of an arm. All lanes have synchronised since they last read the scalars of the streak before."""
    lane_scalars = state.lane_scalars
    warp_scalars = state.warp_scalars
    warp_scalars[LEADER] = cast_real(arm)
    lane_scalars[PULLS] = cast_real(0.0)
    lane_scalars[TOTAL] = cast_real(0.0)
    lane_scalars[UNTIL] = cast_real(0.0)
    lane_scalars[SINCE] = cast_real(0.0)
    lane_scalars[WAIT] = cast_real(INTERVAL_PATIENCE)
    warp_scalars[Q] = q
    warp_scalars[SCORE] = score
    compute_ahead(state, q)


@scalar
def compute_ahead(state, q):
    """Compute r and b for the present number of pulls and the next ones, one per lane."""
    lane_scalars = state.lane_scalars
    pulls = lane_scalars[PULLS] + cast_real(get_lane())
    lane_scalars[FIRST_READY] = lane_scalars[PULLS]
    state.roots[get_lane()], state.corrections[get_lane()] = compute_root_and_correction(pulls, q)
    sync_lanes()


@scalar
def compute_root_and_correction(pulls, q):
    """Compute r and b after a number of pulls. With r = 1 / root, b = pulls / (root (1 + root)): one division for both."""
    root = math.sqrt(cast_real(1.0) + pulls * q)
    root_plus_one = cast_real(1.0) + root
    unit = cast_real(1.0) / (root * root_plus_one)
    return root_plus_one * unit, pulls * unit


@scalar
def read_ahead(lane_scalars, values):
    """Read what was computed ahead for the present number of pulls."""
    return values[int32(lane_scalars[PULLS] - lane_scalars[FIRST_READY])]


@scalar
def update_linear_warp(state, setting, step, params, arm, reward, stream):
    """Add a reward of the leader to its streak."""
    lane_scalars = state.lane_scalars
    warp_scalars = state.warp_scalars
    lane_scalars[PULLS] += cast_real(1.0)
    lane_scalars[TOTAL] += cast_real(reward) - warp_scalars[SCORE]
    if lane_scalars[PULLS] - lane_scalars[FIRST_READY] >= cast_real(count_lanes()):
        compute_ahead(state, warp_scalars[Q])


@scalar
def record_streak(state):
    """Add the pulls and the rewards of the streak to those of its arm."""
    lane_scalars = state.lane_scalars
    warp_scalars = state.warp_scalars
    sync_lanes()
    if get_lane() == 0:
        warp_scalars[AGE] += cast_real(1.0)
        if lane_scalars[PULLS] > cast_real(0.0):
            arm = int32(warp_scalars[LEADER])
            state.pulled[arm] += lane_scalars[PULLS]
            state.totals[arm] += lane_scalars[TOTAL] + lane_scalars[PULLS] * warp_scalars[SCORE]
