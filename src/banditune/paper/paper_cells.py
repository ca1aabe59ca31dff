"""Our numbers and the paper's: estimates from a pool, their standard errors and the differences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

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
"""The indices of the baselines' grid in the pool."""


BEST_MARGIN = 2.0
"""The largest difference to the best mean, in standard errors, at which a width may be the best."""


MeanAndError = tuple[float, float]
"""A mean and its standard error."""


def make_paper_cell(
    key: PaperCellKey,
    reproduced: MeanAndError,
    *,
    other_reading: float = math.nan,
    span: MeanAndError | None = None,
    spread: float,
) -> PaperCell:
    """Make a cell with our number and the paper's.

    `spread` is the standard deviation of one of the 10,000 runs of the paper's number. `span` is the lowest and the highest
    of our readings, by default those of both readings.
    """
    both = [reproduced[0]] if math.isnan(other_reading) else [reproduced[0], other_reading]
    low, high = span or (min(both), max(both))
    paper = load_published_numbers().get(key, math.nan)
    cell = PaperCell(
        **key._asdict(),
        ours=reproduced[0],
        se=reproduced[1],
        other_reading=other_reading,
        low=low,
        high=high,
        paper=math.nan,
        paper_se=math.nan,
        z_score=math.nan,
        excess_z_score=math.nan,
        tolerance_reasons=(),
    )
    if math.isnan(paper):
        return cell
    paper_se = math.hypot(spread / math.sqrt(PAPER_RUNS), ROUNDING_STEP / math.sqrt(12))
    joint = math.hypot(reproduced[1], paper_se)
    tolerance = find_tolerance(key, paper)
    nearest = min(max(paper, low), high) if tolerance.any_reading else reproduced[0]
    excess = math.copysign(max(0.0, abs(nearest - paper) - tolerance.allowance), nearest - paper)
    return replace(
        cell,
        paper=paper,
        paper_se=paper_se,
        z_score=(reproduced[0] - paper) / joint,
        excess_z_score=excess / joint,
        tolerance_reasons=tolerance.reasons,
        explanation=find_explanation(key),
    )


class RowRegrets:
    """The regrets of a row (widths, runs), with its mean curve and its best widths."""

    def __init__(self, row: str, search_range: Range, regrets: FloatArray) -> None:
        self.row, self.search_range, self.regrets = row, search_range, regrets
        self.means = regrets.mean(axis=1)
        self.variance = regrets.var(axis=1, ddof=1)
        folds = compute_fold_means(regrets)
        curve, self.partial = smooth_fold_means(UNIT_POINTS, folds, self.variance, search_range.scale)
        self.without = (FOLD_COUNT * folds.mean(axis=0) - folds) / (FOLD_COUNT - 1)
        self.best = int(curve.argmin())
        # These widths may have been the best in the paper's 10,000 runs per width.
        paper_errors = (regrets - regrets[self.best]).std(axis=1) * math.sqrt(1 / PAPER_RUNS + 1 / regrets.shape[1])
        self.maybe_best = np.flatnonzero(curve - curve[self.best] <= BEST_MARGIN * paper_errors)
        self.best_of_tenths = int(TENTH_INDICES[self.means[TENTH_INDICES].argmin()])

    def make_curve(self) -> PaperCurve:
        """Make the record of the curve."""
        values = freeze_floats([self.search_range.scale_from_unit(unit) for unit in UNIT_POINTS])
        se = np.sqrt(self.variance / self.regrets.shape[1])
        best, tenth = (float(values[index]) for index in (self.best, self.best_of_tenths))
        return PaperCurve(
            row=self.row,
            parameter=self.search_range.name,
            values=values,
            mean=freeze_floats(self.means),
            se=freeze_floats(se),
            best_value=best,
            best_of_tenths=tenth,
        )

    def compare_textbook(self) -> PaperCell:
        """Compare the regret at the textbook width."""
        (at,) = np.flatnonzero(UNIT_POINTS == 1.0)
        return make_paper_cell(
            PaperCellKey("textbook", self.row),
            compute_mean_and_error(self.regrets[at]),
            spread=math.sqrt(self.variance[at]),
        )

    def compare_best(self) -> PaperCell:
        """Compare the regret at the best width, and at the best of tenths, by cross-validation over the folds."""
        best_regrets = self.cross_validate(self.partial.argmin(axis=1))
        tenths = self.cross_validate(TENTH_INDICES[self.without[:, TENTH_INDICES].argmin(axis=1)])
        spread = math.sqrt(self.variance[self.best])
        return make_paper_cell(
            PaperCellKey("best", self.row),
            compute_mean_and_error(best_regrets),
            other_reading=float(tenths.mean()),
            spread=spread,
        )

    def cross_validate(self, best_widths: IntArray) -> FloatArray:
        """Return the regrets of each fold at the width that was selected without it."""
        folds = np.array_split(self.regrets, FOLD_COUNT, axis=1)
        return np.concatenate([fold[width] for fold, width in zip(folds, best_widths, strict=True)])

    def compare_tuned_regret(
        self, key: PaperCellKey, outcomes: TuningOutcomes, otherwise: Sequence[TuningOutcomes]
    ) -> PaperCell:
        """Compare the regret of tuned widths. The paper's error is that of a run at a tuned width."""
        reproduced = (outcomes.compute_mean(self.means), outcomes.compute_error(self.means, self.regrets))
        means = [reproduced[0], *(reading.compute_mean(self.means) for reading in otherwise)]
        differs = otherwise and not np.array_equal(otherwise[0].answer_counts, outcomes.answer_counts)
        spread = math.sqrt(outcomes.compute_sd(self.means) ** 2 + outcomes.compute_mean(self.variance))
        span = (min(means), max(means))
        return make_paper_cell(
            key, reproduced, other_reading=means[1] if differs else math.nan, span=span, spread=spread
        )

    def compare_failures(
        self, key: PaperCellKey, outcomes: TuningOutcomes, otherwise: Sequence[TuningOutcomes] = ()
    ) -> PaperCell:
        """Compare the percentage of tuned widths that are further than epsilon from the best one.

        The other reading is with the best of tenths. The span is over all widths that may be the best, and over all
        readings of the tuner.
        """
        failure_percent = 100.0 * (np.abs(np.subtract.outer(UNIT_POINTS, UNIT_POINTS)) > PAPER_EPSILON + 1e-9)
        bests = (self.best, self.best_of_tenths, *self.maybe_best)
        shares = [reading.compute_mean(failure_percent[best]) for reading in (outcomes, *otherwise) for best in bests]
        # Without failures, the error is that of one failure.
        reproduced = (shares[0], max(outcomes.compute_error(failure_percent[self.best]), 100 / outcomes.tuning_count))
        percent = min(max(shares[0], load_published_numbers().get(key, 0.0)), 50.0)
        spread = math.sqrt(percent * (100 - percent))
        return make_paper_cell(key, reproduced, other_reading=shares[1], span=(min(shares), max(shares)), spread=spread)


def compute_mean_and_error(sample: FloatArray) -> MeanAndError:
    """Compute a mean and its standard error."""
    return float(sample.mean()), compute_standard_error(sample)
