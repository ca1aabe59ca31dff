"""The layout of the registers and the shared memory of a warp that simulates UCB-GLM or GLM-TSL."""

from __future__ import annotations

from typing import Any, NamedTuple

from banditune.core.scalar import scalar
from banditune.simulation.estimators.vector_layout import dims
from banditune.simulation.gpu.warp_primitives import count_arms_per_lane, count_lanes, get_lane

SCORE, HESSIAN_VARIANCE, GRAM_VARIANCE, WEIGHT, TERM, FIRST_TERM, SERIES_SUM, HESSIAN_COVARIANCE, GRAM_COVARIANCE = (
    range(9)
)


ARM_FIELDS = 9
"""Positions of numbers in the registers of a lane for each of its arms, behind the d features.

SCORE is x'theta, HESSIAN_VARIANCE x' H^-1 x, GRAM_VARIANCE x' G^-1 x (UCB-GLM only), WEIGHT a weight or an index.
FIRST_TERM is the draw x'R z, TERM the last term of its series, SERIES_SUM their sum. The covariances are x' H^-1
x_leader and x' G^-1 x_leader.
"""


STREAK_PULLS, STREAK_TOTAL, LOW, HIGH, UNTIL, INTERVAL_PULLS, LEADER, NEXT_NORMAL = range(8)


LANE_SCALARS = 8
"""Positions of numbers in the registers of a lane behind those of its arms. All except LOW and HIGH are equal in all lanes.

They are the pulls m of the streak and their total reward; an interval for e and the m at which it ends; the pulls of
the next interval; the leader; the position of the next normals.
"""


(
    MODE_LOST,
    PULL_COUNT,
    LONGEST_FEATURE,
    PULLED_DRIFT,
    AGE,
    LEADER_CHANCE,
    LEADER_SCORE,
    LEADER_VARIANCE,
    LEADER_SLOPE,
    Q,
    S,
    IDENTITY_PRIOR,
) = range(12)


WARP_SCALARS = 12
"""Positions of numbers at the beginning of the shared memory.

They are a flag for a failed search of the mode, all pulls, the largest |x|, the drift of the pulled arm, and the pulls
since G^-1 was rebuilt. The next are the leader's probability under the model, score, x' G^-1 x and slope w at the start of
the streak, q = x' G^-1 x and s = x' H^-1 x. The last is a flag for a prior whose covariance is I.
"""


PULLS, TOTAL, CHANCE, SLOPE, DRIFT, SLOPE_CHANGE, CURVATURE = range(7)


ARM_COLUMNS = 7
"""Positions of numbers in the shared memory for each arm, behind the matrices.

They are its pulls and total reward; its last computed probability and slope w; the change D of its score
since then (DRIFT); the relative change a of its slope since H was built (SLOPE_CHANGE); and pulls times w (CURVATURE).
Usually only the lane of an arm reads or writes them.
"""


PULLED_FEATURES, PRODUCT, ARM_SUMS, NEWTON_STEP, ESTIMATE = 0, 1, 3, 4, 5


WARP_VECTORS = 6
"""Positions of vectors in the shared memory behind the scalars: the pulled arm's features, H^-1 x, G^-1 x, sums, a Newton
step, and theta.
"""


NORMALS_PER_DRAW = 64
"""The number of normals that are drawn together, for one or more steps."""


class LogisticWarpState(NamedTuple):
    """The registers of a lane and the shared memory of a warp."""

    registers: Any
    shared: Any


def count_logistic_registers(share: int, dims: int) -> int:
    """Count the numbers of a lane. The compiler assigns no registers to those that are never used."""
    return share * (dims + ARM_FIELDS) + dims + LANE_SCALARS


def count_logistic_shared(arms: int, dims: int) -> int:
    """Count the numbers that a warp shares. Normals are drawn in pairs, so there may be one more than needed."""
    matrix_space = max(2 * dims * dims, dims * dims + int(count_logistic_normals(dims)) + 1)
    return WARP_SCALARS + WARP_VECTORS * dims + matrix_space + ARM_COLUMNS * (-(-arms // 32) * 32)


@scalar
def count_logistic_normals(dims):
    """Count the normals that are drawn together."""
    return max(1, NORMALS_PER_DRAW // dims) * dims


@scalar
def view_logistic_warp(registers, shared, setting):
    """Combine both memories."""
    return LogisticWarpState(registers, shared)


@scalar
def count_lane_rows():
    """Count the rows of both matrices for each lane."""
    return (2 * dims() + count_lanes() - 1) // count_lanes()


@scalar
def count_lane_dims():
    """Count the dimensions of a vector for each lane."""
    return (dims() + count_lanes() - 1) // count_lanes()


@scalar
def locate_field(number, i):
    """Locate a field of a lane's i-th arm in its registers."""
    return count_arms_per_lane() * (dims() + number) + i


@scalar
def locate_scratch():
    """Locate a scratch vector in the registers of a lane."""
    return count_arms_per_lane() * (dims() + ARM_FIELDS)


@scalar
def locate_lane_scalar(number):
    """Locate a scalar of a lane in its registers."""
    return locate_scratch() + dims() + number


@scalar
def locate_vector(number):
    """Locate a vector in the shared memory."""
    return WARP_SCALARS + number * dims()


@scalar
def locate_matrix(first):
    """Locate H^-1 (`first` = 0) or G^-1 (`first` = dims) in the shared memory."""
    return locate_vector(WARP_VECTORS) + first * dims()


@scalar
def locate_normals():
    """Locate the normals of GLM-TSL in the shared memory. They replace G^-1, which GLM-TSL does not need."""
    return locate_matrix(dims())


@scalar
def locate_lane_column(number, i):
    """Locate a number of a lane's i-th arm in the shared memory."""
    return locate_arm_column(number, get_lane() + i * count_lanes())


@scalar
def locate_arm_column(number, arm):
    """Locate a number of an arm in the shared memory."""
    matrix_space = max(2 * dims() * dims(), dims() * dims() + count_logistic_normals(dims()) + 1)
    return locate_vector(WARP_VECTORS) + matrix_space + number * count_arms_per_lane() * count_lanes() + arm
