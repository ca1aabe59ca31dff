"""Reports as files, from a file with results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from banditune.contracts import BadRequest
from banditune.report.figures import plot
from banditune.report.markdown import markdown
from banditune.report.page import page
from banditune.report.story import story
from banditune.results import Record, check_writable, load, write_whole


def records_from(path: str | Path) -> list[Record]:
    """The results in a file. JSON holds one; this is the place for files that hold several."""
    return [load(path)]


def written(source: Path, output: Path | None, figures: Path | None, tables: Path | None) -> Iterator[Path]:
    """Write what is wanted of the results in a file; every path that was written."""
    for path in (output, tables):
        if path is not None:
            check_writable(path)
    records = records_from(source)
    stories = [story(record) for record in records]
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
