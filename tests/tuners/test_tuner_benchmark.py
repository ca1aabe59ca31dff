"""The benchmark of tuners: its pools, its truth, and the Optuna tuner."""

from __future__ import annotations

import importlib
import math
import sys
from pathlib import Path

import numpy as np
import pytest

import banditune as bt
from banditune.core.space import Range, Space
from banditune.core.tuner import Trial
from banditune.paper.lockstep_tunings import run_single_tuner
from banditune.paper.run_pools import UNIT_POINTS, build_smoother, map_to_unit_interval
from banditune.study.search import start_search
from banditune.tuners.curve_draws import compute_mean_curve
from banditune.tuners.curve_fit import fit_curves
from banditune.tuners.curve_library import select_library
from banditune.tuners.noisy_ternary_search import NoTeS
from banditune.tuners.optuna_adapter import Optuna, split_budget
from banditune.tuners.two_part import TwoPart

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are not in the source distribution")

UNIT = Range("gamma", 0.0, 1.0, 1.0, False, "linear")
PULLS = Range("pulls", 3.0, 5000.0, 10.0, True, "log")


@pytest.fixture(scope="module")
def tuner_curves():
    return import_benchmark("tuner_curves")


@pytest.fixture(scope="module")
def tuners():
    return import_benchmark("tuners")


def import_benchmark(name):
    """A module of the benchmarks."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(BENCHMARKS))


def make_small_pool(tuner_curves, among=UNIT, points=11, runs=40):
    """A pool whose regrets identify their origin: width + instance / 1000."""
    values = np.array([among.scale_from_unit(unit) for unit in np.linspace(0, 1, points)])
    return tuner_curves.make_run_curve("small", among, values, np.arange(points)[:, None] + np.arange(runs) / 1000)


def test_units_are_the_inverse_of_values(tuner_curves):
    for among in (UNIT, Range("epsilon", 0.1, 0.7, 0.2, False, "linear"), Range("rate", 0.01, 10.0, 1.0, False, "log")):
        units = np.linspace(0, 1, 7)
        assert map_to_unit_interval(among, [among.scale_from_unit(unit) for unit in units]) == pytest.approx(units)


def test_other_values_get_the_runs_of_the_nearest_one(tuner_curves):
    regrets = make_small_pool(tuner_curves).answer_trial(Trial((0.0, 0.22, 0.96), (3, 4, 5)), np.random.default_rng(0))
    assert [np.floor(row).tolist() for row in regrets] == [[0] * 3, [2] * 4, [10] * 5]


def test_values_with_one_size_share_instances(tuner_curves):
    pool = make_small_pool(tuner_curves)
    shared = pool.answer_trial(Trial((0.1, 0.5), 30), np.random.default_rng(0))
    assert shared.shape == (2, 30)
    assert shared[0] - 1 == pytest.approx(shared[1] - 5)
    first, second = pool.answer_trial(Trial((0.1, 0.5), (30, 30)), np.random.default_rng(0))
    assert not np.allclose(first - 1, second - 5)


def compute_mean_regret(units):
    """Exploring has a cost, and failing a steep one. The lowest point is near 0.22."""
    return 350 * units**1.1 + 400 * np.exp(-units / 0.08)


def test_smoothing_keeps_a_curve_and_its_lowest_point(tuner_curves):
    units, curve = UNIT_POINTS, compute_mean_regret(UNIT_POINTS)
    smooth = build_smoother(units, curve) @ curve
    near = curve < 1.3 * curve.min()
    assert smooth[near] == pytest.approx(curve[near], rel=0.002)
    assert tuner_curves.compute_excess(units, curve, units[[smooth.argmin()]])[0] < 0.01


def test_smoothing_has_small_errors_with_noise(tuner_curves):
    units, curve, rng = UNIT_POINTS, compute_mean_regret(UNIT_POINTS), np.random.default_rng(3)
    answers = np.array([0.15, 0.2, 0.25, 0.3])
    deviations, errors = [], []
    for _ in range(20):
        regrets = curve[:, None] + 2 * curve[:, None] * rng.standard_normal((len(units), 1000))
        pool = tuner_curves.make_run_curve("steep", UNIT, units, regrets)
        deviations.append(
            pool.compute_excess(answers).mean() - tuner_curves.compute_excess(units, curve, answers).mean()
        )
        errors.append(pool.compute_own_error(answers))
    assert abs(np.mean(deviations)) < 4 * np.std(deviations) / 20**0.5 + 0.5  # the minimum of a noisy curve is too low
    assert np.std(deviations) / 2 < np.mean(errors) < 2 * np.std(deviations)


def test_mean_curves_in_lock_step_are_independent():
    library, rng = select_library(UNIT), np.random.default_rng(0)
    at = rng.integers(len(library.points), size=(4, 60))
    regrets = compute_mean_regret(library.points)[at] * rng.gamma(2, 0.5, at.shape)
    all_curves = compute_mean_curve(library, fit_curves(library, at, regrets))
    single_curves = [
        compute_mean_curve(library, fit_curves(library, at[k : k + 1], regrets[k : k + 1]))[0] for k in range(4)
    ]
    assert all_curves == pytest.approx(np.array(single_curves), rel=1e-6)


def test_searches_in_lock_step_have_the_law_of_single_ones(tuner_curves, tuners):
    bowl, rng = tuner_curves.make_bowl(0.3), np.random.default_rng(1)
    lockstep = bowl.compute_excess(tuners.tune_two_part(bowl, 50, 400, rng))
    single = bowl.compute_excess(np.array([run_single_tuner(TwoPart(), bowl, 50, rng) for _ in range(150)]))
    assert abs(lockstep.mean() - single.mean()) < 4 * math.hypot(lockstep.std() / 400**0.5, single.std() / 150**0.5)


def test_answers_on_a_log_scale_are_found(tuner_curves, tuners):
    values = np.array([PULLS.scale_from_unit(unit) for unit in UNIT_POINTS])
    means = 20 + 10 * np.log(values / 100) ** 2
    pool = tuner_curves.make_run_curve(
        "pulls", PULLS, values, means[:, None] + np.random.default_rng(0).standard_normal((171, 500))
    )
    lowest = float(map_to_unit_interval(PULLS, 100.0))
    rng = np.random.default_rng(0)
    assert tuners.tune_two_part(pool, 200, 3, rng) == pytest.approx(lowest, abs=0.05)
    assert run_single_tuner(NoTeS(), pool, 200, rng) == pytest.approx(lowest, abs=0.1)


def test_halving_has_the_finest_grid_that_its_budget_allows(tuners):
    assert [tuners.find_finest_step(budget) for budget in (50, 164, 165, 1000)] == pytest.approx(
        [1 / 6, 1 / 9, 1 / 10, 1 / 10]
    )


def test_statements_are_compared_with_the_truth(tuner_curves, tuners):
    bowl = tuner_curves.make_bowl(0.2)
    outcome = tuners.check_statements(bowl, 200, 40, 0)
    assert outcome.statements.gap_holds > 75
    assert 0 < outcome.statements.best_width < 1


@pytest.mark.parametrize(
    ("budget", "trials", "expected"), [(200, 50, [4] * 50), (30, 50, [1] * 30), (110, 50, [3] * 10 + [2] * 40)]
)
def test_optuna_splits_its_budget_evenly(budget, trials, expected):
    assert split_budget(budget, trials) == expected


def run_tuner(tuner, compute_height, budget, among):
    """Run a tuner on a known curve. Return its answer, all values and the number of runs."""
    generator, values, spent = tuner.search(among, budget), [], 0
    try:
        trial = next(generator)
        while True:
            values += trial.values
            spent += trial.size * len(trial.values)
            trial = generator.send(np.full((1, trial.size), compute_height(trial.values[0])))
    except StopIteration as answer:
        return answer.value, values, spent


@pytest.mark.parametrize("seed", [0, 1])
def test_optuna_finds_a_bowl_without_noise(seed):
    pytest.importorskip("optuna")
    answer, _, spent = run_tuner(Optuna(seed=seed), lambda x: (x - 0.3) ** 2, 200, UNIT)
    assert answer == pytest.approx(0.3, abs=0.03)
    assert spent == 200


def test_optuna_follows_the_seed_of_the_study_unless_it_has_its_own():
    pytest.importorskip("optuna")

    def first_value(tuner, seed):
        return next(start_search(tuner, Space((UNIT,)), 20, seed=seed)).values[0]

    values = [first_value(Optuna(), seed) for seed in range(3)]
    assert values == [first_value(Optuna(), seed) for seed in range(3)]
    assert len(set(values)) == 3
    assert len({first_value(Optuna(seed=5), seed) for seed in range(3)}) == 1


@pytest.mark.parametrize("budget", [1, 7, 99])
def test_optuna_keeps_range_whole_numbers_and_budget(budget):
    pytest.importorskip("optuna")
    answer, values, spent = run_tuner(Optuna(trials=20), lambda x: (math.log(x) - 4) ** 2, budget, PULLS)
    assert spent <= budget
    assert answer in values
    assert all(3 <= value <= 5000 and value == round(value) for value in values)


def test_optuna_samples_evenly_on_a_log_scale():
    pytest.importorskip("optuna")
    _, values, _ = run_tuner(Optuna(trials=40), lambda x: 0.0, 40, Range("rate", 1e-4, 1.0, 1.0, False, "log"))
    assert np.mean(np.array(values) < 0.01) == pytest.approx(0.5, abs=0.25)


def test_the_same_seed_gives_the_same_values():
    pytest.importorskip("optuna")
    first, second = (run_tuner(Optuna(seed=5, trials=15), abs, 15, UNIT)[1] for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    ("sampler", "missing", "command"),
    [("tpe", "optuna", r'pip install "banditune\[optuna\]"'), ("gp", "torch", "pip install torch")],
)
def test_a_missing_module_is_named_with_its_installation(monkeypatch, sampler, missing, command):
    if missing != "optuna":
        pytest.importorskip("optuna")
        pytest.importorskip("scipy")
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(bt.errors.MissingDependency, match=command):
        next(Optuna(sampler).search(UNIT, 50))


@pytest.mark.parametrize("options", [{"sampler": "cma"}, {"trials": 0}, {"trials": 2.5}, {"seed": -1}, {"seed": True}])
def test_options_of_optuna_are_checked(options):
    with pytest.raises(bt.InvalidRequest, match=next(iter(options))):
        Optuna(**options)
