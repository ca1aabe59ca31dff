"""The noise of real rewards around their means: normal, or resampled residuals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.checks import convert_to_array
from banditune.core.distributions import normal
from banditune.core.request_errors import make_argument_error
from banditune.core.scalar import scalar
from banditune.core.streams import draw_block

OPTIONS_HEADER = 3
"""The numbers before the residuals in the options: the noise, the number of rows of residuals, and that in a row."""


MAX_RESIDUALS = 100_000
"""The largest number of residuals of a problem."""


STANDARD_TOLERANCE = 1e-5
"""Residuals are not changed if their means and their root mean square differ from 0 and 1 by less than this."""


@scalar
def draw_gaussian_reward(instance, arm, pull, step, stream):
    """Draw the mean plus Gaussian noise."""
    return instance.means[arm] + instance.options[0] * normal(stream)


@scalar
def draw_residual_reward(instance, arm, pull, step, stream):
    """Draw the mean plus noise times a random residual, from the row of all arms or from the row of the arm."""
    size = int(instance.options[2])
    row = arm if instance.options[1] > 1.0 else 0
    word, _, _, _ = draw_block(stream)
    return (
        instance.means[arm]
        + instance.options[0] * instance.options[OPTIONS_HEADER + row * size + ((word * size) >> 32)]
    )


def make_residuals_field() -> Any:
    """Make the option `residuals`. A problem without them has the same description as before the option existed."""
    return field(default=(), metadata={"described": lambda problem: bool(problem.residuals)}, repr=False)


def select_reward(residuals: Any) -> Callable[..., Any]:
    """Return the scalar function that draws a reward."""
    return draw_residual_reward if residuals else draw_gaussian_reward


def make_reward_options(noise: float, residuals: Any) -> Sequence[float]:
    """Return the numbers that this function reads."""
    if not residuals:
        return (noise,)
    table = np.atleast_2d(np.array(residuals))
    options: Sequence[float] = np.concatenate([[noise, *table.shape], table.ravel()])  # type: ignore[assignment]
    return options


def check_residuals(residuals: Any, arms: int | None) -> tuple[Any, ...]:
    """Check residuals for all arms, or a row for each of `arms` arms, and standardize them.

    Each row is shifted to mean 0, and all together are scaled to root mean square 1. Rows may have different standard
    deviations, which are then those of the arms' rewards relative to each other.
    """
    table = convert_to_array(residuals)
    if not table.size:
        return ()
    allowed_rows = {1, *(() if arms is None else (arms,))}
    if table.ndim > 2 or (table.ndim == 2 and len(table) not in allowed_rows) or table.size > MAX_RESIDUALS:
        each = "" if arms is None else f", or a row for each of the {arms} arms"
        raise make_argument_error(
            "residuals",
            "wrong-shape",
            f"must be a row of numbers for all arms{each}, {MAX_RESIDUALS:,} numbers at most, but got an "
            f"array of shape {table.shape}.",
        )
    rows = standardize_residuals(np.atleast_2d(table))
    return tuple(rows[0].tolist()) if len(rows) == 1 else tuple(map(tuple, rows.tolist()))


def standardize_residuals(table: FloatArray) -> FloatArray:
    """Shift rows to mean 0, and scale all together to mean square 1."""
    if not np.isfinite(table).all() or not np.ptp(table, axis=1).any():
        raise make_argument_error(
            "residuals",
            "out-of-range",
            "must be finite numbers that are not all the same; leave them out for Gaussian noise.",
        )
    centre, size = table.mean(axis=1, keepdims=True), float(np.sqrt((table**2).mean()))
    if (np.abs(centre) < STANDARD_TOLERANCE).all() and abs(size - 1) < STANDARD_TOLERANCE:
        return table
    # Rows are centred twice, so that rows far from 0 keep their digits.
    away = table - centre
    away -= away.mean(axis=1, keepdims=True)
    return np.asarray(away / np.sqrt((away**2).mean()))
