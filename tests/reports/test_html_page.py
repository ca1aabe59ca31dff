"""HTML reports: one file that loads nothing, whatever names it contains."""

from __future__ import annotations

import base64
import hashlib
import json
import re

import numpy as np
import pytest

import banditune as bt
from banditune.reports.html_page import render_page
from banditune.reports.report_builder import build_report_content
from banditune.results.estimates import Estimate
from banditune.results.search_results import TrialResult
from helpers.example_results import (
    RESULTS,
    SCRIPT_NAME,
    TagChecker,
    make_comparison,
    make_curve,
    make_exact_regrets,
    make_store_summary,
    make_tuning,
)


@pytest.mark.parametrize("name", RESULTS)
def test_every_result_becomes_a_valid_file_that_loads_nothing(name, tmp_path):
    assert bt.report(RESULTS[name](), tmp_path / "report.html") == tmp_path / "report.html"
    text = (tmp_path / "report.html").read_text()
    tags = TagChecker()
    tags.feed(text)
    tags.close()
    assert tags.open == []
    assert tags.scripts == 2
    assert not re.search(r"https?:|\bsrc=|\bhref=|@import|url\((?!#frame)|\bstyle=", text)
    assert len(text) < 300_000
    plots = "".join(re.findall(r'<svg class="plot".*?</svg>', text))
    assert plots
    assert not re.search(r"\bnan\b|\binf\b", plots.lower().replace("info", ""))


def test_function_and_method_write_the_same_report(tmp_path):
    result = make_comparison()
    result.report(tmp_path / "a.html")
    bt.report(result, tmp_path / "b.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_other_records_are_refused(tmp_path):
    with pytest.raises(bt.InvalidRequest, match="a result must be a tuning, curve, comparison"):
        bt.report(Estimate.from_sample(np.ones(3)), tmp_path / "report.html")


def test_the_content_security_policy_allows_the_script_of_the_page_only():
    text = render_page(build_report_content(make_tuning()))
    rules = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert rules.startswith("default-src 'none';")
    assert "unsafe" not in rules
    for tag in ("style", "script"):
        content = re.search(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in rules


@pytest.mark.parametrize("name", [SCRIPT_NAME, '"><img src=x onerror=alert(1)>', "</title><b>", "a & b"])
def test_names_are_escaped(name):
    for result in (
        make_tuning(name, notices=(name,)),
        make_curve(name),
        make_comparison(name, f"{name} (2)"),
        make_store_summary(name),
        make_exact_regrets(name),
        make_exact_regrets(name, (0.0,), parameter="value", textbook=0.0),
    ):
        text = render_page(build_report_content(result))
        assert name not in text or "<" not in name
        assert name.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;") in text
        data = re.search(r'id="plots">(.*?)</script>', text, re.DOTALL)[1]
        assert "<" not in data
        json.loads(data)


def test_text_in_backticks_is_code():
    assert "<li>look at <code>a &lt; b</code></li>" in render_page(
        build_report_content(make_tuning(notices=("look at `a < b`",)))
    )


def test_a_long_search_makes_a_small_file():
    trials = tuple(
        TrialResult.from_regrets(np.arange(1, 9)[:, None] / 100 + number % 50 / 100, np.ones((8, 3)) * number)
        for number in range(3000)
    )
    assert len(render_page(build_report_content(make_tuning(trials=trials)))) < 300_000
