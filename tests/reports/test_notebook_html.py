"""What a notebook shows of a result: the answer, its main tables and its warnings, without a style sheet."""

from __future__ import annotations

import re

import numpy as np
import pytest

import banditune as bt
from banditune.reports.notebook_html import render_notebook, render_notebook_table
from banditune.reports.report_builder import build_report_content
from banditune.reports.report_content import ReportTable
from banditune.results.conformance_results import ConformanceCheck, ConformanceReport
from banditune.results.estimates import Estimate
from helpers.example_results import RESULTS, SCRIPT_NAME, TagChecker, make_comparison, make_curve, make_tuning


def read_cells(html):
    """The texts of the cells of all tables."""
    return re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", html)


@pytest.mark.parametrize("name", RESULTS)
def test_every_result_is_shown_with_its_answer_and_a_table(name):
    result = RESULTS[name]()
    html = result._repr_html_()
    tags = TagChecker()
    tags.feed(html)
    tags.close()
    assert tags.open == []
    assert tags.scripts == 0
    assert not re.search(r"https?:|\bsrc=|\bhref=|<style|\bclass=\"(?!tex2jax_ignore)", html)
    assert build_report_content(result).title.split("(")[0] in html
    assert "<table>" in html
    # "How to repeat this" is not an answer.
    assert "seed" not in read_cells(html)


def test_texts_are_to_the_left_and_numbers_to_the_right():
    table = ReportTable(("policy", "regret"), (("ucb1", "3.2"), ("a policy with a very long name", "12.5")))
    html = render_notebook_table(table)
    assert '<th style="text-align: left">policy</th><th style="text-align: right">regret</th>' in html
    assert '<td style="text-align: left; min-width: 18ch">ucb1</td>' in html
    assert '<td style="text-align: right; white-space: nowrap">12.5</td>' in html


def test_warnings_are_shown_below_the_table():
    html = render_notebook(make_tuning(notices=("look at `gamma`",)))
    assert "<p>Warnings:</p>\n<ul>\n<li>look at <code>gamma</code></li>\n</ul>" in html.partition("</table>")[2]
    assert "Warnings" not in render_notebook(make_tuning(notices=()))


def test_the_numbers_of_a_curve_open_by_a_click():
    html = render_notebook(make_curve())
    assert html.count("<table>") == 1
    assert "<details><summary>The curve in numbers</summary>" in html.partition("<table>")[0]


def test_a_fit_shows_estimates_and_checks():
    logs = bt.make_logs(["may", "may", "june", "june"], ["red", "blue"] * 2, [10, 20, 30, 40], [1, 5, 6, 20])
    html = bt.fit(logs)._repr_html_()
    assert {"value", "share above"} <= set(read_cells(html))
    assert "<p>Checks of the fit</p>" in html


def test_the_checks_of_an_own_policy_are_a_table():
    report = ConformanceReport(
        subject_kind="policy",
        subject=SCRIPT_NAME,
        checks=(ConformanceCheck(name="memory", finding="`start` writes all"),),
        left_out=("no shortcut",),
    )
    html = report._repr_html_()
    assert read_cells(html) == ["check", "what was found", "memory", "<code>start</code> writes all"]
    assert "<script" not in html
    assert "passes 1 check." in html
    assert "<li>Left out: no shortcut</li>" in html


def test_names_are_escaped_and_dollar_signs_are_no_formulas():
    html = render_notebook(make_comparison(SCRIPT_NAME, "$x$"))
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert html.startswith('<div class="tex2jax_ignore mathjax_ignore">')


def test_a_record_without_a_report_is_plain_text():
    html = render_notebook(Estimate.from_sample(np.arange(3.0)))
    assert html.startswith("<pre>1 +- ")
