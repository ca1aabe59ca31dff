"""Plots of regret over time, as records."""

from __future__ import annotations

import pytest

from banditune.reports.over_time_plots import (
    choose_line_styles,
    choose_table_steps,
    list_regret_lines,
    make_difference_plot,
    make_over_time_plot,
)
from banditune.reports.plot_marks import BLACK_COLOUR, DASHED, TUNED_COLOUR
from banditune.results.over_time_results import choose_steps
from helpers.example_results import make_over_time


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ((3, 70), (3, 70)),
        (choose_steps(1000), (20, 50, 100, 200, 500, 1000)),
        (choose_steps(70_000), (2000, 5000, 10_000, 20_000, 50_000, 70_000)),
        (tuple(range(30, 300, 10)), (30, 80, 130, 180, 230, 290)),
    ],
)
def test_a_table_shows_few_round_steps_and_the_last(steps, expected):
    assert choose_table_steps(steps) == expected


def test_lines_have_the_means_and_bands_the_intervals():
    result = make_over_time()
    band, line, dots, *others = make_over_time_plot(list_regret_lines(result), tips=True).marks
    tuned = result["tuned"].regret
    assert (line.x, line.y) == ((10.0, 100.0, 1000.0), tuple(tuned.mean))
    assert (band.low, band.high) == (tuple(tuned.low), tuple(tuned.high))
    assert dots.tips[0].startswith("tuned, step 10: ")
    assert len(others) == 3
    assert all(mark.shape != "dots" for mark in make_over_time_plot(list_regret_lines(result)).marks)
    zero, *marks = make_difference_plot(result).marks
    assert zero.y == (0.0,)
    assert [mark.label for mark in marks] == ["", "textbook", ""]
    assert marks[1].y == tuple(result["textbook"].difference_to_reference.mean)


def test_a_single_step_is_a_dot_with_an_interval():
    result = make_over_time(steps=(100,))
    tuned, textbook = make_over_time_plot(list_regret_lines(result)).marks
    assert (tuned.shape, tuned.label, tuned.x) == ("dots", "tuned", (100.0,))
    assert (tuned.low, tuned.high) == (tuple(result["tuned"].regret.low), tuple(result["tuned"].regret.high))
    assert tuned.marker != textbook.marker
    assert len(make_difference_plot(result).marks) == 2


def test_series_can_be_distinguished_without_colours():
    for labels in (("tuned", "textbook"), ("ucb1", "ts", "greedy", "moss", "bayes-ucb", "lints", "linucb")):
        styles = choose_line_styles(list_regret_lines(make_over_time(labels)))
        assert len({(style.dash, style.marker) for style in styles}) == len(labels)
    tuned, textbook = choose_line_styles(list_regret_lines(make_over_time()))
    assert (tuned.colour, textbook.colour, textbook.dash) == (TUNED_COLOUR, BLACK_COLOUR, DASHED)


def test_series_of_one_policy_among_several_have_its_colour_and_marker():
    lines = list_regret_lines(make_over_time(("tuned ts", "textbook ts", "low ts", "greedy")))
    lines = [
        line._replace(policy="greedy" if line.label == "greedy" else "ts", is_textbook=line.label != "tuned ts")
        for line in lines
    ]
    lines[2] = lines[2]._replace(is_textbook=False)
    tuned, textbook, low, greedy = choose_line_styles(lines)
    assert tuned[::2] == textbook[::2] == low[::2] != greedy[::2]
    assert len({tuned.dash, textbook.dash, low.dash}) == 3
    assert textbook.dash == DASHED
    assert greedy.dash == tuned.dash == 1
