"""Plots as records of axes and marks. Other modules draw them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from banditune.reports.text_formatting import describe_confidence, format_mean_and_interval, format_number
from banditune.results.estimates import Estimate
from banditune.results.exact_results import LowerBound

BLACK_COLOUR, TUNED_COLOUR, CURVE_COLOUR, GREY_COLOUR = 0, 1, 2, 7
"""Numbers of colours in the palette of the page (`page.css`)."""


SERIES_COLOURS = (1, 2, 3, 4, 5, 6, 0)
"""Colours of several series, in this order. More could not be distinguished."""


DASHED, DASH_COUNT, MARKER_COUNT = 2, 6, 7
"""The number of simple dashes, and how many kinds of dashes and of markers there are."""


@dataclass(frozen=True)
class PlotAxis:
    """An axis from `low` to `high`.

    A logarithmic axis starts at `log_low`; None if it cannot be logarithmic. With `integer_ticks`, ticks are integers;
    with `percent`, they are formatted as percentages. An axis with `names` has one row per name, from the top.
    """

    label: str
    low: float
    high: float
    log_low: float | None = None
    log: bool = False
    integer_ticks: bool = False
    percent: bool = False
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class PlotMark:
    """One element of a plot; `shape` is "line", "band", "dots", "span", "vertical" or "horizontal".

    A band is between `low` and `high`. Dots have a radius and a tip each. With `low` and `high` they have intervals along
    `interval_axis`. A span is between two x. Vertical lines are at one x, horizontal ones at one y. The legend omits marks
    without a label.

    So that series can be distinguished without colours, lines have a number of their dashes, from 1 for solid; 0 leaves it
    to the colour. In figures, lines and dots also have a number of their marker; 0 is a dot, or none on a line.
    """

    shape: str
    colour: int
    label: str = ""
    x: tuple[float, ...] = ()
    y: tuple[float, ...] = ()
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    radius: tuple[float, ...] = ()
    tips: tuple[str, ...] = ()
    interval_axis: str = "y"
    hollow: bool = False
    dash: int = 0
    marker: int = 0


@dataclass(frozen=True)
class PlotSpec:
    """Marks on two axes. `about` describes the plot in words. Zooming centres on `focus` unless a dot is selected."""

    about: str
    x: PlotAxis
    y: PlotAxis
    marks: tuple[PlotMark, ...]
    focus: tuple[float, float]


class SeriesStyle(NamedTuple):
    """The numbers of a series' colour, dashes and marker."""

    colour: int
    dash: int
    marker: int


def make_series_style(number: int) -> SeriesStyle:
    """Make the style of one of several series: each has its colour, dashes and marker."""
    colour = SERIES_COLOURS[number % len(SERIES_COLOURS)]
    return SeriesStyle(colour, 1 + number % DASH_COUNT, 1 + number % MARKER_COUNT)


def make_axis(label: str, values: Sequence[float], *, log: bool = False, margin: float = 0.04, **more: Any) -> PlotAxis:
    """Make an axis that shows all values. `margin` is the share of their range that is added at each end."""
    low, high = min(values), max(values)
    extra = margin * (high - low) or 0.5 * abs(high) or 0.5
    positive = [value for value in values if value > 0]
    log_low = 0.85 * min(positive) if positive else None
    bottom = 0.0 if low >= 0 and low - extra < 0 else low - extra
    # On a logarithmic axis the margin is a factor.
    top = high / 0.85 if log and log_low else high + extra
    return PlotAxis(label, bottom, top, log_low, log and log_low is not None, **more)


def choose_regret_range(intervals: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Choose the range of a regret axis so that these intervals are well visible."""
    low = min(0.0, *(low for low, _ in intervals))
    high = max(high for _, high in intervals)
    top = high + 0.25 * (high - low)
    # If all regrets are 0, any positive range is valid.
    return low, top if top > low else low + 1.0


def make_lower_bound_marks(bound: LowerBound | None, shape: str, regret: float = 0.0) -> tuple[PlotMark, ...]:
    """Mark the lower bound as a line, if it is known. The label says whether it is weak beside `regret`."""
    if bound is None:
        return ()
    weak = ", weak" if bound.explain_weakness(regret) else ""
    label = f"lower bound: {format_number(bound.regret)} ({describe_confidence(bound)}{weak})"
    if bound.is_exact:
        label = f"optimum: {format_number(bound.regret)}"
    value = (float(bound.regret),)
    return (
        PlotMark(shape, 3, label, x=value if shape == "vertical" else (), y=value if shape == "horizontal" else ()),
    )


def make_estimate_mark(colour: int, title: str, value: float, label: str, estimate: Estimate) -> PlotMark:
    """Mark one estimate with its interval at a parameter value."""
    return PlotMark(
        "dots",
        colour,
        label,
        (value,),
        (estimate.mean,),
        (estimate.low,),
        (estimate.high,),
        (4.5,),
        (f"{title}: {format_number(value)}, regret {format_mean_and_interval(estimate)}",),
    )
