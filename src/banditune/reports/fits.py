"""A fit of past logs: as text, as a story with its plot, as a figure."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from typing import Any

from banditune.reports import figures, repeat
from banditune.reports.points import BLACK, CURVE, GREY, Mark, Plot, axis
from banditune.reports.story import AS_TYPED, FROM_PYTHON, Part, Story, Table, said, story
from banditune.reports.tables import text
from banditune.reports.words import counted, made_words, number, table
from banditune.results import Check, Fit

SHOWN = 60
"""So many estimates are shown as text; a report shows all."""


@dataclass(frozen=True)
class Captions:
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


REPLAYED = Captions(
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
DRAWN = Captions(
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


def captions(result: Fit) -> Captions:
    """The words for what a fit's checks compare."""
    return DRAWN if result.drawn else REPLAYED


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
            f"{captions(result).both}; a check fails where the share above is outside 0.005 to 0.995",
            table([checks.head, *checks.rows]),
            *(["", *(f"note: {note}" for note in result.notes)] if result.notes else []),
        ]
    )


@story.register
def _(result: Fit) -> Story:
    told = captions(result)
    parts = [
        *said("Notes", result.notes),
        Part("The fit", (f"{100 * result.confidence:g}% intervals.",), table=estimates_table(result)),
        Part(told.title, (told.words,), quantile_plot(result)),
        Part("What matters to a bandit", (verdict(result),), table=checks_table(result)),
        provenance(result),
    ]
    shown = result.estimates[:3]
    boxes = tuple((e.name, number(e.value), f"{number(e.low)} to {number(e.high)}") for e in shown)
    return Story(title(result), answer(result), boxes, tuple(parts))


def provenance(result: Fit) -> Part:
    """Everything that is needed to fit the logs again."""
    line = repeat.command(result)
    rows = (
        *([("columns", result.columns)] if result.columns else []),
        ("model", result.model),
        ("arms", str(result.arms)),
        ("horizon", f"{result.horizon:,}"),
        ("confidence", f"{100 * result.confidence:g}%"),
    )
    words = AS_TYPED if line else FROM_PYTHON
    return Part("How to repeat this", (words,), None, Table(("", ""), rows, left=2), line or "")


def title(result: Fit) -> str:
    """The model and the logs."""
    return f"{result.model} fitted to {result.decisions:,} decisions in {counted(result.campaigns, 'campaign')}"


def answer(result: Fit) -> str:
    """The problem, and whether it looks like the logs."""
    failed = [check for check in result.checks if check.fails]
    # Where they tell so little that a number has no end, a problem that they look like is easily found.
    little = any(math.isinf(estimate.high) for estimate in result.estimates)
    good = "the logs do not speak against it, but tell little" if little else "the logs look like logs of this problem"
    said = f"{counted(len(failed), 'check')} failed" if failed else good
    return f"{made_words(result.made)}, horizon {result.horizon:,}: {said}."


def verdict(result: Fit) -> str:
    """How to read the checks."""
    return f"{captions(result).share} should not be near 0 or 1; outside 0.005 to 0.995 a check fails."


def estimates_table(result: Fit) -> Table:
    """Every number of the fitted prior with its interval."""
    rows = tuple((e.name, number(e.value), f"{number(e.low)} to {number(e.high)}") for e in result.estimates)
    return Table(("", "value", f"{100 * result.confidence:g}% interval"), rows)


def checks_table(result: Fit) -> Table:
    """Statistics of what the logs say, and of what the fit says."""
    told = captions(result)
    return Table(("statistic", told.logs, told.band, "share above", ""), tuple(map(check_row, result.checks)))


def check_row(check: Check) -> tuple[str, ...]:
    """One check in words."""
    band = f"{number(check.low)} to {number(check.high)}"
    return check.statistic, number(check.observed), band, f"{check.above:.3f}", "FAILS" if check.fails else "ok"


def quantile_plot(result: Fit) -> Plot:
    """Quantiles of arms' means by the logs over those by the fit, with their band."""
    told = captions(result)
    middle, seen = result.replayed.tolist(), result.observed.tolist()
    tips = tuple(
        f"{100 * level:g}% of arms pay at most {number(value)}; {told.fit}: {number(low)} to {number(high)}"
        for level, value, low, high in zip(result.levels, seen, result.low, result.high, strict=True)
    )
    marks = (
        Mark(
            "band",
            CURVE,
            told.fit,
            x=tuple(middle),
            low=tuple(result.low.tolist()),
            high=tuple(result.high.tolist()),
        ),
        Mark("line", GREY, "the fit", x=tuple(middle), y=tuple(middle)),
        Mark("dots", BLACK, told.seen, tuple(middle), tuple(seen), radius=(3.0,) * len(seen), tips=tips),
    )
    inside = int(((result.observed >= result.low) & (result.observed <= result.high)).sum())
    about = f"Quantiles of {told.seen} over those of {told.made}: {inside} of {len(seen)} lie in the 95% band."
    heights = [*seen, *result.low.tolist(), *result.high.tolist()]
    half = len(middle) // 2
    return Plot(
        about,
        axis(f"quantile of {told.made}", middle),
        axis(f"quantile of {told.seen}", heights),
        marks,
        (middle[half], seen[half]),
    )


@figures.draw.register
def _(result: Fit, axes: Any) -> None:
    told = captions(result)
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
    axes.set_title(textwrap.fill(title(result), 90), loc="left", fontsize=10)
