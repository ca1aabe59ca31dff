"""Pages that are shipped with the package."""

from __future__ import annotations

import pytest

import banditune as bt
from banditune.core.pages import TOPICS
from helpers.paths import ROOT
from helpers.settings import group_settings


def test_the_documentation_shows_the_same_pages():
    assert TOPICS
    for topic in TOPICS:
        page = (ROOT / "docs" / "explanation" / f"{topic}.md").read_text()
        assert page.endswith(f"---\n\n<!-- insert: packaged {topic} -->\n")


def test_the_command_line_prints_a_page(run_banditune):
    process = run_banditune("explain", "assumptions")
    assert process.returncode == 0, process.stderr
    assert process.stdout == bt.explain("assumptions")
    assert run_banditune("explain").stdout == process.stdout


def test_an_unknown_topic_is_refused_with_the_known_ones():
    with pytest.raises(bt.InvalidRequest, match="the topic must be one of assumptions, but got 'magic'"):
        bt.explain("magic")


def test_each_assumption_has_its_failure_its_effect_and_advice():
    sections = bt.explain().split("\n## ")[1:]
    assert len(sections) == 8
    for section in sections:
        for part in ("**Assumed:**", "**Fails**", "**Then**", "**What to do:**"):
            assert section.count(part) == 1, (section[:30], part)


def test_results_and_reports_name_the_page(tmp_path):
    options = {"horizon": 50, "budget": 60}
    tuning = bt.tune(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3, prior=(1, 1)), **group_settings(validate=50, **options))
    comparison = bt.compare(
        [bt.UCB1(noise=0.5), bt.Greedy()], bt.Bernoulli(arms=3, prior=(1, 1)), **group_settings(validate=50, **options)
    )
    problem = bt.Bernoulli(arms=3, prior=(1, 1))
    curve = bt.curve(bt.UCB1(noise=0.5), problem, [0.2, 1.0], horizon=50, runs=20)
    report = bt.robustness(
        bt.UCB1(noise=0.5), problem, 0.2, **group_settings(others=[("the same", problem)], validate=20, **options)
    )
    backtest = bt.backtest(
        bt.UCB1(noise=0.5), bt.read_logs(ROOT / "examples" / "data" / "smoking-cessation-trials.csv"), budget=60
    )
    for result in (tuning, comparison, curve, report, backtest):
        assert bt.reports.format_text(result).count("`banditune explain assumptions`") == 1
        assert "banditune explain assumptions" in result.report(tmp_path / "report.html").read_text()
