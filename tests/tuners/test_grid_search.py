"""Grids and sequential halving: schedules as tables of integers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from banditune.core.space import Range
from banditune.tuners.grid_search import compute_least_halving_budget, list_halving_points, list_halving_runs, make_grid
from helpers.searches import UNIT


def test_the_schedule_of_halving_is_known():
    assert list_halving_points(11) == [11, 6, 3, 2]
    assert list_halving_runs(1000, 11) == [6, 22, 88, 266]
    assert list_halving_runs(200, 11) == [1, 4, 17, 53]
    assert compute_least_halving_budget(11) == 165
    assert min(list_halving_runs(164, 11)) == 0


@given(st.integers(2, 40), st.integers(0, 3000))
def test_halving_keeps_to_its_budget(points, extra):
    budget = compute_least_halving_budget(points) + extra
    runs = list_halving_runs(budget, points)
    assert min(runs) >= 1
    assert sum(r * n for r, n in zip(runs, list_halving_points(points), strict=True)) <= budget


def test_grids_contain_both_ends():
    assert make_grid(UNIT, 0.1) == pytest.approx(np.linspace(0, 1, 11))
    assert make_grid(UNIT, 0.3) == pytest.approx([0, 0.3, 0.6, 0.9, 1])
    whole = Range("pulls", 1.0, 4.0, 2.0, True, "linear")
    assert make_grid(whole, 0.1) == (1, 2, 3, 4)
