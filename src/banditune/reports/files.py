"""Reports as files, from a file with results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from banditune.contracts import BadRequest
from banditune.reports.figures import check_drawable, plot
from banditune.reports.markdown import markdown
from banditune.reports.page import page
from banditune.reports.story import story
from banditune.results import Record, beginning, check_writable, load, write_whole

Others = Callable[[Path], Sequence[Record]]
"""Reads files that are no JSON."""


def records_from(path: Path, others: Others) -> Sequence[Record]:
    """The results in a file. JSON, known by its first sign, holds one; `others` may hold several."""
    return [load(path)] if beginning(path).lstrip()[:1] in (b"{", b"[") else others(path)


def written(
    source: Path, output: Path | None, figures: Path | None, tables: Path | None, others: Others
) -> Iterator[Path]:
    """Write what is wanted of the results in a file; every path that was written."""
    for path in (output, tables):
        if path is not None:
            check_writable(path)
    records = records_from(source, others)
    stories = [story(record) for record in records]
    if figures is not None:
        for record in records:
            check_drawable(record)
    if output is not None:
        write_whole(output, page(*stories).encode())
        yield output
    if tables is not None:
        write_whole(tables, "\n".join(map(markdown, stories)).encode())
        yield tables
    if figures is not None:
        for place, record in enumerate(records):
            yield from drawn(record, figures, f"{source.stem}-{place + 1}" if len(records) > 1 else source.stem)


def drawn(record: Record, folder: Path, name: str) -> Iterator[Path]:
    """The figure of a result in every format."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadRequest(f"the folder {str(folder)!r} cannot be made: {error.strerror or error}.") from error
    for ending in ("svg", "png", "pdf"):
        path = folder / f"{name}.{ending}"
        plot(record, path)
        yield path
