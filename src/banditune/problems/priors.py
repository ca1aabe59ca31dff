"""Checks and draws that problems share."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from banditune.contracts import BadRequest, Floats


def check_arms(arms: Any) -> int:
    """A number of arms: a whole number, 2 or more."""
    if isinstance(arms, bool) or not isinstance(arms, int | np.integer) or arms < 2:
        raise BadRequest(f"`arms >= 2` must hold, as a whole number, but got arms={arms!r}.")
    if arms > 100_000:
        raise BadRequest(f"`arms <= 100000` must hold, but got arms={arms}.")
    return int(arms)


def check_names(names: Any, arms: int) -> tuple[str, ...]:
    """Arm names: none, or a distinct one for each arm."""
    words = tuple(str(name) for name in names) if isinstance(names, list | tuple) else (str(names),)
    if words and (len(words) != arms or len(set(words)) != arms or not all(words)):
        raise BadRequest(f"`names` must hold {arms} different names, one per arm, but got {list(words)}.")
    return words


def pairs(prior: Any, arms: int, *, first: str, second: str, first_positive: bool) -> tuple[tuple[float, float], ...]:
    """A prior as one pair for all arms (a tuple of length 1) or one pair per arm."""
    try:
        table = np.array(prior, dtype=float)
    except (TypeError, ValueError):
        table = np.empty(0)
    if table.shape == (2,):
        table = table[None, :]
    if table.ndim != 2 or table.shape[1] != 2 or table.shape[0] not in (1, arms):
        raise BadRequest(
            f"`prior` must be a pair ({first}, {second}) or {arms} such pairs, one per arm, but got {prior!r}."
        )
    smallest = table.min(axis=0)
    if not np.isfinite(table).all() or smallest[1] <= 0 or (first_positive and smallest[0] <= 0):
        what = f"`{first} > 0` and `{second} > 0`" if first_positive else f"a finite {first} and `{second} > 0`"
        raise BadRequest(f"{what} must hold for the prior, but got {prior!r}.")
    return tuple((float(a), float(b)) for a, b in table)


def check_number(name: str, value: Any, *, above: float = -math.inf) -> float:
    """A finite number above a bound."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not math.isfinite(value):
        raise BadRequest(f"`{name}` must be a finite number, but got {value!r}.")
    if not value > above:
        raise BadRequest(f"`{name} > {above:g}` must hold, but got {name}={value!r}.")
    return float(value)


def columns(prior: tuple[tuple[float, float], ...]) -> tuple[Floats, Floats]:
    """The prior's two numbers as rows that broadcast over arms."""
    table = np.array(prior)
    return table[:, 0], table[:, 1]
