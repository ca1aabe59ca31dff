"""`exact` on the command line."""

from __future__ import annotations

import contextlib
import io
import json

import banditune as bt
from banditune.cli import app


def test_exact_commands_take_the_horizon_of_the_problem_file(tmp_path):
    bt.save_problem(bt.Bernoulli(arms=2), tmp_path / "x.toml", 20)
    for command in (("bound",), ("optimum",), ("regret", "--policy", "ucb1")):
        with contextlib.redirect_stdout(io.StringIO()) as output:
            app(["exact", *command, "--problem", str(tmp_path / "x.toml"), "--json"], standalone_mode=False)
        assert json.loads(output.getvalue())["setup"]["horizon"] == 20
