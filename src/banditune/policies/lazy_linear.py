"""Linear Thompson sampling by staying with a leader until a rival may win: an exact shortcut.

Sampling pulls the highest score under a draw y ~ N(0, scale^2 G^-1): score + x'y. Take any arm as `leader`. A rival
beats it under the draw if (x - x_leader)'y exceeds gap = score of the leader - score of the rival, that is, if a
standard normal t exceeds tau = gap / (scale ||x - x_leader||_G^-1). Let H be the set of draws under which this rival
wins against the leader.

*Thinning.* Let every rival propose with a probability `bound` >= P(H), together not more than 1, and then with a t
beyond tau of the right law and the rest of the draw given that t. Such a draw has the density n(y) times that of N(0,
scale^2 G^-1), where n(y) counts the rivals that beat the leader under y. Keep it with probability 1 / n(y): then it
is a draw restricted to those under which somebody beats the leader, and it comes up with exactly their probability.
If nothing was kept, the leader is pulled. So as long as nobody proposes, no draw is made; the round of a proposal
that came to nothing is the leader's.

*Stays.* Sherman and Morrison's formula gives every score and variance after k pulls of the leader, as for LinUCB in
`live`: with u = x' G^-1 x_leader, scores move by u e and variances by -u^2 k / (1 + k q). For the next pulls let e
stay in an interval; on it gap is at least the smaller of its values at the ends, and variances only shrink. That
bounds tau from below until k or e leaves, and the proposals are thinned from that bound to the true tau. The rounds
until the next proposal are geometric; those left over when an interval ends are forgotten and drawn anew, because the
geometric law has no memory and the end depends on rewards alone. The stay makes G^-1 x_leader smaller by 1 + k q; one
pull of another arm takes a known multiple of that arm's G^-1 x from it. So a leader that stays the leader is pointed
at again in O(arms).

*Proposals.* For a normal t beyond tau >= 0, Robert (1995): with alpha = (tau + sqrt(tau^2 + 4)) / 2, its density is
below mass alpha exp(-alpha (t - tau)), mass = exp(1 - alpha^2 / 2) / (alpha sqrt(2 pi)), and t = tau + exponential /
alpha is kept with probability exp(-(t - alpha)^2 / 2). With y = tau^2, (1 + y/512)^-256 is above exp(-y / 2) and .66
(1 + .08 y) / (1 + .8 y) above the rest of the mass: their product, the `bound`, takes two ratios and eight squares,
no root and no exponential.

Where the bounds add up to too much, the draw is made in full, as in the plain loop.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from banditune.contracts import Floats, Slot, rare, scalar, vector
from banditune.policies.lanes import LANES, dims, padded, subtract_outer, wide
from banditune.policies.live import ahead
from banditune.policies.ridge import (
    REFRESH,
    best_score,
    count,
    draw_theta,
    move_arms,
    multiply_arms,
    own_option,
    refresh_ridge,
    ridge_memory,
    sample_scores,
    score_theta,
    start_ridge,
    turn,
    view_ridge,
)
from banditune.streams import aim, exponential, uniform

reward = Slot("reward")

FULL = 0.6
"""Sum of bounds from which on the draw is made in full: a visit costs more than a round of the plain loop."""

SPAN = 2.5
"""Half the length of an interval for e, in standard deviations of what rewards add to it meanwhile."""

PAUSE = 15
"""Rounds drawn in full, at most, before the rivals are bounded again."""

BLURRED = 1e-9
"""Share of the largest variance below which a distance between arms is rounding: a difference of variances that were large
when they were last computed afresh. There too the draw is made in full."""


class Lead(NamedTuple):
    """What is known about the leader, laid out as `lanes` says.

    `turned` is factor x of the leader, `gain` G^-1 x, `shifts` every arm's product with it. `bound` is every rival's
    chance to propose, with zeros behind up to a multiple of four blocks, and `lanes` their sums over the blocks. `theta`
    and `drawn` are for a draw.
    """

    shifts: Floats
    drawn: Floats
    bound: Floats
    lanes: Floats
    turned: Floats
    gain: Floats
    theta: Floats


@scalar
def fours(count):
    """The next multiple of four blocks."""
    return (count + 4 * LANES - 1) // (4 * LANES) * 4 * LANES


def lazy_memory(arms: int, dims: int) -> tuple[int, int]:
    """Floats and integers: ridge regression and the leader's part."""
    return int(ridge_memory(arms, dims) + 2 * padded(arms) + fours(arms) + LANES + 3 * padded(dims)), 0


@scalar
def view_lead(floats, setting):
    """The parts behind ridge regression's, in the order of the record."""
    room = padded(setting.arms)
    a = ridge_memory(setting.arms, setting.dims)
    b = a + 2 * room + fours(setting.arms)
    c = b + LANES
    return Lead(
        floats[a : a + room],
        floats[a + room : a + 2 * room],
        floats[a + 2 * room : b],
        floats[b:c],
        floats[c : c + wide()],
        floats[c + wide() : c + 2 * wide()],
        floats[c + 2 * wide() : c + 3 * wide()],
    )


@scalar
def lowest_gap(gap, apart, low, high):
    """The least that the gap can become while e is between low and high."""
    return gap + min(apart * low, apart * high)


@scalar
def distance(variance, along, apart, q, shrink):
    """(x - x_leader)' G^-1 (x - x_leader) after k pulls of the leader; `shrink` is k / (1 + k q)."""
    return max(variance + q - 2.0 * along - apart * apart * shrink, 1e-130)


@vector
def bound_rivals(state, lead, leader, pulls, low, high, q, scale):
    """Every rival's chance to propose, and their sum.

    The second ratio is .066 + .594 / (1 + .8 y), and both share one division; cutting y makes sure that it can be done.
    """
    score = state.score[leader]
    shrink = pulls / (1.0 + pulls * q)
    unit = 1.0 / (512.0 * scale * scale)
    blurred = BLURRED * state.age[1]
    for rival in range(len(state.scores)):
        along = lead.shifts[rival]
        apart = q - along
        gap = lowest_gap(score - state.scores[rival], apart, low, high)
        spread = distance(state.variance[rival], along, apart, q, shrink)
        square = min(gap * gap * unit, 1e130)
        first = spread + square
        second = spread + 409.6 * square
        share = spread / (first * second)
        ratio = share * second
        ratio *= ratio
        ratio *= ratio
        ratio *= ratio
        ratio *= ratio
        ratio *= ratio
        ratio *= ratio
        ratio *= ratio
        ratio *= ratio
        ratio *= 0.066 + 0.594 * (share * first)
        lead.bound[rival] = ratio if gap > 0.0 and spread > blurred else 1.0
    lead.bound[leader] = 0.0
    return sum_lanes(lead.lanes, lead.bound)


@scalar
def sum_lanes(sums, numbers):
    """Sum numbers over blocks, lane by lane; returns the sum of all."""
    for lane in range(LANES):
        sums[lane] = 0.0
    for four in range(len(numbers) // (4 * LANES)):
        add_four_blocks(sums, numbers[four * 4 * LANES :])
    total = 0.0
    for lane in range(LANES // 4):
        total += sums[lane] + sums[lane + LANES // 4] + (sums[lane + LANES // 2] + sums[lane + 3 * LANES // 4])
    return total


@vector
def add_four_blocks(sums, numbers):
    """Add the numbers of four blocks to some sums."""
    for lane in range(LANES):
        near = numbers[lane] + numbers[lane + LANES]
        far = numbers[lane + 2 * LANES] + numbers[lane + 3 * LANES]
        sums[lane] += near + far


@scalar
def proposer(lead, chance):
    """The rival whose share of the bounds holds a number: first its lane, then its block."""
    lane = 0
    while chance >= lead.lanes[lane] and lane < LANES - 1:
        chance -= lead.lanes[lane]
        lane += 1
    rival = lane
    while chance >= lead.bound[rival] and rival + LANES < len(lead.bound):
        chance -= lead.bound[rival]
        rival += LANES
    return rival


@scalar
def quiet_rounds(chance, most, stream):
    """Rounds before the next proposal: geometric, cut at `most`. Who was cut may draw again: the law has no memory."""
    return int(min(math.log(uniform(stream)) / math.log1p(-max(chance, 1e-300)), most))


@rare
def beats_leader(state, lead, rival, leader, pulls, error, low, high, q, scale, stream):
    """Thin a rival's proposal to the truth: its t if it exceeds the true tau, else -1."""
    if lead.bound[rival] <= 0.0:
        return -1.0  # rounding led beyond the last bound
    along = lead.shifts[rival]
    apart = q - along
    gap = state.score[leader] - state.scores[rival]
    square = distance(state.variance[rival], along, apart, q, pulls / (1.0 + pulls * q))
    spread = scale * math.sqrt(square)
    tau = lowest_gap(gap, apart, low, high) / spread
    alpha = 0.5 * (tau + math.sqrt(tau * tau + 4.0))
    t = tau + exponential(stream) / alpha
    kept = math.exp(1.0 - 0.5 * (alpha * alpha + (t - alpha) * (t - alpha))) / (alpha * math.sqrt(2.0 * math.pi))
    if uniform(stream) * lead.bound[rival] < kept and t > (gap + apart * error) / spread:
        return t
    return -1.0


@rare
def point_lead(state, lead, leader):
    """Take a leader."""
    turn(state, leader, lead.turned, lead.gain)
    multiply_arms(state, lead.gain, lead.shifts)


@scalar
def shrink_root(factor, turned, gain, pulls, q):
    """Learn some pulls of x: from `turned` = factor x and `gain` = factor' turned renew the factor.

    This is Potter's update (1963) of any root of a covariance: the factor need not be triangular here.
    """
    root = math.sqrt(1.0 + pulls * q)
    subtract_outer(factor, turned, gain, pulls / (root * (1.0 + root)))


@rare
def end_stay(state, lead, leader, pulls, total, score, q):
    """Learn the pulls of a stay. G^-1 x_leader becomes smaller by 1 + k q, and factor x_leader by its root."""
    count(state, leader, pulls, total + pulls * score)
    grown = 1.0 + pulls * q
    move_arms(state, lead.gain, lead.shifts, total / grown, pulls / grown)
    shrink_root(state.factor, lead.turned, lead.gain, pulls, q)
    less = 1.0 / grown
    root = math.sqrt(less)
    for j in range(dims()):
        lead.turned[j] *= root
        lead.gain[j] *= less
    for place in range(len(lead.shifts)):
        lead.shifts[place] *= less


@scalar
def above(scores, arm):
    """How many scores are above an arm's."""
    score = scores[arm]
    higher = 0
    for place in range(len(scores)):
        higher += 1 if scores[place] > score else 0
    return higher


@rare
def visit(state, lead, rival, leader, t, scale, stream):
    """The arm to pull after a rival's proposal.

    Draws theta given that (x - x_leader)'(theta - estimate) is t of its standard deviations; the best arm under it is
    taken with probability 1 / (arms that beat the leader), else the leader. Leaves the rival's `turned` and `gain`.
    """
    draw_theta(state, scale, lead.theta, stream)
    turn(state, rival, state.turned, state.gain)
    square = 0.0
    moved = 0.0
    for j in range(dims()):
        apart = state.rows[rival * wide() + j] - state.rows[leader * wide() + j]
        square += apart * (state.gain[j] - lead.gain[j])
        moved += apart * (lead.theta[j] - state.estimate[j])
    square = max(square, 1e-130)
    lacking = (t * scale * math.sqrt(square) - moved) / square
    for j in range(wide()):
        lead.theta[j] += lacking * (state.gain[j] - lead.gain[j])
    score_theta(state, lead.theta, lead.drawn)
    beating = above(lead.drawn, leader)
    if beating <= 1:
        return rival
    if uniform(stream) * beating < 1.0:
        return best_score(lead.drawn)
    return leader


@scalar
def point_again(state, lead, leader, arm):
    """After a pull of an arm: G^-1 x_leader is less by a multiple of what G^-1 x of that arm was, and so is all else."""
    variance = state.shift[arm]
    along = state.shift[leader]
    root = math.sqrt(1.0 + variance)
    turned = along / (root * (1.0 + root))
    share = along / (1.0 + variance)
    for j in range(wide()):
        lead.turned[j] -= turned * state.turned[j]
        lead.gain[j] -= share * state.gain[j]
    for place in range(len(lead.shifts)):
        lead.shifts[place] -= share * state.shifts[place]


@scalar
def advance_lazy_linear(instance, setting, params, agent, rewards, floats, integers, pulls, first, last):
    """Linear Thompson sampling from proposal to proposal; the module's docstring says why this is its law."""
    state = view_ridge(floats, setting)
    lead = view_lead(floats, setting)
    scale = params[0] * own_option(setting, 0)
    positive = max(scale, 1e-100)
    noise = math.sqrt(setting.options[0])
    if first == 0:
        start_ridge(state, setting)
    step = first
    wait = 0
    pause = 0
    leader = -1
    while step < last:
        if state.age[0] >= REFRESH:
            refresh_ridge(state, setting)
            leader = -1
        if wait > 0:
            wait -= 1
            leader = -1
            sample_scores(state, setting, scale, agent)
            best = best_score(state.shift)
            turn(state, best, state.turned, state.gain)
            if not pull_once(instance, state, best, rewards, pulls):
                return False
            step += 1
            continue
        if leader < 0 or above(state.scores, leader) > 0:
            leader = best_score(state.score)
            point_lead(state, lead, leader)
        q = max(lead.shifts[leader], 1e-300)
        score = state.score[leader]
        before = pulls[leader]
        left = last - step
        stayed = 0
        total = 0.0
        error = 0.0
        t = -1.0
        rival = -1
        chance = 0.0
        while stayed < left and t < 0.0:
            coming = ahead(stayed, q)
            until = int(min(stayed + coming, left))
            grown = 1.0 + stayed * q
            width = (SPAN * noise * math.sqrt(coming) + abs(error) * coming * q) / grown
            low = error - width
            high = error + width
            chance = bound_rivals(state, lead, leader, 1.0 * stayed, low, high, q, positive)
            if chance > FULL:
                break
            inside = True
            # The round of a proposal that came to nothing is the leader's.
            refused = 0
            while inside and stayed < until and t < 0.0:
                quiet = min(stayed + refused + quiet_rounds(chance, until - stayed, agent), until)
                while inside and stayed < quiet:
                    aim(rewards, leader, before + stayed)
                    total += reward(instance, leader, before + stayed, 0, rewards) - score
                    stayed += 1
                    grown = 1.0 + stayed * q
                    inside = total > low * grown and total < high * grown
                error = total / (1.0 + stayed * q)
                if inside and stayed < until:
                    rival = proposer(lead, chance * uniform(agent))
                    t = beats_leader(state, lead, rival, leader, stayed, error, low, high, q, positive, agent)
                    refused = 1
        if not math.isfinite(total):
            return False
        if stayed > 0:
            pulls[leader] = before + stayed
            step += stayed
            end_stay(state, lead, leader, 1.0 * stayed, total, score, q)
        if t >= 0.0:
            arm = visit(state, lead, rival, leader, t, positive, agent)
            if arm != rival:
                turn(state, arm, state.turned, state.gain)
            if not pull_once(instance, state, arm, rewards, pulls):
                return False
            point_again(state, lead, leader, arm)
            step += 1
        # Where bounds are in vain, the next rounds are drawn in full: twice as many each time.
        pause = min(2 * pause + 1, PAUSE) if stayed == 0 and chance > FULL else 0
        wait = 1 if chance > FULL and pause == 0 else pause
    return True


@rare
def pull_once(instance, state, arm, rewards, pulls):
    """Pull the arm that `turned` and `gain` belong to and learn what it pays; False where that is not finite."""
    aim(rewards, arm, pulls[arm])
    paid = reward(instance, arm, pulls[arm], 0, rewards)
    pulls[arm] += 1
    multiply_arms(state, state.gain, state.shifts)
    count(state, arm, 1.0, paid)
    shrink = 1.0 / (1.0 + state.shift[arm])
    move_arms(state, state.gain, state.shifts, shrink * (paid - state.score[arm]), shrink)
    shrink_root(state.factor, state.turned, state.gain, 1.0, state.shift[arm])
    return math.isfinite(paid)
