"""What past logs tell."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from banditune.core.arrays import FloatArray
from banditune.core.errors import InvalidRequest
from banditune.results.estimates import Estimate
from banditune.results.result_record import ResultRecord, make_data_frame, register_record
from banditune.results.study_setup import StudySetup
from banditune.results.tuning_results import Tuning

SIGNIFICANCE_LEVEL = 0.05
"""Arms differ beyond chance where a p-value is at most this."""


@register_record
@dataclass(frozen=True, repr=False, eq=False)
class FittedParameter(ResultRecord):
    """A number of a fitted prior with its interval; an end may be infinite where the logs do not bound it."""

    name: str
    value: float
    low: float
    high: float

    def __repr__(self) -> str:
        return f"{self.name} = {self.value:.4g} ({self.low:.4g} to {self.high:.4g})"


@register_record
@dataclass(frozen=True, repr=False, eq=False)
class PredictiveCheck(ResultRecord):
    """A statistic of the logs beside the same of what the fit makes: 95% of that is from `low` to `high`.

    `above` is the share at or above what was observed: the posterior predictive p-value.
    """

    statistic: str
    observed: float
    low: float
    high: float
    above: float

    @property
    def fails(self) -> bool:
        """Whether what was observed hardly ever happens in logs of the fit."""
        return not 0.005 <= self.above <= 0.995

    def __repr__(self) -> str:
        return f"{self.statistic}: {self.observed:.4g}, 95% {self.low:.4g} to {self.high:.4g} (p {self.above:.3f})"


@register_record
@dataclass(frozen=True, repr=False, eq=False)
class FittedProblem(ResultRecord):
    """A distribution of problem instances fitted to past logs: `made` is what the problem is made with.

    `estimates` have intervals of the wanted `confidence`. `checks` compare the logs with logs replayed from the fit, with
    the same pulls; so do quantiles of cell means at `levels`: `observed`, and the middle, `low` and `high` (95%) of the
    replayed ones. Where pulls depended on rewards both are `drawn`: means that are likely given the logs are compared with
    means of the fit, because means of rewards would mislead. `notes` are sentences about what was decided and what may
    mislead. `columns` are those that were read, `command` is how the fit was asked for, each where there was one.
    """

    model: str
    made: Mapping[str, Any]
    estimates: tuple[FittedParameter, ...]
    campaigns: int
    decisions: int
    arms: int
    horizon: int
    confidence: float
    checks: tuple[PredictiveCheck, ...]
    levels: FloatArray
    observed: FloatArray
    replayed: FloatArray
    low: FloatArray
    high: FloatArray
    notes: tuple[str, ...]
    drawn: bool = False
    columns: str = ""
    command: str | None = None

    @property
    def problem(self) -> Any:
        """The fitted problem, ready to be tuned on."""
        import banditune

        return banditune.problems.build_problem(self.made)

    def __getitem__(self, name: str) -> FittedParameter:
        for estimate in self.estimates:
            if estimate.name == name:
                return estimate
        raise InvalidRequest(f"the fit has {', '.join(e.name for e in self.estimates)}, but got {name!r}.")

    def to_pandas(self) -> Any:
        """A row per estimate."""
        names = [f.name for f in fields(FittedParameter)]
        return make_data_frame({name: [getattr(estimate, name) for estimate in self.estimates] for name in names})


@register_record
@dataclass(frozen=True, repr=False, eq=False)
class Backtest(ResultRecord):
    """A policy tuned on some past campaigns (`fit`, `tuning`) and played on the others, of which there are `campaigns`.

    `regret`, `theory` and `gain` are those of a campaign, `reward`, `theory_reward` and `logged`, what the logs say was
    paid, those of a decision; all are means over campaigns such as those that were left out. `difference` is `reward` less
    `logged`, paired by campaign. `compute_equal_arms_p` is the p-value of "in each of these campaigns all arms pay alike".
    """

    fit: FittedProblem
    tuning: Tuning
    campaigns: int
    regret: Estimate
    theory: Estimate
    gain: Estimate
    reward: Estimate
    theory_reward: Estimate
    logged: Estimate
    difference: Estimate | None = None
    equal_arms_p: float = math.nan

    @property
    def setup(self) -> StudySetup:
        """How the policy was tuned."""
        return self.tuning.setup

    @property
    def notes(self) -> tuple[str, ...]:
        """What was decided in the fit, what may mislead there, and whether the judging campaigns show any difference."""
        return (*self.fit.notes, *self.doubts)

    @property
    def doubts(self) -> tuple[str, ...]:
        """A sentence where the judging campaigns show no difference between arms."""
        if not self.equal_arms_p > SIGNIFICANCE_LEVEL:
            return ()
        words = f"the {self.campaigns} judging campaigns show no difference between arms beyond chance"
        return (f"{words} (p = {self.equal_arms_p:.2g})",)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What may mislead in the tuning."""
        return tuple(f"on the fitted problem: {warning}" for warning in self.tuning.warnings)

    def to_pandas(self) -> Any:
        """A row per number."""
        names = ("regret", "theory", "gain", "reward", "theory_reward", "logged", "difference")
        found = [getattr(self, name) for name in names if getattr(self, name) is not None]
        columns = {column: [getattr(one, column) for one in found] for column in ("mean", "se", "low", "high")}
        return make_data_frame({"name": list(names[: len(found)])} | columns)
