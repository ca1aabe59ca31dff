"""Regret over time as text and as a page."""

from __future__ import annotations

from dataclasses import replace

import pytest

import banditune as bt
from banditune.reports.html_page import render_page
from banditune.reports.report_builder import build_report_content
from banditune.results.estimates import Estimate
from banditune.results.over_time_results import StepEstimates
from helpers.example_results import SCRIPT_NAME, make_over_time


def test_text_has_a_row_for_each_series_and_the_paired_differences():
    result = make_over_time()
    lines = repr(result).splitlines()
    header = next(number for number, line in enumerate(lines) if line.startswith("regret after step"))
    assert lines[header].split() == ["regret", "after", "step", "parameters", "10", "100", "1,000"]
    tuned, textbook = result["tuned"].regret, result["textbook"]
    assert f"{tuned.mean[-1]:.2f} +- {tuned.se[-1]:.2f}" in lines[header + 1]
    assert lines[header + 2].startswith("textbook           gamma = 1")
    assert lines[header + 4].startswith("minus tuned")
    assert f"{textbook.difference_to_reference.mean[-1]:.2f} +- " in lines[header + 5]
    assert "200 runs, the same instances for all" in repr(result)


def make_difference(mean):
    """The textbook's difference to the tuned policy, with standard error 1."""
    result = make_over_time(steps=(10,))
    difference = StepEstimates.from_estimates([Estimate.from_standard_error(mean, 1.0, 200)])
    return replace(result, series=(result.series[0], replace(result.series[1], difference_to_reference=difference)))


@pytest.mark.parametrize(
    ("mean", "end"),
    [
        (10.0, "and textbook 10 (8.028 to 11.97) more."),
        (-10.0, "and textbook 10 (8.028 to 11.97) less."),
        (1.0, "and textbook may have as much: the difference is 1 (-0.972 to 2.972)."),
    ],
)
def test_the_answer_states_the_difference_as_far_as_its_interval_allows(mean, end):
    assert build_report_content(make_difference(mean)).answer.endswith(end)


def test_the_answer_of_one_or_many_series_is_the_lowest_regret():
    many = make_over_time(("ucb1", "ts", "greedy"))
    assert build_report_content(many).answer.startswith("After 1,000 steps ucb1 has the lowest of 3 regrets, ")
    one = make_over_time(("ts",), (1,))
    assert build_report_content(one).answer.startswith("After 1 step ts has regret ")
    assert [section.title for section in build_report_content(one).sections] == ["Regret", "How to repeat this"]


def test_a_page_has_both_plots_and_the_settings_to_repeat_the_result():
    page = render_page(build_report_content(make_over_time((SCRIPT_NAME, "textbook"))))
    assert page.count('<svg class="plot"') == 2
    assert SCRIPT_NAME not in page
    assert 'class="line c0 d2"' in page
    assert "first instance" in page
    html = make_over_time()._repr_html_()
    assert "<table>" in html
    assert " ± " in html


def test_series_with_another_textbook_policy_are_described():
    result = make_over_time()
    tuned = replace(result.series[0], policy_config={"name": "ucb1", "noise": 0.1})
    text = repr(replace(result, series=(tuned, result.series[1])))
    assert "textbook is ucb1(noise=0.5), not ucb1(noise=0.1)" in text


def test_a_figure_has_a_line_and_a_band_for_each_series():
    result = make_over_time()
    (axes,) = bt.plot(result).axes
    assert [list(line.get_ydata()) for line in axes.lines] == [list(one.regret.mean) for one in result.series]
    assert len(axes.collections) == 2
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["tuned", "textbook"]
    assert axes.get_xlim() == (0.0, 1020.0)
