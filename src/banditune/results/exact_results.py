"""What is computed rather than simulated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from banditune.core.arrays import FloatArray
from banditune.results.result_record import ResultRecord, make_data_frame, register_record
from banditune.results.study_setup import StudySetup

WEAK_SHARE = 1 / 3
"""A bound below this share of a regret says little about how much could be gained."""


@register_record
@dataclass(frozen=True, repr=False, eq=False)
class LowerBound(ResultRecord):
    """A Bayes regret that no policy can go below: the optimum itself (`exact`), or a bound that holds with probability
    `level` (1 where it is computed, not sampled). `how` it is known: "dynamic programming", or the kind of bound.
    `horizon` is where the bound stops growing, if that is before the problem's horizon.
    """

    regret: float
    exact: bool
    level: float
    how: str
    horizon: int | None = None

    def weakness(self, regret: float) -> str:
        """Why the bound says little beside the regret of a policy; empty where it says something."""
        if self.exact:
            return ""
        if self.horizon is not None:
            return f"it stops growing at horizon {self.horizon:,}"
        return "it is less than a third of that regret" if self.regret < WEAK_SHARE * regret else ""

    def __repr__(self) -> str:
        sure = "exact" if self.exact else "computed" if self.level == 1 else f"{100 * self.level:g}% sure"
        return f"no policy loses less than {self.regret:.4g} ({sure}, {self.how})"


@register_record
@dataclass(frozen=True, repr=False, eq=False)
class ExactOptimum(ResultRecord):
    """The best that any policy can do: its expected total `reward` and Bayes `regret`, computed, not simulated.

    `known` is the reward of one who knows the best arm.
    """

    reward: float
    known: float
    regret: float
    setup: StudySetup


@register_record
@dataclass(frozen=True, repr=False, eq=False)
class ExactRegret(ResultRecord):
    """The Bayes regret of a policy at parameter values, computed, not simulated; `floor` is the optimum, where known.

    `theory` is theory's value of the parameter, as in a `Curve`; its regret is among `regret` if that value was asked for.
    """

    parameter: str
    values: FloatArray
    regret: FloatArray
    theory: float
    setup: StudySetup
    floor: LowerBound | None = None

    def to_pandas(self) -> Any:
        """A row per value."""
        return make_data_frame({self.parameter: self.values, "regret": self.regret})


@register_record
@dataclass(frozen=True, repr=False, eq=False)
class LowerBoundEstimates(ResultRecord):
    """Lower bounds on the Bayes regret of every policy, one for each `kind`, with standard errors (0: computed).

    `floor` is the best of them, at its lower confidence limit; `confidence` is how sure a sampled one had to be.
    """

    kinds: tuple[str, ...]
    mean: FloatArray
    se: FloatArray
    runs: tuple[int, ...]
    floor: LowerBound
    setup: StudySetup
    confidence: float | None = None

    def to_pandas(self) -> Any:
        """A row per kind of bound."""
        return make_data_frame({"kind": list(self.kinds), "mean": self.mean, "se": self.se})
