"""The library of curves: good runs, failures and their prior."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from banditune.core.space import Range
from banditune.tuners import curve_library, failure_library
from banditune.tuners.answer_statements import (
    compute_value,
)
from banditune.tuners.curve_library import select_library
from helpers.known_curves import LIBRARY, LOG, UNIT, compute_covariance


def test_the_library_contains_valid_curves():
    plain = len(curve_library.GOOD_POWERS) * len(curve_library.GOOD_CONSTANTS)
    assert np.exp(LIBRARY.good_prior).sum() == pytest.approx(1)
    assert (np.diff(LIBRARY.good_fine[:plain], axis=1) > 0).all()
    assert (np.diff(LIBRARY.bad_fine, axis=1) <= 0).all()
    assert LIBRARY.fine[0] == 1 / 162
    assert LIBRARY.fine[-1] == 1
    assert (LIBRARY.points == LIBRARY.fine[LIBRARY.point_indices]).all()
    assert (LIBRARY.good == LIBRARY.good_fine[:, LIBRARY.point_indices]).all()
    assert select_library(Range("x", -3.0, 5.0, 0.0, False, "linear")) is LIBRARY


def test_a_log_scale_has_points_at_every_order_of_magnitude():
    library = select_library(LOG)
    values = [compute_value(LOG, width) for width in library.fine]
    assert (values[0], values[-1]) == (1, 1000)
    assert values == sorted(values)
    assert np.diff(np.log(library.fine)) == pytest.approx(math.log(1000) / 161)
    assert compute_value(UNIT, 0.25) == 0.25


def test_the_roots_give_the_covariance_of_the_deviation():
    assert len(LIBRARY.roots) >= 2
    for root, length in zip(LIBRARY.roots, curve_library.DEVIATION_LENGTHS, strict=True):
        np.testing.assert_allclose(
            root @ root.T, compute_covariance(length), atol=1e-5 * curve_library.DEVIATION_SIZE**2
        )


def test_far_and_slow_failures_have_a_lower_prior():
    assert np.exp(
        curve_library.compute_even_prior([(1.0, 0.1, 1.0), (9.0, 0.5, 2.0), (1.0, 0.7, 1.0)])
    ) == pytest.approx([1, 1, curve_library.FAR_PRIOR])
    log = select_library(LOG)
    weight = np.exp(log.bad_prior).reshape(curve_library.LOG_FAILURE_REACHES, len(curve_library.LOG_FAILURE_DECAYS), -1)
    for decay, share in enumerate(curve_library.LOG_FAILURE_DECAYS.values()):
        assert weight[0, decay] == pytest.approx(share)
        assert weight[-1, decay] == pytest.approx(curve_library.FAR_PRIOR * share)


def test_the_prior_of_failures_is_high_near_observed_ones():
    """The density is a mixture of Gaussians of the logarithms. No failure has far less than its even share."""
    failure = (0.4, 0.13, 1.5)
    expected = np.mean(
        [
            np.mean(
                [
                    np.prod(stats.norm.pdf(np.log(failure), np.log(other), failure_library.KERNEL_WIDTHS))
                    for other in kind
                ]
            )
            for kind in failure_library.OBSERVED_FAILURES.values()
        ]
    )
    other_failure = (0.4, 0.4, 1.5)
    ratio = np.divide(*failure_library.compute_failure_density([failure, other_failure]))
    assert ratio > 2
    scale = failure_library.compute_failure_density([failure])[0] / expected
    assert scale == pytest.approx((2 * math.pi) ** 1.5 * np.prod(failure_library.KERNEL_WIDTHS))
    failures = curve_library.list_failures(
        curve_library.FAILURE_HEIGHTS, list(product(curve_library.FAILURE_REACHES, curve_library.FAILURE_DECAYS))
    )
    prior, even = (
        np.exp(curve_library.compute_observed_prior(failures)),
        np.exp(curve_library.compute_even_prior(failures)),
    )
    assert prior.mean() == pytest.approx(1)
    assert np.exp(LIBRARY.bad_prior) == pytest.approx(prior)
    for number in (0, 1234, len(failures) - 1):
        height, reach, decay = failures[number]
        way, size = divmod(number, len(LIBRARY.heights))
        curve = height * np.maximum(np.exp(-((LIBRARY.fine / reach) ** decay)), curve_library.LEAST_FAILURE_SHARE)
        assert LIBRARY.heights[size] * LIBRARY.bad_fine[way] == pytest.approx(curve)
    assert (prior >= curve_library.UNSEEN_SHARE * even / even.mean() * (1 - 1e-9)).all()
