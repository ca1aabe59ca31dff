"""Where a warp that plays UCB-GLM or GLM-TSL keeps its numbers, in registers and in shared memory."""

from __future__ import annotations

from typing import Any, NamedTuple

from banditune.core.scalar import scalar
from banditune.simulation.estimators.vector_layout import dims
from banditune.simulation.gpu.warp_primitives import count_arms_per_lane, count_lanes, get_lane

SCORE, SPREAD, WIDTH, WEIGHT, TERM, FIRST, DRAWN, RISE, NARROWING = range(9)


ARM_FIELDS = 9
"""What a thread holds for each of its arms, behind d numbers: x'theta; x' H^-1 x; for UCB-GLM x' G^-1 x; room for a
weight; of a draw x'R z, the last term of the series and its sum; in a stay v and u of the module's docstring."""


STAYED, PAID, LOW, HIGH, UNTIL, PULLS_AHEAD, LEADER, AT = range(8)


LANE_SCALARS = 8
"""What a thread holds behind that, the same as all others but for LOW and HIGH: m and what the m pulls paid; an interval
for e and the m at which it ends; the length of the next; the arm of the stay; the place of the next normals."""


LOST, COUNT, LONGEST, MOVE, AGE, BASE, LEAD_SCORE, LEAD_WIDTH, LEAD_SLOPE, Q, S, PLAIN = range(12)


WARP_SCALARS = 12
"""What the team keeps first: whether the mode was lost, pulls in all, the largest |x|, D of the arm that is pulled, pulls
since G^-1 was built; of a stay the chance that the model gave its arm, the arm's score, x' G^-1 x and w, all when it began,
and q and s of the module's docstring; whether the prior's covariance is I."""


PULLS, TOTAL, CHANCE, SLOPE, DRIFT, STALE, HEAVY = range(7)


ARM_COLUMNS = 7
"""What the team keeps for each arm, behind matrices: its pulls, what they paid, the chance at the last look, w, D, a, and
pulls times w. Mostly only the arm's own thread reads or writes them."""


SHOWN, PRODUCT, SUMS, MOVED, ESTIMATE = 0, 1, 3, 4, 5


WARP_VECTORS = 6
"""Vectors of the team behind the scalars: the pulled arm's numbers, H^-1 x and G^-1 x, sums over arms, a step, theta."""


NORMALS_PER_DRAW = 64
"""Normals drawn at once, or the next multiple of a step's."""


class LogisticWarpState(NamedTuple):
    """A team's memory."""

    registers: Any
    shared: Any


def count_logistic_registers(share: int, dims: int) -> int:
    """Numbers of a thread; what is never used takes no registers."""
    return share * (dims + ARM_FIELDS) + dims + LANE_SCALARS


def count_logistic_shared(arms: int, dims: int) -> int:
    """Numbers of a team; normals come in pairs, so there may be one more than needed."""
    room = max(2 * dims * dims, dims * dims + int(count_logistic_normals(dims)) + 1)
    return WARP_SCALARS + WARP_VECTORS * dims + room + ARM_COLUMNS * (-(-arms // 32) * 32)


@scalar
def count_logistic_normals(dims):
    """Normals of the steps that are drawn together."""
    return max(1, NORMALS_PER_DRAW // dims) * dims


@scalar
def view_logistic_warp(held, common, setting):
    """Both memories."""
    return LogisticWarpState(held, common)


@scalar
def count_lane_rows():
    """Rows of the two matrices that each thread takes."""
    return (2 * dims() + count_lanes() - 1) // count_lanes()


@scalar
def count_lane_dims():
    """Dimensions of a vector that each thread takes."""
    return (dims() + count_lanes() - 1) // count_lanes()


@scalar
def locate_field(number, i):
    """Where a thread holds a field of its i-th arm."""
    return count_arms_per_lane() * (dims() + number) + i


@scalar
def locate_scratch():
    """Where a thread has room for a vector."""
    return count_arms_per_lane() * (dims() + ARM_FIELDS)


@scalar
def locate_lane_scalar(number):
    """Where a thread holds a number of its own."""
    return locate_scratch() + dims() + number


@scalar
def locate_vector(number):
    """Where the team keeps a vector."""
    return WARP_SCALARS + number * dims()


@scalar
def locate_matrix(first):
    """Where the team keeps H^-1, with `first` = 0, or G^-1, with `first` = dims."""
    return locate_vector(WARP_VECTORS) + first * dims()


@scalar
def locate_normals():
    """Where a sampling team keeps normals: in the place of G^-1."""
    return locate_matrix(dims())


@scalar
def locate_lane_column(number, i):
    """Where the team keeps a number of a thread's i-th arm."""
    return locate_arm_column(number, get_lane() + i * count_lanes())


@scalar
def locate_arm_column(number, arm):
    """Where the team keeps a number of an arm."""
    room = max(2 * dims() * dims(), dims() * dims() + count_logistic_normals(dims()) + 1)
    return locate_vector(WARP_VECTORS) + room + number * count_arms_per_lane() * count_lanes() + arm
