"""Figures: axes of the user, scales, sizes, fonts and files."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

import banditune as bt
from helpers.example_results import RESULTS, make_comparison, make_curve, make_over_time, make_tuning


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_drawn_into_axes_of_the_user(name):
    figure = Figure()
    left, right = figure.subplots(1, 2)
    left.set_title("mine", loc="left")
    result = RESULTS[name]()
    assert bt.plot(result, ax=left) is left
    assert left.get_title(loc="left") == "mine"
    assert left.get_legend() is not None
    assert left.get_xlabel() == bt.plot(result).axes[0].get_xlabel()
    assert left.spines["top"].get_visible()
    assert not right.has_data()
    assert result.plot(ax=right) is right


def test_labels_may_contain_formulas_in_axes_of_the_user():
    axes = Figure().subplots()
    bt.plot([make_curve(), make_curve("ts")], ax=axes, labels=[r"$\gamma$", "b"])
    assert all(text.get_parse_math() for text in axes.get_legend().get_texts())
    axes = Figure().subplots()
    bt.plot([make_curve("$a"), make_curve("$b")], ax=axes)
    assert not any(text.get_parse_math() for text in axes.get_legend().get_texts())


@pytest.mark.parametrize("make", [make_over_time, make_curve, make_tuning])
def test_the_horizontal_axis_can_be_logarithmic(make):
    (linear,) = bt.plot(make(), xscale="linear").axes
    (log,) = bt.plot(make(), xscale="log").axes
    assert (linear.get_xscale(), log.get_xscale()) == ("linear", "log")
    low, high = log.get_xlim()
    assert 0 < low < high
    values = [value for line in log.lines for value in line.get_xdata() if value > 0]
    assert low <= min(values)
    assert high == linear.get_xlim()[1]


@pytest.mark.parametrize(("values", "scale"), [([0.0, 0.1, 1.0], "log"), ([0.0], "linear")])
def test_values_without_a_logarithm_are_left_out_of_a_logarithmic_axis(values, scale, tmp_path):
    numbers = np.array(values)
    curve = replace(
        make_curve(), values=numbers, mean=1 + numbers, se=0 * numbers, textbook=values[-1], best_value=values[-1]
    )
    for drawn in (bt.plot(curve, xscale="log"), bt.plot(replace(curve, log_scale=True))):
        assert drawn.axes[0].get_xscale() == scale
        drawn.savefig(tmp_path / "figure.png")


@pytest.mark.parametrize(("size", "has_fine_ticks"), [(None, True), ("column", False)])
def test_a_logarithmic_axis_has_as_many_plain_numbers_as_fit(size, has_fine_ticks):
    (axes,) = bt.plot(make_over_time(steps=(1, 10, 1000)), xscale="log", size=size).axes
    axes.figure.canvas.draw()
    labels = {label.get_text() for label in axes.get_xticklabels()}
    assert {"1", "10", "100", "1,000"} <= labels
    assert ({"20", "50"} <= labels) == has_fine_ticks


@pytest.mark.parametrize(("size", "inches"), [(None, (7.2, 4.2)), ("column", (3.4, 2.6)), ((5, 3.5), (5, 3.5))])
def test_a_figure_has_the_requested_size(size, inches):
    figure = bt.plot(make_over_time(), size=size)
    assert tuple(figure.get_size_inches()) == inches


def test_a_figure_for_a_column_has_small_letters_and_no_title():
    axes = bt.plot(make_comparison(), size="column").axes[0]
    texts = [axes.xaxis.label, *axes.get_legend().get_texts(), *axes.get_xticklabels(), *axes.get_yticklabels()]
    assert {text.get_fontsize() for text in texts} == {8}
    assert axes.get_title(loc="left") == ""
    assert bt.plot(make_comparison()).axes[0].get_title(loc="left").startswith("bernoulli(")


def test_files_of_several_results_are_reproducible_and_embed_fonts(tmp_path):
    for kind in ("pdf", "svg", "png"):
        first, second = tmp_path / f"first.{kind}", tmp_path / f"second.{kind}"
        for path in (first, second):
            bt.plot([make_over_time(), make_over_time(steps=(10, 50))], path, xscale="log", size="column")
        assert first.read_bytes() == second.read_bytes()
    content = (tmp_path / "first.pdf").read_bytes()
    assert b"/Type3" not in content
    assert b"/FontFile2" in content


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ax": 3}, "`ax` must be matplotlib axes"),
        ({"ax": Figure().subplots(), "path": "x.svg"}, "`path` must be left out, because the axes belong to a figure"),
        ({"ax": Figure().subplots(), "size": "column"}, "`size` must be left out"),
        ({"xscale": "symlog"}, "`xscale` must be one of 'linear', 'log'"),
        ({"size": "page"}, "`size` must be 'column', or width and height in inches"),
        ({"size": (3, 0)}, "`size` must be 'column', or width and height in inches"),
        ({"path": "x.doc"}, r"must end in \.svg, \.png or \.pdf"),
    ],
)
def test_wrong_settings_of_a_figure_are_refused(settings, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(bt.InvalidRequest, match=message):
        bt.plot(make_over_time(), **settings)
    assert list(tmp_path.iterdir()) == []
