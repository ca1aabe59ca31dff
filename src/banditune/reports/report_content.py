"""The content of reports as records: sections with sentences, tables and plots that are not yet drawn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from banditune.reports.plot_marks import PlotSpec


@dataclass(frozen=True)
class ReportTable:
    """Rows of text below a header. The first `text_columns` columns hold text, the others numbers."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    text_columns: int = 1


@dataclass(frozen=True)
class ReportSection:
    """A section of a report. With a `fold_title` a click opens it. `code` is shown in a block for copying.

    A notebook shows the first table of a report, and those of sections with `is_shown_in_notebooks`.
    """

    title: str
    paragraphs: tuple[str, ...] = ()
    plot: PlotSpec | None = None
    table: ReportTable | None = None
    code: str = ""
    fold_title: str = ""
    is_shown_in_notebooks: bool = False


@dataclass(frozen=True)
class ReportContent:
    """The answer in a sentence, key figures (name, number, explanation), and the sections."""

    title: str
    answer: str
    key_figures: tuple[tuple[str, str, str], ...]
    sections: tuple[ReportSection, ...]


def format_sentences(lines: Iterable[str]) -> Iterator[str]:
    """Format lines of plain text as sentences."""
    for line in lines:
        yield f"{line[0].upper()}{line[1:]}."


def make_notes_section(title: str, sentences: Sequence[str]) -> Iterator[ReportSection]:
    """Make a section of warnings or notes, if there are any."""
    if sentences:
        yield ReportSection(title, tuple(sentences))
