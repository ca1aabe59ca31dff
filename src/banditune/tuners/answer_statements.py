"""Statements of the two-part tuner on its answer: intervals, regret gap, near-optimal values, second dip, misfit."""

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
"""The number of drawn curves from which quantiles are computed."""


FEWEST_RUNS = 30
"""The fewest runs of a point that is tested for a second dip or a misfit."""


SECOND_DIP_ALARM, MISFIT_ALARM = 0.05, 0.01
"""Upper limits of false alarm rates."""


STEP_SHARE = 0.25
"""At the lower end of a linear range, where a policy may stop exploring, the regret may have a step.

For example, UCB1 pulls arms with equal statistics in turn, but with width 0 it always pulls the first. The search makes no
run there, and smooth curves cannot have a step. If a curve may end within this share of its minimum, the end is stated as
unexplored.
"""


CONSTANT_FAILURE_SHARE, CONCLUSIVE_RUNS = 0.75, 1000
"""Limits for failures that hardly depend on the width.

Failures are constant if their cost at the largest width is more than this share of that at the smallest. If the largest
width is the answer, statements need this many runs.
"""


LEAST_EFFECTIVE_RUNS = 100
"""The smallest effective number of runs, (sum)^2 / (sum of squares), if the largest width is the answer.

If arms differ only on a few instances, the other instances have no information on the cost of exploring.
"""


NEAR_OPTIMAL_SHARES = (0.02, 0.05, 0.1, 0.2)
"""The shares of the lowest regret for a near-optimal region. The smallest share for which there is a region is stated."""


NEAR_OPTIMAL_DOUBT = 0.5
"""The error probability of a near-optimal region as a share of that of other statements.

It is smaller because a region is stated only if there appears to be one.
"""


Booleans = NDArray[np.bool_]


def select_search(fits: CurveFit, search: int) -> CurveFit:
    """Select the fit of one search."""
    return CurveFit(*(array[search : search + 1] for array in fits))


class AnswerCurves(NamedTuple):
    """The position of the answer, the expected curve, and curves drawn from the posterior, in order of widths or values."""

    answer_index: int
    mean: FloatArray
    curves: FloatArray


def draw_answer_curves(library: CurveLibrary, fits: CurveFit, search: int = 0) -> AnswerCurves:
    """Find the lowest point of the expected curve of one search, and draw curves from the posterior."""
    fit = select_search(fits, search)
    mean = compute_mean_curve(library, fit)[0]
    tempered = fit._replace(bad_weight=temper_bad_weights(library, fit.bad_weight))
    curves = draw_curves(library, tempered, STATEMENT_DRAWS, make_statement_rng(fit))[0]
    return AnswerCurves(int(mean.argmin()), mean, curves)


def make_statement_rng(fit: CurveFit) -> np.random.Generator:
    """Make random numbers for statements. The seed is a hash of the runs, so the same runs give the same statements."""
    return np.random.default_rng([crc32(fit.runs.tobytes()), crc32(fit.mean.tobytes())])


def bound_regret_gap(answer_curves: AnswerCurves, confidence: float) -> float:
    """Bound the difference between the regrets of the answer and of any other width, with probability `confidence`."""
    return float(
        np.quantile(answer_curves.curves[:, answer_curves.answer_index] - answer_curves.curves.min(axis=1), confidence)
    )


def find_near_optimal(answer_curves: AnswerCurves, confidence: float) -> tuple[int, int, float] | None:
    """Find the widest region around the answer in which every width is within a share of the lowest regret, and the share.

    The statement is joint. The whole region is within the share on a fraction of the curves that depends on `confidence`
    and `NEAR_OPTIMAL_DOUBT`. None if there is no region, or if it contains only the answer.
    """
    confidence = 1 - NEAR_OPTIMAL_DOUBT * (1 - confidence)
    lowest = answer_curves.curves.min(axis=1, keepdims=True)
    for share in NEAR_OPTIMAL_SHARES:
        is_near_optimal = answer_curves.curves <= lowest + share * np.abs(lowest)
        if is_near_optimal[:, answer_curves.answer_index].mean() >= confidence:
            low, high = grow_region(is_near_optimal, answer_curves.answer_index, confidence)
            if low < high:
                return low, high, share
    return None


def grow_region(is_near_optimal: Booleans, start: int, confidence: float) -> tuple[int, int]:
    """Extend a region to both sides in turn while all of it is near-optimal on at least `confidence` of the curves."""
    low = high = start
    is_region = is_near_optimal[:, start]
    sides = deque((-1, 1))
    while sides:
        side = sides.popleft()
        at = low - 1 if side < 0 else high + 1
        if 0 <= at < is_near_optimal.shape[1] and (is_region & is_near_optimal[:, at]).mean() >= confidence:
            is_region = is_region & is_near_optimal[:, at]
            low, high = min(low, at), max(high, at)
            sides.append(side)
    return low, high


def find_second_dip(fit: CurveFit) -> tuple[int, ...]:
    """Find three points of which the middle one is significantly above both others; empty if there are none.

    As in `check_unimodal`, Bonferroni's inequality over all pairs bounds false alarms, provided that the choice of points
    does not depend on their noise. Points with few runs are left out.
    """
    points = np.flatnonzero(fit.runs[0] >= FEWEST_RUNS)
    count = len(points)
    if count < 3:
        return ()
    mean, square = fit.mean[0, points], fit.variance[0, points] / fit.runs[0, points]
    height, triple = find_highest_between(np.subtract.outer(mean, mean) / np.sqrt(np.add.outer(square, square)))
    if height <= NormalDist().inv_cdf(1 - SECOND_DIP_ALARM / (count * (count - 1))):
        return ()
    return tuple(int(points[position]) for position in triple)


def has_misfit(library: CurveLibrary, fit: CurveFit, mean: FloatArray) -> bool:
    """Return whether the mean of a point differs significantly from the expected curve, so that no curve fits."""
    points = np.flatnonzero(fit.runs[0] >= FEWEST_RUNS)
    if not len(points):
        return False
    off = fit.mean[0, points] - mean[library.point_indices[points]]
    se = np.sqrt(fit.variance[0, points] / fit.runs[0, points])
    return bool((np.abs(off) > NormalDist().inv_cdf(1 - MISFIT_ALARM / (2 * len(points))) * se).any())


def is_carried_by_few(fit: CurveFit) -> bool:
    """Return whether the mean regret is from too few runs to distinguish constant failures from the cost of exploring."""
    squared = fit.mean[0] ** 2 + fit.variance[0]
    total_loss, squares = (float((fit.runs[0] * numbers).sum()) for numbers in (np.abs(fit.mean[0]), squared))
    return total_loss**2 < LEAST_EFFECTIVE_RUNS * squares


def has_constant_failures(library: CurveLibrary, fit: CurveFit) -> bool:
    """Return whether failures hardly depend on the width. All curves of the library assume that they do."""
    price = (compute_expected_heights(library, fit.bad_weight) @ library.bad_fine)[0]
    return bool(price[-1] > CONSTANT_FAILURE_SHARE * price[0])


def state_answer(
    library: CurveLibrary, fit: CurveFit, search_range: Range, confidence: float = 0.95, gap_divisor: float = 1.0
) -> SearchAnswer:
    """State the answer of one search and its uncertainty, as values of the parameter. `gap_divisor` divides the gap."""
    values = np.array([compute_value(search_range, float(width)) for width in library.fine])
    window = make_whole_window(search_range)._replace(library=library)
    return state_window_answer(
        window, fit, search_range, draw_answer_curves(library, fit), values, confidence, gap_divisor
    )


def state_window_answer(
    window: SearchWindow,
    fit: CurveFit,
    search_range: Range,
    answer_curves: AnswerCurves,
    values: FloatArray,
    confidence: float,
    gap_divisor: float,
) -> SearchAnswer:
    """State the answer from curves at these values, inside and outside the window."""
    library, fitted = window.library, compute_mean_curve(window.library, fit)[0]
    tail = (1 - confidence) / 2
    low, high = np.quantile(answer_curves.curves[:, answer_curves.answer_index], [tail, 1 - tail])
    if (fit.mean >= 0).all():  # regrets are below 0 only on tables whose order favours a policy
        low = max(low, 0.0)
    minima = answer_curves.curves.argmin(axis=1)
    best_interval = (
        float(values[int(np.quantile(minima, tail, method="lower"))]),
        float(values[int(np.quantile(minima, 1 - tail, method="higher"))]),
    )
    region = find_near_optimal(answer_curves, confidence)
    ends = (float(values[region[0]]), float(values[region[1]])) if region else (0.0, 0.0)
    lowest = answer_curves.curves.min(axis=1)
    may_end_low = np.quantile(answer_curves.curves[:, 0] - lowest - STEP_SHARE * np.abs(lowest), tail) < 0
    first, end = float(values[0]), search_range.scale_from_unit(0.0)
    at_end = answer_curves.answer_index == len(values) - 1
    is_misfit = (
        has_misfit(library, fit, fitted) or has_constant_failures(library, fit) or (at_end and is_carried_by_few(fit))
    )
    dip_values = window.compute_values(library.points[list(find_second_dip(fit))])
    return SearchAnswer(
        float(values[answer_curves.answer_index]),
        SearchPosterior(
            mean=float(answer_curves.mean[answer_curves.answer_index]),
            low=float(low),
            high=float(high),
            best_intervals={search_range.name: best_interval},
            regret_gap=bound_regret_gap(answer_curves, confidence) / gap_divisor,
            near_optimal=(*ends, region[2]) if region and ends[0] < ends[1] else (),
            second_dip=tuple(sorted(search_range.clip(float(v)) for v in dip_values)),
            misfit=is_misfit,
            confidence=confidence,
            unexplored=(end, first) if may_end_low and search_range.scale == "linear" and end < first else (),
        ),
    )


def compute_value(search_range: Range, width: float) -> float:
    """Compute the parameter's value at a width, which is relative to the range."""
    if search_range.scale == "log":
        return search_range.clip(search_range.high * width)
    return search_range.scale_from_unit(width)


def is_precision_reached(answer: SearchAnswer, search_range: Range, runs: int, precision: float) -> bool:
    """Return whether a search with this answer may stop, because no value is better by more than this share."""
    is_conclusive = runs >= CONCLUSIVE_RUNS or answer.value < compute_value(search_range, 1.0)
    return is_conclusive and bool(answer.posterior.meets_precision(precision))
