"""Builds the content of a report from a result."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from banditune.core.errors import InvalidRequest
from banditune.reports import result_plots
from banditune.reports.backtest_statements import BACKTEST_HEADER, list_backtest_rows, state_backtest
from banditune.reports.comparison_statements import (
    describe_selection_bias,
    list_comparison_notes,
    list_entry_options,
    make_comparison_rows,
    state_best_policy,
)
from banditune.reports.renderers import load_renderer
from banditune.reports.repeat_section import make_provenance_section
from banditune.reports.report_content import (
    ReportContent,
    ReportSection,
    ReportTable,
    format_sentences,
    make_notes_section,
)
from banditune.reports.report_sections import (
    describe_best_rerun,
    describe_option_sources,
    format_lower_bound_sentences,
    list_lower_bound_figures,
    list_tuning_figures,
    make_curve_table_section,
    make_distribution_sections,
    make_parameter_figure,
    make_robustness_sections,
    make_tuning_sections,
)
from banditune.reports.robustness_statements import format_excess_share, state_robustness
from banditune.reports.text_formatting import (
    ASSUMPTIONS,
    describe_setup,
    describe_validation,
    format_interval,
    format_mean_and_interval,
    format_number,
    format_params,
    list_data_scope_lines,
)
from banditune.reports.tuning_statements import state_gain
from banditune.results.comparison_results import Comparison
from banditune.results.log_results import Backtest
from banditune.results.robustness_results import RobustnessReport
from banditune.results.tuning_results import Curve, Tuning


@singledispatch
def build_report_content(result: Any) -> ReportContent:
    """What there is to tell about a result."""
    if load_renderer(result):
        return build_report_content(result)
    raise InvalidRequest(
        "a tuning, a curve or a comparison can be reported, and so can a backtest, a fit, a ledger and what was computed, "
        f"but got {type(result).__name__}."
    )


@build_report_content.register
def _(result: Tuning) -> ReportContent:
    answer = (
        f"{format_params(result.params)} loses {format_number(result.regret.mean)} on average, {state_gain(result)}."
    )
    parts = (*make_tuning_sections(result), make_provenance_section(result, result.setup))
    return ReportContent(describe_setup(result.setup), answer, tuple(list_tuning_figures(result)), parts)


@build_report_content.register
def _(result: Backtest) -> ReportContent:
    words = (
        f"The problem was fitted to {result.fit.campaigns} campaigns and the policy tuned on it; {result.campaigns} "
        "others were then played as their own data have them. Intervals tell what so few campaigns leave open. All that "
        "comes after this table is about the problem that was fitted: its regret and gain are others.",
        *(f"{doubt[0].upper()}{doubt[1:]}." for doubt in result.doubts),
    )
    judged = ReportSection(
        "Campaigns that were left out", words, table=ReportTable(BACKTEST_HEADER, tuple(list_backtest_rows(result)))
    )
    difference = result.difference
    paired = (
        ()
        if difference is None
        else (("tuned minus logged", format_number(difference.mean), format_interval(difference)),)
    )
    figures = (
        ("gain on other campaigns", format_number(result.gain.mean), format_interval(result.gain)),
        ("reward a decision", format_number(result.reward.mean), f"as logged: {format_number(result.logged.mean)}"),
        *paired,
        make_parameter_figure(result.tuning),
    )
    parts = (
        judged,
        *make_notes_section("Notes", result.fit.notes),
        *make_tuning_sections(result.tuning),
        make_provenance_section(result, result.setup),
    )
    return ReportContent(describe_setup(result.setup), f"{state_backtest(result)}.", figures, parts)


@build_report_content.register
def _(result: RobustnessReport) -> ReportContent:
    words = state_robustness(result)
    worst = result.worst
    figures = (("largest loss", format_excess_share(worst), worst.words),)
    parts = (*make_robustness_sections(result), make_provenance_section(result, result.setup))
    return ReportContent(describe_setup(result.setup), f"{words[0].upper()}{words[1:]}.", figures, parts)


@build_report_content.register
def _(result: Curve) -> ReportContent:
    name, best = result.parameter, result.best_regret
    part = ReportSection(
        "Regret",
        (
            f"{result.runs:,} runs a value, the same instances for all; the best value was played again on fresh ones.",
            *describe_option_sources(result.setup),
            *format_sentences(list_data_scope_lines(result.setup)),
        ),
        result_plots.make_curve_plot(result),
    )
    figures = (
        (f"best {name}", format_number(result.best), f"theory: {format_number(result.theory)}"),
        ("regret there", format_number(best.mean), format_interval(best)),
    )
    answer = f"The regret is lowest at {name} = {format_number(result.best)}, which loses {format_mean_and_interval(best)} on fresh instances."
    return ReportContent(
        describe_setup(result.setup),
        answer,
        figures,
        (
            *make_notes_section("Warnings", result.warnings),
            part,
            *make_curve_table_section(result),
            make_provenance_section(result, result.setup),
        ),
    )


@build_report_content.register
def _(result: Comparison) -> ReportContent:
    head, *rows = make_comparison_rows(result, error="95% interval")
    table = ReportTable(head, tuple(rows), left=2)
    words = (
        f"Each tuned with {result.budget:,} runs, then all played on the same {describe_validation(result.setup, result.validated)}; "
        "differences to the best are paired, and their intervals hold for all pairs together.",
        *format_sentences(list_data_scope_lines(result.setup)),
        *format_sentences(describe_selection_bias(result)),
        *describe_best_rerun(result),
        *(f"{line}." for line in list_entry_options(result) if line),
        *(f"{note[0].upper()}{note[1:]}." for note in list_comparison_notes(result)),
        *format_sentences([ASSUMPTIONS]),
        *format_lower_bound_sentences(result.floor, result.lowest.mean),
    )
    parts = (
        *make_notes_section("Warnings", result.warnings),
        ReportSection("Policies", words, result_plots.make_comparison_plot(result), table),
        *make_distribution_sections([(entry.policy, entry.spread) for entry in result.entries]),
        make_provenance_section(result, result.setup),
    )
    best = result.entries[0]
    figures = (
        ("best policy", best.policy, format_params(best.recommended)),
        ("regret", format_number(result.lowest.mean), format_interval(result.lowest)),
        *list_lower_bound_figures(result.floor, result.lowest.mean),
    )
    return ReportContent(describe_setup(result.setup), state_best_policy(result), figures, parts)
