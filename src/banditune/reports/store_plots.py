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
"""Means in a plot; of more, those with most runs."""


MIN_DRAWN_RUNS = 10
"""Means of fewer runs than that are not drawn, unless all are."""


MIN_JOINED_VALUES = 5
"""From so many values on they are joined by a line: between few values nobody knows the regret."""


MAX_LEADER_MULTIPLE = 4
"""A line and grey dots are seen up to so many times the leader's regret; a few dots with intervals are always seen."""


def list_drawn_means(result: StoreSummary) -> list[StoredMean]:
    """All means that are drawn."""
    return [tally for _, fresh, _ in INSTANCE_KINDS for tally in select_drawn_means(result, fresh)]


def select_drawn_means(result: StoreSummary, fresh: bool) -> list[StoredMean]:
    """What is drawn: values in order that have not too few runs, and not too many of them."""
    some = select_with_runs(result.ended(fresh=fresh), MIN_DRAWN_RUNS)
    most = sorted(some, key=lambda tally: -tally.regret.runs)[:MAX_DRAWN_MEANS]
    return sorted(most, key=lambda tally: tally.params)


def make_store_plot(result: StoreSummary, place: int) -> PlotSpec:
    """Means over a parameter, search and fresh instances in colours of their own, those of few runs in grey."""
    name, first = result.parameters[place], find_leader(result)
    tallies = list_drawn_means(result)
    most = max(tally.regret.runs for tally in tallies)
    few = [tally for tally in tallies if not has_enough_runs(tally.regret)]
    label = f"means of fewer than {MIN_RANKED_RUNS} runs (area: runs)"
    marks = [make_mean_dots(result, place, few, most=most, colour=GREY_COLOUR, label=label)] if few else []
    for kind, fresh, colour in INSTANCE_KINDS:
        sure = select_with_interval(result, fresh)
        means = make_mean_dots(result, place, sure, most=most, colour=colour, label=f"{kind} instances, 95%")
        marks += make_kind_marks(result, sure, means)
    about = f"Mean regret over {name}: {state_leader(result)}"
    x = make_axis(name, [tally.params[place] for tally in tallies], room=0.02)
    bottom, top = plot_marks.choose_regret_range(list_shown_intervals(result))
    y = replace(make_axis("Bayes regret", [tally.regret.mean for tally in tallies]), low=bottom, high=top)
    return PlotSpec(about, x, y, tuple(marks), (first.params[place], first.regret.mean))


def select_with_interval(result: StoreSummary, fresh: bool) -> list[StoredMean]:
    """Those that are drawn with an interval."""
    return [tally for tally in select_drawn_means(result, fresh) if has_enough_runs(tally.regret)]


def list_shown_intervals(result: StoreSummary) -> list[tuple[float, float]]:
    """Intervals that a plot must show. A line that leaves it is seen to leave; a dot beyond its top nobody misses."""
    first = get_drawn_interval(find_leader(result).regret)
    bottom = min(0.0, first[0])
    # Where the leader never loses anything, it is no measure of the others.
    most = MAX_LEADER_MULTIPLE * (first[1] - bottom) or math.inf
    near = [tally for tally in list_drawn_means(result) if tally.regret.mean - bottom <= most]
    groups = [select_with_interval(result, fresh) for _, fresh, _ in INSTANCE_KINDS]
    alone = [tally for group in groups if len(group) < MIN_JOINED_VALUES for tally in group]
    return [first, *(get_drawn_interval(tally.regret) for tally in (*near, *alone))]


def get_drawn_interval(estimate: Estimate) -> tuple[float, float]:
    """The interval that is drawn; that of few runs is none."""
    return (estimate.low, estimate.high) if has_enough_runs(estimate) else (estimate.mean, estimate.mean)


def make_mean_dots(
    result: StoreSummary, place: int, tallies: Sequence[StoredMean], *, most: int, colour: int, label: str
) -> PlotMark:
    """A dot for each mean, with an area that grows with the runs, of which there are `most` at the largest."""
    return PlotMark(
        "dots",
        colour,
        label,
        tuple(tally.params[place] for tally in tallies),
        tuple(tally.regret.mean for tally in tallies),
        radius=tuple(2 + 3 * math.sqrt(tally.regret.runs / most) for tally in tallies),
        tips=tuple(
            f"{'fresh' if tally.fresh else 'search'}: {name_stored_value(result, tally)} loses {format_stored_mean(tally.regret)} in "
            f"{format_count(tally.regret.runs, 'run')}"
            for tally in tallies
        ),
    )


def make_kind_marks(result: StoreSummary, tallies: Sequence[StoredMean], means: PlotMark) -> Iterator[PlotMark]:
    """Band, line and dots; dots with intervals where values are few, or more than one mean stands at a place."""
    low, high = tuple(tally.regret.low for tally in tallies), tuple(tally.regret.high for tally in tallies)
    if len(result.parameters) == 1 and len(set(means.x)) == len(means.x) >= MIN_JOINED_VALUES:
        yield PlotMark("band", means.colour, x=means.x, low=low, high=high)
        yield PlotMark("line", means.colour, means.label, x=means.x, y=means.y)
        yield replace(means, label="")
    elif tallies:
        yield replace(means, low=low, high=high)


def make_growth_band(line: Sequence[StoredMean], count: int) -> Iterator[PlotMark]:
    """The leader's intervals over steps, where it has any."""
    found = [(float(tally.step), compute_simultaneous_interval(tally, count)) for tally in line]
    known = [(step, *sure) for step, sure in found if sure]
    if known:
        x, low, high = zip(*known, strict=True)
        label = "95% band" if count == 1 else "95% band for all values together"
        yield PlotMark("band", CURVE_COLOUR, label, x=x, low=low, high=high)
