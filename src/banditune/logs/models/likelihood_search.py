"""Peaks, crossings and curvatures of functions, and quantiles: what fits by likelihood need, without SciPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.results.student_t import compute_student_quantile

MANY_DEGREES = 200
"""Degrees of freedom from which on the normal quantile is good enough for likelihood intervals."""


NO_SPREAD_THRESHOLD = 0.016
"""Means of arms are all alike where twice the log likelihood is not higher by more than this with any spread.

Of logs without spread more than half (55%) are below. The spread that fits best is there less than a quarter of what the
logs allow, and how much less is chance: 6e-5 or 0 mean the same.
"""


MIN_CURVATURE = 0.02
"""The least curvature of a likelihood: numbers that nothing is known about are not moved by anything."""


GOLDEN_SECTION = (3 - math.sqrt(5)) / 2


RealFunction = Callable[[float], float]


def find_peak(
    value: RealFunction, start: float, step: float, low: float, high: float, tolerance: float = 1e-6
) -> float:
    """Where a function with one peak is highest on [low, high]: steps uphill from the start, then Brent's search.

    An end of the range is returned where the function still rises there.
    """
    middle = min(max(start, low), high)
    best = value(middle)
    left, right = max(middle - step, low), min(middle + step, high)
    at_left, at_right = value(left), value(right)
    while at_right > best and right < high:
        left, middle, best = middle, right, at_right
        step *= 2
        right = min(right + step, high)
        at_right = value(right)
    while at_left > best and left > low:
        right, middle, best = middle, left, at_left
        step *= 2
        left = max(left - step, low)
        at_left = value(left)
    if at_right > best:
        return right
    if at_left > best:
        return left
    return run_brent_search(value, left, middle, right, best, tolerance)


def run_brent_search(
    value: RealFunction, left: float, middle: float, right: float, best: float, tolerance: float
) -> float:
    """The peak between two ends, from a point in between: by parabolas, or golden sections where they do not help."""
    second = third = middle
    at_second = at_third = best
    moved = before = right - left
    for _ in range(100):
        centre = (left + right) / 2
        if abs(middle - centre) <= 2 * tolerance - (right - left) / 2:
            break
        step = _compute_parabola_step(middle, best, second, at_second, third, at_third)
        inside = left < middle + step < right
        if not inside or abs(step) >= abs(before) / 2:
            step = GOLDEN_SECTION * ((right if middle < centre else left) - middle)
            moved = step
        before, moved = moved, step
        new = middle + (step if abs(step) >= tolerance else math.copysign(tolerance, step))
        at_new = value(new)
        if at_new >= best:
            left, right = (middle, right) if new >= middle else (left, middle)
            third, at_third, second, at_second, middle, best = second, at_second, middle, best, new, at_new
            continue
        left, right = (new, right) if new < middle else (left, new)
        if at_new >= at_second or second == middle:
            third, at_third, second, at_second = second, at_second, new, at_new
        elif at_new >= at_third or third in (middle, second):
            third, at_third = new, at_new
    return middle


def _compute_parabola_step(x: float, at_x: float, v: float, at_v: float, w: float, at_w: float) -> float:
    """The step from x to the peak of the parabola through three points; infinite where they lie on a line."""
    r = (x - v) * (at_x - at_w)
    q = (x - w) * (at_x - at_v)
    bottom = 2 * (q - r)
    return ((x - w) * q - (x - v) * r) / -bottom if bottom else math.inf


def find_crossing(rise: RealFunction, start: float, step: float, end: float, tolerance: float = 1e-4) -> float | None:
    """Where a function that is negative at the start becomes positive on the way to the end; None if it does not.

    Steps double until it has; then regula falsi (Illinois).
    """
    inner, at_inner = start, rise(start)
    outer = start
    while True:
        outer = min(outer + step, end) if end > start else max(outer - step, end)
        at_outer = rise(outer)
        if at_outer > 0:
            break
        if outer == end:
            return None
        inner, at_inner = outer, at_outer
        step *= 2
    side = 0
    for _ in range(60):
        if abs(outer - inner) <= tolerance * (1e-3 + abs(inner - start)):
            break
        new = (inner * at_outer - outer * at_inner) / (at_outer - at_inner)
        at_new = rise(new)
        if abs(at_new) < 1e-5:
            return new
        if at_new > 0:
            outer, at_outer = new, at_new
            at_inner *= 0.5 if side == 1 else 1.0
            side = 1
        else:
            inner, at_inner = new, at_new
            at_outer *= 0.5 if side == -1 else 1.0
            side = -1
    return (inner + outer) / 2


def find_interval_limits(
    profile: RealFunction,
    best: float,
    top: float,
    steps: tuple[float, float],
    bounds: tuple[float, float],
    reach: float,
) -> tuple[float | None, float | None]:
    """The ends of a likelihood interval: where twice the log likelihood has fallen by `reach` squared below the top.

    On the scale of its root the likelihood is nearly a line, so few steps are needed. None where it never falls so far.
    """

    def beyond(place: float) -> float:
        return math.sqrt(max(2 * (top - profile(place)), 0.0)) - reach

    low = find_crossing(beyond, best, steps[0], bounds[0]) if best > bounds[0] else None
    high = find_crossing(beyond, best, steps[1], bounds[1]) if best < bounds[1] else None
    return low, high


def compute_error_matrix(height: Callable[[FloatArray], float], best: FloatArray, steps: FloatArray) -> FloatArray:
    """The inverse of how a log likelihood of several numbers is curved at its top, by differences of such steps."""
    sides = np.diag(steps)

    def bend(first: FloatArray, second: FloatArray) -> float:
        signs = ((1, 1), (1, -1), (-1, 1), (-1, -1))
        rise = sum(one * two * height(best + (one * first + two * second) / 2) for one, two in signs)
        return float(rise / (first.sum() * second.sum()))

    curvature = np.zeros((len(best), len(best)))
    for row, first in enumerate(sides):
        for column in range(row + 1):
            curvature[row, column] = curvature[column, row] = -bend(first, sides[column])
    sizes, ways = np.linalg.eigh(curvature)
    return np.asarray((ways / np.maximum(sizes, MIN_CURVATURE)) @ ways.T)


def compute_normal_quantile(level: float) -> float:
    """A quantile of the standard normal distribution."""
    return NormalDist().inv_cdf(level)


def compute_mean_reach(confidence: float, cells: int) -> float:
    """How far a likelihood interval for the mean of so many cells reaches, in roots of twice the log likelihood.

    It is exact for normal cells whose spread is not known: there the fall is n log(1 + t^2 / (n - 1)), with Student's t.
    """
    t = compute_student_quantile(0.5 + confidence / 2, cells - 1)
    return math.sqrt(cells * math.log1p(t * t / (cells - 1)))


@lru_cache(maxsize=256)
def compute_spread_reach(confidence: float, degrees: int, cells: int) -> float:
    """The same for a spread that so many degrees of freedom tell; `cells` is how many count in the likelihood.

    It is exact for normal cells: their squares w are chi-square, and the fall is w - n - n log(w / n). In a restricted
    likelihood both numbers are the same.
    """
    if degrees > MANY_DEGREES:
        return compute_normal_quantile(0.5 + confidence / 2)

    def fall(square: float) -> float:
        return square - cells - cells * math.log(square / cells)

    def beyond(reach: float) -> float:
        """By how much less is left out than allowed, in logarithms: what is left out may be a millionth."""
        low = find_crossing(lambda log: fall(cells * math.exp(log)) - reach**2, 0.0, 0.5, -300.0, 1e-9)
        high = find_crossing(lambda log: fall(cells * math.exp(log)) - reach**2, 0.0, 0.5, 20.0, 1e-9)
        below, above = (
            0.0 if end is None else _evaluate_chi_square(cells * math.exp(end), degrees)[0] for end in (low, high)
        )
        return math.log(1 - confidence) - math.log(max(1 - (above - below), 1e-300))

    reach = find_crossing(beyond, 0.5, 0.5, 20.0, 1e-6)
    return 20.0 if reach is None else reach


def compute_chi_square_quantile(level: float, degrees: float) -> float:
    """A quantile of the chi-square distribution: by Wilson and Hilferty, for few degrees with Newton's steps after it."""
    part = 2 / (9 * degrees)
    found = degrees * max(1 - part + compute_normal_quantile(level) * math.sqrt(part), 0.01) ** 3
    if degrees > 60:
        return float(found)
    for _ in range(50):
        below, density = _evaluate_chi_square(found, degrees)
        step = (below - level) / density
        found = max(found - step, found / 2)
        if abs(step) < 1e-10 * found:
            break
    return float(found)


def _evaluate_chi_square(x: float, degrees: float) -> tuple[float, float]:
    """The share of the chi-square distribution below x, by its series, and its density."""
    half, place = degrees / 2, x / 2
    density = math.exp((half - 1) * math.log(place) - place - math.lgamma(half))
    term = total = 1 / half
    count = half
    while term > 1e-16 * total:
        count += 1
        term *= place / count
        total += term
    return density * place * total, density / 2
