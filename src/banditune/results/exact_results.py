"""Results that are computed exactly instead of simulated, and lower bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from banditune.core.arrays import FloatArray
from banditune.results.result_record import ResultRecord, make_data_frame, register_record
from banditune.results.study_setup import StudySetup

WEAK_SHARE = 1 / 3
"""A bound below this share of a regret is called weak: it hardly limits the possible gain."""


@register_record
@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class LowerBound(ResultRecord):
    """A lower bound on the Bayes regret of every policy.

    Attributes
    ----------
    regret : float
        The bound: no policy has a lower Bayes regret.
    is_exact : bool
        Whether the bound is the optimum, the regret of the best policy.
    confidence : float
        The probability that the bound holds; 1 where it is computed rather than sampled.
    method : str
        "dynamic programming" for the optimum, else the kind of the bound.
    horizon_limit : int or None
        The horizon at which the bound stops growing, if that is before the problem's horizon.
    """

    regret: float
    is_exact: bool
    confidence: float
    method: str
    horizon_limit: int | None = None

    def explain_weakness(self, regret: float) -> str:
        """Explain why the bound is weak beside the regret of a policy.

        Parameters
        ----------
        regret : float
            The regret of the policy.

        Returns
        -------
        str
            The reason; empty if the bound is not weak.
        """
        if self.is_exact:
            return ""
        if self.horizon_limit is not None:
            return f"it stops growing at horizon {self.horizon_limit:,}"
        return "it is less than a third of that regret" if self.regret < WEAK_SHARE * regret else ""

    def __repr__(self) -> str:
        sure = "exact" if self.is_exact else "computed" if self.confidence == 1 else f"{100 * self.confidence:g}% sure"
        return f"no policy has a regret below {self.regret:.4g} ({sure}, {self.method})"


@register_record
@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ExactOptimum(ResultRecord):
    """The smallest Bayes regret that any policy can have, computed rather than simulated.

    Attributes
    ----------
    reward : float
        The expected total reward of the optimal policy.
    oracle_reward : float
        The expected total reward of the best arm at every step.
    regret : float
        The Bayes regret of the optimal policy: the difference of the two.
    setup : StudySetup
        What is needed to repeat the result.
    """

    reward: float
    oracle_reward: float
    regret: float
    setup: StudySetup


@register_record
@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ExactRegret(ResultRecord):
    """The Bayes regret of a policy at parameter values, computed rather than simulated.

    Attributes
    ----------
    parameter : str
        The name of the parameter; "value" for a policy without one.
    values : array of float
        The values of the parameter.
    regret : array of float
        The Bayes regret at each value.
    textbook : float
        The textbook value of the parameter. Its regret is in `regret` only if that value was requested.
    setup : StudySetup
        What is needed to repeat the result.
    lower_bound : LowerBound or None
        The regret of the optimal policy, where it is known.
    """

    parameter: str
    values: FloatArray
    regret: FloatArray
    textbook: float
    setup: StudySetup
    lower_bound: LowerBound | None = None

    def to_pandas(self) -> Any:
        """Return a pandas data frame with one row per value.

        Raises
        ------
        MissingDependency
            If pandas is not installed.
        """
        return make_data_frame({self.parameter: self.values, "regret": self.regret})


@register_record
@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class LowerBoundEstimates(ResultRecord):
    """Several lower bounds on the Bayes regret of every policy.

    Attributes
    ----------
    kinds : tuple of str
        The kind of each bound.
    mean : array of float
        The mean of each bound.
    se : array of float
        The standard error of each bound; 0 for one that is computed rather than sampled.
    runs : tuple of int
        The number of sampled instances behind each bound; 0 for one that is computed.
    lower_bound : LowerBound
        The best bound, at its lower confidence limit.
    setup : StudySetup
        What is needed to repeat the result.
    confidence : float or None
        The confidence that was requested for a sampled bound.
    """

    kinds: tuple[str, ...]
    mean: FloatArray
    se: FloatArray
    runs: tuple[int, ...]
    lower_bound: LowerBound
    setup: StudySetup
    confidence: float | None = None

    def to_pandas(self) -> Any:
        """Return a pandas data frame with one row per kind of bound.

        Raises
        ------
        MissingDependency
            If pandas is not installed.
        """
        return make_data_frame({"kind": list(self.kinds), "mean": self.mean, "se": self.se})
