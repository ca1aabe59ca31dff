"""The output of a search besides its answer: its trials, its posterior, and a test for a single dip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from banditune.core.arrays import FloatArray
from banditune.results.estimates import compute_standard_error
from banditune.results.result_record import ResultRecord, freeze_floats, register_record


@register_record
@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class UnimodalityTest(ResultRecord):
    """A test of the hypothesis that the regret curve falls, then rises.

    It is rejected if a value in between is significantly above a value on each side.

    Attributes
    ----------
    rejected : bool
        Whether the hypothesis is rejected.
    statistic : float
        The largest, over all three values in order, of the smaller of the two paired t statistics.
    critical_value : float
        The value that the statistic must exceed.
    false_alarm_rate : float
        An upper bound on the probability that a curve with a single dip is rejected.
    second_dip : tuple of float
        The three values that led to the rejection, the middle one above both others; empty where not rejected.
    """

    rejected: bool
    statistic: float
    critical_value: float
    false_alarm_rate: float
    second_dip: tuple[float, ...]

    def __repr__(self) -> str:
        if not self.rejected:
            return (
                f"no evidence against a single dip (statistic {self.statistic:.2f}, critical {self.critical_value:.2f})"
            )
        left, top, right = self.second_dip
        dip_text = f"{top:.4g} is above both {left:.4g} and {right:.4g}"
        return f"more than one dip: {dip_text} (false alarms <= {self.false_alarm_rate:.0%})"


@register_record
@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class SearchPosterior(ResultRecord):
    """The statements of a search about its answer.

    Each statement holds with probability `confidence`, provided that the model of the regret curve fits.

    Attributes
    ----------
    mean : float
        The mean regret of the answer.
    low : float
        The lower end of the interval of that regret.
    high : float
        The upper end of the interval of that regret.
    best_intervals : mapping of str to (float, float)
        For each parameter that was searched, the interval that holds its best value.
    regret_gap : float
        No other value has a regret that is lower than the answer's by more than this. With several parameters: no other
        values of all of them.
    misfit : bool
        Whether no curve fits the runs. In this case no statement is reliable.
    confidence : float
        The probability with which each statement holds.
    near_optimal : tuple of float
        Two values and a share: between them, every regret is within this share of the lowest. Empty where unknown, and
        with several parameters.
    second_dip : tuple of float
        Three values of which the middle one has the highest regret, if the curve has more than one dip; else empty.
    unexplored : tuple of float
        The lower end of the range and the smallest value that the statements cover. It is given if no run was made
        between them and the regret may be lowest there; otherwise it is empty.
    """

    mean: float
    low: float
    high: float
    best_intervals: Mapping[str, tuple[float, float]]
    regret_gap: float
    misfit: bool
    confidence: float
    near_optimal: tuple[float, ...] = ()
    second_dip: tuple[float, ...] = ()
    unexplored: tuple[float, ...] = ()

    def describe_range(self, name: str) -> str:
        """Describe the values that the statements cover, such as "gamma" or "gamma from 0.0062 on".

        Parameters
        ----------
        name : str
            The name of the parameter.
        """
        return f"{name} from {self.unexplored[1]:.4g} on" if self.unexplored else name

    def meets_precision(self, precision: float) -> bool:
        """Return whether no value is better than the answer by more than a share of its regret.

        Parameters
        ----------
        precision : float
            The share, such as 0.02.
        """
        return not self.misfit and self.regret_gap <= precision * abs(self.mean)

    def __repr__(self) -> str:
        return f"{self.mean:.4g} ({100 * self.confidence:g}%: {self.low:.4g} to {self.high:.4g}), gap {self.regret_gap:.3g}"


@register_record
@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class TrialResult(ResultRecord):
    """One trial of a search: the values that were simulated, and their regrets.

    Attributes
    ----------
    rows : array of float
        The values of the parameters, a row for each that was simulated and a column for each parameter.
    mean : array of float
        The mean regret of each row.
    se : array of float
        The standard error of each mean; NaN for a single run.
    runs : tuple of int
        The number of runs of each row.
    """

    rows: FloatArray
    mean: FloatArray
    se: FloatArray
    runs: tuple[int, ...]

    @classmethod
    def from_regrets(cls, rows: Sequence[Sequence[float]], regrets: Sequence[FloatArray]) -> TrialResult:
        """Summarise the regrets of a trial.

        Parameters
        ----------
        rows : sequence of sequence of float
            The values of the parameters, a row for each that was simulated.
        regrets : sequence of array
            The regrets of the runs of each row.
        """
        means, errors = [row.mean() for row in regrets], [compute_standard_error(row) for row in regrets]
        return cls(
            rows=freeze_floats(rows),
            mean=freeze_floats(means),
            se=freeze_floats(errors),
            runs=tuple(map(len, regrets)),
        )

    @property
    def total_runs(self) -> int:
        """The number of runs of all rows together."""
        return sum(self.runs)

    def __repr__(self) -> str:
        rows = zip(self.rows, self.mean, self.runs, strict=True)
        return "; ".join(
            f"{', '.join(f'{value:.4g}' for value in row)}: {mean:.4g} ({runs})" for row, mean, runs in rows
        )
