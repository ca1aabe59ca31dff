"""Schedules as tables of integers, searches on curves that are known, and the paper's theory."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import banditune as bt
from banditune.contracts import Range
from banditune.tuners import SHELF
from banditune.tuners.grid import grid, halving_least, halving_points, halving_runs
from banditune.tuners.notes import ternary_pairs

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
    assert ternary_pairs(budget, 4) == pairs


@given(st.integers(1, 15), st.integers(0, 5000))
def test_notes_spends_its_budget_but_one_run_at_most(iterations, extra):
    budget = 2 * iterations + extra
    pairs = ternary_pairs(budget, iterations)
    assert len(pairs) == iterations
    assert min(pairs) >= 1
    assert budget - 2 * sum(pairs) in (0, 1)


@pytest.mark.parametrize(
    ("precision", "iterations"), [(0.5, 1), (1 / 3, 1), (0.25, 2), (0.1, 4), (0.05, 6), (0.01, 10)]
)
def test_iterations_needed(precision, iterations):
    assert bt.iterations_needed(precision) == iterations
    assert (2 / 3) ** iterations <= 2 * precision + 1e-9


def test_halving_schedule():
    assert halving_points(11) == [11, 6, 3, 2]
    assert halving_runs(1000, 11) == [6, 22, 88, 266]
    assert halving_runs(200, 11) == [1, 4, 17, 53]
    assert halving_least(11) == 165
    assert min(halving_runs(164, 11)) == 0


@given(st.integers(2, 40), st.integers(0, 3000))
def test_halving_never_spends_more_than_its_budget(points, extra):
    budget = halving_least(points) + extra
    runs = halving_runs(budget, points)
    assert min(runs) >= 1
    assert sum(r * n for r, n in zip(runs, halving_points(points), strict=True)) <= budget


def test_grids_hold_both_ends():
    assert grid(UNIT, 0.1) == pytest.approx(np.linspace(0, 1, 11))
    assert grid(UNIT, 0.3) == pytest.approx([0, 0.3, 0.6, 0.9, 1])
    whole = Range("pulls", 1.0, 4.0, 2.0, True, "linear")
    assert grid(whole, 0.1) == (1, 2, 3, 4)


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


@pytest.mark.parametrize("name", SHELF)
@pytest.mark.parametrize("lowest", [0.0, 0.22, 0.5, 0.83, 1.0])
def test_every_tuner_finds_the_dip_of_a_curve_without_noise(name, lowest):
    answer, spent = search(SHELF[name](), lambda x: abs(x - lowest), 300)
    assert abs(answer - lowest) <= 0.1 + 1e-9
    assert spent <= 300


@pytest.mark.parametrize("name", SHELF)
@settings(deadline=None)
@given(budget=st.integers(1, 5000), precision=st.floats(0.01, 0.5), seed=st.integers(0, 5))
def test_no_tuner_exceeds_its_budget_or_leaves_the_range(name, budget, precision, seed):
    among = Range("pulls", 3.0, 5000.0, 10.0, True, "log")
    tuner = SHELF[name](**({"precision": precision} if name in GRIDS else {}))
    try:
        answer, spent = search(tuner, lambda x: math.log(x), budget, 1.0, seed, among)
    except bt.BadRequest as error:
        assert f"but got budget={budget}" in str(error)
        return
    assert spent <= budget
    assert 3 <= answer <= 5000
    assert answer == round(answer)


@pytest.mark.parametrize(("name", "least"), [("two-part", 12), ("notes", 8), ("uniform", 11), ("halving", 165)])
def test_a_budget_that_is_too_small_says_what_is_enough(name, least):
    search(SHELF[name](), lambda x: x, least)
    with pytest.raises(bt.BadRequest, match=f"`budget >= {least}` must hold"):
        search(SHELF[name](), lambda x: x, least - 1)


@pytest.mark.parametrize("precision", [0, -1, 0.6, math.nan, math.inf, "a", None, True])
def test_precision_is_checked(precision):
    for name in GRIDS:
        with pytest.raises(bt.BadRequest, match="precision"):
            SHELF[name](precision=precision)


def test_failure_bound_is_the_papers_formula():
    sizes = [10, 20, 40, 80]
    expected = 4 * sum(math.exp(-((2 / 3) ** (2 * l)) * 9 * s / (32 * 4)) for l, s in enumerate(sizes, 1))  # noqa: E741
    assert bt.failure_bound(sizes, slope=3.0, noise=2.0) == pytest.approx(expected)


def test_the_failure_bound_holds_on_a_curve_that_meets_its_assumptions():
    slope, noise, precision = 40.0, 4.0, 0.1
    budget = bt.budget_needed(0.3, precision, slope, noise)
    misses = [
        abs(search(bt.NoTeS(precision), lambda x: slope * abs(x - 0.3), budget, noise, seed)[0] - 0.3) > precision
        for seed in range(400)
    ]
    assert np.mean(misses) <= 0.3


def test_budget_needed_is_the_smallest():
    budget = bt.budget_needed(0.05, 0.1, slope=100.0, noise=50.0)

    def reached(budget):
        return bt.failure_bound([2 * n for n in ternary_pairs(budget, 4)], 100.0, 50.0)

    assert reached(budget) <= 0.05 < reached(budget - 2)
    for wrong in (
        lambda: bt.failure_bound([9], 1.0, 0.0),
        lambda: bt.failure_bound([9], 1e200, 1.0),
        lambda: bt.iterations_needed(0),
    ):
        with pytest.raises(bt.BadRequest):
            wrong()
    for wrong in ({"bound": 0}, {"bound": 1}, {"slope": 0}, {"noise": -1}, {"slope": "a"}, {"bound": "x"},
                  {"slope": 1e-200}):  # fmt: skip
        with pytest.raises(bt.BadRequest):
            bt.budget_needed(**({"bound": 0.1, "precision": 0.1, "slope": 1.0, "noise": 1.0} | wrong))
