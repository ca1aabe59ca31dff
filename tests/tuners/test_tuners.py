"""Schedules as tables of integers, searches on curves that are known, and the paper's theory."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import banditune as bt
from banditune.core.space import Range
from banditune.tuners.grid_search import compute_least_halving_budget, list_halving_points, list_halving_runs, make_grid
from banditune.tuners.noisy_ternary_search import allocate_pairs
from banditune.tuners.tuner_registry import TUNERS

GRIDS = ("notes", "uniform", "halving")
"""Tuners with a precision."""

UNIT = Range("gamma", 0.0, 1.0, 1.0, False, "linear")


@pytest.mark.parametrize(
    ("budget", "pairs"),
    [
        (8, [1, 1, 1, 1]),
        (9, [1, 1, 1, 1]),
        (10, [1, 1, 1, 2]),
        (50, [1, 2, 6, 16]),
        (200, [5, 11, 25, 59]),
        (1000, [25, 57, 128, 290]),
    ],
)
def test_notes_doubles_and_a_quarter_its_pairs(budget, pairs):
    assert allocate_pairs(budget, 4) == pairs


@given(st.integers(1, 15), st.integers(0, 5000))
def test_notes_spends_its_budget_but_one_run_at_most(iterations, extra):
    budget = 2 * iterations + extra
    pairs = allocate_pairs(budget, iterations)
    assert len(pairs) == iterations
    assert min(pairs) >= 1
    assert budget - 2 * sum(pairs) in (0, 1)


@pytest.mark.parametrize(
    ("precision", "iterations"), [(0.5, 1), (1 / 3, 1), (0.25, 2), (0.1, 4), (0.05, 6), (0.01, 10)]
)
def test_iterations_needed(precision, iterations):
    assert bt.tuners.count_iterations(precision) == iterations
    assert (2 / 3) ** iterations <= 2 * precision + 1e-9


def test_halving_schedule():
    assert list_halving_points(11) == [11, 6, 3, 2]
    assert list_halving_runs(1000, 11) == [6, 22, 88, 266]
    assert list_halving_runs(200, 11) == [1, 4, 17, 53]
    assert compute_least_halving_budget(11) == 165
    assert min(list_halving_runs(164, 11)) == 0


@given(st.integers(2, 40), st.integers(0, 3000))
def test_halving_never_spends_more_than_its_budget(points, extra):
    budget = compute_least_halving_budget(points) + extra
    runs = list_halving_runs(budget, points)
    assert min(runs) >= 1
    assert sum(r * n for r, n in zip(runs, list_halving_points(points), strict=True)) <= budget


def test_grids_hold_both_ends():
    assert make_grid(UNIT, 0.1) == pytest.approx(np.linspace(0, 1, 11))
    assert make_grid(UNIT, 0.3) == pytest.approx([0, 0.3, 0.6, 0.9, 1])
    whole = Range("pulls", 1.0, 4.0, 2.0, True, "linear")
    assert make_grid(whole, 0.1) == (1, 2, 3, 4)


def search(tuner, height, budget, noise=0.0, seed=0, among=UNIT):
    """Run a tuner on a known curve; returns its answer and what it spent."""
    rng = np.random.default_rng(seed)
    generator = tuner.search(among, budget)
    spent = 0
    try:
        trial = next(generator)
        while True:
            each = isinstance(trial.size, tuple)
            sizes = trial.size if each else [trial.size] * len(trial.values)
            spent += sum(sizes)
            told = [
                height(value) + noise * rng.standard_normal(size)
                for value, size in zip(trial.values, sizes, strict=True)
            ]
            trial = generator.send(told if each else np.array(told))
    except StopIteration as answer:
        return getattr(answer.value, "value", answer.value), spent


@pytest.mark.parametrize("name", TUNERS)
@pytest.mark.parametrize("lowest", [0.0, 0.22, 0.5, 0.83, 1.0])
def test_every_tuner_finds_the_dip_of_a_curve_without_noise(name, lowest):
    answer, spent = search(TUNERS[name](), lambda x: abs(x - lowest), 300)
    assert abs(answer - lowest) <= 0.1 + 1e-9
    assert spent <= 300


@pytest.mark.parametrize("name", TUNERS)
@settings(deadline=None)
@given(budget=st.integers(1, 5000), precision=st.floats(0.01, 0.5), seed=st.integers(0, 5))
def test_no_tuner_exceeds_its_budget_or_leaves_the_range(name, budget, precision, seed):
    among = Range("pulls", 3.0, 5000.0, 10.0, True, "log")
    tuner = TUNERS[name](**({"precision": precision} if name in GRIDS else {}))
    try:
        answer, spent = search(tuner, lambda x: math.log(x), budget, 1.0, seed, among)
    except bt.InvalidRequest as error:
        assert f"but got budget={budget}" in str(error)
        return
    assert spent <= budget
    assert 3 <= answer <= 5000
    assert answer == round(answer)


@pytest.mark.parametrize(("name", "least"), [("two-part", 12), ("notes", 8), ("uniform", 11), ("halving", 165)])
def test_a_budget_that_is_too_small_says_what_is_enough(name, least):
    search(TUNERS[name](), lambda x: x, least)
    with pytest.raises(bt.InvalidRequest, match=f"`budget >= {least}` must hold"):
        search(TUNERS[name](), lambda x: x, least - 1)


@pytest.mark.parametrize("precision", [0, -1, 0.6, math.nan, math.inf, "a", None, True])
def test_precision_is_checked(precision):
    for name in GRIDS:
        with pytest.raises(bt.InvalidRequest, match="precision"):
            TUNERS[name](precision=precision)


def test_failure_bound_is_the_papers_formula():
    sizes = [10, 20, 40, 80]
    expected = 4 * sum(math.exp(-((2 / 3) ** (2 * l)) * 9 * s / (32 * 4)) for l, s in enumerate(sizes, 1))  # noqa: E741
    assert bt.tuners.bound_failure(sizes, slope=3.0, noise=2.0) == pytest.approx(expected)


def test_the_failure_bound_holds_on_a_curve_that_meets_its_assumptions():
    slope, noise, precision = 40.0, 4.0, 0.1
    budget = bt.tuners.compute_budget(0.3, precision, slope, noise)
    misses = [
        abs(search(bt.NoTeS(precision), lambda x: slope * abs(x - 0.3), budget, noise, seed)[0] - 0.3) > precision
        for seed in range(400)
    ]
    assert np.mean(misses) <= 0.3


def test_budget_needed_is_the_smallest():
    budget = bt.tuners.compute_budget(0.05, 0.1, slope=100.0, noise=50.0)

    def reached(budget):
        return bt.tuners.bound_failure([2 * n for n in allocate_pairs(budget, 4)], 100.0, 50.0)

    assert reached(budget) <= 0.05 < reached(budget - 2)
    for wrong in (
        lambda: bt.tuners.bound_failure([9], 1.0, 0.0),
        lambda: bt.tuners.bound_failure([9], 1e200, 1.0),
        lambda: bt.tuners.count_iterations(0),
    ):
        with pytest.raises(bt.InvalidRequest):
            wrong()
    for wrong in (
        {"bound": 0},
        {"bound": 1},
        {"slope": 0},
        {"noise": -1},
        {"slope": "a"},
        {"bound": "x"},
        {"slope": 1e-200},
    ):
        with pytest.raises(bt.InvalidRequest):
            bt.tuners.compute_budget(**({"bound": 0.1, "precision": 0.1, "slope": 1.0, "noise": 1.0} | wrong))
