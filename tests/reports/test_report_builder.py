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
from helpers.example_results import make_comparison, make_curve, make_tuning


def test_policies_are_shown_on_the_same_instances_and_the_best_on_others():
    comparison = make_comparison()
    rerun = Estimate.from_sample(np.random.default_rng(4).gamma(2, 7, 1000))
    content = build_report_content(replace(comparison, best_rerun=rerun))
    (section,) = [section for section in content.sections if section.title == "Policies"]
    regret = comparison.entries[0].regret
    assert section.table.rows[0][2:4] == (f"{regret.mean:.4g}", f"{regret.low:.4g} to {regret.high:.4g}")
    assert any(
        f"On as many other instances {comparison.best_policy} has regret {rerun.mean:.4g}" in paragraph
        for paragraph in section.paragraphs
    )
    assert any(f"{rerun.mean:.4g}" in figure for figure in content.key_figures)
    dots = result_plots.make_comparison_plot(replace(comparison, best_rerun=rerun)).marks[1:]
    assert [mark.x for mark in dots] == [(entry.regret.mean,) for entry in comparison.entries]


def test_old_results_without_distributions_can_be_read():
    result = make_tuning()
    old = json.loads(result.to_json())
    for name in ("distribution", "textbook_distribution", "requested_validation_runs"):
        del old[name]
    del old["curves"][0]["refined"]
    loaded = bt.results.from_json(json.dumps(old))
    assert loaded.distribution is None
    assert loaded.regret == result.regret
    assert "Regret of single runs" not in render_page(build_report_content(loaded))


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
def test_a_report_states_the_posterior_of_the_search(changes, message, band):
    tuning = make_tuning()
    tuning = replace(tuning, posterior=replace(tuning.posterior, **changes))
    assert message in repr(tuning)
    assert message in render_page(build_report_content(tuning))
    for text in (
        render_page(build_report_content(tuning)),
        " ".join(bt.plot(tuning).axes[0].get_legend_handles_labels()[1]),
    ):
        assert ("lies here (" in text) == bool(band)
        assert band in text
    assert ("95% sure" in repr(tuning)) == ("misfit" not in changes)


@pytest.mark.parametrize(
    ("low", "high", "log", "is_drawn"),
    [
        (0.1, 0.8, False, True),
        (0.1, 0.9, False, False),
        (0.02, 1.0, False, False),
        (0.1, 0.9, True, True),
        (0.03, 0.9, True, False),
    ],
)
def test_an_interval_over_nearly_the_whole_range_is_printed_but_not_drawn(low, high, log, is_drawn):
    curve = replace(make_curve(), log_scale=log)
    tuning = make_tuning(
        posterior=replace(make_tuning().posterior, best_intervals={"gamma": (low, high)}), curves=(curve,)
    )
    assert tuning.trials[0].rows[:, 0].tolist() == np.linspace(0.02, 1, 5).tolist()
    text = f"the best gamma is between {low:.4g} and {high:.4g}"
    assert text in repr(tuning)
    assert text in render_page(build_report_content(tuning))
    assert ("lies here (" in render_page(build_report_content(tuning))) == is_drawn
    assert ("lies here (" in " ".join(bt.plot(tuning).axes[0].get_legend_handles_labels()[1])) == is_drawn
    assert any(mark.shape == "span" for mark in result_plots.make_tuning_plot(tuning, "gamma").marks) == is_drawn


def test_a_known_lower_bound_is_printed_and_drawn():
    optimum = LowerBound(regret=30.5, is_exact=True, confidence=1.0, method="dynamic programming")
    bound = LowerBound(regret=20.25, is_exact=False, confidence=0.95, method="penalty")
    assert list(list_lower_bound_figures(None)) == []
    assert list(format_lower_bound_sentences(optimum)) == [
        "Optimum over all policies: 30.5 (exact, by dynamic programming)."
    ]
    assert "lower bound" in render_page(build_report_content(make_tuning(lower_bound=bound)))
    (mark,) = plot_marks.make_lower_bound_marks(bound, "horizontal")
    assert (mark.y, mark.label) == ((20.25,), "lower bound: 20.25 (95% sure)")
    assert plot_marks.make_lower_bound_marks(None, "vertical") == ()
    assert 'class="horizontal c3"' in render_page(build_report_content(make_tuning(lower_bound=optimum)))
    assert 'class="vertical c3"' in render_page(build_report_content(replace(make_comparison(), lower_bound=optimum)))
    assert repeat_commands.make_command(make_tuning(lower_bound=optimum)).endswith("--curve --lower-bound")
    command = repeat_commands.make_command(replace(make_comparison(), lower_bound=optimum))
    assert command.endswith("--validate 1000 --lower-bound")
