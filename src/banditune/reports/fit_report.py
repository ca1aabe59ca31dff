"""Reports on fits of past logs: as text, as report content with a plot, and as a figure."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from typing import Any

from banditune.core.messages import Message, join_messages
from banditune.reports import figures, repeat_commands
from banditune.reports.plain_text import format_text
from banditune.reports.plot_marks import BLACK_COLOUR, CURVE_COLOUR, GREY_COLOUR, PlotMark, PlotSpec, make_axis
from banditune.reports.repeat_section import REPEAT_AS_TYPED, REPEAT_FROM_PYTHON
from banditune.reports.report_builder import build_report_content
from banditune.reports.report_content import ReportContent, ReportSection, ReportTable, make_notes_section
from banditune.reports.text_formatting import describe_config, format_count, format_number, format_text_table
from banditune.results.log_results import FittedProblem, PredictiveCheck

MAX_TEXT_ESTIMATES = 60
"""The most estimates that plain text shows. A report shows all."""


@dataclass(frozen=True)
class FitCaptions:
    """Titles and labels for the two sides of a posterior predictive check: the logs and the fit."""

    comparison: str
    title: str
    explanation: str
    share_meaning: str
    logs_column: str
    band_column: str
    fit_label: str
    observed_label: str
    fitted_label: str


REPLAY_CAPTIONS = FitCaptions(
    comparison="the logs beside logs replayed from the fit",
    title="Mean rewards in the logs and in replays",
    explanation="Each quantile of the arms' mean rewards in the logs should lie in its band. The band holds 95% of logs "
    "that are replayed from the fit with the same pulls.",
    share_meaning="The share of replayed logs at or above what was observed",
    logs_column="logs",
    band_column="95% of replays",
    fit_label="95% of replayed logs",
    observed_label="mean rewards in the logs",
    fitted_label="mean rewards in replayed logs",
)


DRAW_CAPTIONS = FitCaptions(
    comparison="means drawn given the logs beside means drawn from the fit",
    title="Means given the logs and means of the fit",
    explanation="Pulls depended on rewards, as if a policy had selected the arms, so observed means are biased. Means of "
    "the arms were drawn many times from their posterior given the logs, and as often from the fit alone. The average of "
    "each quantile of the former should lie in its band, which holds 95% of the draws from the fit.",
    share_meaning="The share of draws from the fit at or above those given the logs",
    logs_column="given the logs",
    band_column="95% in the fit",
    fit_label="95% of draws from the fit",
    observed_label="means drawn given the logs",
    fitted_label="means drawn from the fit",
)


def select_captions(result: FittedProblem) -> FitCaptions:
    """Select the words for what the checks of a fit compare."""
    return DRAW_CAPTIONS if result.uses_posterior_draws else REPLAY_CAPTIONS


@format_text.register
def _(result: FittedProblem) -> str:
    estimates = make_estimates_table(result)
    checks = make_checks_table(result)
    more = len(estimates.rows) - MAX_TEXT_ESTIMATES
    return join_messages(
        "\n",
        [
            f"{describe_fit(result)}",
            "",
            state_fit(result),
            "",
            format_text_table([estimates.header, *estimates.rows[:MAX_TEXT_ESTIMATES]]),
            *([f"... and {format_count(more, 'estimate')} more"] if more > 0 else []),
            "",
            f"{select_captions(result).comparison}; a check fails where the share above is outside 0.005 to 0.995",
            format_text_table([checks.header, *checks.rows]),
            *(["", *(Message("note: {}", note) for note in result.notes)] if result.notes else []),
        ],
    )


@build_report_content.register
def _(result: FittedProblem) -> ReportContent:
    captions = select_captions(result)
    sections = [
        *make_notes_section("Notes", result.notes),
        ReportSection("The fit", (f"{100 * result.confidence:g}% intervals.",), table=make_estimates_table(result)),
        ReportSection(captions.title, (captions.explanation,), make_quantile_plot(result)),
        ReportSection(
            "Checks of the fit",
            (explain_checks(result),),
            table=make_checks_table(result),
            is_shown_in_notebooks=True,
        ),
        make_fit_provenance(result),
    ]
    first_estimates = result.estimates[:3]
    boxes = tuple(
        (e.name, format_number(e.value), f"{format_number(e.low)} to {format_number(e.high)}") for e in first_estimates
    )
    return ReportContent(describe_fit(result), state_fit(result), boxes, tuple(sections))


def make_fit_provenance(result: FittedProblem) -> ReportSection:
    """Make the section with everything that is needed to fit the logs again."""
    line = repeat_commands.make_command(result)
    rows = (
        *([("columns", result.columns)] if result.columns else []),
        ("model", result.model),
        ("arms", str(result.arms)),
        ("horizon", f"{result.horizon:,}"),
        ("confidence", f"{100 * result.confidence:g}%"),
    )
    text = REPEAT_AS_TYPED if line else REPEAT_FROM_PYTHON
    return ReportSection("How to repeat this", (text,), None, ReportTable(("", ""), rows, text_columns=2), line or "")


def describe_fit(result: FittedProblem) -> str:
    """Describe the model and the logs."""
    return f"{result.model} fitted to {result.decisions:,} decisions in {format_count(result.campaigns, 'campaign')}"


def state_fit(result: FittedProblem) -> str:
    """State the fitted problem, and whether its checks passed."""
    failed = [check for check in result.checks if check.has_failed]
    # An unbounded interval means that the logs contain little information, so that any fit passes its checks.
    unbounded = any(math.isinf(estimate.high) for estimate in result.estimates)
    passed = "all checks passed, but the logs hold little information" if unbounded else "all checks passed"
    verdict = f"{format_count(len(failed), 'check')} failed" if failed else passed
    return f"{describe_config(result.problem_config)}, horizon {result.horizon:,}: {verdict}."


def explain_checks(result: FittedProblem) -> str:
    """Explain the p-values of the checks."""
    return f"{select_captions(result).share_meaning} should not be near 0 or 1; outside 0.005 to 0.995 a check fails."


def make_estimates_table(result: FittedProblem) -> ReportTable:
    """Make a row for each number of the fitted prior, with its interval."""
    rows = tuple(
        (e.name, format_number(e.value), f"{format_number(e.low)} to {format_number(e.high)}") for e in result.estimates
    )
    return ReportTable(("", "value", f"{100 * result.confidence:g}% interval"), rows)


def make_checks_table(result: FittedProblem) -> ReportTable:
    """Make a row for each statistic, with its value in the logs and in the fit."""
    captions = select_captions(result)
    return ReportTable(
        ("statistic", captions.logs_column, captions.band_column, "share above", ""),
        tuple(map(format_check_row, result.checks)),
    )


def format_check_row(check: PredictiveCheck) -> tuple[str, ...]:
    """Format one check as a row."""
    band = f"{format_number(check.low)} to {format_number(check.high)}"
    return (
        check.statistic,
        format_number(check.observed),
        band,
        f"{check.p_value:.3f}",
        "FAILS" if check.has_failed else "ok",
    )


def make_quantile_plot(result: FittedProblem) -> PlotSpec:
    """Make the plot of quantiles of arms' means: the logs over the fit, with a 95% band."""
    captions = select_captions(result)
    middle, observed = result.replayed.tolist(), result.observed.tolist()
    tips = tuple(
        f"{100 * probability:g}% of arms pay at most {format_number(value)}; {captions.fit_label}: {format_number(low)} to "
        f"{format_number(high)}"
        for probability, value, low, high in zip(result.levels, observed, result.low, result.high, strict=True)
    )
    marks = (
        PlotMark(
            "band",
            CURVE_COLOUR,
            captions.fit_label,
            x=tuple(middle),
            low=tuple(result.low.tolist()),
            high=tuple(result.high.tolist()),
        ),
        PlotMark("line", GREY_COLOUR, "the fit", x=tuple(middle), y=tuple(middle)),
        PlotMark(
            "dots",
            BLACK_COLOUR,
            captions.observed_label,
            tuple(middle),
            tuple(observed),
            radius=(3.0,) * len(observed),
            tips=tips,
        ),
    )
    inside = int(((result.observed >= result.low) & (result.observed <= result.high)).sum())
    about = (
        f"Quantiles of {captions.observed_label} over those of {captions.fitted_label}: {inside} of {len(observed)} lie "
        "in the 95% band."
    )
    heights = [*observed, *result.low.tolist(), *result.high.tolist()]
    half = len(middle) // 2
    return PlotSpec(
        about,
        make_axis(f"quantile of {captions.fitted_label}", middle),
        make_axis(f"quantile of {captions.observed_label}", heights),
        marks,
        (middle[half], observed[half]),
    )


@figures.draw_result.register
def _(result: FittedProblem, axes: Any) -> None:
    captions = select_captions(result)
    axes.fill_between(
        result.replayed,
        result.low,
        result.high,
        color=figures.BLUE,
        alpha=0.2,
        linewidth=0,
        label=captions.fit_label,
    )
    axes.plot(result.replayed, result.replayed, color=figures.GREY, linewidth=0.8, label="the fit")
    axes.plot(result.replayed, result.observed, "o", color=figures.ORANGE, markersize=4, label=captions.observed_label)
    axes.set_xlabel(f"quantile of {captions.fitted_label}")
    axes.set_ylabel(f"quantile of {captions.observed_label}")
    axes.legend(frameon=False)
    axes.set_title(textwrap.fill(describe_fit(result), 90), loc="left", fontsize=10)
