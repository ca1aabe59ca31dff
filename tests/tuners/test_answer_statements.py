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
from helpers.known_curves import LIBRARY, UNIT, played, searched, truth


def test_statements_hold_on_a_known_curve():
    """200 searches: each kind of statement must hold in 92% of them, less 4 standard errors of that share."""
    found = searched(200, 200, seed=8)
    fitted = found.fit_curves()
    fine = truth(LIBRARY.fine)
    held = []
    for search in range(200):
        seen = draw_answer_curves(LIBRARY, fitted, search)
        low, high = np.quantile(seen.curves[:, seen.answer_index], [0.025, 0.975])
        left, right = np.quantile(seen.curves.argmin(axis=1), [0.025, 0.975])
        flat = find_near_optimal(seen, 0.95)
        held.append(
            (
                low <= fine[seen.answer_index] <= high,
                left <= fine.argmin() <= right,
                fine[seen.answer_index] - fine.min() <= bound_regret_gap(seen, 0.95),
                flat is None or (fine[flat[0] : flat[1] + 1] <= fine.min() + flat[2] * fine[seen.answer_index]).all(),
            )
        )
    assert (np.mean(held, axis=0) >= 0.92 - 4 * math.sqrt(0.92 * 0.08 / 200)).all()
    answers = compute_mean_curve(LIBRARY, fitted).argmin(axis=1)
    assert fine[answers].mean() < 1.05 * fine.min()


def test_a_stretch_grows_while_all_of_it_is_within():
    within = np.array([[0, 1, 1, 1, 0], [0, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 0, 1, 1, 0]], bool)
    assert grow_region(within, 2, 0.75) == (1, 2)
    assert grow_region(within, 2, 0.5) == (1, 3)
    assert grow_region(within, 2, 0.01) == (1, 4)
    curve = np.abs(np.arange(5) - 2.0)
    seen = AnswerCurves(2, 100 + curve, np.tile(100 + curve, (10, 1)))
    assert find_near_optimal(seen, 0.95) == (0, 4, 0.02)
    assert find_near_optimal(seen._replace(curves=100 + 3 * np.tile(curve, (10, 1))), 0.95) == (1, 3, 0.05)
    assert find_near_optimal(seen._replace(curves=100 + 50 * np.tile(curve, (10, 1))), 0.95) is None
    assert bound_regret_gap(AnswerCurves(1, curve, np.array([[3.0, 2.0], [1.0, 5.0]])), 1.0) == 4


def waves(at, rng):
    """Two dips with Gaussian noise."""
    return 60 + 30 * np.cos(4 * math.pi * LIBRARY.points[at]) + 5 * rng.standard_normal(at.shape)


def test_two_dips_are_noticed_and_one_is_not():
    rng = np.random.default_rng(9)
    at = np.tile(np.arange(len(LIBRARY.points)), (1, 40))
    low, top, high = find_second_dip(fit_curves(LIBRARY, at, waves(at, rng)))
    assert low < top < high
    alarms = [find_second_dip(fit_curves(LIBRARY, at, played(at, rng))) for _ in range(40)]
    assert sum(map(bool, alarms)) <= 2 + 4 * math.sqrt(2)
    few = np.tile(np.arange(len(LIBRARY.points)), (1, 29))
    assert find_second_dip(fit_curves(LIBRARY, few, waves(few, rng))) == ()


def test_runs_that_no_curve_fits_are_noticed():
    rng = np.random.default_rng(10)
    at = np.tile(np.arange(len(LIBRARY.points)), (1, 100))
    steps = np.where(np.cos(16 * LIBRARY.points[at]) > 0, 90.0, 30.0)
    found = fit_curves(LIBRARY, at, steps + 5 * rng.standard_normal(at.shape))
    assert has_misfit(LIBRARY, found, compute_mean_curve(LIBRARY, found)[0])
    assert state_answer(LIBRARY, found, UNIT).posterior.misfit
    alarms = []
    for _ in range(40):
        found = fit_curves(LIBRARY, at, played(at, rng))
        alarms.append(has_misfit(LIBRARY, found, compute_mean_curve(LIBRARY, found)[0]))
    assert sum(alarms) <= 2


def test_failures_that_no_width_ends_are_beyond_the_curves():
    """The library has none: whichever curve is nearest falls, and its end would be called the best for sure."""
    rng = np.random.default_rng(12)
    at = np.tile(np.arange(len(LIBRARY.points)), (1, 80))

    def constant(at):
        return np.where(rng.random(at.shape) < 0.3, 40 + 60 * rng.random(at.shape), 2.5)

    found = fit_curves(LIBRARY, at, constant(at))
    assert not has_misfit(LIBRARY, found, compute_mean_curve(LIBRARY, found)[0])
    assert has_constant_failures(LIBRARY, found)
    assert state_answer(LIBRARY, found, UNIT).posterior.misfit
    assert not any(has_constant_failures(LIBRARY, fit_curves(LIBRARY, at, played(at, rng))) for _ in range(40))


@pytest.mark.parametrize("failing", [0.3, 0.9])
def test_failures_may_be_common_at_every_width(failing):
    """The largest width is best, and still fails often: what is said of it must be true."""

    def common(at, rng):
        g = LIBRARY.points[at]
        return 2 * g + np.where(rng.random(at.shape) < failing * (1 - g / 2), rng.exponential(60, at.shape), 0.0)

    found = [searched(budget=400, seed=seed, play=common).fit_curves() for seed in range(20)]
    said = [state_answer(LIBRARY, one, UNIT) for one in found]
    held = [b.low <= 2 * v + 60 * failing * (1 - v / 2) <= b.high for v, b in said]
    assert np.mean([answer.value for answer in said]) > 0.85
    assert sum(held) >= 17


@pytest.mark.parametrize("regrets", [np.zeros, np.ones, lambda shape: -np.ones(shape)])
def test_runs_that_all_lose_the_same_are_no_trouble(regrets):
    found = searched(play=lambda at, rng: regrets(at.shape))
    answer = state_answer(LIBRARY, found.fit_curves(), UNIT)
    assert 0 < answer.value <= 1
    assert math.isfinite(answer.posterior.mean)
    assert answer.posterior.low <= answer.posterior.high


def test_what_is_said_is_drawn_anew_for_other_runs_of_the_same_number():
    first, second = (searched(seed=seed).fit_curves() for seed in (0, 1))
    alike = second._replace(**{name: getattr(first, name) for name in first._fields if name not in ("runs", "mean")})
    curves, repeated, other = (draw_answer_curves(LIBRARY, fit).curves.tolist() for fit in (first, first, alike))
    assert curves == repeated
    assert curves != other
