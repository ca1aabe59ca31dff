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
    """The standard error of a mean; NaN for a single run."""
    return float(np.std(sample, ddof=1) / math.sqrt(len(sample))) if len(sample) > 1 else math.nan


def compute_bonferroni_quantile(count: int, runs: int) -> float:
    """Standard errors to each side by which so many intervals hold together with 95% (Bonferroni)."""
    return compute_student_quantile(1 - (1 - CONFIDENCE_LEVEL) / 2 / count, runs - 1)


def _invert_hall_transformation(sample: FloatArray, z: float) -> float:
    """How far a mean is off, in standard deviations, where Hall's cubic transformation of it is z standard errors."""
    count = len(sample)
    skew = float(np.mean((sample - sample.mean()) ** 3) / np.std(sample) ** 3)
    wanted = z / math.sqrt(count) - skew / (6 * count)
    return wanted if abs(skew) < 1e-6 else 3 / skew * float(np.cbrt(1 + skew * wanted) - 1)


@register_record
@dataclass(frozen=True, repr=False, eq=False)
class Estimate(ResultRecord):
    """A mean with its standard error and 95% interval (Student's t: as far as the central limit theorem holds).

    `runs` counts independent numbers, of which the interval is made. Each `unit` gives one: a "run", or, where several
    runs play the same table or campaign, that table or campaign with its mean.
    """

    mean: float
    se: float
    low: float
    high: float
    runs: int
    unit: str = "run"

    @classmethod
    def of(cls, sample: FloatArray, unit: str = "run") -> Estimate:
        """The mean of a sample, one number per unit."""
        return cls.told(float(np.mean(sample)), compute_standard_error(sample), len(sample), unit)

    @classmethod
    def of_units(cls, sample: FloatArray, unit: str) -> Estimate:
        """The mean of a few independent numbers that may be skewed, as regrets of tables are.

        Each end is the further one of Student's and of Hall's interval (1992), which corrects for skewness. By itself
        Student's is missed too often, nearly always by means that are above it.
        """
        found = cls.of(sample, unit)
        if not found.se > 0:
            return found
        quantile, sd = compute_student_quantile(UPPER_TAIL_LEVEL, len(sample) - 1), found.se * math.sqrt(len(sample))
        low, high = (found.mean - sd * _invert_hall_transformation(sample, z) for z in (quantile, -quantile))
        return cls(found.mean, found.se, min(found.low, low), max(found.high, high), found.runs, unit)

    @classmethod
    def told(cls, mean: float, se: float, runs: int, unit: str = "run") -> Estimate:
        """The interval of a mean of so many independent numbers whose standard error is known."""
        reach = compute_student_quantile(UPPER_TAIL_LEVEL, runs - 1) * se
        return cls(mean, se, mean - reach, mean + reach, runs, unit)

    def __repr__(self) -> str:
        interval = f"95%: {self.low:.4g} to {self.high:.4g}"
        return f"{self.mean:.4g} +- {self.se:.2g} ({interval}, {self.runs} {self.unit}s)"


QUANTILE_LEVELS = (
    0,
    0.01,
    0.02,
    0.05,
    *(place / 10 for place in range(1, 10)),
    0.25,
    0.75,
    0.95,
    0.98,
    0.99,
    0.995,
    0.999,
    1,
)
"""Levels of the quantiles that a result keeps: more of them at the ends."""


WORST_RUN_COUNT = 10
"""So many of the runs that lost most are kept by number."""


@register_record
@dataclass(frozen=True, repr=False, eq=False)
class RegretDistribution(ResultRecord):
    """How the regrets of single runs are spread, which their mean does not show.

    `values` are the quantiles at `levels`, each the regret of a run: the lowest that a share `level` of the runs does not
    exceed. `worst` are the numbers of the runs that lost most, `losses` their regrets, worst first;
    `simulate(..., first=number, runs=1)` plays such a run again. Runs that it would not repeat have no numbers.
    """

    levels: FloatArray
    values: FloatArray
    mean: float
    runs: int
    worst: tuple[int, ...]
    losses: FloatArray

    @classmethod
    def of(cls, sample: FloatArray, first: int | None, units: FloatArray | None = None) -> RegretDistribution:
        """Of regrets of runs that are numbered from `first` on, if at all; of equal ones, the first run is the worst.

        The mean is that of `units`, where runs are not independent and their means by table or campaign are.
        """
        worst = np.argsort(-sample, kind="stable")[:WORST_RUN_COUNT]
        levels = sorted(QUANTILE_LEVELS)
        values = np.quantile(sample, levels, method="inverted_cdf")
        return cls(
            freeze_floats(levels),
            freeze_floats(values),
            float(np.mean(sample if units is None else units)),
            len(sample),
            () if first is None else tuple(first + int(place) for place in worst),
            freeze_floats(sample[worst]),
        )

    def at(self, level: float) -> float:
        """The quantile at one of the levels."""
        return float(self.values[self.levels.tolist().index(level)])

    def __repr__(self) -> str:
        return f"mean {self.mean:.4g}, median {self.at(0.5):.4g}, 99% {self.at(0.99):.4g}, worst {self.values[-1]:.4g}"
