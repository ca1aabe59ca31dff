"""The shortcut of linear Thompson sampling: the leader, and rivals that propose to replace it."""

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
"""The share of the largest variance below which a distance between arms is a rounding error.

Such a distance is a difference of variances that were large when they were last recomputed. In this case the draw is made
without the bound.
"""


class LeaderState(NamedTuple):
    """The data of the leader, in the layout of `vector_layout`.

    `whitened` is factor x of the leader, `gain` G^-1 x, `padded_arm_values` every arm's product with it.
    `proposal_bound` are the bounds of every rival's probability of a proposal, with zeros up to a multiple of four blocks.
    `lane_sums` are their sums over the blocks. `theta` and `sampled_score` are for a draw.
    """

    padded_arm_values: FloatArray
    sampled_score: FloatArray
    proposal_bound: FloatArray
    lane_sums: FloatArray
    whitened: FloatArray
    gain: FloatArray
    theta: FloatArray


@scalar
def pad_to_four_blocks(count):
    """Round up to a multiple of four blocks."""
    return (count + 4 * VECTOR_LANES - 1) // (4 * VECTOR_LANES) * 4 * VECTOR_LANES


def count_lints_numbers(arms: int, dims: int, horizon: int) -> tuple[int, int]:
    """Return the number of floats and integers of ridge regression and the leader."""
    return int(
        count_ridge_floats(arms, dims)
        + 2 * pad_to_lanes(arms)
        + pad_to_four_blocks(arms)
        + VECTOR_LANES
        + 3 * pad_to_lanes(dims)
    ), 0


@scalar
def view_leader(floats, setting):
    """Split the memory behind ridge regression's, in the order of the record."""
    padded_arms = pad_to_lanes(setting.arms)
    a = count_ridge_floats(setting.arms, setting.dims)
    b = a + 2 * padded_arms + pad_to_four_blocks(setting.arms)
    c = b + VECTOR_LANES
    return LeaderState(
        floats[a : a + padded_arms],
        floats[a + padded_arms : a + 2 * padded_arms],
        floats[a + 2 * padded_arms : b],
        floats[b:c],
        floats[c : c + pad_dims()],
        floats[c + pad_dims() : c + 2 * pad_dims()],
        floats[c + 2 * pad_dims() : c + 3 * pad_dims()],
    )


@scalar
def bound_gap(gap, contrast, low, high):
    """Return the smallest gap while e is between low and high."""
    return gap + min(contrast * low, contrast * high)


@scalar
def compute_squared_distance(variance, covariance, contrast, q, shrink):
    """Compute (x - x_leader)' G^-1 (x - x_leader) after k pulls of the leader; `shrink` is k / (1 + k q)."""
    return max(variance + q - 2.0 * covariance - contrast * contrast * shrink, 1e-130)


@optimize_separately
def bound_rivals(state, leader_state, leader, pulls, low, high, q, scale):
    """Compute the bound of every rival's probability of a proposal, and the sum of all bounds.

    The second ratio is .066 + .594 / (1 + .8 y), and both ratios share one division. y is limited so that the division is
    possible.
    """
    score = state.score[leader]
    shrink = pulls / (1.0 + pulls * q)
    unit = 1.0 / (512.0 * scale * scale)
    rounding = ROUNDING_SHARE * state.age[1]
    for rival in range(len(state.padded_score)):
        covariance = leader_state.padded_arm_values[rival]
        contrast = q - covariance
        gap = bound_gap(score - state.padded_score[rival], contrast, low, high)
        spread = compute_squared_distance(state.variance[rival], covariance, contrast, q, shrink)
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
        leader_state.proposal_bound[rival] = ratio if gap > 0.0 and spread > rounding else 1.0
    leader_state.proposal_bound[leader] = 0.0
    return sum_by_lane(leader_state.lane_sums, leader_state.proposal_bound)


@scalar
def sum_by_lane(sums, numbers):
    """Sum numbers over blocks, lane by lane. Return the total."""
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
    """Add the numbers of four blocks to sums."""
    for lane in range(VECTOR_LANES):
        near = numbers[lane] + numbers[lane + VECTOR_LANES]
        far = numbers[lane + 2 * VECTOR_LANES] + numbers[lane + 3 * VECTOR_LANES]
        sums[lane] += near + far


@scalar
def find_proposer(leader_state, chance):
    """Find the rival whose interval of the cumulated bounds contains a number: first its lane, then its block."""
    lane = 0
    while chance >= leader_state.lane_sums[lane] and lane < VECTOR_LANES - 1:
        chance -= leader_state.lane_sums[lane]
        lane += 1
    rival = lane
    while chance >= leader_state.proposal_bound[rival] and rival + VECTOR_LANES < len(leader_state.proposal_bound):
        chance -= leader_state.proposal_bound[rival]
        rival += VECTOR_LANES
    return rival


@scalar
def draw_rounds_until_proposal(chance, most, stream):
    """Draw the number of rounds before the next proposal, a geometric number that is limited to `most`.

    If it is limited, a new draw is valid, because the geometric distribution is memoryless.
    """
    return int(min(math.log(uniform(stream)) / math.log1p(-max(chance, 1e-300)), most))


@noinline
def thin_proposal(state, leader_state, rival, leader, pulls, error, low, high, q, scale, stream):
    """Thin a rival's proposal. Return its t if it exceeds the true tau, else -1."""
    if leader_state.proposal_bound[rival] <= 0.0:
        return -1.0  # because of rounding, the point is beyond the last bound
    covariance = leader_state.padded_arm_values[rival]
    contrast = q - covariance
    gap = state.score[leader] - state.padded_score[rival]
    square = compute_squared_distance(state.variance[rival], covariance, contrast, q, pulls / (1.0 + pulls * q))
    spread = scale * math.sqrt(square)
    tau = bound_gap(gap, contrast, low, high) / spread
    alpha = 0.5 * (tau + math.sqrt(tau * tau + 4.0))
    t = tau + exponential(stream) / alpha
    accept_chance = math.exp(1.0 - 0.5 * (alpha * alpha + (t - alpha) * (t - alpha))) / (
        alpha * math.sqrt(2.0 * math.pi)
    )
    if uniform(stream) * leader_state.proposal_bound[rival] < accept_chance and t > (gap + contrast * error) / spread:
        return t
    return -1.0
