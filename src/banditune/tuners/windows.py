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

from banditune.contracts import Floats, Integers, Range
from banditune.tuners.curves import FINE, Library, library_of, linear_library

SPACING = 0.25
"""Decades between two nodes of an outline."""

SLOPES, DIPS = (1.5, 1.5), (0.5, 0.6)
"""An outline is a sum of two: how far the logarithm of its regrets may be from their mean, over how many decades."""

SMOOTH = 0.6
"""Nodes share what they know of the spread of runs over so many decades."""

ROUGH = 0.05
"""How far a node's mean regret may be from a smooth outline, as a share."""

FAITH = 2.0
"""So many runs whose spread is their mean are taken for granted at every node."""

WIDE, WIDE_COUNTS = 1.5, 4.0
"""Log scales of more decades than this are searched by an outline first. Whole numbers, such as pulls, begin at 1, so that
three decades of them are usual; the library of log scales knows failures that end over decades, as theirs do.
"""

SEEN_FROM = 0.5 / FINE
"""The smallest width that a run in a window may have."""

USUAL = (0.04, 0.5)
"""Where in a new window the optimum should be."""

APART = 2.0
"""Failures scatter more than exploring: the side where runs scatter so many times as much explores less."""


class Window(NamedTuple):
    """A library laid over a part of a range: the width w is the value base + span w, or span / w where it is `inverse`."""

    library: Library
    base: float
    span: float
    inverse: bool
    first: int
    """The first of the library's fine points that is in the range."""

    def values(self, widths: Floats) -> Floats:
        """The parameter's values at these widths."""
        return np.asarray(self.span / widths if self.inverse else self.base + self.span * widths, np.float64)

    def widths(self, values: Floats) -> Floats:
        """The inverse of `values`."""
        return np.asarray(self.span / values if self.inverse else (values - self.base) / self.span, np.float64)

    @property
    def from_point(self) -> int:
        """The first of the points where runs are made that is in the range."""
        return int(np.searchsorted(self.library.places, self.first))

    def places(self, values: Floats) -> Integers:
        """The nearest point of each value; -1 for a value outside."""
        widths = self.widths(values)
        near = np.abs(np.subtract.outer(widths, self.library.points)).argmin(axis=1)
        seen = (widths >= SEEN_FROM) & (widths <= 1 + SEEN_FROM)
        return np.where(seen, np.maximum(near, self.from_point), -1)


def whole_window(among: Range) -> Window:
    """The library over the whole range."""
    if among.scale == "log":
        library = linear_library() if Axis(among).is_wide else library_of(among)
        return Window(library, 0.0, among.high, False, 0)
    return Window(linear_library(), among.low, among.high - among.low, False, 0)


def window_on(among: Range, span: float, inverse: bool = False) -> Window:
    """The library of linear scales over a part of a range: up to `span`, or from there on."""
    library = linear_library()
    if among.scale == "linear":
        return Window(library, among.low, span, False, 0)
    span = min(max(span, among.low), among.high)
    least = span / among.high if inverse else among.low / span
    if FINE * least < 1:
        return Window(library, 0.0, span, inverse, 0)
    # An end of the range that is in the window is one of its points.
    step = round(FINE * least)
    return Window(library, 0.0, among.high * step / FINE if inverse else among.low * FINE / step, inverse, step - 1)


@dataclass(frozen=True)
class Axis:
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
        return self.decades > (WIDE_COUNTS if self.among.integer else WIDE)

    def logs(self, values: Floats) -> Floats:
        """Where values are."""
        widths = values if self.is_log else (values - self.among.low) / (self.among.high - self.among.low)
        return np.asarray(np.log10(widths), np.float64)

    def values(self, logs: Floats) -> Floats:
        """The inverse of `logs`."""
        widths = 10.0**logs
        return widths if self.is_log else self.among.low + widths * (self.among.high - self.among.low)

    def nodes(self, lowest: float) -> Floats:
        """Evenly spaced over a log scale; on a linear one, which has no lowest width, from there on."""
        low, high = (math.log10(self.among.low), math.log10(self.among.high)) if self.is_log else (lowest, 0.0)
        return np.linspace(low, high, max(2, math.ceil((high - low) / SPACING - 1e-9) + 1))


class Outline(NamedTuple):
    """What all runs say of the regret, roughly: the logarithm of its mean is Gaussian at `x`, logarithms of values.

    `spread` is the variance of a run there as a share of its squared mean.
    """

    x: Floats
    mean: Floats
    root: Floats
    spread: Floats

    def draws(self, count: int, rng: np.random.Generator) -> Floats:
        """Regrets that may be, (count, nodes)."""
        return np.asarray(np.exp(self.mean + rng.standard_normal((count, len(self.x))) @ self.root.T), np.float64)


def outline(x: Floats, logs: Floats, regrets: Floats) -> Outline:
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
    near = np.exp(-0.5 * (np.subtract.outer(x, x) / SMOOTH) ** 2)
    spread = (near @ squares + FAITH) / (near @ np.maximum(runs - 1, 0) + FAITH)
    noise = np.where(runs > 0, np.log1p(spread / some) + ROUGH**2, 1e6)
    # The logarithm of a mean of few runs is low: they may have met no failure.
    logged = np.log(mean) + 0.5 * noise
    weight = np.where(runs > 0, 1 / (noise + SLOPES[1] ** 2), 0)
    centre = float((weight * logged).sum() / weight.sum())
    apart = np.subtract.outer(x, x)
    prior = np.asarray(sum(size**2 * np.exp(-0.5 * (apart / length) ** 2) for length, size in (SLOPES, DIPS)))
    gain = np.linalg.solve(prior + np.diag(noise), prior).T
    covariance = prior - gain @ prior
    root = np.linalg.cholesky(0.5 * (covariance + covariance.T) + 1e-6 * np.eye(len(x)))
    return Outline(x, centre + gain @ np.where(runs > 0, logged - centre, 0), root, spread)


def best_span(seen: Outline, minima: Integers) -> tuple[float, bool]:
    """The span of the window that holds most of these minima, and whether widths are inverse there."""
    inverse = bool(seen.spread[-1] > APART * seen.spread[0])
    low, high = (math.log10(usual) for usual in USUAL)
    above = np.subtract.outer(seen.x[minima], seen.x) * (-1.0 if inverse else 1.0)
    inside = ((above >= low) & (above <= high)).mean(axis=0)
    best = np.flatnonzero(inside >= inside.max() - 1e-9)
    return float(10.0 ** seen.x[best[len(best) // 2]]), inverse
