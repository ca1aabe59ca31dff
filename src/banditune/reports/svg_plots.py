"""Draws plots as complete SVG. `page.js` moves the same elements when a reader zooms."""

from __future__ import annotations

import math
from html import escape
from typing import NamedTuple

from banditune.reports.plot_marks import PlotAxis, PlotMark, PlotSpec
from banditune.reports.text_formatting import format_number, format_percent

PLOT_WIDTH, PLOT_HEIGHT, ROW_HEIGHT = 680, 381, 46
"""Sizes in pixels. A plot with named rows has a height of `ROW_HEIGHT` per row."""


LEFT_MARGIN, RIGHT_MARGIN, TOP_MARGIN, BOTTOM_MARGIN, BARE_MARGIN = 58, 14, 28, 46, 8
"""Space around the frame for ticks and labels. `BARE_MARGIN` is the space above a plot with named rows."""


MAX_ROW_NAME_LENGTH = 44
"""The most characters of a row's name that are shown."""


NAME_CLEARANCE = 5
"""Vertical lines start this far above a row's dots, so that they do not cross the name above."""


class PlotFrame(NamedTuple):
    """The edges of a plot in pixels, and the spans from top to bottom in which vertical lines are drawn."""

    left: float
    top: float
    right: float
    bottom: float
    vertical_spans: tuple[tuple[float, float], ...]

    def make_vertical_path(self, x: float) -> str:
        """Return the path of a vertical line."""
        return "".join(f"M{x:.1f} {begin:.1f}V{end:.1f}" for begin, end in self.vertical_spans)


class AxisScale:
    """Maps values of an axis to pixels; `begin` is the pixel of its low end."""

    def __init__(self, axis: PlotAxis, begin: float, end: float) -> None:
        self.log = axis.log
        self.low, self.high = axis.low, axis.high
        if self.log:
            assert axis.log_low is not None
            self.low = max(axis.log_low, axis.low)
        self.begin, self.end = begin, end
        self.beyond = begin - math.copysign(20, end - begin)

    def __call__(self, value: float) -> float:
        """Return the pixel of a value. On a logarithmic axis, values of 0 and less are beyond the low end."""
        if not self.log:
            return self.begin + (self.end - self.begin) * (value - self.low) / (self.high - self.low)
        if value <= 0:
            return self.beyond
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.begin + (self.end - self.begin) * share


def draw_svg(plot: PlotSpec, number: int) -> str:
    """Draw a plot as SVG. `number` is its number on the page."""
    named = len(plot.y.names)
    left, top = (RIGHT_MARGIN, BARE_MARGIN) if named else (LEFT_MARGIN, TOP_MARGIN)
    height = BARE_MARGIN + BOTTOM_MARGIN + ROW_HEIGHT * named if named else PLOT_HEIGHT
    right, bottom = PLOT_WIDTH - RIGHT_MARGIN, height - BOTTOM_MARGIN
    across = AxisScale(plot.x, left, right)
    down = AxisScale(plot.y, top, bottom) if named else AxisScale(plot.y, bottom, top)
    rows = tuple((down(row) - NAME_CLEARANCE, down(row) + ROW_HEIGHT / 2) for row in range(named))
    frame = PlotFrame(left, top, right, bottom, rows or ((top, bottom),))
    marks = "".join(draw_svg_mark(mark, across, down, frame) for mark in plot.marks)
    return (
        f'<svg class="plot" data-plot="{number}" viewBox="0 0 {PLOT_WIDTH} {height}" role="img" tabindex="0" '
        f'aria-label="{escape(plot.about)}">'
        f'<clipPath id="frame{number}">'
        f'<rect x="{left}" y="{top}" width="{right - left}" height="{bottom - top}"/></clipPath>'
        f'<g class="axes">{draw_svg_axes(plot, across, down, frame)}</g>'
        f'<g class="marks" clip-path="url(#frame{number})">{marks}</g>'
        f'<g class="names">{draw_svg_names(plot, down, left)}</g></svg>'
    )


def draw_svg_axes(plot: PlotSpec, across: AxisScale, down: AxisScale, frame: PlotFrame) -> str:
    """Draw grid, ticks and labels."""
    left, _, right, bottom, _ = frame
    elements = []
    for value in choose_ticks(plot.x, across, 7):
        x = across(value)
        elements.append(f'<path class="grid" d="{frame.make_vertical_path(x)}"/>')
        elements.append(f'<text class="tick" x="{x:.1f}" y="{bottom + 17}">{format_tick(plot.x, value)}</text>')
    for value in () if plot.y.names else choose_ticks(plot.y, down, 6):
        y = down(value)
        elements.append(f'<path class="grid" d="M{left} {y:.1f}H{right}"/>')
        elements.append(f'<text class="side" x="{left - 7}" y="{y + 4:.1f}">{format_tick(plot.y, value)}</text>')
    elements.append(f'<path class="base" d="M{left} {bottom}H{right}"/>')
    elements.append(f'<text class="label" x="{right}" y="{bottom + 37}">{escape(plot.x.label)}</text>')
    elements.append(f'<text class="head" x="{RIGHT_MARGIN}" y="16">{escape(plot.y.label)}</text>')
    return "".join(elements)


def draw_svg_names(plot: PlotSpec, down: AxisScale, left: float) -> str:
    """Draw the names of the rows, above all other elements."""
    return "".join(
        f'<text class="name" x="{left + 4}" y="{down(row) - 9:.1f}">{escape(shorten_name(name))}</text>'
        for row, name in enumerate(plot.y.names)
    )


def shorten_name(name: str) -> str:
    """Shorten a name to `MAX_ROW_NAME_LENGTH` characters."""
    return name if len(name) <= MAX_ROW_NAME_LENGTH else f"{name[: MAX_ROW_NAME_LENGTH - 1]}…"


def choose_ticks(axis: PlotAxis, scale: AxisScale, limit: int) -> list[float]:
    """Choose about `limit` round values on an axis."""
    if scale.log:
        powers = range(math.floor(math.log10(scale.low)), math.ceil(math.log10(scale.high)) + 1)
        ticks = [step * 10.0**power for power in powers for step in (1, 2, 5)]
        ticks = [value for value in ticks if scale.low <= value <= scale.high]
        coarse = [10.0**power for power in powers if scale.low <= 10.0**power <= scale.high]
        if 1 < len(ticks) <= 1.5 * limit:
            return ticks
        if len(coarse) > 1:
            return coarse[:: math.ceil(len(coarse) / (1.5 * limit))]
    rough = (scale.high - scale.low) / limit
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    step = max(1.0, step) if axis.integer_ticks else step
    return [
        step * number for number in range(math.ceil(scale.low / step - 1e-9), math.floor(scale.high / step + 1e-9) + 1)
    ]


def format_tick(axis: PlotAxis, value: float) -> str:
    """Format the label of a tick."""
    return format_percent(value) if axis.percent else format_number(round(value, 12))


def draw_svg_mark(mark: PlotMark, across: AxisScale, down: AxisScale, frame: PlotFrame) -> str:
    """Draw one mark as a group: a path, if it has one, then its dots."""
    path = make_mark_path(mark, across, down, frame)
    drawn = f'<path d="{path}"/>' if path else ""
    if mark.shape == "dots":
        drawn += "".join(
            f'<circle cx="{across(x):.1f}" cy="{down(y):.1f}" r="{radius:.1f}"/>'
            for x, y, radius in zip(mark.x, mark.y, mark.radius, strict=True)
        )
    return f'<g class="{get_css_classes(mark)}">{drawn}</g>'


def get_css_classes(mark: PlotMark) -> str:
    """Return the CSS classes of a mark."""
    return f"{mark.shape} c{mark.colour}" + (f" d{mark.dash}" if mark.dash else "") + (" hollow" if mark.hollow else "")


def make_mark_path(mark: PlotMark, across: AxisScale, down: AxisScale, frame: PlotFrame) -> str:
    """Return the path of a mark; for dots, that of their intervals."""
    if mark.shape == "vertical":
        return frame.make_vertical_path(across(mark.x[0]))
    if mark.shape == "horizontal":
        return f"M{frame.left} {down(mark.y[0]):.1f}H{frame.right}"
    if mark.shape == "span":
        # A span of one value must stay visible.
        low, high = across(mark.x[0]) - 1, across(mark.x[1]) + 1
        return f"M{low:.1f} {frame.top}H{high:.1f}V{frame.bottom}H{low:.1f}Z"
    if mark.shape == "line":
        return "M" + "L".join(f"{across(x):.1f} {down(y):.1f}" for x, y in zip(mark.x, mark.y, strict=True))
    if mark.shape == "band":
        upper = [f"{across(x):.1f} {down(high):.1f}" for x, high in zip(mark.x, mark.high, strict=True)]
        lower = [f"{across(x):.1f} {down(low):.1f}" for x, low in zip(mark.x, mark.low, strict=True)]
        return "M" + "L".join([*upper, *reversed(lower)]) + "Z"
    return "".join(
        make_interval_path(mark.interval_axis, across, down, x, y, low, high)
        for x, y, low, high in zip(mark.x, mark.y, mark.low, mark.high, strict=False)
    )


def make_interval_path(
    interval_axis: str, across: AxisScale, down: AxisScale, x: float, y: float, low: float, high: float
) -> str:
    """Return the path of an interval with caps."""
    if interval_axis == "y":
        at, start, end = across(x), down(low), down(high)
        return f"M{at:.1f} {start:.1f}V{end:.1f}M{at - 4:.1f} {start:.1f}h8M{at - 4:.1f} {end:.1f}h8"
    at, start, end = down(y), across(low), across(high)
    return f"M{start:.1f} {at:.1f}H{end:.1f}M{start:.1f} {at - 4:.1f}v8M{end:.1f} {at - 4:.1f}v8"
