"""LaTeX tables: their structure, their escapes, and their numbers."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest

import banditune as bt
from banditune.reports.latex_tables import ESCAPES, escape_latex
from banditune.results.estimates import Estimate
from helpers.example_results import RESULTS, make_comparison, make_curve, make_over_time, make_tuning
from helpers.sample_logs import make_binary_logs

EVIL = r"a_b & 5% of $x^2 ~ {#1} \end{tabular} <|>"
NUMBER = re.compile(r"-?[\d.]+")


def read_tabular(text):
    """The rows of a table as cells in LaTeX. Its structure is checked on the way."""
    assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")
    environments = re.findall(r"\\(begin|end)\{(\w+)\}", text)
    names = [name for _, name in environments]
    assert names[: len(names) // 2] == names[: len(names) // 2 - 1 : -1]
    columns, body = re.search(r"\\begin\{tabular\}\{([lr]+)\}\n(.*)\\end\{tabular\}", text, re.DOTALL).groups()
    lines = body.splitlines()
    assert lines[0] == lines[2] == lines[-1] == r"\hline"
    rows = [line for line in lines if line != r"\hline"]
    assert all(row.endswith(r" \\") for row in rows)
    cells = [re.split(r"(?<!\\)&", row.removesuffix(r" \\")) for row in rows]
    assert {len(row) for row in cells} == {len(columns)}
    for cell in (cell for row in cells for cell in row):
        outside = re.sub(r"(?<!\\)\$[^$]*\$", "", cell)
        for command in ESCAPES.values():
            outside = outside.replace(command, "")
        assert not set(outside) & set(ESCAPES), cell
    return [[cell.strip() for cell in row] for row in cells]


def read_numbers(cell):
    """The numbers of a formula, as text."""
    assert cell.startswith("$")
    assert cell.endswith("$")
    return NUMBER.findall(cell)


def assert_is_rounded(text, value):
    """A printed number is the value, rounded to its last digit."""
    decimals = len(text.partition(".")[2])
    assert abs(float(text) - value) <= 0.5 * 10.0**-decimals + 1e-9 * abs(value)


def assert_shows(cell, mean, se):
    """A cell shows a mean with its standard error, both with the same decimals and the error with two digits."""
    texts = read_numbers(cell)
    assert len(texts) == 2
    assert len({len(text.partition(".")[2]) for text in texts}) == 1
    assert len(texts[1].replace(".", "").lstrip("0")) >= 2
    assert_is_rounded(texts[0], mean)
    assert_is_rounded(texts[1], se)


@pytest.mark.parametrize("name", RESULTS)
def test_every_reported_result_has_a_well_formed_table(name):
    rows = read_tabular(RESULTS[name]().to_latex())
    assert len(rows) >= 2


def test_a_tuning_has_its_numbers_in_the_table():
    tuning = make_tuning()
    header, *rows = read_tabular(tuning.to_latex())
    assert header == ["", "gamma", "regret", r"95\% interval"]
    assert [row[0] for row in rows] == ["tuned", "textbook", "gain"]
    assert [row[1] for row in rows] == ["$0.2222$", "$1$", ""]
    for row, estimate in zip(rows, (tuning.regret, tuning.textbook_regret, tuning.gain), strict=True):
        assert_shows(row[2], estimate.mean, estimate.se)
        for text, end in zip(read_numbers(row[3]), (estimate.low, estimate.high), strict=True):
            assert_is_rounded(text, end)


def test_a_comparison_has_regrets_and_paired_differences():
    comparison = make_comparison("ts", EVIL)
    _, best, other = read_tabular(comparison.to_latex())
    assert best[:2] == ["ts", "gamma = 0.67"]
    assert best[3] == ""
    entry = comparison.entries[1]
    assert other[0] == escape_latex(EVIL)
    for cell, estimate in zip(other[2:], (entry.regret, entry.difference_to_best, entry.textbook_regret), strict=True):
        assert_shows(cell, estimate.mean, estimate.se)


def test_a_curve_has_a_row_for_each_value_and_its_best_on_fresh_instances():
    curve = replace(make_curve(), values=np.array([0.0, 0.2, 1.0]), mean=np.array([50.0, 40, 99]), se=np.ones(3))
    header, *rows, best = read_tabular(curve.to_latex())
    assert header[0] == "gamma"
    assert [row[0] for row in rows] == ["$0$", "$0.2$", "$1$"]
    for row, mean in zip(rows, curve.mean, strict=True):
        assert_shows(row[1], mean, 1.0)
    assert best[0] == "$0.22$, fresh instances"
    assert_shows(best[1], curve.best_regret.mean, curve.best_regret.se)


def test_regret_over_time_has_a_column_for_each_step_and_paired_differences():
    result = make_over_time(("tuned", EVIL))
    header, tuned, other, difference = read_tabular(result.to_latex())
    assert header[2:] == ["$10$", "$100$", "$1{,}000$"]
    assert difference[0] == f"{escape_latex(EVIL)} minus tuned"
    for row, estimates in (
        (tuned, result["tuned"].regret),
        (other, result[EVIL].regret),
        (difference, result[EVIL].difference_to_reference),
    ):
        for cell, mean, se in zip(row[2:], estimates.mean, estimates.se, strict=True):
            assert_shows(cell, mean, se)


def test_robustness_and_backtests_have_their_numbers_in_tables():
    search = bt.Search(validate=50)
    report = bt.robustness(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), 0.3, horizon=50, budget=20, search=search)
    _, *rows = read_tabular(report.to_latex())
    assert len(rows) == len(report.scenarios)
    for row, scenario in zip(rows, report.scenarios, strict=True):
        assert row[:2] == [escape_latex(scenario.description), scenario.verdict]
        assert_shows(row[4], scenario.best_regret.mean, scenario.best_regret.se)
    tested = bt.backtest(bt.UCB1(noise=0.5), make_binary_logs(), budget=20, search=search)
    _, *rows = read_tabular(tested.to_latex())
    assert rows[2][0] == "gain"
    assert_shows(rows[2][1], tested.gain.mean, tested.gain.se)
    assert_shows(rows[-1][1], tested.reward_difference.mean, tested.reward_difference.se)


@pytest.mark.parametrize(
    ("mean", "se", "expected"),
    [
        (43.3512, 2.848, r"$43.4 \pm 2.8$"),
        (131.284, 0.0996, r"$131.28 \pm 0.10$"),
        (12345.6, 123.4, r"$12346 \pm 123$"),
        (-0.5, 0.25, r"$-0.50 \pm 0.25$"),
        (2.0, 0.0, "$2$"),
        (2.0, math.nan, "$2$"),
        (1e-7, 0.0, r"$1 \times 10^{-7}$"),
        (1e-7, 2e-12, r"$1 \times 10^{-7} \pm 2.0 \times 10^{-12}$"),
    ],
)
def test_an_estimate_is_a_formula_with_two_digits_of_its_error(mean, se, expected):
    assert Estimate.from_standard_error(mean, se, 100).to_latex() == expected


def test_text_is_escaped():
    assert escape_latex("a_b  & c\n5%") == r"a\_b \& c 5\%"
    assert escape_latex("\\{}$#^~<>|") == (
        r"\textbackslash{}\{\}\$\#\textasciicircum{}\textasciitilde{}\textless{}\textgreater{}\textbar{}"
    )
    assert escape_latex("Ärmel") == "Ärmel"


def test_a_caption_and_a_label_make_a_table_environment():
    text = make_tuning().to_latex(caption=r"Regret at $T=10^4$, 95\% \emph{paired}", label="tab:regret")
    lines = text.splitlines()
    assert lines[:4] == [
        r"\begin{table}",
        r"\centering",
        r"\caption{Regret at $T=10^4$, 95\% \emph{paired}}",
        r"\label{tab:regret}",
    ]
    assert lines[-1] == r"\end{table}"
    assert len(read_tabular(text)) == 4
    assert r"\label" not in make_tuning().to_latex(caption="Regret")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"caption": "5% more"}, "`caption` must be LaTeX with balanced braces"),
        ({"caption": "} {"}, "`caption` must be LaTeX with balanced braces"),
        ({"caption": "end\\"}, "`caption` must be LaTeX with balanced braces"),
        ({"label": "a}b"}, "`label` must hold letters, digits"),
    ],
)
def test_captions_and_labels_that_break_a_document_are_refused(settings, message):
    with pytest.raises(bt.InvalidRequest, match=message):
        make_tuning().to_latex(**settings)


def test_results_without_a_table_are_refused():
    with pytest.raises(bt.InvalidRequest, match="`caption` must be left out, because an estimate is no table"):
        make_tuning().regret.to_latex(caption="A number")
    with pytest.raises(bt.InvalidRequest, match="to be reported, but got UnimodalityTest"):
        make_curve().unimodality.to_latex()
