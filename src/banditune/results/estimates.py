"""Means, quantiles and confidence intervals of simulated regrets."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.results.result_record import ResultRecord, freeze_floats, register_record
from banditune.results.student_t import compute_student_quantile

CONFIDENCE_LEVEL = 0.95


UPPER_TAIL_LEVEL = 0.5 + CONFIDENCE_LEVEL / 2


def compute_standard_error(sample: FloatArray) -> float:
    """Compute the standard error of a mean; NaN for a single run."""
    return float(np.std(sample, ddof=1) / math.sqrt(len(sample))) if len(sample) > 1 else math.nan


def compute_bonferroni_quantile(count: int, runs: int) -> float:
    """Compute the half width, in standard errors, at which `count` intervals hold together with 95% (Bonferroni)."""
    return compute_student_quantile(1 - (1 - CONFIDENCE_LEVEL) / 2 / count, runs - 1)


PRIOR_SKEWNESS, PRIOR_UNITS = 4.0, 60
"""The prior of the absolute skewness of regrets, and its weight as a number of units.

Most of the regret is often from a few tables or campaigns. If a small sample lacks them, its skewness and its variance
are too small. Without a prior, intervals over five to eight tables held in 80 to 90% of samples.
"""


def _compute_skewness(sample: FloatArray) -> float:
    """Compute the skewness of a sample that is not constant."""
    return float(np.mean((sample - sample.mean()) ** 3) / np.std(sample) ** 3)


def _invert_hall_transformation(skewness: float, count: int, z: float) -> float:
    """Compute the error of a mean, in standard deviations, whose cubic transformation (Hall) is z standard errors."""
    target = z / math.sqrt(count) - skewness / (6 * count)
    return target if abs(skewness) < 1e-6 else 3 / skewness * float(np.cbrt(1 + skewness * target) - 1)


def _compute_skewed_reach(skewness: float, count: int, quantile: float) -> float:
    """Compute how far the mean may be above that of a sample, in standard deviations.

    It is the largest of three numbers: Student's, Hall's, and Student's quantile of a skewed distribution (Johnson
    1978, an Edgeworth expansion). The last uses the weighted mean of the sample's and the prior's skewness.
    """
    expected = (count * skewness + PRIOR_UNITS * PRIOR_SKEWNESS) / (count + PRIOR_UNITS)
    expanded = quantile / math.sqrt(count) + expected * (1 + 2 * quantile**2) / (6 * count)
    return max(quantile / math.sqrt(count), -_invert_hall_transformation(skewness, count, -quantile), expanded)


@register_record
@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Estimate(ResultRecord):
    """A mean with its standard error and 95% confidence interval.

    The interval is by Student's t, as far as the central limit theorem holds.

    Attributes
    ----------
    mean : float
        The mean.
    se : float
        Its standard error; NaN for a single run.
    low : float
        The lower end of the interval.
    high : float
        The upper end of the interval.
    runs : int
        The number of independent values behind the mean.
    unit : str
        The name of a unit that contributes one value: a "run"; or a table or campaign, which contributes its mean.
    """

    mean: float
    se: float
    low: float
    high: float
    runs: int
    unit: str = "run"

    @classmethod
    def from_sample(cls, sample: FloatArray, unit: str = "run") -> Estimate:
        """Estimate the mean of a sample.

        Parameters
        ----------
        sample : array of float
            One independent value per unit.
        unit : str
            The name of a unit.
        """
        return cls.from_standard_error(float(np.mean(sample)), compute_standard_error(sample), len(sample), unit)

    @classmethod
    def from_units(cls, sample: FloatArray, unit: str) -> Estimate:
        """Estimate the mean of a few independent values that may be skewed, such as mean regrets of tables.

        Each end is the furthest of three intervals: Student's, Hall's (1992), which corrects for skewness, and one with
        a prior for the skewness. Student's interval alone misses the mean too often, mostly because it ends below it.

        Parameters
        ----------
        sample : array of float
            One independent value per unit.
        unit : str
            The name of a unit.
        """
        estimate = cls.from_sample(sample, unit)
        if not estimate.se > 0:
            return estimate
        count, skewness = len(sample), _compute_skewness(sample)
        quantile, sd = compute_student_quantile(UPPER_TAIL_LEVEL, count - 1), estimate.se * math.sqrt(count)
        # The lower end is the upper one of the negative sample.
        below, above = (sd * _compute_skewed_reach(sign * skewness, count, quantile) for sign in (-1, 1))
        return cls(
            mean=estimate.mean,
            se=estimate.se,
            low=estimate.mean - below,
            high=estimate.mean + above,
            runs=estimate.runs,
            unit=unit,
        )

    @classmethod
    def from_standard_error(cls, mean: float, se: float, runs: int, unit: str = "run") -> Estimate:
        """Make an estimate from a mean and its known standard error.

        Parameters
        ----------
        mean : float
            The mean.
        se : float
            Its standard error.
        runs : int
            The number of independent values behind the mean.
        unit : str
            The name of a unit.
        """
        reach = compute_student_quantile(UPPER_TAIL_LEVEL, runs - 1) * se
        return cls(mean=mean, se=se, low=mean - reach, high=mean + reach, runs=runs, unit=unit)

    def widen(self, quantile: float) -> tuple[float, float]:
        """Return the interval for another half width. An asymmetric interval keeps the ratio of its two sides.

        Parameters
        ----------
        quantile : float
            The half width in standard errors that Student's interval then has.
        """
        if self.unit == "run":
            return self.mean - quantile * self.se, self.mean + quantile * self.se
        factor = quantile / compute_student_quantile(UPPER_TAIL_LEVEL, self.runs - 1)
        return self.mean - factor * (self.mean - self.low), self.mean + factor * (self.high - self.mean)

    def __repr__(self) -> str:
        interval = f"95%: {self.low:.4g} to {self.high:.4g}"
        return f"{self.mean:.4g} +- {self.se:.2g} ({interval}, {self.runs} {self.unit}s)"


QUANTILE_LEVELS = (
    0,
    0.01,
    0.02,
    0.05,
    *(tenth / 10 for tenth in range(1, 10)),
    0.25,
    0.75,
    0.95,
    0.98,
    0.99,
    0.995,
    0.999,
    1,
)
"""Levels of the quantiles that a result keeps, denser at both ends."""


WORST_RUN_COUNT = 10
"""The number of runs with the highest regret whose numbers are kept."""


@register_record
@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class RegretDistribution(ResultRecord):
    """The distribution of the regrets of single runs, which their mean does not show.

    Attributes
    ----------
    levels : array of float
        The levels of the quantiles, from 0 to 1.
    values : array of float
        The quantile at each level: the lowest regret that this share of the runs does not exceed.
    mean : float
        The mean regret; over tables or campaigns where several runs share one.
    runs : int
        The number of runs.
    worst_runs : tuple of int
        The numbers of the runs with the highest regret, worst first. `simulate(..., first_instance=number, runs=1)`
        repeats such a run. Empty where it would not.
    worst_regrets : array of float
        The highest regrets, worst first.
    """

    levels: FloatArray
    values: FloatArray
    mean: float
    runs: int
    worst_runs: tuple[int, ...]
    worst_regrets: FloatArray

    @classmethod
    def from_sample(cls, sample: FloatArray, first: int | None, units: FloatArray | None = None) -> RegretDistribution:
        """Summarise the regrets of runs.

        Parameters
        ----------
        sample : array of float
            The regret of each run.
        first : int or None
            The number of the first run; None if the runs cannot be repeated by their numbers.
        units : array of float, optional
            The mean regret of each table or campaign, where runs are not independent. The mean is taken over these.
        """
        worst = np.argsort(-sample, kind="stable")[:WORST_RUN_COUNT]
        levels = sorted(QUANTILE_LEVELS)
        values = np.quantile(sample, levels, method="inverted_cdf")
        return cls(
            levels=freeze_floats(levels),
            values=freeze_floats(values),
            mean=float(np.mean(sample if units is None else units)),
            runs=len(sample),
            worst_runs=() if first is None else tuple(first + int(tenth) for tenth in worst),
            worst_regrets=freeze_floats(sample[worst]),
        )

    def get_quantile(self, level: float) -> float:
        """Return the quantile at one of the levels.

        Parameters
        ----------
        level : float
            One of `levels`, such as 0.5 for the median.
        """
        return float(self.values[self.levels.tolist().index(level)])

    def __repr__(self) -> str:
        quantiles = f"median {self.get_quantile(0.5):.4g}, 99% {self.get_quantile(0.99):.4g}"
        return f"mean {self.mean:.4g}, {quantiles}, worst {self.values[-1]:.4g}"
