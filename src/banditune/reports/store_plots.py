"""Plots of the regrets in a store, as records."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from banditune.reports import plot_marks
from banditune.reports.plot_marks import CURVE_COLOUR, GREY_COLOUR, PlotMark, PlotSpec, make_axis
from banditune.reports.store_ranking import (
    INSTANCE_KINDS,
    MIN_RANKED_RUNS,
    compute_simultaneous_interval,
    find_leader,
    format_stored_mean,
    has_enough_runs,
    name_stored_value,
    select_with_runs,
    state_leader,
)
from banditune.reports.text_formatting import format_count
from banditune.results.estimates import Estimate
from banditune.results.store_results import StoredMean, StoreSummary

MAX_DRAWN_MEANS = 500
"""The most means in a plot. If there are more, those with most runs are drawn."""


MIN_DRAWN_RUNS = 10
"""Means of fewer runs are not drawn, unless all have fewer."""


MIN_JOINED_VALUES = 5
"""The fewest values whose dots are joined by a line. Between fewer values, the curve is unknown."""


MAX_LEADER_MULTIPLE = 4
"""Lines and grey dots above this multiple of the lowest regret are outside the plot; dots with intervals never are."""


def list_drawn_means(result: StoreSummary) -> list[StoredMean]:
    """List all means that are drawn."""
    return [stored for _, fresh, _ in INSTANCE_KINDS for stored in select_drawn_means(result, fresh)]


def select_drawn_means(result: StoreSummary, fresh: bool) -> list[StoredMean]:
    """Select the means that are drawn, in the order of their parameters."""
    candidates = select_with_runs(result.select_final(fresh=fresh), MIN_DRAWN_RUNS)
    drawn_means = sorted(candidates, key=lambda stored: -stored.regret.runs)[:MAX_DRAWN_MEANS]
    return sorted(drawn_means, key=lambda stored: stored.params)


def make_store_plot(result: StoreSummary, column: int) -> PlotSpec:
    """Make the plot of means over a parameter.

    Search and fresh instances have different colours; means of few runs are grey.
    """
    name, first = result.parameters[column], find_leader(result)
    stored_means = list_drawn_means(result)
    max_runs = max(stored.regret.runs for stored in stored_means)
    uncertain = [stored for stored in stored_means if not has_enough_runs(stored.regret)]
    label = f"means of fewer than {MIN_RANKED_RUNS} runs (area: runs)"
    marks = (
        [make_mean_dots(result, column, uncertain, max_runs=max_runs, colour=GREY_COLOUR, label=label)]
        if uncertain
        else []
    )
    for kind, fresh, colour in INSTANCE_KINDS:
        sure = select_with_interval(result, fresh)
        means = make_mean_dots(result, column, sure, max_runs=max_runs, colour=colour, label=f"{kind} instances, 95%")
        marks += make_kind_marks(result, sure, means)
    about = f"Mean regret over {name}: {state_leader(result)}"
    x = make_axis(name, [stored.params[column] for stored in stored_means], margin=0.02)
    bottom, top = plot_marks.choose_regret_range(list_shown_intervals(result))
    y = replace(make_axis("Bayes regret", [stored.regret.mean for stored in stored_means]), low=bottom, high=top)
    return PlotSpec(about, x, y, tuple(marks), (first.params[column], first.regret.mean))


def select_with_interval(result: StoreSummary, fresh: bool) -> list[StoredMean]:
    """Select the means that are drawn with an interval."""
    return [stored for stored in select_drawn_means(result, fresh) if has_enough_runs(stored.regret)]


def list_shown_intervals(result: StoreSummary) -> list[tuple[float, float]]:
    """List the intervals that a plot must show. Lines may leave the plot; dots with intervals may not."""
    first = get_drawn_interval(find_leader(result).regret)
    bottom = min(0.0, first[0])
    # If the lowest regret is 0, its multiples are no limit.
    limit = MAX_LEADER_MULTIPLE * (first[1] - bottom) or math.inf
    nearby = [stored for stored in list_drawn_means(result) if stored.regret.mean - bottom <= limit]
    groups = [select_with_interval(result, fresh) for _, fresh, _ in INSTANCE_KINDS]
    alone = [stored for group in groups if len(group) < MIN_JOINED_VALUES for stored in group]
    return [first, *(get_drawn_interval(stored.regret) for stored in (*nearby, *alone))]


def get_drawn_interval(estimate: Estimate) -> tuple[float, float]:
    """Return the interval that is drawn; of few runs, only the mean."""
    return (estimate.low, estimate.high) if has_enough_runs(estimate) else (estimate.mean, estimate.mean)


def make_mean_dots(
    result: StoreSummary, column: int, stored_means: Sequence[StoredMean], *, max_runs: int, colour: int, label: str
) -> PlotMark:
    """Mark each mean with a dot that grows with its runs. `max_runs` is the largest number of runs."""
    return PlotMark(
        "dots",
        colour,
        label,
        tuple(stored.params[column] for stored in stored_means),
        tuple(stored.regret.mean for stored in stored_means),
        radius=tuple(2 + 3 * math.sqrt(stored.regret.runs / max_runs) for stored in stored_means),
        tips=tuple(
            f"{'fresh' if stored.fresh else 'search'}: {name_stored_value(result, stored)}, "
            f"regret {format_stored_mean(stored.regret)} in {format_count(stored.regret.runs, 'run')}"
            for stored in stored_means
        ),
    )


def make_kind_marks(result: StoreSummary, stored_means: Sequence[StoredMean], means: PlotMark) -> Iterator[PlotMark]:
    """Mark means by band, line and dots; by dots with intervals if there are few, or several at one value."""
    low, high = (
        tuple(stored.regret.low for stored in stored_means),
        tuple(stored.regret.high for stored in stored_means),
    )
    if len(result.parameters) == 1 and len(set(means.x)) == len(means.x) >= MIN_JOINED_VALUES:
        yield PlotMark("band", means.colour, x=means.x, low=low, high=high)
        yield PlotMark("line", means.colour, means.label, x=means.x, y=means.y)
        yield replace(means, label="")
    elif stored_means:
        yield replace(means, low=low, high=high)


def make_growth_band(line: Sequence[StoredMean], count: int) -> Iterator[PlotMark]:
    """Mark the intervals of the lowest mean over steps, if it has any."""
    intervals = [(float(stored.step), compute_simultaneous_interval(stored, count)) for stored in line]
    intervals_by_step = [(step, *sure) for step, sure in intervals if sure]
    if intervals_by_step:
        x, low, high = zip(*intervals_by_step, strict=True)
        label = "95% band" if count == 1 else "95% band for all values together"
        yield PlotMark("band", CURVE_COLOUR, label, x=x, low=low, high=high)
