"""Curves that serve runs to tuners and know the truth: pools of stored regrets, and curves with Gaussian noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pools import FOLDER, file_of
from rows import PaperRow

from banditune.core.space import Range
from banditune.paper.paper_rows import get_tuned_range
from banditune.paper.run_pools import (
    FOLD_COUNT,
    UNIT_POINTS,
    RunSource,
    compute_fold_means,
    make_run_source,
    smooth_fold_means,
)

NOISE = 5.0
"""Standard deviation of a run on the synthetic curves."""


@dataclass(frozen=True)
class Served(RunSource):
    """A source of runs and its curve of mean regrets at `units`.

    `partial` are the curves that are known without a tenth of the runs, a row each; none where the truth is known.
    """

    truth: np.ndarray
    partial: np.ndarray

    def excess(self, answers: np.ndarray) -> np.ndarray:
        """What answers (places in the unit interval) lose over the best one, in %."""
        return excess(self.unit_points, self.truth, answers)

    def own_error(self, answers: np.ndarray) -> float:
        """The standard error of the mean excess that comes from the pool's finite size: a jackknife over tenths."""
        if not len(self.partial):
            return 0.0
        means = [excess(self.unit_points, curve, answers).mean() for curve in self.partial]
        return float(np.sqrt((FOLD_COUNT - 1) * np.var(means)))


def excess(units: np.ndarray, curve: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """What answers lose over the lowest point of a curve, in %."""
    return (np.interp(answers, units, curve) / curve.min() - 1) * 100


def pool_of(row: PaperRow, folder: Path = FOLDER) -> Served:
    """The stored regrets of a row; instances are shared by widths, so folds are too."""
    path = file_of(row, folder)
    if not path.exists():
        raise SystemExit(f"{path} is missing; make it with: python benchmarks/pools.py --only '{row.name}'")
    stored = np.load(path)
    return pool(row.name, get_tuned_range(row), stored["values"], stored["regrets"])


def pool(name: str, among: Range, values: np.ndarray, regrets: np.ndarray) -> Served:
    """Regrets (widths, runs) as a curve that serves them."""
    source = make_run_source(name, among, values, regrets)
    curves = smooth_fold_means(
        source.unit_points, compute_fold_means(regrets), regrets.var(axis=1, dtype=float), among.scale
    )
    return Served(name, among, source.unit_points, source.instance_count, source.draw, *curves)


def synthetic(name: str, height: Callable[[np.ndarray], np.ndarray]) -> Served:
    """A known curve with Gaussian noise."""
    truth = height(UNIT_POINTS)

    def draw(rows: np.ndarray, columns: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return truth[rows] + NOISE * rng.standard_normal(np.broadcast_shapes(rows.shape, columns.shape))

    among = Range("gamma", 0.0, 1.0, 1.0, False, "linear")
    return Served(name, among, UNIT_POINTS, 1 << 30, draw, truth, np.empty((0, len(UNIT_POINTS))))


def bowl(lowest: float) -> Served:
    return synthetic(f"bowl at {lowest}", lambda g: 20 + 80 * (g - lowest) ** 2)


def vee(lowest: float) -> Served:
    return synthetic(f"V at {lowest}", lambda g: 20 + 40 * np.abs(g - lowest))


def dip(g: np.ndarray, lowest: float) -> np.ndarray:
    return np.exp(-(((g - lowest) / 0.1) ** 2))


def chosen_synthetic() -> list[Served]:
    """Synthetic curves on which choices were made."""
    line, flat = synthetic("decreasing", lambda g: 40 - 20 * g), synthetic("flat", lambda g: 30 + 0 * g)
    rising = synthetic("increasing", lambda g: 20 + 20 * g)
    dips = synthetic("two dips", lambda g: 32 - 12 * dip(g, 0.2) - 9 * dip(g, 0.7))
    sinking = synthetic("sinking", lambda g: 25 + 15 * np.exp(-4 * g))
    others = synthetic("two other dips", lambda g: 32 - 9 * dip(g, 0.25) - 12 * dip(g, 0.65))
    return [
        bowl(0.2),
        bowl(0.8),
        vee(0.35),
        line,
        flat,
        bowl(0.5),
        vee(0.7),
        rising,
        dips,
        bowl(0.35),
        vee(0.55),
        sinking,
        others,
    ]


def held_out_synthetic() -> list[Served]:
    """Others, looked at once."""
    skewed = synthetic("skewed bowl", lambda g: 25 + 10 * (np.log(g + 0.05) - np.log(0.35)) ** 2)
    dips = synthetic("dips at 0.15 and 0.5", lambda g: 32 - 9 * dip(g, 0.15) - 12 * dip(g, 0.5))
    return [bowl(0.65), vee(0.25), skewed, dips]
