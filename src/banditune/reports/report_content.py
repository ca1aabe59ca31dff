"""What a report holds, as records: sections with sentences, tables and plots that are not yet drawn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from banditune.reports.plot_marks import PlotSpec


@dataclass(frozen=True)
class ReportTable:
    """Rows of words below a head; the first `left` columns are words, the others numbers."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: int = 1


@dataclass(frozen=True)
class ReportSection:
    """A piece of a report. What is `folded` is opened by a click; `code` is to be copied."""

    title: str
    words: tuple[str, ...] = ()
    plot: PlotSpec | None = None
    table: ReportTable | None = None
    code: str = ""
    folded: str = ""


@dataclass(frozen=True)
class ReportContent:
    """The answer in a sentence, figures to remember (name, number, words), then the parts."""

    title: str
    answer: str
    figures: tuple[tuple[str, str, str], ...]
    parts: tuple[ReportSection, ...]


def format_sentences(lines: Iterable[str]) -> Iterator[str]:
    """Lines of the text as sentences."""
    for line in lines:
        yield f"{line[0].upper()}{line[1:]}."


def make_notes_section(title: str, sentences: Sequence[str]) -> Iterator[ReportSection]:
    """Warnings or notes, as they are."""
    if sentences:
        yield ReportSection(title, tuple(sentences))
