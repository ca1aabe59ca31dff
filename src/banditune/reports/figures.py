"""Figures: draw results with matplotlib."""

from __future__ import annotations

import io
import math
import textwrap
import warnings
from collections.abc import Sequence
from functools import singledispatch
from pathlib import Path
from typing import Any, Literal

import numpy as np

from banditune.core.atomic_files import write_atomically
from banditune.core.checks import check_choice
from banditune.core.errors import InvalidRequest
from banditune.core.request_errors import make_type_error, make_unused_error
from banditune.reports.overlay_plots import make_overlay_plot
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


PALETTE_COLOURS = {0: "black", 1: ORANGE, 2: BLUE, 3: "#009e73", 4: "#b0508a", 5: "#a66f00", 6: "#3f97cc"}
"""Matplotlib colours for the palette of the page (`page.css`); all others are grey."""


LINE_DASHES: dict[int, Any] = {
    2: (0, (5, 2)),
    3: (0, (1, 1.2)),
    4: (0, (6, 2, 1, 2)),
    5: (0, (10, 2)),
    6: (0, (3, 1.2)),
}
"""Dashes of lines by their number; all others are solid."""


MARKERS = ("", "o", "s", "^", "D", "v", "P", "X")
"""Matplotlib markers by their number."""


MARKER_SPACING = 0.14
"""Distance of the markers of a line, as a share of the diagonal of the axes. Those of several lines are shifted."""


MAX_MARKED_POINTS = 12
"""A line of at most this many points has a marker at each."""


COLUMN_SIZE = (3.4, 2.6)
"""Inches of a figure that fills one of two columns of a page."""


FIGURE_SIZE, MIN_INCHES, MAX_INCHES = (7.2, 4.2), 1.0, 100.0
"""The usual size of a figure in inches, and limits."""


NARROW_WIDTH, NARROW_FONT_SIZE = 5.0, 8
"""A figure below this width, in inches, has no title, and letters of this size."""


TICKS_PER_INCH = 2.2
"""The most ticks for an inch of a logarithmic axis at 1, 2 and 5; with more, they are at powers of ten only."""


SAVE_SETTINGS = {"pdf.fonttype": 42, "svg.hashsalt": "banditune"}
"""Embed fonts that publishers accept, and make the names in an SVG reproducible."""


SAVE_METADATA: dict[str, dict[str, Any]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}
"""Metadata without dates, so that the same figure always gives the same file."""


def plot(
    result: Any,
    path: str | Path | None = None,
    *,
    ax: Any = None,
    labels: Sequence[str] | None = None,
    xscale: Literal["linear", "log"] | None = None,
    size: tuple[float, float] | Literal["column"] | None = None,
) -> Any:
    """Draw a result, or several in one figure, with matplotlib.

    Tunings, curves, comparisons, regrets over time, fits, stores, exact regrets, lower bounds and reproductions have
    figures. Several curves, tunings, comparisons or regrets over time are drawn together. Each then has its colour, dashes
    and marker, so that a grey print can be read.

    Parameters
    ----------
    result : ResultRecord, or list of ResultRecord
        The result, or several of one kind.
    path : str or Path, optional
        A file that ends in .svg, .png or .pdf. The same result always gives the same file.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. They get marks, labels of the axes and a legend, but no title.
    labels : sequence of str, optional
        Names for the legend: one for each result, or for each line of regrets over time.
    xscale : {"linear", "log"}, optional
        The scale of the horizontal axis: parameter values, or steps.
    size : (float, float) or "column", optional
        Width and height in inches; "column" fits one of two columns of a page. Without `ax` only.

    Returns
    -------
    matplotlib.figure.Figure, matplotlib.axes.Axes, str or Path
        The path if there is one, the axes if there are some, else the figure.

    Raises
    ------
    InvalidRequest
        If a result has no figure, an argument does not fit, or the file cannot be written.

    Examples
    --------
    >>> import banditune as bt
    >>> logs = bt.make_logs(["may", "may", "june", "june"], ["red", "blue"] * 2, [10, 20, 30, 40], [1, 5, 6, 20])
    >>> figure = bt.plot(bt.fit(logs))
    >>> len(figure.axes)
    1
    """
    if xscale is not None:
        check_choice("xscale", xscale, ("linear", "log"))
    if ax is not None:
        check_axes(ax, path=path, size=size)
        title = ax.get_title(loc="left")
        draw_results(result, ax, labels, xscale)
        ax.set_title(title, loc="left")
        if labels is None:
            disable_math(ax.get_legend())
        return ax
    width, height = resolve_size(size)
    if path is not None:
        check_figure_format(path)
    figure = make_figure(width, height)
    axes = figure.add_subplot()
    style_axes(axes)
    draw_results(result, axes, labels, xscale)
    if width < NARROW_WIDTH:
        make_narrow(axes)
    disable_math(figure)
    return figure if path is None else save_figure(figure, path)


def draw_results(result: Any, axes: Any, labels: Sequence[str] | None, xscale: str | None) -> None:
    """Draw one result, or several of one kind, on axes."""
    results = list(result) if isinstance(result, list | tuple) else [result]
    if len(results) == 1 and labels is None:
        draw_result(results[0], axes)
    else:
        spec = make_overlay_plot(results, labels)
        draw_plot_spec(spec, axes, describe_setup(results[0].setup) if len(results) == 1 else "")
    if xscale is not None:
        set_x_scale(axes, xscale)


def check_axes(ax: Any, **others: Any) -> None:
    """Check that axes can be drawn into, and that nothing is given that belongs to a figure."""
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        raise make_type_error("ax", "matplotlib axes, such as those of plt.subplots()", ax)
    for name, value in others.items():
        if value is not None:
            raise make_unused_error(name, value, "because the axes belong to a figure")


def resolve_size(size: Any) -> tuple[float, float]:
    """Return width and height of a figure in inches."""
    if size is None:
        return FIGURE_SIZE
    if isinstance(size, str) and size == "column":
        return COLUMN_SIZE
    numbers = [] if isinstance(size, str) or not isinstance(size, Sequence) else list(size)
    if len(numbers) != 2 or not all(isinstance(n, int | float) and MIN_INCHES <= n <= MAX_INCHES for n in numbers):
        expected = f"'column', or width and height in inches from {MIN_INCHES:g} to {MAX_INCHES:g}"
        raise make_type_error("size", expected, size)
    return float(numbers[0]), float(numbers[1])


def make_narrow(axes: Any) -> None:
    """Make letters small and remove the title, for a figure in a column of a page, which has a caption."""
    axes.set_title("", loc="left")
    axes.tick_params(labelsize=NARROW_FONT_SIZE)
    texts = [axes.xaxis.label, axes.yaxis.label]
    legend = axes.get_legend()
    for text in (*texts, *(legend.get_texts() if legend else ())):
        text.set_fontsize(NARROW_FONT_SIZE)


def set_x_scale(axes: Any, scale: str) -> None:
    """Set the scale of the horizontal axis. A logarithmic one begins below the lowest positive value."""
    low, high = axes.get_xlim()
    if scale == "linear":
        axes.set_xscale("linear")
        axes.set_xlim(low, high)
        return
    smallest = axes.dataLim.minposx
    format_log_axis(axes, smallest, high)
    if axes.get_xscale() == "log":
        axes.set_xlim(low if low > 0 else 0.85 * smallest, high)


def format_log_axis(axes: Any, low: float, high: float) -> None:
    """Make the horizontal axis logarithmic, with plain numbers at 1, 2, 5, 10, or at powers of ten if there are many."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    if not 0 < low <= high:  # there is no positive value
        return
    inches = axes.figure.get_figwidth() * axes.get_position().width
    is_crowded = 1 + 3 * math.log10(high / low) > TICKS_PER_INCH * inches
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1,) if is_crowded else (1, 2, 5)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: format_log_tick(value)))
    axes.xaxis.set_minor_formatter(NullFormatter())


def format_log_tick(value: float) -> str:
    """Format a tick as 0.05 or 10,000."""
    return f"{value:,.0f}" if 1 <= value < 1e7 else format_number(value)


def make_figure(width: float, height: float) -> Any:
    """Make an empty figure. Both lengths are in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    from banditune.reports.notebook_figure import NotebookFigure

    figure = NotebookFigure(figsize=(width, height), layout="constrained")
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

    disable_math(figure)
    check_figure_format(path)
    content = io.BytesIO()
    with warnings.catch_warnings(), matplotlib.rc_context(SAVE_SETTINGS):
        warnings.simplefilter("ignore")  # about glyphs that the font lacks
        kind = Path(path).suffix[1:].lower()
        figure.savefig(content, format=kind, dpi=160, metadata=SAVE_METADATA.get(kind))
    write_atomically(path, content.getvalue())
    return path


def disable_math(artist: Any) -> None:
    """Draw all text as it is. Names of policies and arms may contain dollar signs."""
    from matplotlib.text import Text

    for text in artist.findobj(Text) if artist else ():
        text.set_parse_math(False)


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
        "a result must be a curve, tuning, comparison, regret over time, fit, store, exact regrets, bounds or reproduction "
        f"to be drawn, but got {type(result).__name__}; its numbers are in the report.",
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
    if result.importance:
        draw_importance(result, axes)
        return
    (name,) = result.searched_parameters
    value = result.params[name]
    textbook = result.textbook_params[name]
    if curve := result.find_curve(name):
        draw_regret_curve(curve, axes)
    if span := find_best_span(result, name):
        axes.axvspan(*span[0], color=ORANGE, alpha=0.12, linewidth=0, label=span[1])
    visited, means, sizes = summarise_visits(result, name)
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


def draw_importance(result: Tuning, axes: Any) -> None:
    """Draw the regret that each parameter adds if it alone has its textbook value."""
    importance = result.importance or {}
    labels = [
        f"{name}: {format_number(result.params[name])}, textbook {format_number(result.textbook_params[name])}"
        for name in importance
    ]
    added = list(importance.values())
    axes.barh(
        labels, [one.mean for one in added], xerr=[compute_half_width(one) for one in added], color=ORANGE, capsize=3
    )
    axes.invert_yaxis()
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_xlabel("regret added if this parameter alone has its textbook value")
    axes.set_title(textwrap.fill(describe_setup(result.setup), 90), loc="left", fontsize=10)


@draw_result.register
def _(result: Reproduction, axes: Any) -> None:
    styles = {
        "best": ("D", "black", 0.25),
        "textbook": ("s", GREY, 0.25),
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
        format_log_axis(axes, axes.dataLim.minposx, float(curve.values[-1]))


def draw_plot_spec(plot: PlotSpec, axes: Any, title: str) -> None:
    """Draw the plot of a report, mark by mark."""
    for number, mark in enumerate(plot.marks):
        draw_plot_mark(mark, axes, shift=MARKER_SPACING * number / len(plot.marks))
    for side, which in (("x", plot.x), ("y", plot.y)):
        getattr(axes, f"set_{side}label")(which.label)
        if which.log and side == "x":
            format_log_axis(axes, which.log_low or which.low, which.high)
        elif which.log:
            axes.set_yscale("log")
        getattr(axes, f"set_{side}lim")(which.log_low if which.log else which.low, which.high)
    if plot.x.integer_ticks and not plot.x.log:
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    if plot.y.names:
        axes.set_yticks(range(len(plot.y.names)), plot.y.names)
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
        axes.grid(axis="x", color="#e5e5e5", linewidth=0.8)
    axes.legend(frameon=False, handlelength=2.8 if any(mark.dash for mark in plot.marks) else None)
    axes.set_title(textwrap.fill(title, 90), loc="left", fontsize=10)


def draw_plot_mark(mark: PlotMark, axes: Any, shift: float = 0.0) -> None:
    """Draw one mark, in the colours of figures. `shift` moves the markers of a line along it."""
    style = {"color": PALETTE_COLOURS.get(mark.colour, GREY), "label": mark.label or None}
    if mark.shape == "band":
        axes.fill_between(mark.x, mark.low, mark.high, alpha=0.2, linewidth=0, **style)
    elif mark.shape == "line":
        style |= {"linestyle": LINE_DASHES.get(mark.dash, "-"), "marker": MARKERS[mark.marker] or None}
        spacing = (shift, MARKER_SPACING) if len(mark.x) > MAX_MARKED_POINTS else 1
        axes.plot(mark.x, mark.y, linewidth=1.2, markersize=4, markevery=spacing, **style)
    elif mark.shape == "horizontal":
        axes.axhline(*mark.y, linewidth=0.8, linestyle="--", **style)
    elif mark.shape == "vertical":
        axes.axvline(*mark.x, linewidth=0.8, linestyle="--", **style)
    else:
        alpha = 0.55 if mark.colour == FAINT else 1.0
        sizes = [3 * radius**2 for radius in mark.radius]
        edge = {"facecolor": "none", "linewidth": 1.2} if mark.hollow else {"linewidth": 0}
        axes.scatter(mark.x, mark.y, s=sizes, alpha=alpha, zorder=3, marker=MARKERS[mark.marker or 1], **style | edge)
        if mark.low:
            middle = np.array(mark.y if mark.interval_axis == "y" else mark.x)
            sides = {f"{mark.interval_axis}err": [middle - mark.low, mark.high - middle]}
            axes.errorbar(mark.x, mark.y, fmt="none", ecolor=style["color"], capsize=3, **sides)


def compute_half_width(estimate: Estimate) -> float:
    """Return half the width of the interval."""
    return (estimate.high - estimate.low) / 2
