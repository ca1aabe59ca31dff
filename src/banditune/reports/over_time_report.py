"""Regret over time as text, as report content and as a figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from banditune.core.messages import Message, join_messages
from banditune.reports import figures
from banditune.reports.over_time_plots import (
    choose_table_steps,
    list_regret_lines,
    make_difference_plot,
    make_over_time_plot,
)
from banditune.reports.plain_text import format_text
from banditune.reports.repeat_section import make_provenance_section
from banditune.reports.report_builder import build_report_content
from banditune.reports.report_content import (
    ReportContent,
    ReportSection,
    ReportTable,
    format_sentences,
    make_notes_section,
)
from banditune.reports.report_sections import describe_option_sources
from banditune.reports.text_formatting import (
    describe_config,
    describe_device,
    describe_setup,
    format_count,
    format_interval,
    format_mean_and_error,
    format_mean_and_interval,
    format_number,
    format_params,
    format_text_table,
    list_data_scope_lines,
    list_problem_options,
    state_assumptions,
)
from banditune.results.over_time_results import RegretOverTime, RegretSeries, StepEstimates


@format_text.register
def _(result: RegretOverTime) -> str:
    differences = [list_difference_header(result), *list_difference_rows(result, " +- ")]
    return join_messages(
        "\n",
        [
            describe_setup(result.setup),
            *list_problem_options(result.setup),
            *list_series_options(result),
            "",
            state_final_regrets(result),
            "",
            format_text_table([list_regret_header(result), *list_regret_rows(result, " +- ")], left=(0, 1)),
            *(["", format_text_table(differences)] if len(differences) > 1 else []),
            *list_data_scope_lines(result.setup),
            "",
            *(Message("warning: {}", warning) for warning in result.notices),
            f"{describe_runs(result)}, means +- standard errors; {result.setup.regret_kind} regret, seed "
            f"{result.setup.seed}{describe_device(result.setup)}",
            state_assumptions(result.setup),
        ],
    )


@build_report_content.register
def _(result: RegretOverTime) -> ReportContent:
    text = (
        f"Means over {describe_runs(result)}. Bands are 95% intervals, each for its step alone.",
        *describe_option_sources(result.setup),
        *format_sentences(list_series_options(result)),
        *format_sentences(list_data_scope_lines(result.setup)),
        *format_sentences([state_assumptions(result.setup)]),
    )
    table = ReportTable(list_regret_header(result), tuple(list_regret_rows(result, " ± ")), text_columns=2)
    sections = (
        *make_notes_section("Warnings", result.notices),
        ReportSection("Regret", text, make_over_time_plot(list_regret_lines(result), tips=True), table),
        *make_difference_section(result),
        make_provenance_section(result, result.setup, list_series_rows(result)),
    )
    key_figures = tuple(
        (one.label, format_number(float(one.regret.mean[-1])), format_interval(result.get_regret(one.label)))
        for one in result.series
    )
    return ReportContent(describe_setup(result.setup), state_final_regrets(result), key_figures, sections)


@figures.draw_result.register
def _(result: RegretOverTime, axes: Any) -> None:
    figures.draw_plot_spec(make_over_time_plot(list_regret_lines(result)), axes, describe_setup(result.setup))


def make_difference_section(result: RegretOverTime) -> Iterator[ReportSection]:
    """Make the section on paired differences, if there is more than one series."""
    rows = tuple(list_difference_rows(result, " ± "))
    if rows:
        paragraphs = (f"The regret minus that of {result.reference}, paired by instance.",)
        table = ReportTable(list_difference_header(result), rows)
        yield ReportSection("Differences", paragraphs, make_difference_plot(result), table)


def describe_runs(result: RegretOverTime) -> str:
    """Describe on what the means are taken, as 1,000 runs of each series on the same instances."""
    units = "" if result.unit == "run" else f" on {format_count(result.unit_count, result.unit)}"
    return f"{format_count(result.runs, 'run')}{units}, the same instances for all"


def state_final_regrets(result: RegretOverTime) -> str:
    """State the regret after the last step, with the paired difference if there are two series."""
    labels = [one.label for one in result.series]
    after = f"After {format_count(result.steps[-1], 'step')}"
    if len(labels) == 1:
        return f"{after} {labels[0]} has regret {format_mean_and_interval(result.get_regret(labels[0]))}."
    if len(labels) > 2 or result.reference not in labels:
        best = min(labels, key=lambda label: result.get_regret(label).mean)
        regret = format_mean_and_interval(result.get_regret(best))
        return f"{after} {best} has the lowest of {len(labels)} regrets, {regret}."
    (other,) = (label for label in labels if label != result.reference)
    difference = result.get_difference(other)
    low, high = sorted((abs(difference.low), abs(difference.high)))
    begin = (
        f"{after} {result.reference} has regret {format_number(result.get_regret(result.reference).mean)}, and {other}"
    )
    if difference.low <= 0 <= difference.high:
        interval = f"{format_number(difference.low)} to {format_number(difference.high)}"
        return f"{begin} may have as much: the difference is {format_number(difference.mean)} ({interval})."
    interval = f"{format_number(low)} to {format_number(high)}"
    return f"{begin} {format_number(abs(difference.mean))} ({interval}) {'more' if difference.mean > 0 else 'less'}."


def list_series_rows(result: RegretOverTime) -> list[tuple[str, str]]:
    """List policy and parameters of each series, and the instances, for the section on how to repeat the result."""
    rows = [
        (one.label, ", ".join(filter(None, [describe_config(one.policy_config), format_params(one.params)])))
        for one in result.series
    ]
    return [*rows, ("runs", f"{result.runs:,}"), ("first instance", str(result.first_instance))]


def list_series_options(result: RegretOverTime) -> Iterator[str]:
    """List the options of series whose policy differs from the first one of the same name."""
    first: dict[str, Mapping[str, Any]] = {}
    for one in result.series:
        if first.setdefault(one.policy, one.policy_config) != one.policy_config:
            yield f"{one.label} is {describe_config(one.policy_config)}, not {describe_config(first[one.policy])}"


def list_regret_header(result: RegretOverTime) -> tuple[str, ...]:
    """List the header of the table of regrets."""
    return ("regret after step", "parameters", *(f"{step:,}" for step in choose_table_steps(result.steps)))


def list_regret_rows(result: RegretOverTime, sign: str) -> Iterator[tuple[str, ...]]:
    """List the row of each series: its regret after some steps."""
    for one in result.series:
        yield one.label, format_params(one.params), *format_step_cells(result, one.regret, sign)


def list_difference_header(result: RegretOverTime) -> tuple[str, ...]:
    """List the header of the table of differences."""
    return (f"minus {result.reference}", *(f"{step:,}" for step in choose_table_steps(result.steps)))


def list_difference_rows(result: RegretOverTime, sign: str) -> Iterator[tuple[str, ...]]:
    """List the row of each series except the reference: its paired difference after some steps."""
    for one in list_compared_series(result):
        yield one.label, *format_step_cells(result, one.difference_to_reference, sign)


def list_compared_series(result: RegretOverTime) -> Sequence[RegretSeries]:
    """List the series except the reference."""
    return [one for one in result.series if one.label != result.reference]


def format_step_cells(result: RegretOverTime, estimates: StepEstimates, sign: str) -> Iterator[str]:
    """Format means with standard errors after the steps of a table."""
    for step in choose_table_steps(result.steps):
        index = result.steps.index(step)
        yield format_mean_and_error(float(estimates.mean[index]), float(estimates.se[index]), sign)
