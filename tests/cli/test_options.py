"""Options of the command line: mistakes end with one sentence and exit code 2."""

from __future__ import annotations

import re

import pytest

from banditune.cli import main
from banditune.cli.vocabulary import collect_flags
from helpers.command_lines import SMALL, TUNE

MIXTURE = ["tune", "--policy", "ucb1", "--problem", "mixture", "--horizon", "100", "--means"]


MISTAKES = [
    ([*TUNE, "--precision", "2", "--budget", "5"], "either --budget or --precision can be given"),
    (
        ["exact", "gittins", "--rounds-left", "5", "--discount", "0.9"],
        "either --rounds-left or --discount must be given",
    ),
    (["tune", "--policy", "ucb", *SMALL[2:]], "did you mean 'ucb1'?"),
    (["tune", "--policy", "ucb1", "--problem", "bernouli", "--horizon", "9"], "did you mean 'bernoulli'?"),
    ([*TUNE, "--tuner", "nots"], "did you mean 'notes'?"),
    (["tune", "--policy", "zzz", *SMALL[2:]], "must be one of ucb1, ucb1-step,"),
    (["tune", *SMALL[:-1], "2"], "`--horizon >= arms` must hold"),
    (["tune", *SMALL[:-1], "0"], "whole number >= 1"),
    (["tune", *SMALL[:-1], "x"], "--horizon must be a whole number such as 1000 or 1e3, but got 'x'."),
    ([*TUNE, "--budget", "1.5"], "--budget must be a whole number such as 1000 or 1e3, but got '1.5'."),
    ([*TUNE, "--budget", "inf"], "--budget must be a whole number"),
    ([*TUNE, "--confidence", "95pct"], "--confidence must be a share such as 2% or 0.02, but got '95pct'."),
    ([*TUNE, "--precision", "5 in 100"], "--precision must be a share"),
    ([*TUNE, "--max-time", "soon"], "--max-time must be a number, but got 'soon'."),
    (["deployed", "update", "state.json", "red", "yes"], "reward must be a number, but got 'yes'."),
    (["--seed", "1", *TUNE], "options of a command come after its name"),
    (["tune", "--policy", "thompson", *SMALL[2:]], "did you mean 'ts'?"),
    (["tune", "--policy", "GaussianThompson", *SMALL[2:]], "did you mean 'gaussian-ts'?"),
    (
        [*TUNE[:4], "past logs.csv"],
        "`banditune fit 'past logs.csv' -o prior.toml`, then give it: --problem prior.toml.",
    ),
    ([*TUNE[:4], "fit.json"], "`banditune fit LOGS -o prior.toml` writes one."),
    ([*TUNE[:4], "prior.toml"], "'prior.toml' cannot be read: No such file or directory."),
    (["deployed", "select", "state.json"], "'state.json' cannot be read: No such file or directory."),
    (["fit", "logs.csv", "-o", "prior.json"], "must end in .toml"),
    ([*TUNE, "--budget", "7"], "`--budget >= 12` must hold"),
    ([*TUNE, "--budget", "-1"], "--budget must be"),
    ([*TUNE, "--validate", "0"], "--validate must be"),
    ([*TUNE, "--seed", "-1"], "--seed must be"),
    ([*TUNE, "--workers", "0"], "--workers must be"),
    ([*TUNE, "--arms", "1"], "--arms must be a whole number >= 2"),
    ([*TUNE, "--prior", "1,-2"], "must hold for the prior"),
    ([*TUNE, "--prior", "nan,1"], "must hold for the prior"),
    ([*TUNE, "--prior", "a,b"], "a pair (a, b)"),
    ([*TUNE, "--regret", "total"], "'expected', 'realised'"),
    ([*TUNE, "--tuner", "notes:precision=nan"], "precision"),
    ([*TUNE, "--tuner", "notes:depth=3"], "takes precision, but got 'depth'"),
    ([*TUNE, "--tuner", "notes:3"], "option=value"),
    (["tune", "--policy", "ucb1:noise=", *SMALL[2:]], "one value"),
    (["tune", "--policy", "ucb1:noise=1,noise=2", *SMALL[2:]], "one value"),
    (["tune", "--policy", "ucb1:noise=inf", *SMALL[2:]], "finite number"),
    (["tune", "--policy", "greedy", *SMALL[2:]], "must have a parameter to be tuned"),
    (["regret-over-time"], "--policy must be given, or the FILE of a tuning or a comparison."),
    (["regret-over-time", *SMALL[:4]], "the number of steps in a run is missing; give it as --horizon."),
    (["regret-over-time", *SMALL, "--values", "1", "--values", "2"], "--values must be given once for each --policy"),
    (["regret-over-time", *SMALL, "--checkpoints", "10,5"], "--checkpoints must be increasing steps"),
    (["regret-over-time", *SMALL, "--label", "a", "--label", "b"], "--label must be 1 distinct names"),
    (["regret-over-time", "tuned.json", *SMALL[:2]], "--policy must be left out, because the result determines it"),
    (["regret-over-time", "tuned.json"], "'tuned.json' cannot be read"),
    (["plot", "tuned.json", "-o", "figure.svg"], "'tuned.json' cannot be read"),
    (["plot", "tuned.json"], "Missing option"),
    (["curve", *SMALL, "--values", "0.1,-2"], "`0 <= gamma <= 1e+06` must hold"),
    (["curve", *SMALL, "--values", "0.1,nan"], "gamma=nan"),
    (["curve", *SMALL, "--runs", "1"], "--runs must be"),
    ([*MIXTURE, "0.5,1.5;.1,.2"], "probabilities in [0, 1]"),
    (MIXTURE[:-1], "needs means"),
    ([*TUNE, "--means", ".5,.5"], "takes arms, prior, names, but got 'means'"),
    (
        ["tune", "--policy", "ucb1", "--problem", "bernoulli:arms=3", *SMALL[4:]],
        "arms stands in 'bernoulli:arms=3' and as",
    ),
    (["tune", *SMALL[:2], "--problem", "bernoulli:prior=2,5", *SMALL[4:], "--prior", "1,1"], "and as --prior"),
    (["exact", "bound", "--problem", "bernoulli", "--arms", "3"], "give it as --horizon"),
    (["compare", *SMALL], "two policies or more"),
    (["compare", "--policy", "ucb1,ts", *SMALL[2:]], "give --policy once for each policy."),
    (["tune", "--policy", "ucb1,ts", *SMALL[2:]], "for `banditune compare` give --policy"),
    ([*TUNE, "-o", "/nowhere/out.json"], "no folder '/nowhere'"),
    ([*TUNE, "-o", "/proc/out.json"], "cannot be written"),
    ([*TUNE, "-o", "."], "cannot be written"),
    ([*TUNE, "--plot", "figure.doc"], ".svg, .png or .pdf"),
    (["tune", "--policy", "missing.py:mine", *SMALL[2:]], "a file that exists"),
    (["tune"], "Missing option"),
    (["tuna"], "tuna"),
    ([*TUNE, "--colour"], "--colour"),
    ([*TUNE, "--max-time", "-1"], "--max-time"),
    (["tune", "--policy", "ucb1:noise=loud", *TUNE[3:]], "`noise` must be a finite number"),
    (
        ["tune", "--policy", "epsilon-greedy:noise=problem", *TUNE[3:]],
        "the policy 'epsilon-greedy' takes no options, but got 'noise'",
    ),
    (
        ["tune", "--policy", "ucb1", "--problem", "mixture:means=problem", "--horizon", "9"],
        "`means` must be rows of equal length",
    ),
    ([*TUNE, "--policy", "ts"], "--policy must be given once, but was given 2 times; `compare` takes several."),
    ([*TUNE, "-o", "a.svg", "--plot", "./a.svg"], "--plot must be another file than those that"),
    ([*TUNE, "--store", "x", "-o", "x"], "--output must be another file than those that"),
    ([*TUNE, "--problem", "p.toml", "-o", "p.toml"], "--output must be another file than those that"),
    ([*TUNE, "--problem", "p.py:it", "--plot", "p.py"], "--plot must be another file than those that"),
    (["fit", "logs.csv", "-o", "x.toml", "--save", "x.toml"], "--save must be another file than those that"),
    (["backtest", "logs.csv", "--policy", "ts", "-o", "logs.csv"], "--output must be another file than those that"),
    ([*TUNE, "--device", "gpu", "--executor", "processes"], "--device gpu"),
]


@pytest.mark.parametrize(("arguments", "message"), MISTAKES)
def test_mistakes_print_one_line_and_exit_with_code_2(monkeypatch, capfd, tmp_path, arguments, message):
    """In this process, because a new one takes two seconds. The next test starts a new one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["banditune", *arguments])
    monkeypatch.setattr("banditune.cli.runner.install_sigterm_handler", lambda: None)
    with pytest.raises(SystemExit) as exit_info:
        main()
    out, output = capfd.readouterr()
    assert_one_line(exit_info.value.code, out, output, message)
    assert list(tmp_path.iterdir()) == []
    arguments_in_words = set(re.findall(r"`(\w+)`", output)) & set(collect_flags())
    assert {name for name in arguments_in_words if f"{name}=" not in " ".join(arguments)} == set()


def test_a_mistake_in_a_new_process_prints_one_line(run_banditune, tmp_path):
    arguments, message = MISTAKES[0]
    process = run_banditune(*arguments)
    assert_one_line(process.returncode, process.stdout, process.stderr, message)
    assert list(tmp_path.iterdir()) == []


def assert_one_line(code, out, errors, message):
    assert code == 2, errors
    assert message in errors
    assert errors.count("\n") == 1
    assert "Traceback" not in errors
    assert out == ""
