"""Parameters that can be tuned, and their ranges for one number of arms and one horizon."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real

import numpy as np

from banditune.core.errors import InvalidRequest


@dataclass(frozen=True)
class Range:
    """A parameter's bounds, resolved for one number of arms and one horizon.

    A search stays between `low` and `high`. Values may be played between `least` and `most`.
    """

    name: str
    low: float
    high: float
    theory: float
    integer: bool
    scale: str
    least: float = -math.inf
    most: float = math.inf

    def clip_rounding(self, value: float, low: float, high: float) -> float:
        """An end that was missed by rounding only."""
        return clip_rounding_error(value, low, high, ROUNDING_TOLERANCE * max(abs(self.low), abs(self.high)))

    def at(self, unit: float) -> float:
        """The value at a point of the unit interval."""
        if self.scale == "log":
            value = math.exp(math.log(self.low) + unit * (math.log(self.high) - math.log(self.low)))
        else:
            value = self.low + unit * (self.high - self.low)
        return self.within(value)

    def within(self, value: float) -> float:
        """The nearest value of the range that the parameter can have."""
        value = min(max(value, self.low), self.high)
        return float(min(max(round(value), math.ceil(self.low)), math.floor(self.high))) if self.integer else value

    def nearest(self, value: float) -> float:
        """The nearest value that the parameter can have: one of the range for a value within it."""
        if self.low <= value <= self.high:
            return self.within(value)
        return float(round(value)) if self.integer else value


@dataclass(frozen=True)
class Parameter:
    """A tunable number: bounds and theory's value are numbers, or functions of (arms, horizon).

    `low` and `high` are the range that is usually searched; a request may give another one. `least` and `most` are hard
    limits: beyond them the parameter has no meaning, as a probability has none above 1.
    Tuners search the unit interval; `at` maps it to values, evenly in the logarithm where the scale is "log".
    Integer parameters are rounded where they are used, so any real value in the range may be asked for.
    """

    name: str
    low: float | Callable[[int, int], float]
    high: float | Callable[[int, int], float]
    theory: float | Callable[[int, int], float]
    integer: bool = False
    scale: str = "linear"
    least: float = -math.inf
    most: float = math.inf

    def __post_init__(self) -> None:
        if self.scale not in ("linear", "log"):
            raise InvalidRequest(f"`scale` must be 'linear' or 'log', but got {self.scale!r}.")
        for name in ("low", "high", "theory"):
            bound = getattr(self, name)
            if not callable(bound) and not isinstance(bound, Real):
                raise InvalidRequest(
                    f"`{name}` of the parameter {self.name!r} must be a number or a function of (arms, horizon), but got "
                    f"{bound!r}."
                )

    def within(
        self,
        arms: int,
        horizon: int,
        ends: tuple[float, float] | None = None,
        limits: tuple[float, float] = (-math.inf, math.inf),
    ) -> Range:
        """The parameter's range for this many arms and this horizon, or a range with these `ends` instead.

        `limits` are the policy's own, beside the parameter's `least` and `most`.
        """
        theory = self._bound("theory", arms, horizon)
        low, high = ends or (self._bound("low", arms, horizon), self._bound("high", arms, horizon))
        if not (math.isfinite(low) and math.isfinite(high)):
            raise InvalidRequest(
                f"the bounds of the parameter {self.name!r} must be finite numbers, but its range is [{low:g}, {high:g}] "
                f"with arms={arms} and horizon={horizon}."
            )
        if not low < high:
            raise InvalidRequest(
                f"`low < high` must hold for the range of the parameter {self.name!r}, but it is [{low:g}, {high:g}]"
                + (f" with arms={arms} and horizon={horizon}; raise the horizon." if ends is None else ".")
            )
        if self.scale == "log" and low <= 0:
            raise InvalidRequest(
                f"`low > 0` must hold for the parameter {self.name!r} on a log scale, but got {low:g}."
            )
        least, most = max(self.least, limits[0]), min(self.most, limits[1])
        if self.scale == "log":
            least = max(least, SMALLEST_LOG_VALUE)
        rounding = ROUNDING_TOLERANCE * max(abs(low), abs(high))
        low, high = (clip_rounding_error(end, least, most, rounding) for end in (low, high))
        if not least <= low < high <= most:
            raise InvalidRequest(
                f"`{format_limits(self.name, least, most)}` must hold for the parameter {self.name!r}: its policy is defined "
                f"for no other values. But its range is [{low:g}, {high:g}]."
            )
        # A range that was asked for need not hold theory's value: that is played all the same.
        lowest, highest = (low, high) if ends is None else (least, most)
        theory = clip_rounding_error(theory, lowest, highest, rounding)
        if not lowest <= theory <= highest:
            raise InvalidRequest(
                f"theory's value of the parameter {self.name!r} must lie in [{lowest:g}, {highest:g}], but got {theory:g}."
            )
        if self.integer and math.ceil(low) > math.floor(high):
            raise InvalidRequest(
                f"the range of the parameter {self.name!r} must hold a whole number, but it is [{low:g}, {high:g}]."
            )
        return Range(self.name, low, high, theory, self.integer, self.scale, least, most)

    def _bound(self, name: str, arms: int, horizon: int) -> float:
        """A bound or theory's value as a number."""
        bound = getattr(self, name)
        try:
            return float(bound(arms, horizon) if callable(bound) else bound)
        except (TypeError, ValueError, ArithmeticError) as error:
            raise InvalidRequest(
                f"`{name}` of the parameter {self.name!r} must be a number or a function of (arms, horizon), but with "
                f"arms={arms} and horizon={horizon} it failed: {type(error).__name__}: {error}."
            ) from error


ROUNDING_TOLERANCE = 8 * float(np.finfo(np.float64).eps)
"""A value that misses an end of a range by this share of the range's size, or less, is that end: 3 * 0.1 is 0.3."""


SMALLEST_LOG_VALUE = float(np.finfo(np.float64).tiny)
"""The least value on a log scale."""


def clip_rounding_error(value: float, low: float, high: float, rounding: float) -> float:
    """The nearest value between `low` and `high` where no more than `rounding` is missing, else the value itself."""
    return min(max(value, low), high) if low - rounding <= value <= high + rounding else value


def format_limits(name: str, least: float, most: float) -> str:
    """What must hold for the values of a parameter: 0 <= gamma <= 3, gamma >= 0, or -inf < gamma < inf."""
    if math.isinf(least) and math.isinf(most):
        return f"-inf < {name} < inf"
    if math.isinf(most):
        return f"{name} >= {least:g}"
    return f"{'' if math.isinf(least) else f'{least:g} <= '}{name} <= {most:g}"
