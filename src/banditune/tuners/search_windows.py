"""Locates the optimum in a range, by an outline of all runs on a log axis, and by a window that a library covers.

A library of curves covers two decades of widths. If the optimum is below its first steps, or if the range has more
decades, the library covers a part of the range, a window. Outside the window, the regret is estimated by an outline: a
Gaussian process on logarithms of mean regrets.
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
"""The distance of two nodes of an outline, in decades."""


SLOPE_SCALES, DIP_SCALES = (1.5, 1.5), (0.5, 0.6)
"""The two components of an outline: length in decades, and standard deviation of the logarithm of the regret."""


SPREAD_LENGTH = 0.6
"""The distance, in decades, over which nodes pool the relative variance of runs."""


NODE_ERROR = 0.05
"""The relative standard deviation of a node's mean regret around a smooth outline."""


PRIOR_RUNS = 2.0
"""The number of prior runs at every node. Their standard deviation is equal to their mean."""


WIDE_DECADES, WIDE_INTEGER_DECADES = 1.5, 4.0
"""The number of decades above which a log scale is first searched by an outline.

Three decades are usual for whole numbers such as pulls, which begin at 1. Their failures decay over decades, like those in
the library of log scales.
"""


LEAST_WINDOW_WIDTH = 0.5 / FINE_POINTS
"""The smallest width of a run in a window."""


OPTIMUM_WIDTHS = (0.04, 0.5)
"""The intended range of the optimum's width in a new window."""


SCATTER_RATIO = 2.0
"""The ratio of relative variances of runs by which the side with less exploration is found: failures vary more."""


class SearchWindow(NamedTuple):
    """A library that covers a part of a range. The width w is the value base + span w, or span / w if `inverse`."""

    library: CurveLibrary
    base: float
    span: float
    is_inverse: bool
    first_fine: int
    """The first of the library's fine points that is in the range."""

    def compute_values(self, widths: FloatArray) -> FloatArray:
        """Compute the parameter's values at these widths."""
        return np.asarray(self.span / widths if self.is_inverse else self.base + self.span * widths, np.float64)

    def compute_widths(self, values: FloatArray) -> FloatArray:
        """Compute the widths of values, the inverse of `compute_values`."""
        return np.asarray(self.span / values if self.is_inverse else (values - self.base) / self.span, np.float64)

    @property
    def first_point(self) -> int:
        """The first point for runs that is in the range."""
        return int(np.searchsorted(self.library.point_indices, self.first_fine))

    def locate_points(self, values: FloatArray) -> IntArray:
        """Locate the nearest point of each value; -1 for a value outside."""
        widths = self.compute_widths(values)
        nearest = np.abs(np.subtract.outer(widths, self.library.points)).argmin(axis=1)
        is_inside = (widths >= LEAST_WINDOW_WIDTH) & (widths <= 1 + LEAST_WINDOW_WIDTH)
        return np.where(is_inside, np.maximum(nearest, self.first_point), -1)


def make_whole_window(search_range: Range) -> SearchWindow:
    """Make the window of the whole range."""
    if search_range.scale == "log":
        library = get_linear_library() if LogAxis(search_range).is_wide else select_library(search_range)
        return SearchWindow(library, 0.0, search_range.high, False, 0)
    return SearchWindow(get_linear_library(), search_range.low, search_range.high - search_range.low, False, 0)


def make_window(search_range: Range, span: float, inverse: bool = False) -> SearchWindow:
    """Make the window of a part of a range with the library of linear scales: up to `span`, or from `span` if `inverse`."""
    library = get_linear_library()
    if search_range.scale == "linear":
        return SearchWindow(library, search_range.low, span, False, 0)
    span = min(max(span, search_range.low), search_range.high)
    smallest = span / search_range.high if inverse else search_range.low / span
    if FINE_POINTS * smallest < 1:
        return SearchWindow(library, 0.0, span, inverse, 0)
    # If an end of the range is in the window, it is one of its points.
    step = round(FINE_POINTS * smallest)
    return SearchWindow(
        library,
        0.0,
        search_range.high * step / FINE_POINTS if inverse else search_range.low * FINE_POINTS / step,
        inverse,
        step - 1,
    )


@dataclass(frozen=True)
class LogAxis:
    """Logarithms to the base of 10: of values on a log scale, of widths (shares of the range) on a linear scale."""

    search_range: Range

    @property
    def is_log(self) -> bool:
        """Whether the scale is logarithmic."""
        return self.search_range.scale == "log"

    @property
    def decades(self) -> float:
        """The number of decades of a log scale; 0 for a linear one."""
        return math.log10(self.search_range.high / self.search_range.low) if self.is_log else 0.0

    @property
    def is_wide(self) -> bool:
        """Whether the range is too wide for a library."""
        return self.decades > (WIDE_INTEGER_DECADES if self.search_range.integer else WIDE_DECADES)

    def compute_logs(self, values: FloatArray) -> FloatArray:
        """Compute the positions of values on the axis."""
        widths = (
            values
            if self.is_log
            else (values - self.search_range.low) / (self.search_range.high - self.search_range.low)
        )
        return np.asarray(np.log10(widths), np.float64)

    def compute_values(self, logs: FloatArray) -> FloatArray:
        """Compute values from positions, the inverse of `compute_logs`."""
        widths = 10.0**logs
        return (
            widths if self.is_log else self.search_range.low + widths * (self.search_range.high - self.search_range.low)
        )

    def make_nodes(self, lowest: float) -> FloatArray:
        """Make evenly spaced nodes over a log scale, or from `lowest` on over a linear scale."""
        low, high = (
            (math.log10(self.search_range.low), math.log10(self.search_range.high)) if self.is_log else (lowest, 0.0)
        )
        return np.linspace(low, high, max(2, math.ceil((high - low) / NODE_SPACING - 1e-9) + 1))


class RegretOutline(NamedTuple):
    """An estimate of the regret from all runs. The logarithm of its mean is Gaussian at `x`, the logarithms of values.

    `relative_variance` is the variance of a run as a share of its squared mean.
    """

    x: FloatArray
    mean: FloatArray
    covariance_root: FloatArray
    relative_variance: FloatArray

    def draw_regrets(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Draw regrets, (count, nodes)."""
        return np.asarray(
            np.exp(self.mean + rng.standard_normal((count, len(self.x))) @ self.covariance_root.T), np.float64
        )


def fit_outline(x: FloatArray, logs: FloatArray, regrets: FloatArray) -> RegretOutline:
    """Fit the outline at the nodes `x` to runs at these logarithms of values.

    The relative variance of a run is pooled with neighbours, because the runs of a node may have no failure.
    """
    at = np.abs(np.subtract.outer(logs, x)).argmin(axis=1)
    runs = np.bincount(at, minlength=len(x)).astype(float)
    nonzero_runs = np.maximum(runs, 1)
    mean = np.bincount(at, regrets, len(x)) / nonzero_runs
    smallest = 0.01 * float(np.abs(regrets).mean()) or 1.0
    mean = np.maximum(mean, smallest)
    squares = np.bincount(at, (regrets - mean[at]) ** 2, len(x)) / mean**2
    weights = np.exp(-0.5 * (np.subtract.outer(x, x) / SPREAD_LENGTH) ** 2)
    spread = (weights @ squares + PRIOR_RUNS) / (weights @ np.maximum(runs - 1, 0) + PRIOR_RUNS)
    noise = np.where(runs > 0, np.log1p(spread / nonzero_runs) + NODE_ERROR**2, 1e6)
    # The logarithm of a mean of few runs is too low on average.
    logged = np.log(mean) + 0.5 * noise
    weight = np.where(runs > 0, 1 / (noise + SLOPE_SCALES[1] ** 2), 0)
    centre = float((weight * logged).sum() / weight.sum())
    distance = np.subtract.outer(x, x)
    prior = np.asarray(
        sum(size**2 * np.exp(-0.5 * (distance / length) ** 2) for length, size in (SLOPE_SCALES, DIP_SCALES))
    )
    gain = np.linalg.solve(prior + np.diag(noise), prior).T
    covariance = prior - gain @ prior
    root = np.linalg.cholesky(0.5 * (covariance + covariance.T) + 1e-6 * np.eye(len(x)))
    return RegretOutline(x, centre + gain @ np.where(runs > 0, logged - centre, 0), root, spread)


def choose_span(outline: RegretOutline, minima: IntArray) -> tuple[float, bool]:
    """Choose the span of the window that contains most of these minima, and whether its widths are inverse."""
    inverse = bool(outline.relative_variance[-1] > SCATTER_RATIO * outline.relative_variance[0])
    low, high = (math.log10(width) for width in OPTIMUM_WIDTHS)
    above = np.subtract.outer(outline.x[minima], outline.x) * (-1.0 if inverse else 1.0)
    inside = ((above >= low) & (above <= high)).mean(axis=0)
    best = np.flatnonzero(inside >= inside.max() - 1e-9)
    return float(10.0 ** outline.x[best[len(best) // 2]]), inverse
