"""Writes reports, figures and tables of the results in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from banditune.core.atomic_files import check_writable, create_folder, read_beginning, write_atomically
from banditune.reports.figures import check_drawable, plot
from banditune.reports.gain_summary import add_summary
from banditune.reports.html_page import render_page
from banditune.reports.latex_tables import format_latex
from banditune.reports.markdown_report import render_markdown
from banditune.reports.report_builder import build_report_content
from banditune.results.result_record import ResultRecord, load_result

OtherReader = Callable[[Path], Sequence[ResultRecord]]
"""A function that reads the results in a file that is not JSON."""


def read_records(path: Path, read_other: OtherReader) -> Sequence[ResultRecord]:
    """Read the results in a file. JSON, recognised by its first character, holds one; other files may hold several."""
    return [load_result(path)] if read_beginning(path).lstrip()[:1] in (b"{", b"[") else read_other(path)


class ReportOptions(NamedTuple):
    """The title of a report, and the unit of its summary; see `report`."""

    title: str = ""
    unit: str = ""
    per: int | None = None


REPORT_OPTIONS = ReportOptions()
"""The options of a report without a summary."""


class ReportFiles(NamedTuple):
    """The files that are written: a page, a folder of figures, tables as Markdown and as LaTeX."""

    page: Path | None = None
    figures: Path | None = None
    markdown: Path | None = None
    latex: Path | None = None


def write_report_files(
    sources: Sequence[Path], files: ReportFiles, read_other: OtherReader, options: ReportOptions = REPORT_OPTIONS
) -> Iterator[Path]:
    """Write the requested reports of the results in files, and yield each path that was written."""
    for path in (files.page, files.markdown, files.latex):
        if path is not None:
            check_writable(path)
    records = [record for source in sources for record in read_records(source, read_other)]
    contents = add_summary(
        [build_report_content(record) for record in records], records, options.unit, options.per, options.title
    )
    if files.figures is not None:
        for record in records:
            check_drawable(record)
    texts: list[tuple[Path | None, Callable[[], str]]] = [
        (files.page, lambda: render_page(*contents, title=options.title)),
        (files.markdown, lambda: "\n".join(map(render_markdown, contents))),
        (files.latex, lambda: "\n".join(map(format_latex, records))),
    ]
    for path, render in texts:
        if path is not None:
            write_atomically(path, render().encode())
            yield path
    if files.figures is not None:
        stem = sources[0].stem
        for number, record in enumerate(records):
            yield from write_figure_files(record, files.figures, f"{stem}-{number + 1}" if len(records) > 1 else stem)


def write_figure_files(record: ResultRecord, folder: Path, name: str) -> Iterator[Path]:
    """Write the figure of a result in each format, and yield the paths."""
    create_folder(folder)
    for ending in ("svg", "png", "pdf"):
        path = folder / f"{name}.{ending}"
        plot(record, path)
        yield path
