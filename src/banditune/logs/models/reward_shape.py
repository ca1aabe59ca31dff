"""The distribution of real rewards: residuals as options of a problem, and their excess kurtosis."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.logs.residual_sample import ResidualSample

if TYPE_CHECKING:
    from banditune.logs.campaign_logs import Logs


MAX_PROBLEM_RESIDUALS = 2048
"""The largest number of residuals in a problem. Of more, neighbours are averaged, so that tails keep their weight."""


LONG_CELL_PULLS = 20
"""The fewest pulls of a long cell. In a short cell residuals vary less than rewards, because each reward is in the mean."""


MIN_SHAPE_RESIDUALS = 100
"""The fewest residuals from which a distribution is estimated."""


RESIDUAL_DIGITS = 6
"""The number of digits of a residual in a problem."""


def pool_residuals(logs: Logs) -> tuple[float, ...]:
    """Pool the residuals of all rewards for a problem; empty if there are too few."""
    residuals = _select_residuals(logs)
    return (
        ()
        if residuals is None
        else _round_residuals(
            condense_residuals(residuals.value, min(len(residuals.value), MAX_PROBLEM_RESIDUALS))[None]
        )[0]
    )


def split_residuals_by_arm(logs: Logs) -> tuple[tuple[float, ...], ...]:
    """Make a row of residuals for each arm's name. Arms with few residuals have those of all arms."""
    residuals = _select_residuals(logs)
    size = 2 * MAX_PROBLEM_RESIDUALS // len(logs.arms)
    if residuals is None or size < MIN_SHAPE_RESIDUALS:
        return ()
    arm = logs.arm[residuals.cell]
    rows = [residuals.value[arm == arm_index] for arm_index in range(len(logs.arms))]
    return _round_residuals(
        np.stack(
            [condense_residuals(row if len(row) >= MIN_SHAPE_RESIDUALS else residuals.value, size) for row in rows]
        )
    )


def _select_residuals(logs: Logs) -> ResidualSample | None:
    """Select the residuals to use: those of long cells if they are at least half, else all; None if there are too few."""
    residual_sample = logs.residuals
    if residual_sample is None:
        return None
    long = logs.pulls[residual_sample.cell] >= LONG_CELL_PULLS
    if 2 * np.count_nonzero(long) >= len(long):
        residual_sample = ResidualSample(residual_sample.cell[long], residual_sample.value[long])
    return (
        residual_sample
        if len(residual_sample.value) >= MIN_SHAPE_RESIDUALS and np.ptp(residual_sample.value) > 0
        else None
    )


def condense_residuals(values: FloatArray, size: int) -> FloatArray:
    """Reduce residuals to this number of values by means of neighbours; if there are fewer, repeat some."""
    order = np.sort(values)
    if len(order) <= size:
        return np.asarray(order[np.arange(size) * len(order) // size])
    starts = np.arange(size) * len(order) // size
    return np.asarray(np.add.reduceat(order, starts) / np.diff(starts, append=len(order)))


def _round_residuals(table: FloatArray) -> tuple[tuple[float, ...], ...]:
    """Round rows, with mean 0 and joint mean square 1, to few digits, so that files are short and readable."""
    away = table - table.mean(axis=1, keepdims=True)
    away /= math.sqrt(float((away**2).mean()))
    return tuple(tuple(float(f"{value:.{RESIDUAL_DIGITS}g}") for value in row) for row in away.tolist())


def compute_excess_kurtosis(logs: Logs) -> float:
    """Compute the excess kurtosis of rewards, 0 for normal ones; not below -1, where squares hardly vary."""
    residual_sample = _select_residuals(logs)
    if residual_sample is None:
        return 0.0
    square = residual_sample.value**2
    return max(float((square**2).mean() / square.mean() ** 2) - 3.0, -1.0)


def describe_reward_shape(logs: Logs, used: bool) -> str:
    """Describe the distribution of real rewards in the fitted problem."""
    if logs.residuals is None:
        return (
            "the logs have only sums, so rewards are assumed to be Gaussian around their means; from logs with a row per "
            "decision their distribution is estimated"
        )
    if not used:
        return (
            f"{len(logs.residuals.value)} rewards of arms that were pulled twice or more are too few to estimate the "
            "distribution of rewards, so they are assumed to be Gaussian around their means"
        )
    values = _select_residuals(logs).value  # type: ignore[union-attr]
    skewness = float((values**3).mean() / (values**2).mean() ** 1.5)
    return (
        f"rewards are drawn around their means from {len(values):,} residuals of the logs, with skewness {skewness:.2g} "
        f"and excess kurtosis {compute_excess_kurtosis(logs):.2g} (0 and 0 if Gaussian)"
    )
