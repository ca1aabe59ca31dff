"""The public API: names, arguments, documentation, errors and results."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import pickle
import re

import pytest

import banditune as bt
from banditune.core.errors import ERROR_CODES
from banditune.core.messages import Argument
from banditune.core.notice import ADVICE, CAUSES
from banditune.results.result_record import RECORD_MODULES, RECORD_TYPES, SCHEMA_VERSION

VERBS = [
    "backtest",
    "compare",
    "curve",
    "deploy",
    "explain",
    "fit",
    "make_logs",
    "plot",
    "read_logs",
    "regret_over_time",
    "report",
    "robustness",
    "simulate",
    "tune",
]
FILES = ["load_problem", "load_result", "save_problem"]
SETTINGS = ["FitSettings", "ReadSettings", "Run", "Search", "Simulation"]
POLICIES = [
    "EpsilonGreedy",
    "ExploreThenCommit",
    "GLMTSL",
    "GaussianThompson",
    "Greedy",
    "LinTS",
    "LinUCB",
    "Thompson",
    "UCB1",
    "UCBGLM",
]
PROBLEMS = ["Bernoulli", "BetaRewards", "Campaigns", "Gaussian", "Linear", "Logistic", "Mixture", "RewardTable"]
EXTENSIONS = [
    "DeployedPolicy",
    "NoTeS",
    "Parameter",
    "TwoPart",
    "define_index_policy",
    "define_policy",
    "define_problem",
    "wrap_policy",
]
ERRORS = ["BanditTuneError", "InvalidRequest", "SimulationError"]
NAMESPACES = [
    "adapters",
    "deployment",
    "errors",
    "exact",
    "executors",
    "kernel",
    "logs",
    "paper",
    "policies",
    "problems",
    "reports",
    "results",
    "testing",
    "tuners",
]


def test_the_names_at_the_top_level_are_listed():
    expected = {*VERBS, *FILES, *SETTINGS, *POLICIES, *PROBLEMS, *EXTENSIONS, *ERRORS, *NAMESPACES}
    assert set(dir(bt)) == expected
    assert len(expected - set(NAMESPACES)) <= 52


@pytest.mark.parametrize("package", ["", *NAMESPACES])
def test_every_public_name_can_be_loaded_and_is_explained(package):
    module = importlib.import_module(f"banditune.{package}".rstrip("."))
    assert dir(module)
    for name in dir(module):
        assert inspect.getdoc(getattr(module, name)), name


def list_public_callables():
    callables = {}
    for package in ("", *NAMESPACES):
        module = importlib.import_module(f"banditune.{package}".rstrip("."))
        for name in dir(module):
            public_object = getattr(module, name)
            if callable(public_object) and not inspect.ismodule(public_object):
                callables[id(public_object)] = pytest.param(public_object, id=f"{package}.{name}".lstrip("."))
    return list(callables.values())


CALLABLES = list_public_callables()


@pytest.mark.parametrize("public_object", CALLABLES)
def test_every_argument_is_documented(public_object):
    if inspect.isclass(public_object) and issubclass(public_object, bt.errors.WorkerLost | bt.errors.StoreError):
        pytest.skip("takes the arguments of its base")
    try:
        arguments = [name for name in inspect.signature(public_object).parameters if not name.startswith("_")]
    except ValueError:
        pytest.skip("has no signature")
    text = inspect.getdoc(public_object) or ""
    documented = set()
    for line in re.findall(r"^([\w*, ]+) : ", text, re.MULTILINE):
        documented |= {word.strip(" *") for word in line.split(",")}
    if isinstance(public_object, type) and issubclass(public_object, BaseException):
        pytest.skip("an error that the package raises, and a user catches")
    assert not [name for name in arguments if name not in documented]


@pytest.mark.parametrize(
    "name",
    [
        "tune",
        "simulate",
        "curve",
        "compare",
        "regret_over_time",
        "robustness",
        "backtest",
        "deploy",
        "fit",
        "read_logs",
        "make_logs",
        "report",
    ],
)
def test_a_verb_has_at_most_ten_arguments(name):
    assert len(inspect.signature(getattr(bt, name)).parameters) <= 10


def test_records_are_built_by_keyword():
    assert len(RECORD_TYPES) > 20
    for record_type in RECORD_TYPES.values():
        assert all(field.kw_only for field in dataclasses.fields(record_type)), record_type


def test_settings_are_built_by_keyword_and_checked():
    for settings_type in (bt.Search, bt.Simulation, bt.Run, bt.FitSettings, bt.ReadSettings):
        assert all(field.kw_only for field in dataclasses.fields(settings_type))
    with pytest.raises(bt.InvalidRequest, match="`regret` must be one of 'expected', 'realised', but got 'real'"):
        bt.Simulation(regret="real")
    with pytest.raises(bt.InvalidRequest, match="`common_random_numbers` must be True or False"):
        bt.Simulation(common_random_numbers="shared")
    with pytest.raises(bt.InvalidRequest, match="`run` must be a record such as Run"):
        bt.simulate(bt.UCB1(), bt.Bernoulli(arms=2), horizon=5, run=bt.Search())
    with pytest.raises(bt.InvalidRequest, match="`include` must be a collection of"):
        bt.tune(bt.UCB1(), bt.Bernoulli(arms=2), horizon=5, include=("picture",))


@pytest.fixture(scope="module")
def tuning():
    search = bt.Search(validate=50)
    return bt.tune(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), horizon=50, budget=100, search=search)


def test_json_has_a_schema_version_and_others_are_refused(tuning):
    saved = json.loads(tuning.to_json())
    assert saved["schema_version"] == SCHEMA_VERSION
    assert bt.results.from_json(json.dumps(saved)) == tuning
    for changed in ({**saved, "schema_version": 99}, {key: saved[key] for key in saved if key != "schema_version"}):
        with pytest.raises(bt.InvalidRequest, match="Make the request again, or read the result with that version"):
            bt.results.from_json(json.dumps(changed))


def test_a_notebook_shows_a_result_as_html(tuning):
    html = tuning._repr_html_()
    assert "<table>" in html
    assert "<script" not in html
    assert tuning.regret._repr_html_().startswith("<pre>")


def test_errors_have_one_base_and_structured_fields():
    for name, base in (
        ("InvalidRequest", ValueError),
        ("SimulationError", RuntimeError),
        ("WorkerLost", RuntimeError),
        ("MissingDependency", ImportError),
        ("StoreError", OSError),
        ("ConformanceError", AssertionError),
    ):
        error_class = getattr(bt.errors, name)
        assert issubclass(error_class, bt.BanditTuneError)
        assert issubclass(error_class, base)
        error = error_class(
            "{} must hold for {!r}", Argument("horizon"), "ucb1", argument="horizon", code="out-of-range"
        )
        unpickled = pickle.loads(pickle.dumps(error))
        for each_error in (error, unpickled):
            assert (str(each_error), each_error.argument, each_error.code) == (
                "`horizon` must hold for 'ucb1'",
                "horizon",
                "out-of-range",
            )
            assert each_error.message.parts == (Argument("horizon"), " must hold for 'ucb1'")
        assert error_class("100% {of} it").code in ERROR_CODES


@bt.kernel.scalar
def choose_by_two_parameters(state, setting, step, params, stream):
    """Explore with one probability in the first rounds, and with another one later."""
    probability = params[0] if step < setting.horizon // 2 else params[1]
    return (
        bt.kernel.draw_arm(state, stream) if bt.kernel.uniform(stream) < probability else bt.kernel.argmax_mean(state)
    )


TWO_PARAMETERS = bt.define_policy(
    "two-chances",
    choose_by_two_parameters,
    parameters=[bt.Parameter("early", 0, 1, textbook=0.1), bt.Parameter("late", 0, 1, textbook=0.1)],
)
PROBLEM = bt.Bernoulli(arms=3)


def test_a_policy_with_two_parameters_is_tuned_with_one_of_them_fixed():
    search = bt.Search(fixed={"late": 0.0}, validate=400)
    tuning = bt.tune(TWO_PARAMETERS, PROBLEM, horizon=100, budget=1000, seed=1, search=search)
    assert tuning.params["late"] == 0.0
    assert tuning.textbook_params == {"early": 0.1, "late": 0.1}
    # The reported regrets are those of these rows on the same instances.
    rows = [list(tuning.params.values()), list(tuning.textbook_params.values())]
    first = tuning.distribution.worst_runs is not None and 2**40
    regrets = bt.simulate(TWO_PARAMETERS, PROBLEM, rows, horizon=100, runs=400, seed=1, first_instance=first)
    assert tuning.regret.mean == pytest.approx(regrets[0].mean(), rel=1e-6)
    assert tuning.textbook_regret.mean == pytest.approx(regrets[1].mean(), rel=1e-6)


def test_curves_and_comparisons_take_fixed_values():
    curve = bt.curve(TWO_PARAMETERS, PROBLEM, [0.0, 0.5], horizon=50, runs=100, search=bt.Search(fixed={"early": 0.2}))
    regrets = bt.simulate(TWO_PARAMETERS, PROBLEM, [[0.2, 0.0], [0.2, 0.5]], horizon=50, runs=100)
    assert curve.parameter == "late"
    assert curve.mean == pytest.approx(regrets.mean(axis=1), rel=1e-6)
    search = bt.Search(fixed={"early": 0.2}, validate=50)
    comparison = bt.compare([TWO_PARAMETERS, bt.UCB1(noise=0.5)], PROBLEM, horizon=50, budget=100, search=search)
    entry = next(entry for entry in comparison.entries if entry.policy.startswith("two-chances"))
    assert entry.is_tuned
    assert entry.params["early"] == 0.2


def test_fixed_values_are_checked():
    for fixed, message in (
        ({"other": 0.1}, "a fixed value must be of one of"),
        (3, "`fixed` must be"),
        ({"late": "x"}, "`fixed` must be"),
    ):
        with pytest.raises(bt.InvalidRequest, match=re.escape(message)):
            bt.tune(TWO_PARAMETERS, PROBLEM, horizon=50, search=bt.Search(fixed=fixed))
    with pytest.raises(bt.InvalidRequest, match="fix all but one"):
        bt.curve(TWO_PARAMETERS, PROBLEM, horizon=50)


def test_a_result_loads_the_users_policy_from_its_file():
    tuning = bt.tune(
        TWO_PARAMETERS, PROBLEM, horizon=50, budget=100, search=bt.Search(fixed={"late": 0.0}, validate=50)
    )
    assert tuning.setup.policy_source.endswith("test_public_api.py:TWO_PARAMETERS")
    deployed = bt.results.from_json(tuning.to_json()).deploy()
    deployed.update(deployed.select_arm(), 1.0)


def test_notices_have_a_code_a_message_and_advice():
    tuning = bt.tune(bt.UCB1(noise=5), PROBLEM, horizon=50, budget=100, search=bt.Search(validate=50))
    codes = {notice.code for notice in tuning.notices}
    assert "wrong-noise" in codes
    saved = json.loads(tuning.to_json())["notices"]
    assert {notice["code"] for notice in saved} == codes
    assert all(notice["message"] and notice["advice"] for notice in saved)
    loaded = bt.results.from_json(tuning.to_json())
    assert [(notice, notice.code) for notice in loaded.notices] == [(notice, notice.code) for notice in tuning.notices]
    assert pickle.loads(pickle.dumps(tuning.notices[0])).code == tuning.notices[0].code
    with pytest.raises(ValueError, match="must have one of the codes"):
        bt.results.Notice("odd", "no-such-code")


def test_every_notice_has_a_cause_and_advice():
    assert ADVICE
    assert list(ADVICE) == list(CAUSES)
    assert all(text.endswith(".") for text in [*ADVICE.values(), *CAUSES.values()])


def unmarked(x):
    return x


def test_scalar_code_without_the_mark_is_refused():
    @bt.kernel.scalar
    def choose(state, setting, step, params, stream):
        return unmarked(0)

    with pytest.raises(
        bt.InvalidRequest, match=r"'unmarked', which is called in a kernel, is not; put @bt\.kernel\.scalar"
    ):
        bt.simulate(bt.define_policy("reaches", choose), PROBLEM, horizon=5, runs=1)
    with pytest.raises(bt.InvalidRequest, match="must be marked, but 'unmarked"):
        bt.simulate(bt.define_policy("bare", unmarked_choose), PROBLEM, horizon=5, runs=1)


def unmarked_choose(state, setting, step, params, stream):
    return 0


def test_a_result_is_read_in_a_new_interpreter(tuning, tmp_path, run_python):
    tuning.save(tmp_path / "result.json")
    process = run_python(
        "import sys, banditune as bt\nprint(bt.load_result(sys.argv[1]).params)", str(tmp_path / "result.json")
    )
    assert process.stdout.strip() == str(dict(tuning.params)), process.stderr


def test_all_modules_with_records_are_listed():
    modules = {kind.__module__.rpartition(".")[2] for kind in RECORD_TYPES.values()}
    assert modules == set(RECORD_MODULES)


def test_a_tuning_with_a_fixed_parameter_is_reported(tmp_path):
    search = bt.Search(fixed={"late": 0.0}, validate=50)
    tuning = bt.tune(TWO_PARAMETERS, PROBLEM, horizon=50, budget=100, include=("curve",), search=search)
    assert "early" in tuning.report(tmp_path / "page.html").read_text()
    tuning.plot(tmp_path / "figure.png")
    assert "late" in repr(tuning)
