"""The command line as a whole: help, version, and commands that fail or are interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

import banditune as bt
from banditune.cli import main


def test_version_and_help(run_banditune):
    assert run_banditune("--version").stdout == f"banditune {bt.__version__}\n"
    assert "tune" in run_banditune("--help").stdout
    assert "this runs that file" in " ".join(run_banditune("tune", "--help").stdout.split())


def test_help_takes_less_than_half_a_second():
    """Processor time, the best of five: other tests run at the same time."""
    assert min(measure_processor_seconds([sys.executable, "-m", "banditune", "--help"]) for _ in range(5)) < 0.5


def measure_processor_seconds(command):
    before = os.times()
    subprocess.run(command, check=True, capture_output=True)
    after = os.times()
    return after.children_user - before.children_user + after.children_system - before.children_system


@pytest.mark.parametrize("group", [[], ["deployed"], ["exact"], ["store"]])
def test_help_fits_80_columns(monkeypatch, capsys, group):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.argv", ["banditune", *group, "--help"])
    with pytest.raises(SystemExit):
        main()
    lines = capsys.readouterr().out.partition("Commands:")[2].splitlines()[1:]
    assert lines
    assert [line for line in lines if not line.endswith(".") or line.endswith("...")] == []


LONG = [
    "tune",
    "--policy",
    "ts",
    "--problem",
    "bernoulli",
    "--arms",
    "100",
    "--horizon",
    "100000",
    "--budget",
    "100000",
]


@pytest.mark.parametrize("delay", [1.0, 4.0])
def test_ctrl_c_ends_within_two_seconds_with_code_130(tmp_path, delay):
    command = [sys.executable, "-m", "banditune", *LONG, "--no-shortcuts", "-o", str(tmp_path / "out.json")]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background jobs do not hear it
    )
    time.sleep(delay)
    process.send_signal(signal.SIGINT)
    before = time.perf_counter()
    try:
        _, errors = process.communicate(timeout=20)
    finally:
        process.kill()
    assert time.perf_counter() - before < 2
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_an_error_of_one_line():
    process = subprocess.run(
        f"{sys.executable} -m banditune list > /dev/full", shell=True, capture_output=True, text=True
    )
    assert process.returncode == 1
    assert "cannot be written" in process.stderr
    assert process.stderr.count("\n") == 1


def test_without_a_command_the_help_is_shown(run_banditune):
    process = run_banditune()
    assert process.returncode == 0
    assert process.stdout == run_banditune("--help").stdout


def test_a_closed_pipe_prints_no_traceback():
    script = f"set -o pipefail; {sys.executable} -m banditune list | true"  # nobody reads
    process = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
    assert (process.stderr, process.returncode) == ("", 141)
