"""Where in a range the optimum can be: an outline of all runs on a log axis, and the window that a library is laid over.

A library of curves sees two decades of widths. Where the optimum is below its first steps, or the range spans more decades,
it is laid over a part of the range, a window. What lies outside is not forgotten: an outline, a Gaussian process on
logarithms of mean regrets, says what may be lost there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from banditune.core.arrays import FloatArray, IntArray
from banditune.core.space import Range
from banditune.tuners.curve_library import FINE_POINTS, CurveLibrary, get_linear_library, select_library

NODE_SPACING = 0.25
"""Decades between two nodes of an outline."""


SLOPE_SCALES, DIP_SCALES = (1.5, 1.5), (0.5, 0.6)
"""An outline is a sum of two: how far the logarithm of its regrets may be from their mean, over how many decades."""


SPREAD_LENGTH = 0.6
"""Nodes share what they know of the spread of runs over so many decades."""


NODE_ERROR = 0.05
"""How far a node's mean regret may be from a smooth outline, as a share."""


PRIOR_RUNS = 2.0
"""So many runs whose spread is their mean are taken for granted at every node."""


WIDE_DECADES, WIDE_INTEGER_DECADES = 1.5, 4.0
"""Log scales of more decades than this are searched by an outline first. Whole numbers, such as pulls, begin at 1, so that
three decades of them are usual; the library of log scales knows failures that end over decades, as theirs do.
"""


LEAST_WINDOW_WIDTH = 0.5 / FINE_POINTS
"""The smallest width that a run in a window may have."""


OPTIMUM_WIDTHS = (0.04, 0.5)
"""Where in a new window the optimum should be."""


SCATTER_RATIO = 2.0
"""Failures scatter more than exploring: the side where runs scatter so many times as much explores less."""


class SearchWindow(NamedTuple):
    """A library laid over a part of a range: the width w is the value base + span w, or span / w where it is `inverse`."""

    library: CurveLibrary
    base: float
    span: float
    inverse: bool
    first: int
    """The first of the library's fine points that is in the range."""

    def values(self, widths: FloatArray) -> FloatArray:
        """The parameter's values at these widths."""
        return np.asarray(self.span / widths if self.inverse else self.base + self.span * widths, np.float64)

    def widths(self, values: FloatArray) -> FloatArray:
        """The inverse of `values`."""
        return np.asarray(self.span / values if self.inverse else (values - self.base) / self.span, np.float64)

    @property
    def from_point(self) -> int:
        """The first of the points where runs are made that is in the range."""
        return int(np.searchsorted(self.library.places, self.first))

    def places(self, values: FloatArray) -> IntArray:
        """The nearest point of each value; -1 for a value outside."""
        widths = self.widths(values)
        near = np.abs(np.subtract.outer(widths, self.library.points)).argmin(axis=1)
        seen = (widths >= LEAST_WINDOW_WIDTH) & (widths <= 1 + LEAST_WINDOW_WIDTH)
        return np.where(seen, np.maximum(near, self.from_point), -1)


def make_whole_window(among: Range) -> SearchWindow:
    """The library over the whole range."""
    if among.scale == "log":
        library = get_linear_library() if LogAxis(among).is_wide else select_library(among)
        return SearchWindow(library, 0.0, among.high, False, 0)
    return SearchWindow(get_linear_library(), among.low, among.high - among.low, False, 0)


def make_window(among: Range, span: float, inverse: bool = False) -> SearchWindow:
    """The library of linear scales over a part of a range: up to `span`, or from there on."""
    library = get_linear_library()
    if among.scale == "linear":
        return SearchWindow(library, among.low, span, False, 0)
    span = min(max(span, among.low), among.high)
    least = span / among.high if inverse else among.low / span
    if FINE_POINTS * least < 1:
        return SearchWindow(library, 0.0, span, inverse, 0)
    # An end of the range that is in the window is one of its points.
    step = round(FINE_POINTS * least)
    return SearchWindow(
        library, 0.0, among.high * step / FINE_POINTS if inverse else among.low * FINE_POINTS / step, inverse, step - 1
    )


@dataclass(frozen=True)
class LogAxis:
    """Logarithms to the base of 10 of values, or of widths, shares of the range, where the scale is linear."""

    among: Range

    @property
    def is_log(self) -> bool:
        """Whether the scale is one."""
        return self.among.scale == "log"

    @property
    def decades(self) -> float:
        """How many powers of ten a log scale spans; 0 for a linear one."""
        return math.log10(self.among.high / self.among.low) if self.is_log else 0.0

    @property
    def is_wide(self) -> bool:
        """Whether no library can be laid over all of it."""
        return self.decades > (WIDE_INTEGER_DECADES if self.among.integer else WIDE_DECADES)

    def logs(self, values: FloatArray) -> FloatArray:
        """Where values are."""
        widths = values if self.is_log else (values - self.among.low) / (self.among.high - self.among.low)
        return np.asarray(np.log10(widths), np.float64)

    def values(self, logs: FloatArray) -> FloatArray:
        """The inverse of `logs`."""
        widths = 10.0**logs
        return widths if self.is_log else self.among.low + widths * (self.among.high - self.among.low)

    def nodes(self, lowest: float) -> FloatArray:
        """Evenly spaced over a log scale; on a linear one, which has no lowest width, from there on."""
        low, high = (math.log10(self.among.low), math.log10(self.among.high)) if self.is_log else (lowest, 0.0)
        return np.linspace(low, high, max(2, math.ceil((high - low) / NODE_SPACING - 1e-9) + 1))


class RegretOutline(NamedTuple):
    """What all runs say of the regret, roughly: the logarithm of its mean is Gaussian at `x`, logarithms of values.

    `spread` is the variance of a run there as a share of its squared mean.
    """

    x: FloatArray
    mean: FloatArray
    root: FloatArray
    spread: FloatArray

    def draws(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Regrets that may be, (count, nodes)."""
        return np.asarray(np.exp(self.mean + rng.standard_normal((count, len(self.x))) @ self.root.T), np.float64)


def fit_outline(x: FloatArray, logs: FloatArray, regrets: FloatArray) -> RegretOutline:
    """Weigh all runs, made at these logarithms of values, at the nodes `x`.

    The spread of a run, as a share of its mean, is pooled with neighbours: a node with few runs may have met no failure.
    """
    at = np.abs(np.subtract.outer(logs, x)).argmin(axis=1)
    runs = np.bincount(at, minlength=len(x)).astype(float)
    some = np.maximum(runs, 1)
    mean = np.bincount(at, regrets, len(x)) / some
    least = 0.01 * float(np.abs(regrets).mean()) or 1.0
    mean = np.maximum(mean, least)
    squares = np.bincount(at, (regrets - mean[at]) ** 2, len(x)) / mean**2
    near = np.exp(-0.5 * (np.subtract.outer(x, x) / SPREAD_LENGTH) ** 2)
    spread = (near @ squares + PRIOR_RUNS) / (near @ np.maximum(runs - 1, 0) + PRIOR_RUNS)
    noise = np.where(runs > 0, np.log1p(spread / some) + NODE_ERROR**2, 1e6)
    # The logarithm of a mean of few runs is low: they may have met no failure.
    logged = np.log(mean) + 0.5 * noise
    weight = np.where(runs > 0, 1 / (noise + SLOPE_SCALES[1] ** 2), 0)
    centre = float((weight * logged).sum() / weight.sum())
    apart = np.subtract.outer(x, x)
    prior = np.asarray(
        sum(size**2 * np.exp(-0.5 * (apart / length) ** 2) for length, size in (SLOPE_SCALES, DIP_SCALES))
    )
    gain = np.linalg.solve(prior + np.diag(noise), prior).T
    covariance = prior - gain @ prior
    root = np.linalg.cholesky(0.5 * (covariance + covariance.T) + 1e-6 * np.eye(len(x)))
    return RegretOutline(x, centre + gain @ np.where(runs > 0, logged - centre, 0), root, spread)


def choose_span(seen: RegretOutline, minima: IntArray) -> tuple[float, bool]:
    """The span of the window that holds most of these minima, and whether widths are inverse there."""
    inverse = bool(seen.spread[-1] > SCATTER_RATIO * seen.spread[0])
    low, high = (math.log10(usual) for usual in OPTIMUM_WIDTHS)
    above = np.subtract.outer(seen.x[minima], seen.x) * (-1.0 if inverse else 1.0)
    inside = ((above >= low) & (above <= high)).mean(axis=0)
    best = np.flatnonzero(inside >= inside.max() - 1e-9)
    return float(10.0 ** seen.x[best[len(best) // 2]]), inverse
