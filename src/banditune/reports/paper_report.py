"""Reports on the reproduction of the paper: a summary, Markdown tables, the figure of its curves, a folder with all."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import numpy as np

from banditune.core.atomic_files import create_folder, write_atomically
from banditune.reports.figures import BLUE, GREY, ORANGE, make_figure, plot, save_figure, style_axes
from banditune.reports.plain_text import format_text
from banditune.reports.report_builder import build_report_content
from banditune.reports.report_content import ReportContent, ReportSection, ReportTable
from banditune.reports.text_formatting import format_text_table
from banditune.results.paper_results import PaperCell, Reproduction

NO_EXPLANATION = "Not known: with 10,000 runs per width this cell does not differ, or it was not examined."
"""The explanation of a cell that differs and has no line in `paper/explanations.csv`."""


PAPER_TABLE_TITLES = {
    "regret": "Regret after tuning",
    "failures": "Failures to find a width within 0.1 of the best, in %",
}


MARKS = "! is beyond 3 joint standard errors and its written tolerance, !! beyond 4, and ~ beyond 3 within a tolerance."
"""What the marks of cells mean."""


@format_text.register
def _(result: Reproduction) -> str:
    marked = [cell for cell in result.published_cells if cell.mark in ("!", "!!")]
    rows: list[Sequence[str]] = [("table", "row", "tuner", "budget", "ours", "se", "paper", "apart", "beyond", "")]
    rows += [
        (
            cell.table,
            cell.row,
            cell.tuner,
            str(cell.budget or ""),
            format_paper_number(cell.ours),
            f"{cell.se:.2g}",
            format_paper_number(cell.paper),
            f"{cell.z_score:+.1f}",
            f"{cell.excess_z_score:+.1f}",
            cell.mark,
        )
        for cell in marked
    ]
    explanations = list(dict.fromkeys(cell.explanation for cell in marked if cell.explanation))
    details = ["", format_text_table(rows, left=(0, 1, 2, 9)), *(f"\n{why}" for why in explanations)] if marked else []
    return "\n".join([*summarise_reproduction(result), *details])


@build_report_content.register
def _(result: Reproduction) -> ReportContent:
    title, *statements = summarise_reproduction(result)
    tables = {
        "Best width and textbook width": make_widths_table(result),
        **{title: make_budgets_table(result, name) for name, title in PAPER_TABLE_TITLES.items()},
    }
    sections = (
        *(
            ReportSection(title, table=table, is_shown_in_notebooks=True)
            for title, table in tables.items()
            if table.rows
        ),
        ReportSection("", (MARKS, *result.notes), fold_title="How it was done", is_shown_in_notebooks=True),
        ReportSection("How to repeat this", code=make_paper_command(result)),
    )
    return ReportContent(title, " ".join(statements), (), sections)


def make_widths_table(result: Reproduction) -> ReportTable:
    """Make the table of the best and the textbook width of each row, and of the Gittins index."""
    names = ("best", "textbook")
    rows = [
        (
            curve.row,
            f"{curve.best_value:.3g}",
            *(part for name in names for part in list_cell_parts(find_paper_cell(result, name, curve.row))),
        )
        for curve in result.curves
    ]
    rows += [(cell.row, "", *list_cell_parts(cell), "", "") for cell in result.cells if cell.table == "gittins"]
    return ReportTable(("row", "best width", "regret there", "paper", "regret of the textbook", "paper"), tuple(rows))


def make_budgets_table(result: Reproduction, table: str) -> ReportTable:
    """Make a table of the paper with a row for each tuner, and a column for each budget."""
    budgets = sorted({cell.budget for cell in result.cells if cell.table == table})
    rows = tuple(
        (
            curve.row,
            tuner,
            *(
                part
                for budget in budgets
                for part in list_cell_parts(find_paper_cell(result, table, curve.row, tuner, budget))
            ),
        )
        for curve in result.curves
        for tuner in result.tunings
    )
    header = (part for budget in budgets for part in (f"{budget:,} runs", "paper"))
    return ReportTable(("row", "tuner", *header), rows, text_columns=2)


def list_cell_parts(cell: PaperCell) -> tuple[str, str]:
    """List our number with its error and its mark, and the paper's number."""
    ours = "-" if math.isnan(cell.ours) else f"{format_paper_number(cell.ours)} ± {cell.se:.2g} {cell.mark}".rstrip()
    return ours, "-" if math.isnan(cell.paper) else f"{cell.paper:.1f}"


def summarise_reproduction(result: Reproduction) -> Iterator[str]:
    """State in a few sentences how many numbers agree."""
    cells = result.published_cells
    agreeing = sum(abs(cell.z_score) <= 3 for cell in cells)
    covered = sum(cell.mark == "~" for cell in cells)
    yield (
        f"{len(cells)} of the paper's 201 numbers have one of ours beside them ({result.runs:,} runs per width, seed "
        f"{result.seed}, on the {result.device.upper()})."
    )
    verb = "is" if covered == 1 else "are"
    yield f"{agreeing} are within 3 joint standard errors, {covered} more {verb} covered by a written tolerance;"
    beyond = [sum(cell.mark == mark for cell in cells) for mark in ("!", "!!")]
    yield f"{beyond[0]} {'is' if beyond[0] == 1 else 'are'} beyond 3 (!), {beyond[1]} beyond 4 (!!)."


def render_paper_markdown(result: Reproduction) -> str:
    """Render the whole comparison as one Markdown page."""
    reasons = list(dict.fromkeys(reason for cell in result.cells for reason in cell.tolerance_reasons))
    letters = {reason: ascii_lowercase[number] for number, reason in enumerate(reasons)}
    blocks = [
        "# The paper's numbers and ours",
        " ".join(summarise_reproduction(result)),
        f"Made by `{make_paper_command(result)}`.",
        *result.notes,
    ]
    blocks.append(
        "Each cell holds: ours ± its standard error (ours by another reading), **the paper's**, the difference in joint "
        "standard errors. `!` is beyond 3 and its written tolerance, `!!` beyond 4. `~` is beyond 3 but covered by the "
        "tolerances whose letters follow."
    )
    blocks += ["![Regret over the width, two policies on each of five problems](curves.svg)"]
    rows = [
        (
            curve.row,
            f"{curve.best_value:.3g}",
            f"{curve.best_of_tenths:.1f}",
            *(format_paper_cell(find_paper_cell(result, name, curve.row), letters) for name in ("best", "textbook")),
        )
        for curve in result.curves
    ]
    header = ("row", "best width", "best of tenths", "best", "textbook")
    blocks += ["## Best width and textbook width", render_table_lines(header, rows)]
    blocks += [
        f"Gittins index on the warm-up: {format_paper_cell(cell, letters)}"
        for cell in result.cells
        if cell.table == "gittins"
    ]
    for name, title in PAPER_TABLE_TITLES.items():
        budgets = sorted({cell.budget for cell in result.cells if cell.table == name})
        rows = [
            (
                curve.row,
                tuner,
                *(
                    format_paper_cell(find_paper_cell(result, name, curve.row, tuner, budget), letters)
                    for budget in budgets
                ),
            )
            for curve in result.curves
            for tuner in result.tunings
        ]
        blocks += [f"## {title}", render_table_lines(("row", "tuner", *map(str, budgets)), rows)]
    blocks += render_paper_differences(result)
    blocks += ["## Written tolerances", "\n".join(f"- ({letter}) {reason}" for reason, letter in letters.items())]
    blocks += ["## Differences", "![Differences in joint standard errors by row](agreement.svg)"]
    return "\n\n".join(blocks) + "\n"


def render_paper_differences(result: Reproduction) -> Iterator[str]:
    """Render the cells that differ, grouped by explanation."""
    marked = [cell for cell in result.published_cells if cell.mark in ("!", "!!")]
    if not marked:
        return
    yield "## Cells that differ, and why"
    rows = [
        ("; ".join(describe_paper_cell(cell) for cell in marked if cell.explanation == why), why or NO_EXPLANATION)
        for why in dict.fromkeys(cell.explanation for cell in marked)
    ]
    yield render_table_lines(("cells", "why"), rows)


def describe_paper_cell(cell: PaperCell) -> str:
    """Describe a cell in a few words: its key, our number, the paper's."""
    which = " ".join(str(part) for part in (cell.table, cell.row, cell.tuner, cell.budget) if part)
    return f"{which}: {format_paper_number(cell.ours)} ± {cell.se:.2g}, paper {cell.paper:.1f} `{cell.mark}`"


def make_paper_command(result: Reproduction) -> str:
    """Return the command line that repeats the reproduction. `--only` is left out."""
    tunings = max(result.tunings.values())
    return f"banditune paper --runs {result.runs} --tunings {tunings} --seed {result.seed} --device {result.device}"


def find_paper_cell(result: Reproduction, *number: Any) -> PaperCell:
    """Find a cell by the first of table, row, tuner and budget."""
    return next(
        cell for cell in result.cells if (cell.table, cell.row, cell.tuner, cell.budget)[: len(number)] == number
    )


def format_paper_cell(cell: PaperCell, letters: dict[str, str]) -> str:
    """Format a cell of a Markdown table."""
    if math.isnan(cell.ours):
        return f"- / **{cell.paper:g}**"
    other_reading = "" if math.isnan(cell.other_reading) else f" ({format_paper_number(cell.other_reading)})"
    ours = f"{format_paper_number(cell.ours)} ± {cell.se:.2g}{other_reading}"
    if math.isnan(cell.paper):
        return ours
    letter = f" ({', '.join(letters[reason] for reason in cell.tolerance_reasons)})" if cell.tolerance_reasons else ""
    mark = f" `{cell.mark}`" if cell.mark else ""
    return f"{ours} / **{cell.paper:.1f}** / {cell.z_score:+.1f}{mark}{letter}"


def format_paper_number(value: float) -> str:
    """Format a number with two decimals, one more than the paper has."""
    return f"{value:.2f}"


def render_table_lines(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Render a Markdown table."""
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def draw_paper_curves(result: Reproduction, path: str | Path | None = None) -> Any:
    """Draw regret over the width with 95% bands, one panel per problem.

    High regrets, of widths with little exploration, are outside the panel.
    """
    problems: dict[str, list[Any]] = {}
    for curve in result.curves:
        problems.setdefault(curve.row.split()[0], []).append(curve)
    figure = make_figure(3.0 * max(1, len(problems)), 3.2)
    panels = figure.subplots(1, max(1, len(problems)), squeeze=False)[0]
    for axes, (problem, curves) in zip(panels, problems.items(), strict=False):
        style_axes(axes)
        for curve, colour, line in zip(curves, (BLUE, ORANGE), ("-", "--"), strict=False):
            band = 1.96 * curve.se
            policy = curve.row.split()[1]
            axes.fill_between(curve.values, curve.mean - band, curve.mean + band, color=colour, alpha=0.25, linewidth=0)
            axes.plot(curve.values, curve.mean, color=colour, linestyle=line, linewidth=1.2, label=policy)
            lowest = np.interp(curve.best_value, curve.values, curve.mean)
            axes.plot(curve.best_value, lowest, "o", color=colour, markersize=5)
        for cell in result.cells:
            if cell.table == "gittins" and cell.row.startswith(problem) and not math.isnan(cell.ours):
                axes.axhline(cell.ours, color=GREY, linewidth=1, linestyle=":", label="gittins")
        axes.set_ylim(0, 1.15 * max(curve.mean[-1] for curve in curves))
        axes.set_xlabel(curves[0].parameter)
        axes.set_title(problem, loc="left", fontsize=10)
        axes.legend(frameon=False, fontsize=8)
    panels[0].set_ylabel("Bayes regret, 95% band")
    return figure if path is None else save_figure(figure, path)


def check_output_folder(folder: Path) -> None:
    """Make a folder, or raise `InvalidRequest` if that fails."""
    create_folder(folder)


def write_paper_folder(result: Reproduction, folder: Path) -> None:
    """Write tables, figures and the result itself to a folder."""
    check_output_folder(folder)
    write_atomically(folder / "paper.md", render_paper_markdown(result).encode())
    result.save(folder / "paper.json")
    draw_paper_curves(result, folder / "curves.svg")
    plot(result, folder / "agreement.svg")
