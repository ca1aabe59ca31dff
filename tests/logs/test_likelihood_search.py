"""Peaks, crossings and interval ends of likelihoods, compared with SciPy."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from banditune.logs.models.likelihood_search import (
    compute_chi_square_quantile,
    compute_mean_reach,
    compute_spread_reach,
    find_crossing,
    find_peak,
    run_brent_search,
)
from helpers.likelihood_intervals import compute_mean_cut, compute_spread_cut


def test_a_peak_is_found_inside_and_at_the_ends():
    assert find_peak(lambda x: -((x - 3.2) ** 2), 0.0, 0.1, -100, 100) == pytest.approx(3.2, abs=1e-5)
    assert find_peak(lambda x: -(abs(x - 3.2) ** 1.5), 50.0, 0.1, -100, 100) == pytest.approx(3.2, abs=1e-4)
    assert find_peak(lambda x: x, 0.0, 0.1, -1, 1) == 1
    assert find_peak(lambda x: -x, 0.0, 0.1, -1, 1) == -1
    assert run_brent_search(math.sin, 0.0, 1.0, 3.0, math.sin(1.0), 1e-7) == pytest.approx(math.pi / 2, abs=1e-6)


def test_a_crossing_is_found_where_one_exists():
    assert find_crossing(lambda x: x**3 - 8, 0.0, 0.1, 100.0) == pytest.approx(2, rel=1e-3)
    assert find_crossing(lambda x: -1 - x, 0.0, 0.1, -50.0) == pytest.approx(-1, rel=1e-3)
    assert find_crossing(lambda x: -1.0, 0.0, 0.1, 5.0) is None


@pytest.mark.parametrize("degrees", [1.5, 5, 20, 300])
def test_chi_square_quantiles_agree_with_scipy(degrees):
    for level in (0.025, 0.5, 0.975):
        assert compute_chi_square_quantile(level, degrees) == pytest.approx(stats.chi2.ppf(level, degrees), rel=2e-3)


def test_interval_ends_for_few_cells_agree_with_scipy():
    for degrees, count in ((1, 2), (2, 3), (3, 4), (5, 5), (150, 151)):
        assert compute_spread_reach(0.95, degrees, count) ** 2 == pytest.approx(
            compute_spread_cut(degrees, count), rel=1e-4
        )
    for count in (2, 3, 4, 30):
        assert compute_mean_reach(0.95, count) ** 2 == pytest.approx(compute_mean_cut(count), rel=0.02)


@pytest.mark.parametrize("confidence", [0.5, 0.9999, 0.999999])
def test_interval_ends_at_other_confidences_agree_with_scipy(confidence):
    for degrees, count in ((2, 3), (5, 5), (150, 151)):
        expected = compute_spread_cut(degrees, count, confidence)
        assert compute_spread_reach(confidence, degrees, count) ** 2 == pytest.approx(expected, rel=1e-4)
