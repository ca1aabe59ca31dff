"""Pools of runs from which thousands of tunings can be drawn, and the smooth curve through them.

A pool holds the regrets of a row at every width that a tuner may visit: the 163 multiples of 1/162 of its range, where
NoTeS and the two-part tuner look, and its tenths, where the grids of Uniform and Sequential Halving are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from banditune.core.arrays import FloatArray, IntArray
from banditune.core.space import Range
from banditune.core.tuner import Trial
from banditune.paper.paper_rows import PaperRow, get_tuned_range

UNIT_POINTS: FloatArray = np.unique(np.round([*(np.arange(163) / 162), *(np.arange(11) / 10)], 12))
"""Where a tuner may look."""


SMOOTHER_BANDWIDTH, SMOOTHER_DEGREE = 0.045, 4
"""Of the smoother, in square roots of the unit interval, or in the unit interval itself on a log scale.

Parabolas need a third of this bandwidth to be as near to steep curves: at 0.035 they lift the lowest regret by up to 2%.
"""


FOLD_COUNT = 10
"""A pool is cut into so many parts to see what changes when one is left out."""


def list_row_widths(row: PaperRow) -> FloatArray:
    """All widths of a row."""
    among = get_tuned_range(row)
    return np.array([among.at(unit) for unit in UNIT_POINTS])


def map_to_unit_interval(among: Range, values: Any) -> FloatArray:
    """Places of values in the unit interval: the inverse of `Range.at`."""
    if among.scale == "log":
        return np.asarray(np.log(np.asarray(values) / among.low) / math.log(among.high / among.low))
    return np.asarray((np.asarray(values) - among.low) / (among.high - among.low))


@dataclass(frozen=True)
class RunSource:
    """Where tunings get their runs from: `draw(rows, columns, rng)` takes places in `units` and numbers of instances."""

    name: str
    among: Range
    units: FloatArray
    instances: int
    draw: Callable[[IntArray, IntArray, np.random.Generator], FloatArray]

    def rows(self, values: Any) -> IntArray:
        """The nearest place in `units` of each value."""
        return self.places(map_to_unit_interval(self.among, values))

    def places(self, units: Any) -> IntArray:
        """The nearest place in `units` of points of the unit interval."""
        return np.asarray(np.abs(np.subtract.outer(units, self.units)).argmin(axis=-1))

    def each(self, rows: IntArray, rng: np.random.Generator) -> FloatArray:
        """A run at each place, on instances of their own."""
        return self.draw(rows, rng.integers(self.instances, size=rows.shape), rng)

    def told(self, trial: Trial, rng: np.random.Generator) -> Any:
        """What a tuner is told; with one size for all values, they share instances."""
        rows = self.rows(trial.values)
        if isinstance(trial.size, int):
            return self.draw(rows[:, None], rng.integers(self.instances, size=trial.size), rng)
        return [self.each(np.repeat(row, size), rng) for row, size in zip(rows, trial.size, strict=True)]


def make_run_source(name: str, among: Range, values: FloatArray, regrets: FloatArray) -> RunSource:
    """Regrets (widths, runs) as a source of runs; a column is an instance, the same for all widths."""
    return RunSource(
        name, among, map_to_unit_interval(among, values), regrets.shape[1],
        lambda rows, columns, rng: regrets[rows, columns].astype(float, copy=False),
    )  # fmt: skip


def build_smoother(units: FloatArray, variance: FloatArray, scale: str = "linear") -> FloatArray:
    """The matrix that takes noisy means at `units` to a smooth curve there: local polynomial regression.

    Optima lie at small widths, where curves bend most: square roots make the window narrow there.
    """
    x = np.sqrt(units) if scale == "linear" else units
    apart = np.subtract.outer(x, x) / SMOOTHER_BANDWIDTH
    # Where failures are rare, a mean that has seen few has a small variance too: its own variance would weigh it up.
    wide = np.exp(-0.5 * (apart / 1.5) ** 2)
    weight = np.exp(-0.5 * apart**2) / (wide @ variance / wide.sum(axis=1))
    root = np.sqrt(weight / weight.max(axis=1, keepdims=True))
    rows = [
        np.linalg.pinv(np.vander(-apart[at], SMOOTHER_DEGREE + 1) * root[at][:, None])[-1] * root[at]
        for at in range(len(x))
    ]
    return np.array(rows)


def smooth_fold_means(
    units: FloatArray, means: FloatArray, variance: FloatArray, scale: str
) -> tuple[FloatArray, FloatArray]:
    """The smooth curve through the means of all folds (folds, widths), and those without one fold each."""
    smooth = build_smoother(units, variance, scale)
    whole = means.mean(axis=0)
    partial = (len(means) * whole - means) / (len(means) - 1)
    return np.asarray(smooth @ whole), np.asarray(partial @ smooth.T)


def compute_fold_means(regrets: FloatArray) -> FloatArray:
    """Means of the folds of a pool, (folds, widths); instances are shared by widths, so folds are too."""
    return np.array([part.mean(axis=1, dtype=float) for part in np.array_split(regrets, FOLD_COUNT, axis=1)])
