"""`fit` on the command line."""

from __future__ import annotations

import pytest

import banditune as bt
from banditune.cli import app
from helpers.command_lines import TUNE


def test_a_missing_reward_table_is_refused():
    with pytest.raises(bt.InvalidRequest, match="a table of rewards must be"):
        app([*TUNE[:4], "reward-table:file=none.csv", "--horizon", "5"], standalone_mode=False)


def test_quiet_prints_notes_of_a_fit_to_stderr(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [f"{campaign},{arm},10,{arm + campaign}" for campaign in range(5) for arm in range(2 + campaign % 2)]
    (tmp_path / "logs.csv").write_text("\n".join(["campaign,arm,pulls,successes", *rows]))
    app(["fit", "logs.csv", "-q", "--save", "fit.json"], standalone_mode=False)
    lines = capsys.readouterr().err.splitlines()
    notes = bt.load_result(tmp_path / "fit.json").notes
    assert notes
    assert sum(line.startswith("banditune: note: ") for line in lines) == len(notes)
