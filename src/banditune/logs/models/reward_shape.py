"""The shape of real rewards: residuals as a problem takes them, and their excess kurtosis."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.logs.residual_sample import ResidualSample

if TYPE_CHECKING:
    from banditune.logs.campaign_logs import Logs


MAX_PROBLEM_RESIDUALS = 2048
"""Residuals in a problem, at most. Where there are more, neighbours are averaged, which leaves tails their share."""


LONG_CELL_PULLS = 20
"""Residuals of shorter cells are more alike than rewards are, as each reward moves the mean that it is compared with."""


MIN_SHAPE_RESIDUALS = 100
"""Fewer residuals do not tell a shape."""


RESIDUAL_DIGITS = 6
"""Digits that a problem keeps of a residual."""


def pool_residuals(logs: Logs) -> tuple[float, ...]:
    """The shape of all rewards, as a problem takes it; empty where it is not known."""
    residuals = _select_residuals(logs)
    return (
        ()
        if residuals is None
        else _round_residuals(
            condense_residuals(residuals.value, min(len(residuals.value), MAX_PROBLEM_RESIDUALS))[None]
        )[0]
    )


def split_residuals_by_arm(logs: Logs) -> tuple[tuple[float, ...], ...]:
    """A row of residuals for each arm's name, whose sizes may differ; arms with few of them have those of all."""
    residuals = _select_residuals(logs)
    size = 2 * MAX_PROBLEM_RESIDUALS // len(logs.arms)
    if residuals is None or size < MIN_SHAPE_RESIDUALS:
        return ()
    arm = logs.arm[residuals.cell]
    rows = [residuals.value[arm == place] for place in range(len(logs.arms))]
    return _round_residuals(
        np.stack(
            [condense_residuals(row if len(row) >= MIN_SHAPE_RESIDUALS else residuals.value, size) for row in rows]
        )
    )


def _select_residuals(logs: Logs) -> ResidualSample | None:
    """The residuals to use: of long cells, where these have half of them; None where there are too few."""
    found = logs.residuals
    if found is None:
        return None
    long = logs.pulls[found.cell] >= LONG_CELL_PULLS
    if 2 * np.count_nonzero(long) >= len(long):
        found = ResidualSample(found.cell[long], found.value[long])
    return found if len(found.value) >= MIN_SHAPE_RESIDUALS and np.ptp(found.value) > 0 else None


def condense_residuals(values: FloatArray, size: int) -> FloatArray:
    """As many values for these: means of neighbours, or some twice."""
    order = np.sort(values)
    if len(order) <= size:
        return np.asarray(order[np.arange(size) * len(order) // size])
    starts = np.arange(size) * len(order) // size
    return np.asarray(np.add.reduceat(order, starts) / np.diff(starts, append=len(order)))


def _round_residuals(table: FloatArray) -> tuple[tuple[float, ...], ...]:
    """Rows with mean 0 and together with mean square 1, in few digits: files are read by people too."""
    away = table - table.mean(axis=1, keepdims=True)
    away /= math.sqrt(float((away**2).mean()))
    return tuple(tuple(float(f"{value:.{RESIDUAL_DIGITS}g}") for value in row) for row in away.tolist())


def compute_excess_kurtosis(logs: Logs) -> float:
    """How much heavier the rewards' tails are than those of a normal law, 0; not below -1, where squares hardly vary."""
    found = _select_residuals(logs)
    if found is None:
        return 0.0
    square = found.value**2
    return max(float((square**2).mean() / square.mean() ** 2) - 3.0, -1.0)


def describe_reward_shape(logs: Logs, used: bool) -> str:
    """A sentence on the shape that real rewards have in the fitted problem."""
    if logs.residuals is None:
        return (
            "the logs hold sums only, so rewards are assumed to be Gaussian around their means; logs with a row per "
            "decision keep their shape"
        )
    if not used:
        return (
            f"{len(logs.residuals.value)} rewards of arms that were pulled twice or more are too few to tell the shape of "
            "rewards, so they are assumed to be Gaussian around their means"
        )
    values = _select_residuals(logs).value  # type: ignore[union-attr]
    skewness = float((values**3).mean() / (values**2).mean() ** 1.5)
    return (
        f"rewards are drawn around their means from {len(values):,} residuals of the logs, with skewness {skewness:.2g} "
        f"and excess kurtosis {compute_excess_kurtosis(logs):.2g} (0 and 0 if Gaussian)"
    )
