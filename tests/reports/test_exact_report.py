"""Reports of exact computations."""

from __future__ import annotations

import numpy as np

from banditune.reports import repeat_commands
from banditune.reports.html_page import render_page
from banditune.reports.report_builder import build_report_content
from banditune.results.exact_results import LowerBound
from helpers.example_results import Balance, a_bound, an_optimum, exact_regrets


def test_exact_regrets_are_told_beside_theory_and_the_best_policy():
    content = build_report_content(exact_regrets())
    assert content.answer == (
        "gamma = 0.2 has regret 2.6 on average, the lowest of 6 values, 0.1 (4.0%) more than the optimum; "
        "the textbook default gamma = 1 has 5.8."
    )
    assert content.key_figures[0] == ("gamma", "0.2", "textbook: 1")
    (part, _) = content.sections
    assert part.table.rows[0] == ("1", "5.8", "3.3", "textbook")
    line = next(mark for mark in part.plot.marks if mark.shape == "line")
    assert line.x == (0.0, 0.1, 0.2, 0.3, 0.6, 1.0)
    few = build_report_content(exact_regrets(values=(0.2, 0.3)))
    assert "textbook" not in few.answer
    assert not any(mark.shape == "line" for mark in few.sections[0].plot.marks)


def test_a_policy_without_parameters_is_called_by_its_name():
    made = exact_regrets("gittins", (0.0, 1.0), parameter="value", textbook=0.0, regret=np.array([2.5, 2.5]) - 1e-14)
    assert build_report_content(made).answer == "gittins has regret 2.5 on average, which is the optimum."
    assert not any(mark.shape == "rule" for mark in build_report_content(made).sections[0].plot.marks)
    assert "textbook" not in render_page(build_report_content(made)).split("<footer>")[0]


def test_an_optimum_has_a_table_and_no_figure(banditune, tmp_path):
    an_optimum().save(tmp_path / "optimum.json")
    process = banditune("report", "optimum.json", "-o", "r.html")
    assert process.returncode == 0, process.stderr
    text = (tmp_path / "r.html").read_text()
    assert "The best policy has regret 2.5 on average: it earns 37.5 of the 40 of the best arm." in text
    assert ">0.04166667<" in text
    assert 'class="plot"' not in text
    tags = Balance()
    tags.feed(text)
    assert tags.open == []
    process = banditune("report", "optimum.json", "-o", "other.html", "--figures", "figures")
    assert process.returncode == 2
    assert "but got ExactOptimum" in process.stderr
    assert not (tmp_path / "other.html").exists()


def test_a_bound_says_which_one_and_how_sure():
    content = build_report_content(a_bound())
    assert content.answer == "No policy can have a regret below 4.5 on average (95% sure)."
    assert "'together'. The kind was selected on other instances" in content.sections[0].paragraphs[1]
    assert [row[2:] for row in content.sections[0].table.rows][1:] == [("4.53", "0.02", "200"), ("3.9", "computed", "")]
    sure = build_report_content(
        a_bound(lower_bound=LowerBound(regret=3.9, is_exact=False, confidence=1.0, method="one arm"))
    )
    assert "which is computed" in sure.sections[0].paragraphs[1]
    assert sure.sections[1].code.endswith("--runs 1000 --confidence 0.95")
    assert repeat_commands.make_command(a_bound(confidence=None)).endswith("--confidence 0.95")
    assert (
        repeat_commands.make_command(
            a_bound(
                confidence=None, lower_bound=LowerBound(regret=3.9, is_exact=False, confidence=1.0, method="one arm")
            )
        )
        is None
    )
