"""Reports of exact computations."""

from __future__ import annotations

import numpy as np

from banditune.reports import repeat_commands
from banditune.reports.html_page import render_page
from banditune.reports.report_builder import build_report_content
from banditune.results.exact_results import LowerBound
from helpers.example_results import TagChecker, make_exact_regrets, make_lower_bound, make_optimum


def test_exact_regrets_are_compared_with_the_textbook_and_the_optimum():
    content = build_report_content(make_exact_regrets())
    assert content.answer == (
        "gamma = 0.2 has regret 2.6 on average, the lowest of 6 values, 0.1 (4.0%) more than the optimum; "
        "the textbook default gamma = 1 has 5.8."
    )
    assert content.key_figures[0] == ("gamma", "0.2", "textbook: 1")
    (section, _) = content.sections
    assert section.table.rows[0] == ("1", "5.8", "3.3", "textbook")
    line = next(mark for mark in section.plot.marks if mark.shape == "line")
    assert line.x == (0.0, 0.1, 0.2, 0.3, 0.6, 1.0)
    of_two_values = build_report_content(make_exact_regrets(values=(0.2, 0.3)))
    assert "textbook" not in of_two_values.answer
    assert not any(mark.shape == "line" for mark in of_two_values.sections[0].plot.marks)


def test_a_policy_without_parameters_has_its_name_as_answer():
    result = make_exact_regrets(
        "gittins", (0.0, 1.0), parameter="value", textbook=0.0, regret=np.array([2.5, 2.5]) - 1e-14
    )
    assert build_report_content(result).answer == "gittins has regret 2.5 on average, which is the optimum."
    assert not any(mark.shape == "vertical" for mark in build_report_content(result).sections[0].plot.marks)
    assert "textbook" not in render_page(build_report_content(result)).split("<footer>")[0]


def test_a_report_of_an_optimum_has_no_figure(run_banditune, tmp_path):
    make_optimum().save(tmp_path / "optimum.json")
    process = run_banditune("report", "optimum.json", "-o", "r.html")
    assert process.returncode == 0, process.stderr
    text = (tmp_path / "r.html").read_text()
    assert "The best policy has regret 2.5 on average: its reward is 37.5, that of the best arm 40." in text
    assert ">0.04166667<" in text
    assert 'class="plot"' not in text
    tags = TagChecker()
    tags.feed(text)
    assert tags.open == []
    process = run_banditune("report", "optimum.json", "-o", "other.html", "--figures", "figures")
    assert process.returncode == 2
    assert "but got ExactOptimum" in process.stderr
    assert not (tmp_path / "other.html").exists()


def test_a_lower_bound_states_its_kind_and_confidence():
    content = build_report_content(make_lower_bound())
    assert content.answer == "No policy can have a regret below 4.5 on average (95% sure)."
    assert "'coupled'. This kind of bound was selected on separate instances" in content.sections[0].paragraphs[1]
    assert [row[2:] for row in content.sections[0].table.rows][1:] == [("4.53", "0.02", "200"), ("3.9", "computed", "")]
    certain = build_report_content(
        make_lower_bound(lower_bound=LowerBound(regret=3.9, is_exact=False, confidence=1.0, method="one arm"))
    )
    assert "the computed bound" in certain.sections[0].paragraphs[1]
    assert certain.sections[1].code.endswith("--runs 1000 --confidence 0.95")
    assert repeat_commands.make_command(make_lower_bound(confidence=None)).endswith("--confidence 0.95")
    assert (
        repeat_commands.make_command(
            make_lower_bound(
                confidence=None, lower_bound=LowerBound(regret=3.9, is_exact=False, confidence=1.0, method="one arm")
            )
        )
        is None
    )
