"""A report as one HTML file that needs nothing else: no network, no library, no script to be read."""

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
from banditune.core.version import __version__
from banditune.reports.plot_marks import PlotSpec
from banditune.reports.report_builder import build_report_content
from banditune.reports.report_content import ReportContent, ReportSection, ReportTable
from banditune.reports.svg_plots import draw_svg, get_css_classes


def report(
    result: Any,
    path: str | Path,
    *,
    title: str = "",
    answer: str = "",
    words: Sequence[str] = (),
    figures: Sequence[tuple[str, str, str]] = (),
) -> str | Path:
    """Write a result, or a list of them, as a report: one HTML file, for a browser, a phone or paper. Returns the path.

    With an `answer`, a sentence of your own comes first, with a title, paragraphs of words and figures to remember, each
    as (name, number, words).
    """
    check_report_path(path)
    told = [build_report_content(one) for one in (result if isinstance(result, list | tuple) else [result])]
    if not told:
        raise InvalidRequest("a report must have a result, but got an empty list.")
    if answer:
        parts = (ReportSection("In short", tuple(words)),) if words else ()
        told.insert(0, ReportContent(title or told[0].title, answer, tuple(figures), parts))
    elif title or words or figures:
        raise InvalidRequest("`title`, `words` and `figures` stand beside an `answer`, but got none; give one.")
    write_atomically(path, render_page(*told).encode())
    return path


def check_report_path(path: str | Path) -> None:
    """A file ending that a browser opens."""
    if Path(path).suffix.lower() not in (".html", ".htm"):
        raise InvalidRequest(
            f"a report's file must end in .html, but got {str(path)!r}; figures and Markdown have options."
        )


def render_page(*stories: ReportContent) -> str:
    """The whole file. The policy in its head allows the page's own style and script, and no network."""
    style, script = (files("banditune.reports").joinpath(name).read_text("utf-8") for name in ("page.css", "page.js"))
    plots = [part.plot for told in stories for part in told.parts if part.plot]
    places = count()
    rules = (
        f"default-src 'none'; style-src '{compute_csp_hash(style)}'; script-src '{compute_csp_hash(script)}'; base-uri 'none'; "
        "form-action 'none'"
    )
    return "".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
            f'<meta http-equiv="Content-Security-Policy" content="{rules}">\n',
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            '<meta name="color-scheme" content="light dark">\n',
            f"<title>{escape(stories[0].title)}</title>\n<style>{style}</style>\n</head>\n<body>\n<main>\n",
            *(render_article(told, places) for told in stories),
            f"</main>\n<footer><p>Written by banditune {escape(__version__)}.</p></footer>\n",
            f'<script type="application/json" id="plots">{serialise_plots(plots)}</script>\n',
            f"<script>{script}</script>\n</body>\n</html>\n",
        ]
    )


def render_article(told: ReportContent, places: Iterator[int]) -> str:
    """One story: the answer on top."""
    parts = "".join(render_section(part, places) for part in told.parts)
    return (
        f'<article>\n<header>\n<p class="setup">{escape(told.title)}</p>\n<h1>{render_inline(told.answer)}</h1>\n'
        f"{render_key_figures(told.figures)}</header>\n{parts}</article>\n"
    )


def compute_csp_hash(text: str) -> str:
    """By this the browser knows that a style or a script is the page's own."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def render_inline(words: str) -> str:
    """Words as HTML; what stands in backticks is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(words))


def serialise_plots(plots: Sequence[PlotSpec]) -> str:
    """The plots as JSON in which no tag can begin; six digits will do for drawing."""
    told = json.dumps(round_floats([asdict(plot) for plot in plots]), separators=(",", ":"), allow_nan=False)
    return told.replace("<", "\\u003c")


def round_floats(value: Any) -> Any:
    """Floats with six digits."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: round_floats(item) for key, item in value.items()}
    return [round_floats(item) for item in value] if isinstance(value, list | tuple) else value


def render_key_figures(figures: Sequence[tuple[str, str, str]]) -> str:
    """Figures to remember."""
    cards = [
        f"<div><dt>{escape(name)}</dt><dd><strong>{escape(value)}</strong> <span>{escape(words)}</span></dd></div>\n"
        for name, value, words in figures
    ]
    return f'<dl class="figures">\n{"".join(cards)}</dl>\n'


def render_section(part: ReportSection, places: Iterator[int]) -> str:
    """One part: words, plot, code, table. `places` number the plots."""
    pieces = [f"<p>{render_inline(words)}</p>\n" for words in part.words]
    if part.title == "Warnings":
        pieces = [f"<ul>{''.join(f'<li>{render_inline(words)}</li>' for words in part.words)}</ul>\n"]
    if part.plot:
        pieces.append(render_figure(part.plot, next(places)))
    if part.code:
        pieces.append(f"<pre><code>{escape(part.code)}</code></pre>\n")
    if part.table:
        pieces.append(render_html_table(part.table))
    inside = "".join(pieces)
    if part.folded:
        return f"<details>\n<summary>{escape(part.folded)}</summary>\n{inside}</details>\n"
    kind = ' class="warnings"' if part.title == "Warnings" else ""
    return f"<section{kind}>\n<h2>{escape(part.title)}</h2>\n{inside}</section>\n"


def render_figure(plot: PlotSpec, place: int) -> str:
    """A plot with its legend and its buttons, which the script brings to life."""
    keys = "".join(
        f"<li>{render_swatch(get_css_classes(mark))}{escape(mark.label)}</li>" for mark in plot.marks if mark.label
    )
    logs = "".join(
        f'<label><input type="checkbox" data-log="{name}"{" checked" if axis.log else ""}> log {name} axis</label>'
        for name, axis in (("x", plot.x), ("y", plot.y))
        if axis.least is not None
    )
    buttons = "".join(
        f'<button type="button" data-zoom="{zoom}" aria-label="{label}">{words}</button>'
        for zoom, label, words in (
            ("in", "zoom in", "+"),
            ("out", "zoom out", "&minus;"),
            ("reset", "show all again", "reset"),
        )
    )
    return (
        f'<figure>\n<div class="stage">{draw_svg(plot, place)}<div class="tip" role="status" hidden></div></div>\n'
        f'<ul class="legend">{keys}</ul>\n<div class="controls" hidden>{buttons}{logs}</div>\n</figure>\n'
    )


def render_swatch(kind: str) -> str:
    """What a mark looks like, for the legend."""
    shape = kind.split()[0]
    inside = {
        "line": '<path d="M1 7H21"/>',
        "band": '<path d="M1 1H21V13H1Z"/>',
        "span": '<path d="M5 0H17V14H5Z"/>',
        "dots": '<circle cx="11" cy="7" r="4.5"/>',
        "rule": '<path d="M11 0V14"/>',
        "level": '<path d="M1 7H21"/>',
    }[shape]
    return f'<svg class="key" viewBox="0 0 22 14" aria-hidden="true"><g class="{kind}">{inside}</g></svg>'


def render_html_table(table: ReportTable) -> str:
    """A table; if it is too wide for a phone, it scrolls by itself."""

    def row(cells: Sequence[str], tag: str) -> str:
        kinds = ["words" if place < table.left else "number" for place in range(len(cells))]
        found = "".join(f'<{tag} class="{k}">{escape(cell)}</{tag}>' for k, cell in zip(kinds, cells, strict=True))
        return f"<tr>{found}</tr>\n"

    head = f"<thead>{row(table.head, 'th')}</thead>\n" if any(table.head) else ""
    body = "".join(row(cells, "td") for cells in table.rows)
    return f'<div class="wide" tabindex="0"><table>\n{head}<tbody>\n{body}</tbody>\n</table></div>\n'
