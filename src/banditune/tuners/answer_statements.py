"""What the two-part tuner states of its answer: intervals, the regret gap, near-optimal values, a second dip, a misfit."""

from __future__ import annotations

from collections import deque
from statistics import NormalDist
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from banditune.core.arrays import FloatArray
from banditune.core.space import Range
from banditune.core.tuner import SearchAnswer
from banditune.results.search_results import SearchPosterior
from banditune.tuners.curve_draws import compute_mean_curve, draw_curves, temper_bad_weights
from banditune.tuners.curve_fit import CurveFit, compute_expected_heights
from banditune.tuners.curve_library import CurveLibrary
from banditune.tuners.search_windows import SearchWindow, make_whole_window
from banditune.tuners.unimodality import find_highest_between

STATEMENT_DRAWS = 1000
"""Curves from which quantiles are taken."""


FEWEST_RUNS = 30
"""Runs that a point must have to speak against a single dip, or against the fit."""


SECOND_DIP_ALARM, MISFIT_ALARM = 0.05, 0.01
"""How often, at most, either is said where it is not so."""


STEP_SHARE = 0.25
"""At the lower end of a linear range, where a policy may stop exploring, the regret may step: of arms that are equal so far
UCB1 tries one after the other, with width 0 it stays with the first. No run is made there, and smooth curves cannot tell:
where they may end within this share of their lowest point, the end is named as untried.
"""


CONSTANT_FAILURE_SHARE, CONCLUSIVE_RUNS = 0.75, 1000
"""Failures that cost more than this share at the largest width of what they cost at the smallest are at every width. Where
the largest width is the answer, they may be; fewer runs than this do not tell.
"""


LEAST_EFFECTIVE_RUNS = 100
"""Where the largest width is the answer, so many runs must carry the mean regret, counted as (sum)^2 / (sum of squares).
Where few instances have arms that differ, all others say nothing of what exploring costs there.
"""


NEAR_OPTIMAL_SHARES = (0.02, 0.05, 0.1, 0.2)
"""A flat region is within the smallest of these of the lowest regret that can be said."""


NEAR_OPTIMAL_DOUBT = 0.5
"""A flat region is told only where there seems to be one; so it may be wrong on this share of the curves on which other
statements may.
"""


Booleans = NDArray[np.bool_]


def select_search(found: CurveFit, search: int) -> CurveFit:
    """What one search of many believes."""
    return CurveFit(*(array[search : search + 1] for array in found))


class AnswerCurves(NamedTuple):
    """What one search believes: the place of the answer, and curves to say how sure it is, at widths or values in order."""

    answer: int
    mean: FloatArray
    curves: FloatArray


def draw_answer_curves(library: CurveLibrary, found: CurveFit, search: int = 0) -> AnswerCurves:
    """The lowest point of the expected curve of one search, and curves drawn from what is believed."""
    one = select_search(found, search)
    mean = compute_mean_curve(library, one)[0]
    unsure = one._replace(bad_weight=temper_bad_weights(library, one.bad_weight))
    curves = draw_curves(library, unsure, STATEMENT_DRAWS, make_statement_rng(one))[0]
    return AnswerCurves(int(mean.argmin()), mean, curves)


def make_statement_rng(one: CurveFit) -> np.random.Generator:
    """Random numbers for statements. The same runs, the same words; other runs, other numbers: the seed is their hash."""
    return np.random.default_rng([crc32(one.runs.tobytes()), crc32(one.mean.tobytes())])


def bound_regret_gap(seen: AnswerCurves, level: float) -> float:
    """By how much another width may be better, at most, with probability `level`."""
    return float(np.quantile(seen.curves[:, seen.answer] - seen.curves.min(axis=1), level))


def find_near_optimal(seen: AnswerCurves, level: float) -> tuple[int, int, float] | None:
    """The widest stretch around the answer where every width is within a share of the lowest regret, and the share.

    "Every" is meant together: all of it is within that share on more than `level` of the curves, see `NEAR_OPTIMAL_DOUBT`. None if
    that can be said of the answer alone, or not even of that.
    """
    level = 1 - NEAR_OPTIMAL_DOUBT * (1 - level)
    lowest = seen.curves.min(axis=1, keepdims=True)
    for share in NEAR_OPTIMAL_SHARES:
        within = seen.curves <= lowest + share * np.abs(lowest)
        if within[:, seen.answer].mean() >= level:
            low, high = grow_region(within, seen.answer, level)
            if low < high:
                return low, high, share
    return None


def grow_region(within: Booleans, start: int, level: float) -> tuple[int, int]:
    """Let a stretch grow to both sides in turn while all of it is within on at least `level` of the curves."""
    low = high = start
    good = within[:, start]
    sides = deque((-1, 1))
    while sides:
        side = sides.popleft()
        at = low - 1 if side < 0 else high + 1
        if 0 <= at < within.shape[1] and (good & within[:, at]).mean() >= level:
            good = good & within[:, at]
            low, high = min(low, at), max(high, at)
            sides.append(side)
    return low, high


def find_second_dip(found: CurveFit) -> tuple[int, ...]:
    """Three points of which the one in the middle is surely above both others; none where one dip may be all there is.

    As in `study.unimodal`, Bonferroni's inequality over all pairs bounds false alarms, as far as points were not chosen by
    their luck. Points with few runs are left out.
    """
    points = np.flatnonzero(found.runs[0] >= FEWEST_RUNS)
    count = len(points)
    if count < 3:
        return ()
    mean, square = found.mean[0, points], found.variance[0, points] / found.runs[0, points]
    height, triple = find_highest_between(np.subtract.outer(mean, mean) / np.sqrt(np.add.outer(square, square)))
    if height <= NormalDist().inv_cdf(1 - SECOND_DIP_ALARM / (count * (count - 1))):
        return ()
    return tuple(int(points[place]) for place in triple)


def has_misfit(library: CurveLibrary, found: CurveFit, mean: FloatArray) -> bool:
    """Whether the runs at some point are surely off the expected curve: then no curve of the libraries is right."""
    points = np.flatnonzero(found.runs[0] >= FEWEST_RUNS)
    if not len(points):
        return False
    off = found.mean[0, points] - mean[library.places[points]]
    se = np.sqrt(found.variance[0, points] / found.runs[0, points])
    return bool((np.abs(off) > NormalDist().inv_cdf(1 - MISFIT_ALARM / (2 * len(points))) * se).any())


def is_carried_by_few(found: CurveFit) -> bool:
    """Whether too few runs carry the mean regret to tell failures that are everywhere from the price of exploring."""
    second = found.mean[0] ** 2 + found.variance[0]
    lost, squares = (float((found.runs[0] * numbers).sum()) for numbers in (np.abs(found.mean[0]), second))
    return lost**2 < LEAST_EFFECTIVE_RUNS * squares


def has_constant_failures(library: CurveLibrary, found: CurveFit) -> bool:
    """Whether failures hardly depend on the width: in every curve they do, so that its end would surely be the best."""
    price = (compute_expected_heights(library, found.bad_weight) @ library.bad_fine)[0]
    return bool(price[-1] > CONSTANT_FAILURE_SHARE * price[0])


def state_answer(
    library: CurveLibrary, found: CurveFit, among: Range, level: float = 0.95, room: float = 1.0
) -> SearchAnswer:
    """The answer of one search and what is known about it, in the parameter's own units; `room` divides the gap."""
    values = np.array([compute_value(among, float(width)) for width in library.fine])
    window = make_whole_window(among)._replace(library=library)
    return state_window_answer(window, found, among, draw_answer_curves(library, found), values, level, room)


def state_window_answer(
    window: SearchWindow,
    found: CurveFit,
    among: Range,
    seen: AnswerCurves,
    values: FloatArray,
    level: float,
    room: float,
) -> SearchAnswer:
    """The same where curves are known at these values: those of the window, or others too."""
    library, fitted = window.library, compute_mean_curve(window.library, found)[0]
    tail = (1 - level) / 2
    low, high = np.quantile(seen.curves[:, seen.answer], [tail, 1 - tail])
    if (found.mean >= 0).all():  # below 0 are only regrets of tables whose order favours a policy
        low = max(low, 0.0)
    minima = seen.curves.argmin(axis=1)
    flat = find_near_optimal(seen, level)
    ends = (float(values[flat[0]]), float(values[flat[1]])) if flat else (0.0, 0.0)
    lowest = seen.curves.min(axis=1)
    near = np.quantile(seen.curves[:, 0] - lowest - STEP_SHARE * np.abs(lowest), tail) < 0
    first, end = float(values[0]), among.at(0.0)
    at_end = seen.answer == len(values) - 1
    off = (
        has_misfit(library, found, fitted)
        or has_constant_failures(library, found)
        or (at_end and is_carried_by_few(found))
    )
    return SearchAnswer(
        float(values[seen.answer]),
        SearchPosterior(
            float(seen.mean[seen.answer]), float(low), float(high),
            float(values[int(np.quantile(minima, tail, method="lower"))]),
            float(values[int(np.quantile(minima, 1 - tail, method="higher"))]),
            bound_regret_gap(seen, level) / room,
            (*ends, flat[2]) if flat and ends[0] < ends[1] else (),
            tuple(sorted(among.within(float(v)) for v in window.values(library.points[list(find_second_dip(found))]))),
            off, level,
            (end, first) if near and among.scale == "linear" and end < first else (),
        ),
    )  # fmt: skip


def compute_value(among: Range, width: float) -> float:
    """The parameter's value at a width that is relative to the range."""
    if among.scale == "log":
        return among.within(among.high * width)
    return among.at(width)


def is_precision_reached(found: SearchAnswer, among: Range, runs: int, within: float) -> bool:
    """Whether a search that found this in so many runs may stop: nothing else is better by more than this share."""
    told = runs >= CONCLUSIVE_RUNS or found.value < compute_value(among, 1.0)
    return told and bool(found.belief.keeps(within))
