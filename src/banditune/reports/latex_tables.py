r"""Renders results as LaTeX tables that need no package: `tabular` with `\hline`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

from banditune.core.errors import InvalidRequest
from banditune.core.request_errors import make_argument_error, make_unused_error
from banditune.reports.backtest_statements import list_backtest_estimates
from banditune.reports.over_time_plots import choose_table_steps
from banditune.reports.report_builder import build_report_content
from banditune.reports.robustness_statements import format_excess_share
from banditune.reports.text_formatting import (
    count_decimals,
    format_mean_and_error,
    format_number,
    format_params,
    name_baseline,
)
from banditune.results.comparison_results import Comparison, ComparisonEntry
from banditune.results.estimates import Estimate
from banditune.results.log_results import Backtest
from banditune.results.over_time_results import RegretOverTime, RegretSeries, StepEstimates
from banditune.results.robustness_results import RobustnessReport
from banditune.results.tuning_results import Curve, Tuning

ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}
"""How LaTeX writes characters that it gives a meaning, or that its oldest fonts lack."""


LABEL_PATTERN = re.compile(r"[\w:.+/ -]*", re.ASCII)
"""Labels that LaTeX can write to its auxiliary file."""


PLUS_MINUS, INTERVAL_HEADING = r" \pm ", r"95\% interval"


@dataclass(frozen=True)
class LatexTable:
    """Cells in LaTeX: a header, and groups of rows with a line after each. The first columns hold text."""

    header: tuple[str, ...]
    groups: tuple[tuple[tuple[str, ...], ...], ...]
    text_columns: int = 1


def format_latex(result: Any, *, caption: str = "", label: str = "") -> str:
    r"""Format a result as a LaTeX table that needs no package.

    Numbers are means with their standard errors. Names are escaped.

    Parameters
    ----------
    result : ResultRecord
        The result.
    caption : str
        The caption, in LaTeX. With a caption or a label, the table is in a `table` environment.
    label : str
        The label for `\ref`.

    Returns
    -------
    str
        A `tabular`. An estimate by itself is a formula, as in `$43.4 \pm 2.8$`.

    Raises
    ------
    InvalidRequest
        If the result has no table, or caption or label do not fit.

    Examples
    --------
    >>> import banditune as bt
    >>> print(bt.results.Estimate.from_standard_error(2.0, 0.1, 100).to_latex())
    $2.00 \pm 0.10$
    """
    if isinstance(result, Estimate):
        for name, text in (("caption", caption), ("label", label)):
            if text:
                raise make_unused_error(name, text, "because an estimate is no table")
        return format_latex_estimate(result)
    check_caption(caption)
    if not LABEL_PATTERN.fullmatch(label):
        text = f"must hold letters, digits, spaces and signs out of : . + / - _, but got {label!r:.60}."
        raise make_argument_error("label", "bad-data", text)
    tabular = render_tabular(make_latex_table(result))
    if not caption and not label:
        return tabular
    lines = [
        r"\begin{table}",
        r"\centering",
        *([rf"\caption{{{caption}}}"] if caption else []),
        *([rf"\label{{{label}}}"] if label else []),
        tabular.rstrip(),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def check_caption(caption: str) -> None:
    """Check that the braces of a caption are balanced, and that it has no comment: either would end the document early."""
    plain = re.sub(r"\\.", "", caption, flags=re.DOTALL)
    depth = lowest = 0
    for mark in plain:
        depth += (mark == "{") - (mark == "}")
        lowest = min(lowest, depth)
    if depth or lowest or "%" in plain or caption.endswith("\\"):
        text = r"must be LaTeX with balanced braces and each % written as \%, but got {!r:.80}."
        raise make_argument_error("caption", "bad-data", text, caption)


def render_tabular(table: LatexTable) -> str:
    """Render a table."""
    columns = "".join("l" if column < table.text_columns else "r" for column in range(len(table.header)))
    lines = [rf"\begin{{tabular}}{{{columns}}}", r"\hline", render_row(table.header), r"\hline"]
    for group in table.groups:
        lines += [*map(render_row, group), r"\hline"]
    return "\n".join([*lines, r"\end{tabular}"]) + "\n"


def render_row(cells: Sequence[str]) -> str:
    """Render a row. A first cell in brackets would be read as an option of the line before."""
    row = " & ".join(cells)
    return rf"{'{}' if row.lstrip().startswith(('[', '*')) else ''}{row} \\"


def escape_latex(text: str) -> str:
    """Escape text. Names of policies and arms come from users."""
    return "".join(ESCAPES.get(mark, mark) for mark in " ".join(text.split()))


def format_latex_number(value: float) -> str:
    """Format a number as a formula."""
    return f"${convert_exponent(format_number(value))}$" if math.isfinite(value) else format_latex_infinite(value)


def format_latex_infinite(value: float) -> str:
    """Format an infinite or missing number."""
    return "--" if math.isnan(value) else r"$\infty$" if value > 0 else r"$-\infty$"


def format_latex_mean(mean: float, error: float) -> str:
    r"""Format a mean with its standard error, as $43.4 \pm 2.8$."""
    return f"${convert_exponent(format_mean_and_error(mean, error, PLUS_MINUS))}$"


def format_latex_estimate(estimate: Estimate) -> str:
    """Format an estimate: its mean with its standard error."""
    return format_latex_mean(estimate.mean, estimate.se)


def format_latex_interval(low: float, high: float, error: float) -> str:
    """Format an interval with as many decimals as the mean has with this standard error, as $[37.8, 48.9]$."""
    decimals = count_decimals(error)
    ends = [format_latex_number(end).strip("$") if decimals is None else f"{end:.{decimals}f}" for end in (low, high)]
    return f"$[{ends[0]}, {ends[1]}]$"


def convert_exponent(text: str) -> str:
    """Write 1e-05 as a power of ten."""
    return re.sub(r"e([+-]\d+)", lambda match: rf" \times 10^{{{int(match[1])}}}", text)


@singledispatch
def make_latex_table(result: Any) -> LatexTable:
    """Make the table of a result. Without one of its own, it is the first table of the report."""
    table = next((section.table for section in build_report_content(result).sections if section.table), None)
    if table is None:
        raise InvalidRequest(
            f"a result must have a table to be written as LaTeX, but got {type(result).__name__}.",
            argument="result",
            code="wrong-type",
        )
    header, *rows = ([escape_latex(cell) for cell in row] for row in (table.header, *table.rows))
    return LatexTable(tuple(header), (tuple(map(tuple, rows)),), table.text_columns)


@make_latex_table.register
def _(result: Tuning) -> LatexTable:
    header = ("", *map(escape_latex, result.params), "regret", INTERVAL_HEADING)
    rows = (
        ("tuned", result.params, result.regret),
        (name_baseline(result), result.textbook_params, result.textbook_regret),
    )
    values = tuple(
        (escape_latex(name), *map(format_latex_number, params.values()), *format_estimate_columns(estimate))
        for name, params, estimate in rows
    )
    gain = ("gain", *("" for _ in result.params), *format_estimate_columns(result.gain))
    return LatexTable(header, (values, (gain,)))


@make_latex_table.register
def _(result: Backtest) -> LatexTable:
    rows = tuple(
        (escape_latex(name), *format_estimate_columns(estimate)) for name, estimate in list_backtest_estimates(result)
    )
    return LatexTable(("on campaigns left out", "mean", INTERVAL_HEADING), (rows[:3], rows[3:]))


@make_latex_table.register
def _(result: Comparison) -> LatexTable:
    rows = tuple(
        (
            escape_latex(entry.policy),
            escape_latex(describe_latex_params(entry)),
            format_latex_estimate(entry.regret),
            "" if entry.policy == result.best_policy else format_latex_estimate(entry.difference_to_best),
            format_latex_estimate(entry.textbook_regret),
        )
        for entry in result.entries
    )
    return LatexTable(("policy", "tuned to", "regret", "behind the best", "textbook regret"), (rows,), 2)


def describe_latex_params(entry: ComparisonEntry) -> str:
    """Describe the parameters of a policy in a few words."""
    if entry.is_worse_than_textbook:
        return f"{format_params(entry.params)} (worse than textbook)"
    return format_params(entry.params) + ("" if entry.is_tuned or not entry.params else " (textbook)")


@make_latex_table.register
def _(result: Curve) -> LatexTable:
    rows = tuple(
        (format_latex_number(value), format_latex_mean(mean, se), format_latex_interval(mean - reach, mean + reach, se))
        for value, mean, se, reach in zip(
            *(part.tolist() for part in (result.values, result.mean, result.se, result.half_width)), strict=True
        )
    )
    best = (f"{format_latex_number(result.best_value)}, fresh instances", *format_estimate_columns(result.best_regret))
    return LatexTable((escape_latex(result.parameter), "regret", INTERVAL_HEADING), (rows, (best,)), 0)


@make_latex_table.register
def _(result: RobustnessReport) -> LatexTable:
    rows = tuple(
        (
            escape_latex(scenario.description),
            escape_latex(scenario.verdict),
            format_latex_estimate(scenario.regret),
            format_latex_number(scenario.best_value),
            format_latex_estimate(scenario.best_regret),
            format_latex_estimate(scenario.excess_regret),
            escape_latex(format_excess_share(scenario)),
            format_latex_estimate(scenario.textbook_regret),
        )
        for scenario in result.scenarios
    )
    header = ("what if", "verdict", "regret", "best known", "its regret", "excess", "share", "textbook regret")
    return LatexTable(header, (rows[:1], rows[1:]) if len(rows) > 1 else (rows,), 2)


@make_latex_table.register
def _(result: RegretOverTime) -> LatexTable:
    steps = choose_table_steps(result.steps)

    def list_cells(estimates: StepEstimates) -> Iterator[str]:
        for step in steps:
            index = result.steps.index(step)
            yield format_latex_mean(float(estimates.mean[index]), float(estimates.se[index]))

    def make_rows(series: Iterable[RegretSeries], *, paired: bool) -> tuple[tuple[str, ...], ...]:
        return tuple(
            (
                escape_latex(f"{one.label} minus {result.reference}" if paired else one.label),
                "" if paired else escape_latex(format_params(one.params)),
                *list_cells(one.difference_to_reference if paired else one.regret),
            )
            for one in series
        )

    compared = [one for one in result.series if one.label != result.reference]
    groups = (make_rows(result.series, paired=False), *([make_rows(compared, paired=True)] if compared else []))
    header = ("regret after step", "parameters", *(f"${step:,}$".replace(",", "{,}") for step in steps))
    return LatexTable(header, groups, 2)


def format_estimate_columns(estimate: Estimate) -> tuple[str, str]:
    """Format an estimate as two cells: the mean with its standard error, and the interval."""
    return format_latex_estimate(estimate), format_latex_interval(estimate.low, estimate.high, estimate.se)
