"""Plots as records: axes and marks. Nothing is drawn here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from banditune.reports.text_formatting import describe_confidence, format_mean_and_interval, format_number
from banditune.results.estimates import Estimate
from banditune.results.exact_results import LowerBound

BLACK_COLOUR, TUNED_COLOUR, CURVE_COLOUR, GREY_COLOUR = 0, 1, 2, 7
"""Places in the palette of the page (`page.css`)."""


@dataclass(frozen=True)
class PlotAxis:
    """An axis from `low` to `high`; `least` is where a logarithmic one begins, None if there can be none.

    Ticks are at `whole` numbers only, or told as `format_percent`. An axis with `names` has a row for each, from the top.
    """

    label: str
    low: float
    high: float
    least: float | None = None
    log: bool = False
    whole: bool = False
    percent: bool = False
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class PlotMark:
    """Something drawn at points (x, y): a `line`, a `band` from `low` to `high`, or `dots` with a radius and a tip each.

    Dots with `low` and `high` have intervals `along` an axis. A `span` lies between two x, a `rule` stands at an x, a
    `level` lies at a y. The label is for the legend; without one the mark is not in it.
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
    along: str = "y"
    hollow: bool = False


@dataclass(frozen=True)
class PlotSpec:
    """Marks on two axes; `about` tells in words what there is to see; zooming goes to `focus` unless a dot is chosen."""

    about: str
    x: PlotAxis
    y: PlotAxis
    marks: tuple[PlotMark, ...]
    focus: tuple[float, float]


def make_axis(label: str, values: Sequence[float], *, log: bool = False, room: float = 0.04, **more: Any) -> PlotAxis:
    """An axis on which all values are seen, with some room at the ends."""
    low, high = min(values), max(values)
    extra = room * (high - low) or 0.5 * abs(high) or 0.5
    positive = [value for value in values if value > 0]
    least = 0.85 * min(positive) if positive else None
    bottom = 0.0 if low >= 0 and low - extra < 0 else low - extra
    # On a logarithmic axis the same room is a multiple.
    top = high / 0.85 if log and least else high + extra
    return PlotAxis(label, bottom, top, least, log and least is not None, **more)


def choose_regret_range(intervals: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """A range of regrets that shows these intervals well, whatever all others do."""
    low = min(0.0, *(low for low, _ in intervals))
    high = max(high for _, high in intervals)
    top = high + 0.25 * (high - low)
    # Where nothing is lost at all, any range will do.
    return low, top if top > low else low + 1.0


def make_lower_bound_marks(floor: LowerBound | None, shape: str) -> tuple[PlotMark, ...]:
    """What no policy can go below, as a line, where that is known."""
    if floor is None:
        return ()
    label = f"no policy below {format_number(floor.regret)} ({describe_confidence(floor)})"
    if floor.exact:
        label = f"the best that any policy can do: {format_number(floor.regret)}"
    place = (float(floor.regret),)
    return (PlotMark(shape, 3, label, x=place if shape == "rule" else (), y=place if shape == "level" else ()),)


def make_estimate_mark(colour: int, what: str, place: float, label: str, estimate: Estimate) -> PlotMark:
    """One estimate with its interval, at a place of the parameter."""
    return PlotMark(
        "dots",
        colour,
        label,
        (place,),
        (estimate.mean,),
        (estimate.low,),
        (estimate.high,),
        (4.5,),
        (f"{what}: {format_number(place)} loses {format_mean_and_interval(estimate)}",),
    )
