"""Messages and results name options instead of arguments, and `--quiet` keeps warnings."""

from __future__ import annotations

import pytest
import typer

import banditune as bt
from banditune.cli import app, vocabulary
from banditune.cli.runner import print_to_stderr
from banditune.cli.vocabulary import write_for_command_line
from banditune.reports import format_text
from helpers.command_lines import SMALL, TUNE


def test_a_result_names_options_in_its_text_and_arguments_in_python():
    search = bt.Search(max_runs=20, validate=50)
    result = bt.tune(bt.UCB1(noise=5), bt.Gaussian(arms=3), horizon=50, precision=0.01, search=search)
    python, command_line = str(format_text(result)), write_for_command_line(format_text(result))
    for words, option in (
        ("NOT reached, `max_runs` ended", "NOT reached, --max-runs ended"),
        ("by `max_runs` or `max_time`. Raise them.", "by --max-runs or --max-time. Raise them."),
        ("Use UCB1(noise=1).", "Use ucb1:noise=1."),
        ("ucb1(noise=5) on gaussian(arms=3", "ucb1(noise=5) on gaussian(arms=3"),
    ):
        assert words in python
        assert option in command_line
    assert repr(result) == python
    loaded = bt.results.from_json(result.to_json())
    assert [(one.message, one.advice) for one in loaded.notices] == [
        (one.message, one.advice) for one in result.notices
    ]
    assert write_for_command_line(loaded.notices[0]) == loaded.notices[0]


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
    for name, option in vocabulary.iterate_flags(typer.main.get_command(app)):
        assert flags.setdefault(name, option) == option, name
    assert flags == vocabulary.collect_flags()


def test_quiet_prints_warnings_to_stderr(tmp_path, capsys):
    command = ["tune", "--policy", "ucb1:noise=0.5", "--problem", "gaussian:noise=5", *TUNE[5:]]

    def run_command(*arguments):
        app([*command, *arguments], standalone_mode=False)
        return capsys.readouterr()

    usual = run_command()
    assert "warning: ucb1 assumes that rewards" in usual.out
    assert usual.err == ""
    quiet = run_command("-q", "-o", str(tmp_path / "out.json"))
    assert quiet.out == ""
    assert "Use ucb1:noise=5.\n" in quiet.err
    loaded = bt.load_result(tmp_path / "out.json")
    lines = quiet.err.splitlines()
    assert len(lines) == len(loaded.notices) >= 1
    assert all(line.startswith("banditune: warning: ") for line in lines)
    json_output = run_command("--json")
    assert bt.results.from_json(json_output.out) == loaded
    assert json_output.err == quiet.err
