"""The leader of linear Thompson sampling's shortcut, and the rivals' proposals to replace it."""

from __future__ import annotations

import math
from typing import NamedTuple

from banditune.core.arrays import FloatArray
from banditune.core.distributions import exponential
from banditune.core.scalar import noinline, optimize_separately, scalar
from banditune.core.streams import uniform
from banditune.simulation.estimators.ridge_regression import count_ridge_floats
from banditune.simulation.estimators.vector_layout import VECTOR_LANES, pad_dims, pad_to_lanes

ROUNDING_SHARE = 1e-9
"""Share of the largest variance below which a distance between arms is rounding: a difference of variances that were large
when they were last computed afresh. There too the draw is made in full."""


class LeaderState(NamedTuple):
    """What is known about the leader, laid out as `lanes` says.

    `turned` is factor x of the leader, `gain` G^-1 x, `shifts` every arm's product with it. `bound` is every rival's
    chance to propose, with zeros behind up to a multiple of four blocks, and `lanes` their sums over the blocks. `theta`
    and `drawn` are for a draw.
    """

    shifts: FloatArray
    drawn: FloatArray
    bound: FloatArray
    lanes: FloatArray
    turned: FloatArray
    gain: FloatArray
    theta: FloatArray


@scalar
def pad_to_four_blocks(count):
    """The next multiple of four blocks."""
    return (count + 4 * VECTOR_LANES - 1) // (4 * VECTOR_LANES) * 4 * VECTOR_LANES


def count_lints_numbers(arms: int, dims: int) -> tuple[int, int]:
    """Floats and integers: ridge regression and the leader's part."""
    return int(
        count_ridge_floats(arms, dims)
        + 2 * pad_to_lanes(arms)
        + pad_to_four_blocks(arms)
        + VECTOR_LANES
        + 3 * pad_to_lanes(dims)
    ), 0


@scalar
def view_leader(floats, setting):
    """The parts behind ridge regression's, in the order of the record."""
    room = pad_to_lanes(setting.arms)
    a = count_ridge_floats(setting.arms, setting.dims)
    b = a + 2 * room + pad_to_four_blocks(setting.arms)
    c = b + VECTOR_LANES
    return LeaderState(
        floats[a : a + room],
        floats[a + room : a + 2 * room],
        floats[a + 2 * room : b],
        floats[b:c],
        floats[c : c + pad_dims()],
        floats[c + pad_dims() : c + 2 * pad_dims()],
        floats[c + 2 * pad_dims() : c + 3 * pad_dims()],
    )


@scalar
def bound_gap(gap, apart, low, high):
    """The least that the gap can become while e is between low and high."""
    return gap + min(apart * low, apart * high)


@scalar
def compute_squared_distance(variance, along, apart, q, shrink):
    """(x - x_leader)' G^-1 (x - x_leader) after k pulls of the leader; `shrink` is k / (1 + k q)."""
    return max(variance + q - 2.0 * along - apart * apart * shrink, 1e-130)


@optimize_separately
def bound_rivals(state, lead, leader, pulls, low, high, q, scale):
    """Every rival's chance to propose, and their sum.

    The second ratio is .066 + .594 / (1 + .8 y), and both share one division; cutting y makes sure that it can be done.
    """
    score = state.score[leader]
    shrink = pulls / (1.0 + pulls * q)
    unit = 1.0 / (512.0 * scale * scale)
    blurred = ROUNDING_SHARE * state.age[1]
    for rival in range(len(state.scores)):
        along = lead.shifts[rival]
        apart = q - along
        gap = bound_gap(score - state.scores[rival], apart, low, high)
        spread = compute_squared_distance(state.variance[rival], along, apart, q, shrink)
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
    return sum_by_lane(lead.lanes, lead.bound)


@scalar
def sum_by_lane(sums, numbers):
    """Sum numbers over blocks, lane by lane; returns the sum of all."""
    for lane in range(VECTOR_LANES):
        sums[lane] = 0.0
    for four in range(len(numbers) // (4 * VECTOR_LANES)):
        add_four_blocks(sums, numbers[four * 4 * VECTOR_LANES :])
    total = 0.0
    for lane in range(VECTOR_LANES // 4):
        total += (
            sums[lane]
            + sums[lane + VECTOR_LANES // 4]
            + (sums[lane + VECTOR_LANES // 2] + sums[lane + 3 * VECTOR_LANES // 4])
        )
    return total


@optimize_separately
def add_four_blocks(sums, numbers):
    """Add the numbers of four blocks to some sums."""
    for lane in range(VECTOR_LANES):
        near = numbers[lane] + numbers[lane + VECTOR_LANES]
        far = numbers[lane + 2 * VECTOR_LANES] + numbers[lane + 3 * VECTOR_LANES]
        sums[lane] += near + far


@scalar
def find_proposer(lead, chance):
    """The rival whose share of the bounds holds a number: first its lane, then its block."""
    lane = 0
    while chance >= lead.lanes[lane] and lane < VECTOR_LANES - 1:
        chance -= lead.lanes[lane]
        lane += 1
    rival = lane
    while chance >= lead.bound[rival] and rival + VECTOR_LANES < len(lead.bound):
        chance -= lead.bound[rival]
        rival += VECTOR_LANES
    return rival


@scalar
def draw_quiet_rounds(chance, most, stream):
    """Rounds before the next proposal: geometric, cut at `most`. Who was cut may draw again: the law has no memory."""
    return int(min(math.log(uniform(stream)) / math.log1p(-max(chance, 1e-300)), most))


@noinline
def thin_proposal(state, lead, rival, leader, pulls, error, low, high, q, scale, stream):
    """Thin a rival's proposal to the truth: its t if it exceeds the true tau, else -1."""
    if lead.bound[rival] <= 0.0:
        return -1.0  # rounding led beyond the last bound
    along = lead.shifts[rival]
    apart = q - along
    gap = state.score[leader] - state.scores[rival]
    square = compute_squared_distance(state.variance[rival], along, apart, q, pulls / (1.0 + pulls * q))
    spread = scale * math.sqrt(square)
    tau = bound_gap(gap, apart, low, high) / spread
    alpha = 0.5 * (tau + math.sqrt(tau * tau + 4.0))
    t = tau + exponential(stream) / alpha
    kept = math.exp(1.0 - 0.5 * (alpha * alpha + (t - alpha) * (t - alpha))) / (alpha * math.sqrt(2.0 * math.pi))
    if uniform(stream) * lead.bound[rival] < kept and t > (gap + apart * error) / spread:
        return t
    return -1.0
