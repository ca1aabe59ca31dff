"""What a search states of its answer, on known curves."""

from __future__ import annotations

import math

import numpy as np
import pytest

from banditune.tuners.answer_statements import (
    AnswerCurves,
    bound_regret_gap,
    draw_answer_curves,
    find_near_optimal,
    find_second_dip,
    grow_region,
    has_constant_failures,
    has_misfit,
    state_answer,
)
from banditune.tuners.curve_draws import compute_mean_curve
from banditune.tuners.curve_fit import fit_curves
from helpers.known_curves import LIBRARY, UNIT, compute_mean_regret, draw_regrets, run_searches


def test_statements_hold_at_their_rate_on_a_known_curve():
    """Each kind of statement must hold in 92% of 200 searches, less 4 standard errors."""
    searches = run_searches(200, 200, seed=8)
    fit = searches.fit_curves()
    fine = compute_mean_regret(LIBRARY.fine)
    outcomes = []
    for search in range(200):
        draws = draw_answer_curves(LIBRARY, fit, search)
        low, high = np.quantile(draws.curves[:, draws.answer_index], [0.025, 0.975])
        left, right = np.quantile(draws.curves.argmin(axis=1), [0.025, 0.975])
        near_optimal = find_near_optimal(draws, 0.95)
        outcomes.append(
            (
                low <= fine[draws.answer_index] <= high,
                left <= fine.argmin() <= right,
                fine[draws.answer_index] - fine.min() <= bound_regret_gap(draws, 0.95),
                near_optimal is None
                or (
                    fine[near_optimal[0] : near_optimal[1] + 1]
                    <= fine.min() + near_optimal[2] * fine[draws.answer_index]
                ).all(),
            )
        )
    assert (np.mean(outcomes, axis=0) >= 0.92 - 4 * math.sqrt(0.92 * 0.08 / 200)).all()
    answers = compute_mean_curve(LIBRARY, fit).argmin(axis=1)
    assert fine[answers].mean() < 1.05 * fine.min()


def test_regions_grow_while_their_probability_is_high_enough():
    within = np.array([[0, 1, 1, 1, 0], [0, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 0, 1, 1, 0]], bool)
    assert grow_region(within, 2, 0.75) == (1, 2)
    assert grow_region(within, 2, 0.5) == (1, 3)
    assert grow_region(within, 2, 0.01) == (1, 4)
    curve = np.abs(np.arange(5) - 2.0)
    draws = AnswerCurves(2, 100 + curve, np.tile(100 + curve, (10, 1)))
    assert find_near_optimal(draws, 0.95) == (0, 4, 0.02)
    assert find_near_optimal(draws._replace(curves=100 + 3 * np.tile(curve, (10, 1))), 0.95) == (1, 3, 0.05)
    assert find_near_optimal(draws._replace(curves=100 + 50 * np.tile(curve, (10, 1))), 0.95) is None
    assert bound_regret_gap(AnswerCurves(1, curve, np.array([[3.0, 2.0], [1.0, 5.0]])), 1.0) == 4


def draw_two_dips(at, rng):
    """Two dips with Gaussian noise."""
    return 60 + 30 * np.cos(4 * math.pi * LIBRARY.points[at]) + 5 * rng.standard_normal(at.shape)


def test_two_dips_are_detected_and_one_is_not():
    rng = np.random.default_rng(9)
    at = np.tile(np.arange(len(LIBRARY.points)), (1, 40))
    low, top, high = find_second_dip(fit_curves(LIBRARY, at, draw_two_dips(at, rng)))
    assert low < top < high
    alarms = [find_second_dip(fit_curves(LIBRARY, at, draw_regrets(at, rng))) for _ in range(40)]
    assert sum(map(bool, alarms)) <= 2 + 4 * math.sqrt(2)
    few_indices = np.tile(np.arange(len(LIBRARY.points)), (1, 29))
    assert find_second_dip(fit_curves(LIBRARY, few_indices, draw_two_dips(few_indices, rng))) == ()


def test_runs_that_no_curve_fits_are_detected():
    rng = np.random.default_rng(10)
    at = np.tile(np.arange(len(LIBRARY.points)), (1, 100))
    steps = np.where(np.cos(16 * LIBRARY.points[at]) > 0, 90.0, 30.0)
    fit = fit_curves(LIBRARY, at, steps + 5 * rng.standard_normal(at.shape))
    assert has_misfit(LIBRARY, fit, compute_mean_curve(LIBRARY, fit)[0])
    assert state_answer(LIBRARY, fit, UNIT).posterior.misfit
    alarms = []
    for _ in range(40):
        fit = fit_curves(LIBRARY, at, draw_regrets(at, rng))
        alarms.append(has_misfit(LIBRARY, fit, compute_mean_curve(LIBRARY, fit)[0]))
    assert sum(alarms) <= 2


def test_constant_failures_are_a_misfit():
    """The library has no such curve. The nearest one falls, and its end would be called the best for sure."""
    rng = np.random.default_rng(12)
    at = np.tile(np.arange(len(LIBRARY.points)), (1, 80))

    def draw_constant_failures(at):
        return np.where(rng.random(at.shape) < 0.3, 40 + 60 * rng.random(at.shape), 2.5)

    fit = fit_curves(LIBRARY, at, draw_constant_failures(at))
    assert not has_misfit(LIBRARY, fit, compute_mean_curve(LIBRARY, fit)[0])
    assert has_constant_failures(LIBRARY, fit)
    assert state_answer(LIBRARY, fit, UNIT).posterior.misfit
    assert not any(has_constant_failures(LIBRARY, fit_curves(LIBRARY, at, draw_regrets(at, rng))) for _ in range(40))


@pytest.mark.parametrize("failing", [0.3, 0.9])
def test_statements_hold_where_failures_are_common_at_every_width(failing):
    """The largest width is best, and still fails often."""

    def draw_common_failures(at, rng):
        g = LIBRARY.points[at]
        return 2 * g + np.where(rng.random(at.shape) < failing * (1 - g / 2), rng.exponential(60, at.shape), 0.0)

    fits = [run_searches(budget=400, seed=seed, draw=draw_common_failures).fit_curves() for seed in range(20)]
    answers = [state_answer(LIBRARY, fit, UNIT) for fit in fits]
    covered = [b.low <= 2 * v + 60 * failing * (1 - v / 2) <= b.high for v, b in answers]
    assert np.mean([answer.value for answer in answers]) > 0.85
    assert sum(covered) >= 17


@pytest.mark.parametrize("regrets", [np.zeros, np.ones, lambda shape: -np.ones(shape)])
def test_equal_regrets_give_finite_statements(regrets):
    searches = run_searches(draw=lambda at, rng: regrets(at.shape))
    answer = state_answer(LIBRARY, searches.fit_curves(), UNIT)
    assert 0 < answer.value <= 1
    assert math.isfinite(answer.posterior.mean)
    assert answer.posterior.low <= answer.posterior.high


def test_other_runs_give_other_draws():
    first, second = (run_searches(seed=seed).fit_curves() for seed in (0, 1))
    equal_fits = second._replace(
        **{name: getattr(first, name) for name in first._fields if name not in ("runs", "mean")}
    )
    curves, repeated, other = (draw_answer_curves(LIBRARY, fit).curves.tolist() for fit in (first, first, equal_fits))
    assert curves == repeated
    assert curves != other
