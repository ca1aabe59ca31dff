"""Renders reports as one self-contained HTML file. It needs no network, and it is readable without scripts."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from html import escape
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import Any

from banditune.core.atomic_files import write_atomically
from banditune.core.errors import InvalidRequest
from banditune.core.messages import Argument
from banditune.core.version import __version__
from banditune.reports.gain_summary import add_summary
from banditune.reports.plot_marks import PlotSpec
from banditune.reports.report_builder import build_report_content
from banditune.reports.report_content import ReportContent, ReportSection, ReportTable
from banditune.reports.svg_plots import draw_svg, get_css_classes


def report(
    result: Any,
    path: str | Path,
    *,
    title: str = "",
    unit: str = "",
    per: int | None = None,
    answer: str = "",
    words: Sequence[str] = (),
    figures: Sequence[tuple[str, str, str]] = (),
) -> str | Path:
    """Write a report on one or more results as one HTML file.

    The file is self-contained: it needs no network and no other files.

    Parameters
    ----------
    result : ResultRecord, or list of ResultRecord
        The results, in the order of the report.
    path : str or Path
        A file that ends in .html or .htm.
    title : str
        The title of the page.
    unit : str
        The name of one reward, such as "clicks". If it is given, the report starts with a summary: the gain of tuning in
        this unit, with an interval, and the meaning of the tuned parameter.
    per : int, optional
        Decisions for which the summary gives gains; 1,000 by default.
    answer : str
        A sentence of your own for the summary.
    words : sequence of str
        Paragraphs of the summary.
    figures : sequence of (str, str, str)
        Key figures of the summary: name, number, and a few words on it.

    Returns
    -------
    str or Path
        The path.

    Raises
    ------
    InvalidRequest
        If a result cannot be reported, the file cannot be written, or a summary has neither a `unit` nor an `answer`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import banditune as bt
    >>> logs = bt.make_logs(["may", "may", "june", "june"], ["red", "blue"] * 2, [10, 20, 30, 40], [1, 5, 6, 20])
    >>> path = bt.report(bt.fit(logs), Path(tempfile.mkdtemp()) / "fit.html")
    >>> path.name
    'fit.html'
    """
    check_report_path(path)
    results = list(result) if isinstance(result, list | tuple) else [result]
    contents = [build_report_content(item) for item in results]
    if not contents:
        raise InvalidRequest("a report must have a result, but got an empty list.", argument="result", code="missing")
    if answer:
        sections = (ReportSection("In short", tuple(words)),) if words else ()
        contents.insert(0, ReportContent(title or contents[0].title, answer, tuple(figures), sections))
    elif words or figures:
        raise InvalidRequest(
            "{} must be given with {} and {}, but got none; add one.",
            *(Argument("answer"), Argument("words"), Argument("figures")),
            argument="answer",
            code="missing",
        )
    contents = add_summary(contents, results, unit, per, title)
    write_atomically(path, render_page(*contents, title=title).encode())
    return path


def check_report_path(path: str | Path) -> None:
    """Check that the file has an ending that browsers open."""
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise InvalidRequest(
            f"a report's file must end in .html, but got {str(path)!r}; figures and Markdown have options of their own.",
            argument="path",
            code="file-format",
        )


def render_page(*contents: ReportContent, title: str = "") -> str:
    """Render the whole file. Its content security policy allows only the page's own style and script.

    Without a title, the page has that of the first result.
    """
    style, script = (files("banditune.reports").joinpath(name).read_text("utf-8") for name in ("page.css", "page.js"))
    plots = [section.plot for content in contents for section in content.sections if section.plot]
    numbers = count()
    rules = (
        f"default-src 'none'; style-src '{compute_csp_hash(style)}'; script-src '{compute_csp_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    return "".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
            f'<meta http-equiv="Content-Security-Policy" content="{rules}">\n',
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            '<meta name="color-scheme" content="light dark">\n',
            f"<title>{escape(title or contents[0].title)}</title>\n<style>{style}</style>\n</head>\n<body>\n<main>\n",
            *(render_article(content, numbers) for content in contents),
            f"</main>\n<footer><p>Written by banditune {escape(__version__)}.</p></footer>\n",
            f'<script type="application/json" id="plots">{serialise_plots(plots)}</script>\n',
            f"<script>{script}</script>\n</body>\n</html>\n",
        ]
    )


def render_article(content: ReportContent, numbers: Iterator[int]) -> str:
    """Render the report on one result, with the answer on top."""
    sections = "".join(render_section(section, numbers) for section in content.sections)
    return (
        f'<article>\n<header>\n<p class="setup">{escape(content.title)}</p>\n<h1>{render_inline(content.answer)}</h1>\n'
        f"{render_key_figures(content.key_figures)}</header>\n{sections}</article>\n"
    )


def compute_csp_hash(text: str) -> str:
    """Return the hash by which a browser recognises the page's own style or script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def render_inline(text: str) -> str:
    """Render text as HTML. Text in backticks becomes code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def serialise_plots(plots: Sequence[PlotSpec]) -> str:
    """Return the plots as JSON with six digits, without "<", so that it can be put in a script element."""
    text = json.dumps(round_floats([asdict(plot) for plot in plots]), separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


def round_floats(value: Any) -> Any:
    """Round all floats in a value to six digits."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: round_floats(item) for key, item in value.items()}
    return [round_floats(item) for item in value] if isinstance(value, list | tuple) else value


def render_key_figures(figures: Sequence[tuple[str, str, str]]) -> str:
    """Render the key figures."""
    cards = [
        f"<div><dt>{escape(name)}</dt><dd><strong>{escape(value)}</strong> <span>{escape(text)}</span></dd></div>\n"
        for name, value, text in figures
    ]
    return f'<dl class="figures">\n{"".join(cards)}</dl>\n'


def render_section(section: ReportSection, numbers: Iterator[int]) -> str:
    """Render one section: text, plot, code, table. `numbers` counts the plots of the page."""
    elements = [f"<p>{render_inline(paragraph)}</p>\n" for paragraph in section.paragraphs]
    if section.title == "Warnings":
        elements = [f"<ul>{''.join(f'<li>{render_inline(paragraph)}</li>' for paragraph in section.paragraphs)}</ul>\n"]
    if section.plot:
        elements.append(render_figure(section.plot, next(numbers)))
    if section.code:
        elements.append(f"<pre><code>{escape(section.code)}</code></pre>\n")
    if section.table:
        elements.append(render_html_table(section.table))
    inside = "".join(elements)
    if section.fold_title:
        return f"<details>\n<summary>{escape(section.fold_title)}</summary>\n{inside}</details>\n"
    kind = ' class="warnings"' if section.title == "Warnings" else ""
    return f"<section{kind}>\n<h2>{escape(section.title)}</h2>\n{inside}</section>\n"


def render_figure(plot: PlotSpec, number: int) -> str:
    """Render a plot with its legend, and with buttons that the script shows. `number` is its number on the page."""
    keys = "".join(
        f"<li>{render_swatch(get_css_classes(mark))}{escape(mark.label)}</li>" for mark in plot.marks if mark.label
    )
    logs = "".join(
        f'<label><input type="checkbox" data-log="{name}"{" checked" if axis.log else ""}> log {name} axis</label>'
        for name, axis in (("x", plot.x), ("y", plot.y))
        if axis.log_low is not None
    )
    buttons = "".join(
        f'<button type="button" data-zoom="{zoom}" aria-label="{label}">{text}</button>'
        for zoom, label, text in (
            ("in", "zoom in", "+"),
            ("out", "zoom out", "&minus;"),
            ("reset", "show all again", "reset"),
        )
    )
    return (
        f'<figure>\n<div class="stage">{draw_svg(plot, number)}<div class="tip" role="status" hidden></div></div>\n'
        f'<ul class="legend">{keys}</ul>\n<div class="controls" hidden>{buttons}{logs}</div>\n</figure>\n'
    )


def render_swatch(kind: str) -> str:
    """Render the sample of a mark for the legend."""
    shape = kind.split()[0]
    inside = {
        "line": '<path d="M1 7H21"/>',
        "band": '<path d="M1 1H21V13H1Z"/>',
        "span": '<path d="M5 0H17V14H5Z"/>',
        "dots": '<circle cx="11" cy="7" r="4.5"/>',
        "vertical": '<path d="M11 0V14"/>',
        "horizontal": '<path d="M1 7H21"/>',
    }[shape]
    return f'<svg class="key" viewBox="0 0 22 14" aria-hidden="true"><g class="{kind}">{inside}</g></svg>'


def render_html_table(table: ReportTable) -> str:
    """Render a table in a block that scrolls sideways if the table is wider than the page."""

    def render_row(cells: Sequence[str], tag: str) -> str:
        kinds = ["text" if number < table.text_columns else "number" for number in range(len(cells))]
        content = "".join(f'<{tag} class="{k}">{escape(cell)}</{tag}>' for k, cell in zip(kinds, cells, strict=True))
        return f"<tr>{content}</tr>\n"

    head = f"<thead>{render_row(table.header, 'th')}</thead>\n" if any(table.header) else ""
    body = "".join(render_row(cells, "td") for cells in table.rows)
    return f'<div class="wide" tabindex="0"><table>\n{head}<tbody>\n{body}</tbody>\n</table></div>\n'
