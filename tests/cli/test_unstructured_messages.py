"""Messages name options instead of arguments, and `--quiet` keeps warnings."""

from __future__ import annotations

import time

import pytest
import typer

import banditune as bt
from banditune.cli import app
from banditune.cli import unstructured_messages as messages
from banditune.cli.runner import print_to_stderr
from banditune.cli.unstructured_messages import translate_message, translate_result
from helpers.command_lines import SMALL, TUNE


def test_messages_name_options_instead_of_arguments():
    messages = {
        "`max_time` must be > 0, but got max_time=-1.": "--max-time must be > 0, but got --max-time -1.",
        "try model='correlated' or per_arm=True.": "try --model correlated or --per-arm.",
        "is added; intercept=False leaves it out": "is added; --no-intercept leaves it out",
        "leave it out with features=''; or shortcuts=False": "leave it out with --features ''; or --no-shortcuts",
        "`budget >= 8` must hold for NoTeS(precision=0.1, budget=5)": "`--budget >= 8` must hold for "
        "NoTeS(precision=0.1, budget=5)",
        "`0 < share < 1` must hold": None,
        "`0 < noise < 1e100` and `noise > 0` must hold, but got noise=-1 and `prior`, prior=0": None,
        "ucb1:noise=5 on the command line, UCB1(noise=5) in Python": None,
        "of your own, `gain`, gain=3": None,
        "`reward` of 'mine' must be a function without self": None,
        "`seed` of a state must be a whole number": None,
        "rewards of 'mine' must be in [0, 1], as it states (rewards='unit')": None,
    }
    assert {message: translate_message(message) for message in messages} == {
        message: expected or message for message, expected in messages.items()
    }


def test_settings_in_a_result_are_not_translated():
    text = "ucb1(noise=0.5) on b(arms=3), runs=5\nwarning: try runs=5\nended by `max_runs`"
    assert translate_result(text) == "ucb1(noise=0.5) on b(arms=3), runs=5\nwarning: try --runs 5\nended by --max-runs"


@pytest.mark.parametrize("piece", ["x", "x.", "x(", "x=", "`x", "`x >", "x='", "(", "x()", "x(x"])
def test_long_messages_are_translated_in_linear_time(piece):
    message = piece * 200_000
    start = time.process_time()
    assert translate_message(message) == message
    assert time.process_time() - start < 10  # where each letter looks at all the others it is minutes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tune", "--policy", "ucb1:noise=-1", *TUNE[3:]], "`0 < noise < 1e100` must hold for ucb1, but got noise=-1."),
        (["tune", "--policy", "ts:prior=0", *TUNE[3:]], "`prior` must be "),
        (
            [*TUNE[:3], "--problem", "bernoulli:arms=1", *SMALL[-2:]],
            "`arms` must be a whole number >= 2, but got arms=1.",
        ),
        ([*TUNE, "--arms", "1"], "--arms must be a whole number >= 2, but got --arms 1."),
    ],
)
def test_options_of_a_policy_are_named_as_they_are_typed(arguments, message, capsys):
    with pytest.raises(bt.InvalidRequest) as error:
        app(arguments, standalone_mode=False)
    print_to_stderr(error.value)
    assert capsys.readouterr().err.startswith(f"banditune: {message}")


def test_an_option_has_the_same_flag_in_all_commands():
    flags = {}
    for name, option in messages._iterate_flags(typer.main.get_command(app)):
        assert flags.setdefault(name, option) == option, name
    assert flags == messages.collect_flags()


def test_quiet_prints_warnings_to_stderr(tmp_path, capsys):
    command = ["tune", "--policy", "ucb1:noise=0.5", "--problem", "gaussian:noise=5", *TUNE[5:]]

    def run_command(*arguments):
        app([*command, *arguments], standalone_mode=False)
        return capsys.readouterr()

    usual = run_command()
    assert "warning: ucb1 takes rewards" in usual.out
    assert usual.err == ""
    quiet = run_command("-q", "-o", str(tmp_path / "out.json"))
    assert quiet.out == ""
    assert "Give it: ucb1:noise=5 on the command line" in quiet.err
    loaded = bt.load_result(tmp_path / "out.json")
    lines = quiet.err.splitlines()
    assert len(lines) == len(loaded.notices) >= 1
    assert all(line.startswith("banditune: warning: ") for line in lines)
    json_output = run_command("--json")
    assert bt.results.from_json(json_output.out) == loaded
    assert json_output.err == quiet.err
