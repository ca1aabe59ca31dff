"""Parameters that can be tuned, and their ranges for one number of arms and one horizon."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np

from banditune.core.checks import check_choice
from banditune.core.errors import InvalidRequest


@dataclass(frozen=True)
class Range:
    """The bounds of a parameter for one number of arms and one horizon; the result of `Parameter.resolve`.

    Parameters
    ----------
    name : str
        The parameter's name.
    low : float
        The lower end of the range that is searched.
    high : float
        The upper end of the range that is searched.
    textbook : float
        The textbook value.
    integer : bool
        Whether the parameter must be a whole number.
    scale : {"linear", "log"}
        The scale on which the range is searched.
    lower_limit : float
        The smallest value that can be simulated.
    upper_limit : float
        The largest value that can be simulated.
    """

    name: str
    low: float
    high: float
    textbook: float
    integer: bool
    scale: str
    lower_limit: float = -math.inf
    upper_limit: float = math.inf

    def clip_rounding_error(self, value: float, low: float, high: float) -> float:
        """Return the nearest end of [low, high] if the value differs from it by rounding only; else the value."""
        return clip_rounding_error(value, low, high, ROUNDING_TOLERANCE * max(abs(self.low), abs(self.high)))

    def scale_from_unit(self, unit: float) -> float:
        """Map a point of the unit interval to a value."""
        if self.scale == "log":
            value = math.exp(math.log(self.low) + unit * (math.log(self.high) - math.log(self.low)))
        else:
            value = self.low + unit * (self.high - self.low)
        return self.clip(value)

    def scale_to_unit(self, value: float) -> float:
        """Map a value of the range to the unit interval: the inverse of `scale_from_unit`, up to rounding."""
        if self.scale == "log":
            low, high = math.log(self.low), math.log(self.high)
            return min(max((math.log(max(value, self.low)) - low) / (high - low), 0.0), 1.0)
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)

    def clip(self, value: float) -> float:
        """Return the nearest possible value in the range."""
        value = min(max(value, self.low), self.high)
        return float(min(max(round(value), math.ceil(self.low)), math.floor(self.high))) if self.integer else value

    def round_value(self, value: float) -> float:
        """Return the nearest possible value. For a value in the range, it is in the range."""
        if self.low <= value <= self.high:
            return self.clip(value)
        return float(round(value)) if self.integer else value


@dataclass(frozen=True)
class Space:
    """The ranges of the parameters that are searched together. A row has a number for each, in this order.

    Parameters
    ----------
    ranges : tuple of Range
        A range for each parameter.
    """

    ranges: tuple[Range, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters."""
        return tuple(search_range.name for search_range in self.ranges)

    @property
    def textbook(self) -> tuple[float, ...]:
        """The row of textbook values."""
        return tuple(search_range.textbook for search_range in self.ranges)

    def scale_from_unit(self, units: Sequence[float]) -> tuple[float, ...]:
        """Map a point of the unit cube to a row."""
        return tuple(
            search_range.scale_from_unit(float(unit)) for search_range, unit in zip(self.ranges, units, strict=True)
        )

    def scale_to_unit(self, row: Sequence[float]) -> tuple[float, ...]:
        """Map a row to a point of the unit cube."""
        return tuple(search_range.scale_to_unit(value) for search_range, value in zip(self.ranges, row, strict=True))

    def clip(self, row: Sequence[float]) -> tuple[float, ...]:
        """Return the nearest possible row."""
        return tuple(search_range.clip(value) for search_range, value in zip(self.ranges, row, strict=True))


@dataclass(frozen=True)
class Parameter:
    """A parameter of a policy that can be tuned.

    `low`, `high` and `textbook` are numbers, or functions of (arms, horizon). Tuners search the unit interval, which
    `Range.scale_from_unit` maps to values, evenly in the logarithm on a log scale.

    Parameters
    ----------
    name : str
        The parameter's name.
    low : float or callable
        The lower end of the range that is usually searched. A request may give another range.
    high : float or callable
        The upper end of that range.
    textbook : float or callable
        The textbook value, within the range.
    integer : bool
        Whether the parameter must be a whole number. Values are rounded when they are used, so any real value in the
        range may be requested.
    scale : {"linear", "log"}
        The scale on which the range is searched.
    lower_limit : float
        Hard lower limit. Below it the parameter has no meaning, like a probability below 0.
    upper_limit : float
        Hard upper limit. Above it the parameter has no meaning, like a probability above 1.
    meaning : str
        The meaning of the parameter, for readers of reports, as in "the share of decisions that are random".

    Raises
    ------
    InvalidRequest
        If the scale is unknown, or if a bound is neither a number nor a function.

    Examples
    --------
    >>> import banditune as bt
    >>> epsilon = bt.Parameter("epsilon", 0, lambda arms, horizon: min(1, 10 * arms / horizon), textbook=0.05)
    >>> epsilon.resolve(arms=10, horizon=1000).high
    0.1
    """

    name: str
    low: float | Callable[[int, int], float]
    high: float | Callable[[int, int], float]
    textbook: float | Callable[[int, int], float]
    integer: bool = False
    scale: str = "linear"
    lower_limit: float = -math.inf
    upper_limit: float = math.inf
    meaning: str = ""

    def __post_init__(self) -> None:
        check_choice("scale", self.scale, ("linear", "log"))
        for name in ("low", "high", "textbook"):
            bound = getattr(self, name)
            if not callable(bound) and not isinstance(bound, Real):
                raise InvalidRequest(
                    f"`{name}` of the parameter {self.name!r} must be a number or a function of (arms, horizon), but got "
                    f"{bound!r}.",
                    argument=name,
                    code="wrong-type",
                )

    def resolve(
        self,
        arms: int,
        horizon: int,
        ends: tuple[float, float] | None = None,
        limits: tuple[float, float] = (-math.inf, math.inf),
    ) -> Range:
        """Return the range for a number of arms and a horizon, or a range with the given `ends`.

        `limits` are the policy's limits, in addition to the parameter's `lower_limit` and `upper_limit`.
        """
        textbook = self._evaluate_bound("textbook", arms, horizon)
        low, high = ends or (self._evaluate_bound("low", arms, horizon), self._evaluate_bound("high", arms, horizon))
        if not (math.isfinite(low) and math.isfinite(high)):
            raise InvalidRequest(
                f"the bounds of the parameter {self.name!r} must be finite numbers, but its range is [{low:g}, {high:g}] "
                f"with arms={arms} and horizon={horizon}.",
                code="out-of-range",
            )
        if not low < high:
            raise InvalidRequest(
                f"`low < high` must hold for the range of the parameter {self.name!r}, but it is [{low:g}, {high:g}]"
                + (f" with arms={arms} and horizon={horizon}; raise the horizon." if ends is None else "."),
                code="out-of-range",
            )
        if self.scale == "log" and low <= 0:
            raise InvalidRequest(
                f"`low > 0` must hold for the parameter {self.name!r} on a log scale, but got {low:g}.",
                code="out-of-range",
            )
        least, most = max(self.lower_limit, limits[0]), min(self.upper_limit, limits[1])
        if self.scale == "log":
            least = max(least, SMALLEST_LOG_VALUE)
        rounding = ROUNDING_TOLERANCE * max(abs(low), abs(high))
        low, high = (clip_rounding_error(end, least, most, rounding) for end in (low, high))
        if not least <= low < high <= most:
            raise InvalidRequest(
                f"`{format_limits(self.name, least, most)}` must hold for the parameter {self.name!r}: its policy is "
                f"defined for no other values. But its range is [{low:g}, {high:g}].",
                code="out-of-range",
            )
        # A requested range need not contain the textbook value, which is simulated in any case.
        lowest, highest = (low, high) if ends is None else (least, most)
        textbook = clip_rounding_error(textbook, lowest, highest, rounding)
        if not lowest <= textbook <= highest:
            raise InvalidRequest(
                f"the textbook value of the parameter {self.name!r} must lie in [{lowest:g}, {highest:g}], "
                f"but got {textbook:g}.",
                code="out-of-range",
            )
        if self.integer and math.ceil(low) > math.floor(high):
            raise InvalidRequest(
                f"the range of the parameter {self.name!r} must contain a whole number, but it is [{low:g}, {high:g}].",
                code="out-of-range",
            )
        return Range(self.name, low, high, textbook, self.integer, self.scale, least, most)

    def _evaluate_bound(self, name: str, arms: int, horizon: int) -> float:
        """Return a bound or the textbook value as a number."""
        bound = getattr(self, name)
        try:
            return float(bound(arms, horizon) if callable(bound) else bound)
        except (TypeError, ValueError, ArithmeticError) as error:
            raise InvalidRequest(
                f"`{name}` of the parameter {self.name!r} must be a number or a function of (arms, horizon), but with "
                f"arms={arms} and horizon={horizon} it failed: {type(error).__name__}: {error}.",
                argument=name,
                code="own-code",
            ) from error


ROUNDING_TOLERANCE = 8 * float(np.finfo(np.float64).eps)
"""The share of the range's size below which a deviation from an end is a rounding error: 3 * 0.1 counts as 0.3."""


SMALLEST_LOG_VALUE = float(np.finfo(np.float64).tiny)
"""The smallest value on a log scale."""


def clip_rounding_error(value: float, low: float, high: float, rounding: float) -> float:
    """Clip a value to [low, high] if it is outside by `rounding` at most; else return it unchanged."""
    return min(max(value, low), high) if low - rounding <= value <= high + rounding else value


def format_limits(name: str, least: float, most: float) -> str:
    """Format the condition on a parameter's values: 0 <= gamma <= 3, gamma >= 0, or -inf < gamma < inf."""
    if math.isinf(least) and math.isinf(most):
        return f"-inf < {name} < inf"
    if math.isinf(most):
        return f"{name} >= {least:g}"
    return f"{'' if math.isinf(least) else f'{least:g} <= '}{name} <= {most:g}"
