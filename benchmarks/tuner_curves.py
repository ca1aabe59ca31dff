"""Curves with known truth from which tuners draw runs: pools of stored regrets and synthetic curves.

This module only defines them, for other benchmarks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from benchmark_problems import PaperRow
from paper_pools import FOLDER, get_pool_path

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
class RunCurve(RunSource):
    """A source of runs and its curve of mean regrets at `units`.

    `partial` are the curves that are known without a tenth of the runs, a row each; none where the truth is known.
    """

    truth: np.ndarray
    partial: np.ndarray

    def compute_excess(self, answers: np.ndarray) -> np.ndarray:
        """What answers (places in the unit interval) lose over the best one, in %."""
        return compute_excess(self.unit_points, self.truth, answers)

    def compute_own_error(self, answers: np.ndarray) -> float:
        """The standard error of the mean excess that comes from the pool's finite size: a jackknife over tenths."""
        if not len(self.partial):
            return 0.0
        means = [compute_excess(self.unit_points, curve, answers).mean() for curve in self.partial]
        return float(np.sqrt((FOLD_COUNT - 1) * np.var(means)))


def compute_excess(units: np.ndarray, curve: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """What answers lose over the lowest point of a curve, in %."""
    return (np.interp(answers, units, curve) / curve.min() - 1) * 100


def load_run_curve(row: PaperRow, folder: Path = FOLDER) -> RunCurve:
    """The stored regrets of a row; instances are shared by widths, so folds are too."""
    path = get_pool_path(row, folder)
    if not path.exists():
        raise SystemExit(f"{path} is missing; make it with: python benchmarks/paper_pools.py --only '{row.name}'")
    stored = np.load(path)
    return make_run_curve(row.name, get_tuned_range(row), stored["values"], stored["regrets"])


def make_run_curve(name: str, search_range: Range, values: np.ndarray, regrets: np.ndarray) -> RunCurve:
    """Regrets (widths, runs) as a curve that serves them."""
    source = make_run_source(name, search_range, values, regrets)
    curves = smooth_fold_means(
        source.unit_points, compute_fold_means(regrets), regrets.var(axis=1, dtype=float), search_range.scale
    )
    return RunCurve(name, search_range, source.unit_points, source.instance_count, source.draw, *curves)


def make_synthetic_curve(name: str, height: Callable[[np.ndarray], np.ndarray]) -> RunCurve:
    """A known curve with Gaussian noise."""
    truth = height(UNIT_POINTS)

    def draw(rows: np.ndarray, columns: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return truth[rows] + NOISE * rng.standard_normal(np.broadcast_shapes(rows.shape, columns.shape))

    search_range = Range("gamma", 0.0, 1.0, 1.0, False, "linear")
    return RunCurve(name, search_range, UNIT_POINTS, 1 << 30, draw, truth, np.empty((0, len(UNIT_POINTS))))


def make_bowl(lowest: float) -> RunCurve:
    return make_synthetic_curve(f"bowl at {lowest}", lambda g: 20 + 80 * (g - lowest) ** 2)


def make_vee(lowest: float) -> RunCurve:
    return make_synthetic_curve(f"V at {lowest}", lambda g: 20 + 40 * np.abs(g - lowest))


def compute_dip(g: np.ndarray, lowest: float) -> np.ndarray:
    return np.exp(-(((g - lowest) / 0.1) ** 2))


def list_chosen_curves() -> list[RunCurve]:
    """Synthetic curves on which choices were made."""
    line, flat = (
        make_synthetic_curve("decreasing", lambda g: 40 - 20 * g),
        make_synthetic_curve("flat", lambda g: 30 + 0 * g),
    )
    rising = make_synthetic_curve("increasing", lambda g: 20 + 20 * g)
    dips = make_synthetic_curve("two dips", lambda g: 32 - 12 * compute_dip(g, 0.2) - 9 * compute_dip(g, 0.7))
    sinking = make_synthetic_curve("sinking", lambda g: 25 + 15 * np.exp(-4 * g))
    others = make_synthetic_curve("two other dips", lambda g: 32 - 9 * compute_dip(g, 0.25) - 12 * compute_dip(g, 0.65))
    return [
        make_bowl(0.2),
        make_bowl(0.8),
        make_vee(0.35),
        line,
        flat,
        make_bowl(0.5),
        make_vee(0.7),
        rising,
        dips,
        make_bowl(0.35),
        make_vee(0.55),
        sinking,
        others,
    ]


def list_held_out_curves() -> list[RunCurve]:
    """Others, looked at once."""
    skewed = make_synthetic_curve("skewed bowl", lambda g: 25 + 10 * (np.log(g + 0.05) - np.log(0.35)) ** 2)
    dips = make_synthetic_curve(
        "dips at 0.15 and 0.5", lambda g: 32 - 9 * compute_dip(g, 0.15) - 12 * compute_dip(g, 0.5)
    )
    return [make_bowl(0.65), make_vee(0.25), skewed, dips]
