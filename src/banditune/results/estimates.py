"""Means and quantiles of runs, and how sure they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from banditune.contracts import Floats
from banditune.results.record import Record, frozen, kept

LEVEL = 0.95
TAIL = 0.5 + LEVEL / 2

MANY = 1000
"""Beyond so many degrees of freedom the expansion of Student's quantiles has eight digits at least."""


@lru_cache(maxsize=1024)
def student_quantile(level: float, degrees: int) -> float:
    """A quantile of Student's t: in closed form for 1 and 2 degrees, by Newton's steps, or by an expansion for many."""
    if level < 0.5:
        return -student_quantile(1 - level, degrees)
    if level == 0.5:
        return 0.0
    if degrees <= 1:
        return 1 / math.tan(math.pi * (1 - level))
    if degrees == 2:
        return (2 * level - 1) * math.sqrt(2 / (4 * level * (1 - level)))
    return _expansion(level, degrees) if degrees > MANY else _solved(level, degrees)


def _expansion(level: float, degrees: int) -> float:
    """The quantile out of that of the normal distribution (Abramowitz, Stegun 26.7.5)."""
    z = NormalDist().inv_cdf(level)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / degrees + second / degrees**2 + third / degrees**3


def _solved(level: float, degrees: int) -> float:
    """The quantile, above the median, by Newton's steps.

    Far out the share above t is nearly a power of t, so the steps are those of logarithms: they find a line's end at once.
    """
    found = _expansion(level, degrees)
    for _ in range(50):
        above, density = _student(found, degrees)
        step = math.log(above / (1 - level)) * above / (density * found)
        found *= math.exp(max(-1.0, min(1.0, step)))
        if abs(step) < 1e-10:
            break
    return found


def _student(t: float, degrees: int) -> tuple[float, float]:
    """The share of Student's t above t > 0, half an incomplete beta function, and its density."""
    half = degrees / 2
    constant = math.lgamma(half + 0.5) - math.lgamma(half) - math.lgamma(0.5)
    near, far = t * t / (degrees + t * t), degrees / (degrees + t * t)
    # far^half near^(1/2) / B(half, 1/2), with a logarithm that keeps its digits where t is small
    front = math.exp(constant - half * math.log1p(t * t / degrees)) * math.sqrt(near)
    if far < (half + 1) / (half + 2.5):
        above = 0.5 * front / half * _fraction(far, half, 0.5)
    else:
        above = 0.5 - front * _fraction(near, 0.5, half)
    return above, front / t


def _fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of the incomplete beta function (Abramowitz, Stegun 26.5.8), by Lentz's method."""
    numerator, denominator = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    found = denominator
    for m in range(1, 1000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            denominator = 1 / (1 + term * denominator)
            numerator = 1 + term / numerator
            found *= denominator * numerator
        if abs(denominator * numerator - 1) < 1e-15:
            break
    return found


def standard_error(sample: Floats) -> float:
    """The standard error of a mean; NaN for a single run."""
    return float(np.std(sample, ddof=1) / math.sqrt(len(sample))) if len(sample) > 1 else math.nan


def reach_of_all(count: int, runs: int) -> float:
    """Standard errors to each side by which so many intervals hold together with 95% (Bonferroni)."""
    return student_quantile(1 - (1 - LEVEL) / 2 / count, runs - 1)


def _hall(sample: Floats, z: float) -> float:
    """How far a mean is off, in standard deviations, where Hall's cubic transformation of it is z standard errors."""
    count = len(sample)
    skew = float(np.mean((sample - sample.mean()) ** 3) / np.std(sample) ** 3)
    wanted = z / math.sqrt(count) - skew / (6 * count)
    return wanted if abs(skew) < 1e-6 else 3 / skew * float(np.cbrt(1 + skew * wanted) - 1)


@kept
@dataclass(frozen=True, repr=False, eq=False)
class Estimate(Record):
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
    def of(cls, sample: Floats, unit: str = "run") -> Estimate:
        """The mean of a sample, one number per unit."""
        return cls.told(float(np.mean(sample)), standard_error(sample), len(sample), unit)

    @classmethod
    def of_units(cls, sample: Floats, unit: str) -> Estimate:
        """The mean of a few independent numbers that may be skewed, as regrets of tables are.

        Each end is the further one of Student's and of Hall's interval (1992), which corrects for skewness. By itself
        Student's is missed too often, nearly always by means that are above it.
        """
        found = cls.of(sample, unit)
        if not found.se > 0:
            return found
        quantile, sd = student_quantile(TAIL, len(sample) - 1), found.se * math.sqrt(len(sample))
        low, high = (found.mean - sd * _hall(sample, z) for z in (quantile, -quantile))
        return cls(found.mean, found.se, min(found.low, low), max(found.high, high), found.runs, unit)

    @classmethod
    def told(cls, mean: float, se: float, runs: int, unit: str = "run") -> Estimate:
        """The interval of a mean of so many independent numbers whose standard error is known."""
        reach = student_quantile(TAIL, runs - 1) * se
        return cls(mean, se, mean - reach, mean + reach, runs, unit)

    def __repr__(self) -> str:
        interval = f"95%: {self.low:.4g} to {self.high:.4g}"
        return f"{self.mean:.4g} +- {self.se:.2g} ({interval}, {self.runs} {self.unit}s)"


QUANTILES = (
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


WORST = 10
"""So many of the runs that lost most are kept by number."""


@kept
@dataclass(frozen=True, repr=False, eq=False)
class Spread(Record):
    """How the regrets of single runs are spread, which their mean does not show.

    `values` are the quantiles at `levels`, each the regret of a run: the lowest that a share `level` of the runs does not
    exceed. `worst` are the numbers of the runs that lost most, `losses` their regrets, worst first;
    `simulate(..., first=number, runs=1)` plays such a run again. Runs that it would not repeat have no numbers.
    """

    levels: Floats
    values: Floats
    mean: float
    runs: int
    worst: tuple[int, ...]
    losses: Floats

    @classmethod
    def of(cls, sample: Floats, first: int | None, units: Floats | None = None) -> Spread:
        """Of regrets of runs that are numbered from `first` on, if at all; of equal ones, the first run is the worst.

        The mean is that of `units`, where runs are not independent and their means by table or campaign are.
        """
        worst = np.argsort(-sample, kind="stable")[:WORST]
        levels = sorted(QUANTILES)
        values = np.quantile(sample, levels, method="inverted_cdf")
        return cls(
            frozen(levels),
            frozen(values),
            float(np.mean(sample if units is None else units)),
            len(sample),
            () if first is None else tuple(first + int(place) for place in worst),
            frozen(sample[worst]),
        )

    def at(self, level: float) -> float:
        """The quantile at one of the levels."""
        return float(self.values[self.levels.tolist().index(level)])

    def __repr__(self) -> str:
        return f"mean {self.mean:.4g}, median {self.at(0.5):.4g}, 99% {self.at(0.99):.4g}, worst {self.values[-1]:.4g}"


@kept
@dataclass(frozen=True, repr=False, eq=False)
class Unimodality(Record):
    """A test of "the curve falls, then rises": rejected where a value in between is surely above both sides.

    `alarm` bounds the probability to reject a unimodal curve. `peak` names the three values where it was rejected.
    """

    rejected: bool
    statistic: float
    critical: float
    alarm: float
    peak: tuple[float, ...]

    def __repr__(self) -> str:
        if not self.rejected:
            return f"no sign against one dip (statistic {self.statistic:.2f}, critical {self.critical:.2f})"
        left, top, right = self.peak
        return (
            f"more than one dip: {top:.4g} is above both {left:.4g} and {right:.4g} (false alarms <= {self.alarm:.0%})"
        )


@kept
@dataclass(frozen=True, repr=False, eq=False)
class Belief(Record):
    """What a search knows about its answer. Each statement holds with probability `level`, as far as its curves fit.

    The answer loses `mean` (`low` to `high`) on average; the best value is between `best_low` and `best_high`; nothing
    beats the answer by more than `gap`; `flat` holds two values and a share: every value between them is within that share
    of the lowest regret (it is empty where that cannot be said). `peak` names three values of which the middle one is
    surely the worst, if the curve has more than one dip; with a `misfit`, no curve is right, and nothing of this is to be
    trusted. `untried` is empty, or holds the lower end of the range, where it may be better than all else and no run was
    made, and the smallest value that this speaks of: nothing of this speaks of smaller ones.
    """

    mean: float
    low: float
    high: float
    best_low: float
    best_high: float
    gap: float
    flat: tuple[float, ...]
    peak: tuple[float, ...]
    misfit: bool
    level: float
    untried: tuple[float, ...] = ()

    def among(self, name: str) -> str:
        """The values of which something is said, in words: "gamma", or "gamma from 0.0062 on"."""
        return f"{name} from {self.untried[1]:.4g} on" if self.untried else name

    def keeps(self, within: float) -> bool:
        """Whether nothing is better than the answer by more than this share of its regret, and the runs speak for that."""
        return not self.misfit and self.gap <= within * abs(self.mean)

    def __repr__(self) -> str:
        return f"{self.mean:.4g} ({100 * self.level:g}%: {self.low:.4g} to {self.high:.4g}), gap {self.gap:.3g}"


@kept
@dataclass(frozen=True, repr=False, eq=False)
class TrialResult(Record):
    """What a tuner asked and what it was told."""

    values: Floats
    mean: Floats
    se: Floats
    runs: tuple[int, ...]

    @classmethod
    def of(cls, values: Sequence[float], regrets: Sequence[Floats]) -> TrialResult:
        """The means of each value's regrets; a single run has no standard error."""
        means, errors = [row.mean() for row in regrets], [standard_error(row) for row in regrets]
        return cls(frozen(values), frozen(means), frozen(errors), tuple(map(len, regrets)))

    @property
    def spent(self) -> int:
        """Runs played: all values together."""
        return sum(self.runs)

    def __repr__(self) -> str:
        rows = zip(self.values, self.mean, self.runs, strict=True)
        return ", ".join(f"{value:.4g}: {mean:.4g} ({runs})" for value, mean, runs in rows)
