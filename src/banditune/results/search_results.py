"""What a search returns beside its answer: its trials, its posterior and a test for one dip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from banditune.core.arrays import FloatArray
from banditune.results.estimates import compute_standard_error
from banditune.results.result_record import ResultRecord, freeze_floats, register_record


@register_record
@dataclass(frozen=True, repr=False, eq=False)
class UnimodalityTest(ResultRecord):
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


@register_record
@dataclass(frozen=True, repr=False, eq=False)
class SearchPosterior(ResultRecord):
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


@register_record
@dataclass(frozen=True, repr=False, eq=False)
class TrialResult(ResultRecord):
    """What a tuner asked and what it was told."""

    values: FloatArray
    mean: FloatArray
    se: FloatArray
    runs: tuple[int, ...]

    @classmethod
    def of(cls, values: Sequence[float], regrets: Sequence[FloatArray]) -> TrialResult:
        """The means of each value's regrets; a single run has no standard error."""
        means, errors = [row.mean() for row in regrets], [compute_standard_error(row) for row in regrets]
        return cls(freeze_floats(values), freeze_floats(means), freeze_floats(errors), tuple(map(len, regrets)))

    @property
    def spent(self) -> int:
        """Runs played: all values together."""
        return sum(self.runs)

    def __repr__(self) -> str:
        rows = zip(self.values, self.mean, self.runs, strict=True)
        return ", ".join(f"{value:.4g}: {mean:.4g} ({runs})" for value, mean, runs in rows)
