"""Numbers of ours beside the paper's: what a pool tells, how sure it is, how far the two are apart."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from banditune.contracts import Floats, Integers, Range
from banditune.paper.pools import FOLDS, UNITS, fold_means, smoothed
from banditune.paper.published import FRESH_RUNS, LAST_DIGIT, Place, known_about, published, tolerance_of
from banditune.paper.tunings import EPSILON, Tuned
from banditune.results import PaperCell, PaperCurve, frozen, standard_error

AFTER_TUNING, FAILURES = (50, 200, 1000), (200, 500, 1000)
"""Budgets of the paper's two tables."""

TENTHS: Integers = np.abs(np.subtract.outer(np.arange(11) / 10, UNITS)).argmin(axis=1)
"""Where the grid of the baselines is in the pool."""

MAYBE = 2.0
"""A width that is worse by less than so many standard errors may be taken for the best."""

Number = tuple[float, float]
"""A mean and its standard error."""


def cell(
    place: Place, ours: Number, *, other: float = math.nan, span: Number | None = None, spread: float
) -> PaperCell:
    """Ours beside the paper's; `spread` is the standard deviation of one of the 10,000 runs behind the paper's.

    All readings of ours together span from the lowest to the highest: those two unless told.
    """
    both = [ours[0]] if math.isnan(other) else [ours[0], other]
    low, high = span or (min(both), max(both))
    paper = published().get(place, math.nan)
    if math.isnan(paper):
        return PaperCell(*place, *ours, other, low, high, *(math.nan,) * 4, ())
    paper_se = math.hypot(spread / math.sqrt(FRESH_RUNS), LAST_DIGIT / math.sqrt(12))
    joint = math.hypot(ours[1], paper_se)
    tolerance = tolerance_of(place, paper)
    nearest = min(max(paper, low), high) if tolerance.readings else ours[0]
    left = math.copysign(max(0.0, abs(nearest - paper) - tolerance.allows), nearest - paper)
    return PaperCell(
        *place, *ours, other, low, high, paper, paper_se, (ours[0] - paper) / joint, left / joint, tolerance.reasons,
        known_about(place),
    )  # fmt: skip


class Pool:
    """A row's regrets (widths, runs), its mean curve and the best widths."""

    def __init__(self, row: str, among: Range, regrets: Floats) -> None:
        self.row, self.among, self.regrets = row, among, regrets
        self.means = regrets.mean(axis=1)
        self.variance = regrets.var(axis=1, ddof=1)
        folds = fold_means(regrets)
        curve, self.partial = smoothed(UNITS, folds, self.variance, among.scale)
        self.without = (FOLDS * folds.mean(axis=0) - folds) / (FOLDS - 1)
        self.best = int(curve.argmin())
        # What the paper's 10,000 runs a width may have shown as the lowest, and ours may not.
        apart = (regrets - regrets[self.best]).std(axis=1) * math.sqrt(1 / FRESH_RUNS + 1 / regrets.shape[1])
        self.maybe_best = np.flatnonzero(curve - curve[self.best] <= MAYBE * apart)
        self.best_of_tenths = int(TENTHS[self.means[TENTHS].argmin()])

    def curve(self) -> PaperCurve:
        """The curve as a record."""
        values = frozen([self.among.at(unit) for unit in UNITS])
        se = np.sqrt(self.variance / self.regrets.shape[1])
        best, tenth = (float(values[place]) for place in (self.best, self.best_of_tenths))
        return PaperCurve(self.row, self.among.name, values, frozen(self.means), frozen(se), best, tenth)

    def theory(self) -> PaperCell:
        """What is lost at theory's width."""
        (at,) = np.flatnonzero(UNITS == 1.0)
        return cell(Place("theory", self.row), mean_of(self.regrets[at]), spread=math.sqrt(self.variance[at]))

    def lowest(self) -> PaperCell:
        """What is lost at the best width, and at the best of tenths: chosen without a tenth of the runs, judged on it."""
        fine = self.judged(self.partial.argmin(axis=1))
        tenths = self.judged(TENTHS[self.without[:, TENTHS].argmin(axis=1)])
        spread = math.sqrt(self.variance[self.best])
        return cell(Place("best", self.row), mean_of(fine), other=float(tenths.mean()), spread=spread)

    def judged(self, places: Integers) -> Floats:
        """Regrets of each fold at the width that was chosen without it."""
        parts = np.array_split(self.regrets, FOLDS, axis=1)
        return np.concatenate([part[place] for part, place in zip(parts, places, strict=True)])

    def after(self, place: Place, found: Tuned, otherwise: Sequence[Tuned]) -> PaperCell:
        """What tuned widths lose; the paper's error is that of a run at a tuned width."""
        ours = (found.mean(self.means), found.error(self.means, self.regrets))
        means = [ours[0], *(reading.mean(self.means) for reading in otherwise)]
        differs = otherwise and not np.array_equal(otherwise[0].answers, found.answers)
        spread = math.sqrt(found.spread(self.means) ** 2 + found.mean(self.variance))
        span = (min(means), max(means))
        return cell(place, ours, other=means[1] if differs else math.nan, span=span, spread=spread)

    def failures(self, place: Place, found: Tuned, otherwise: Sequence[Tuned] = ()) -> PaperCell:
        """How often a tuned width is further than epsilon from the best one, in %.

        The other reading is with the best of tenths; all readings, with any width that may have been taken for the best,
        and with all readings of the tuner.
        """
        far = 100.0 * (np.abs(np.subtract.outer(UNITS, UNITS)) > EPSILON + 1e-9)
        bests = (self.best, self.best_of_tenths, *self.maybe_best)
        shares = [reading.mean(far[best]) for reading in (found, *otherwise) for best in bests]
        # Where none fails, one tuning could have been otherwise.
        ours = (shares[0], max(found.error(far[self.best]), 100 / found.tunings))
        percent = min(max(shares[0], published().get(place, 0.0)), 50.0)
        spread = math.sqrt(percent * (100 - percent))
        return cell(place, ours, other=shares[1], span=(min(shares), max(shares)), spread=spread)


def mean_of(sample: Floats) -> Number:
    """A mean and its standard error."""
    return float(sample.mean()), standard_error(sample)
