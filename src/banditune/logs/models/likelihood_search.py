"""Peaks, zeros and curvatures of functions, and quantiles, for likelihood fits. SciPy is not needed."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.results.student_t import compute_student_quantile

MANY_DEGREES = 200
"""The degrees of freedom above which likelihood intervals use the normal quantile."""


NO_SPREAD_THRESHOLD = 0.016
"""The largest gain of twice the log likelihood by a spread at which arms count as equal.

Of logs without spread, 55% have a smaller gain. With a smaller gain, the most likely spread is less than a quarter of the
upper limit, and its value is chance.
"""


MIN_CURVATURE = 0.02
"""The smallest curvature of a likelihood. It is used for parameters without information."""


GOLDEN_SECTION = (3 - math.sqrt(5)) / 2


RealFunction = Callable[[float], float]


def find_peak(
    value: RealFunction, start: float, step: float, low: float, high: float, tolerance: float = 1e-6
) -> float:
    """Find the peak of a function with one peak on [low, high]: steps upwards from the start, then Brent's search.

    An end of the range is returned if the function rises up to it.
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
    """Find the peak between two ends, from a point between them: by parabolas, or golden sections if they do not help."""
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
    """Compute the step from x to the peak of the parabola through three points; infinite if they are on a line."""
    r = (x - v) * (at_x - at_w)
    q = (x - w) * (at_x - at_v)
    bottom = 2 * (q - r)
    return ((x - w) * q - (x - v) * r) / -bottom if bottom else math.inf


def find_crossing(rise: RealFunction, start: float, step: float, end: float, tolerance: float = 1e-4) -> float | None:
    """Find where a function that is negative at the start becomes positive on the way to the end; None if it does not.

    Steps double until it is positive. Then the zero is found by regula falsi (Illinois).
    """
    inside, at_inside = start, rise(start)
    outer = start
    while True:
        outer = min(outer + step, end) if end > start else max(outer - step, end)
        at_outer = rise(outer)
        if at_outer > 0:
            break
        if outer == end:
            return None
        inside, at_inside = outer, at_outer
        step *= 2
    side = 0
    for _ in range(60):
        if abs(outer - inside) <= tolerance * (1e-3 + abs(inside - start)):
            break
        new = (inside * at_outer - outer * at_inside) / (at_outer - at_inside)
        at_new = rise(new)
        if abs(at_new) < 1e-5:
            return new
        if at_new > 0:
            outer, at_outer = new, at_new
            at_inside *= 0.5 if side == 1 else 1.0
            side = 1
        else:
            inside, at_inside = new, at_new
            at_outer *= 0.5 if side == -1 else 1.0
            side = -1
    return (inside + outer) / 2


def find_interval_limits(
    profile: RealFunction,
    best: float,
    top: float,
    steps: tuple[float, float],
    bounds: tuple[float, float],
    reach: float,
) -> tuple[float | None, float | None]:
    """Find the ends of a likelihood interval, at which twice the log likelihood is `reach` squared below its maximum.

    The root of the difference is nearly linear, so few steps are needed. None if the difference never becomes so large.
    """

    def compute_excess(point: float) -> float:
        return math.sqrt(max(2 * (top - profile(point)), 0.0)) - reach

    low = find_crossing(compute_excess, best, steps[0], bounds[0]) if best > bounds[0] else None
    high = find_crossing(compute_excess, best, steps[1], bounds[1]) if best < bounds[1] else None
    return low, high


def compute_error_matrix(height: Callable[[FloatArray], float], best: FloatArray, steps: FloatArray) -> FloatArray:
    """Compute the inverse of the curvature of a log likelihood of several numbers at its top, by finite differences."""
    sides = np.diag(steps)

    def bend(first: FloatArray, second: FloatArray) -> float:
        signs = ((1, 1), (1, -1), (-1, 1), (-1, -1))
        rise = sum(sign1 * sign2 * height(best + (sign1 * first + sign2 * second) / 2) for sign1, sign2 in signs)
        return float(rise / (first.sum() * second.sum()))

    curvature = np.zeros((len(best), len(best)))
    for row, first in enumerate(sides):
        for column in range(row + 1):
            curvature[row, column] = curvature[column, row] = -bend(first, sides[column])
    sizes, ways = np.linalg.eigh(curvature)
    return np.asarray((ways / np.maximum(sizes, MIN_CURVATURE)) @ ways.T)


def compute_normal_quantile(probability: float) -> float:
    """Compute a quantile of the standard normal distribution."""
    return NormalDist().inv_cdf(probability)


def compute_mean_reach(confidence: float, cells: int) -> float:
    """Compute the reach of a likelihood interval for the mean of some cells, in roots of twice the log likelihood.

    It is exact for normal cells with unknown spread: the fall is n log(1 + t^2 / (n - 1)), with Student's t.
    """
    t = compute_student_quantile(0.5 + confidence / 2, cells - 1)
    return math.sqrt(cells * math.log1p(t * t / (cells - 1)))


@lru_cache(maxsize=256)
def compute_spread_reach(confidence: float, degrees: int, cells: int) -> float:
    """Compute the same for a spread with these degrees of freedom; `cells` is the number of cells in the likelihood.

    It is exact for normal cells: their squares w are chi-square, and the fall is w - n - n log(w / n). In a restricted
    likelihood both numbers are the same.
    """
    if degrees > MANY_DEGREES:
        return compute_normal_quantile(0.5 + confidence / 2)

    def fall(square: float) -> float:
        return square - cells - cells * math.log(square / cells)

    def compute_excess(reach: float) -> float:
        """Compute the logarithm of the ratio of the allowed error probability to that beyond the point."""
        low = find_crossing(lambda log: fall(cells * math.exp(log)) - reach**2, 0.0, 0.5, -300.0, 1e-9)
        high = find_crossing(lambda log: fall(cells * math.exp(log)) - reach**2, 0.0, 0.5, 20.0, 1e-9)
        below, above = (
            0.0 if end is None else _evaluate_chi_square(cells * math.exp(end), degrees)[0] for end in (low, high)
        )
        return math.log(1 - confidence) - math.log(max(1 - (above - below), 1e-300))

    reach = find_crossing(compute_excess, 0.5, 0.5, 20.0, 1e-6)
    return 20.0 if reach is None else reach


def compute_chi_square_quantile(probability: float, degrees: float) -> float:
    """Compute a quantile of the chi-square distribution: by Wilson and Hilferty, for few degrees with Newton steps."""
    part = 2 / (9 * degrees)
    quantile = degrees * max(1 - part + compute_normal_quantile(probability) * math.sqrt(part), 0.01) ** 3
    if degrees > 60:
        return float(quantile)
    for _ in range(50):
        below, density = _evaluate_chi_square(quantile, degrees)
        step = (below - probability) / density
        quantile = max(quantile - step, quantile / 2)
        if abs(step) < 1e-10 * quantile:
            break
    return float(quantile)


def _evaluate_chi_square(x: float, degrees: float) -> tuple[float, float]:
    """Compute the chi-square distribution function at x, by its series, and the density."""
    half, half_x = degrees / 2, x / 2
    density = math.exp((half - 1) * math.log(half_x) - half_x - math.lgamma(half))
    term = total = 1 / half
    count = half
    while term > 1e-16 * total:
        count += 1
        term *= half_x / count
        total += term
    return density * half_x * total, density / 2
