"""`list`, and result files that cannot be shown."""

from __future__ import annotations

import contextlib
import io
import json

import pytest

import banditune as bt
from banditune.cli import app
from banditune.results.result_record import DEPLOYED_STATE_FORMAT
from helpers.example_results import make_curve


def test_list_shows_all_policies_problems_and_tuners(run_banditune):
    from banditune.problems import problem_registry
    from banditune.registry import collect_policies
    from banditune.tuners import tuner_registry

    process = run_banditune("list")
    assert process.returncode == 0
    for name in (*collect_policies(), *problem_registry.PROBLEMS, *tuner_registry.TUNERS):
        assert f"  {name} " in process.stdout
    assert "gamma in [0, 1], textbook 1" in process.stdout
    assert set(json.loads(run_banditune("list", "--json").stdout)) == {"policies", "problems", "tuners"}


def test_an_unreadable_result_is_named(tmp_path):
    path = tmp_path / "prior.toml"
    path.write_text("banditune = 1")
    with pytest.raises(bt.InvalidRequest, match=r"in the result file '.*prior.toml': a result must be JSON"):
        bt.load_result(path)


def test_the_state_of_a_deployed_policy_is_no_result(tmp_path):
    state = tmp_path / "state.json"
    bt.deploy(bt.UCB1(noise=0.5), 0.2, horizon=20, arms=2).save(state)
    assert json.loads(state.read_text())["format"] == DEPLOYED_STATE_FORMAT
    with pytest.raises(bt.InvalidRequest, match="this is the state of a deployed policy") as refused:
        bt.load_result(state)
    assert "Tuning" not in str(refused.value)
    with pytest.raises(bt.InvalidRequest, match="this is the state of a deployed policy"):
        app(["report", str(state), "-o", str(tmp_path / "state.html")], standalone_mode=False)


def test_export_refuses_unknown_libraries(tmp_path):
    path = tmp_path / "tuning.json"
    bt.tune(bt.UCB1(noise=0.5), bt.Bernoulli(arms=2), horizon=10, budget=12, search=bt.Search(validate=2)).save(path)
    with pytest.raises(bt.InvalidRequest, match="the other library must be one of mabwiser, river, but got 'foo'"):
        app(["export", str(path), "--to", "foo"], standalone_mode=False)
    with contextlib.redirect_stdout(io.StringIO()) as output:
        app(["export", "--help"], standalone_mode=False)
    assert "comparison" not in output.getvalue()


def test_saved_results_are_drawn_in_one_figure(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    first, second = make_curve(), make_curve("ts")
    first.save("first.json")
    second.save("second.json")
    options = ["--label", "UCB1", "--label", "TS", "--xscale", "log", "--size", "3,2"]
    app(["plot", "first.json", "second.json", "-o", "both.svg", *options], standalone_mode=False)
    assert capsys.readouterr().out == "wrote both.svg\n"
    bt.plot([first, second], "expected.svg", labels=["UCB1", "TS"], xscale="log", size=(3, 2))
    assert (tmp_path / "both.svg").read_bytes() == (tmp_path / "expected.svg").read_bytes()
    app(["plot", "first.json", "-o", "one.svg", "--size", "column"], standalone_mode=False)
    first.plot("expected.svg", size="column")
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "expected.svg").read_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--xscale", "cubic"], "must be one of 'linear', 'log'"),
        (["--size", "page"], "must be 'column', or width and height"),
        (["--label", "a", "--label", "b"], "must be 1 names"),
    ],
)
def test_wrong_options_of_plot_are_refused(tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    make_curve().save("curve.json")
    with pytest.raises(bt.InvalidRequest, match=message):
        app(["plot", "curve.json", "-o", "figure.svg", *options], standalone_mode=False)
    assert not (tmp_path / "figure.svg").exists()
