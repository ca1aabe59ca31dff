"""Runs with a known regret curve, for tests of the two-part tuner."""

from __future__ import annotations

import numpy as np

from banditune.core.space import Range
from banditune.tuners import curve_fit, curve_library
from banditune.tuners.curve_library import select_library
from banditune.tuners.two_part_search import LockstepSearches

UNIT = Range("gamma", 0.0, 1.0, 1.0, False, "linear")


LOG = Range("pulls", 1.0, 1000.0, 50.0, True, "log")


LIBRARY = select_library(UNIT)


def compute_mean_regret(g):
    """Exploring costs 100 at width 1, and failing 300 at width 0."""
    return 100 * g + 300 * np.exp(-g / 0.06)


def draw_regrets(at, rng, library=LIBRARY):
    """Runs with that mean: small regrets, and failures of 500."""
    g = library.points[at]
    fails = rng.random(at.shape) < 0.6 * np.exp(-g / 0.06)
    return 100 * g * rng.gamma(4, 0.25, at.shape) + np.where(fails, 500.0, 0.0)


def run_searches(searches=1, budget=200, seed=0, draw=draw_regrets):
    """Searches in lock-step, from their first to their last run."""
    rng = np.random.default_rng(seed)
    searches_in_lockstep = LockstepSearches(LIBRARY, searches, budget, rng)
    while searches_in_lockstep.runs_left > 0:
        searches_in_lockstep.tell(draw(searches_in_lockstep.ask(), rng))
    return searches_in_lockstep


def compute_covariance(length):
    """The prior covariance of the deviation at the fine points."""
    x = np.log(LIBRARY.fine + curve_library.LOG_OFFSET)
    return curve_library.DEVIATION_SIZE**2 * np.exp(-0.5 * (np.subtract.outer(x, x) / length) ** 2)


def draw_residuals(points, rng, searches=1):
    """Residuals at the points and their variances. A third of the points has no run."""
    noise = np.where(
        rng.random((searches, points)) < 1 / 3, curve_fit.UNKNOWN_VARIANCE, rng.uniform(1e-4, 1e-2, (searches, points))
    )
    return np.where(noise < curve_fit.UNKNOWN_VARIANCE, rng.normal(0, 0.1, noise.shape), 0), noise
