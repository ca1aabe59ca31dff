"""Regret of a tuned value where the problem is another one than expected."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from banditune.results.estimates import Estimate
from banditune.results.result_record import ResultRecord, make_data_frame, register_record
from banditune.results.study_setup import StudySetup

TOLERATED_EXCESS = 0.1
"""A value is fine where it loses at most this share more than the best, and fragile where it loses more."""


@register_record
@dataclass(frozen=True, repr=False, eq=False)
class Scenario(ResultRecord):
    """A tuned value where another problem came than was expected, told in `words`.

    `best` is the best value that is known there and `best_regret` its regret; `loss` is `regret` minus that, paired.
    `retuned` is the answer of the search that tuned the policy for this problem, mostly the same value. By that search
    nothing is better than `best` by more than `gap` (None: it states nothing). A `doubt` says why the gap is not trusted.
    `theory` is the regret of theory's value, and `behind_theory` the paired difference to it.
    """

    words: str
    problem: Mapping[str, Any]
    horizon: int
    regret: Estimate
    best: float
    best_regret: Estimate
    loss: Estimate
    theory: Estimate
    behind_theory: Estimate | None = None
    gap: float | None = None
    doubt: str = ""
    retuned: float | None = None

    @property
    def share(self) -> float:
        """The loss as a share of what the best value loses."""
        return self.loss.mean / max(abs(self.best_regret.mean), 1e-300)

    @property
    def least(self) -> float:
        """The share that is surely lost, whatever the best value is: the lower end of a 95% interval (Fieller)."""
        return -1.0 if self.best_regret.mean < 0 else _find_last_share(lambda share: self.over(share).low > 0)

    @property
    def most(self) -> float:
        """The largest share that may be lost: the upper end of that interval, with the gap; infinite where unknown."""
        if self.gap is None or self.doubt or self.best_regret.mean < 0:
            return math.inf
        return _find_last_share(lambda share: self.over(share).high + (1 + share) * (self.gap or 0.0) > 0)

    def over(self, share: float) -> Estimate:
        """What it loses beyond the best value's regret and this share of it, paired.

        Both regrets are uncertain. Of own and best, and of their difference, the standard errors are known, and with them
        their covariance: own - (1 + share) best = loss - share best.
        """
        own, best, loss = (estimate.se**2 for estimate in (self.regret, self.best_regret, self.loss))
        shared = (own + best - loss) / 2
        variance = own + (1 + share) ** 2 * best - 2 * (1 + share) * shared
        return Estimate.told(
            self.loss.mean - share * self.best_regret.mean, math.sqrt(max(variance, 0.0)), self.loss.runs
        )

    @property
    def verdict(self) -> str:
        """Fine where it surely loses at most a tenth more than the best, fragile where surely more.

        "Worse than theory" is fragile and surely worse than theory's value. A value is fine only if the gap is trusted.
        """
        if self.least > TOLERATED_EXCESS:
            return "worse than theory" if self.behind_theory and self.behind_theory.low > 0 else "fragile"
        return "fine" if self.most <= TOLERATED_EXCESS else "not decided"

    @property
    def reason(self) -> str:
        """Why it is not decided; empty where it is."""
        if self.verdict != "not decided":
            return ""
        if self.doubt:
            return self.doubt
        if self.best_regret.mean < 0:
            return "regrets there are below 0, and have no shares"
        if self.gap is None:
            return "the search states no gap"
        return f"it may lose {self.most:.0%} more" if math.isfinite(self.most) else "the regret is too uncertain"

    def __repr__(self) -> str:
        return f"{self.words}: {self.share:+.0%} of {self.best_regret.mean:.4g} ({self.verdict})"


def _find_last_share(holds: Callable[[float], bool]) -> float:
    """The largest share for which a statement holds that holds for all smaller ones: -1 if for none, or infinity."""
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
@dataclass(frozen=True, repr=False, eq=False)
class RobustnessReport(ResultRecord):
    """What a tuned value loses where something else comes than was expected: a `Scenario` for each such problem.

    The first strain is the expected problem itself. `warnings` are sentences about what may mislead.
    """

    params: Mapping[str, float]
    strains: tuple[Scenario, ...]
    budget: int
    validated: int
    setup: StudySetup
    warnings: tuple[str, ...] = ()

    @property
    def worst(self) -> Scenario:
        """The strain with the largest loss, as a share."""
        return max(self.others, key=lambda strain: strain.share)

    @property
    def others(self) -> tuple[Scenario, ...]:
        """The strains of what was not expected."""
        return self.strains[1:]

    def to_pandas(self) -> Any:
        """A row per strain."""
        rows: dict[str, Any] = {"words": [strain.words for strain in self.strains]}
        for name in ("regret", "best_regret", "loss", "theory"):
            rows[name] = [getattr(strain, name).mean for strain in self.strains]
        rows["loss_se"] = [strain.loss.se for strain in self.strains]
        for name in ("best", "share", "least", "most", "verdict", "reason"):
            rows[name] = [getattr(strain, name) for strain in self.strains]
        return make_data_frame(rows)
