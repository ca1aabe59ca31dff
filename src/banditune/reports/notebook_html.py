"""Renders results as the HTML that a notebook shows: the answer, its tables and its warnings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from banditune.core.errors import InvalidRequest
from banditune.reports.html_page import render_inline
from banditune.reports.report_builder import build_report_content
from banditune.reports.report_content import ReportContent, ReportSection, ReportTable

WIDEST_TEXT = 18
"""Characters of text that a narrow screen does not break; longer texts become several lines."""


def render_notebook(result: object) -> str:
    """Return the HTML that a notebook shows for a result: the answer, its main table and its warnings.

    It needs no style sheet, and has no script.

    Parameters
    ----------
    result : object
        The result. One that cannot be reported is shown as plain text.

    Returns
    -------
    str
        The HTML.

    Examples
    --------
    >>> import banditune as bt
    >>> bt.reports.render_notebook(bt.results.Estimate.from_standard_error(2.0, 0.1, 100))
    '<pre>2 +- 0.1 (95%: 1.802 to 2.198, 100 runs)</pre>'
    """
    try:
        content = build_report_content(result)
    except InvalidRequest:
        return f"<pre>{escape(str(result))}</pre>"
    # Names of users may contain dollar signs, which Jupyter would read as formulas.
    return f'<div class="tex2jax_ignore mathjax_ignore">\n{"".join(render_parts(content))}</div>'


def render_parts(content: ReportContent) -> Iterator[str]:
    """Render the setup, the answer, the tables and the warnings."""
    yield f"<p>{escape(content.title)}</p>\n<p><b>{render_inline(content.answer)}</b></p>\n"
    main = next((section for section in content.sections if section.table), None)
    shown = [section for section in content.sections if section is main or section.is_shown_in_notebooks]
    for section in shown:
        if section.title and len(shown) > 1:
            yield f"<p>{escape(section.title)}</p>\n"
        yield render_section(section)
    for section in content.sections:
        if section.title in ("Warnings", "Notes"):
            items = "".join(f"<li>{render_inline(paragraph)}</li>\n" for paragraph in section.paragraphs)
            yield f"<p>{section.title}:</p>\n<ul>\n{items}</ul>\n"


def render_section(section: ReportSection) -> str:
    """Render the table of a section; if it is folded, with its text, which opens by a click."""
    table = render_notebook_table(section.table) if section.table else ""
    if not section.fold_title:
        return table
    text = "".join(f"<p>{render_inline(paragraph)}</p>\n" for paragraph in section.paragraphs)
    return f"<details><summary>{escape(section.fold_title)}</summary>\n{text}{table}</details>\n"


def render_notebook_table(table: ReportTable) -> str:
    """Render a table. If it is too wide for the screen, it scrolls by itself.

    Notebooks have no style sheet of this package, and Jupyter aligns all cells to the right, so cells have styles.
    """
    columns = range(len(table.header))
    lengths = [max((len(row[column]) for row in table.rows), default=0) for column in columns]
    text = [f"text-align: left; min-width: {min(length, WIDEST_TEXT)}ch" for length in lengths]
    styles_by_tag = {
        "th": ["text-align: left" if column < table.text_columns else "text-align: right" for column in columns],
        "td": [
            text[column] if column < table.text_columns else "text-align: right; white-space: nowrap"
            for column in columns
        ],
    }

    def render_row(cells: Sequence[str], tag: str) -> str:
        styles = styles_by_tag[tag]
        content = "".join(
            f'<{tag} style="{style}">{render_inline(cell)}</{tag}>' for style, cell in zip(styles, cells, strict=True)
        )
        return f"<tr>{content}</tr>\n"

    head = f"<thead>\n{render_row(table.header, 'th')}</thead>\n" if any(table.header) else ""
    body = "".join(render_row(cells, "td") for cells in table.rows)
    return f'<div style="overflow-x: auto"><table>\n{head}<tbody>\n{body}</tbody>\n</table></div>\n'
