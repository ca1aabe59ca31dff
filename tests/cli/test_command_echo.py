"""A result from files keeps the command that computes it again."""

from __future__ import annotations

import shlex

import pytest

import banditune as bt
from banditune.cli import app
from helpers.command_lines import TUNE


@pytest.mark.parametrize(
    "command",
    [
        "tune --policy ucb1 --problem few.toml --budget 20 --validate 20 --no-shortcuts --curve",
        "compare --policy ucb1 --policy ucb1:noise=1 --problem few.toml --budget 20 --validate 20",
        "backtest logs.csv --policy ucb1 --budget 20 --model campaigns --arm colour --seed 3",
    ],
)
def test_a_result_from_files_keeps_the_command_that_repeats_it(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bt.save_problem(bt.Campaigns([[(1, 2), (2, 1)], [(3, 4), (4, 5)]]), "few.toml", 20)
    rows = [f"{campaign},{colour},20,{5 + campaign % 3}" for campaign in range(6) for colour in ("red", "blue")]
    (tmp_path / "logs.csv").write_text("\n".join(["campaign,colour,pulls,successes", *rows]))
    app([*command.split(), "-q", "-o", "first.json", "--workers", "1"], standalone_mode=False)
    first = bt.load_result("first.json")
    assert first.setup.command.split()[:2] == ["banditune", command.split()[0]]
    assert sorted(first.setup.command.split()[1:]) == sorted(command.split())
    app([*shlex.split(first.setup.command)[1:], "-q", "-o", "again.json"], standalone_mode=False)
    assert bt.load_result("again.json") == first
    app(["report", "first.json", "--markdown", "first.md"], standalone_mode=False)
    assert first.setup.command in (tmp_path / "first.md").read_text()


def test_a_result_without_files_keeps_no_command(tmp_path):
    app([*TUNE, "-q", "-o", str(tmp_path / "out.json")], standalone_mode=False)
    assert bt.load_result(tmp_path / "out.json").setup.command is None


def test_an_exact_result_for_a_users_policy_keeps_its_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text("import banditune as bt\n\nmine = bt.UCB1(noise=0.5)\n")
    text = "exact regret --policy own.py:mine --problem bernoulli --horizon 5 --arms 2"
    app([*text.split(), "-o", "out.json"], standalone_mode=False)
    assert bt.load_result(tmp_path / "out.json").setup.command == f"banditune {text}"
