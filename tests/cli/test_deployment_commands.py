"""`deploy` and `deployed` on the command line."""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import replace

import pytest

import banditune as bt
from banditune.cli import app
from banditune.deployment.deployment_state import ArmState, DeploymentState


def test_a_tuning_is_deployed_and_updated_by_commands(run_banditune, tmp_path):
    bt.tune(bt.UCB1(noise=0.5), bt.Bernoulli(arms=2), horizon=20, budget=12, search=bt.Search(validate=10)).save(
        tmp_path / "tuning.json"
    )
    process = run_banditune("deploy", "tuning.json", "-o", "state.json", "--names", "red,7")
    assert process.returncode == 0, process.stderr
    assert run_banditune("deployed", "select", "state.json").stdout == "red\n"
    update = run_banditune("deployed", "update", "state.json", "red", "-1.5")
    assert (update.returncode, update.stdout) == (0, "")
    assert update.stderr.startswith("banditune: warning: 'red' paid -1.5, but ucb1 was tuned for rewards in [0, 1]")
    assert update.stderr.count("\n") == 1
    assert run_banditune("deployed", "select", "state.json").stdout == "7\n"
    output = run_banditune("deployed", "show", "state.json").stdout
    assert "step 2 of 20" in output
    assert "red  pulls 1, mean -1.5, pending 0" in output
    unknown = run_banditune("deployed", "update", "state.json", "blue", "1")
    assert unknown.returncode == 2
    assert "must be one of 'red', '7'" in unknown.stderr
    assert run_banditune("deployed", "show", "tuning.json").returncode == 2


def test_a_value_that_is_worse_than_the_textbooks_is_deployed_with_a_warning(tmp_path, capsys):
    tuning = bt.tune(bt.UCB1(noise=0.5), bt.Bernoulli(arms=2), horizon=20, budget=12, search=bt.Search(validate=10))
    worse = replace(tuning, gain=bt.results.Estimate.from_standard_error(-3.0, 1.0, 1000))
    text = r"the tuned value has 3 more regret than the textbook policy \(95%: 1.0\d* to 4.9\d*\): deploy that one"
    with pytest.warns(UserWarning, match=text):
        worse.deploy()
    worse.save(tmp_path / "tuning.json")
    app(
        ["deploy", str(tmp_path / "tuning.json"), "-o", str(tmp_path / "state.json")],
        standalone_mode=False,
    )
    assert "banditune: warning: the tuned value has 3 more regret" in capsys.readouterr().err


def run_deployed(state, *arguments):
    """What `banditune deployed` prints, in this process."""
    with contextlib.redirect_stdout(io.StringIO()) as output:
        app(["deployed", arguments[0], str(state), *arguments[1:]], standalone_mode=False)
    return output.getvalue()


def test_arms_are_added_and_retired_by_commands(tmp_path):
    state = tmp_path / "state.json"
    bt.deploy(bt.UCB1(noise=0.5), 0.2, horizon=20, arms=2).save(state)
    assert run_deployed(state, "select") == "0\n"
    assert run_deployed(state, "drop", "0") == ""
    assert run_deployed(state, "add", "2") == ""
    assert run_deployed(state, "retire", "0") == ""
    assert run_deployed(state, "update", "0", "1") == ""
    for arguments, message in (
        (("drop", "0", "--pulls", "2"), "an arm must have pending pulls that can be dropped, but 0 has none"),
        (("add", "2"), "must be new"),
        (("add", "3", "--features", "1,2"), "same number of features"),
        (("retire", "pink"), "must be one of 1, 2"),
        (("retire", "0"), "must be active to be retired, but 0 is retired already"),
    ):
        with pytest.raises(bt.InvalidRequest, match=message):
            run_deployed(state, *arguments)
    loaded = bt.DeployedPolicy.load(state)
    assert loaded.arms == (1, 2)
    assert loaded.step == 1
    assert "2  pulls 0" in run_deployed(state, "show")


def test_an_arm_with_features_is_added_by_a_command(run_banditune, tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")  # a linear policy takes long to compile
    arms = ArmState("a", features=(1.0, 0.0)), ArmState("b", features=(0.0, 1.0))
    state = DeploymentState({"name": "lin-greedy", "prior": (0, 1), "noise": 0.5}, {}, 20, 0, "ignore", (0, 0), arms)
    (tmp_path / "state.json").write_text(state.to_json())
    process = run_banditune("deployed", "add", "state.json", "c", "--features", "-1,0.5")
    assert (process.returncode, process.stderr) == (0, "")
    assert json.loads((tmp_path / "state.json").read_text())["arms"][-1]["features"] == [-1.0, 0.5]
