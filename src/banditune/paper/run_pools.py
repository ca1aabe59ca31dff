"""Pools of runs from which thousands of tunings can be drawn, and the smooth curve through them.

A pool has the regrets of a row at every width that a tuner may simulate. These are the 163 multiples of 1/162 of its range,
for NoTeS and the two-part tuner, and its tenths, the grids of Uniform and Sequential Halving.
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
"""The points of the unit interval that a tuner may simulate."""


SMOOTHER_BANDWIDTH, SMOOTHER_DEGREE = 0.045, 4
"""The bandwidth and the degree of the smoother, on square roots of the unit interval, or on the interval on a log scale.

Parabolas need a third of this bandwidth to fit steep curves as well. At 0.035 they raise the lowest regret by up to 2%.
"""


FOLD_COUNT = 10
"""The number of folds of a pool in cross-validation."""


def list_row_widths(row: PaperRow) -> FloatArray:
    """Return all widths of a row."""
    search_range = get_tuned_range(row)
    return np.array([search_range.scale_from_unit(unit) for unit in UNIT_POINTS])


def map_to_unit_interval(search_range: Range, values: Any) -> FloatArray:
    """Map values to the unit interval, the inverse of `Range.scale_from_unit`."""
    if search_range.scale == "log":
        return np.asarray(
            np.log(np.asarray(values) / search_range.low) / math.log(search_range.high / search_range.low)
        )
    return np.asarray((np.asarray(values) - search_range.low) / (search_range.high - search_range.low))


@dataclass(frozen=True)
class RunSource:
    """The runs of tunings. The arguments of `draw(rows, columns, rng)` are indices of `unit_points` and of instances."""

    name: str
    range: Range
    unit_points: FloatArray
    instance_count: int
    draw: Callable[[IntArray, IntArray, np.random.Generator], FloatArray]

    def find_rows(self, values: Any) -> IntArray:
        """Find the index in `unit_points` that is nearest to each value."""
        return self.find_nearest(map_to_unit_interval(self.range, values))

    def find_nearest(self, units: Any) -> IntArray:
        """Find the index in `unit_points` that is nearest to each point of the unit interval."""
        return np.asarray(np.abs(np.subtract.outer(units, self.unit_points)).argmin(axis=-1))

    def draw_each(self, rows: IntArray, rng: np.random.Generator) -> FloatArray:
        """Draw a run at each index, each on its own instance."""
        return self.draw(rows, rng.integers(self.instance_count, size=rows.shape), rng)

    def answer_trial(self, trial: Trial, rng: np.random.Generator) -> Any:
        """Return the regrets of a trial. With one size for all values, they have the same instances."""
        rows = self.find_rows(trial.values)
        if isinstance(trial.size, int):
            return self.draw(rows[:, None], rng.integers(self.instance_count, size=trial.size), rng)
        return [self.draw_each(np.repeat(row, size), rng) for row, size in zip(rows, trial.size, strict=True)]


def make_run_source(name: str, search_range: Range, values: FloatArray, regrets: FloatArray) -> RunSource:
    """Make a source of runs from regrets (widths, runs). A column is an instance, the same for all widths."""
    return RunSource(
        name,
        search_range,
        map_to_unit_interval(search_range, values),
        regrets.shape[1],
        lambda rows, columns, rng: regrets[rows, columns].astype(float, copy=False),
    )


def build_smoother(units: FloatArray, variance: FloatArray, scale: str = "linear") -> FloatArray:
    """Build the matrix that smooths noisy means at `units` by local polynomial regression.

    Optima are at small widths, where curves bend most. With square roots, the window is narrow there.
    """
    x = np.sqrt(units) if scale == "linear" else units
    distances = np.subtract.outer(x, x) / SMOOTHER_BANDWIDTH
    # If failures are rare, a mean without failures has a small variance, which would give it too much weight.
    wide = np.exp(-0.5 * (distances / 1.5) ** 2)
    weight = np.exp(-0.5 * distances**2) / (wide @ variance / wide.sum(axis=1))
    root = np.sqrt(weight / weight.max(axis=1, keepdims=True))
    rows = [
        np.linalg.pinv(np.vander(-distances[at], SMOOTHER_DEGREE + 1) * root[at][:, None])[-1] * root[at]
        for at in range(len(x))
    ]
    return np.array(rows)


def smooth_fold_means(
    units: FloatArray, means: FloatArray, variance: FloatArray, scale: str
) -> tuple[FloatArray, FloatArray]:
    """Smooth the means of all folds (folds, widths), and those without each fold."""
    smooth = build_smoother(units, variance, scale)
    mean = means.mean(axis=0)
    partial = (len(means) * mean - means) / (len(means) - 1)
    return np.asarray(smooth @ mean), np.asarray(partial @ smooth.T)


def compute_fold_means(regrets: FloatArray) -> FloatArray:
    """Compute the means of the folds of a pool, (folds, widths). All widths have the same instances in a fold."""
    return np.array([part.mean(axis=1, dtype=float) for part in np.array_split(regrets, FOLD_COUNT, axis=1)])
