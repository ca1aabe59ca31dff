"""A fit of past logs: as text, as a story with its plot, as a figure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from banditune.report import figures
from banditune.report.points import BLACK, CURVE, GREY, Mark, Plot, axis
from banditune.report.story import Part, Story, Table, story
from banditune.report.tables import counted, number, problem_words, table, text
from banditune.results import Check, Fit

SHOWN = 60
"""So many estimates are shown as text; a report shows all."""


@text.register
def _(result: Fit) -> str:
    estimates = estimates_table(result)
    checks = checks_table(result)
    more = len(estimates.rows) - SHOWN
    return "\n".join(
        [
            f"{title(result)}",
            "",
            answer(result),
            "",
            table([estimates.head, *estimates.rows[:SHOWN]]),
            *([f"... and {counted(more, 'estimate')} more"] if more > 0 else []),
            "",
            "the logs beside logs replayed from the fit",
            table([checks.head, *checks.rows]),
            *(["", *(f"note: {note}" for note in result.notes)] if result.notes else []),
        ]
    )


@story.register
def _(result: Fit) -> Story:
    words = (
        "Each quantile of the arms' mean rewards in the logs should lie in its band: so do 95% of logs that are replayed "
        "from the fit with the same pulls.",
    )
    parts = [
        *([Part("Warnings", result.notes)] if result.notes else []),
        Part("The fit", (f"{100 * result.confidence:g}% intervals.",), table=estimates_table(result)),
        Part("Mean rewards, and those the fit replays", words, quantile_plot(result)),
        Part("What matters to a bandit", tuple(verdict(result)), table=checks_table(result)),
    ]
    shown = result.estimates[:3]
    boxes = tuple((e.name, number(e.value), f"{number(e.low)} to {number(e.high)}") for e in shown)
    return Story(title(result), answer(result), boxes, tuple(parts))


def title(result: Fit) -> str:
    """The model and the logs."""
    return f"{result.model} fitted to {result.decisions:,} decisions in {counted(result.campaigns, 'campaign')}"


def answer(result: Fit) -> str:
    """The problem, and whether it looks like the logs."""
    failed = [check for check in result.checks if check.fails]
    good = "the logs look like logs of this problem" if not failed else f"{counted(len(failed), 'check')} failed"
    return f"{problem_words(result.made)}, horizon {result.horizon:,}: {good}."


def verdict(result: Fit) -> Iterator[str]:
    """How to read the checks."""
    yield (
        "The share of replayed logs at or above what was observed should not be near 0 or 1; outside 0.005 to 0.995 a "
        "check fails."
    )


def estimates_table(result: Fit) -> Table:
    """Every number of the fitted prior with its interval."""
    rows = tuple((e.name, number(e.value), f"{number(e.low)} to {number(e.high)}") for e in result.estimates)
    return Table(("", "value", f"{100 * result.confidence:g}% interval"), rows)


def checks_table(result: Fit) -> Table:
    """Statistics of the logs and of replayed ones."""
    return Table(("statistic", "logs", "95% of replays", "share above", ""), tuple(map(check_row, result.checks)))


def check_row(check: Check) -> tuple[str, ...]:
    """One check in words."""
    band = f"{number(check.low)} to {number(check.high)}"
    return check.statistic, number(check.observed), band, f"{check.above:.3f}", "FAILS" if check.fails else "ok"


def quantile_plot(result: Fit) -> Plot:
    """Observed quantiles of mean rewards over the replayed ones, with their band."""
    middle, seen = result.replayed.tolist(), result.observed.tolist()
    tips = tuple(
        f"{100 * level:g}% of arms pay at most {number(value)}; replayed: {number(low)} to {number(high)}"
        for level, value, low, high in zip(result.levels, seen, result.low, result.high, strict=True)
    )
    marks = (
        Mark(
            "band",
            CURVE,
            "95% of replayed logs",
            x=tuple(middle),
            low=tuple(result.low.tolist()),
            high=tuple(result.high.tolist()),
        ),
        Mark("line", GREY, "the fit", x=tuple(middle), y=tuple(middle)),
        Mark("dots", BLACK, "the logs", tuple(middle), tuple(seen), radius=(3.0,) * len(seen), tips=tips),
    )
    inside = int(((result.observed >= result.low) & (result.observed <= result.high)).sum())
    about = f"Quantiles of mean rewards in the logs over those of the fit: {inside} of {len(seen)} lie in the 95% band."
    heights = [*seen, *result.low.tolist(), *result.high.tolist()]
    half = len(middle) // 2
    return Plot(
        about,
        axis("quantile in replayed logs", middle),
        axis("quantile in the logs", heights),
        marks,
        (middle[half], seen[half]),
    )


@figures.draw.register
def _(result: Fit, axes: Any) -> None:
    axes.fill_between(
        result.replayed,
        result.low,
        result.high,
        color=figures.BLUE,
        alpha=0.2,
        linewidth=0,
        label="95% of replayed logs",
    )
    axes.plot(result.replayed, result.replayed, color=figures.GREY, linewidth=0.8, label="the fit")
    axes.plot(result.replayed, result.observed, "o", color=figures.ORANGE, markersize=4, label="the logs")
    axes.set_xlabel("quantile of mean rewards in replayed logs")
    axes.set_ylabel("quantile of mean rewards in the logs")
    axes.legend(frameon=False)
    axes.set_title(textwrap.fill(title(result), 90), loc="left", fontsize=10)
