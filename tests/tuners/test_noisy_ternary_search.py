"""NoTeS: its schedule, and the paper's bound of its failures."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import banditune as bt
from banditune.tuners.noisy_ternary_search import allocate_pairs
from helpers.searches import run_tuner


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
def test_notes_allocates_more_pairs_to_later_iterations(budget, pairs):
    assert allocate_pairs(budget, 4) == pairs


@given(st.integers(1, 15), st.integers(0, 5000))
def test_notes_uses_its_budget_except_for_one_run_at_most(iterations, extra):
    budget = 2 * iterations + extra
    pairs = allocate_pairs(budget, iterations)
    assert len(pairs) == iterations
    assert min(pairs) >= 1
    assert budget - 2 * sum(pairs) in (0, 1)


@pytest.mark.parametrize(
    ("precision", "iterations"), [(0.5, 1), (1 / 3, 1), (0.25, 2), (0.1, 4), (0.05, 6), (0.01, 10)]
)
def test_the_number_of_iterations_follows_the_precision(precision, iterations):
    assert bt.tuners.count_iterations(precision) == iterations
    assert (2 / 3) ** iterations <= 2 * precision + 1e-9


def test_the_failure_bound_agrees_with_the_formula_of_the_paper():
    sizes = [10, 20, 40, 80]
    expected = 4 * sum(math.exp(-((2 / 3) ** (2 * k)) * 9 * s / (32 * 4)) for k, s in enumerate(sizes, 1))
    assert bt.tuners.bound_failure(sizes, slope=3.0, noise=2.0) == pytest.approx(expected)


def test_the_failure_bound_holds_on_a_curve_that_meets_its_assumptions():
    slope, noise, precision = 40.0, 4.0, 0.1
    budget = bt.tuners.compute_budget(0.3, precision, slope, noise)
    failures = [
        abs(run_tuner(bt.NoTeS(precision), lambda x: slope * abs(x - 0.3), budget, noise, seed)[0] - 0.3) > precision
        for seed in range(400)
    ]
    assert np.mean(failures) <= 0.3


def test_the_computed_budget_is_the_smallest():
    budget = bt.tuners.compute_budget(0.05, 0.1, slope=100.0, noise=50.0)

    def bound_of_budget(budget):
        return bt.tuners.bound_failure([2 * n for n in allocate_pairs(budget, 4)], 100.0, 50.0)

    assert bound_of_budget(budget) <= 0.05 < bound_of_budget(budget - 2)
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
