"""Thompson sampling's shortcut in single precision, emulated on the CPU, compared with double precision."""

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
from helpers.single_precision import SINGLE_FUNCTIONS, simulate_in_single_precision

SHAPES = [(1, 1), (1, 3), (2.3, 1.1), (4.9, 700), (30, 20), (5000, 4000), (4e6, 3e6)]


def bind_single(function):
    return bind.bind_function(function, SINGLE_FUNCTIONS)[0]


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_beta_densities_have_five_digits(a, b):
    mean, sd = a / (a + b), math.sqrt(a * b / (a + b + 1)) / (a + b)
    a, b = float(float32(a)), float(float32(b))
    points = [float(float32(mean + deviations * sd)) for deviations in (-5, -2, -1, 0.5, 1, 3, 6)]
    points = [x for x in points if 0.001 < x < 0.999]
    assert len(points) >= 3
    for x in points:
        density = bind_single(thompson_thinning_f32.compute_beta_density_f32)(float32(a), float32(b), float32(x))
        assert density == pytest.approx(beta_tails.compute_beta_density(a, b, x), rel=5e-5)
        slope = bind_single(thompson_thinning_f32.compute_slope_f32)(float32(a), float32(b), float32(x))
        assert slope == pytest.approx(beta_tails.compute_log_density_slope(a, b, x), rel=1e-5, abs=1e-5)


def test_log1p_minus_its_argument_has_six_digits():
    for v in (-0.99, -0.6, -0.3, -1e-2, -1e-6, 1e-9, 1e-4, 0.1, 0.5, 0.9, 3.0, 100.0):
        v = float(float32(v))
        expected = math.log1p(v) - v if abs(v) > 1e-3 else -v * v / 2 + v**3 / 3 - v**4 / 4
        assert bind_single(thompson_thinning_f32.compute_log1p_remainder)(float32(v)) == pytest.approx(
            expected, rel=2e-6
        )


def test_poisson_rates_and_stirling_errors_agree_with_double_precision():
    for probability in (1e-20, 1e-6, 0.01, 0.39):
        assert bind_single(thompson_thinning_f32.compute_poisson_rate_f32)(float32(probability)) == pytest.approx(
            beta_tails.compute_poisson_rate(probability), rel=1e-6
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
def test_single_precision_has_the_regret_of_double_precision(problem, horizon, runs):
    spec = SimulationSpec(bt.Thompson(prior=(1, 1)), problem, horizon, seed=8)
    values = copy_read_only([[0.0], [0.01], [0.05], [0.2], [0.7], [1.0]])
    single, double = (
        simulate(spec, values, range(runs))[:, :, 0]
        for simulate in (simulate_in_single_precision, dispatch.simulate_rows)
    )
    difference = single - double
    se = difference.std(axis=1, ddof=1) / math.sqrt(runs)
    assert (np.abs(difference.mean(axis=1)) <= 4 * se + 1e-9).all()
    assert (se <= 0.01 * double.mean(axis=1)).all()


def test_rows_that_need_double_precision_are_simulated_separately(monkeypatch):
    calls = []

    def record_rows(spec, params, runs, first_row, progress, precision):
        calls.append((params[:, 0].tolist(), first_row, precision))
        return np.zeros((len(params), len(runs), 1))

    monkeypatch.setattr(gpu_scheduler, "_simulate_alike_rows", record_rows)
    spec = SimulationSpec(bt.Thompson(prior=(1, 1)), bt.Bernoulli(arms=3), 50)
    values = copy_read_only([[0.0], [1e-8], [1e-4], [0.5], [1.0]])
    assert gpu_scheduler.simulate_rows_on_gpu(spec, values, range(2), first_row=7).shape == (5, 2, 1)
    assert calls == [([0.0], 7, None), ([1e-8, 1e-4], 8, "float64"), ([0.5, 1.0], 10, None)]
    calls.clear()
    gpu_scheduler.simulate_rows_on_gpu(spec, values, range(2), dtype="float32")
    assert [(first, dtype) for _, first, dtype in calls] == [(0, "float32")]


def test_functions_of_bound_code_can_be_replaced():
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
    replaced, replaced_digest = bind.bind_function(twice, {one: two})
    assert (plain(), replaced()) == (2, 4)
    assert digest != replaced_digest


@pytest.mark.parametrize(("prior", "precision"), [((1, 1), "float32"), ((1e3, 2), "float32"), ((2, 1e4), "float64")])
def test_strong_priors_are_simulated_in_double_precision(prior, precision):
    """Shapes have seven digits. What a pull adds to a prior of a million would be lost."""
    (shortcut,) = bt.Thompson.shortcuts
    assert shortcut.select_dtype(bt.Thompson(prior=prior), bt.Bernoulli(arms=3), 1000) == precision
