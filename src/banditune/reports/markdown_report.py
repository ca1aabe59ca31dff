"""A report's words and tables as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator

from banditune.reports.report_content import ReportContent, ReportSection, ReportTable


def render_markdown(told: ReportContent) -> str:
    """The answer, then the parts without their plots."""
    pieces = [f"# {escape_markdown(told.answer)}", escape_markdown(told.title)]
    for part in told.parts:
        pieces += render_markdown_section(part)
    return "\n\n".join(pieces) + "\n"


def render_markdown_section(part: ReportSection) -> Iterator[str]:
    """One part."""
    title = part.title or part.folded
    yield f"{'##' if part.title else '###'} {escape_markdown(title)}"
    if part.title == "Warnings":
        yield "\n".join(f"- {escape_markdown(words)}" for words in part.words)
    else:
        yield from map(escape_markdown, part.words)
    if part.code:
        yield "\n".join(f"    {line}" for line in part.code.splitlines())
    if part.table:
        yield render_markdown_table(part.table)


def render_markdown_table(table: ReportTable) -> str:
    """Words to the left, numbers to the right."""
    sides = [":---" if place < table.left else "---:" for place in range(len(table.head))]
    rows = [list(map(escape_markdown, table.head)), sides, *(list(map(escape_markdown, row)) for row in table.rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def escape_markdown(words: str) -> str:
    """Words that stay words: names are users', and Markdown would read its signs, and HTML, in them."""
    return re.sub(r"([\\`*_\[\]<>|#~$&])", r"\\\1", " ".join(words.split()))
