"""What every tuner promises, on curves that are known."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import banditune as bt
from banditune.core.space import Range
from banditune.tuners.tuner_registry import TUNERS
from helpers.searches import run_tuner

GRIDS = ("notes", "uniform", "halving")
"""Tuners with a precision."""


@pytest.mark.parametrize("name", TUNERS)
@pytest.mark.parametrize("lowest", [0.0, 0.22, 0.5, 0.83, 1.0])
def test_every_tuner_finds_the_minimum_of_a_curve_without_noise(name, lowest):
    # A tuner of several parameters needs more runs, also for one, and most of all at the ends.
    budget = 300 if TUNERS[name].max_parameters == 1 else 20_000
    answer, spent = run_tuner(TUNERS[name](), lambda x: abs(x - lowest), budget)
    assert abs(answer - lowest) <= 0.1 + 1e-9
    assert spent <= budget


@pytest.mark.parametrize("name", TUNERS)
@settings(deadline=None)
@given(budget=st.integers(1, 5000), precision=st.floats(0.01, 0.5), seed=st.integers(0, 5))
def test_every_tuner_keeps_to_its_budget_and_its_range(name, budget, precision, seed):
    among = Range("pulls", 3.0, 5000.0, 10.0, True, "log")
    tuner = TUNERS[name](**({"precision": precision} if name in GRIDS else {}))
    try:
        answer, spent = run_tuner(tuner, lambda x: math.log(x), budget, 1.0, seed, among)
    except bt.InvalidRequest as error:
        assert f"but got budget={budget}" in str(error)
        return
    assert spent <= budget
    assert 3 <= answer <= 5000
    assert answer == round(answer)


@pytest.mark.parametrize(("name", "least"), [("two-part", 12), ("notes", 8), ("uniform", 11), ("halving", 165)])
def test_a_too_small_budget_is_refused_with_the_smallest(name, least):
    run_tuner(TUNERS[name](), lambda x: x, least)
    with pytest.raises(bt.InvalidRequest, match=f"`budget >= {least}` must hold"):
        run_tuner(TUNERS[name](), lambda x: x, least - 1)


@pytest.mark.parametrize("precision", [0, -1, 0.6, math.nan, math.inf, "a", None, True])
def test_wrong_precisions_of_tuners_are_refused(precision):
    for name in GRIDS:
        with pytest.raises(bt.InvalidRequest, match="precision"):
            TUNERS[name](precision=precision)
