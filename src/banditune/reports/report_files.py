"""Reports as files, from a file with results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from banditune.core.atomic_files import check_writable, read_beginning, write_atomically
from banditune.core.errors import InvalidRequest
from banditune.reports.figures import check_drawable, plot
from banditune.reports.html_page import render_page
from banditune.reports.markdown_report import render_markdown
from banditune.reports.report_builder import build_report_content
from banditune.results.result_record import ResultRecord, load_result

OtherReader = Callable[[Path], Sequence[ResultRecord]]
"""Reads files that are no JSON."""


def read_records(path: Path, others: OtherReader) -> Sequence[ResultRecord]:
    """The results in a file. JSON, known by its first sign, holds one; `others` may hold several."""
    return [load_result(path)] if read_beginning(path).lstrip()[:1] in (b"{", b"[") else others(path)


def write_report_files(
    source: Path, output: Path | None, figures: Path | None, tables: Path | None, others: OtherReader
) -> Iterator[Path]:
    """Write what is wanted of the results in a file; every path that was written."""
    for path in (output, tables):
        if path is not None:
            check_writable(path)
    records = read_records(source, others)
    stories = [build_report_content(record) for record in records]
    if figures is not None:
        for record in records:
            check_drawable(record)
    if output is not None:
        write_atomically(output, render_page(*stories).encode())
        yield output
    if tables is not None:
        write_atomically(tables, "\n".join(map(render_markdown, stories)).encode())
        yield tables
    if figures is not None:
        for place, record in enumerate(records):
            yield from write_figure_files(
                record, figures, f"{source.stem}-{place + 1}" if len(records) > 1 else source.stem
            )


def write_figure_files(record: ResultRecord, folder: Path, name: str) -> Iterator[Path]:
    """The figure of a result in every format."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidRequest(f"the folder {str(folder)!r} cannot be made: {error.strerror or error}.") from error
    for ending in ("svg", "png", "pdf"):
        path = folder / f"{name}.{ending}"
        plot(record, path)
        yield path
