"""Several parameters are searched together; the fixed ones keep their values."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest

import banditune as bt
from banditune.study.search import FIRST_VALIDATION_INSTANCE

PROBLEM = bt.Bernoulli(arms=3, prior=(1, 1))


@bt.kernel.scalar
def compute_index(arm, setting, step, params):
    """A mean that is pulled towards 1/2 by `params[2]` rewards, plus a bonus."""
    pulls = arm.pulls + params[2] + 1.0
    bonus = params[0] * math.sqrt(max(math.log((setting.horizon - step) / pulls), 0.0) / pulls)
    return (arm.total + 0.5 * params[2]) / pulls + bonus + 0.0 * params[1]


PARAMETERS = (
    bt.Parameter("width", 0.01, 3.0, textbook=1.0, scale="log", lower_limit=0),
    bt.Parameter("idle", 0.0, 1.0, textbook=0.5),
    bt.Parameter("strength", 0, 8, textbook=6, integer=True, lower_limit=0),
)
POLICY = bt.define_index_policy("shrunk", compute_index, parameters=PARAMETERS, in_step="falling")


def tune(**settings):
    settings = {"horizon": 50, "budget": 1500, "include": ("no_lower_bound",), "seed": 1} | settings
    return bt.tune(POLICY, PROBLEM, **settings)


@pytest.fixture(scope="module")
def tuned():
    return tune(search=bt.Search(validate=400))


def test_all_parameters_are_searched_and_kept_in_their_ranges(tuned):
    assert tuned.setup.tuner_name == "cma-es"
    assert tuned.searched_parameters == ("width", "idle", "strength")
    assert set(tuned.params) == set(tuned.importance) == set(tuned.searched_ranges)
    assert tuned.posterior is None
    rows = np.concatenate([trial.rows for trial in tuned.trials])
    assert len(rows) > 10
    for column, (low, high) in zip(rows.T, tuned.searched_ranges.values(), strict=True):
        assert low <= column.min() < column.max() <= high
    assert (rows[:, 2] == np.round(rows[:, 2])).all()
    assert tuned.search_runs <= tuned.budget


def test_regrets_are_those_of_simulate_on_the_fresh_instances(tuned):
    first = tuned.distribution.worst_runs[0]
    regrets = bt.simulate(POLICY, PROBLEM, tuned.params, horizon=50, seed=1, first_instance=first, runs=1)
    # Studies round regrets to float32.
    assert np.float32(regrets[0, 0]) == tuned.distribution.worst_regrets[0]


def test_importance_is_the_paired_difference_to_one_textbook_value():
    search = bt.Search(validate=300)
    result = tune(search=search)
    rows = [list(result.params.values())]
    for number, parameter in enumerate(PARAMETERS):
        rows.append([*rows[0][:number], parameter.textbook, *rows[0][number + 1 :]])
    regrets = (
        bt.simulate(POLICY, PROBLEM, rows, horizon=50, seed=1, first_instance=FIRST_VALIDATION_INSTANCE, runs=300)
        .astype(np.float32)
        .astype(float)
    )
    assert len(result.importance) == 3
    for added, row in zip(result.importance.values(), regrets[1:], strict=True):
        difference = row - regrets[0]
        assert added.mean == pytest.approx(difference.mean(), rel=1e-12, abs=1e-12)
        assert added.se == pytest.approx(difference.std(ddof=1) / math.sqrt(300), rel=1e-12, abs=1e-12)


def test_a_parameter_without_an_effect_is_named_and_the_others_are_not(tuned):
    idle = [notice for notice in tuned.notices if notice.code == "no-effect"]
    assert len(idle) == 1
    assert idle[0].startswith("`idle` does not change the decisions of the policy")
    assert tuned.importance["idle"].mean == tuned.importance["idle"].se == 0


def test_fixed_parameters_keep_their_values_and_are_not_searched():
    result = tune(search=bt.Search(fixed={"idle": 0.25}, validate=100), budget=400)
    assert result.searched_parameters == ("width", "strength")
    assert result.params["idle"] == 0.25
    assert all(trial.rows.shape[1] == 2 for trial in result.trials)
    only = tune(search=bt.Search(fixed={"idle": 0.25, "strength": 2}, validate=100), budget=200)
    assert only.setup.tuner_name == "two-part"
    assert only.importance is None
    assert list(only.params) == ["width", "idle", "strength"]


def test_the_same_seed_gives_the_same_search_on_any_number_of_threads(tuned):
    assert tune(search=bt.Search(validate=400), run=bt.Run(workers=1)) == tuned
    other = tune(search=bt.Search(validate=400), seed=2)
    assert [trial.rows[0, 0] for trial in other.trials[:2]] != [trial.rows[0, 0] for trial in tuned.trials[:2]]


def test_a_result_survives_json_and_becomes_a_page_a_picture_and_text(tuned, tmp_path):
    assert bt.results.from_json(tuned.to_json()) == tuned
    tuned.save(tmp_path / "result.json")
    bt.report(bt.load_result(tmp_path / "result.json"), tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "Which parameters matter" in page
    assert all(f"Regret over {name}" in page for name in ("idle", "strength"))
    bt.plot(tuned, tmp_path / "picture.png")
    text = str(tuned)
    assert "95% sure" not in text
    assert "regret added" in text
    assert list(tuned.to_pandas().columns) == ["trial", *tuned.params, "mean", "se", "runs"]


def test_a_store_keeps_the_runs_of_a_search(tmp_path, tuned):
    run = bt.Run(store=tmp_path / "store.db")
    first = tune(search=bt.Search(validate=400), run=run)
    again = tune(search=bt.Search(validate=400), run=run)
    # A store rounds regrets to float32.
    assert again == first
    assert first.regret.mean == pytest.approx(tuned.regret.mean, rel=1e-6)


def test_curves_are_slices_through_the_answer():
    result = tune(include=("curve", "no_lower_bound"), search=bt.Search(fixed={"idle": 0.5}, validate=100), budget=400)
    assert [curve.parameter for curve in result.curves] == ["width", "strength"]
    curve = result.find_curve("width")
    search = bt.Search(fixed={name: value for name, value in result.params.items() if name != "width"})
    alone = bt.curve(POLICY, PROBLEM, curve.values[:3], horizon=50, runs=2, seed=1, search=search)
    assert alone.values.tolist() == curve.values[:3].tolist()
    assert "Regret at each value of width" in str(result) or len(curve.values) > 10


def test_a_tuned_policy_is_deployed_with_all_its_parameters(tuned):
    live = tuned.deploy(POLICY)
    arm = live.select_arm()
    live.update(arm, 1.0)
    assert json.loads(live.to_json())["params"] == dict(tuned.params)


def test_comparisons_tune_each_policy_in_its_own_space():
    result = bt.compare(
        [POLICY, bt.UCB1(noise=0.5), bt.Greedy()], PROBLEM, horizon=50, budget=400, search=bt.Search(validate=100)
    )
    ranges = {entry.policy: entry.searched_ranges for entry in result.entries}
    assert [ends and len(ends) for ends in (ranges[name] for name in sorted(ranges))] == [None, 3, 1]


def test_what_takes_one_parameter_says_so():
    with pytest.raises(bt.InvalidRequest, match="a curve must be over one parameter, but shrunk has 3"):
        bt.curve(POLICY, PROBLEM, horizon=50, runs=10)
    with pytest.raises(bt.InvalidRequest, match="a robustness check must be over one parameter"):
        bt.robustness(POLICY, PROBLEM, [1.0, 0.5, 2], horizon=50)
    with pytest.raises(bt.InvalidRequest, match="must be able to search 3 parameters together"):
        tune(search=bt.Search(tuner=bt.TwoPart()))


@dataclasses.dataclass(frozen=True)
class WrongRow(bt.tuners.Tuner):
    """A tuner that asks for rows of one number."""

    name = "wrong-row"
    max_parameters = 3

    def search(self, space, budget):
        yield bt.tuners.Trial(((0.5,),), 2)
        return space.textbook


def test_a_row_of_the_wrong_length_is_refused():
    with pytest.raises(bt.SimulationError, match="a row must have a number for each of width, idle, strength"):
        tune(search=bt.Search(tuner=WrongRow()))
