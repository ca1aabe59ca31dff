"""Plots of tunings, curves, comparisons and regret distributions, as records."""

from __future__ import annotations

from collections.abc import Sequence

from banditune.reports.plot_marks import (
    BLACK_COLOUR,
    CURVE_COLOUR,
    GREY_COLOUR,
    SERIES_COLOURS,
    TUNED_COLOUR,
    PlotAxis,
    PlotMark,
    PlotSpec,
    choose_regret_range,
    make_axis,
    make_estimate_mark,
    make_lower_bound_marks,
)
from banditune.reports.search_plots import has_log_axis, make_posterior_marks, make_search_mark, summarise_visits
from banditune.reports.text_formatting import (
    format_mean_and_interval,
    format_number,
    format_params,
    format_percent,
    name_baseline,
    name_textbook_value,
)
from banditune.results.comparison_results import Comparison, ComparisonEntry
from banditune.results.estimates import RegretDistribution
from banditune.results.tuning_results import Curve, Tuning


def choose_tuning_range(result: Tuning) -> tuple[float, float]:
    """Choose the range of regrets that shows the tuned and the baseline value."""
    return choose_regret_range([(estimate.low, estimate.high) for estimate in (result.regret, result.textbook_regret)])


def make_tuning_plot(result: Tuning, name: str) -> PlotSpec:
    """Make the plot of regret over a parameter.

    It shows the curve if there is one, the means of the search, the tuned value and the baseline.
    """
    curve = result.find_curve(name)
    value = result.params[name]
    textbook = result.textbook_params[name]
    baseline_name = name_baseline(result)
    visited, means, _ = summarise_visits(result, name)
    bottom, top = choose_tuning_range(result)
    marks = [
        *make_posterior_marks(result, name),
        *(make_curve_marks(curve) if curve else ()),
        make_search_mark(result, name),
        *make_lower_bound_marks(result.lower_bound, "horizontal", result.regret.mean),
        make_estimate_mark(
            BLACK_COLOUR,
            "textbook",
            textbook,
            f"{baseline_name}: {name} = {format_number(textbook)}",
            result.textbook_regret,
        ),
        make_estimate_mark(TUNED_COLOUR, "tuned", value, f"tuned: {name} = {format_number(value)}", result.regret),
    ]
    values = [value, textbook, *visited.tolist(), *(curve.values.tolist() if curve else ())]
    heights = [
        *means.tolist(),
        *(curve.mean.tolist() if curve else ()),
        *([result.lower_bound.regret] if result.lower_bound else ()),
    ]
    log_low = 0.8 * min([height for height in heights if height > 0] + [max(result.regret.mean, 1e-300)])
    about = (
        f"Bayes regret over {name}. Tuned, {name} = {format_number(value)}: {format_mean_and_interval(result.regret)}. "
        f"{baseline_name[0].upper()}{baseline_name[1:]}, {name} = {format_number(textbook)}: "
        f"{format_mean_and_interval(result.textbook_regret)}."
    )
    y = PlotAxis("Bayes regret", bottom, top, log_low if result.regret.mean > 0 else None)
    return PlotSpec(
        about,
        make_axis(name, values, log=has_log_axis(result, name), margin=0.02),
        y,
        tuple(marks),
        (value, result.regret.mean),
    )


def make_curve_plot(result: Curve) -> PlotSpec:
    """Make the plot of a regret curve, with its best value on fresh instances."""
    name, best = result.parameter, result.best_regret
    textbook = name_textbook_value(name, result.setup)
    label = f"best: {name} = {format_number(result.best_value)}, on fresh instances"
    marks = (
        PlotMark(
            "vertical", GREY_COLOUR, f"{textbook}: {name} = {format_number(result.textbook)}", x=(result.textbook,)
        ),
        *make_curve_marks(result),
        make_estimate_mark(TUNED_COLOUR, "best", result.best_value, label, best),
    )
    heights = [
        *(result.mean - result.half_width).tolist(),
        *(result.mean + result.half_width).tolist(),
        best.low,
        best.high,
    ]
    about = (
        f"Bayes regret over {name}: lowest at {name} = {format_number(result.best_value)}, "
        f"regret {format_mean_and_interval(best)}."
    )
    x = make_axis(name, [*result.values.tolist(), result.textbook], log=result.log_scale, margin=0.02)
    # A band may reach below 0. The axis starts at 0, because no expected regret is below 0.
    y = make_axis("Bayes regret", [0.0, *(max(height, min(0.0, best.low)) for height in heights)])
    return PlotSpec(about, x, y, marks, (result.best_value, best.mean))


def make_curve_marks(curve: Curve) -> tuple[PlotMark, ...]:
    """Mark the curve, its 95% band, and its values as dots."""
    band = curve.half_width
    x, y = tuple(curve.values.tolist()), tuple(curve.mean.tolist())
    low, high = tuple((curve.mean - band).tolist()), tuple((curve.mean + band).tolist())
    tips = tuple(
        f"{curve.parameter} = {format_number(value)}, regret {format_number(mean)} "
        f"({format_number(lower)} to {format_number(upper)})"
        for value, mean, lower, upper in zip(x, y, low, high, strict=True)
    )
    return (
        PlotMark("band", CURVE_COLOUR, x=x, low=low, high=high),
        PlotMark("line", CURVE_COLOUR, "Bayes regret, 95% band", x=x, y=y),
        PlotMark("dots", CURVE_COLOUR, x=x, y=y, radius=(2.2,) * len(x), tips=tips),
    )


def make_comparison_plot(result: Comparison) -> PlotSpec:
    """Make the plot with one row per policy: its regret with the interval, and its textbook regret."""
    rows = list(enumerate(result.entries))
    tuned, untuned = ([(row, entry) for row, entry in rows if entry.is_tuned == which] for which in (True, False))
    marks = [
        *make_lower_bound_marks(result.lower_bound, "vertical", result.lowest_regret.mean),
        *([make_textbook_mark(tuned), make_policy_mark(tuned, TUNED_COLOUR, "tuned, 95% interval")] if tuned else ()),
        *([make_policy_mark(untuned, BLACK_COLOUR, "not tuned, 95% interval")] if untuned else ()),
    ]
    ends = [end for entry in result.entries for end in (entry.regret.low, entry.regret.high)]
    ends += [result.lower_bound.regret] if result.lower_bound else []
    across = make_axis("Bayes regret", [0.0, *ends, *(entry.textbook_regret.mean for _, entry in tuned)])
    names = tuple(entry.policy for entry in result.entries)
    about = "Policies, best first: " + "; ".join(
        f"{entry.policy}, regret {format_mean_and_interval(entry.regret)}" for entry in result.entries
    )
    down = PlotAxis("", -0.5, len(rows) - 0.5, names=names)
    return PlotSpec(about + ".", across, down, tuple(marks), (result.entries[0].regret.mean, 0.0))


def make_policy_mark(rows: Sequence[tuple[int, ComparisonEntry]], colour: int, label: str) -> PlotMark:
    """Mark regrets with their intervals, each in its row."""
    return PlotMark(
        "dots",
        colour,
        label,
        tuple(entry.regret.mean for _, entry in rows),
        tuple(float(row) for row, _ in rows),
        tuple(entry.regret.low for _, entry in rows),
        tuple(entry.regret.high for _, entry in rows),
        (4.5,) * len(rows),
        tuple(
            f"{entry.policy} {format_params(entry.params)}, regret {format_mean_and_interval(entry.regret)}"
            for _, entry in rows
        ),
        interval_axis="x",
    )


def make_textbook_mark(rows: Sequence[tuple[int, ComparisonEntry]]) -> PlotMark:
    """Mark the textbook regrets of the tuned policies."""
    return PlotMark(
        "dots",
        BLACK_COLOUR,
        "textbook",
        tuple(entry.textbook_regret.mean for _, entry in rows),
        tuple(float(row) for row, _ in rows),
        radius=(4.5,) * len(rows),
        tips=tuple(
            f"{entry.policy} with the textbook value, regret {format_mean_and_interval(entry.textbook_regret)}"
            for _, entry in rows
        ),
        hollow=True,
    )


def make_distribution_plot(spreads: Sequence[tuple[str, RegretDistribution]]) -> PlotSpec:
    """Make the plot of the share of runs with at least a given regret.

    Its axes are logarithmic, so that the few worst runs are visible too.
    """
    marks: list[PlotMark] = []
    for colour, (name, spread) in zip(SERIES_COLOURS, spreads, strict=False):
        losses, shares, tips = compute_tail_points(name, spread)
        marks.append(PlotMark("line", colour, f"{name}, mean {format_number(spread.mean)}", losses, shares))
        marks.append(PlotMark("dots", colour, "", losses, shares, radius=(2.4,) * len(losses), tips=tips))
    drawn_spreads = spreads[: len(SERIES_COLOURS)]
    about = "Share of runs with at least a given regret. " + " ".join(
        f"{name}: half have {format_number(spread.get_quantile(0.5))} or more, "
        f"1% have {format_number(spread.get_quantile(0.99))} or more, "
        f"the worst has {format_number(float(spread.values[-1]))}."
        for name, spread in drawn_spreads
    )
    log_low = 0.8 * min(share for mark in marks for share in mark.y)
    ends = [loss for mark in marks for loss in mark.x]
    across = make_axis("regret of a run", ends, log=min(ends) > 0)
    down = PlotAxis("share of runs with this regret or more", 0.0, 1.12, log_low, log=True, percent=True)
    return PlotSpec(about, across, down, tuple(marks), (drawn_spreads[0][1].get_quantile(0.99), 0.01))


def compute_tail_points(
    name: str, spread: RegretDistribution
) -> tuple[tuple[float, ...], tuple[float, ...], tuple[str, ...]]:
    """Return regrets, the share of runs with at least that regret, and tips.

    The points come from the quantiles, then from the worst runs.
    """
    below = [
        (probability, value) for probability, value in zip(spread.levels, spread.values, strict=True) if probability < 1
    ]
    # The worst runs replace the quantiles that they cover.
    below = [
        (probability, value) for probability, value in below if (1 - probability) * spread.runs > len(spread.worst_runs)
    ]
    points = [
        (
            value,
            1 - probability,
            f"{name}: {format_percent(1 - probability)} of runs have regret {format_number(value)} or more",
        )
        for probability, value in below
    ]
    for index in reversed(range(len(spread.worst_runs))):
        loss = float(spread.worst_regrets[index])
        text = (
            f"{name}: run {spread.worst_runs[index]} has regret {format_number(loss)}, rank {index + 1} from the worst"
            if index
            else (f"{name}: run {spread.worst_runs[0]} has regret {format_number(loss)}, the worst of {spread.runs:,}")
        )
        points.append((loss, (index + 1) / spread.runs, text))
    losses, shares, tips = zip(*points, strict=True)
    return tuple(map(float, losses)), tuple(map(float, shares)), tips
