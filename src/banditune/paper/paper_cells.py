"""Numbers of ours beside the paper's: what a pool tells, how sure it is, how far the two are apart."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from banditune.core.arrays import FloatArray, IntArray
from banditune.core.space import Range
from banditune.paper.lockstep_tunings import PAPER_EPSILON, TuningOutcomes
from banditune.paper.published_numbers import (
    PAPER_RUNS,
    ROUNDING_STEP,
    PaperCellKey,
    find_explanation,
    find_tolerance,
    load_published_numbers,
)
from banditune.paper.run_pools import FOLD_COUNT, UNIT_POINTS, compute_fold_means, smooth_fold_means
from banditune.results.estimates import compute_standard_error
from banditune.results.paper_results import PaperCell, PaperCurve
from banditune.results.result_record import freeze_floats

REGRET_BUDGETS, FAILURE_BUDGETS = (50, 200, 1000), (200, 500, 1000)
"""Budgets of the paper's two tables."""


TENTH_INDICES: IntArray = np.abs(np.subtract.outer(np.arange(11) / 10, UNIT_POINTS)).argmin(axis=1)
"""Where the grid of the baselines is in the pool."""


BEST_MARGIN = 2.0
"""A width that is worse by less than so many standard errors may be taken for the best."""


MeanAndError = tuple[float, float]
"""A mean and its standard error."""


def make_paper_cell(
    place: PaperCellKey, ours: MeanAndError, *, other: float = math.nan, span: MeanAndError | None = None, spread: float
) -> PaperCell:
    """Ours beside the paper's; `spread` is the standard deviation of one of the 10,000 runs behind the paper's.

    All readings of ours together span from the lowest to the highest: those two unless told.
    """
    both = [ours[0]] if math.isnan(other) else [ours[0], other]
    low, high = span or (min(both), max(both))
    paper = load_published_numbers().get(place, math.nan)
    if math.isnan(paper):
        return PaperCell(*place, *ours, other, low, high, *(math.nan,) * 4, ())
    paper_se = math.hypot(spread / math.sqrt(PAPER_RUNS), ROUNDING_STEP / math.sqrt(12))
    joint = math.hypot(ours[1], paper_se)
    tolerance = find_tolerance(place, paper)
    nearest = min(max(paper, low), high) if tolerance.readings else ours[0]
    left = math.copysign(max(0.0, abs(nearest - paper) - tolerance.allows), nearest - paper)
    return PaperCell(
        *place, *ours, other, low, high, paper, paper_se, (ours[0] - paper) / joint, left / joint, tolerance.reasons,
        find_explanation(place),
    )  # fmt: skip


class RowRegrets:
    """A row's regrets (widths, runs), its mean curve and the best widths."""

    def __init__(self, row: str, among: Range, regrets: FloatArray) -> None:
        self.row, self.among, self.regrets = row, among, regrets
        self.means = regrets.mean(axis=1)
        self.variance = regrets.var(axis=1, ddof=1)
        folds = compute_fold_means(regrets)
        curve, self.partial = smooth_fold_means(UNIT_POINTS, folds, self.variance, among.scale)
        self.without = (FOLD_COUNT * folds.mean(axis=0) - folds) / (FOLD_COUNT - 1)
        self.best = int(curve.argmin())
        # What the paper's 10,000 runs a width may have shown as the lowest, and ours may not.
        apart = (regrets - regrets[self.best]).std(axis=1) * math.sqrt(1 / PAPER_RUNS + 1 / regrets.shape[1])
        self.maybe_best = np.flatnonzero(curve - curve[self.best] <= BEST_MARGIN * apart)
        self.best_of_tenths = int(TENTH_INDICES[self.means[TENTH_INDICES].argmin()])

    def curve(self) -> PaperCurve:
        """The curve as a record."""
        values = freeze_floats([self.among.at(unit) for unit in UNIT_POINTS])
        se = np.sqrt(self.variance / self.regrets.shape[1])
        best, tenth = (float(values[place]) for place in (self.best, self.best_of_tenths))
        return PaperCurve(self.row, self.among.name, values, freeze_floats(self.means), freeze_floats(se), best, tenth)

    def theory(self) -> PaperCell:
        """What is lost at theory's width."""
        (at,) = np.flatnonzero(UNIT_POINTS == 1.0)
        return make_paper_cell(
            PaperCellKey("theory", self.row),
            compute_mean_and_error(self.regrets[at]),
            spread=math.sqrt(self.variance[at]),
        )

    def lowest(self) -> PaperCell:
        """What is lost at the best width, and at the best of tenths: chosen without a tenth of the runs, judged on it."""
        fine = self.judged(self.partial.argmin(axis=1))
        tenths = self.judged(TENTH_INDICES[self.without[:, TENTH_INDICES].argmin(axis=1)])
        spread = math.sqrt(self.variance[self.best])
        return make_paper_cell(
            PaperCellKey("best", self.row), compute_mean_and_error(fine), other=float(tenths.mean()), spread=spread
        )

    def judged(self, places: IntArray) -> FloatArray:
        """Regrets of each fold at the width that was chosen without it."""
        parts = np.array_split(self.regrets, FOLD_COUNT, axis=1)
        return np.concatenate([part[place] for part, place in zip(parts, places, strict=True)])

    def after(self, place: PaperCellKey, found: TuningOutcomes, otherwise: Sequence[TuningOutcomes]) -> PaperCell:
        """What tuned widths lose; the paper's error is that of a run at a tuned width."""
        ours = (found.mean(self.means), found.error(self.means, self.regrets))
        means = [ours[0], *(reading.mean(self.means) for reading in otherwise)]
        differs = otherwise and not np.array_equal(otherwise[0].answers, found.answers)
        spread = math.sqrt(found.spread(self.means) ** 2 + found.mean(self.variance))
        span = (min(means), max(means))
        return make_paper_cell(place, ours, other=means[1] if differs else math.nan, span=span, spread=spread)

    def failures(
        self, place: PaperCellKey, found: TuningOutcomes, otherwise: Sequence[TuningOutcomes] = ()
    ) -> PaperCell:
        """How often a tuned width is further than epsilon from the best one, in %.

        The other reading is with the best of tenths; all readings, with any width that may have been taken for the best,
        and with all readings of the tuner.
        """
        far = 100.0 * (np.abs(np.subtract.outer(UNIT_POINTS, UNIT_POINTS)) > PAPER_EPSILON + 1e-9)
        bests = (self.best, self.best_of_tenths, *self.maybe_best)
        shares = [reading.mean(far[best]) for reading in (found, *otherwise) for best in bests]
        # Where none fails, one tuning could have been otherwise.
        ours = (shares[0], max(found.error(far[self.best]), 100 / found.tunings))
        percent = min(max(shares[0], load_published_numbers().get(place, 0.0)), 50.0)
        spread = math.sqrt(percent * (100 - percent))
        return make_paper_cell(place, ours, other=shares[1], span=(min(shares), max(shares)), spread=spread)


def compute_mean_and_error(sample: FloatArray) -> MeanAndError:
    """A mean and its standard error."""
    return float(sample.mean()), compute_standard_error(sample)
