"""The examples run to their end and leave a report."""

from __future__ import annotations

import subprocess
import sys

import pytest

from helpers.paths import ROOT


@pytest.mark.parametrize(
    ("name", "report", "answers"),
    [
        # Statements about the next trial are for trials of its length.
        ("smoking_trials.py", "next-trial.html", ("more of 1,000 patients quit", "(175 decisions)")),
        ("fashion_shop.py", "fashion-shop.html", ("clicks (95%:",)),
    ],
)
def test_examples_end_in_a_report(tmp_path, name, report, answers):
    command = [sys.executable, str(ROOT / "examples" / name), "--quick", "-o", str(tmp_path / "out")]
    process = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path)
    assert process.returncode == 0, process.stderr
    page = (tmp_path / "out" / report).read_text()
    assert [answer for answer in answers if answer not in page] == []
