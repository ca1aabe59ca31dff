"""The content of reports: sentences, tables and key figures."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import banditune as bt
from banditune.reports import plot_marks, repeat_commands, result_plots
from banditune.reports.html_page import render_page
from banditune.reports.report_builder import build_report_content
from banditune.reports.report_sections import format_lower_bound_sentences, list_lower_bound_figures
from banditune.results.estimates import Estimate
from banditune.results.exact_results import LowerBound
from helpers.example_results import a_comparison, a_curve, a_tuning


def test_policies_are_shown_on_the_same_instances_and_the_best_is_told_on_others_too():
    found = a_comparison()
    again = Estimate.from_sample(np.random.default_rng(4).gamma(2, 7, 1000))
    content = build_report_content(replace(found, best_rerun=again))
    (part,) = [part for part in content.sections if part.title == "Policies"]
    regret = found.entries[0].regret
    assert part.table.rows[0][2:4] == (f"{regret.mean:.4g}", f"{regret.low:.4g} to {regret.high:.4g}")
    assert any(
        f"On as many other instances {found.best_policy} has regret {again.mean:.4g}" in words
        for words in part.paragraphs
    )
    assert any(f"{again.mean:.4g}" in figure for figure in content.key_figures)
    dots = result_plots.make_comparison_plot(replace(found, best_rerun=again)).marks[1:]
    assert [mark.x for mark in dots] == [(entry.regret.mean,) for entry in found.entries]


def test_results_from_before_there_were_spreads_can_be_read():
    result = a_tuning()
    old = json.loads(result.to_json())
    for name in ("distribution", "textbook_distribution", "requested_validation_runs"):
        del old[name]
    del old["curve"]["refined"]
    read = bt.results.from_json(json.dumps(old))
    assert read.distribution is None
    assert read.regret == result.regret
    assert "Regret of single runs" not in render_page(build_report_content(read))


@pytest.mark.parametrize(
    ("changes", "message", "band"),
    [
        ({}, "95% sure: no other value is better by more than 1.4", "the best lies here (95% sure)"),
        (
            {"unexplored": (0.0, 0.02)},
            "95% sure: no gamma from 0.02 on is better by more than 1.4",
            "the best gamma from 0.02 on lies here",
        ),
        ({"misfit": True}, "the search cannot state its confidence: see the warning about its curves", ""),
    ],
)
def test_a_search_says_of_itself_what_it_can(changes, message, band):
    found = a_tuning()
    found = replace(found, posterior=replace(found.posterior, **changes))
    assert message in repr(found)
    assert message in render_page(build_report_content(found))
    for picture in (
        render_page(build_report_content(found)),
        " ".join(bt.plot(found).axes[0].get_legend_handles_labels()[1]),
    ):
        assert ("lies here (" in picture) == bool(band)
        assert band in picture
    if "misfit" in changes:
        assert "95% sure" not in repr(found)


@pytest.mark.parametrize(
    ("low", "high", "log", "shown"),
    [
        (0.1, 0.8, False, True),
        (0.1, 0.9, False, False),
        (0.02, 1.0, False, False),
        (0.1, 0.9, True, True),
        (0.03, 0.9, True, False),
    ],
)
def test_a_band_over_nearly_all_that_was_searched_is_not_drawn_but_told(low, high, log, shown):
    curve = replace(a_curve(), log_scale=log)
    found = a_tuning(posterior=replace(a_tuning().posterior, best_low=low, best_high=high), curve=curve)
    assert found.trials[0].values.tolist() == np.linspace(0.02, 1, 5).tolist()
    text = f"the best gamma is between {low:.4g} and {high:.4g}"
    assert text in repr(found)
    assert text in render_page(build_report_content(found))
    assert ("lies here (" in render_page(build_report_content(found))) == shown
    assert ("lies here (" in " ".join(bt.plot(found).axes[0].get_legend_handles_labels()[1])) == shown
    assert any(mark.shape == "span" for mark in result_plots.make_tuning_plot(found).marks) == shown


def test_the_floor_is_told_and_drawn_where_it_is_known():
    floor = LowerBound(regret=30.5, is_exact=True, confidence=1.0, method="dynamic programming")
    bound = LowerBound(regret=20.25, is_exact=False, confidence=0.95, method="penalty")
    assert list(list_lower_bound_figures(None)) == []
    assert list(format_lower_bound_sentences(floor)) == [
        "Optimum over all policies: 30.5 (exact, by dynamic programming)."
    ]
    assert "lower bound" in render_page(build_report_content(a_tuning(lower_bound=bound)))
    (mark,) = plot_marks.make_lower_bound_marks(bound, "level")
    assert (mark.y, mark.label) == ((20.25,), "lower bound: 20.25 (95% sure)")
    assert plot_marks.make_lower_bound_marks(None, "rule") == ()
    assert 'class="level c3"' in render_page(build_report_content(a_tuning(lower_bound=floor)))
    assert 'class="rule c3"' in render_page(build_report_content(replace(a_comparison(), lower_bound=floor)))
    assert repeat_commands.make_command(a_tuning(lower_bound=floor)).endswith("--curve --lower-bound")
    compared = repeat_commands.make_command(replace(a_comparison(), lower_bound=floor))
    assert compared.endswith("--validate 1000 --lower-bound")
