"""Helpers of indices against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import banditune as bt

RNG = np.random.default_rng(0)
SHAPES = np.exp(RNG.uniform(-2, 9, (300, 2)))


def test_the_largest_mean_has_the_divergence_that_is_allowed():
    means, levels = RNG.uniform(0.01, 0.9, 300), np.exp(RNG.uniform(-12, 0.5, 300))
    bounds = np.array([bt.kernel.divergence_upper_bound(*pair) for pair in zip(means, levels, strict=True)])
    assert (means < bounds).all()
    assert (bounds < 1).all()
    divergences = [bt.kernel.bernoulli_divergence(*pair) for pair in zip(means, bounds, strict=True)]
    assert divergences == pytest.approx(levels, rel=1e-8)


@pytest.mark.parametrize(
    ("mean", "level", "expected"), [(0.0, 0.5, 1 - np.exp(-0.5)), (1.0, 3.0, 1.0), (0.3, 0.0, 0.3)]
)
def test_the_largest_mean_at_the_ends(mean, level, expected):
    assert bt.kernel.divergence_upper_bound(mean, level) == pytest.approx(expected, rel=1e-15)


def test_the_tail_of_a_beta_number_is_that_of_scipy():
    places = stats.beta.ppf(RNG.uniform(0.001, 0.999, 300), *SHAPES.T)
    tails = [bt.kernel.beta_tail(x, a, b) for x, (a, b) in zip(places, SHAPES, strict=True)]
    assert tails == pytest.approx(stats.beta.sf(places, *SHAPES.T), rel=1e-8, abs=1e-10)


def test_the_quantile_of_a_beta_number_is_that_of_scipy():
    tails = np.exp(RNG.uniform(-14, -0.7, 300))
    quantiles = [bt.kernel.beta_upper_quantile(tail, a, b) for tail, (a, b) in zip(tails, SHAPES, strict=True)]
    assert quantiles == pytest.approx(stats.beta.isf(tails, *SHAPES.T), rel=1e-9)


def test_the_median_of_a_symmetric_law_is_exactly_one_half():
    assert {bt.kernel.beta_upper_quantile(0.5, shape, shape) for shape in np.linspace(0.1, 50, 500)} == {0.5}
