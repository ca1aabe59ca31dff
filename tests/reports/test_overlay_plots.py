"""Several results in one figure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import banditune as bt
from banditune.reports.overlay_plots import make_overlay_plot, name_results
from helpers.example_results import (
    make_comparison,
    make_curve,
    make_exact_regrets,
    make_over_time,
    make_setup,
    make_tuning,
)

OTHER_CURVE = replace(make_curve("ts"), mean=make_curve().mean + 10)


def get_legend(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_curves_are_drawn_together_with_labels_of_what_differs():
    first = make_curve()
    (axes,) = bt.plot([first, OTHER_CURVE]).axes
    assert get_legend(axes) == ["textbook: 1", "ucb1(noise=0.5)", "ts(noise=0.5)", "best, fresh instances"]
    drawn = {line.get_label(): line for line in axes.lines}
    assert (drawn["ucb1(noise=0.5)"].get_ydata() == first.mean).all()
    assert (drawn["ts(noise=0.5)"].get_ydata() == OTHER_CURVE.mean).all()
    one, two = drawn["ucb1(noise=0.5)"], drawn["ts(noise=0.5)"]
    assert one.get_color() != two.get_color()
    assert one.get_marker() != two.get_marker()
    assert (one.is_dashed(), two.is_dashed()) == (False, True)
    assert axes.get_xlabel() == "gamma"
    (labelled,) = bt.plot((first, OTHER_CURVE), labels=["a", "b"]).axes
    assert get_legend(labelled)[1:3] == ["a", "b"]


def test_curves_of_two_parameters_have_no_common_textbook_value():
    other = replace(OTHER_CURVE, parameter="epsilon", textbook=0.1)
    (axes,) = bt.plot([make_curve(), other]).axes
    assert axes.get_xlabel() == "gamma or epsilon"
    assert get_legend(axes)[0] == "ucb1(noise=0.5)"


def test_tunings_are_drawn_with_tuned_and_textbook_values():
    first, other = make_tuning(curves=()), make_tuning("ts", params={"gamma": 0.5})
    marks = make_overlay_plot([first, other], ["one", "two"]).marks
    dots = [mark for mark in marks if mark.shape == "dots"]
    assert [(mark.label, mark.x, mark.y, mark.hollow) for mark in dots] == [
        ("one, textbook: 1", (1.0,), (first.textbook_regret.mean,), True),
        ("one, tuned: 0.2222", (0.2222,), (first.regret.mean,), False),
        ("two, textbook: 1", (1.0,), (other.textbook_regret.mean,), True),
        ("two, tuned: 0.5", (0.5,), (other.regret.mean,), False),
    ]
    assert sum(mark.shape == "line" for mark in marks) == 1
    assert len({mark.marker for mark in dots}) == 2


def test_comparisons_share_the_rows_of_their_policies():
    first = make_comparison()
    second = replace(make_comparison("moss"), setup=replace(first.setup, horizon=500))
    (axes,) = bt.plot([first, second]).axes
    assert get_legend(axes) == ["horizon 10,000", "horizon 500"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["ts", "ucb1", "moss"]
    one, two = make_overlay_plot([first, second], None).marks
    assert np.round(one.y).tolist() == [0, 1]
    assert np.round(two.y).tolist() == [2, 1]
    assert one.y[1] != two.y[1]
    assert two.x == tuple(entry.regret.mean for entry in second.entries)


def test_regrets_over_time_of_several_horizons_are_drawn_together():
    first, second = make_over_time(), make_over_time(steps=(50, 5000))
    (axes,) = bt.plot([first, second]).axes
    assert get_legend(axes) == [
        f"horizon {horizon}, {label}" for horizon in ("1,000", "5,000") for label in ("tuned", "textbook")
    ]
    assert [list(line.get_xdata()) for line in axes.lines[1:3]] == [[10, 100, 1000], [50, 5000]]
    colours = [line.get_color() for line in axes.lines]
    assert colours[0] == colours[1] != colours[2] == colours[3]
    (relabelled,) = bt.plot(first, labels=["ours", "UCB1"]).axes
    assert get_legend(relabelled) == ["ours", "UCB1"]


def test_results_are_named_by_what_differs_or_by_number():
    first = make_curve()
    assert name_results([first]) == ["ucb1(noise=0.5)"]
    assert name_results([first, first]) == ["result 1", "result 2"]
    seeds = [replace(first, setup=replace(make_setup(), seed=seed)) for seed in (1, 2, 2)]
    assert name_results(seeds) == ["seed 1, result 1", "seed 2, result 2", "seed 2, result 3"]


@pytest.mark.parametrize(
    ("results", "labels", "message"),
    [
        ([], None, "must be of one kind, but got none"),
        ([3], None, "but got int"),
        ([make_curve(), make_tuning()], None, "of one kind, but got Curve and Tuning"),
        ([make_exact_regrets()] * 2, None, "must be curves, tunings, comparisons or regrets over time"),
        ([make_curve(), OTHER_CURVE], ["a"], "`labels` must be 2 names"),
        ([make_curve(), OTHER_CURVE], "ab", "`labels` must be 2 names"),
        (make_over_time(), ["a", 2], "`labels` must be 2 names, one for each of 'tuned', 'textbook'"),
    ],
)
def test_results_that_cannot_share_a_figure_are_refused(results, labels, message):
    with pytest.raises(bt.InvalidRequest, match=message):
        bt.plot(results, labels=labels)
