"""`banditune report` and the files that it writes."""

from __future__ import annotations

import pytest

from banditune.reports.html_page import render_page
from banditune.reports.markdown_report import escape_markdown, render_markdown
from banditune.reports.report_builder import build_report_content
from banditune.reports.report_files import ReportFiles, write_report_files
from helpers.example_results import SCRIPT_NAME, make_comparison, make_curve, make_tuning


def test_markdown_has_tables_and_escaped_names():
    text = render_markdown(build_report_content(make_comparison(SCRIPT_NAME, "a|b")))
    assert "| policy | tuned to | regret |" in text
    assert r"\<script\>alert(1)\</script\>" in text
    assert r"a\|b" in text
    assert SCRIPT_NAME not in "\n".join(line for line in text.splitlines() if not line.startswith("    banditune"))
    assert escape_markdown("two\nlines  *here*") == r"two lines \*here\*"
    assert "## Warnings" in render_markdown(build_report_content(make_tuning()))


def test_report_writes_all_requested_files(run_banditune, tmp_path):
    make_tuning().save(tmp_path / "result.json")
    files = ["-o", "r.html", "--figures", "figures", "--markdown", "r.md", "--latex", "r.tex"]
    process = run_banditune("report", "result.json", *files)
    assert process.returncode == 0, process.stderr
    assert process.stdout.splitlines()[0] == "wrote r.html"
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == ["result.pdf", "result.png", "result.svg"]
    assert (tmp_path / "r.html").read_text() == render_page(build_report_content(make_tuning()))
    assert (tmp_path / "r.md").read_text().startswith("# gamma = 0.2222 has regret")
    assert (tmp_path / "r.tex").read_text() == make_tuning().to_latex()


def test_the_tables_of_several_results_are_in_one_latex_file(tmp_path):
    make_tuning().save(tmp_path / "tuning.json")
    make_curve().save(tmp_path / "curve.json")
    sources = [tmp_path / "tuning.json", tmp_path / "curve.json"]
    assert list(write_report_files(sources, ReportFiles(latex=tmp_path / "t.tex"), lambda path: [])) == [
        tmp_path / "t.tex"
    ]
    assert (tmp_path / "t.tex").read_text() == f"{make_tuning().to_latex()}\n{make_curve().to_latex()}"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["result.json"], "must have a file to write"),
        (["nothing.json", "-o", "r.html"], "cannot be read"),
        (["result.json", "-o", "nowhere/r.html"], "there is no folder"),
        (["result.json", "--figures", "result.json"], "cannot be created"),
    ],
)
def test_wrong_arguments_of_report_are_refused(run_banditune, tmp_path, arguments, message):
    make_curve().save(tmp_path / "result.json")
    process = run_banditune("report", *arguments)
    assert process.returncode == 2
    assert message in process.stderr
    assert len(process.stderr.splitlines()) == 1
