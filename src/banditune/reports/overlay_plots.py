"""Plots of several results of one kind in one figure, as records."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import singledispatch
from typing import Any

from banditune.core.errors import InvalidRequest
from banditune.core.request_errors import make_argument_error
from banditune.reports.over_time_plots import StepLine, list_regret_lines, make_over_time_plot
from banditune.reports.plot_marks import (
    GREY_COLOUR,
    PlotAxis,
    PlotMark,
    PlotSpec,
    choose_regret_range,
    make_axis,
    make_series_style,
)
from banditune.reports.search_plots import has_log_axis
from banditune.reports.text_formatting import describe_config, format_number
from banditune.results.comparison_results import Comparison
from banditune.results.estimates import Estimate
from banditune.results.over_time_results import RegretOverTime
from banditune.results.tuning_results import Curve, Tuning

ROW_SPREAD = 0.5
"""The part of a row over which several comparisons are spread."""


BEST_VALUE_LABEL = "best, fresh instances"


def make_overlay_plot(results: Sequence[Any], labels: Sequence[str] | None) -> PlotSpec:
    """Make the plot of several results of one kind. There is a label for each result, or for each line over steps."""
    kinds = sorted({type(result).__name__ for result in results})
    if len(kinds) != 1:
        raise InvalidRequest(
            f"results in one figure must be of one kind, but got {' and '.join(kinds) or 'none'}.",
            argument="result",
            code="wrong-type",
        )
    return overlay_results(results[0], results, labels)


@singledispatch
def overlay_results(first: Any, results: Sequence[Any], labels: Sequence[str] | None) -> PlotSpec:
    """Make the plot of several results of the kind of the first one."""
    raise InvalidRequest(
        "results with labels, or several in one figure, must be curves, tunings, comparisons or regrets over time, but got "
        f"{type(first).__name__}; draw each into axes of its own, with `ax`.",
        argument="result",
        code="wrong-type",
    )


def resolve_labels(labels: Sequence[str] | None, defaults: Sequence[str]) -> list[str]:
    """Return the labels that were given, or default ones."""
    if labels is None:
        return list(defaults)
    names = [] if isinstance(labels, str) else list(labels)
    if len(names) != len(defaults) or not all(isinstance(name, str) for name in names):
        text = (
            f"must be {len(defaults)} names, one for each of {', '.join(map(repr, defaults))}, but got {labels!r:.80}."
        )
        raise make_argument_error("labels", "wrong-shape", text)
    return names


def name_results(results: Sequence[Any]) -> list[str]:
    """Name results by what differs between their setups: policy, problem, horizon, seed, or their number."""
    parts = [
        (
            describe_config(result.setup.policy) if result.setup.policy else "",
            describe_config(result.setup.problem),
            f"horizon {result.setup.horizon:,}",
            f"seed {result.setup.seed}",
        )
        for result in results
    ]
    different = [column for column in range(4) if len({row[column] for row in parts}) > 1]
    names = [", ".join(row[column] for column in different) for row in parts]
    if len(set(names)) == len(names):
        return names if different else [parts[0][0] or parts[0][1]]
    return [", ".join(filter(None, (name, f"result {number}"))) for number, name in enumerate(names, 1)]


@overlay_results.register
def _(first: RegretOverTime, results: Sequence[RegretOverTime], labels: Sequence[str] | None) -> PlotSpec:
    names = name_results(results) if len(results) > 1 else [""]
    lines = [
        StepLine(join_names(name, line.label), join_names(name, line.policy), *line[2:])
        for result, name in zip(results, names, strict=True)
        for line in list_regret_lines(result)
    ]
    used = resolve_labels(labels, [line.label for line in lines])
    return make_over_time_plot([line._replace(label=label) for line, label in zip(lines, used, strict=True)])


@overlay_results.register
def _(first: Curve, results: Sequence[Curve], labels: Sequence[str] | None) -> PlotSpec:
    names = resolve_labels(labels, name_results(results))
    marks = [mark for number, curve in enumerate(results) for mark in make_labelled_curve(curve, number, names[number])]
    textbooks = {curve.textbook for curve in results}
    if len(textbooks) == 1:
        marks.insert(
            0, PlotMark("vertical", GREY_COLOUR, f"textbook: {format_number(first.textbook)}", x=(*textbooks,))
        )
    values = [*textbooks, *(value for curve in results for value in curve.values.tolist())]
    heights = [0.0, *(height for mark in marks for height in (*mark.y, *mark.high))]
    x = make_axis(
        join_parameters([curve.parameter for curve in results]),
        values,
        log=all(c.log_scale for c in results),
        margin=0.02,
    )
    # A key without a point: the dots have the colours of their curves.
    marks.append(PlotMark("dots", GREY_COLOUR, BEST_VALUE_LABEL, (math.nan,), (math.nan,), radius=(4.5,)))
    focus = (first.best_value, first.best_regret.mean)
    return PlotSpec("Bayes regret over a parameter.", x, make_axis("Bayes regret", heights), tuple(marks), focus)


@overlay_results.register
def _(first: Tuning, results: Sequence[Tuning], labels: Sequence[str] | None) -> PlotSpec:
    names = resolve_labels(labels, name_results(results))
    marks = [mark for number, tuning in enumerate(results) for mark in make_tuned_marks(tuning, number, names[number])]
    values = [value for mark in marks for value in mark.x]
    low, high = choose_regret_range(
        [(one.low, one.high) for result in results for one in (result.regret, result.textbook_regret)]
    )
    parameters = [get_overlaid_parameter(result) for result in results]
    is_log = all(has_log_axis(result, name) for result, name in zip(results, parameters, strict=True))
    x = make_axis(join_parameters(parameters), values, log=is_log, margin=0.02)
    focus = (first.params[parameters[0]], first.regret.mean)
    return PlotSpec("Tuned and textbook values.", x, PlotAxis("Bayes regret", low, high), tuple(marks), focus)


@overlay_results.register
def _(first: Comparison, results: Sequence[Comparison], labels: Sequence[str] | None) -> PlotSpec:
    names = resolve_labels(labels, name_results(results))
    policies = list(dict.fromkeys(entry.policy for result in results for entry in result.entries))
    marks = []
    for number, (result, name) in enumerate(zip(results, names, strict=True)):
        style = make_series_style(number)
        shift = ROW_SPREAD * ((number + 0.5) / len(results) - 0.5)
        marks.append(
            PlotMark(
                "dots",
                style.colour,
                name,
                tuple(entry.regret.mean for entry in result.entries),
                tuple(policies.index(entry.policy) + shift for entry in result.entries),
                tuple(entry.regret.low for entry in result.entries),
                tuple(entry.regret.high for entry in result.entries),
                (4.5,) * len(result.entries),
                interval_axis="x",
                marker=style.marker,
            )
        )
    across = make_axis("Bayes regret", [0.0, *(end for mark in marks for end in (*mark.low, *mark.high))])
    down = PlotAxis("", -0.5, len(policies) - 0.5, names=tuple(policies))
    return PlotSpec("Regrets of policies.", across, down, tuple(marks), (first.entries[0].regret.mean, 0.0))


def get_overlaid_parameter(tuning: Tuning) -> str:
    """Return the parameter over which a tuning is drawn beside others. It must be the only one."""
    if len(tuning.searched_parameters) > 1:
        raise InvalidRequest(
            f"tunings that are drawn together must be over one parameter each, but one is over "
            f"{', '.join(tuning.searched_parameters)}; draw it alone, or draw the regret over time.",
            argument="result",
            code="unsupported",
        )
    return tuning.searched_parameters[0]


def join_names(*names: str) -> str:
    """Join names that are not empty."""
    return ", ".join(filter(None, names))


def join_parameters(names: Sequence[str]) -> str:
    """Return the label of an axis for parameters that may differ."""
    return " or ".join(dict.fromkeys(names))


def make_labelled_curve(curve: Curve, number: int, label: str) -> Iterator[PlotMark]:
    """Mark one of several curves: its 95% band, its line, and its best value on fresh instances."""
    style, band = make_series_style(number), curve.half_width
    x, y = tuple(curve.values.tolist()), tuple(curve.mean.tolist())
    low, high = tuple((curve.mean - band).tolist()), tuple((curve.mean + band).tolist())
    yield PlotMark("band", style.colour, x=x, low=low, high=high)
    yield PlotMark("line", style.colour, label, x=x, y=y, dash=style.dash, marker=style.marker)
    yield make_dot(curve.best_value, curve.best_regret, number)


def make_tuned_marks(tuning: Tuning, number: int, label: str) -> Iterator[PlotMark]:
    """Mark one of several tunings: its curve if there is one, the tuned value, and the textbook value as a hollow dot."""
    name = get_overlaid_parameter(tuning)
    tuned, textbook = tuning.params[name], tuning.textbook_params[name]
    if tuning.curve:
        yield from list(make_labelled_curve(tuning.curve, number, ""))[:2]
    yield make_dot(
        textbook, tuning.textbook_regret, number, f"{label}, textbook: {format_number(textbook)}", hollow=True
    )
    yield make_dot(tuned, tuning.regret, number, f"{label}, tuned: {format_number(tuned)}")


def make_dot(value: float, estimate: Estimate, number: int, label: str = "", *, hollow: bool = False) -> PlotMark:
    """Mark an estimate with its interval, in the style of one of several series."""
    style = make_series_style(number)
    return PlotMark(
        "dots",
        style.colour,
        label,
        (value,),
        (estimate.mean,),
        (estimate.low,),
        (estimate.high,),
        (4.5,),
        hollow=hollow,
        marker=style.marker,
    )
