"""The report on one setup of a store: as text, as sections with plots, as a figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from banditune.reports import figures, result_plots
from banditune.reports.plain_text import format_text
from banditune.reports.plot_marks import CURVE_COLOUR, PlotAxis, PlotMark, PlotSpec, make_axis
from banditune.reports.report_builder import build_report_content
from banditune.reports.report_content import ReportContent, ReportSection, ReportTable
from banditune.reports.store_plots import MAX_DRAWN_MEANS, list_drawn_means, make_growth_band, make_store_plot
from banditune.reports.store_ranking import (
    INSTANCE_KINDS,
    MIN_RANKED_RUNS,
    compute_simultaneous_interval,
    count_ranked,
    describe_stored_runs,
    describe_stored_setup,
    find_leader,
    has_enough_runs,
    list_leader_distributions,
    name_stored_value,
    rank_stored_means,
    state_leader,
)
from banditune.reports.text_formatting import format_count, format_number, format_percent, format_text_table
from banditune.results.store_results import StoredMean, StoreSummary

MAX_BEST_ROWS, MAX_TABLE_ROWS = 10, 200
"""Values shown as the best ones, and in the whole table; of more, those with most runs."""


SELECTION_NOTE = (
    "Values that a search preferred, and the lowest of many means, were chosen by looking at these numbers: they look "
    "better than they are (the winner's curse), the more so the fewer runs they have. Fresh instances (runs from 2^40 on), "
    "on which no search looked, are told apart; the lowest of several means is too low there as well. What a search "
    "answered is in its result: the ledger does not hold it."
)


@format_text.register
def _(result: StoreSummary) -> str:
    lines = [describe_stored_setup(result), "", state_leader(result)]
    for name, fresh, _ in INSTANCE_KINDS:
        ranked = rank_stored_means(result.ended(fresh=fresh))
        if ranked:
            shown = make_best_table(result, ranked)
            lines += ["", f"lowest means, {name} instances", format_text_table([shown.head, *shown.rows], left=())]
    return "\n".join(
        [
            *lines,
            "",
            f"{describe_stored_runs(result)}; {result.regret} regret, seed {result.seed}, on the {result.device}",
        ]
    )


@build_report_content.register
def _(result: StoreSummary) -> ReportContent:
    parts = [
        *(make_parameter_section(result, place) for place in range(len(result.parameters))),
        *make_lowest_sections(result),
        *make_quantiles_section(result),
        *make_growth_section(result),
        *make_all_values_sections(result),
        make_store_provenance(result),
    ]
    return ReportContent(
        describe_stored_setup(result), state_leader(result), tuple(list_store_figures(result)), tuple(parts)
    )


@figures.draw_result.register
def _(result: StoreSummary, axes: Any) -> None:
    plot = (
        make_store_plot(result, 0)
        if result.parameters
        else result_plots.make_distribution_plot(list_leader_distributions(result))
    )
    figures.draw_plot_spec(plot, axes, describe_stored_setup(result))


def list_store_figures(result: StoreSummary) -> Iterator[tuple[str, str, str]]:
    """Figures at the top."""
    first = find_leader(result)
    kind = "fresh" if first.fresh else "search"
    if len(result.parameters) == 1:
        yield result.parameters[0], format_number(first.params[0]), f"lowest mean on {kind} instances"
    yield make_leader_figure(result, first)
    yield (
        "1 run in 100 loses",
        format_number(first.spread.at(0.99)),
        f"or more; half lose {format_number(first.spread.at(0.5))} or more",
    )
    runs = sum(tally.regret.runs for fresh in (False, True) for tally in result.ended(fresh=fresh))
    yield "runs in all", f"{runs:,}", f"{len({tally.params for tally in result.tallies}):,} values"


def make_leader_figure(result: StoreSummary, first: StoredMean) -> tuple[str, str, str]:
    """What the leader loses, as far as that is known."""
    mean, count = format_number(first.regret.mean), count_ranked(result)
    sure = compute_simultaneous_interval(first, count)
    reach = f"95%: {format_number(sure[0])} to {format_number(sure[1])}" if sure else ""
    if count == 1:
        return "regret", mean, reach or f"of {format_count(first.regret.runs, 'run')}"
    return "lowest mean", mean, f"likely too low; {reach} for all values together" if reach else "likely too low"


def make_parameter_section(result: StoreSummary, place: int) -> ReportSection:
    """Regret over one of the parameters; what is to be known about all of these plots is said once."""
    words = () if place else tuple(describe_store_plots(result))
    return ReportSection(f"Regret over {result.parameters[place]}", words, make_store_plot(result, place))


def describe_store_plots(result: StoreSummary) -> Iterator[str]:
    """How to read the plots."""
    yield (
        f"{describe_stored_runs(result)}. Bands and bars are 95% intervals of the means, of each value by itself; the larger a dot, the "
        "more runs."
    )
    yield SELECTION_NOTE
    if any(not has_enough_runs(tally.regret) for tally in list_drawn_means(result)):
        yield (
            f"Grey means have fewer than {MIN_RANKED_RUNS} runs and no interval: what is rare and terrible may not have happened to "
            "them yet."
        )
    if len(result.parameters) > 1:
        yield "The other parameters vary from dot to dot."
    hidden = sum(len(result.ended(fresh=fresh)) for _, fresh, _ in INSTANCE_KINDS) - len(list_drawn_means(result))
    if hidden:
        yield f"Not drawn: {format_count(hidden, 'mean')} of few runs, or beyond the {MAX_DRAWN_MEANS} with most runs."


def make_lowest_sections(result: StoreSummary) -> Iterator[ReportSection]:
    """The best values, search and fresh instances apart."""
    for kind, fresh, _ in reversed(INSTANCE_KINDS):
        ranked = rank_stored_means(result.ended(fresh=fresh))
        if not ranked:
            continue
        runs = [tally.regret.runs for tally in ranked]
        words = []
        if len(ranked) < len(result.ended(fresh=fresh)):
            words.append(
                f"{format_count(len(ranked), 'value')} with {format_count(min(runs), 'run')} or more; others are too noisy to be "
                "ranked."
            )
        if len(ranked) > 1:
            words.append(
                "Chosen by looking: the first of them is likely to lose more than it says here. Intervals are of each "
                "value by itself."
            )
        if max(runs) < MIN_RANKED_RUNS:
            words.append(f"No value has {MIN_RANKED_RUNS} runs: all of this is noisy.")
        yield ReportSection(f"Lowest means on {kind} instances", tuple(words), table=make_best_table(result, ranked))


def make_best_table(result: StoreSummary, ranked: Sequence[StoredMean]) -> ReportTable:
    """The first of them in numbers."""
    return make_values_table(result, ranked[:MAX_BEST_ROWS])


def make_values_table(result: StoreSummary, tallies: Sequence[StoredMean]) -> ReportTable:
    """A row for each, with the number of its noise where it has its own."""
    own = [str(tally.noise) for tally in tallies] if result.noise == "own" else []
    rows = [
        (
            *map(format_number, tally.params),
            *own[place : place + 1],
            f"{tally.regret.runs:,}",
            format_number(tally.regret.mean),
            format_number(tally.regret.se) if tally.regret.runs > 1 else "",
            f"{format_number(tally.regret.low)} to {format_number(tally.regret.high)}"
            if has_enough_runs(tally.regret)
            else "",
            format_number(tally.spread.at(0.5)),
            format_number(tally.spread.at(0.99)),
        )
        for place, tally in enumerate(tallies)
    ]
    head = (*result.parameters, *["noise"] * bool(own), "runs", "regret", "std. error", "95% interval", "median", "99%")
    return ReportTable(head, tuple(rows), left=0)


def make_quantiles_section(result: StoreSummary) -> Iterator[ReportSection]:
    """Quantiles at the lowest means."""
    found = list_leader_distributions(result)
    levels = found[0][1].levels.tolist()
    rows = [
        ("all" if level == 1 else format_percent(level), *(format_number(spread.at(level)) for _, spread in found))
        for level in levels
    ]
    rows += [
        ("mean", *(format_number(spread.mean) for _, spread in found)),
        ("runs", *(f"{s.runs:,}" for _, s in found)),
    ]
    words = (
        "At the lowest mean of each kind of instances. The plot shows which share of the runs loses so much or more: to "
        "the right and up is worse. The table shows what so many of the runs lose at most.",
    )
    quantiles = ReportTable(("runs", *(name for name, _ in found)), tuple(rows))
    yield ReportSection("How single runs lose", words, result_plots.make_distribution_plot(found), quantiles)


def make_growth_section(result: StoreSummary) -> Iterator[ReportSection]:
    """Regret over steps at the best value, where it was counted more than once."""
    if len(result.steps) == 1:
        return
    first = find_leader(result)
    same = [t for t in result.tallies if (t.params, t.noise, t.fresh) == (first.params, first.noise, first.fresh)]
    line = sorted(same, key=lambda tally: tally.step)
    x, y = tuple(float(tally.step) for tally in line), tuple(tally.regret.mean for tally in line)
    tips = tuple(f"after {tally.step:,} steps: {format_number(tally.regret.mean)}" for tally in line)
    marks = (
        *make_growth_band(line, count_ranked(result)),
        PlotMark("line", CURVE_COLOUR, name_stored_value(result, first), x=x, y=y),
        PlotMark("dots", CURVE_COLOUR, x=x, y=y, radius=(3.0,) * len(x), tips=tips),
    )
    heights = [height for mark in marks for height in (*mark.y, *mark.low, *mark.high)]
    about = f"Mean regret over steps: {tips[-1]}."
    across = PlotAxis("step", 0.0, 1.02 * x[-1], 0.85 * x[0], whole=True)
    plot = PlotSpec(about, across, make_axis("Bayes regret", [0.0, *heights]), marks, (x[-1], y[-1]))
    yield ReportSection(
        "Regret as the run goes on", (f"{name_stored_value(result, first)}, the value of the headline.",), plot
    )


def make_all_values_sections(result: StoreSummary) -> Iterator[ReportSection]:
    """All means as tables that open by a click, up to a length that can be read."""
    for kind, fresh, _ in INSTANCE_KINDS:
        tallies = sorted(result.ended(fresh=fresh), key=lambda tally: (tally.params, tally.noise))
        if len(tallies) < 2:
            continue
        words = (f"The first {MAX_TABLE_ROWS} of {len(tallies):,}.",) if len(tallies) > MAX_TABLE_ROWS else ()
        title = f"All values on {kind} instances"
        yield ReportSection("", words, table=make_values_table(result, tallies[:MAX_TABLE_ROWS]), folded=title)


def make_store_provenance(result: StoreSummary) -> ReportSection:
    """What was played, and by what."""
    rows = (
        ("policy", result.policy),
        ("problem", result.problem),
        ("horizon", f"{result.horizon:,}"),
        ("counted after", ", ".join(f"{step:,}" for step in result.steps[:20]) + " steps"),
        ("regret", result.regret),
        ("reward noise", result.noise),
        ("played by", "the plain loop" if result.play == "plain" else result.play),
        ("device", f"{result.device}, in {result.precision}"),
        ("seed", str(result.seed)),
        ("first played with", result.versions or "unknown"),
        ("setup", f"number {result.number} of its ledger"),
    )
    return ReportSection("How this was played", (), None, ReportTable(("", ""), rows, left=2))
