"""Figures: draw results with matplotlib."""

from __future__ import annotations

import io
import textwrap
import warnings
from functools import singledispatch
from pathlib import Path
from typing import Any

import numpy as np

from banditune.core.atomic_files import write_atomically
from banditune.core.errors import InvalidRequest
from banditune.reports.plot_marks import GREY_COLOUR as FAINT
from banditune.reports.plot_marks import PlotMark, PlotSpec
from banditune.reports.renderers import load_renderer
from banditune.reports.result_plots import choose_tuning_range, make_comparison_plot
from banditune.reports.search_plots import find_best_span, summarise_visits
from banditune.reports.text_formatting import describe_setup, format_number, name_baseline
from banditune.results.comparison_results import Comparison
from banditune.results.estimates import Estimate
from banditune.results.paper_results import Reproduction
from banditune.results.tuning_results import Curve, Tuning

BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#6b6b6b"
"""Colours that colour-blind readers can distinguish (Okabe and Ito)."""


PALETTE_COLOURS = {0: "black", 1: ORANGE, 2: BLUE, 3: "#009e73"}
"""Matplotlib colours for the palette of the page (`page.css`); all others are grey."""


SAVE_SETTINGS = {"pdf.fonttype": 42, "svg.hashsalt": "banditune"}
"""Embed fonts that publishers accept, and make the names in an SVG reproducible."""


SAVE_METADATA: dict[str, dict[str, Any]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
"""No dates, so that the same figure always gives the same file."""


def plot(result: Any, path: str | Path | None = None) -> Any:
    """Draw a result with matplotlib.

    Tunings, curves, comparisons, fits, stores, exact regrets, lower bounds and reproductions have figures.

    Parameters
    ----------
    result : ResultRecord
        The result.
    path : str or Path, optional
        A file that ends in .svg, .png or .pdf. The same result always gives the same file.

    Returns
    -------
    matplotlib.figure.Figure, str or Path
        The path if there is one, else the figure.

    Raises
    ------
    InvalidRequest
        If the result has no figure, or the file cannot be written.

    Examples
    --------
    >>> import banditune as bt
    >>> logs = bt.make_logs(["may", "may", "june", "june"], ["red", "blue"] * 2, [10, 20, 30, 40], [1, 5, 6, 20])
    >>> figure = bt.plot(bt.fit(logs))
    >>> len(figure.axes)
    1
    """
    figure = make_figure(7.2, 4.2)
    axes = figure.add_subplot()
    style_axes(axes)
    draw_result(result, axes)
    return figure if path is None else save_figure(figure, path)


def make_figure(width: float, height: float) -> Any:
    """Make an empty figure. Both lengths are in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def style_axes(axes: Any) -> None:
    """Remove the lines that axes do not need."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e5e5e5", linewidth=0.8)
    axes.set_axisbelow(True)


def save_figure(figure: Any, path: str | Path) -> str | Path:
    """Write a figure to a file, completely or not at all."""
    import matplotlib
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        text.set_parse_math(False)  # users' names may contain dollar signs
    check_figure_format(path)
    content = io.BytesIO()
    with warnings.catch_warnings(), matplotlib.rc_context(SAVE_SETTINGS):
        warnings.simplefilter("ignore")  # about glyphs that the font lacks
        kind = Path(path).suffix[1:].lower()
        figure.savefig(content, format=kind, dpi=160, metadata=SAVE_METADATA.get(kind))
    write_atomically(path, content.getvalue())
    return path


def check_figure_format(path: str | Path) -> None:
    """Check that the ending of the file is a format that can be drawn."""
    if Path(path).suffix.lower() not in (".svg", ".png", ".pdf"):
        raise InvalidRequest(
            f"a figure's file must end in .svg, .png or .pdf, but got {str(path)!r}.",
            argument="path",
            code="file-format",
        )


@singledispatch
def draw_result(result: Any, axes: Any) -> None:
    """Draw a result on axes."""
    if load_renderer(result):
        draw_result(result, axes)
        return
    raise InvalidRequest(
        "a result must be a curve, tuning, comparison, fit, store, exact regrets, bounds or reproduction to be drawn, "
        f"but got {type(result).__name__}; its numbers are in the report.",
        argument="result",
        code="wrong-type",
    )


def check_drawable(result: Any) -> None:
    """Raise `InvalidRequest` if a result has no figure. Nothing is drawn or written."""
    load_renderer(result)
    if draw_result.dispatch(type(result)) is draw_result.dispatch(object):
        draw_result(result, None)


@draw_result.register
def _(result: Curve, axes: Any) -> None:
    draw_regret_curve(result, axes)
    axes.axvline(
        result.textbook, color=GREY, linewidth=0.8, linestyle=":", label=f"textbook: {format_number(result.textbook)}"
    )
    label = (
        f"best: {format_number(result.best_value)}, regret {format_number(result.best_regret.mean)} on fresh instances"
    )
    axes.errorbar(
        result.best_value,
        result.best_regret.mean,
        yerr=compute_half_width(result.best_regret),
        fmt="o",
        color=ORANGE,
        capsize=3,
        label=label,
    )
    axes.legend(frameon=False)
    axes.set_title(textwrap.fill(describe_setup(result.setup), 90), loc="left", fontsize=10)


@draw_result.register
def _(result: Tuning, axes: Any) -> None:
    name = result.searched_parameter
    value = result.params[name]
    textbook = result.textbook_params[name]
    if result.curve:
        draw_regret_curve(result.curve, axes)
    if span := find_best_span(result):
        axes.axvspan(*span[0], color=ORANGE, alpha=0.12, linewidth=0, label=span[1])
    visited, means, sizes = summarise_visits(result)
    axes.scatter(
        visited, means, s=sizes, color=GREY, alpha=0.55, linewidth=0, label="means of the search (area: runs)", zorder=3
    )
    for x, estimate, colour, label in (
        (value, result.regret, ORANGE, f"tuned: {format_number(value)}, regret {format_number(result.regret.mean)}"),
        (
            textbook,
            result.textbook_regret,
            "black",
            f"{name_baseline(result)}: {format_number(textbook)}, regret {format_number(result.textbook_regret.mean)}",
        ),
    ):
        axes.errorbar(
            x, estimate.mean, yerr=compute_half_width(estimate), fmt="o", color=colour, capsize=3, label=label, zorder=4
        )
    axes.set_xlabel(name)
    axes.set_ylabel("Bayes regret")
    axes.set_ylim(*choose_tuning_range(result))
    axes.legend(frameon=False)
    axes.set_title(textwrap.fill(describe_setup(result.setup), 90), loc="left", fontsize=10)


@draw_result.register
def _(result: Reproduction, axes: Any) -> None:
    styles = {
        "best": ("D", "black", 0.25),
        "theory": ("s", GREY, 0.25),
        "gittins": ("*", GREY, 0.25),
        "regret": ("o", BLUE, 0.0),
        "failures": ("^", ORANGE, -0.25),
    }
    rows = list(dict.fromkeys(cell.row for cell in result.published_cells))[::-1]
    limit = 10.0
    axes.axvspan(-3, 3, color="#eeeeee", linewidth=0)
    for table, (marker, colour, above) in styles.items():
        cells = [cell for cell in result.published_cells if cell.table == table]
        positions = [rows.index(cell.row) + above for cell in cells]
        offsets = np.clip([cell.excess_z_score for cell in cells], -limit, limit)
        if cells:
            axes.plot(offsets, positions, marker, color=colour, markersize=4, alpha=0.6, linestyle="none", label=table)
    axes.set_yticks(range(len(rows)), rows)
    axes.set_xlim(-limit - 0.5, limit + 0.5)
    axes.set_xlabel("ours minus the paper's in joint standard errors, beyond written tolerances")
    axes.legend(frameon=False, fontsize=8, loc="upper right")
    axes.set_title(f"The paper's numbers and ours, {result.runs:,} runs per width", loc="left", fontsize=10)


@draw_result.register
def _(result: Comparison, axes: Any) -> None:
    draw_plot_spec(make_comparison_plot(result), axes, describe_setup(result.setup))


def draw_regret_curve(curve: Curve, axes: Any) -> None:
    """Draw the curve with its 95% band."""
    band = curve.half_width
    axes.fill_between(curve.values, curve.mean - band, curve.mean + band, color=BLUE, alpha=0.2, linewidth=0)
    axes.plot(
        curve.values, curve.mean, color=BLUE, marker=".", markersize=4, linewidth=1.2, label="Bayes regret, 95% band"
    )
    axes.set_xlabel(curve.parameter)
    axes.set_ylabel("Bayes regret")
    if curve.log_scale:
        from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: format_number(value)))
        axes.xaxis.set_minor_formatter(NullFormatter())


def draw_plot_spec(plot: PlotSpec, axes: Any, title: str) -> None:
    """Draw the plot of a report, mark by mark."""
    for mark in plot.marks:
        draw_plot_mark(mark, axes)
    for side, which in (("x", plot.x), ("y", plot.y)):
        getattr(axes, f"set_{side}label")(which.label)
        if which.log:
            getattr(axes, f"set_{side}scale")("log")
        getattr(axes, f"set_{side}lim")(which.log_low if which.log else which.low, which.high)
    if plot.y.names:
        axes.set_yticks(range(len(plot.y.names)), plot.y.names)
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
        axes.grid(axis="x", color="#e5e5e5", linewidth=0.8)
    axes.legend(frameon=False)
    axes.set_title(textwrap.fill(title, 90), loc="left", fontsize=10)


def draw_plot_mark(mark: PlotMark, axes: Any) -> None:
    """Draw one mark, in the colours of figures."""
    style = {"color": PALETTE_COLOURS.get(mark.colour, GREY), "label": mark.label or None}
    if mark.shape == "band":
        axes.fill_between(mark.x, mark.low, mark.high, alpha=0.2, linewidth=0, **style)
    elif mark.shape == "line":
        axes.plot(mark.x, mark.y, linewidth=1.2, **style)
    elif mark.shape == "horizontal":
        axes.axhline(*mark.y, linewidth=0.8, linestyle="--", **style)
    elif mark.shape == "vertical":
        axes.axvline(*mark.x, linewidth=0.8, linestyle="--", **style)
    else:
        alpha = 0.55 if mark.colour == FAINT else 1.0
        sizes = [3 * radius**2 for radius in mark.radius]
        edge = {"facecolor": "none", "linewidth": 1.2} if mark.hollow else {"linewidth": 0}
        axes.scatter(mark.x, mark.y, s=sizes, alpha=alpha, zorder=3, **style | edge)
        if mark.low:
            middle = np.array(mark.y if mark.interval_axis == "y" else mark.x)
            sides = {f"{mark.interval_axis}err": [middle - mark.low, mark.high - middle]}
            axes.errorbar(mark.x, mark.y, fmt="none", ecolor=style["color"], capsize=3, **sides)


def compute_half_width(estimate: Estimate) -> float:
    """Return half the width of the interval."""
    return (estimate.high - estimate.low) / 2
