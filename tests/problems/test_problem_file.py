"""Problems as TOML files: written, read, and refused where they are damaged or hostile."""

from __future__ import annotations

import string

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import banditune as bt
from banditune.core.descriptions import describe
from banditune.problems.problem_file import format_problem_file

PROBLEMS = [
    bt.Bernoulli(arms=3, prior=(1.5, 20), names=('a "quoted"', "tab\there", "é\x7f\\")),
    bt.Bernoulli(arms=2, prior=[(1, 2), (3, 4)]),
    bt.BetaRewards(arms=4, v=2.5),
    bt.Gaussian(arms=3, prior=[(0, 1), (1, 1), (2, 0.5)], noise=0.3),
    bt.Linear(arms=5, dims=3, prior=(0.5, 2.0)),
    bt.Logistic(features=np.eye(3), prior=([0, 1, 2], np.diag([1.0, 2, 3]))),
    bt.Logistic(features=[[1, 2], [1, 0]], prior=([0, 1], np.eye(2)), intercept=True),
    bt.Linear(arms=4, dims=3, feature_prior=(0.5, 2.0), intercept=True),
    bt.Mixture([[0.1, 0.2], [0.3, 0.1]], weights=[1, 3]),
]


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_problem_is_read_as_it_was_written(tmp_path, problem):
    bt.save_problem(problem, tmp_path / "prior.toml", 500, ("from past logs\nof two lines", "\x00 and noise"))
    loaded = bt.load_problem(tmp_path / "prior.toml")
    assert loaded.problem == problem
    assert describe(loaded.problem) == describe(problem)
    assert loaded.horizon == 500


class SkewedBernoulli(bt.Bernoulli):
    """Bernoulli in name only."""

    def sample(self, size, rng):
        return bt.kernel.Instances(rng.random((size, self.arms)) ** 2)


def test_a_users_problem_cannot_be_written(tmp_path):
    defined = [
        bt.define_problem(name, lambda size, rng: None, lambda *_: 0.0, arms=2) for name in ("mine", "bernoulli")
    ]
    for problem in (bt.RewardTable(np.eye(3)), *defined, SkewedBernoulli(arms=2)):
        with pytest.raises(bt.InvalidRequest, match="only problems of this package"):
            bt.save_problem(problem, tmp_path / "prior.toml")


def test_every_command_reads_problem_and_horizon_from_a_file(run_banditune, tmp_path):
    bt.save_problem(bt.Bernoulli(arms=3, prior=(2, 5)), tmp_path / "prior.toml", 50)
    options = ["--policy", "ucb1", "--problem", "prior.toml", "--json"]
    process = run_banditune("tune", *options, "--budget", "20", "--validate", "10")
    assert process.returncode == 0, process.stderr
    assert '"horizon": 50' in process.stdout
    process = run_banditune("curve", *options, "--horizon", "60", "--runs", "5", "--values", "1")
    assert '"horizon": 60' in process.stdout
    process = run_banditune("compare", *options, "--policy", "ts", "--budget", "20", "--validate", "10")
    assert process.returncode == 0, process.stderr
    process = run_banditune("tune", *options, "--arms", "5")
    assert process.returncode == 2
    assert "--arms cannot be given with a problem from a file" in process.stderr
    bt.save_problem(bt.Bernoulli(arms=3), tmp_path / "prior.toml")
    process = run_banditune("tune", *options)
    assert process.returncode == 2
    assert "--horizon" in process.stderr


VALID = format_problem_file(PROBLEMS[5], 100)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "banditune = 1"),
        ("banditune = 2\n[problem]\nname = 'bernoulli'", "banditune = 1"),
        ("banditune = true\n[problem]\nname = 'bernoulli'", "banditune = 1"),
        ("banditune = 1", "must have one of the names bernoulli"),
        ("banditune = 1\n[problem]\nname = 'os.system'", "must have one of the names"),
        ("banditune = 1\n[problem]\nname = 'reward-table'\nfile='/etc/passwd'", "must have one of the names"),
        ("banditune = 1\n[problem]\nname = 'bernoulli'\narm = 3", "'arm' cannot be read"),
        ("banditune = 1\n[problem]\nname = 'bernoulli'\narms = 1", "`arms` must be a whole number >= 2"),
        ("banditune = 1\n[problem]\nname = 'bernoulli'\narms = 99999999999999999999", "`arms"),
        ("banditune = 1\n[problem]\nname = 'bernoulli'\nprior = [nan, 1]", "must hold for the prior"),
        ("banditune = 1\n[problem]\nname = 'bernoulli'\nprior = {a = 1}", "'prior' cannot be read"),
        ("banditune = 1\n[problem]\nname = 'mixture'", "'means' is missing"),
        ("banditune = 1\nhorizon = 0\n[problem]\nname = 'bernoulli'", "`horizon` must be a whole number >= 1"),
        ("banditune = 1\nhorizon = 1.5\n[problem]\nname = 'bernoulli'", "`horizon` must be a whole number >= 1"),
        ("banditune = 1\nevil = 1\n[problem]\nname = 'bernoulli'", "but it contains evil"),
        ("banditune = 1\n[problem]\nname = 'linear'\nfeatures = " + "[" * 5000 + "]" * 5000, "must be TOML"),
        ("not toml", "must be TOML"),
    ],
)
def test_wrong_problem_files_are_refused(tmp_path, text, message):
    (tmp_path / "prior.toml").write_text(text)
    with pytest.raises(bt.InvalidRequest, match=message):
        bt.load_problem(tmp_path / "prior.toml")


def test_a_missing_or_too_large_file_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("banditune.problems.problem_file.MAX_PROBLEM_FILE_BYTES", 100)
    (tmp_path / "large.toml").write_text("#" * 200)
    for name in ("none.toml", "large.toml", "."):
        with pytest.raises(bt.InvalidRequest):
            bt.load_problem(tmp_path / name)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_damaged_files_are_read_or_refused(tmp_path_factory, data):
    position = data.draw(st.integers(0, len(VALID)))
    deleted = data.draw(st.integers(0, 12))
    inserted = data.draw(st.text(string.printable, max_size=8))
    path = tmp_path_factory.getbasetemp() / "damaged.toml"
    path.write_text(VALID[:position] + inserted + VALID[position + deleted :])
    try:
        assert isinstance(bt.load_problem(path).problem, bt.kernel.Problem)
    except bt.InvalidRequest as error:
        assert str(error).endswith(".")
