"""A report's words and tables as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator

from banditune.reports.story import Part, Story, Table


def markdown(told: Story) -> str:
    """The answer, then the parts without their plots."""
    pieces = [f"# {plain(told.answer)}", plain(told.title)]
    for part in told.parts:
        pieces += blocks(part)
    return "\n\n".join(pieces) + "\n"


def blocks(part: Part) -> Iterator[str]:
    """One part."""
    title = part.title or part.folded
    yield f"{'##' if part.title else '###'} {plain(title)}"
    if part.title == "Warnings":
        yield "\n".join(f"- {plain(words)}" for words in part.words)
    else:
        yield from map(plain, part.words)
    if part.code:
        yield "\n".join(f"    {line}" for line in part.code.splitlines())
    if part.table:
        yield table_of(part.table)


def table_of(table: Table) -> str:
    """Words to the left, numbers to the right."""
    sides = [":---" if place < table.left else "---:" for place in range(len(table.head))]
    rows = [list(map(plain, table.head)), sides, *(list(map(plain, row)) for row in table.rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def plain(words: str) -> str:
    """Words that stay words: names are users', and Markdown would read its signs, and HTML, in them."""
    return re.sub(r"([\\`*_\[\]<>|#~$&])", r"\\\1", " ".join(words.split()))
