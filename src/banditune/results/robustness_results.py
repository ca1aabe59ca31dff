"""Results of robustness checks: the regret of a tuned value on other problems than the expected one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from banditune.core.notice import Notice
from banditune.results.estimates import Estimate
from banditune.results.result_record import ResultRecord, make_data_frame, register_record
from banditune.results.study_setup import StudySetup

TOLERATED_EXCESS = 0.1
"""A value is fine if its regret is at most this share above the best, and fragile if it is higher."""


@register_record
@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Scenario(ResultRecord):
    """The regret of a tuned value on another problem than the expected one.

    Attributes
    ----------
    description : str
        The scenario in words.
    problem : mapping
        The name and the options of the problem of this scenario.
    horizon : int
        Steps in a run.
    regret : Estimate
        The regret of the tuned value in this scenario.
    best_value : float
        The best value that is known there.
    best_regret : Estimate
        The regret of the best value.
    excess_regret : Estimate
        The regret of the tuned value minus that of the best value, paired by instance.
    textbook_regret : Estimate
        The regret of the textbook value.
    difference_to_textbook : Estimate or None
        The regret of the tuned value minus that of the textbook value, paired by instance.
    regret_gap : float or None
        The most by which another value may be better than the answer of the search for this scenario; None if the search
        does not state it.
    gap_doubt : str
        Why the gap is not reliable; empty if it is.
    retuned_value : float or None
        The answer of the search for this scenario. It is usually the best value.
    """

    description: str
    problem: Mapping[str, Any]
    horizon: int
    regret: Estimate
    best_value: float
    best_regret: Estimate
    excess_regret: Estimate
    textbook_regret: Estimate
    difference_to_textbook: Estimate | None = None
    regret_gap: float | None = None
    gap_doubt: str = ""
    retuned_value: float | None = None

    @property
    def excess_share(self) -> float:
        """The excess regret as a share of the regret of the best value."""
        return self.excess_regret.mean / max(abs(self.best_regret.mean), 1e-300)

    @property
    def excess_share_low(self) -> float:
        """The lower end of the 95% interval of this share (Fieller). It holds even if a better value exists."""
        return (
            -1.0
            if self.best_regret.mean < 0
            else _find_last_share(lambda share: self.compute_excess_over(share).low > 0)
        )

    @property
    def excess_share_high(self) -> float:
        """The upper end of the 95% interval of this share, plus the gap of the search; infinite if that is unknown."""
        if self.regret_gap is None or self.gap_doubt or self.best_regret.mean < 0:
            return math.inf
        return _find_last_share(
            lambda share: self.compute_excess_over(share).high + (1 + share) * (self.regret_gap or 0.0) > 0
        )

    def compute_excess_over(self, share: float) -> Estimate:
        """Estimate by how much the regret exceeds (1 + share) times that of the best value, paired by instance.

        Both regrets are uncertain. Their standard errors and that of their difference give their covariance.

        Parameters
        ----------
        share : float
            The share of the best value's regret.
        """
        tuned, best, excess = (estimate.se**2 for estimate in (self.regret, self.best_regret, self.excess_regret))
        covariance = (tuned + best - excess) / 2
        variance = tuned + (1 + share) ** 2 * best - 2 * (1 + share) * covariance
        return Estimate.from_standard_error(
            self.excess_regret.mean - share * self.best_regret.mean,
            math.sqrt(max(variance, 0.0)),
            self.excess_regret.runs,
        )

    @property
    def verdict(self) -> str:
        """One of "fine", "fragile", "worse than textbook" and "not decided".

        "fine" means at most 10% more regret than the best value, with 95% confidence and a reliable gap.
        "fragile" means more than 10%, and "worse than textbook" also significantly worse than the textbook value.
        """
        if self.excess_share_low > TOLERATED_EXCESS:
            return (
                "worse than textbook"
                if self.difference_to_textbook and self.difference_to_textbook.low > 0
                else "fragile"
            )
        return "fine" if self.excess_share_high <= TOLERATED_EXCESS else "not decided"

    @property
    def reason(self) -> str:
        """Why the verdict is "not decided"; empty for other verdicts."""
        if self.verdict != "not decided":
            return ""
        if self.gap_doubt:
            return self.gap_doubt
        if self.best_regret.mean < 0:
            return "the best regret is below 0 and has no shares"
        if self.regret_gap is None:
            return "the search states no gap"
        return (
            f"its regret may be {self.excess_share_high:.0%} higher"
            if math.isfinite(self.excess_share_high)
            else "the regret is too uncertain"
        )

    def __repr__(self) -> str:
        return f"{self.description}: {self.excess_share:+.0%} of {self.best_regret.mean:.4g} ({self.verdict})"


def _find_last_share(holds: Callable[[float], bool]) -> float:
    """Find the largest share for which a monotone statement holds, by bisection; -1 if there is none, or infinity."""
    low, high = -1.0, 0.0
    if not holds(low):
        return low
    while holds(high):
        low, high = high, max(1.0, 4 * high)
        if high > 1e9:
            return math.inf
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


@register_record
@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class RobustnessReport(ResultRecord):
    """The regret of a tuned value on other problems than the expected one.

    Attributes
    ----------
    params : mapping of str to float
        The tuned parameters.
    scenarios : tuple of Scenario
        The scenarios; the first one is the expected problem itself.
    budget : int
        The number of runs with which the policy was tuned again for each scenario.
    validation_runs : int
        The number of fresh instances of each scenario.
    setup : StudySetup
        What is needed to repeat the result.
    notices : tuple of Notice
        Sentences about what may mislead.
    """

    params: Mapping[str, float]
    scenarios: tuple[Scenario, ...]
    budget: int
    validation_runs: int
    setup: StudySetup
    notices: tuple[Notice, ...] = ()

    @property
    def worst_scenario(self) -> Scenario:
        """The unexpected scenario with the largest share of excess regret."""
        return max(self.other_scenarios, key=lambda scenario: scenario.excess_share)

    @property
    def other_scenarios(self) -> tuple[Scenario, ...]:
        """The scenarios except the expected one."""
        return self.scenarios[1:]

    def to_pandas(self) -> Any:
        """Return a pandas data frame with one row per scenario.

        Raises
        ------
        MissingDependency
            If pandas is not installed.
        """
        rows: dict[str, Any] = {"description": [scenario.description for scenario in self.scenarios]}
        for name in ("regret", "best_regret", "excess_regret", "textbook_regret"):
            rows[name] = [getattr(scenario, name).mean for scenario in self.scenarios]
        rows["excess_regret_se"] = [scenario.excess_regret.se for scenario in self.scenarios]
        for name in ("best_value", "excess_share", "excess_share_low", "excess_share_high", "verdict", "reason"):
            rows[name] = [getattr(scenario, name) for scenario in self.scenarios]
        return make_data_frame(rows)
