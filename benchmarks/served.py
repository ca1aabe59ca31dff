"""Curves that serve runs to tuners and know the truth: pools of stored regrets, and curves with Gaussian noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pools import FOLDER, UNITS, file_of
from rows import Row

from banditune.contracts import Range, Trial

BANDWIDTH, DEGREE = 0.045, 4
"""Of the smoother, in square roots of the unit interval, or in the unit interval itself on a log scale.

Parabolas need a third of this bandwidth to be as near to steep curves: at 0.035 they lift the lowest regret by up to 2%.
"""

FOLDS = 10
"""A pool's own error is what changes when a tenth of its runs is left out."""

NOISE = 5.0
"""Standard deviation of a run on the synthetic curves."""


def units_of(among: Range, values: Any) -> np.ndarray:
    """Places of values in the unit interval: the inverse of `Range.at`."""
    if among.scale == "log":
        return np.log(np.asarray(values) / among.low) / math.log(among.high / among.low)
    return (np.asarray(values) - among.low) / (among.high - among.low)


def smoother(units: np.ndarray, variance: np.ndarray, scale: str = "linear") -> np.ndarray:
    """The matrix that takes noisy means at `units` to a smooth curve there: local polynomial regression.

    Optima lie at small widths, where curves bend most: square roots make the window narrow there.
    """
    x = np.sqrt(units) if scale == "linear" else units
    apart = np.subtract.outer(x, x) / BANDWIDTH
    # Where failures are rare, a mean that has seen few has a small variance too: its own variance would weigh it up.
    wide = np.exp(-0.5 * (apart / 1.5) ** 2)
    weight = np.exp(-0.5 * apart**2) / (wide @ variance / wide.sum(axis=1))
    root = np.sqrt(weight / weight.max(axis=1, keepdims=True))
    rows = [
        np.linalg.pinv(np.vander(-apart[at], DEGREE + 1) * root[at][:, None])[-1] * root[at] for at in range(len(x))
    ]
    return np.array(rows)


@dataclass(frozen=True)
class Served:
    """A curve of mean regrets at `units`, and how to draw runs.

    `draw(rows, columns, rng)` takes places in `units` and numbers of instances; None stands for fresh ones.
    `partial` are the curves that are known without a tenth of the runs, a row each; none where the truth is known.
    """

    name: str
    among: Range
    units: np.ndarray
    truth: np.ndarray
    partial: np.ndarray
    instances: int
    draw: Callable[[np.ndarray, np.ndarray, np.random.Generator], np.ndarray]

    def rows(self, values: Any) -> np.ndarray:
        """The nearest place in `units` of each value."""
        return np.abs(np.subtract.outer(units_of(self.among, values), self.units)).argmin(axis=-1)

    def each(self, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A run at each place, on instances of their own."""
        return self.draw(rows, rng.integers(self.instances, size=rows.shape), rng)

    def told(self, trial: Trial, rng: np.random.Generator) -> Any:
        """What a tuner is told; with one size for all values, they share instances."""
        rows = self.rows(trial.values)
        if isinstance(trial.size, int):
            return self.draw(rows[:, None], rng.integers(self.instances, size=trial.size), rng)
        return [self.each(np.repeat(row, size), rng) for row, size in zip(rows, trial.size, strict=True)]

    def excess(self, answers: np.ndarray) -> np.ndarray:
        """What answers (places in the unit interval) lose over the best one, in %."""
        return excess(self.units, self.truth, answers)

    def own_error(self, answers: np.ndarray) -> float:
        """The standard error of the mean excess that comes from the pool's finite size: a jackknife over tenths."""
        if not len(self.partial):
            return 0.0
        means = [excess(self.units, curve, answers).mean() for curve in self.partial]
        return float(np.sqrt((FOLDS - 1) * np.var(means)))


def excess(units: np.ndarray, curve: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """What answers lose over the lowest point of a curve, in %."""
    return (np.interp(answers, units, curve) / curve.min() - 1) * 100


def smoothed(units: np.ndarray, means: np.ndarray, variance: np.ndarray, scale: str) -> tuple[np.ndarray, np.ndarray]:
    """The smooth curve through the means of all folds (folds, widths), and those without one fold each."""
    smooth = smoother(units, variance, scale)
    whole = means.mean(axis=0)
    partial = (len(means) * whole - means) / (len(means) - 1)
    return smooth @ whole, partial @ smooth.T


def range_of(row: Row) -> Range:
    """What is tuned in a row."""
    (parameter,) = row.policy.parameters
    return parameter.within(row.problem.arms, row.horizon)


def pool_of(row: Row, folder: Path = FOLDER) -> Served:
    """The stored regrets of a row; instances are shared by widths, so folds are too."""
    path = file_of(row, folder)
    if not path.exists():
        raise SystemExit(f"{path} is missing; make it with: python benchmarks/pools.py --only '{row.name}'")
    stored = np.load(path)
    return pool(row.name, range_of(row), stored["values"], stored["regrets"])


def pool(name: str, among: Range, values: np.ndarray, regrets: np.ndarray) -> Served:
    """Regrets (widths, runs) as a curve that serves them."""
    units = units_of(among, values)
    means = np.array([part.mean(axis=1, dtype=float) for part in np.array_split(regrets, FOLDS, axis=1)])
    truth, partial = smoothed(units, means, regrets.var(axis=1, dtype=float), among.scale)
    return Served(
        name, among, units, truth, partial, regrets.shape[1],
        lambda rows, columns, rng: regrets[rows, columns].astype(float),
    )  # fmt: skip


def synthetic(name: str, height: Callable[[np.ndarray], np.ndarray]) -> Served:
    """A known curve with Gaussian noise."""
    truth = height(UNITS)

    def draw(rows: np.ndarray, columns: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return truth[rows] + NOISE * rng.standard_normal(np.broadcast_shapes(rows.shape, columns.shape))

    return Served(
        name, Range("gamma", 0.0, 1.0, 1.0, False, "linear"), UNITS, truth, np.empty((0, len(UNITS))), 1 << 30, draw
    )


def bowl(lowest: float) -> Served:
    return synthetic(f"bowl at {lowest}", lambda g: 20 + 80 * (g - lowest) ** 2)


def vee(lowest: float) -> Served:
    return synthetic(f"V at {lowest}", lambda g: 20 + 40 * np.abs(g - lowest))


def dip(g: np.ndarray, lowest: float) -> np.ndarray:
    return np.exp(-(((g - lowest) / 0.1) ** 2))


def chosen_synthetic() -> list[Served]:
    """Half of the synthetic curves, on which choices may be made."""
    line, flat = synthetic("decreasing", lambda g: 40 - 20 * g), synthetic("flat", lambda g: 30 + 0 * g)
    return [bowl(0.2), bowl(0.8), vee(0.35), line, flat]


def held_out_synthetic() -> list[Served]:
    """The other half, looked at once."""
    line = synthetic("increasing", lambda g: 20 + 20 * g)
    dips = synthetic("two dips", lambda g: 32 - 12 * dip(g, 0.2) - 9 * dip(g, 0.7))
    return [bowl(0.5), vee(0.7), line, dips]
