"""Plots of tunings, curves, comparisons and regret distributions, as records."""

from __future__ import annotations

from collections.abc import Sequence

from banditune.reports.plot_marks import (
    BLACK_COLOUR,
    CURVE_COLOUR,
    GREY_COLOUR,
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
)
from banditune.results.comparison_results import Comparison, ComparisonEntry
from banditune.results.estimates import RegretDistribution
from banditune.results.tuning_results import Curve, Tuning

SERIES_COLOURS = (1, 2, 3, 4, 5, 6, 0)
"""Colours of several lines, in this order; more lines than that could not be told apart."""


def choose_tuning_range(result: Tuning) -> tuple[float, float]:
    """That of the tuned and theory's value."""
    return choose_regret_range([(estimate.low, estimate.high) for estimate in (result.regret, result.theory)])


def make_tuning_plot(result: Tuning) -> PlotSpec:
    """Regret over the parameter: the curve if there is one, the means of the search, the tuned and theory's value."""
    ((name, value),) = result.params.items()
    ((_, theory),) = result.theory_params.items()
    usual = name_baseline(result)
    visited, means, _ = summarise_visits(result)
    bottom, top = choose_tuning_range(result)
    marks = [
        *make_posterior_marks(result),
        *(make_curve_marks(result.curve) if result.curve else ()),
        make_search_mark(result),
        *make_lower_bound_marks(result.floor, "level"),
        make_estimate_mark(BLACK_COLOUR, "theory", theory, f"{usual}: {name} = {format_number(theory)}", result.theory),
        make_estimate_mark(TUNED_COLOUR, "tuned", value, f"tuned: {name} = {format_number(value)}", result.regret),
    ]
    places = [value, theory, *visited.tolist(), *(result.curve.values.tolist() if result.curve else ())]
    heights = [
        *means.tolist(),
        *(result.curve.mean.tolist() if result.curve else ()),
        *([result.floor.regret] if result.floor else ()),
    ]
    least = 0.8 * min([height for height in heights if height > 0] + [max(result.regret.mean, 1e-300)])
    about = (
        f"Bayes regret over {name}. Tuned, {name} = {format_number(value)} loses {format_mean_and_interval(result.regret)}; {usual}, "
        f"{name} = {format_number(theory)} loses {format_mean_and_interval(result.theory)}."
    )
    y = PlotAxis("Bayes regret", bottom, top, least if result.regret.mean > 0 else None)
    return PlotSpec(
        about,
        make_axis(name, places, log=has_log_axis(result), room=0.02),
        y,
        tuple(marks),
        (value, result.regret.mean),
    )


def make_curve_plot(result: Curve) -> PlotSpec:
    """A regret curve, with its lowest value as fresh instances have it."""
    name, best = result.parameter, result.best_regret
    label = f"best: {name} = {format_number(result.best)}, on fresh instances"
    marks = (
        PlotMark("rule", GREY_COLOUR, f"theory: {name} = {format_number(result.theory)}", x=(result.theory,)),
        *make_curve_marks(result),
        make_estimate_mark(TUNED_COLOUR, "best", result.best, label, best),
    )
    heights = [*(result.mean - result.reach).tolist(), *(result.mean + result.reach).tolist(), best.low, best.high]
    about = f"Bayes regret over {name}: lowest at {name} = {format_number(result.best)}, which loses {format_mean_and_interval(best)}."
    x = make_axis(name, [*result.values.tolist(), result.theory], log=result.log_scale, room=0.02)
    # Bands that reach below 0 are no reason to show what cannot be.
    y = make_axis("Bayes regret", [0.0, *(max(height, min(0.0, best.low)) for height in heights)])
    return PlotSpec(about, x, y, marks, (result.best, best.mean))


def make_curve_marks(curve: Curve) -> tuple[PlotMark, ...]:
    """The curve, its 95% band, and its values as dots."""
    band = curve.reach
    x, y = tuple(curve.values.tolist()), tuple(curve.mean.tolist())
    low, high = tuple((curve.mean - band).tolist()), tuple((curve.mean + band).tolist())
    tips = tuple(
        f"{curve.parameter} = {format_number(value)} loses {format_number(mean)} ({format_number(least)} to {format_number(most)})"
        for value, mean, least, most in zip(x, y, low, high, strict=True)
    )
    return (
        PlotMark("band", CURVE_COLOUR, x=x, low=low, high=high),
        PlotMark("line", CURVE_COLOUR, "Bayes regret, 95% band", x=x, y=y),
        PlotMark("dots", CURVE_COLOUR, x=x, y=y, radius=(2.2,) * len(x), tips=tips),
    )


def make_comparison_plot(result: Comparison) -> PlotSpec:
    """A row for each policy: its regret with the interval, and what it would lose as theory has it."""
    rows = list(enumerate(result.entries))
    tuned, others = ([(row, entry) for row, entry in rows if entry.tuned == which] for which in (True, False))
    marks = [
        *make_lower_bound_marks(result.floor, "rule"),
        *([make_textbook_mark(tuned), make_policy_mark(tuned, TUNED_COLOUR, "tuned, 95% interval")] if tuned else ()),
        *([make_policy_mark(others, BLACK_COLOUR, "not tuned, 95% interval")] if others else ()),
    ]
    ends = [end for entry in result.entries for end in (entry.regret.low, entry.regret.high)]
    ends += [result.floor.regret] if result.floor else []
    across = make_axis("Bayes regret", [0.0, *ends, *(entry.theory.mean for _, entry in tuned)])
    names = tuple(entry.policy for entry in result.entries)
    about = "Policies, best first: " + "; ".join(
        f"{entry.policy} loses {format_mean_and_interval(entry.regret)}" for entry in result.entries
    )
    down = PlotAxis("", -0.5, len(rows) - 0.5, names=names)
    return PlotSpec(about + ".", across, down, tuple(marks), (result.entries[0].regret.mean, 0.0))


def make_policy_mark(rows: Sequence[tuple[int, ComparisonEntry]], colour: int, label: str) -> PlotMark:
    """Regrets with their intervals, each in its row."""
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
            f"{entry.policy} {format_params(entry.params)} loses {format_mean_and_interval(entry.regret)}"
            for _, entry in rows
        ),
        along="x",
    )


def make_textbook_mark(rows: Sequence[tuple[int, ComparisonEntry]]) -> PlotMark:
    """What tuned policies would lose as theory has them."""
    return PlotMark(
        "dots",
        BLACK_COLOUR,
        "as theory has it",
        tuple(entry.theory.mean for _, entry in rows),
        tuple(float(row) for row, _ in rows),
        radius=(4.5,) * len(rows),
        tips=tuple(
            f"{entry.policy} as theory has it loses {format_mean_and_interval(entry.theory)}" for _, entry in rows
        ),
        hollow=True,
    )


def make_distribution_plot(spreads: Sequence[tuple[str, RegretDistribution]]) -> PlotSpec:
    """The share of runs that lose so much or more, on logarithmic axes: the few terrible runs are seen as well."""
    marks: list[PlotMark] = []
    for colour, (name, spread) in zip(SERIES_COLOURS, spreads, strict=False):
        losses, shares, tips = compute_tail_points(name, spread)
        marks.append(PlotMark("line", colour, f"{name}, mean {format_number(spread.mean)}", losses, shares))
        marks.append(PlotMark("dots", colour, "", losses, shares, radius=(2.4,) * len(losses), tips=tips))
    drawn = spreads[: len(SERIES_COLOURS)]
    about = "Share of runs that lose at least so much. " + " ".join(
        f"{name}: half lose {format_number(spread.at(0.5))} or more, 1% lose {format_number(spread.at(0.99))} or more, "
        f"the worst loses {format_number(float(spread.values[-1]))}."
        for name, spread in drawn
    )
    least = 0.8 * min(share for mark in marks for share in mark.y)
    ends = [loss for mark in marks for loss in mark.x]
    across = make_axis("regret of a run", ends, log=min(ends) > 0)
    down = PlotAxis("share of runs that lose so much or more", 0.0, 1.12, least, log=True, percent=True)
    return PlotSpec(about, across, down, tuple(marks), (drawn[0][1].at(0.99), 0.01))


def compute_tail_points(
    name: str, spread: RegretDistribution
) -> tuple[tuple[float, ...], tuple[float, ...], tuple[str, ...]]:
    """Regrets, the share of runs that lose so much or more, and tips: from the quantiles, then the worst runs."""
    below = [(level, value) for level, value in zip(spread.levels, spread.values, strict=True) if level < 1]
    # A quantile in the reach of the worst runs would say the same again.
    below = [(level, value) for level, value in below if (1 - level) * spread.runs > len(spread.worst)]
    found = [
        (value, 1 - level, f"{name}: {format_percent(1 - level)} of runs lose {format_number(value)} or more")
        for level, value in below
    ]
    for place in reversed(range(len(spread.worst))):
        loss = float(spread.losses[place])
        words = (
            f"{name}: run {spread.worst[place]} loses {format_number(loss)}, the worst but {place}"
            if place
            else (f"{name}: run {spread.worst[0]} loses {format_number(loss)}, the worst of {spread.runs:,}")
        )
        found.append((loss, (place + 1) / spread.runs, words))
    losses, shares, tips = zip(*found, strict=True)
    return tuple(map(float, losses)), tuple(map(float, shares)), tips
