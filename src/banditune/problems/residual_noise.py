"""The law of real rewards around their means: normal, or that of a sample of residuals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.checks import convert_to_array
from banditune.core.distributions import normal
from banditune.core.errors import InvalidRequest
from banditune.core.scalar import scalar
from banditune.core.streams import draw_block

OPTIONS_HEADER = 3
"""Numbers before the residuals in the options: the noise, how many rows of residuals, and how many in a row."""


MAX_RESIDUALS = 100_000
"""Residuals of a problem, at most."""


STANDARD_TOLERANCE = 1e-5
"""Residuals are taken as they are where their means, and the size of all, are so close to 0 and 1."""


@scalar
def draw_gaussian_reward(instance, arm, pull, step, stream):
    """The mean plus Gaussian noise."""
    return instance.means[arm] + instance.options[0] * normal(stream)


@scalar
def draw_residual_reward(instance, arm, pull, step, stream):
    """The mean plus the noise times a residual, of all or of the arm's own, each equally likely."""
    size = int(instance.options[2])
    row = arm if instance.options[1] > 1.0 else 0
    word, _, _, _ = draw_block(stream)
    return (
        instance.means[arm]
        + instance.options[0] * instance.options[OPTIONS_HEADER + row * size + ((word * size) >> 32)]
    )


def make_residuals_field() -> Any:
    """The option `make_residuals_field`; a problem without them is described as before there was the option."""
    return field(default=(), metadata={"told": lambda problem: bool(problem.residuals)}, repr=False)


def select_reward(residuals: Any) -> Callable[..., Any]:
    """The function that draws a reward."""
    return draw_residual_reward if residuals else draw_gaussian_reward


def make_reward_options(noise: float, residuals: Any) -> Sequence[float]:
    """What that function reads."""
    if not residuals:
        return (noise,)
    table = np.atleast_2d(np.array(residuals))
    found: Sequence[float] = np.concatenate([[noise, *table.shape], table.ravel()])  # type: ignore[assignment]
    return found


def check_residuals(told: Any, arms: int | None) -> tuple[Any, ...]:
    """Residuals for all arms, or a row for each of so many arms; each row has mean 0, and all together have size 1.

    Only the shape of what is given counts: it is shifted and scaled unless it is so already. Rows may differ
    in their spread, which is then the spread of the arm's rewards beside that of all.
    """
    table = convert_to_array(told)
    if not table.size:
        return ()
    rows = {1, *(() if arms is None else (arms,))}
    if table.ndim > 2 or (table.ndim == 2 and len(table) not in rows) or table.size > MAX_RESIDUALS:
        each = "" if arms is None else f", or a row for each of the {arms} arms"
        raise InvalidRequest(
            f"`residuals` must be a row of numbers for all arms{each}, {MAX_RESIDUALS:,} numbers at most, but got an array of shape "
            f"{table.shape}."
        )
    found = standardize_residuals(np.atleast_2d(table))
    return tuple(found[0].tolist()) if len(found) == 1 else tuple(map(tuple, found.tolist()))


def standardize_residuals(table: FloatArray) -> FloatArray:
    """Rows with mean 0, together with mean square 1."""
    if not np.isfinite(table).all() or not np.ptp(table, axis=1).any():
        raise InvalidRequest(
            "`residuals` must be finite numbers that are not all the same; leave them out for Gaussian noise."
        )
    centre, size = table.mean(axis=1, keepdims=True), float(np.sqrt((table**2).mean()))
    if (np.abs(centre) < STANDARD_TOLERANCE).all() and abs(size - 1) < STANDARD_TOLERANCE:
        return table
    # Twice, so that rows far from 0 lose no digits.
    away = table - centre
    away -= away.mean(axis=1, keepdims=True)
    return np.asarray(away / np.sqrt((away**2).mean()))
