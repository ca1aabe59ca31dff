"""simulate, curve, tune, compare: what they promise, and what they refuse."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
import stat
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import banditune as bt
from banditune.core.atomic_files import write_atomically
from banditune.core.descriptions import make_label
from banditune.core.space import Range
from banditune.reports.comparison_statements import format_regret_gap
from banditune.results.estimates import Estimate
from banditune.results.result_record import freeze_floats
from banditune.results.search_results import SearchPosterior, TrialResult
from banditune.results.student_t import compute_student_quantile
from banditune.simulation.dispatch import simulate_rows, simulate_rows_separately
from banditune.simulation.spec import SimulationSpec
from banditune.storage.store_writer import round_to_float32
from banditune.study.notices import collect_tuning_notices
from banditune.study.regret_curves import refine_grid
from banditune.study.search import FIRST_VALIDATION_INSTANCE, resolve_goal, resolve_max_time
from banditune.study.unimodality_test import check_unimodal
from banditune.study.validation import (
    MAX_VALIDATION_RUNS,
    MIN_VALIDATION_RUNS,
    PILOT_RUNS,
    TARGET_RELATIVE_ERRORS,
    count_runs_needed,
)
from helpers.settings import group_settings

PROBLEM = bt.Bernoulli(arms=3)


@pytest.fixture(scope="module")
def tuning():
    return bt.tune(
        bt.UCB1(noise=0.5), PROBLEM, horizon=300, budget=100, include=("curve",), search=bt.Search(validate=200)
    )


@pytest.fixture(scope="module")
def comparison():
    policies = [bt.UCB1(noise=0.5), bt.Thompson(prior=(1, 1)), bt.Greedy(), bt.UCB1(noise=1)]
    return bt.compare(policies, PROBLEM, horizon=300, budget=60, search=bt.Search(validate=300))


def test_runs_are_paired_over_values():
    regrets = bt.simulate(bt.UCB1(noise=0.5), PROBLEM, [0.2, 0.3, 1.0], horizon=300, runs=50)
    assert regrets.shape == (3, 50)
    assert (regrets[1] == bt.simulate(bt.UCB1(noise=0.5), PROBLEM, 0.3, horizon=300, runs=50)[0]).all()


def test_without_values_theorys_are_played():
    assert (
        bt.simulate(bt.UCB1(noise=0.5), PROBLEM, horizon=50, runs=9)
        == bt.simulate(bt.UCB1(noise=0.5), PROBLEM, 1, horizon=50, runs=9)
    ).all()


def test_a_policy_without_parameters_takes_any_value_and_ignores_it():
    one = bt.simulate(bt.Greedy(), PROBLEM, [0.0, 7.5], horizon=50, runs=9)
    assert (one[0] == one[1]).all()


def test_validation_repeats_on_the_instances_it_names(tuning):
    (value,) = tuning.params.values()
    spec = SimulationSpec(bt.UCB1(noise=0.5), PROBLEM, 300)
    tuned, theory = round_to_float32(
        spec,
        simulate_rows(
            spec, np.array([[value], [1.0]]), range(FIRST_VALIDATION_INSTANCE, FIRST_VALIDATION_INSTANCE + 200)
        ),
    )[:, :, 0]
    assert tuning.regret.mean == tuned.mean()
    assert tuning.textbook_regret.mean == theory.mean()
    assert tuning.gain.mean == pytest.approx(theory.mean() - tuned.mean())
    assert tuning.gain.se == pytest.approx(np.std(theory - tuned, ddof=1) / math.sqrt(200))
    assert tuning.gain.low < tuning.gain.mean < tuning.gain.high


def test_the_search_spends_what_it_says(tuning):
    assert tuning.search_runs == sum(sum(trial.runs) for trial in tuning.trials) <= tuning.budget
    assert tuning.validation_runs == 200
    assert tuning.params.keys() == {"gamma"}


def test_tuning_does_not_depend_on_threads(tuning):
    again = bt.tune(
        bt.UCB1(noise=0.5),
        PROBLEM,
        horizon=300,
        budget=100,
        include=("curve",),
        search=bt.Search(validate=200),
        run=bt.Run(workers=1),
    )
    assert again == tuning


@pytest.mark.parametrize("tuner", [bt.tuners.Uniform(), bt.tuners.SequentialHalving(), bt.NoTeS(precision=0.05)])
def test_every_tuner_works_through_the_door(tuner):
    result = bt.tune(
        bt.Thompson(prior=(1, 1)),
        PROBLEM,
        horizon=100,
        budget=170,
        search=bt.Search(tuner=tuner, validate=50),
        simulation=bt.Simulation(regret="realised", common_random_numbers=False),
    )
    assert result.search_runs <= 170
    assert result.setup.tuner["name"] == tuner.name


def test_integer_parameters_are_tuned_to_whole_numbers():
    result = bt.tune(bt.ExploreThenCommit(), PROBLEM, horizon=300, budget=60, search=bt.Search(validate=50))
    assert result.params["pulls"] == round(result.params["pulls"])
    assert 1 <= result.params["pulls"] <= 100


def test_a_curve_is_denser_where_it_bends():
    curve = bt.curve(bt.UCB1(noise=0.5), bt.Bernoulli(arms=10), horizon=2000, runs=300)
    near = np.sum(np.abs(curve.values - curve.best_value) < 0.15)
    far = np.sum(np.abs(curve.values - 0.85) <= 0.15)
    assert len(curve.values) == 33
    assert near > 1.3 * far
    assert curve.best_value in curve.values
    assert curve.mean[list(curve.values).index(curve.best_value)] == curve.mean.min()
    assert not curve.unimodality.rejected


def test_refinement_adds_the_centres_of_bent_intervals():
    units = np.linspace(0, 1, 9)
    finer = refine_grid(units, np.abs(units - 0.5) + 0.1, 2)
    assert sorted(set(finer) - set(units)) == [0.4375, 0.5625]


def test_a_curve_of_an_integer_parameter_has_no_value_twice():
    curve = bt.curve(bt.ExploreThenCommit(), PROBLEM, horizon=60, runs=50)
    assert (np.diff(curve.values) > 0).all()
    assert (curve.values == np.round(curve.values)).all()
    assert curve.log_scale


def test_given_values_are_played_in_order():
    curve = bt.curve(bt.UCB1(noise=0.5), PROBLEM, [0.5, 0.1, 0.1], horizon=50, runs=20)
    assert curve.values.tolist() == [0.1, 0.5]
    assert len(bt.curve(bt.Greedy(), PROBLEM, [0.0, 1.0], horizon=50, runs=20).values) == 2


def heights(kind: str, points: int) -> np.ndarray:
    x = np.linspace(0, 1, points)
    return {
        "flat": np.zeros(points),
        "falling": -20 * x,
        "dip": 30 * np.abs(x - 0.3),
        "shelf": np.where(x < 0.5, 0.0, 30 * (x - 0.5)),
        "two dips": 8 * np.cos(4 * np.pi * x),
    }[kind]


@pytest.mark.parametrize("kind", ["flat", "falling", "dip", "shelf"])
@pytest.mark.parametrize("heavy", [False, True])
def test_unimodal_curves_raise_false_alarms_at_the_stated_rate_at_most(kind, heavy):
    """400 curves: at a rate of 5% a count above 37 has probability 1e-4."""
    rng = np.random.default_rng(5)
    alarms = 0
    for _ in range(400):
        common = rng.standard_normal(100)
        noise = rng.standard_normal((17, 100))
        if heavy:
            noise = rng.exponential(1, (17, 100)) * (rng.random((17, 100)) < 0.1) * 20
        alarms += check_unimodal(np.arange(17.0), heights(kind, 17)[:, None] + 5 * noise + common).rejected
    assert alarms <= 37


@pytest.mark.parametrize("runs", [2, 5, 10, 30])
def test_few_runs_raise_no_more_false_alarms(runs):
    rng = np.random.default_rng(7)
    alarms = sum(check_unimodal(np.arange(33.0), rng.standard_normal((33, runs))).rejected for _ in range(400))
    assert alarms <= 37


@pytest.mark.parametrize("degrees", [*range(1, 31), 99, 100, 499, 999, 1000, 1001, 1002, 5000, 999_999, 10**9])
def test_student_quantiles(degrees):
    """From just above the median to levels of 1 in 10^12; SciPy's quantile of the upper tail keeps its digits there."""
    for level in (0.5, 0.5001, 0.6, 0.8, 0.95, 0.975, 0.9995, 1 - 1e-6, 1 - 1e-9, 1 - 1e-12):
        assert compute_student_quantile(level, degrees) == pytest.approx(stats.t.isf(1 - level, degrees), rel=1e-8)
        assert compute_student_quantile(1 - level, degrees) == -compute_student_quantile(1 - (1 - level), degrees)


def test_intervals_cover_at_their_rate_even_with_few_runs():
    rng = np.random.default_rng(8)
    for size in (2, 5, 20):
        samples = [bt.results.Estimate.from_sample(rng.standard_normal(size)) for _ in range(2000)]
        assert np.mean([s.low <= 0 <= s.high for s in samples]) > 0.95 - 4 * math.sqrt(0.05 * 0.95 / 2000)


def test_the_regret_at_the_best_value_of_a_curve_is_not_too_low():
    """The lowest of the means is; `best_regret` is unbiased for the value that was chosen."""
    problem, differences, lowest = bt.Bernoulli(arms=3), [], []
    for seed in range(60):
        curve = bt.curve(bt.UCB1(noise=0.5), problem, np.linspace(0.05, 0.4, 8), horizon=200, runs=60, seed=seed)
        truth = bt.simulate(
            bt.UCB1(noise=0.5), problem, [curve.best_value], horizon=200, runs=4000, seed=1000 + seed
        ).mean()
        differences.append(curve.best_regret.mean - truth)
        lowest.append(curve.mean.min() - truth)
    assert abs(np.mean(differences)) < 4 * np.std(differences) / math.sqrt(60)
    assert np.mean(lowest) < -2 * np.std(lowest) / math.sqrt(60)


def test_own_noise_is_own_in_a_refined_curve_and_between_policies():
    @bt.kernel.scalar
    def ignores(state, setting, step, params, stream):
        return bt.kernel.draw_arm(state, stream)

    policy = bt.define_policy("ignores", ignores, parameters=[bt.Parameter("x", 0, 1, textbook=0)])
    shared, own = (
        bt.curve(
            policy, PROBLEM, horizon=20, runs=40, simulation=bt.Simulation(common_random_numbers=noise == "shared")
        )
        for noise in ("shared", "own")
    )
    assert len(set(shared.mean)) == 1
    assert len(set(own.mean)) == len(own.values)
    behind = (
        bt.compare(
            [bt.UCB1(noise=0.5), bt.UCB1(noise=0.5)],
            PROBLEM,
            horizon=50,
            budget=12,
            search=bt.Search(validate=50),
            simulation=bt.Simulation(common_random_numbers=False),
        )
        .entries[1]
        .difference_to_best
    )
    assert behind.se > 0


def test_two_dips_are_seen():
    rng = np.random.default_rng(6)
    regrets = heights("two dips", 17)[:, None] + 5 * rng.standard_normal((17, 100))
    result = check_unimodal(np.linspace(0, 1, 17), regrets)
    assert result.rejected
    left, top, right = result.second_dip
    assert left < top < right
    assert top == pytest.approx(0.5, abs=0.07)


def test_comparisons_are_paired_and_in_order(comparison):
    means = [entry.regret.mean for entry in comparison.entries]
    assert means == sorted(means)
    assert comparison.best_policy == comparison.entries[0].policy
    assert comparison.entries[0].difference_to_best.mean == 0
    assert {entry.policy for entry in comparison.entries} == {
        "ucb1(noise=0.5)",
        "ts(prior=(1, 1))",
        "greedy",
        "ucb1(noise=1)",
    }
    assert {"name": "ucb1", "noise": 1.0} in [entry.policy_config for entry in comparison.entries]
    greedy = next(entry for entry in comparison.entries if entry.policy == "greedy")
    assert not greedy.is_tuned
    assert greedy.search_runs == 0
    for entry in comparison.entries:
        assert entry.difference_to_best.mean == pytest.approx(entry.regret.mean - means[0])
        assert entry.difference_to_best.se <= entry.regret.se + comparison.entries[0].regret.se


def test_the_best_of_a_comparison_is_told_on_instances_that_did_not_choose_it():
    """Eight policies that are one and the same, with noise of their own: the lowest mean is too low."""
    policies = [bt.UCB1(noise=0.5 + 1e-9 * number) for number in range(8)]
    chosen, again = [], []
    for seed in range(30):
        comparison = bt.compare(
            policies,
            bt.problems.two_point_mixture(),
            horizon=30,
            budget=50,
            seed=seed,
            search=bt.Search(validate=100),
            simulation=bt.Simulation(common_random_numbers=False),
        )
        best, rerun = comparison.entries[0].regret.mean, comparison.best_rerun.mean
        chosen.append(best)
        again.append(comparison.lowest_regret.mean)
        assert comparison.best_rerun.runs == 100
        text = f"{best:.4g} on average, and {rerun:.4g} on as many other instances"
        assert f"{comparison.best_policy} has the lowest regret, {text}" in str(comparison)
    gap = np.array(again) - np.array(chosen)
    assert gap.mean() > 3 * gap.std(ddof=1) / np.sqrt(len(gap))


def test_a_comparison_says_what_its_searches_warn_of():
    comparison = bt.compare(
        [bt.UCB1(noise=50), bt.UCB1(noise=0.5)],
        bt.Bernoulli(arms=5),
        horizon=200,
        budget=100,
        search=bt.Search(validate=50),
    )
    assert any(w.startswith("ucb1(noise=50)") and "lower end of its range" in w for w in comparison.notices), (
        comparison.notices
    )


def test_runs_that_cannot_be_played_again_by_number_have_none():
    policies = [bt.UCB1(noise=0.5), bt.EpsilonGreedy()]
    for noise, numbered in (("shared", [True, True]), ("own", [True, False])):
        comparison = bt.compare(
            policies,
            bt.problems.two_point_mixture(),
            horizon=30,
            budget=50,
            search=bt.Search(validate=50),
            simulation=bt.Simulation(common_random_numbers=noise == "shared"),
        )
        by_name = {entry.policy.partition("(")[0]: entry for entry in comparison.entries}
        assert [bool(by_name[policy.name].distribution.worst_runs) for policy in policies] == numbered
        (worst,) = bt.simulate(
            bt.UCB1(noise=0.5),
            bt.problems.two_point_mixture(),
            list(by_name["ucb1"].params.values()),
            horizon=30,
            runs=1,
            first_instance=by_name["ucb1"].distribution.worst_runs[0],
            simulation=bt.Simulation(common_random_numbers=noise == "shared"),
        )[0]
        assert worst == pytest.approx(by_name["ucb1"].distribution.worst_regrets[0], rel=1e-6)


def test_the_table_is_as_sure_of_differences_as_the_sentence_above_it(comparison):
    best, other, *_ = comparison.entries
    # Surely behind by itself (2.3 standard errors), but not with three other policies beside it (six pairs: 2.6).
    behind = Estimate.from_standard_error(2.3, 1.0, comparison.validation_runs)
    assert behind.low > 0
    found = dataclasses.replace(
        comparison, entries=(best, dataclasses.replace(other, difference_to_best=behind), *comparison.entries[2:])
    )
    (sentence,) = [line for line in repr(found).splitlines() if "has the lowest regret" in line]
    assert other.policy in sentence.removeprefix(best.policy)
    assert "may be as good" in sentence
    assert "behind the best (95%, all pairs)" in repr(found)
    assert "2.3 (-0." in repr(found)


def test_regrets_in_the_table_differ_by_what_the_table_says(comparison):
    """All of them are by the same instances; what the best policy loses on others stands above."""
    again = Estimate.from_standard_error(123.4, 5.678, comparison.validation_runs)
    found = dataclasses.replace(comparison, best_rerun=again)
    assert "123.4 on as many other instances, which did not select it" in repr(found)
    best = comparison.entries[0].regret
    (row,) = [
        line
        for line in repr(found).splitlines()
        if line.startswith(f"{comparison.best_policy} ") and "has the lowest regret" not in line
    ]
    assert f"{best.mean:.4g}" in row
    assert f"{best.se:.4g}" in row
    assert "123.4" not in row
    table = found.to_pandas()
    assert table["regret"].to_numpy() - table["regret"][0] == pytest.approx(
        table["difference_to_best"].to_numpy(), abs=1e-9
    )


def test_results_go_to_json_and_back_without_loss(tuning, comparison, tmp_path):
    for result in (tuning, comparison, tuning.curve, tuning.regret, tuning.trials[0]):
        assert bt.results.from_json(result.to_json()) == result
        assert json.loads(result.to_json())["kind"] == type(result).__name__
        result.save(tmp_path / "result.json")
        assert bt.load_result(tmp_path / "result.json") == result


def test_a_result_that_was_read_back_reads_the_same(tuning, comparison):
    for result in (tuning, comparison, tuning.curve):
        assert repr(bt.results.from_json(result.to_json())) == repr(result)


def test_the_standard_error_of_a_single_run_is_null_in_json():
    result = bt.tune(bt.UCB1(noise=0.5), PROBLEM, horizon=20, budget=13, search=bt.Search(validate=2))
    assert math.isnan(result.trials[1].se[0])
    assert "NaN" not in result.to_json()
    assert bt.results.from_json(result.to_json()) == result


def test_files_keep_their_mode_and_links_are_followed(tuning, tmp_path):
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    target.write_text("old")
    target.chmod(0o600)
    link.symlink_to(target)
    tuning.save(link)
    assert link.is_symlink()
    assert bt.load_result(target) == tuning
    assert target.stat().st_mode & 0o777 == 0o600
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = threading.Thread(target=pipe.read_bytes)
    reader.start()
    tuning.regret.save(pipe)
    reader.join(10)
    assert pipe.is_fifo()


def test_results_are_frozen(tuning):
    with pytest.raises(AttributeError):
        tuning.search_runs = 3
    with pytest.raises(ValueError, match="read-only"):
        tuning.curve.mean[0] = 0


def test_results_go_to_pandas(tuning, comparison):
    assert list(tuning.to_pandas().columns) == ["trial", "gamma", "mean", "se", "runs"]
    assert len(tuning.curve.to_pandas()) == len(tuning.curve.values)
    assert list(comparison.to_pandas()["policy"]) == [entry.policy for entry in comparison.entries]
    assert comparison.to_pandas()["regret"][0] == comparison.entries[0].regret.mean


def test_results_can_be_read_and_drawn(tuning, comparison, tmp_path):
    assert "tuned" in repr(tuning)
    assert "has the lowest regret" in repr(comparison)
    assert "<- best" in repr(tuning.curve)
    for result in (tuning, comparison, tuning.curve):
        for ending in ("svg", "png", "pdf"):
            result.plot(tmp_path / f"figure.{ending}")
            assert (tmp_path / f"figure.{ending}").stat().st_size > 1000
        assert result.plot().axes
    with pytest.raises(bt.InvalidRequest, match=r"\.svg, \.png or \.pdf"):
        tuning.plot(tmp_path / "figure.docx")


def test_a_verdict_is_no_stronger_than_the_data():
    result = bt.tune(bt.UCB1(noise=0.5), bt.Mixture([(0.5, 0.4)]), horizon=20, budget=12, search=bt.Search(validate=2))
    assert "may be no better" in repr(result)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "must be JSON"),
        ('{"schema_version": 1, "kind": "Nothing"}', "must be one of"),
        ('{"schema_version": 1, "kind": "Estimate", "mean": 1}', "must hold the fields"),
        ("[" * 100_000, "must be JSON"),
        ("5", "object with a `kind`"),
        ("[1]", "object with a `kind`"),
        (
            '{"schema_version": 1, "kind": "Estimate", "mean": "x", "se": 1, "low": 0, "high": 1, "runs": 2}',
            "must be of type float",
        ),
        ('{"kind": "Estimate", "mean": 1}', "must have `schema_version` 1, but this one has None"),
        ('{"schema_version": 2, "kind": "Estimate"}', "must have `schema_version` 1, but this one has 2"),
    ],
)
def test_a_broken_result_is_refused_in_a_sentence(text, message, tmp_path):
    with pytest.raises(bt.InvalidRequest, match=message):
        bt.results.from_json(text)
    with pytest.raises(bt.InvalidRequest, match="cannot be read"):
        bt.load_result(tmp_path / "missing.json")


def places_in(message):
    """Every container in a JSON value, with each of its keys."""
    for key in list(message) if isinstance(message, dict) else range(len(message)):
        yield message, key
        if isinstance(message[key], dict | list):
            yield from places_in(message[key])


def test_a_result_with_any_part_of_another_type_is_a_sentence_or_a_result():
    tuning = bt.tune(
        bt.UCB1(noise=0.5),
        PROBLEM,
        horizon=50,
        budget=8,
        include=("robustness",),
        search=bt.Search(tuner=bt.NoTeS(), validate=5),
    )
    data = json.loads(tuning.to_json())
    refused = 0
    for within, key in places_in(data):
        kept = within[key]
        for wrong in (5, "x", None, True, [{}], {"kind": "Estimate"}):
            within[key] = wrong
            try:
                repr(bt.results.from_json(json.dumps(data)))
            except bt.InvalidRequest:
                refused += 1
        within[key] = kept
    assert refused > 1000
    assert bt.results.from_json(json.dumps(data)) == tuning


def test_open_ends_in_an_array_are_read_back():
    trial = TrialResult(
        values=freeze_floats([1.0, 2.0]),
        mean=freeze_floats([math.inf, -math.inf]),
        se=freeze_floats([math.nan, 1.0]),
        runs=(1, 3),
    )
    assert bt.results.from_json(trial.to_json()) == trial


@dataclasses.dataclass(frozen=True)
class Euros(bt.Bernoulli):
    """A problem that pays what nobody knows."""

    rewards = "euros"


GOOD = {"policy": bt.UCB1(noise=0.5), "problem": PROBLEM, "horizon": 100, "runs": 5}
BAD = [
    ({"horizon": 0}, "whole number >= 1"),
    ({"horizon": 2}, "`horizon >= arms` must hold for ucb1"),
    ({"horizon": 10.5}, "whole number"),
    ({"horizon": 2**32}, "`horizon <= 2147483648`"),
    ({"horizon": math.nan}, "whole number"),
    ({"runs": 0}, "`runs`"),
    ({"runs": -3}, "`runs`"),
    ({"runs": True}, "`runs`"),
    ({"seed": -1}, "`seed`"),
    ({"workers": 0}, "`workers`"),
    ({"regret": "both"}, "'expected', 'realised'"),
    ({"common_random_numbers": 1}, "`common_random_numbers` must be True or False"),
    ({"checkpoints": []}, "increasing steps"),
    ({"checkpoints": [5, 3]}, "increasing steps"),
    ({"checkpoints": [101]}, "up to the horizon of 100"),
    ({"checkpoints": ["x"]}, "`checkpoints`"),
    ({"values": [-0.1]}, "`0 <= gamma <= 1e+06` must hold for ucb1, but got gamma=-0.1"),
    ({"values": [math.nan]}, "gamma=nan"),
    ({"values": [math.inf]}, "gamma=inf"),
    ({"values": [[0.1, 0.2]]}, "1 a row"),
    ({"values": []}, "must be numbers"),
    ({"values": "x"}, "must be numbers"),
    ({"values": {"delta": 1}}, "are gamma, but got delta"),
    ({"policy": bt.UCB1}, "make one"),
    ({"policy": "ucb1"}, "must be a policy"),
    ({"problem": "bernoulli"}, "must be a problem"),
    ({"problem": bt.Bernoulli}, "make one, e.g. Bernoulli(...)"),
    (
        {"problem": bt.problems.ProblemFile(PROBLEM, 100)},
        "a ProblemFile, which holds one; pass its fields: fitted.problem, horizon=fitted.horizon.",
    ),
    (
        {"problem": bt.make_logs("aa", "xy", [9, 9], [1, 2])},
        "past logs; fit a problem to them: fitted = fit(logs), then fitted.",
    ),
    ({"policy": bt.Thompson(prior=(1, 1)), "problem": bt.Gaussian()}, "needs rewards in [0, 1]"),
    ({"policy": bt.ExploreThenCommit(), "horizon": 5}, "raise the horizon"),
    ({"problem": Euros(arms=3)}, "`rewards` of 'bernoulli' must be one of 'real', 'unit', 'binary', but got 'euros'"),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_bad_requests_are_refused_in_a_sentence(change, message):
    request = GOOD | change
    with pytest.raises(bt.InvalidRequest) as error:
        bt.simulate(
            request.pop("policy"), request.pop("problem"), request.pop("values", None), **group_settings(**request)
        )
    assert message in str(error.value)
    assert str(error.value).endswith(".")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: bt.Bernoulli(arms=1), "`arms` must be a whole number >= 2"),
        (lambda: bt.Bernoulli(arms=2.5), "whole number"),
        (lambda: bt.Bernoulli(arms=3, prior=(0, 1)), "`a > 0`"),
        (lambda: bt.Bernoulli(arms=3, prior=(1, 2, 3)), "a pair (a, b)"),
        (lambda: bt.Bernoulli(arms=3, prior=[(1, 2)] * 2), "3 such pairs"),
        (lambda: bt.Bernoulli(arms=3, prior=(1, math.inf)), "must hold for the prior"),
        (lambda: bt.Bernoulli(arms=3, names=["a", "b"]), "3 different names"),
        (lambda: bt.Mixture([(0.5, 1.2)]), "probabilities in [0, 1]"),
        (lambda: bt.Mixture([(0.5, math.nan)]), "probabilities in [0, 1]"),
        (lambda: bt.Mixture([(0.5,)]), "two arms or more"),
        (lambda: bt.Mixture([(0.5, 0.1), (0.2,)]), "equal length"),
        (lambda: bt.Mixture([(0.5, 0.1)], weights=[0]), "not all 0"),
        (lambda: bt.Mixture([(0.5, 0.1)], weights=[1, 1]), "1 numbers"),
        (lambda: bt.BetaRewards(v=0), "`v > 0`"),
        (lambda: bt.Gaussian(noise=-1), "`noise > 0`"),
        (lambda: bt.Gaussian(prior=(0, 0)), "`sd > 0`"),
        (lambda: bt.UCB1(noise=0), "`0 < noise"),
        (lambda: bt.UCB1(noise=math.nan), "finite number"),
        (lambda: bt.Thompson(prior=(0, 1)), "`a >= 0.1`"),
        (lambda: bt.Parameter("x", 0, 1, textbook=0.5, scale="Log"), "'linear' or 'log'"),
        (lambda: bt.Parameter("x", 0, 1, textbook=0.5, scale="log").resolve(2, 10), "`low > 0`"),
        (lambda: bt.Parameter("x", 0.2, 0.8, textbook=0.5, integer=True).resolve(2, 10), "must hold a whole number"),
        (lambda: bt.Parameter("x", 0, lambda arms: 1, textbook=0.5).resolve(2, 10), "`high` of the parameter 'x'"),
        (lambda: bt.Parameter("x", 0, 1, textbook=lambda *_: 1 / 0).resolve(2, 10), "ZeroDivisionError"),
        (lambda: bt.Bernoulli(arms=2, names="ab"), "2 different names"),
        (lambda: bt.Bernoulli(arms=2, names=5), "2 different names"),
        (lambda: bt.Bernoulli(arms=2, names=["", "b"]), "2 different names"),
        (lambda: bt.GaussianThompson(noise=1e-200), "must be > 0"),
        (lambda: bt.UCB1(noise=1e308), "`0 < noise < 1e100`"),
        (lambda: bt.define_policy("x", 3), "must be a function"),
        (lambda: bt.reports.format_text(3), "a result must be given"),
        (lambda: bt.Thompson(prior=3), "2 finite numbers"),
        (lambda: bt.GaussianThompson(noise=0), "must be > 0"),
        (lambda: bt.tune(bt.UCB1(noise=0.5), PROBLEM, horizon=50, search=bt.Search(tuner=bt.NoTeS)), "must be a tuner"),
        (lambda: bt.tune(bt.UCB1(noise=0.5), PROBLEM, horizon=50, budget=5), "`budget >= 12`"),
        (lambda: bt.tune(bt.UCB1(noise=0.5), PROBLEM, horizon=50, search=bt.Search(validate=1)), "`validate`"),
        (lambda: bt.tune(bt.Greedy(), PROBLEM, horizon=50), "exactly one parameter to be tuned, but greedy has 0"),
        (lambda: bt.tune(TWO, PROBLEM, horizon=50), "two has 2 (a, b)"),
        (lambda: bt.curve(TWO, PROBLEM, horizon=50), "over one parameter"),
        (lambda: bt.compare([bt.UCB1(noise=0.5)], PROBLEM, horizon=50), "two policies or more"),
        (lambda: bt.compare([bt.UCB1(noise=0.5), bt.Greedy()], PROBLEM, horizon=50, budget=3), "`budget >= 12`"),
        (lambda: bt.simulate(UPSIDE_DOWN, PROBLEM, horizon=50), "`low < high`"),
        (lambda: bt.simulate(OFF_RANGE, PROBLEM, horizon=50), "the textbook value"),
    ],
)
def test_bad_records_are_refused_in_a_sentence(make, message):
    with pytest.raises(bt.InvalidRequest) as error:
        make()
    assert message in str(error.value)


@bt.kernel.scalar
def choose_one(state, setting, step, params, stream):
    return 0 if params[0] > 0.5 else 1


@bt.kernel.scalar
def choose_two(state, setting, step, params, stream):
    return 0 if params[0] > params[1] else 1


TWO = bt.define_policy(
    "two", choose_two, parameters=[bt.Parameter("a", 0, 1, textbook=1), bt.Parameter("b", 0, 1, textbook=0)]
)
UPSIDE_DOWN = bt.define_policy("upside-down", choose_two, parameters=[bt.Parameter("a", 1, 0, textbook=1)])
OFF_RANGE = bt.define_policy("off", choose_two, parameters=[bt.Parameter("a", 0, 1, textbook=2)])


def test_several_parameters_come_in_rows():
    problem = bt.Mixture([(1.0, 0.0)])
    regrets = bt.simulate(TWO, problem, [(1, 0), (0, 1)], horizon=10, runs=2)
    assert regrets.tolist() == [[0, 0], [10, 10]]
    assert (bt.simulate(TWO, problem, {"a": 0, "b": 1}, horizon=10, runs=2) == 10).all()
    comparison = bt.compare([TWO, bt.UCB1(noise=0.5)], problem, horizon=10, budget=12, search=bt.Search(validate=10))
    assert comparison.best_policy == "two"


numbers = st.one_of(st.floats(), st.integers(-5, 10**18), st.text(max_size=3), st.none(), st.booleans())
nonsense = st.one_of(numbers, st.lists(numbers, max_size=3), st.dictionaries(st.text(max_size=2), numbers, max_size=2))


def assert_served_or_refused_in_one_line(action):
    """An action gives a value, or is refused in one line."""
    try:
        assert action() is not None
    except bt.InvalidRequest as error:
        assert str(error)
        assert "\n" not in str(error)


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["horizon", "runs", "seed", "regret", "common_random_numbers", "checkpoints", "workers"]),
        nonsense,
        min_size=1,
    ),
    nonsense,
)
def test_the_door_answers_nonsense_with_a_sentence_or_not_at_all(change, values):
    request = {"horizon": 20, "runs": 3} | change
    for name in ("horizon", "runs", "workers"):
        # Large but honest requests would be served; that is not what is tried here.
        if isinstance(request.get(name), int) and request[name] > 50:
            return
    assert_served_or_refused_in_one_line(
        lambda: bt.simulate(bt.UCB1(noise=0.5), PROBLEM, values, **group_settings(**request))
    )


@settings(max_examples=100, deadline=None)
@given(nonsense, nonsense, nonsense)
def test_problems_answer_nonsense_with_a_sentence_or_not_at_all(first, second, third):
    if isinstance(first, int) and first > 10_000:
        return
    for make in (
        lambda: bt.Bernoulli(arms=first, prior=second, names=third if isinstance(third, list) else ()),
        lambda: bt.Mixture(first, weights=second),
        lambda: bt.BetaRewards(v=first, prior=second),
        lambda: bt.Gaussian(noise=first, prior=second),
        lambda: bt.UCB1(noise=first),
        lambda: bt.Thompson(prior=first),
        lambda: bt.GaussianThompson(prior=first, noise=second),
        lambda: bt.NoTeS(precision=first),
    ):
        assert_served_or_refused_in_one_line(make)


def test_names_with_dollars_and_foreign_letters_can_be_drawn(tmp_path):
    policy = bt.define_policy("$\\foo$ 漢字", choose_one, parameters=[bt.Parameter("$a_b$", 0, 1, textbook=1)])
    curve = bt.curve(policy, bt.Bernoulli(arms=2, names=["$\\x$", "漢"]), [0.1, 1], horizon=20, runs=9)
    curve.plot(tmp_path / "curve.svg")
    assert "$a_b$" in (tmp_path / "curve.svg").read_text()


def test_named_arms_and_priors_per_arm():
    problem = bt.Bernoulli(arms=2, prior=[(1000, 1), (1, 1000)], names=["left", "right"])
    assert problem.names == ("left", "right")
    regrets = bt.simulate(bt.UCB1(noise=0.5), problem, [0.3], horizon=50, runs=50)
    assert regrets.mean() < 2
    assert bt.results.from_json(
        bt.curve(bt.UCB1(noise=0.5), problem, [0.3], horizon=50, runs=9).to_json()
    ).setup.problem["names"]


def test_log_ranges_map_the_unit_interval_evenly_in_the_logarithm():
    among = Range("x", 1.0, 100.0, 1.0, False, "log")
    assert [among.scale_from_unit(u) for u in (0, 0.5, 1)] == pytest.approx([1, 10, 100])


def test_each_value_has_instances_of_its_own():
    spec = SimulationSpec(bt.UCB1(noise=0.5), PROBLEM, 300, common_random_numbers=False, checkpoints=(100, 300))
    parts = simulate_rows_separately(spec, [[0.1], [0.4], [1.0]], [3, 1, 300], 250, workers=3)
    whole = simulate_rows(spec, [[0.1], [0.4], [1.0]], range(250, 554))
    assert [part.shape for part in parts] == [(3, 2), (1, 2), (300, 2)]
    assert (parts[0] == whole[0, :3]).all()
    assert (parts[1] == whole[1, 3:4]).all()
    assert (parts[2] == whole[2, 4:]).all()


def test_a_wanted_precision_is_reached_or_it_is_said_what_was():
    result = bt.tune(bt.UCB1(noise=0.5), PROBLEM, horizon=300, precision=0.2, search=bt.Search(confidence=0.9))
    assert result.precision_reached is True
    assert result.posterior.regret_gap <= 0.2 * result.posterior.mean
    assert result.search_runs < result.budget == 100_000
    assert "; requested 20%: reached)" in repr(result)
    assert "90% sure" in repr(result)
    for limit in ({"max_runs": 30}, {"max_time": 1e-9}):
        (named,) = limit
        short = bt.tune(
            bt.UCB1(noise=0.5), PROBLEM, **group_settings(horizon=300, precision=0.001, validate=50, **limit)
        )
        assert short.precision_reached is False
        assert f"NOT reached, `{named}` ended the search" in repr(short)
        assert any("by `max_runs` or `max_time`; raise them" in warning for warning in short.notices)
        assert short.search_runs <= 30
        assert bt.results.from_json(short.to_json()) == short


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precision": 0.02, "budget": 100}, "either `budget` or `precision`"),
        ({"precision": 0}, "`0 < precision <= 1`"),
        ({"precision": 2}, "`0 < precision <= 1`"),
        ({"precision": "2%"}, "`0 < precision <= 1`"),
        ({"precision": 0.1, "confidence": 1}, "`0.5 <= confidence <= 0.99`"),
        ({"confidence": 2}, "`0.5 <= confidence <= 0.99`"),
        ({"max_runs": 500}, "use `budget`"),
        ({"precision": 0.1, "tuner": bt.NoTeS()}, "such as TwoPart()"),
        ({"max_time": 0}, "`max_time > 0`"),
        ({"max_time": "5"}, "`max_time > 0`"),
        ({"time_limit": math.nan}, "`time_limit > 0`"),
        ({"max_time": 5, "tuner": bt.tuners.Uniform()}, "`max_time` needs a tuner"),
        ({"precision": 0.1, "max_runs": 5}, "`budget >= 12`"),
    ],
)
def test_a_precision_that_cannot_be_served_is_refused(options, message):
    with pytest.raises(bt.InvalidRequest) as error:
        bt.tune(bt.UCB1(noise=0.5), PROBLEM, **group_settings(horizon=50, **options))
    assert message in str(error.value)


def test_validation_is_as_large_as_it_must_be():
    result = bt.tune(bt.UCB1(noise=0.5), PROBLEM, horizon=1000, budget=50)
    assert MIN_VALIDATION_RUNS <= result.validation_runs <= MAX_VALIDATION_RUNS
    shares = (
        result.gain.se / result.gain.mean / TARGET_RELATIVE_ERRORS["gain"],
        result.regret.se / result.regret.mean / TARGET_RELATIVE_ERRORS["regret"],
    )
    assert max(shares) < 1.3  # the first few runs do not know the variance exactly
    # They are not part of what is reported.
    spec = SimulationSpec(bt.UCB1(noise=0.5), PROBLEM, 1000)
    fresh = range(
        FIRST_VALIDATION_INSTANCE + PILOT_RUNS, FIRST_VALIDATION_INSTANCE + PILOT_RUNS + result.validation_runs
    )
    regrets = round_to_float32(spec, simulate_rows(spec, [list(result.params.values())], fresh))
    assert result.regret.mean == regrets[0].mean()
    assert count_runs_needed(np.array([1.0, 1.0]), 0.1) == 0
    assert count_runs_needed(np.array([-1.0, 1.0]), 0.1) == MAX_VALIDATION_RUNS
    assert count_runs_needed(np.zeros(5), 0.1) == 0
    assert count_runs_needed(np.array([98.0, 102.0]), 0.01) in (8, 9)


def test_what_may_mislead_is_said():
    among = Range("gamma", 0.0, 1.0, 1.0, False, "linear", lower_limit=0.0)
    even = np.full(300, 5.0)
    spec = SimulationSpec(bt.UCB1(noise=0.5), PROBLEM, 1000)
    assert list(collect_tuning_notices(spec, among, 0.4, None, even, even)) == []
    upper = next(collect_tuning_notices(spec, among, 1.0, None, even, even))
    assert "upper end of its range [0, 1]" in upper
    assert "--range gamma=0:10 on" in upper
    assert "--range gamma=0:0.1 on" in next(collect_tuning_notices(spec, among, 0.0, None, even, even))
    assert "lower end" in next(collect_tuning_notices(spec, among, 1 / 162, None, even, even))
    belief = SearchPosterior(
        mean=5.0,
        low=4.0,
        high=6.0,
        best_low=0.3,
        best_high=0.5,
        regret_gap=0.1,
        near_optimal=(),
        second_dip=(0.1, 0.5, 0.9),
        misfit=True,
        confidence=0.95,
    )
    off, dips = collect_tuning_notices(spec, among, 0.4, belief, even, even)
    assert "do not fit the curves" in off
    assert "may have more than one dip: gamma = 0.5" in dips
    few = np.concatenate([even, [4000.0, 2000.0]])
    assert "3 of 302 runs make 80% of the mean regret" in next(collect_tuning_notices(spec, among, 0.4, None, few, few))
    lone = bt.tune(
        bt.EpsilonGreedy(), bt.Mixture([(0.9, 0.1)]), horizon=2000, budget=1000, search=bt.Search(validate=300)
    )
    assert any("lower end" in warning for warning in lone.notices)
    assert "warning: epsilon" in repr(lone)


def test_the_search_is_called_wrong_only_where_theory_gains_more_than_the_gap_it_stated():
    among, sample = Range("gamma", 0.0, 1.0, 1.0, False, "linear"), np.full(300, 5.0)
    theory = sample - np.linspace(0.9, 1.1, 300)
    for gap, policy, said in (
        (
            0.1,
            bt.GaussianThompson(prior=(0, 1), noise=1),
            "wrong here.*gaussian-ts:noise=... on the command line, GaussianThompson\\(noise=...\\)",
        ),
        (
            0.1,
            bt.Thompson(prior=(1, 1)),
            "wrong here. Look at the whole curve [^,]*, and try another tuner, such as notes.$",
        ),
        (1.5, bt.UCB1(noise=0.5), "has 1 more regret than the textbook's 1: more runs are needed; raise the budget.$"),
    ):
        belief = SearchPosterior(
            mean=5.0,
            low=4.0,
            high=6.0,
            best_low=0.3,
            best_high=0.5,
            regret_gap=gap,
            near_optimal=(),
            second_dip=(),
            misfit=False,
            confidence=0.95,
        )
        (spec,) = collect_tuning_notices(SimulationSpec(policy, PROBLEM, 1000), among, 0.4, belief, sample, theory)
        assert re.search(said, spec), spec


def test_fresh_instances_far_from_what_the_search_expects_are_told():
    among, spec = Range("gamma", 0.0, 1.0, 1.0, False, "linear"), SimulationSpec(bt.UCB1(noise=0.5), PROBLEM, 1000)
    belief = SearchPosterior(
        mean=5.0,
        low=4.0,
        high=6.0,
        best_low=0.3,
        best_high=0.5,
        regret_gap=1.0,
        near_optimal=(),
        second_dip=(),
        misfit=False,
        confidence=0.95,
    )  # a standard error of 0.51
    for mean, told in ((6.7, 0), (6.9, 1), (3.3, 0), (3.1, 1)):
        sample = mean + np.linspace(-0.1, 0.1, 300)
        found = list(collect_tuning_notices(spec, among, 0.4, belief, sample, sample))
        assert len(found) == told, mean
        assert sum("while the search expects 4 to 6" in warning for warning in found) == told
    few = 9 + np.linspace(-0.1, 0.1, 249)  # which may have met no failure
    assert list(collect_tuning_notices(spec, among, 0.4, belief, few, few)) == []


def test_a_comparison_says_of_policies_without_a_parameter_too_that_few_runs_carry_the_mean():
    rare = bt.Mixture([(0.5, 0.4999), (0.1, 0.9)], [0.995, 0.005])
    comparison = bt.compare(
        [bt.Greedy(), bt.EpsilonGreedy()], rare, horizon=400, budget=50, search=bt.Search(validate=1000)
    )
    assert any(warning.startswith("greedy: 10 of 1,000 runs make") for warning in comparison.notices)


def test_numbers_of_numpy_are_numbers():
    assert resolve_goal(bt.TwoPart(), None, np.float32(0.5), bt.Search(confidence=np.float64(0.9))) == (0.5, 0.9)
    assert resolve_max_time(np.int64(5)) == 5
    assert bt.UCB1(noise=np.float32(2)).noise == 2
    for wrong in (np.complex128(1), 10**400, True, "1"):
        with pytest.raises(bt.InvalidRequest, match="`noise` must be a finite number"):
            bt.UCB1(noise=wrong)


def test_a_precision_that_was_not_reached_is_a_warning():
    missed = bt.tune(
        bt.UCB1(noise=0.5), PROBLEM, horizon=200, precision=0.0005, search=bt.Search(max_runs=300, validate=50)
    )
    assert missed.precision_reached is False
    assert any("the precision of 0.05% was not reached" in warning for warning in missed.notices)
    tuning = bt.tune(bt.UCB1(noise=0.5), PROBLEM, horizon=200, precision=0.5, search=bt.Search(validate=50))
    assert tuning.precision_reached
    assert not any("precision" in warning for warning in tuning.notices)


@dataclasses.dataclass(frozen=True)
class Asks(bt.tuners.Tuner):
    """A tuner of a user's own that asks one question."""

    size: object
    accepts_goal: bool = False
    name = "asks"

    def search(self, among, budget, goal=None):
        regrets = yield bt.tuners.Trial((0.2, 0.8), self.size)
        return (0.2, 0.8)[int(np.argmin([np.mean(row) for row in regrets]))]


@pytest.mark.parametrize("size", [np.int64(10), 10, (10, 5)])
def test_a_tuner_of_ones_own_asks_as_it_likes(size):
    result = bt.tune(
        bt.UCB1(noise=0.5), PROBLEM, horizon=200, budget=30, search=bt.Search(tuner=Asks(size), validate=20)
    )
    assert result.trials[0].runs == ((10, 5) if isinstance(size, tuple) else (10, 10))
    assert result.posterior is None
    sure = bt.tune(
        bt.UCB1(noise=0.5),
        PROBLEM,
        horizon=200,
        precision=0.1,
        search=bt.Search(tuner=Asks(size, accepts_goal=True), validate=20),
    )
    assert sure.precision_reached is None


@pytest.mark.parametrize("size", [0, (3,), (3, 0), ()])
def test_a_question_that_cannot_be_answered_is_a_fault(size):
    with pytest.raises(bt.SimulationError, match="a size >= 1 for all or for each"):
        bt.tune(bt.UCB1(noise=0.5), PROBLEM, horizon=200, budget=30, search=bt.Search(tuner=Asks(size)))


@dataclasses.dataclass(frozen=True)
class Strays(bt.tuners.Tuner):
    """A tuner that asks for these values, one after the other, with so many runs each, and answers."""

    asked: tuple
    size: int
    answer: object
    name = "strays"

    def search(self, among, budget):
        for value in self.asked:
            yield bt.tuners.Trial((value,), self.size)
        return self.answer


@pytest.mark.parametrize(
    ("tuner", "sentence"),
    [
        (Strays((0.5, 7.0), 5, 0.5), "keep to its range, `0 <= gamma <= 1`, but .* asked for 7.0"),
        (Strays((math.nan,), 5, 0.5), "keep to its range, .* asked for nan"),
        (Strays((0.5,), 5, math.nan), "keep to its range, .* answered with nan"),
        (Strays((0.5,), 5, 7), "keep to its range, .* answered with 7"),
        (Strays((0.5,), 5, None), "keep to its range, .* answered with None"),
        (Strays((0.5,), 5, "x"), "keep to its range, .* answered with 'x'"),
        (Strays((0.5, 0.6), 20, 0.5), "keep to its budget, but .* asked for 20 runs where 10 are left"),
        (Strays((), 5, 0.5), "must make a trial before it answers"),
    ],
)
def test_a_tuner_that_strays_is_a_fault(tuner, sentence):
    with pytest.raises(bt.SimulationError, match=sentence):
        bt.tune(bt.UCB1(noise=0.5), PROBLEM, horizon=100, budget=30, search=bt.Search(tuner=tuner))


@dataclasses.dataclass(frozen=True)
class Draws(bt.tuners.Tuner):
    """A tuner that asks for one value drawn at random, and answers with it."""

    accepts_goal: bool = False
    name = "draws"

    def search(self, among, budget, *goal, rng):
        assert len(goal) == self.accepts_goal
        value = among.scale_from_unit(rng.random())
        yield bt.tuners.Trial((value,), budget)
        return value


@pytest.mark.parametrize("accepts_goal", [False, True])
def test_a_tuners_random_numbers_follow_the_seed_of_the_study(accepts_goal):
    def drawn(seed, jobs):
        tuning = bt.tune(
            bt.UCB1(noise=0.5),
            PROBLEM,
            horizon=20,
            budget=5,
            seed=seed,
            include=("no_lower_bound",),
            search=bt.Search(tuner=Draws(accepts_goal), validate=2),
            run=bt.Run(workers=jobs),
        )
        return tuning.params["gamma"]

    values = [drawn(seed, 1) for seed in range(5)]
    assert len(set(values)) == 5
    assert values == [drawn(seed, 2) for seed in range(5)]


def test_whole_numbers_are_the_nearest_within_the_range():
    policy = bt.define_policy("whole", choose_one, parameters=[bt.Parameter("m", 1, 3.7, textbook=2, integer=True)])
    assert bt.curve(policy, PROBLEM, [1.2, 3.6], horizon=20, runs=4).values.tolist() == [1, 3]


def test_every_way_to_count_regret_is_checked():
    table = bt.RewardTable(np.random.default_rng(0).random((50, 2)), shuffled=False)
    with pytest.raises(bt.InvalidRequest, match="`regret` must be"):
        bt.simulate(bt.UCB1(noise=0.5), table, horizon=20, runs=3, simulation=bt.Simulation(regret="bogus"))


def test_policies_of_a_comparison_have_names_of_their_own():
    named = [
        bt.define_policy(name, choose_one, parameters=[bt.Parameter("a", 0, 1, textbook=1)]) for name in ("a", "a (2)")
    ]
    comparison = bt.compare(
        [named[0], named[0], named[1], named[0]], PROBLEM, horizon=20, budget=12, search=bt.Search(validate=5)
    )
    assert [entry.policy for entry in comparison.entries] == ["a", "a (3)", "a (2)", "a (4)"]


@pytest.mark.parametrize("values", [[0.5], None])
def test_the_progress_of_a_curve_counts_all_of_its_runs(values, tmp_path):
    told = []
    bt.curve(
        bt.UCB1(noise=0.5), PROBLEM, values, horizon=50, runs=30, run=bt.Run(progress=lambda *now: told.append(now))
    )
    done, totals = zip(*told, strict=True)
    assert list(done) == sorted(done)
    assert done[-1] == totals[-1] == (60 if values else 34 * 30)
    assert done.count(totals[-1]) == 1


def test_confidence_is_that_of_the_statements_and_theory_may_be_right():
    result = bt.tune(bt.UCB1(noise=0.5), PROBLEM, horizon=200, budget=50, search=bt.Search(validate=50, confidence=0.8))
    assert result.posterior.confidence == 0.8
    assert "80% sure" in repr(result)
    same = dataclasses.replace(result, textbook_params=result.params)
    assert "which is the textbook default" in repr(same)
    broken = result.to_json().replace('"precision": null', '"precision": "abc"')
    with pytest.raises(bt.InvalidRequest, match="'precision' of a Tuning must be of type float"):
        bt.results.from_json(broken)


@dataclasses.dataclass(frozen=True)
class KindUCB1(bt.UCB1):
    kind: str = "Estimate"


@dataclasses.dataclass(frozen=True)
class KindBernoulli(bt.Bernoulli):
    kind: tuple[int, ...] = (1, 2)


@dataclasses.dataclass(frozen=True)
class KindUniform(bt.tuners.Uniform):
    kind: float = 3.0


def test_an_option_may_be_called_kind():
    """As records are told apart in JSON by a `kind`; nobody's options are records."""
    tuning = bt.tune(
        KindUCB1(), KindBernoulli(arms=3), horizon=20, budget=44, search=bt.Search(tuner=KindUniform(), validate=5)
    )
    read = bt.results.from_json(tuning.to_json())
    assert read == tuning
    assert [part["kind"] for part in (read.setup.policy, read.setup.problem, read.setup.tuner)] == [
        "Estimate",
        (1, 2),
        3,
    ]
    data = json.loads(tuning.to_json())
    data["setup"]["problem"] = 5
    with pytest.raises(bt.InvalidRequest, match="'problem' of a StudySetup must be of type Mapping"):
        bt.results.from_json(json.dumps(data))


def test_a_file_is_on_the_disk_before_it_takes_its_name_and_the_name_after_that(tmp_path, monkeypatch):
    done = []
    sync, replace = os.fsync, os.replace

    def synced(handle):
        done.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else f"file of {os.fstat(handle).st_size}")
        sync(handle)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", lambda old, new: (done.append("name"), replace(old, new)))
    write_atomically(tmp_path / "new.json", [b"12", b"345"])
    assert done == ["file of 5", "name", "folder"]
    assert (tmp_path / "new.json").read_bytes() == b"12345"


def test_new_files_get_the_processs_mask_which_is_left_alone(tmp_path, monkeypatch):
    path, before = tmp_path / "new.json", os.umask(0o027)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(os, "umask", lambda mask: pytest.fail("other threads make files too"))
            write_atomically(path, b"1")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_what_takes_the_place_of_a_private_file_was_never_public(tmp_path):
    path = tmp_path / "state.json"
    path.write_bytes(b"secret")
    path.chmod(0o400)
    seen = []

    def content():
        seen.extend(stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir() if each != path)
        yield b"more"

    write_atomically(path, content())
    assert seen == [0o600]
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"more", 0o400)


WHOLE = [
    lambda number: bt.simulate(bt.UCB1(noise=0.5), PROBLEM, horizon=number, runs=number).shape[1],
    lambda number: (
        bt.tune(bt.UCB1(noise=0.5), PROBLEM, horizon=number, budget=number, search=bt.Search(validate=number)).budget
    ),
    lambda number: bt.Bernoulli(arms=number).arms,
    lambda number: bt.Linear(arms=5, dims=number).dims,
    lambda number: bt.Linear(arms=number, features=np.eye(20)).arms,
    lambda number: bt.define_problem("n", PROBLEM.sample, PROBLEM.reward, arms=number).arms,
    lambda number: bt.fit(bt.make_logs([0, 0, 1, 1], [0, 1, 0, 1], [9] * 4, [3, 4, 5, 2]), horizon=number).horizon,
    lambda number: bt.exact.compute_optimum(bt.Bernoulli(arms=2), horizon=number).setup.horizon,
    lambda number: bt.deploy(bt.UCB1(noise=0.5), 0.5, horizon=number, arms=2).state.horizon,
    lambda number: len(bt.deploy(bt.Thompson(prior=(1, 1)), 0.5, horizon=50, arms=2).select_arms(number)),
    lambda number: bt.executors.ThreadExecutor(number).workers,
]


@pytest.mark.parametrize("place", range(len(WHOLE)))
def test_whole_numbers_may_be_written_with_an_exponent_everywhere(place):
    for number in (2e1, np.float32(20), np.int16(20)):
        found = WHOLE[place](number)
        assert (found, type(found)) == (20, int)
    for number in (20.5, True, math.inf, "20"):
        with pytest.raises(bt.InvalidRequest):
            WHOLE[place](number)


def test_a_tuned_value_that_is_worse_than_theorys_is_marked_and_not_used():
    problem, options = bt.Bernoulli(arms=5), {"horizon": 300, "budget": 50, "validate": 300}
    policies = [bt.UCB1(noise=0.5), bt.Thompson(prior=(1, 1))]
    comparison = bt.compare(policies, problem, **group_settings(tuner=Answers(0.0), **options))
    (ts,) = (entry for entry in comparison.entries if entry.policy_config["name"] == "ts")
    theory = {"gamma": 1.0}
    assert (dict(ts.params), dict(ts.recommended_params)) == ({"gamma": 0.0}, theory)
    assert ts.is_worse_than_textbook
    assert ts.gain.mean == pytest.approx(ts.textbook_regret.mean - ts.regret.mean)
    assert ts.recommended_regret == ts.textbook_regret
    assert comparison.best_policy == ts.policy  # at theory's value
    assert ts.difference_to_best.mean == 0
    regrets = bt.simulate(policies[1], problem, 1.0, horizon=300, runs=300, first_instance=2**40 + 300)
    assert comparison.best_rerun.mean == pytest.approx(regrets.mean(), rel=1e-6)
    assert f"{ts.policy} has the lowest regret" in str(comparison)
    assert "with the textbook default gamma = 1, which is better than the tuned one" in str(comparison)
    assert "gamma = 0 (WORSE than the textbook default gamma = 1: use that)" in str(comparison)
    assert comparison.to_pandas().set_index("policy")["is_worse_than_textbook"][ts.policy]
    assert bt.deployment.deploy_result(comparison).state.params == theory
    assert bt.results.from_json(comparison.to_json()) == comparison


@dataclasses.dataclass(frozen=True)
class Answers(bt.tuners.Tuner):
    """A search that answers one value, whatever it sees."""

    name = "answers"
    value: float = 0.0

    def search(self, among, budget):
        yield bt.tuners.Trial((self.value,), budget)
        return self.value


def test_a_comparison_carries_the_warnings_of_a_tuning_and_how_sure_each_search_is():
    problem, options = bt.Bernoulli(arms=5), {"horizon": 200, "budget": 100, "validate": 300}
    loud = bt.UCB1(noise=50)
    comparison = bt.compare([loud, bt.Thompson(prior=(1, 1)), bt.UCB1(noise=0.5)], problem, **group_settings(**options))
    by_name = {entry.policy: entry for entry in comparison.entries}
    policies = {make_label(policy): policy for policy in (loud, bt.Thompson(prior=(1, 1)))}
    for name, policy in policies.items():
        entry, tuning = by_name[name], bt.tune(policy, problem, **group_settings(**options))
        mine = [warning for warning in comparison.notices if warning.startswith((f"{name}: ", f"{name} takes"))]
        same = [f"{policy.name} takes" + one.removeprefix(f"{name} takes") if "takes" in one else one for one in mine]
        assert [one.removeprefix(f"{name}: ") for one in same] == [*tuning.notices]
        assert entry.posterior == tuning.posterior
        assert entry.gain == tuning.gain
        assert tuning.params == entry.params
    assert comparison.notices
    rows = comparison.to_pandas().set_index("policy")
    for name, entry in by_name.items():
        assert not entry.is_worse_than_textbook
        assert rows["regret_gap"][name] == entry.posterior.regret_gap
        assert format_regret_gap(entry) in str(comparison)
        assert format_regret_gap(entry).startswith(f"{entry.posterior.regret_gap:.4g} (")


def test_the_intervals_of_a_data_frame_are_those_of_the_table(comparison):
    rows = comparison.to_pandas()
    for place, entry in enumerate(comparison.entries[1:], start=1):
        low, high = rows["difference_to_best_low"][place], rows["difference_to_best_high"][place]
        assert f"{rows['difference_to_best'][place]:.4g} ({low:.4g} to {high:.4g})" in str(comparison)
        assert low < entry.difference_to_best.low < entry.difference_to_best.high < high
        assert (rows["low"][place], rows["high"][place]) == (entry.regret.low, entry.regret.high)
    assert (
        len(
            {*rows.columns}
            & {"gain", "gain_low", "gain_high", "regret_gap", "not_tuned_reason", "not_backtested_reason"}
        )
        == 6
    )


def test_a_comparison_says_what_was_not_tuned_and_what_no_backtest_can_judge():
    problem = bt.Mixture([(1.0, 0.0)])
    comparison = bt.compare(
        [TWO, bt.UCB1(noise=0.5), bt.Greedy()], problem, horizon=10, budget=12, search=bt.Search(validate=10)
    )
    reasons = {entry.policy_config["name"]: entry.not_tuned_reason for entry in comparison.entries}
    assert reasons == {
        "two": "it has 2 parameters (a, b), a search takes one",
        "ucb1": "",
        "greedy": "it has no parameter",
    }
    assert "not tuned but simulated with the textbook value" in str(comparison)
    assert comparison.best_policy == "two"
    assert "`backtest` cannot evaluate two: it has 2 parameters (a, b), a search takes one." in str(comparison)
    assert "The best that it can evaluate is ucb1" in str(
        comparison
    ) or "The best that it can evaluate is greedy" not in str(comparison)
    alone = bt.compare([TWO, bt.Greedy()], problem, horizon=10, budget=12, search=bt.Search(validate=10))
    assert "nor can it evaluate any of the others" in str(alone)
