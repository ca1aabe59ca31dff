"""Thompson sampling's shortcut in single precision, emulated on the CPU, against double precision on the same streams."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy import float32

import banditune as bt
from banditune.core.arrays import copy_read_only
from banditune.core.binomial_draws import compute_stirling_error
from banditune.simulation import bind, dispatch
from banditune.simulation.gpu import gpu_scheduler, thompson_thinning_f32
from banditune.simulation.shortcuts import beta_tails
from banditune.simulation.spec import SimulationSpec
from helpers.singles import SINGLE, play_single

SHAPES = [(1, 1), (1, 3), (2.3, 1.1), (4.9, 700), (30, 20), (5000, 4000), (4e6, 3e6)]


def bound(function):
    return bind.bind_function(function, SINGLE)[0]


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_densities_have_five_digits(a, b):
    mean, sd = a / (a + b), math.sqrt(a * b / (a + b + 1)) / (a + b)
    a, b = float(float32(a)), float(float32(b))
    points = [float(float32(mean + away * sd)) for away in (-5, -2, -1, 0.5, 1, 3, 6)]
    points = [x for x in points if 0.001 < x < 0.999]
    assert len(points) >= 3
    for x in points:
        density = bound(thompson_thinning_f32.compute_beta_density_f32)(float32(a), float32(b), float32(x))
        assert density == pytest.approx(beta_tails.compute_beta_density(a, b, x), rel=5e-5)
        slope = bound(thompson_thinning_f32.compute_slope_f32)(float32(a), float32(b), float32(x))
        assert slope == pytest.approx(beta_tails.compute_log_density_slope(a, b, x), rel=1e-5, abs=1e-5)


def test_differences_of_a_logarithm_have_six_digits():
    for v in (-0.99, -0.6, -0.3, -1e-2, -1e-6, 1e-9, 1e-4, 0.1, 0.5, 0.9, 3.0, 100.0):
        v = float(float32(v))
        wanted = math.log1p(v) - v if abs(v) > 1e-3 else -v * v / 2 + v**3 / 3 - v**4 / 4
        assert bound(thompson_thinning_f32.compute_log1p_less)(float32(v)) == pytest.approx(wanted, rel=2e-6)


def test_small_terms():
    for chance in (1e-20, 1e-6, 0.01, 0.39):
        assert bound(thompson_thinning_f32.compute_poisson_rate_f32)(float32(chance)) == pytest.approx(
            beta_tails.compute_poisson_rate(chance), rel=1e-6
        )
    for z in (5.0, 9.0, 1e6):
        assert thompson_thinning_f32.compute_stirling_error_f32(float32(1 / z)) == pytest.approx(
            compute_stirling_error(z), abs=1e-8
        )


@pytest.mark.parametrize(
    ("problem", "horizon", "runs"),
    [
        pytest.param(bt.Bernoulli(arms=10), 200, 1000, marks=pytest.mark.slow),
        pytest.param(bt.Bernoulli(arms=10), 10_000, 1000, marks=pytest.mark.slow),
        pytest.param(bt.Bernoulli(arms=4, prior=(1, 30)), 2000, 1000, marks=pytest.mark.slow),
        pytest.param(bt.Bernoulli(arms=4, prior=(30, 1)), 2000, 1000, marks=pytest.mark.slow),
        pytest.param(bt.BetaRewards(arms=10), 2000, 1000, marks=pytest.mark.slow),
        pytest.param(bt.problems.two_point_mixture(), 200, 10_000, marks=pytest.mark.slow),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_single_precision_loses_as_much(problem, horizon, runs):
    spec = SimulationSpec(bt.Thompson(prior=(1, 1)), problem, horizon, seed=8)
    values = copy_read_only([[0.0], [0.01], [0.05], [0.2], [0.7], [1.0]])
    single, double = (play(spec, values, range(runs))[:, :, 0] for play in (play_single, dispatch.simulate_rows))
    apart = single - double
    se = apart.std(axis=1, ddof=1) / math.sqrt(runs)
    assert (np.abs(apart.mean(axis=1)) <= 4 * se + 1e-9).all()
    assert (se <= 0.01 * double.mean(axis=1)).all()


def test_rows_that_need_double_precision_are_played_apart(monkeypatch):
    played = []

    def play_rows(spec, params, runs, first_row, progress, precision):
        played.append((params[:, 0].tolist(), first_row, precision))
        return np.zeros((len(params), len(runs), 1))

    monkeypatch.setattr(gpu_scheduler, "_simulate_alike_rows", play_rows)
    spec = SimulationSpec(bt.Thompson(prior=(1, 1)), bt.Bernoulli(arms=3), 50)
    values = copy_read_only([[0.0], [1e-8], [1e-4], [0.5], [1.0]])
    assert gpu_scheduler.simulate_rows_on_gpu(spec, values, range(2), first_row=7).shape == (5, 2, 1)
    assert played == [([0.0], 7, None), ([1e-8, 1e-4], 8, "float64"), ([0.5, 1.0], 10, None)]
    played.clear()
    gpu_scheduler.simulate_rows_on_gpu(spec, values, range(2), dtype="float32")
    assert [(first, kind) for _, first, kind in played] == [(0, "float32")]


def test_bound_code_can_have_functions_replaced():
    @bt.kernel.scalar
    def one():
        return 1

    @bt.kernel.scalar
    def two():
        return 2

    @bt.kernel.scalar
    def twice():
        return 2 * one()

    plain, digest = bind.bind_function(twice)
    other, another = bind.bind_function(twice, {one: two})
    assert (plain(), other()) == (2, 4)
    assert digest != another


@pytest.mark.parametrize(("prior", "precision"), [((1, 1), "float32"), ((1e3, 2), "float32"), ((2, 1e4), "float64")])
def test_strong_priors_play_in_double_precision(prior, precision):
    """Shapes are kept in seven digits: what a pull adds to a prior of a million would be lost."""
    (play,) = bt.Thompson.shortcuts
    assert play.select_dtype(bt.Thompson(prior=prior), bt.Bernoulli(arms=3), 1000) == precision
