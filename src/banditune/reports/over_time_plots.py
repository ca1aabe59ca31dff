"""Plots of regret over time, as records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from banditune.reports.plot_marks import (
    BLACK_COLOUR,
    DASH_COUNT,
    DASHED,
    GREY_COLOUR,
    PlotAxis,
    PlotMark,
    PlotSpec,
    SeriesStyle,
    make_axis,
    make_series_style,
)
from banditune.reports.text_formatting import format_number
from banditune.results.over_time_results import RegretOverTime, StepEstimates

UNDASHED = tuple(number for number in range(1, DASH_COUNT + 1) if number != DASHED)
"""Dashes of lines that are not the textbook's."""


MAX_TABLE_STEPS = 6
"""The most steps that a table shows."""


class StepLine(NamedTuple):
    """A line of a plot over steps. Lines of one policy have the same colour and marker."""

    label: str
    policy: str
    is_textbook: bool
    steps: tuple[int, ...]
    estimates: StepEstimates


def list_regret_lines(result: RegretOverTime) -> list[StepLine]:
    """List the lines of the regret."""
    return [StepLine(one.label, one.policy, one.is_textbook, result.steps, one.regret) for one in result.series]


def choose_table_steps(steps: Sequence[int]) -> tuple[int, ...]:
    """Choose the steps that a table shows: the last few of 1, 2, 5, 10, 20, 50 and so on, and the last one."""
    if len(steps) <= MAX_TABLE_STEPS:
        return tuple(steps)
    chosen = [step for step in steps[:-1] if str(step).rstrip("0") in ("1", "2", "5")]
    if len(chosen) < MAX_TABLE_STEPS - 1:
        size = MAX_TABLE_STEPS - 1
        chosen = [steps[(len(steps) - 1) * number // size] for number in range(size)]
    return (*chosen[1 - MAX_TABLE_STEPS :], steps[-1])


def choose_line_styles(lines: Sequence[StepLine]) -> list[SeriesStyle]:
    """Choose colour, dashes and marker of each line.

    If some of several policies have several lines, the colour and the marker are the policy's, and the textbook is dashed.
    """
    policies = list(dict.fromkeys(line.policy for line in lines))
    if len(policies) in (1, len(lines)):
        styles = [make_series_style(number) for number in range(len(lines))]
        if [line.is_textbook for line in lines] == [False, True]:
            styles[1] = styles[1]._replace(colour=BLACK_COLOUR, dash=DASHED)
        return styles
    styles = []
    for line in lines:
        others = [other.label for other in lines if other.policy == line.policy and not other.is_textbook]
        dash = DASHED if others else UNDASHED[0]
        if line.label in others:
            dash = UNDASHED[others.index(line.label) % len(UNDASHED)]
        styles.append(make_series_style(policies.index(line.policy))._replace(dash=dash))
    return styles


def make_over_time_plot(lines: Sequence[StepLine], *, tips: bool = False) -> PlotSpec:
    """Make the plot of regret over steps, with 95% bands. For a page, dots with tips are added."""
    marks = [mark for line, style in style_lines(lines) for mark in make_line_marks(line, style, tips=tips)]
    about = "Bayes regret over steps: " + "; ".join(
        f"{line.label} {format_number(float(line.estimates.mean[-1]))} after {line.steps[-1]:,}" for line in lines
    )
    heights = [0.0, *(height for mark in marks for height in (*mark.y, *mark.high))]
    return PlotSpec(
        f"{about}.", make_step_axis(lines), make_axis("Bayes regret", heights), tuple(marks), find_line_end(lines[0])
    )


def make_difference_plot(result: RegretOverTime) -> PlotSpec:
    """Make the plot of paired differences to the reference over steps, with 95% bands."""
    differences = {one.label: one.difference_to_reference for one in result.series}
    compared = [
        (line._replace(estimates=differences[line.label]), style)
        for line, style in style_lines(list_regret_lines(result))
        if line.label != result.reference
    ]
    marks = [mark for line, style in compared for mark in make_line_marks(line, style, tips=True)]
    heights = [0.0, *(height for mark in marks for height in (*mark.y, *mark.low, *mark.high))]
    lines = [line for line, _ in compared]
    return PlotSpec(
        f"Regret minus that of {result.reference} over steps, paired by instance.",
        make_step_axis(lines),
        replace(make_axis(f"regret minus that of {result.reference}", heights), log_low=None),
        (PlotMark("horizontal", GREY_COLOUR, y=(0.0,)), *marks),
        find_line_end(lines[0]),
    )


def style_lines(lines: Sequence[StepLine]) -> list[tuple[StepLine, SeriesStyle]]:
    """Return each line with its style."""
    return list(zip(lines, choose_line_styles(lines), strict=True))


def find_line_end(line: StepLine) -> tuple[float, float]:
    """Return the last point of a line."""
    return float(line.steps[-1]), float(line.estimates.mean[-1])


def make_step_axis(lines: Sequence[StepLine]) -> PlotAxis:
    """Make the axis of steps."""
    first, last = min(line.steps[0] for line in lines), max(line.steps[-1] for line in lines)
    return PlotAxis("step", 0.0, 1.02 * last, 0.85 * first, integer_ticks=True)


def make_line_marks(line: StepLine, style: SeriesStyle, *, tips: bool) -> Iterator[PlotMark]:
    """Mark the means of a line, and their intervals as a band."""
    x = tuple(map(float, line.steps))
    mean, low, high = (tuple(part.tolist()) for part in (line.estimates.mean, line.estimates.low, line.estimates.high))
    if len(x) == 1:
        tip = (f"{line.label}: {format_number(mean[0])} ({format_number(low[0])} to {format_number(high[0])})",)
        yield PlotMark("dots", style.colour, line.label, x, mean, low, high, (4.5,), tip, marker=style.marker)
        return
    yield PlotMark("band", style.colour, x=x, low=low, high=high)
    yield PlotMark("line", style.colour, line.label, x=x, y=mean, dash=style.dash, marker=style.marker)
    if not tips:
        return
    chosen = [line.steps.index(step) for step in choose_table_steps(line.steps)]
    yield PlotMark(
        "dots",
        style.colour,
        x=tuple(x[index] for index in chosen),
        y=tuple(mean[index] for index in chosen),
        radius=(3.0,) * len(chosen),
        tips=tuple(
            f"{line.label}, step {line.steps[index]:,}: {format_number(mean[index])} "
            f"({format_number(low[index])} to {format_number(high[index])})"
            for index in chosen
        ),
    )
