"""`tune`, `curve` and `compare` on the command line."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time

import numpy as np
import pytest

import banditune as bt
from banditune.cli import app
from helpers.command_lines import SMALL, TUNE


def test_tune_prints_the_result(run_banditune):
    process = run_banditune(*TUNE)
    assert process.returncode == 0
    assert process.stderr == ""
    assert "gamma = " in process.stdout
    assert "tuned" in process.stdout
    assert "textbook, noise=0.5" in process.stdout
    assert "gain" in process.stdout


def test_tune_prints_json_with_the_fields_of_the_record(run_banditune):
    process = run_banditune(*TUNE, "--json")
    data = json.loads(process.stdout)
    result = bt.tune(bt.UCB1(), bt.Bernoulli(arms=3), horizon=100, budget=40, search=bt.Search(validate=50))
    assert bt.results.from_json(process.stdout) == result
    assert {"params", "regret", "textbook_regret", "gain", "search_runs", "trials"} <= data.keys()


def test_tune_writes_a_result_and_a_figure(run_banditune, tmp_path):
    process = run_banditune(*TUNE, "-o", "out.json", "--plot", "out.svg", "--quiet")
    assert (process.returncode, process.stdout, process.stderr) == (0, "", "")
    assert bt.load_result(tmp_path / "out.json").curve is not None
    assert b"<svg" in (tmp_path / "out.svg").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.json", "out.svg"]


def test_curve_and_compare_print_their_results(run_banditune):
    process = run_banditune("curve", *SMALL, "--runs", "30", "--values", "0.1,0.5,1")
    assert process.returncode == 0
    assert "<- best" in process.stdout
    process = run_banditune(
        "compare",
        *SMALL,
        "--policy",
        "TS:prior=(2,2)",
        "--policy",
        "greedy",
        "--budget",
        "20",
        "--validate",
        "50",
        "--prior",
        "2,5",
    )
    assert process.returncode == 0, process.stderr
    assert "prior=(2, 5)" in process.stdout
    assert "has the lowest regret" in process.stdout


def test_regret_over_time_is_computed_from_a_saved_result(tmp_path, monkeypatch, tuning):
    monkeypatch.chdir(tmp_path)
    tuning.save("tuned.json")
    command = "regret-over-time tuned.json --label ours --label UCB1 --checkpoints 10,300"
    app([*command.split(), "-q", "-o", "over.json", "--plot", "over.svg"], standalone_mode=False)
    result = bt.load_result("over.json")
    expected = bt.regret_over_time(tuning, checkpoints=[10, 300], labels=["ours", "UCB1"])
    assert result.series == expected.series
    assert result.setup.command == f"banditune {command}"
    assert b"<svg" in (tmp_path / "over.svg").read_bytes()


def test_regret_over_time_is_computed_for_policies(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = "--policy ucb1:noise=0.5 --values 0.2,1 --policy greedy --values textbook --seed 2 --checkpoints 50"
    problem = "--problem bernoulli --arms 3 --horizon 50 --runs 30"
    app(["regret-over-time", *options.split(), *problem.split(), "-q", "-o", "o.json"], standalone_mode=False)
    settings = {"horizon": 50, "runs": 30, "seed": 2, "checkpoints": [50]}
    policies = [bt.UCB1(noise=0.5), bt.Greedy()]
    assert bt.load_result("o.json") == bt.regret_over_time(policies, bt.Bernoulli(arms=3), [[0.2, 1], None], **settings)


def read_terminal(arguments, seconds):
    """What a terminal shows of a command within some seconds."""
    leader, follower = pty.openpty()
    process = subprocess.Popen([sys.executable, "-m", "banditune", *arguments], stdout=follower, stderr=follower)
    os.close(follower)
    output = b""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        ready, _, _ = select.select([leader], [], [], 0.2)
        if ready:
            try:
                data = os.read(leader, 65536)
            except OSError:
                break
            output += data
            if b" runs" in output:
                break
        elif process.poll() is not None:
            break
    process.kill()
    process.wait()
    os.close(leader)
    return output.decode(errors="replace")


def test_a_progress_bar_is_shown_on_a_terminal_only():
    arguments = ["tune", "--policy", "ucb1", "--problem", "bernoulli", "--horizon", "10000", "--budget", "100000"]
    assert " of 102,000 runs" in read_terminal([*arguments, "--no-shortcuts"], 40)
    process = subprocess.run(
        [sys.executable, "-m", "banditune", *TUNE, "--budget", "3000"], capture_output=True, text=True, timeout=100
    )
    assert process.stderr == ""
    assert "\r" not in process.stdout
    assert "\x1b" not in process.stdout


@pytest.mark.slow
def test_a_linear_bandit_is_tuned_on_the_command_line(run_banditune, tmp_path):
    np.save(tmp_path / "arms.npy", np.random.default_rng(0).normal(size=(8, 3)))
    process = run_banditune(
        "tune",
        "--policy",
        "linucb:noise=0.3",
        "--problem",
        "linear:noise=0.3",
        "--features",
        "arms.npy",
        "--prior",
        "0,2",
        "--horizon",
        "100",
        "--budget",
        "40",
        "--validate",
        "50",
    )
    assert process.returncode == 0, process.stderr
    assert "features=8 x 3" in process.stdout
    process = run_banditune("tune", "--policy", "lints", "--problem", "bernoulli", "--horizon", "100")
    assert process.returncode == 2
    assert "lints needs features of arms" in process.stderr
