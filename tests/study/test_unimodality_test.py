"""The test for a second dip: its false alarms and its power."""

from __future__ import annotations

import numpy as np
import pytest

from banditune.study.unimodality_test import check_unimodal


def make_curve(kind: str, points: int) -> np.ndarray:
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
    """400 curves: at a rate of 5%, a count above 37 has probability 1e-4."""
    rng = np.random.default_rng(5)
    alarms = 0
    for _ in range(400):
        common = rng.standard_normal(100)
        noise = rng.standard_normal((17, 100))
        if heavy:
            noise = rng.exponential(1, (17, 100)) * (rng.random((17, 100)) < 0.1) * 20
        alarms += check_unimodal(np.arange(17.0), make_curve(kind, 17)[:, None] + 5 * noise + common).rejected
    assert alarms <= 37


@pytest.mark.parametrize("runs", [2, 5, 10, 30])
def test_few_runs_raise_no_more_false_alarms(runs):
    rng = np.random.default_rng(7)
    alarms = sum(check_unimodal(np.arange(33.0), rng.standard_normal((33, runs))).rejected for _ in range(400))
    assert alarms <= 37


def test_two_dips_are_detected():
    rng = np.random.default_rng(6)
    regrets = make_curve("two dips", 17)[:, None] + 5 * rng.standard_normal((17, 100))
    result = check_unimodal(np.linspace(0, 1, 17), regrets)
    assert result.rejected
    left, top, right = result.second_dip
    assert left < top < right
    assert top == pytest.approx(0.5, abs=0.07)
