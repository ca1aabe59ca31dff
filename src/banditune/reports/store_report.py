"""The report on one setup of a store: as text, as sections with plots, as a figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from banditune.reports import figures, result_plots
from banditune.reports.plain_text import format_text, name_algorithm
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
"""The most rows in the table of the lowest means, and in the table of all values."""


SELECTION_NOTE = (
    "Values that a search preferred, and the lowest of many means, were selected by these numbers. Their regret is biased "
    "downwards (the winner's curse), in particular with few runs. Fresh instances (runs from 2^40 on), which no search "
    "used, are shown separately. The lowest of several means is too low there as well. The answer of a search is in its "
    "result, not in the store."
)


@format_text.register
def _(result: StoreSummary) -> str:
    lines = [describe_stored_setup(result), "", state_leader(result)]
    for name, fresh, _ in INSTANCE_KINDS:
        ranked = rank_stored_means(result.select_final(fresh=fresh))
        if ranked:
            table = make_best_table(result, ranked)
            lines += ["", f"lowest means, {name} instances", format_text_table([table.header, *table.rows], left=())]
    return "\n".join(
        [
            *lines,
            "",
            f"{describe_stored_runs(result)}; {result.regret_kind} regret, seed {result.seed}, on the {result.device}",
        ]
    )


@build_report_content.register
def _(result: StoreSummary) -> ReportContent:
    sections = [
        *(make_parameter_section(result, column) for column in range(len(result.parameters))),
        *make_lowest_sections(result),
        *make_quantiles_section(result),
        *make_growth_section(result),
        *make_all_values_sections(result),
        make_store_provenance(result),
    ]
    return ReportContent(
        describe_stored_setup(result), state_leader(result), tuple(list_store_figures(result)), tuple(sections)
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
    """List the key figures."""
    first = find_leader(result)
    kind = "fresh" if first.fresh else "search"
    if len(result.parameters) == 1:
        yield result.parameters[0], format_number(first.params[0]), f"lowest mean on {kind} instances"
    yield make_leader_figure(result, first)
    yield (
        "regret of 1 run in 100",
        format_number(first.distribution.get_quantile(0.99)),
        f"or more; half have {format_number(first.distribution.get_quantile(0.5))} or more",
    )
    runs = sum(stored.regret.runs for fresh in (False, True) for stored in result.select_final(fresh=fresh))
    yield "all runs", f"{runs:,}", f"{len({stored.params for stored in result.stored_means}):,} values"


def make_leader_figure(result: StoreSummary, first: StoredMean) -> tuple[str, str, str]:
    """Make the key figure of the lowest mean, with its interval if there is one."""
    mean, count = format_number(first.regret.mean), count_ranked(result)
    sure = compute_simultaneous_interval(first, count)
    reach = f"95%: {format_number(sure[0])} to {format_number(sure[1])}" if sure else ""
    if count == 1:
        return "regret", mean, reach or f"of {format_count(first.regret.runs, 'run')}"
    return "lowest mean", mean, f"likely too low; {reach} for all values together" if reach else "likely too low"


def make_parameter_section(result: StoreSummary, column: int) -> ReportSection:
    """Make the section on regret over one parameter. Only the first one explains the plots."""
    paragraphs = () if column else tuple(describe_store_plots(result))
    return ReportSection(f"Regret over {result.parameters[column]}", paragraphs, make_store_plot(result, column))


def describe_store_plots(result: StoreSummary) -> Iterator[str]:
    """Explain how to read the plots."""
    yield (
        f"{describe_stored_runs(result)}. Bands and bars are 95% intervals of the means, for each value by itself. Larger "
        "dots have more runs."
    )
    yield SELECTION_NOTE
    if any(not has_enough_runs(stored.regret) for stored in list_drawn_means(result)):
        yield (
            f"Grey means have fewer than {MIN_RANKED_RUNS} runs and no interval: rare runs with high regret may be "
            "missing."
        )
    if len(result.parameters) > 1:
        yield "The other parameters differ between dots."
    hidden = sum(len(result.select_final(fresh=fresh)) for _, fresh, _ in INSTANCE_KINDS) - len(
        list_drawn_means(result)
    )
    if hidden:
        yield f"Not drawn: {format_count(hidden, 'mean')} of few runs, or beyond the {MAX_DRAWN_MEANS} with most runs."


def make_lowest_sections(result: StoreSummary) -> Iterator[ReportSection]:
    """Make the sections on the lowest means, for search and fresh instances separately."""
    for kind, fresh, _ in reversed(INSTANCE_KINDS):
        ranked = rank_stored_means(result.select_final(fresh=fresh))
        if not ranked:
            continue
        runs = [stored.regret.runs for stored in ranked]
        paragraphs = []
        if len(ranked) < len(result.select_final(fresh=fresh)):
            paragraphs.append(
                f"{format_count(len(ranked), 'value')} with {format_count(min(runs), 'run')} or more; others have too few "
                "runs to be ranked."
            )
        if len(ranked) > 1:
            paragraphs.append(
                "The values were selected by these numbers: the regret of the first one is likely higher than shown. "
                "Intervals are for each value by itself."
            )
        if max(runs) < MIN_RANKED_RUNS:
            paragraphs.append(f"No value has {MIN_RANKED_RUNS} runs: all means are noisy.")
        yield ReportSection(
            f"Lowest means on {kind} instances", tuple(paragraphs), table=make_best_table(result, ranked)
        )


def make_best_table(result: StoreSummary, ranked: Sequence[StoredMean]) -> ReportTable:
    """Make the table of the lowest means."""
    return make_values_table(result, ranked[:MAX_BEST_ROWS])


def make_values_table(result: StoreSummary, stored_means: Sequence[StoredMean]) -> ReportTable:
    """Make a row for each mean, with the number of its noise stream if random numbers are not common."""
    streams = [str(stored.noise_stream) for stored in stored_means] if not result.common_random_numbers else []
    rows = [
        (
            *map(format_number, stored.params),
            *streams[column : column + 1],
            f"{stored.regret.runs:,}",
            format_number(stored.regret.mean),
            format_number(stored.regret.se) if stored.regret.runs > 1 else "",
            f"{format_number(stored.regret.low)} to {format_number(stored.regret.high)}"
            if has_enough_runs(stored.regret)
            else "",
            format_number(stored.distribution.get_quantile(0.5)),
            format_number(stored.distribution.get_quantile(0.99)),
        )
        for column, stored in enumerate(stored_means)
    ]
    head = (
        *result.parameters,
        *["noise"] * bool(streams),
        "runs",
        "regret",
        "std. error",
        "95% interval",
        "median",
        "99%",
    )
    return ReportTable(head, tuple(rows), text_columns=0)


def make_quantiles_section(result: StoreSummary) -> Iterator[ReportSection]:
    """Make the section on the regret distributions at the lowest means."""
    distributions = list_leader_distributions(result)
    levels = distributions[0][1].levels.tolist()
    rows = [
        (
            "all" if probability == 1 else format_percent(probability),
            *(format_number(spread.get_quantile(probability)) for _, spread in distributions),
        )
        for probability in levels
    ]
    rows += [
        ("mean", *(format_number(spread.mean) for _, spread in distributions)),
        ("runs", *(f"{s.runs:,}" for _, s in distributions)),
    ]
    paragraphs = (
        "At the lowest mean of each kind of instances. The plot shows the share of runs with at least a given regret: to "
        "the right and up is worse. The table shows the regret that each share of the runs does not exceed.",
    )
    quantiles = ReportTable(("runs", *(name for name, _ in distributions)), tuple(rows))
    yield ReportSection(
        "Regret of single runs", paragraphs, result_plots.make_distribution_plot(distributions), quantiles
    )


def make_growth_section(result: StoreSummary) -> Iterator[ReportSection]:
    """Make the section on regret over steps at the lowest mean, if there are several checkpoints."""
    if len(result.checkpoints) == 1:
        return
    first = find_leader(result)
    same_value = [
        t
        for t in result.stored_means
        if (t.params, t.noise_stream, t.fresh) == (first.params, first.noise_stream, first.fresh)
    ]
    line = sorted(same_value, key=lambda stored: stored.step)
    x, y = tuple(float(stored.step) for stored in line), tuple(stored.regret.mean for stored in line)
    tips = tuple(f"after {stored.step:,} steps: {format_number(stored.regret.mean)}" for stored in line)
    marks = (
        *make_growth_band(line, count_ranked(result)),
        PlotMark("line", CURVE_COLOUR, name_stored_value(result, first), x=x, y=y),
        PlotMark("dots", CURVE_COLOUR, x=x, y=y, radius=(3.0,) * len(x), tips=tips),
    )
    heights = [height for mark in marks for height in (*mark.y, *mark.low, *mark.high)]
    about = f"Mean regret over steps: {tips[-1]}."
    across = PlotAxis("step", 0.0, 1.02 * x[-1], 0.85 * x[0], integer_ticks=True)
    plot = PlotSpec(about, across, make_axis("Bayes regret", [0.0, *heights]), marks, (x[-1], y[-1]))
    yield ReportSection("Regret over steps", (f"{name_stored_value(result, first)}, the value in the headline.",), plot)


def make_all_values_sections(result: StoreSummary) -> Iterator[ReportSection]:
    """Make tables of all means that open by a click, with at most `MAX_TABLE_ROWS` rows."""
    for kind, fresh, _ in INSTANCE_KINDS:
        stored_means = sorted(result.select_final(fresh=fresh), key=lambda stored: (stored.params, stored.noise_stream))
        if len(stored_means) < 2:
            continue
        paragraphs = (
            (f"The first {MAX_TABLE_ROWS} of {len(stored_means):,}.",) if len(stored_means) > MAX_TABLE_ROWS else ()
        )
        title = f"All values on {kind} instances"
        yield ReportSection(
            "", paragraphs, table=make_values_table(result, stored_means[:MAX_TABLE_ROWS]), fold_title=title
        )


def make_store_provenance(result: StoreSummary) -> ReportSection:
    """Make the section on how the regrets were simulated."""
    rows = (
        ("policy", result.policy),
        ("problem", result.problem),
        ("horizon", f"{result.horizon:,}"),
        ("counted after", ", ".join(f"{step:,}" for step in result.checkpoints[:20]) + " steps"),
        ("regret", result.regret_kind),
        ("common random numbers", "yes" if result.common_random_numbers else "no"),
        ("simulated by", name_algorithm(result.shortcut)),
        ("device", f"{result.device}, in {result.dtype}"),
        ("seed", str(result.seed)),
        ("first simulated with", result.versions or "unknown"),
        ("setup", f"number {result.setup_id} of its store"),
    )
    return ReportSection("How this was simulated", (), None, ReportTable(("", ""), rows, text_columns=2))
