"""The command line as a newcomer meets it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import select
import shlex
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import typer

import banditune as bt
from banditune.cli import app, main
from banditune.cli import unstructured_messages as messages
from banditune.cli.number_parsers import parse_integer, parse_share
from banditune.cli.runner import print_to_stderr
from banditune.cli.specs import parse_policy, parse_problem
from banditune.cli.unstructured_messages import translate_message, translate_result
from banditune.core.parsing import read_matrix
from banditune.deployment.deployment_state import ArmState, DeploymentState
from banditune.results.result_record import DEPLOYED_STATE_FORMAT
from banditune.study.options_from_problem import resolve_policy_options

SMALL = ["--policy", "ucb1", "--problem", "bernoulli", "--arms", "3", "--horizon", "100"]
TUNE = ["tune", *SMALL, "--budget", "40", "--validate", "50"]


def test_tune_prints_the_answer(banditune):
    process = banditune(*TUNE)
    assert process.returncode == 0
    assert process.stderr == ""
    assert "gamma = " in process.stdout
    assert "tuned" in process.stdout
    assert "textbook, noise=0.5" in process.stdout
    assert "gain" in process.stdout


def test_tune_prints_json_with_the_fields_of_the_record(banditune):
    process = banditune(*TUNE, "--json")
    data = json.loads(process.stdout)
    result = bt.tune(bt.UCB1(), bt.Bernoulli(arms=3), horizon=100, budget=40, search=bt.Search(validate=50))
    assert bt.results.from_json(process.stdout) == result
    assert {"params", "regret", "textbook_regret", "gain", "search_runs", "trials"} <= data.keys()


def test_results_and_figures_are_written(banditune, tmp_path):
    process = banditune(*TUNE, "-o", "out.json", "--plot", "out.svg", "--quiet")
    assert (process.returncode, process.stdout, process.stderr) == (0, "", "")
    assert bt.load_result(tmp_path / "out.json").curve is not None
    assert b"<svg" in (tmp_path / "out.svg").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.json", "out.svg"]


def test_curve_and_compare(banditune):
    process = banditune("curve", *SMALL, "--runs", "30", "--values", "0.1,0.5,1")
    assert process.returncode == 0
    assert "<- best" in process.stdout
    process = banditune(
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


def test_list_shows_the_shelves(banditune):
    from banditune.problems import problem_registry
    from banditune.registry import collect_policies
    from banditune.tuners import tuner_registry

    process = banditune("list")
    assert process.returncode == 0
    for name in (*collect_policies(), *problem_registry.PROBLEMS, *tuner_registry.TUNERS):
        assert f"  {name} " in process.stdout
    assert "gamma in [0, 1], textbook 1" in process.stdout
    assert set(json.loads(banditune("list", "--json").stdout)) == {"policies", "problems", "tuners"}


def test_version_and_help(banditune):
    assert banditune("--version").stdout == f"banditune {bt.__version__}\n"
    assert "tune" in banditune("--help").stdout
    assert "this runs that file" in " ".join(banditune("tune", "--help").stdout.split())


def test_help_is_quick():
    """Processor time, best of five: other tests run beside this one."""
    assert min(processor_seconds([sys.executable, "-m", "banditune", "--help"]) for _ in range(5)) < 0.5


def processor_seconds(command):
    before = os.times()
    subprocess.run(command, check=True, capture_output=True)
    after = os.times()
    return after.children_user - before.children_user + after.children_system - before.children_system


OWN = """
import banditune as bt
from banditune.core.parsing import read_matrix

@bt.kernel.scalar
def choose(state, setting, step, params, stream):
    return bt.kernel.argmax_mean(state) if bt.kernel.uniform(stream) > params[0] else bt.kernel.draw_arm(state, stream)

mine = bt.define_policy("mine", choose, parameters=[bt.Parameter("epsilon", 0, 1, textbook=0.1)])

@bt.kernel.scalar
def reward(instance, arm, pull, step, stream):
    return bt.kernel.bernoulli(stream, instance.means[arm])

coins = bt.define_problem("coins", lambda size, rng: rng.random((size, 3)), reward, arms=3, rewards="unit")

@bt.kernel.scalar
def beyond(state, setting, step, params, stream):
    return 11

broken = bt.define_policy("broken", beyond, parameters=[bt.Parameter("x", 0, 1, textbook=0)])
"""


def test_own_policies_and_problems_come_from_a_file(banditune, tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    process = banditune(
        "tune", "--policy", "own.py:mine", "--problem", "own.py:coins", "--horizon", "50", "--budget", "20"
    )
    assert process.returncode == 0, process.stderr
    assert "mine on coins" in process.stdout
    again = banditune(
        "tune", "--policy", "own.py:mine", "--problem", "own.py:coins", "--horizon", "50", "--budget", "20"
    )
    assert again.stdout == process.stdout
    process = banditune(
        "tune", "--policy", "own.py:broken", "--problem", "own.py:coins", "--horizon", "50", "--budget", "20"
    )
    assert process.returncode == 1
    assert "'broken' chose 11 at step 0 of run 0" in process.stderr
    assert process.stderr.count("\n") == 1


MIXTURE = ["tune", "--policy", "ucb1", "--problem", "mixture", "--horizon", "100", "--means"]
WRONG = [
    (["tune", "--policy", "ucb", *SMALL[2:]], "did you mean 'ucb1'?"),
    (["tune", "--policy", "ucb1", "--problem", "bernouli", "--horizon", "9"], "did you mean 'bernoulli'?"),
    ([*TUNE, "--tuner", "nots"], "did you mean 'notes'?"),
    (["tune", "--policy", "zzz", *SMALL[2:]], "must be one of ucb1, ucb1-step, ts,"),
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
    (["tune", "--policy", "greedy", *SMALL[2:]], "exactly one parameter"),
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
    (["compare", "--policy", "ucb1,ts", *SMALL[2:]], "each with a --policy of its own."),
    (["tune", "--policy", "ucb1,ts", *SMALL[2:]], "`banditune compare` takes several"),
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
    ([*TUNE, "-o", "a.svg", "--plot", "./a.svg"], "--plot must name another file than those that"),
    ([*TUNE, "--store", "x", "-o", "x"], "--output must name another file than those that"),
    ([*TUNE, "--problem", "p.toml", "-o", "p.toml"], "--output must name another file than those that"),
    ([*TUNE, "--problem", "p.py:it", "--plot", "p.py"], "--plot must name another file than those that"),
    (["fit", "logs.csv", "-o", "x.toml", "--save", "x.toml"], "--save must name another file than those that"),
    (["backtest", "logs.csv", "--policy", "ts", "-o", "logs.csv"], "--output must name another file than those that"),
    ([*TUNE, "--device", "gpu", "--executor", "processes"], "--device gpu"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_mistakes_get_one_sentence_and_exit_code_2(monkeypatch, capfd, tmp_path, arguments, message):
    """In this process, as a new one takes two seconds; that of the next test is new."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["banditune", *arguments])
    monkeypatch.setattr("banditune.cli.runner.install_sigterm_handler", lambda: None)
    with pytest.raises(SystemExit) as ended:
        main()
    out, output = capfd.readouterr()
    assert_is_one_sentence(ended.value.code, out, output, message)
    assert list(tmp_path.iterdir()) == []


def test_a_mistake_in_a_new_process(banditune, tmp_path):
    arguments, message = WRONG[0]
    process = banditune(*arguments)
    assert_is_one_sentence(process.returncode, process.stdout, process.stderr, message)
    assert list(tmp_path.iterdir()) == []


def assert_is_one_sentence(code, out, told, message):
    assert code == 2, told
    assert message in told
    assert told.count("\n") == 1
    assert "Traceback" not in told
    assert out == ""


@pytest.mark.parametrize("group", [[], ["deployed"], ["exact"], ["store"]])
def test_helps_of_commands_are_whole_in_a_usual_terminal(monkeypatch, capsys, group):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.argv", ["banditune", *group, "--help"])
    with pytest.raises(SystemExit):
        main()
    lines = capsys.readouterr().out.partition("Commands:")[2].splitlines()[1:]
    assert lines
    assert [line for line in lines if not line.endswith(".") or line.endswith("...")] == []


def test_numbers_may_be_typed_as_people_write_them():
    assert [parse_integer(text) for text in ("1000", "1e3", "1000.0", "-1")] == [1000, 1000, 1000, -1]
    assert parse_integer("9007199254740993") == 9007199254740993  # which no float holds
    assert [parse_share(text) for text in ("5%", "0.05", "5 %", 0.05)] == [0.05] * 4


def test_tables_of_rewards_are_no_logs():
    with pytest.raises(bt.InvalidRequest, match="a table of rewards must be"):
        app([*TUNE[:4], "reward-table:file=none.csv", "--horizon", "5"], standalone_mode=False)


def test_a_result_that_cannot_be_read_is_named(tmp_path):
    path = tmp_path / "prior.toml"
    path.write_text("banditune = 1")
    with pytest.raises(bt.InvalidRequest, match=r"in the result file '.*prior.toml': a result must be JSON"):
        bt.load_result(path)


def test_sentences_name_options_instead_of_arguments():
    told = {
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
    assert {sentence: translate_message(sentence) for sentence in told} == {
        sentence: wanted or sentence for sentence, wanted in told.items()
    }


def test_settings_of_a_result_stay_as_they_are():
    text = "ucb1(noise=0.5) on b(arms=3), runs=5\nwarning: try runs=5\nended by `max_runs`"
    assert translate_result(text) == "ucb1(noise=0.5) on b(arms=3), runs=5\nwarning: try --runs 5\nended by --max-runs"


@pytest.mark.parametrize("piece", ["x", "x.", "x(", "x=", "`x", "`x >", "x='", "(", "x()", "x(x"])
def test_sentences_of_any_length_are_spoken_at_once(piece):
    long = piece * 200_000
    start = time.process_time()
    assert translate_message(long) == long
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
def test_options_within_a_policy_or_a_problem_are_named_as_they_are_typed(arguments, message, capsys):
    with pytest.raises(bt.InvalidRequest) as error:
        app(arguments, standalone_mode=False)
    print_to_stderr(error.value)
    assert capsys.readouterr().err.startswith(f"banditune: {message}")


@pytest.mark.parametrize(
    ("policy", "problem", "wanted"),
    [
        ("ts", bt.Bernoulli(arms=3, prior=(2, 5)), bt.Thompson(prior=(2, 5))),
        ("ts:prior=problem", bt.Bernoulli(arms=3, prior=(2, 5)), bt.Thompson(prior=(2, 5))),
        (
            "gaussian-ts:noise=problem",
            bt.Gaussian(arms=3, prior=(4, 2), noise=3),
            bt.GaussianThompson(prior=(4, 2), noise=3),
        ),
        ("gittins", bt.Bernoulli(arms=2, prior=((1, 2), (3, 4))), bt.exact.Gittins(prior=((1, 2), (3, 4)))),
        ("lints:prior=0,1", bt.Linear(arms=4, dims=2, noise=0.7), bt.LinTS(prior=(0, 1), noise=0.7)),
        (
            "glm-tsl",
            bt.Logistic(arms=4, dims=2, prior=([1, 2], [[1, 0.5], [0.5, 2]])),
            bt.GLMTSL(prior=([1, 2], [[1, 0.5], [0.5, 2]])),
        ),
    ],
)
def test_a_policy_takes_what_the_problem_has(policy, problem, wanted):
    assert resolve_policy_options(parse_policy(policy), problem).policy == wanted


def test_all_commands_name_an_option_alike():
    flags = {}
    for name, option in messages._iterate_flags(typer.main.get_command(app)):
        assert flags.setdefault(name, option) == option, name
    assert flags == messages.collect_flags()


def test_silence_hides_no_warnings(tmp_path, capsys):
    noisy = ["tune", "--policy", "ucb1:noise=0.5", "--problem", "gaussian:noise=5", *TUNE[5:]]

    def printed(*arguments):
        app([*noisy, *arguments], standalone_mode=False)
        return capsys.readouterr()

    said = printed()
    assert "warning: ucb1 takes rewards" in said.out
    assert said.err == ""
    quiet = printed("-q", "-o", str(tmp_path / "out.json"))
    assert quiet.out == ""
    assert "Give it: ucb1:noise=5 on the command line" in quiet.err
    loaded = bt.load_result(tmp_path / "out.json")
    lines = quiet.err.splitlines()
    assert len(lines) == len(loaded.notices) >= 1
    assert all(line.startswith("banditune: warning: ") for line in lines)
    told = printed("--json")
    assert bt.results.from_json(told.out) == loaded
    assert told.err == quiet.err


def test_a_file_with_a_slip_is_one_sentence(banditune, tmp_path):
    (tmp_path / "own.py").write_text("1 / 0")
    process = banditune("tune", "--policy", "own.py:mine", *SMALL[2:])
    assert process.returncode == 2
    assert "own.py cannot be run: ZeroDivisionError" in process.stderr


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
def test_ctrl_c_leaves_within_two_seconds_with_130(tmp_path, delay):
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


def on_a_terminal(arguments, seconds):
    """What a terminal shows of a command within some seconds."""
    leader, follower = pty.openpty()
    process = subprocess.Popen([sys.executable, "-m", "banditune", *arguments], stdout=follower, stderr=follower)
    os.close(follower)
    shown = b""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        ready, _, _ = select.select([leader], [], [], 0.2)
        if ready:
            try:
                piece = os.read(leader, 65536)
            except OSError:
                break
            shown += piece
            if b" runs" in shown:
                break
        elif process.poll() is not None:
            break
    process.kill()
    process.wait()
    os.close(leader)
    return shown.decode(errors="replace")


def test_a_progress_bar_is_shown_on_a_terminal_only():
    arguments = ["tune", "--policy", "ucb1", "--problem", "bernoulli", "--horizon", "10000", "--budget", "100000"]
    assert " of 102,000 runs" in on_a_terminal([*arguments, "--no-shortcuts"], 40)
    process = subprocess.run(
        [sys.executable, "-m", "banditune", *TUNE, "--budget", "3000"], capture_output=True, text=True, timeout=100
    )
    assert process.stderr == ""
    assert "\r" not in process.stdout
    assert "\x1b" not in process.stdout


def test_a_full_disk_is_one_sentence():
    process = subprocess.run(
        f"{sys.executable} -m banditune list > /dev/full", shell=True, capture_output=True, text=True
    )
    assert process.returncode == 1
    assert "cannot be written" in process.stderr
    assert process.stderr.count("\n") == 1


def test_without_a_command_the_help_is_shown(banditune):
    process = banditune()
    assert process.returncode == 0
    assert process.stdout == banditune("--help").stdout


def test_own_files_may_use_dataclasses_and_their_neighbours(banditune, tmp_path):
    (tmp_path / "own.py").write_text(
        OWN + "\nimport neighbour\nfrom dataclasses import dataclass\n@dataclass\nclass A:\n    x: int\n"
    )
    (tmp_path / "neighbour.py").write_text("")
    process = banditune("tune", "--policy", "own.py:mine", *SMALL[2:], "--budget", "20", "--validate", "20")
    assert process.returncode == 0, process.stderr


def test_a_closed_pipe_is_no_traceback():
    script = f"set -o pipefail; {sys.executable} -m banditune list | true"  # nobody reads
    process = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
    assert (process.stderr, process.returncode) == ("", 141)


GOOD = {
    "numbers.csv": b"1,2\n3,4\n",
    "names.csv": b"a,b\n1,2\n3,4\n",
    "excel.csv": b"\xef\xbb\xbf1;2\n3;4\n",
    "quoted.csv": b'"a","b"\n"1","2"\n\n"3","4"\n',
    "tabs.tsv": b"1\t2\n3\t4\n",
}
BAD = {
    "letter.csv": (b"1,2O\n3,4\n", "column 2 in line 1 .* must be a number, but is '2O'"),
    "brackets.csv": (b"a,b\n1,2\n3,(1)\n", r"column 2 in line 3 .* must be a number, but is '\(1\)'"),
    "empty_cell.csv": (b"a,b\n1,2\n3,\n", "column 2 in line 3 .* must be a number, but is ''"),
    "ragged.csv": (b"1,2\n3\n", "must hold 2 numbers, but line 2 holds 1"),
    "nothing.csv": (b"", "has none"),
    "only_names.csv": (b"a,b\n", "has none"),
    "index.csv": (b",a\n0,1\n1,2\n", "looks like an index"),
    "picture.csv": (b"\xff\xfe\x00", "must be UTF-8 text"),
    "not_one.npy": (b"1,2\n3,4\n", "is not one"),
}


@pytest.mark.parametrize("name", GOOD)
def test_features_are_read_from_text_files(name, tmp_path):
    (tmp_path / name).write_bytes(GOOD[name])
    assert read_matrix(tmp_path / name).tolist() == [[1, 2], [3, 4]]


def test_a_problem_takes_features_from_a_file(tmp_path):
    (tmp_path / "arms.csv").write_bytes(GOOD["names.csv"])
    problem = parse_problem("logistic", features=tmp_path / "arms.csv", prior="0,1")
    assert problem == bt.Logistic(features=[[1, 2], [3, 4]], prior=(0, 1))


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_holds_no_features_is_refused_in_a_sentence(name, tmp_path):
    content, told = BAD[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(bt.InvalidRequest, match=told):
        read_matrix(tmp_path / name)


@pytest.mark.slow
def test_structured_bandits_are_tuned_from_the_command_line(banditune, tmp_path):
    np.save(tmp_path / "arms.npy", np.random.default_rng(0).normal(size=(8, 3)))
    process = banditune(
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
    process = banditune("tune", "--policy", "lints", "--problem", "bernoulli", "--horizon", "100")
    assert process.returncode == 2
    assert "lints needs features of arms" in process.stderr


def test_a_tuning_is_deployed_and_works_from_the_shell(banditune, tmp_path):
    bt.tune(bt.UCB1(noise=0.5), bt.Bernoulli(arms=2), horizon=20, budget=12, search=bt.Search(validate=10)).save(
        tmp_path / "tuning.json"
    )
    process = banditune("deploy", "tuning.json", "-o", "state.json", "--names", "red,7")
    assert process.returncode == 0, process.stderr
    assert banditune("deployed", "select", "state.json").stdout == "red\n"
    update = banditune("deployed", "update", "state.json", "red", "-1.5")
    assert (update.returncode, update.stdout) == (0, "")
    assert update.stderr.startswith("banditune: warning: 'red' paid -1.5, but ucb1 was tuned for rewards in [0, 1]")
    assert update.stderr.count("\n") == 1
    assert banditune("deployed", "select", "state.json").stdout == "7\n"
    shown = banditune("deployed", "show", "state.json").stdout
    assert "step 2 of 20" in shown
    assert "red  pulls 1, mean -1.5, pending 0" in shown
    refused = banditune("deployed", "update", "state.json", "blue", "1")
    assert refused.returncode == 2
    assert "must be one of 'red', '7'" in refused.stderr
    assert banditune("deployed", "show", "tuning.json").returncode == 2


@pytest.mark.parametrize(
    "message",
    [
        "tune --policy ucb1 --problem few.toml --budget 20 --validate 20 --no-shortcuts --curve",
        "compare --policy ucb1 --policy ucb1:noise=1 --problem few.toml --budget 20 --validate 20",
        "backtest logs.csv --policy ucb1 --budget 20 --model campaigns --arm colour --seed 3",
    ],
)
def test_a_result_from_files_knows_the_command_that_gives_it_again(message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bt.save_problem(bt.Campaigns([[(1, 2), (2, 1)], [(3, 4), (4, 5)]]), "few.toml", 20)
    rows = [f"{campaign},{colour},20,{5 + campaign % 3}" for campaign in range(6) for colour in ("red", "blue")]
    (tmp_path / "logs.csv").write_text("\n".join(["campaign,colour,pulls,successes", *rows]))
    app([*message.split(), "-q", "-o", "first.json", "--workers", "1"], standalone_mode=False)
    first = bt.load_result("first.json")
    assert first.setup.command.split()[:2] == ["banditune", message.split()[0]]
    assert sorted(first.setup.command.split()[1:]) == sorted(message.split())
    app([*shlex.split(first.setup.command)[1:], "-q", "-o", "again.json"], standalone_mode=False)
    assert bt.load_result("again.json") == first
    app(["report", "first.json", "--markdown", "first.md"], standalone_mode=False)
    assert first.setup.command in (tmp_path / "first.md").read_text()


def test_a_result_that_tells_all_by_itself_keeps_no_command(tmp_path):
    app([*TUNE, "-q", "-o", str(tmp_path / "out.json")], standalone_mode=False)
    assert bt.load_result(tmp_path / "out.json").setup.command is None


def live(state, *arguments):
    """What `banditune deployed` prints, in this process."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        app(["deployed", arguments[0], str(state), *arguments[1:]], standalone_mode=False)
    return printed.getvalue()


def test_arms_come_and_go_from_the_shell(tmp_path):
    state = tmp_path / "state.json"
    bt.deploy(bt.UCB1(noise=0.5), 0.2, horizon=20, arms=2).save(state)
    assert live(state, "select") == "0\n"
    assert live(state, "drop", "0") == ""
    assert live(state, "add", "2") == ""
    assert live(state, "retire", "0") == ""
    assert live(state, "update", "0", "1") == ""
    for arguments, said in (
        (("drop", "0", "--pulls", "2"), "an arm must have pending pulls that can be dropped, but 0 has none"),
        (("add", "2"), "must be new"),
        (("add", "3", "--features", "1,2"), "same number of features"),
        (("retire", "pink"), "must be one of 1, 2"),
        (("retire", "0"), "must be active to be retired, but 0 is retired already"),
    ):
        with pytest.raises(bt.InvalidRequest, match=said):
            live(state, *arguments)
    loaded = bt.DeployedPolicy.load(state)
    assert loaded.arms == (1, 2)
    assert loaded.step == 1
    assert "2  pulls 0" in live(state, "show")


def test_the_state_of_a_deployed_policy_is_no_result(tmp_path):
    state = tmp_path / "state.json"
    bt.deploy(bt.UCB1(noise=0.5), 0.2, horizon=20, arms=2).save(state)
    assert json.loads(state.read_text())["format"] == DEPLOYED_STATE_FORMAT
    with pytest.raises(bt.InvalidRequest, match="this is the state of a deployed policy") as refused:
        bt.load_result(state)
    assert "Tuning" not in str(refused.value)
    with pytest.raises(bt.InvalidRequest, match="this is the state of a deployed policy"):
        app(["report", str(state), "-o", str(tmp_path / "state.html")], standalone_mode=False)


def test_exact_commands_take_the_horizon_of_the_problem_file(tmp_path):
    bt.save_problem(bt.Bernoulli(arms=2), tmp_path / "x.toml", 20)
    for command in (("bound",), ("optimum",), ("regret", "--policy", "ucb1")):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            app(["exact", *command, "--problem", str(tmp_path / "x.toml"), "--json"], standalone_mode=False)
        assert json.loads(printed.getvalue())["setup"]["horizon"] == 20


def test_another_library_is_named_as_such_and_takes_tunings_only(tmp_path):
    path = tmp_path / "tuning.json"
    bt.tune(bt.UCB1(noise=0.5), bt.Bernoulli(arms=2), horizon=10, budget=12, search=bt.Search(validate=2)).save(path)
    with pytest.raises(bt.InvalidRequest, match="the other library must be one of mabwiser, river, but got 'foo'"):
        app(["export", str(path), "--to", "foo"], standalone_mode=False)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        app(["export", "--help"], standalone_mode=False)
    assert "comparison" not in printed.getvalue()


def test_an_arm_with_features_is_added_from_the_shell(banditune, tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")  # a linear policy takes long to compile
    arms = ArmState("a", features=(1.0, 0.0)), ArmState("b", features=(0.0, 1.0))
    state = DeploymentState({"name": "lin-greedy", "prior": (0, 1), "noise": 0.5}, {}, 20, 0, "ignore", (0, 0), arms)
    (tmp_path / "state.json").write_text(state.to_json())
    process = banditune("deployed", "add", "state.json", "c", "--features", "-1,0.5")
    assert (process.returncode, process.stderr) == (0, "")
    assert json.loads((tmp_path / "state.json").read_text())["arms"][-1]["features"] == [-1.0, 0.5]


def test_what_is_computed_for_a_policy_in_a_file_knows_its_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text("import banditune as bt\n\nmine = bt.UCB1(noise=0.5)\n")
    text = "exact regret --policy own.py:mine --problem bernoulli --horizon 5 --arms 2"
    app([*text.split(), "-o", "out.json"], standalone_mode=False)
    assert bt.load_result(tmp_path / "out.json").setup.command == f"banditune {text}"


def test_notes_of_a_fit_are_no_warnings_in_silence_either(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [f"{campaign},{arm},10,{arm + campaign}" for campaign in range(5) for arm in range(2 + campaign % 2)]
    (tmp_path / "logs.csv").write_text("\n".join(["campaign,arm,pulls,successes", *rows]))
    app(["fit", "logs.csv", "-q", "--save", "fit.json"], standalone_mode=False)
    said = capsys.readouterr().err.splitlines()
    notes = bt.load_result(tmp_path / "fit.json").notes
    assert notes
    assert sum(line.startswith("banditune: note: ") for line in said) == len(notes)
