"""A fit of past logs: as text, as a story with its plot, as a figure."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from typing import Any

from banditune.reports import figures, repeat_commands
from banditune.reports.plain_text import format_text
from banditune.reports.plot_marks import BLACK_COLOUR, CURVE_COLOUR, GREY_COLOUR, PlotMark, PlotSpec, make_axis
from banditune.reports.repeat_section import REPEAT_AS_TYPED, REPEAT_FROM_PYTHON
from banditune.reports.report_builder import build_report_content
from banditune.reports.report_content import ReportContent, ReportSection, ReportTable, make_notes_section
from banditune.reports.text_formatting import describe_config, format_count, format_number, format_text_table
from banditune.results.log_results import FittedProblem, PredictiveCheck

MAX_TEXT_ESTIMATES = 60
"""So many estimates are shown as text; a report shows all."""


@dataclass(frozen=True)
class FitCaptions:
    """Words for what is compared: first what the logs say, then what the fit says."""

    both: str
    title: str
    words: str
    share: str
    logs: str
    band: str
    fit: str
    seen: str
    made: str


REPLAY_CAPTIONS = FitCaptions(
    both="the logs beside logs replayed from the fit",
    title="Mean rewards, and those the fit replays",
    words="Each quantile of the arms' mean rewards in the logs should lie in its band: so do 95% of logs that are replayed "
    "from the fit with the same pulls.",
    share="The share of replayed logs at or above what was observed",
    logs="logs",
    band="95% of replays",
    fit="95% of replayed logs",
    seen="mean rewards in the logs",
    made="mean rewards in replayed logs",
)


DRAW_CAPTIONS = FitCaptions(
    both="means drawn given the logs beside means drawn from the fit",
    title="Means given the logs, and those of the fit",
    words="Pulls depended on rewards, as where a policy chose the arms, so that means of rewards mislead. Arms' means were "
    "drawn as they are likely given the logs, many times, and as often from the fit, without the logs. Each quantile of "
    "the first, on average, should lie in its band: so do 95% of the draws from the fit.",
    share="The share of draws from the fit at or above those given the logs",
    logs="given the logs",
    band="95% in the fit",
    fit="95% of draws from the fit",
    seen="means drawn given the logs",
    made="means drawn from the fit",
)


def select_captions(result: FittedProblem) -> FitCaptions:
    """The words for what a fit's checks compare."""
    return DRAW_CAPTIONS if result.drawn else REPLAY_CAPTIONS


@format_text.register
def _(result: FittedProblem) -> str:
    estimates = make_estimates_table(result)
    checks = make_checks_table(result)
    more = len(estimates.rows) - MAX_TEXT_ESTIMATES
    return "\n".join(
        [
            f"{describe_fit(result)}",
            "",
            state_fit(result),
            "",
            format_text_table([estimates.head, *estimates.rows[:MAX_TEXT_ESTIMATES]]),
            *([f"... and {format_count(more, 'estimate')} more"] if more > 0 else []),
            "",
            f"{select_captions(result).both}; a check fails where the share above is outside 0.005 to 0.995",
            format_text_table([checks.head, *checks.rows]),
            *(["", *(f"note: {note}" for note in result.notes)] if result.notes else []),
        ]
    )


@build_report_content.register
def _(result: FittedProblem) -> ReportContent:
    told = select_captions(result)
    parts = [
        *make_notes_section("Notes", result.notes),
        ReportSection("The fit", (f"{100 * result.confidence:g}% intervals.",), table=make_estimates_table(result)),
        ReportSection(told.title, (told.words,), make_quantile_plot(result)),
        ReportSection("What matters to a bandit", (explain_checks(result),), table=make_checks_table(result)),
        make_fit_provenance(result),
    ]
    shown = result.estimates[:3]
    boxes = tuple((e.name, format_number(e.value), f"{format_number(e.low)} to {format_number(e.high)}") for e in shown)
    return ReportContent(describe_fit(result), state_fit(result), boxes, tuple(parts))


def make_fit_provenance(result: FittedProblem) -> ReportSection:
    """Everything that is needed to fit the logs again."""
    line = repeat_commands.make_command(result)
    rows = (
        *([("columns", result.columns)] if result.columns else []),
        ("model", result.model),
        ("arms", str(result.arms)),
        ("horizon", f"{result.horizon:,}"),
        ("confidence", f"{100 * result.confidence:g}%"),
    )
    words = REPEAT_AS_TYPED if line else REPEAT_FROM_PYTHON
    return ReportSection("How to repeat this", (words,), None, ReportTable(("", ""), rows, left=2), line or "")


def describe_fit(result: FittedProblem) -> str:
    """The model and the logs."""
    return f"{result.model} fitted to {result.decisions:,} decisions in {format_count(result.campaigns, 'campaign')}"


def state_fit(result: FittedProblem) -> str:
    """The problem, and whether it looks like the logs."""
    failed = [check for check in result.checks if check.fails]
    # Where they tell so little that a number has no end, a problem that they look like is easily found.
    little = any(math.isinf(estimate.high) for estimate in result.estimates)
    good = "the logs do not speak against it, but tell little" if little else "the logs look like logs of this problem"
    said = f"{format_count(len(failed), 'check')} failed" if failed else good
    return f"{describe_config(result.made)}, horizon {result.horizon:,}: {said}."


def explain_checks(result: FittedProblem) -> str:
    """How to read the checks."""
    return f"{select_captions(result).share} should not be near 0 or 1; outside 0.005 to 0.995 a check fails."


def make_estimates_table(result: FittedProblem) -> ReportTable:
    """Every number of the fitted prior with its interval."""
    rows = tuple(
        (e.name, format_number(e.value), f"{format_number(e.low)} to {format_number(e.high)}") for e in result.estimates
    )
    return ReportTable(("", "value", f"{100 * result.confidence:g}% interval"), rows)


def make_checks_table(result: FittedProblem) -> ReportTable:
    """Statistics of what the logs say, and of what the fit says."""
    told = select_captions(result)
    return ReportTable(
        ("statistic", told.logs, told.band, "share above", ""), tuple(map(format_check_row, result.checks))
    )


def format_check_row(check: PredictiveCheck) -> tuple[str, ...]:
    """One check in words."""
    band = f"{format_number(check.low)} to {format_number(check.high)}"
    return check.statistic, format_number(check.observed), band, f"{check.above:.3f}", "FAILS" if check.fails else "ok"


def make_quantile_plot(result: FittedProblem) -> PlotSpec:
    """Quantiles of arms' means by the logs over those by the fit, with their band."""
    told = select_captions(result)
    middle, seen = result.replayed.tolist(), result.observed.tolist()
    tips = tuple(
        f"{100 * level:g}% of arms pay at most {format_number(value)}; {told.fit}: {format_number(low)} to {format_number(high)}"
        for level, value, low, high in zip(result.levels, seen, result.low, result.high, strict=True)
    )
    marks = (
        PlotMark(
            "band",
            CURVE_COLOUR,
            told.fit,
            x=tuple(middle),
            low=tuple(result.low.tolist()),
            high=tuple(result.high.tolist()),
        ),
        PlotMark("line", GREY_COLOUR, "the fit", x=tuple(middle), y=tuple(middle)),
        PlotMark("dots", BLACK_COLOUR, told.seen, tuple(middle), tuple(seen), radius=(3.0,) * len(seen), tips=tips),
    )
    inside = int(((result.observed >= result.low) & (result.observed <= result.high)).sum())
    about = f"Quantiles of {told.seen} over those of {told.made}: {inside} of {len(seen)} lie in the 95% band."
    heights = [*seen, *result.low.tolist(), *result.high.tolist()]
    half = len(middle) // 2
    return PlotSpec(
        about,
        make_axis(f"quantile of {told.made}", middle),
        make_axis(f"quantile of {told.seen}", heights),
        marks,
        (middle[half], seen[half]),
    )


@figures.draw_result.register
def _(result: FittedProblem, axes: Any) -> None:
    told = select_captions(result)
    axes.fill_between(
        result.replayed,
        result.low,
        result.high,
        color=figures.BLUE,
        alpha=0.2,
        linewidth=0,
        label=told.fit,
    )
    axes.plot(result.replayed, result.replayed, color=figures.GREY, linewidth=0.8, label="the fit")
    axes.plot(result.replayed, result.observed, "o", color=figures.ORANGE, markersize=4, label=told.seen)
    axes.set_xlabel(f"quantile of {told.made}")
    axes.set_ylabel(f"quantile of {told.seen}")
    axes.legend(frameon=False)
    axes.set_title(textwrap.fill(describe_fit(result), 90), loc="left", fontsize=10)
