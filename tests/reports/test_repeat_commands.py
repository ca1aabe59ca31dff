"""The command and the call that compute a result again."""

from __future__ import annotations

import shlex
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import banditune as bt
from banditune.cli import app
from banditune.core.descriptions import describe
from banditune.policies import policy_registry
from banditune.problems import problem_registry
from banditune.registry import make_from_spec
from banditune.reports import repeat_commands
from banditune.reports.html_page import render_page
from banditune.reports.report_builder import build_report_content
from banditune.tuners import tuner_registry
from helpers.example_results import make_comparison, make_curve, make_over_time, make_setup, make_tuning


def test_the_worst_runs_of_a_tuning_can_be_simulated_again():
    policy, problem = bt.UCB1(noise=0.5), bt.Bernoulli(arms=3)
    for validate in (60, None):
        tuning = bt.tune(policy, problem, horizon=100, budget=40, seed=5, search=bt.Search(validate=validate))
        values = [tuning.params["gamma"], 1.0]
        for distribution, row in ((tuning.distribution, 0), (tuning.textbook_distribution, 1)):
            regrets = bt.simulate(
                policy, problem, values, horizon=100, seed=5, first_instance=distribution.worst_runs[0], runs=1
            )
            assert (
                np.float32(regrets[row, 0]) == distribution.worst_regrets[0]
            )  # regrets of a tuning are kept in single precision
        assert tuning.distribution.mean == tuning.regret.mean
        code = repeat_commands.format_simulate_call(tuning.setup, values, tuning.distribution.worst_runs[0])
        repeated = eval(code, {"bt": bt, "policy": policy, "problem": problem})
        assert np.float32(repeated[0, 0]) == tuning.distribution.worst_regrets[0]


RECORDS = [
    *(("policy", policy_registry.POLICIES, make()) for make in policy_registry.POLICIES.values()),
    *(
        ("problem", problem_registry.PROBLEMS, make())
        for name, make in problem_registry.PROBLEMS.items()
        if name not in ("mixture", "campaigns", "reward-table")
    ),
    *(("tuner", tuner_registry.TUNERS, make()) for make in tuner_registry.TUNERS.values()),
    ("problem", problem_registry.PROBLEMS, bt.Mixture([(0.5, 0.4, 0.25), (0.1, 0.2, 0.3)], weights=(0.75, 0.25))),
    ("problem", problem_registry.PROBLEMS, bt.Bernoulli(arms=2, prior=[(1, 2), (3, 4.5)])),
    ("problem", problem_registry.PROBLEMS, bt.Bernoulli(arms=2, names=("red", "blue"))),
    ("policy", policy_registry.POLICIES, bt.Thompson(prior=(2, 5))),
]


@pytest.mark.parametrize(("kind", "registry", "record"), RECORDS, ids=lambda value: getattr(value, "name", None))
def test_the_spec_of_a_record_makes_an_equal_one(kind, registry, record):
    spec = repeat_commands.format_spec(describe(record))
    assert describe(make_from_spec(kind, spec, registry, object)) == describe(record)


def test_records_beyond_the_command_line_have_no_spec():
    features = np.random.default_rng(0).normal(size=(12, 30))
    assert repeat_commands.format_spec(describe(bt.Linear(features=features))) is None
    result = make_tuning(setup=replace(make_setup(), problem=describe(bt.Linear(features=features))))
    assert repeat_commands.make_command(result) is None
    assert "There is no command line for this result" in render_page(build_report_content(result))
    assert repeat_commands.format_spec(describe(bt.Bernoulli(arms=2, names=("a b", "c")))) is None
    assert repeat_commands.format_spec(describe(bt.Mixture([(0.5, 0.4)]))) is None


@bt.kernel.scalar
def choose_last(state, setting, step, params, stream):
    return setting.arms - 1


def test_users_code_is_named_by_its_file():
    policy = bt.define_policy("ucb1", choose_last, parameters=bt.Parameter("gamma", 0, 1, textbook=1))
    problem = bt.define_problem("bernoulli", lambda size, rng: rng.random((size, 2)), choose_last, arms=2)
    result = make_tuning(setup=replace(make_setup(), policy=describe(policy), problem=describe(problem)))
    assert repeat_commands.make_command(result).startswith(
        "banditune tune --policy test_repeat_commands.py:NAME --problem test_repeat_commands.py:NAME --horizon 10000 "
    )
    page = render_page(build_report_content(result))
    assert "test_repeat_commands.py:choose_last" in page
    assert "NAME is the name of your policy or problem" in page
    assert "NAME is the name" not in render_page(build_report_content(make_tuning()))
    comparison = make_comparison()
    changed = replace(
        comparison, entries=(replace(comparison.entries[0], policy_config=describe(policy)), *comparison.entries[1:])
    )
    assert "--policy test_repeat_commands.py:NAME --policy ucb1" in repeat_commands.make_command(changed)
    assert "test_repeat_commands.py:choose_last" in render_page(build_report_content(changed))


def test_a_partial_function_is_named_by_its_file():
    def sample(size, rng, arms):
        return rng.random((size, arms))

    problem = bt.define_problem("mine", partial(sample, arms=2), bt.Gaussian.reward, arms=2)
    assert describe(problem)["own code"] == "test_repeat_commands.py:sample"


def test_code_from_a_prompt_has_no_file():
    namespace = {"bt": bt}
    exec(compile("def choose(state, setting, step, params, stream): return 0", "<prompt>", "exec"), namespace)
    policy = bt.define_policy("mine", namespace["choose"])
    assert describe(policy) == {"name": "mine", "own code": "choose"}
    assert repeat_commands.format_spec(describe(policy)) is None


def test_the_command_of_a_result_contains_its_arguments():
    assert repeat_commands.make_command(make_tuning(precision=0.02, budget=100_000, requested_validation_runs=50)) == (
        "banditune tune --policy ucb1:noise=0.5 --problem 'bernoulli:arms=10,prior=1,1;' --horizon 10000 "
        "--tuner two-part --precision 0.02 --max-runs 100000 --validate 50 --curve"
    )
    assert "--values" not in repeat_commands.make_command(make_curve())
    with_values = replace(make_curve(), refined=False, values=np.array([0.1, 0.5]), setup=replace(make_setup(), seed=3))
    assert repeat_commands.make_command(with_values).endswith("--values 0.1,0.5 --runs 1000 --seed 3")
    assert "--policy ts --policy ucb1" in repeat_commands.make_command(make_comparison())
    separate = replace(make_comparison(), setup=replace(make_comparison().setup, common_random_numbers=False))
    assert repeat_commands.make_command(separate) is None


def test_the_command_of_a_tuning_repeats_it(run_banditune, tmp_path):
    result = bt.tune(
        bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), horizon=100, budget=40, seed=2, search=bt.Search(validate=50)
    )
    process = run_banditune(*repeat_commands.make_command(result).replace("'", "").split()[1:], "--json")
    assert process.returncode == 0, process.stderr
    assert bt.results.from_json(process.stdout) == result


@pytest.mark.parametrize(
    "make",
    [
        lambda: bt.exact.compute_optimum(bt.Mixture([(0.5, 0.25), (0.25, 0.5)], weights=(0.25, 0.75)), horizon=10),
        lambda: bt.exact.compute_exact_regret(bt.UCB1(noise=0.5), bt.Bernoulli(arms=2), [0.3, 1.0], horizon=10),
        lambda: bt.exact.compute_lower_bound(bt.Gaussian(arms=3), horizon=30, runs=50, seed=1, confidence=0.9),
    ],
)
def test_the_command_of_an_exact_result_repeats_it(run_banditune, make):
    result = make()
    process = run_banditune(*shlex.split(repeat_commands.make_command(result))[1:], "--json")
    assert process.returncode == 0, process.stderr
    assert bt.results.from_json(process.stdout) == result


def test_the_command_of_regret_over_time_repeats_its_numbers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    policies, params = [bt.UCB1(noise=0.5), bt.Greedy()], [[0.2, 1.0], None]
    settings = {"horizon": 50, "runs": 30, "seed": 3, "labels": ["a, b", "$c", "d"]}
    result = bt.regret_over_time(policies, bt.Bernoulli(arms=3), params, **settings)
    command = repeat_commands.make_command(result)
    assert "--checkpoints" not in command
    app([*shlex.split(command)[1:], "-q", "-o", "again.json"], standalone_mode=False)
    assert bt.load_result("again.json") == result
    tuning = bt.tune(policies[0], bt.Bernoulli(arms=3), horizon=50, budget=20)
    # Its validation does not begin with the first fresh instance.
    assert repeat_commands.make_command(bt.regret_over_time(tuning)) is None


def test_rows_of_several_parameters_are_written_with_semicolons():
    result = make_over_time()
    params = {"early": 0.25, "late": 1.0}
    two = replace(result, series=tuple(replace(one, params=params) for one in result.series))
    assert "--values '0.25,1.0;0.25,1.0;' --label tuned --label textbook" in repeat_commands.make_command(two)
