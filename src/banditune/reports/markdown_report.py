"""Renders the text and the tables of reports as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator

from banditune.reports.report_content import ReportContent, ReportSection, ReportTable


def render_markdown(content: ReportContent) -> str:
    """Render the answer, then the sections without their plots."""
    blocks = [f"# {escape_markdown(content.answer)}", escape_markdown(content.title)]
    for section in content.sections:
        blocks += render_markdown_section(section)
    return "\n\n".join(blocks) + "\n"


def render_markdown_section(section: ReportSection) -> Iterator[str]:
    """Render one section."""
    title = section.title or section.fold_title
    yield f"{'##' if section.title else '###'} {escape_markdown(title)}"
    if section.title == "Warnings":
        yield "\n".join(f"- {escape_markdown(paragraph)}" for paragraph in section.paragraphs)
    else:
        yield from map(escape_markdown, section.paragraphs)
    if section.code:
        yield "\n".join(f"    {line}" for line in section.code.splitlines())
    if section.table:
        yield render_markdown_table(section.table)


def render_markdown_table(table: ReportTable) -> str:
    """Render a table: text columns to the left, number columns to the right."""
    sides = [":---" if column < table.text_columns else "---:" for column in range(len(table.header))]
    rows = [list(map(escape_markdown, table.header)), sides, *(list(map(escape_markdown, row)) for row in table.rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def escape_markdown(text: str) -> str:
    """Escape the signs of Markdown and HTML. Names of policies and arms come from users."""
    return re.sub(r"([\\`*_\[\]<>|#~$&])", r"\\\1", " ".join(text.split()))
