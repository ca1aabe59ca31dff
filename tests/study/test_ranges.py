"""Ranges: hard limits, other ranges than the usual one, and ends that rounding misses."""

from __future__ import annotations

import json
import math
import shlex
from dataclasses import dataclass

import numpy as np
import pytest

import banditune as bt
from banditune.core.space import ROUNDING_TOLERANCE
from banditune.core.tuner import Trial
from banditune.reports.repeat_commands import make_command
from banditune.study.notices import suggest_range
from banditune.study.parameter_values import resolve_ranges
from banditune.study.requests import build_spec
from helpers.settings import group_settings

PROBLEM = bt.Bernoulli(arms=3)
POLICY = bt.UCB1(noise=0.5)


@bt.kernel.scalar
def choose(state, setting, step, params, stream):
    return bt.kernel.draw_arm(state, stream) if bt.kernel.uniform(stream) < params[0] else bt.kernel.argmax_mean(state)


def make_policy(*ends, **options):
    return bt.define_policy("own", choose, parameters=[bt.Parameter("x", *ends, **options)])


def resolve_range(policy, **ranges):
    (search_range,) = resolve_ranges(build_spec(policy, PROBLEM, horizon=50, search=bt.Search(ranges=ranges or None)))
    return search_range


def test_another_range_is_searched_and_recorded(tmp_path):
    arguments = {"horizon": 50, "seed": 1, "ranges": {"gamma": (0, 3)}}
    tuning = bt.tune(
        POLICY, PROBLEM, **group_settings(tuner=bt.tuners.Uniform(precision=0.2), budget=70, validate=20, **arguments)
    )
    assert max(trial.rows.max() for trial in tuning.trials) == 3
    assert tuning.searched_ranges == {"gamma": (0, 3)}
    assert bt.results.from_json(tuning.to_json()) == tuning
    assert json.loads(tuning.to_json())["setup"]["ranges"] == {"gamma": [0, 3]}
    assert "--range gamma=0:3" in make_command(tuning)
    assert "gamma from 0 to 3" in repr(tuning)
    page = tmp_path / "report.html"
    tuning.report(page)
    assert "range of gamma" in page.read_text()
    deployed = tuning.deploy()
    assert json.loads(deployed.to_json())["searched_ranges"] == {"gamma": [0, 3]}
    assert bt.DeployedPolicy.from_json(deployed.to_json()).to_json() == deployed.to_json()
    curve = bt.curve(POLICY, PROBLEM, **group_settings(runs=5, **arguments))
    assert curve.values[-1] == 3
    assert "--range gamma=0:3" in make_command(curve)
    policies = [POLICY, bt.EpsilonGreedy(), bt.Greedy()]
    comparison = bt.compare(
        policies, PROBLEM, **group_settings(tuner=bt.tuners.Uniform(precision=0.2), budget=70, validate=20, **arguments)
    )
    assert {entry.policy_config["name"]: entry.searched_ranges for entry in comparison.entries} == {
        "ucb1": {"gamma": (0, 3)},
        "epsilon-greedy": {"epsilon": (0, 1)},
        "greedy": None,
    }
    assert "--range gamma=0:3" in make_command(comparison)


def test_the_usual_range_is_recorded():
    tuning = bt.tune(
        POLICY, PROBLEM, horizon=50, budget=6, search=bt.Search(tuner=bt.tuners.Uniform(precision=0.5), validate=5)
    )
    assert tuning.searched_ranges == {"gamma": (0, 1)}
    assert tuning.setup.ranges is None
    assert "--range" not in make_command(tuning)


def test_a_range_may_exclude_the_textbook_value():
    search_range = resolve_range(POLICY, gamma=(0.1, 0.3))
    assert (search_range.low, search_range.high, search_range.textbook) == (0.1, 0.3, 1)
    tuning = bt.tune(
        POLICY, PROBLEM, horizon=50, budget=60, search=bt.Search(validate=20, ranges={"gamma": (0.1, 0.3)})
    )
    assert 0.1 <= tuning.params["gamma"] <= 0.3
    assert tuning.textbook_params == {"gamma": 1}


def test_values_beyond_the_usual_range_are_deployed_and_checked():
    assert bt.deploy(POLICY, 2.5, horizon=50, arms=3).select_arm() == 0
    other_problems = [("the same", PROBLEM)]
    report = bt.robustness(
        POLICY,
        PROBLEM,
        2.5,
        horizon=40,
        others=other_problems,
        budget=40,
        search=bt.Search(validate=20, ranges={"gamma": (0, 3)}),
    )
    assert report.params == {"gamma": 2.5}
    assert report.setup.ranges == {"gamma": (0, 3)}


@pytest.mark.parametrize(
    ("policy", "ranges", "message"),
    [
        (bt.EpsilonGreedy(), {"epsilon": (0, 3)}, "`0 <= epsilon <= 1` must hold for the parameter 'epsilon'"),
        (bt.EpsilonGreedy(), {"epsilon": (-0.5, 1)}, "`0 <= epsilon <= 1` must hold"),
        (bt.ExploreThenCommit(), {"pulls": (0, 5)}, "`low > 0` must hold for the parameter 'pulls' on a log scale"),
        (bt.ExploreThenCommit(), {"pulls": (0.5, 5)}, "`pulls >= 1` must hold"),
        (bt.Thompson(prior=(1, 1)), {"gamma": (0, 4)}, "`0 <= gamma <= 3.16228` must hold"),
        (make_policy(1e-3, 1, textbook=0.1, scale="log"), {"x": (-1, 1)}, "`low > 0` must hold"),
        (POLICY, {"gamma": (1, 1)}, "`low < high` must hold"),
        (POLICY, {"gamma": (0, math.inf)}, "two numbers each"),
        (POLICY, {"gamma": 3}, "two numbers each"),
        (POLICY, {"gamma": (0, 1, 2)}, "two numbers each"),
        (POLICY, {"gamma": "03"}, "two numbers each"),
        (POLICY, [("gamma", 0, 3)], "two numbers each"),
        (POLICY, {"delta": (0, 3)}, "must be of one of the parameters gamma, but got one of 'delta'"),
    ],
)
def test_ranges_beyond_the_limits_of_a_policy_are_refused(policy, ranges, message):
    with pytest.raises(bt.InvalidRequest) as error:
        bt.tune(policy, PROBLEM, horizon=50, search=bt.Search(ranges=ranges))
    assert message in str(error.value)


def test_a_comparison_refuses_ranges_of_unknown_parameters():
    with pytest.raises(bt.InvalidRequest, match="one of the parameters gamma, but got one of 'x'"):
        bt.compare([POLICY, bt.Greedy()], PROBLEM, horizon=50, search=bt.Search(ranges={"x": (0, 1)}))


def test_a_curve_takes_values_or_a_range():
    with pytest.raises(bt.InvalidRequest, match="either `values` or `ranges`"):
        bt.curve(POLICY, PROBLEM, [0.5], horizon=50, search=bt.Search(ranges={"gamma": (0, 3)}))


def test_values_are_simulated_within_the_limits_of_the_policy():
    assert bt.simulate(POLICY, PROBLEM, [2.0], horizon=50, runs=3).shape == (1, 3)
    with pytest.raises(
        bt.InvalidRequest, match=r"`0 <= epsilon <= 1` must hold for epsilon-greedy, but got epsilon=1.1"
    ):
        bt.simulate(bt.EpsilonGreedy(), PROBLEM, [1.1], horizon=50, runs=3)
    limited = make_policy(0, 1, textbook=0.5, lower_limit=-1, upper_limit=2)
    for wrong in (-1.1, 2.1):
        with pytest.raises(bt.InvalidRequest, match="`-1 <= x <= 2` must hold for own"):
            bt.simulate(limited, PROBLEM, [wrong], horizon=50, runs=3)


def test_values_beyond_a_limit_by_rounding_are_accepted():
    policy_to_03 = make_policy(0, 0.3, textbook=3 * 0.1, lower_limit=0, upper_limit=0.3)
    assert 3 * 0.1 > 0.3
    assert resolve_range(policy_to_03).textbook == 0.3
    assert resolve_range(make_policy(0, 0.3, textbook=3 * 0.1)).textbook == 0.3
    assert resolve_range(policy_to_03, x=(0, 3 * 0.1)).high == 0.3
    at_the_end, beyond = (bt.simulate(policy_to_03, PROBLEM, [value], horizon=30, runs=4) for value in (0.3, 3 * 0.1))
    assert (at_the_end == beyond).all()
    for value in (0.30000000000000004, 1 + 1e-16, 0.3 - 3 * 0.1):
        policy = make_policy(0, round(value, 1) or 1, textbook=0, lower_limit=0, upper_limit=round(value, 1) or 1)
        bt.simulate(policy, PROBLEM, [value], horizon=30, runs=4)
    too_large = 0.3 * (1 + 4 * ROUNDING_TOLERANCE)
    with pytest.raises(bt.InvalidRequest, match=r"`0 <= x <= 0.3` must hold"):
        bt.simulate(policy_to_03, PROBLEM, [too_large], horizon=30, runs=4)
    # Values are clipped by rounding errors only.
    assert resolve_range(make_policy(0, 1, textbook=1 - 1e-12)).textbook == 1 - 1e-12


def test_a_fixed_value_that_misses_a_limit_by_rounding_is_moved_to_it():
    parameters = [
        bt.Parameter("x", 0, 1, textbook=0.1),
        bt.Parameter("y", 0, 0.3, textbook=0.1, upper_limit=0.3),
        bt.Parameter("pulls", 1, 9, textbook=2, integer=True),
    ]
    policy = bt.define_policy("three", choose, parameters=parameters)
    spec = build_spec(policy, PROBLEM, horizon=50, search=bt.Search(fixed={"y": 3 * 0.1, "pulls": 4.4}))
    assert spec.fixed == (("y", 0.3), ("pulls", 4.0))


@dataclass(frozen=True)
class GridOfSteps(bt.tuners.Tuner):
    """A grid as NumPy makes it. Its last value is 0.30000000000000004."""

    name = "steps"

    def search(self, among, budget):
        regrets = yield Trial(tuple(np.arange(0.1, 0.31, 0.1).tolist()), 2)
        assert len(regrets) == 3
        return 3 * 0.1


def test_a_tuner_may_miss_the_end_of_its_range_by_rounding():
    tuning = bt.tune(
        make_policy(0.1, 0.3, textbook=0.2),
        PROBLEM,
        horizon=30,
        budget=6,
        search=bt.Search(tuner=GridOfSteps(), validate=5),
    )
    assert tuning.params == {"x": 0.3}
    assert tuning.trials[0].rows[-1, 0] == 0.3


@pytest.mark.parametrize(
    ("policy", "ranges", "end", "expected"),
    [
        (POLICY, {}, "upper", 'Search a wider range: ranges={"gamma": (0, 10)}.'),
        (POLICY, {}, "lower", 'Search a narrower range: ranges={"gamma": (0, 0.1)}.'),
        (POLICY, {"gamma": (1, 2)}, "lower", 'Search a wider range: ranges={"gamma": (0, 2)}.'),
        (bt.EpsilonGreedy(), {}, "upper", "epsilon is not defined beyond that end"),
        (make_policy(1e-2, 1, textbook=0.1, scale="log"), {}, "lower", 'ranges={"x": (0.001, 1)}'),
        (make_policy(1e-2, 1, textbook=0.1, scale="log"), {}, "upper", 'ranges={"x": (0.01, 10)}'),
    ],
)
def test_the_warning_of_an_end_names_a_range_beyond_it(policy, ranges, end, expected):
    assert expected in suggest_range(resolve_range(policy, **ranges), end)


def test_the_command_line_takes_ranges(run_banditune, tmp_path):
    result = tmp_path / "tuned.json"
    arguments = ["--policy", "ucb1:noise=0.5", "--problem", "bernoulli", "--arms", "3", "--horizon", "50"]
    process = run_banditune(
        "tune", *arguments, "--budget", "60", "--validate", "20", "--range", "gamma=1:3", "-o", str(result)
    )
    assert process.returncode == 0, process.stderr
    tuning = bt.load_result(result)
    assert tuning.searched_ranges == {"gamma": (1, 3)}
    command = shlex.split(make_command(tuning))
    assert run_banditune(*command[1:], "--quiet", "-o", str(tmp_path / "again.json")).returncode == 0
    assert bt.load_result(tmp_path / "again.json") == tuning
    for wrong in ("gamma", "gamma=1", "gamma=a:b", "gamma=3:1"):
        process_with_wrong_range = run_banditune("tune", *arguments, "--range", wrong)
        assert process_with_wrong_range.returncode == 2
        assert (
            "--range" in process_with_wrong_range.stderr or "`low < high` must hold" in process_with_wrong_range.stderr
        )
