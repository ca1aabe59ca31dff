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
from helpers.example_results import FIRST, a_bound, a_comparison, a_tuning, an_account, exact_regrets


def test_a_comparison_calls_each_dot_what_it_is_on_the_page_and_in_the_figure():
    found = replace(
        a_comparison(), lower_bound=LowerBound(regret=7.5, is_exact=False, confidence=0.95, method="penalty")
    )
    floor, theory, tuned, untuned = result_plots.make_comparison_plot(found).marks
    assert (floor.label, floor.x) == ("lower bound: 7.5 (95% sure)", (7.5,))
    assert (theory.label, theory.y, theory.hollow) == ("textbook", (0.0,), True)
    assert (tuned.label, tuned.y) == ("tuned, 95% interval", (0.0,))
    assert (untuned.label, untuned.y) == ("not tuned, 95% interval", (1.0,))
    axes = bt.plot(found).axes[0]
    assert [words.get_text() for words in axes.get_legend().get_texts()] == [
        mark.label for mark in (floor, theory, tuned, untuned)
    ]
    assert [words.get_text() for words in axes.get_yticklabels()] == ["ts", "ucb1"]
    assert axes.yaxis_inverted()
    assert axes.lines[0].get_xdata() == [7.5, 7.5]
    assert [
        mark.label for mark in result_plots.make_comparison_plot(replace(found, entries=found.entries[1:])).marks
    ] == [
        floor.label,
        untuned.label,
    ]


@pytest.mark.parametrize(
    ("axis", "expected"),
    [
        (plot_marks.PlotAxis("", 0, 1), [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (plot_marks.PlotAxis("", -7, 12), [-5, 0, 5, 10]),
        (plot_marks.PlotAxis("", 0.5, 4.5, whole=True), [1, 2, 3, 4]),
        (plot_marks.PlotAxis("", 0, 40, least=0.9, log=True), [1, 2, 5, 10, 20]),
        (plot_marks.PlotAxis("", 0, 1e6, least=1, log=True), [1, 10, 100, 1e3, 1e4, 1e5, 1e6]),
        (plot_marks.PlotAxis("", 210, 240, least=1, log=True), [210, 215, 220, 225, 230, 235, 240]),
    ],
)
def test_ticks_are_round_numbers(axis, expected):
    assert svg_plots.choose_ticks(axis, svg_plots.AxisScale(axis, 0, 100), 7) == pytest.approx(expected)


def test_a_tuning_without_any_regret_can_be_drawn():
    none = Estimate.from_standard_error(0.0, 0.0, 100)
    low, high = bt.plot(a_tuning(regret=none, textbook_regret=none, gain=none)).axes[0].get_ylim()
    assert (low, high) == (0.0, 1.0)


def test_a_logarithmic_axis_hides_what_has_no_logarithm():
    place = svg_plots.AxisScale(plot_marks.PlotAxis("", -5, 100, least=1, log=True), 0, 100)
    assert [place(1), place(10), place(100)] == pytest.approx([0, 50, 100])
    assert place(0) < 0
    assert place(-4) < 0


def test_the_tail_goes_from_all_runs_to_the_worst_one():
    spread = RegretDistribution.from_sample(np.arange(1000.0), FIRST)
    losses, shares, tips = result_plots.compute_tail_points("tuned", spread)
    assert list(losses) == sorted(losses)
    assert list(shares) == sorted(shares, reverse=True)
    assert (losses[-1], shares[-1]) == (999, 0.001)
    assert tips[-1] == f"tuned: run {FIRST + 999} has regret 999, the worst of 1,000"
    assert "tuned: 50% of runs have regret 499 or more" in tips


@pytest.mark.parametrize("make", [exact_regrets, a_bound, an_account])
def test_plots_of_the_page_are_drawn_as_figures_too(make, tmp_path):
    result = make()
    drawn = bt.plot(result).axes[0]
    legend = {words.get_text() for words in drawn.get_legend().get_texts()}
    assert {mark.label for mark in build_report_content(result).sections[0].plot.marks if mark.label} == legend
    bt.plot(result, tmp_path / "figure.svg")
    assert "<svg" in (tmp_path / "figure.svg").read_text()


def test_figures_have_fonts_that_publishers_take_and_are_the_same_files_again(tmp_path):
    curve = bt.curve(bt.UCB1(noise=0.5), bt.Bernoulli(arms=2), [0.2, 0.5, 1], horizon=20, runs=20)
    for kind in ("pdf", "svg", "png"):
        first, second = tmp_path / f"first.{kind}", tmp_path / f"second.{kind}"
        curve.plot(first)
        curve.plot(second)
        assert first.read_bytes() == second.read_bytes()
    assert b"/Type3" not in (tmp_path / "first.pdf").read_bytes()
