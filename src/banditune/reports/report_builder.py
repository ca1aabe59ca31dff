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
    describe_setup,
    describe_validation,
    format_interval,
    format_mean_and_interval,
    format_number,
    format_params,
    list_data_scope_lines,
    state_assumptions,
)
from banditune.reports.tuning_statements import state_gain
from banditune.results.comparison_results import Comparison
from banditune.results.log_results import Backtest
from banditune.results.robustness_results import RobustnessReport
from banditune.results.tuning_results import Curve, Tuning


@singledispatch
def build_report_content(result: Any) -> ReportContent:
    """Build the content of the report on a result."""
    if load_renderer(result):
        return build_report_content(result)
    raise InvalidRequest(
        "a result must be a tuning, curve, comparison, robustness report, backtest, fit, store, reproduction or exact "
        f"result to be reported, but got {type(result).__name__}.",
        argument="result",
        code="wrong-type",
    )


@build_report_content.register
def _(result: Tuning) -> ReportContent:
    regret = f"regret {format_number(result.regret.mean)} on average"
    answer = f"{format_params(result.params)} has {regret}, {state_gain(result)}."
    sections = (*make_tuning_sections(result), make_provenance_section(result, result.setup))
    return ReportContent(describe_setup(result.setup), answer, tuple(list_tuning_figures(result)), sections)


@build_report_content.register
def _(result: Backtest) -> ReportContent:
    text = (
        f"The problem was fitted to {result.fit.campaigns} campaigns, and the policy was tuned on it. The policy was then "
        f"simulated on {result.campaigns} others, by their own data. The intervals are over campaigns. All sections below "
        "this table are about the fitted problem, whose regret and gain are different.",
        *(f"{doubt[0].upper()}{doubt[1:]}." for doubt in result.caveats),
        *(f"{notice[0].upper()}{notice[1:]}" for notice in result.evaluation_notices),
    )
    evaluated = ReportSection(
        "Campaigns that were left out", text, table=ReportTable(BACKTEST_HEADER, tuple(list_backtest_rows(result)))
    )
    difference = result.reward_difference
    paired = (
        ()
        if difference is None
        else (("tuned minus logged", format_number(difference.mean), format_interval(difference)),)
    )
    figures = (
        ("gain on other campaigns", format_number(result.gain.mean), format_interval(result.gain)),
        (
            "reward per decision",
            format_number(result.reward.mean),
            f"as logged: {format_number(result.logged_reward.mean)}",
        ),
        *paired,
        make_parameter_figure(result.tuning),
    )
    sections = (
        evaluated,
        *make_notes_section("Notes", result.fit.notes),
        *make_tuning_sections(result.tuning),
        make_provenance_section(result, result.setup),
    )
    return ReportContent(describe_setup(result.setup), f"{state_backtest(result)}.", figures, sections)


@build_report_content.register
def _(result: RobustnessReport) -> ReportContent:
    text = state_robustness(result)
    worst = result.worst_scenario
    figures = (("largest excess regret", format_excess_share(worst), f"{worst.description}: {worst.verdict}"),)
    assumed = ReportSection("Assumptions", tuple(format_sentences([state_assumptions(result.setup)])))
    sections = (*make_robustness_sections(result), assumed, make_provenance_section(result, result.setup))
    return ReportContent(describe_setup(result.setup), f"{text}.", figures, sections)


@build_report_content.register
def _(result: Curve) -> ReportContent:
    name, best = result.parameter, result.best_regret
    section = ReportSection(
        "Regret",
        (
            f"{result.runs:,} runs per value, the same instances for all. The best value was simulated again on fresh "
            "instances.",
            *describe_option_sources(result.setup),
            *format_sentences(list_data_scope_lines(result.setup)),
            *format_sentences([state_assumptions(result.setup)]),
        ),
        result_plots.make_curve_plot(result),
    )
    figures = (
        (f"best {name}", format_number(result.best_value), f"textbook: {format_number(result.textbook)}"),
        ("regret there", format_number(best.mean), format_interval(best)),
    )
    answer = (
        f"The regret is lowest at {name} = {format_number(result.best_value)}: {format_mean_and_interval(best)} on fresh "
        "instances."
    )
    return ReportContent(
        describe_setup(result.setup),
        answer,
        figures,
        (
            *make_notes_section("Warnings", result.notices),
            section,
            *make_curve_table_section(result),
            make_provenance_section(result, result.setup),
        ),
    )


@build_report_content.register
def _(result: Comparison) -> ReportContent:
    head, *rows = make_comparison_rows(result, error="95% interval")
    table = ReportTable(head, tuple(rows), text_columns=2)
    text = (
        f"Each policy was tuned with {result.budget:,} runs. All were then simulated on the same "
        f"{describe_validation(result.setup, result.validation_runs)}. Differences to the best are paired, and their "
        "intervals hold for all pairs together.",
        *format_sentences(list_data_scope_lines(result.setup)),
        *format_sentences(describe_selection_bias(result)),
        *describe_best_rerun(result),
        *(f"{line}." for line in list_entry_options(result) if line),
        *(f"{note[0].upper()}{note[1:]}." for note in list_comparison_notes(result)),
        *format_sentences([state_assumptions(result.setup)]),
        *format_lower_bound_sentences(result.lower_bound, result.lowest_regret.mean),
    )
    sections = (
        *make_notes_section("Warnings", result.notices),
        ReportSection("Policies", text, result_plots.make_comparison_plot(result), table),
        *make_distribution_sections([(entry.policy, entry.distribution) for entry in result.entries]),
        make_provenance_section(result, result.setup),
    )
    best = result.entries[0]
    figures = (
        ("best policy", best.policy, format_params(best.recommended_params)),
        ("regret", format_number(result.lowest_regret.mean), format_interval(result.lowest_regret)),
        *list_lower_bound_figures(result.lower_bound, result.lowest_regret.mean),
    )
    return ReportContent(describe_setup(result.setup), state_best_policy(result), figures, sections)
