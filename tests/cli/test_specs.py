"""Policies and problems on the command line: by name, or from a user's file."""

from __future__ import annotations

import pytest

import banditune as bt
from banditune.cli.specs import parse_policy, parse_problem
from banditune.study.options_from_problem import resolve_policy_options
from helpers.command_lines import OWN, SMALL


def test_policies_and_problems_are_loaded_from_a_file(run_banditune, tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    process = run_banditune(
        "tune", "--policy", "own.py:mine", "--problem", "own.py:coins", "--horizon", "50", "--budget", "20"
    )
    assert process.returncode == 0, process.stderr
    assert "mine on coins" in process.stdout
    repeated = run_banditune(
        "tune", "--policy", "own.py:mine", "--problem", "own.py:coins", "--horizon", "50", "--budget", "20"
    )
    assert repeated.stdout == process.stdout
    process = run_banditune(
        "tune", "--policy", "own.py:broken", "--problem", "own.py:coins", "--horizon", "50", "--budget", "20"
    )
    assert process.returncode == 1
    assert "'broken' chose 11 at step 0 of run 0" in process.stderr
    assert process.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("policy", "problem", "expected"),
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
def test_a_policy_takes_noise_and_prior_from_the_problem(policy, problem, expected):
    assert resolve_policy_options(parse_policy(policy), problem).policy == expected


def test_an_error_in_a_users_file_is_named(run_banditune, tmp_path):
    (tmp_path / "own.py").write_text("1 / 0")
    process = run_banditune("tune", "--policy", "own.py:mine", *SMALL[2:])
    assert process.returncode == 2
    assert "own.py cannot be run: ZeroDivisionError" in process.stderr


def test_a_users_file_may_import_its_neighbours(run_banditune, tmp_path):
    (tmp_path / "own.py").write_text(
        OWN + "\nimport neighbour\nfrom dataclasses import dataclass\n@dataclass\nclass A:\n    x: int\n"
    )
    (tmp_path / "neighbour.py").write_text("")
    process = run_banditune("tune", "--policy", "own.py:mine", *SMALL[2:], "--budget", "20", "--validate", "20")
    assert process.returncode == 0, process.stderr


GOOD = {
    "numbers.csv": b"1,2\n3,4\n",
    "names.csv": b"a,b\n1,2\n3,4\n",
    "excel.csv": b"\xef\xbb\xbf1;2\n3;4\n",
    "quoted.csv": b'"a","b"\n"1","2"\n\n"3","4"\n',
    "tabs.tsv": b"1\t2\n3\t4\n",
}


def test_a_problem_takes_features_from_a_file(tmp_path):
    (tmp_path / "arms.csv").write_bytes(GOOD["names.csv"])
    problem = parse_problem("logistic", features=tmp_path / "arms.csv", prior="0,1")
    assert problem == bt.Logistic(features=[[1, 2], [3, 4]], prior=(0, 1))
