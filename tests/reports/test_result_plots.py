"""Plots of results: marks, axes and files."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import banditune as bt
from banditune.reports import plot_marks, result_plots, svg_plots
from banditune.reports.report_builder import build_report_content
from banditune.results.estimates import Estimate, RegretDistribution
from banditune.results.exact_results import LowerBound
from helpers.example_results import (
    FIRST_INSTANCE,
    make_comparison,
    make_exact_regrets,
    make_lower_bound,
    make_store_summary,
    make_tuning,
)


def test_marks_of_a_comparison_have_the_same_labels_on_page_and_figure():
    comparison = replace(
        make_comparison(), lower_bound=LowerBound(regret=7.5, is_exact=False, confidence=0.95, method="penalty")
    )
    lower_bound, textbook, tuned, untuned = result_plots.make_comparison_plot(comparison).marks
    assert (lower_bound.label, lower_bound.x) == ("lower bound: 7.5 (95% sure)", (7.5,))
    assert (textbook.label, textbook.y, textbook.hollow) == ("textbook", (0.0,), True)
    assert (tuned.label, tuned.y) == ("tuned, 95% interval", (0.0,))
    assert (untuned.label, untuned.y) == ("not tuned, 95% interval", (1.0,))
    axes = bt.plot(comparison).axes[0]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        mark.label for mark in (lower_bound, textbook, tuned, untuned)
    ]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["ts", "ucb1"]
    assert axes.yaxis_inverted()
    assert axes.lines[0].get_xdata() == [7.5, 7.5]
    assert [
        mark.label
        for mark in result_plots.make_comparison_plot(replace(comparison, entries=comparison.entries[1:])).marks
    ] == [
        lower_bound.label,
        untuned.label,
    ]


@pytest.mark.parametrize(
    ("axis", "expected"),
    [
        (plot_marks.PlotAxis("", 0, 1), [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (plot_marks.PlotAxis("", -7, 12), [-5, 0, 5, 10]),
        (plot_marks.PlotAxis("", 0.5, 4.5, integer_ticks=True), [1, 2, 3, 4]),
        (plot_marks.PlotAxis("", 0, 40, log_low=0.9, log=True), [1, 2, 5, 10, 20]),
        (plot_marks.PlotAxis("", 0, 1e6, log_low=1, log=True), [1, 10, 100, 1e3, 1e4, 1e5, 1e6]),
        (plot_marks.PlotAxis("", 210, 240, log_low=1, log=True), [210, 215, 220, 225, 230, 235, 240]),
    ],
)
def test_ticks_are_round_numbers(axis, expected):
    assert svg_plots.choose_ticks(axis, svg_plots.AxisScale(axis, 0, 100), 7) == pytest.approx(expected)


def test_a_tuning_with_regret_0_can_be_plotted():
    zero = Estimate.from_standard_error(0.0, 0.0, 100)
    low, high = bt.plot(make_tuning(regret=zero, textbook_regret=zero, gain=zero)).axes[0].get_ylim()
    assert (low, high) == (0.0, 1.0)


def test_a_logarithmic_axis_hides_values_without_a_logarithm():
    locate = svg_plots.AxisScale(plot_marks.PlotAxis("", -5, 100, log_low=1, log=True), 0, 100)
    assert [locate(1), locate(10), locate(100)] == pytest.approx([0, 50, 100])
    assert locate(0) < 0
    assert locate(-4) < 0


def test_the_tail_covers_all_runs_up_to_the_worst():
    distribution = RegretDistribution.from_sample(np.arange(1000.0), FIRST_INSTANCE)
    regrets, shares, tips = result_plots.compute_tail_points("tuned", distribution)
    assert list(regrets) == sorted(regrets)
    assert list(shares) == sorted(shares, reverse=True)
    assert (regrets[-1], shares[-1]) == (999, 0.001)
    assert tips[-1] == f"tuned: run {FIRST_INSTANCE + 999} has regret 999, the worst of 1,000"
    assert "tuned: 50% of runs have regret 499 or more" in tips


@pytest.mark.parametrize("make", [make_exact_regrets, make_lower_bound, make_store_summary])
def test_figures_have_the_marks_of_the_page(make, tmp_path):
    result = make()
    axes = bt.plot(result).axes[0]
    legend = {text.get_text() for text in axes.get_legend().get_texts()}
    assert {mark.label for mark in build_report_content(result).sections[0].plot.marks if mark.label} == legend
    bt.plot(result, tmp_path / "figure.svg")
    assert "<svg" in (tmp_path / "figure.svg").read_text()


def test_figures_have_embedded_fonts_and_reproducible_files(tmp_path):
    curve = bt.curve(bt.UCB1(noise=0.5), bt.Bernoulli(arms=2), [0.2, 0.5, 1], horizon=20, runs=20)
    for kind in ("pdf", "svg", "png"):
        first, second = tmp_path / f"first.{kind}", tmp_path / f"second.{kind}"
        curve.plot(first)
        curve.plot(second)
        assert first.read_bytes() == second.read_bytes()
    assert b"/Type3" not in (tmp_path / "first.pdf").read_bytes()
