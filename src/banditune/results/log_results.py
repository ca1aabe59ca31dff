"""Results from past logs: fitted problems and backtests."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from banditune.core.arrays import FloatArray
from banditune.core.errors import InvalidRequest
from banditune.core.messages import Message
from banditune.core.notice import Notice
from banditune.results.estimates import Estimate
from banditune.results.result_record import ResultRecord, make_data_frame, register_record
from banditune.results.study_setup import StudySetup
from banditune.results.tuning_results import Tuning

SIGNIFICANCE_LEVEL = 0.05
"""Arms differ beyond chance where a p-value is at most this."""


SHAPE_SIGNIFICANCE_LEVEL = 0.02
"""Arms have another shape than assumed where a p-value is at most this."""


@register_record
@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class FittedParameter(ResultRecord):
    """A number of a fitted prior, and its interval.

    Attributes
    ----------
    name : str
        The name of the number.
    value : float
        The estimate.
    low : float
        The lower end of the interval; infinite if the logs do not bound it.
    high : float
        The upper end of the interval; infinite if the logs do not bound it.
    """

    name: str
    value: float
    low: float
    high: float

    def __repr__(self) -> str:
        return f"{self.name} = {self.value:.4g} ({self.low:.4g} to {self.high:.4g})"


@register_record
@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class PredictiveCheck(ResultRecord):
    """A posterior predictive check: a statistic of the logs beside the same statistic of logs replayed from the fit.

    Attributes
    ----------
    statistic : str
        What is compared.
    observed : float
        The statistic of the logs.
    low : float
        The lower end of the interval that holds 95% of the replays.
    high : float
        The upper end of the interval that holds 95% of the replays.
    p_value : float
        The posterior predictive p-value: the share of replays at or above what was observed.
    """

    statistic: str
    observed: float
    low: float
    high: float
    p_value: float

    @property
    def has_failed(self) -> bool:
        """Whether the observed statistic is improbable in replays: its p-value is outside 0.005 to 0.995."""
        return not 0.005 <= self.p_value <= 0.995

    def __repr__(self) -> str:
        return f"{self.statistic}: {self.observed:.4g}, 95% {self.low:.4g} to {self.high:.4g} (p {self.p_value:.3f})"


@register_record
@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class FittedProblem(ResultRecord):
    """A distribution of problem instances that was fitted to past logs.

    The fit is compared with the logs by checks and by quantiles of cell means. A cell is an arm in a campaign.

    Attributes
    ----------
    model : str
        The name of the model.
    problem_config : mapping
        The name and the options of the problem.
    estimates : tuple of FittedParameter
        The fitted numbers with their intervals.
    campaigns : int
        The number of campaigns in the logs.
    decisions : int
        The number of decisions in the logs.
    arms : int
        The number of arms of the problem.
    horizon : int
        Decisions in a future campaign.
    confidence : float
        The confidence of the intervals of the estimates.
    checks : tuple of PredictiveCheck
        The posterior predictive checks; replays have the same pulls as the logs.
    levels : array of float
        The levels of the quantiles of cell means.
    observed : array of float
        The quantiles of the cell means in the logs.
    replayed : array of float
        The median over replays of the same quantiles.
    low : array of float
        The lower end of the interval that holds 95% of the replays.
    high : array of float
        The upper end of the interval that holds 95% of the replays.
    notes : tuple of str
        Sentences about choices of the fit and about possible errors.
    uses_posterior_draws : bool
        Whether means drawn from their posterior replace observed means in the checks. This is so if pulls depended on
        rewards, which biases observed means.
    columns : str
        The columns of the logs and their roles; empty if the logs were not read from a table.
    command : str or None
        The command line, where there was one.
    """

    model: str
    problem_config: Mapping[str, Any]
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
    uses_posterior_draws: bool = False
    columns: str = ""
    command: str | None = None

    @property
    def problem(self) -> Any:
        """The fitted problem, ready for `tune`."""
        import banditune

        return banditune.problems.build_problem(self.problem_config)

    def __getitem__(self, name: str) -> FittedParameter:
        for estimate in self.estimates:
            if estimate.name == name:
                return estimate
        raise InvalidRequest(
            f"the fit has {', '.join(e.name for e in self.estimates)}, but got {name!r}.",
            argument="name",
            code="unknown-name",
        )

    def to_pandas(self) -> Any:
        """Return a pandas data frame with one row per estimate.

        Raises
        ------
        MissingDependency
            If pandas is not installed.
        """
        names = [f.name for f in fields(FittedParameter)]
        return make_data_frame({name: [getattr(estimate, name) for estimate in self.estimates] for name in names})


@register_record
@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ArmShapeEstimates(ResultRecord):
    """What a backtest estimates if the means of a campaign's arms have one shape around its centre.

    Attributes
    ----------
    shape : str
        "around a centre": arms are beta, or normal for real rewards. "one arm better", "one arm worse": the other arms are
        equal.
    weight : float
        The probability of the shape, given the logs.
    regret : Estimate
        The regret of the tuned policy.
    textbook_regret : Estimate
        The regret of the textbook policy.
    gain : Estimate
        The textbook regret minus the tuned regret, paired.
    reward_difference : Estimate
        The reward of the tuned policy minus the reward in the logs, paired by campaign.
    """

    shape: str
    weight: float
    regret: Estimate
    textbook_regret: Estimate
    gain: Estimate
    reward_difference: Estimate

    def __repr__(self) -> str:
        return f"{self.shape} ({self.weight:.0%}): regret {self.regret.mean:.4g}, gain {self.gain.mean:.4g}"


@register_record
@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Backtest(ResultRecord):
    """A policy that was tuned on some past campaigns and evaluated on the others.

    All estimates are means over the distribution of which the held-out campaigns are a sample. Regrets are per campaign,
    rewards per decision.

    Attributes
    ----------
    fit : FittedProblem
        The problem that was fitted to some of the campaigns.
    tuning : Tuning
        The tuning on that problem.
    campaigns : int
        The number of campaigns that were left out and have several arms.
    regret : Estimate
        The regret of the tuned policy.
    textbook_regret : Estimate
        The regret of the textbook policy.
    gain : Estimate
        The textbook regret minus the tuned regret, paired.
    reward : Estimate
        The reward of the tuned policy.
    textbook_reward : Estimate
        The reward of the textbook policy.
    logged_reward : Estimate
        The reward in the logs.
    reward_difference : Estimate or None
        The reward of the tuned policy minus the reward in the logs, paired by campaign.
    equal_arms_p : float
        The p-value of the hypothesis that all arms of each campaign have the same mean; NaN where it was not tested.
    arm_shape_p : float
        The p-value of the hypothesis that arms have one of the evaluated distributions around the centre of their campaign;
        NaN if it was not tested.
    shapes : tuple of ArmShapeEstimates
        The shapes of arms that the logs do not contradict, each with its estimates. The intervals above span theirs. Empty
        if arms have features.
    """

    fit: FittedProblem
    tuning: Tuning
    campaigns: int
    regret: Estimate
    textbook_regret: Estimate
    gain: Estimate
    reward: Estimate
    textbook_reward: Estimate
    logged_reward: Estimate
    reward_difference: Estimate | None = None
    equal_arms_p: float = math.nan
    arm_shape_p: float = math.nan
    shapes: tuple[ArmShapeEstimates, ...] = ()

    @property
    def setup(self) -> StudySetup:
        """How the policy was tuned."""
        return self.tuning.setup

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of the fit, and the caveats."""
        return (*self.fit.notes, *self.caveats)

    @property
    def has_equal_arms(self) -> bool:
        """Whether the test finds no difference between the arms of the campaigns that were left out."""
        return self.equal_arms_p > SIGNIFICANCE_LEVEL

    @property
    def caveats(self) -> tuple[str, ...]:
        """Sentences if the held-out campaigns have no difference between arms, or if several shapes of it are possible."""
        those = f"the {self.campaigns} campaigns that were left out"
        if self.has_equal_arms:
            return (f"{those} show no difference between arms beyond chance (p = {self.equal_arms_p:.2g})",)
        if len(self.shapes) < 2:
            return ()
        shapes = "; ".join(map(repr, self.shapes))
        return (f"{those} do not tell how their arms differ, so each interval spans several shapes: {shapes}",)

    @property
    def evaluation_notices(self) -> tuple[Notice, ...]:
        """What may mislead in the evaluation on the campaigns that were left out."""
        if not self.arm_shape_p <= SHAPE_SIGNIFICANCE_LEVEL:
            return ()
        text = (
            f"the arms of the {self.campaigns} campaigns that were left out differ in another way than the evaluation "
            f"assumes (p = {self.arm_shape_p:.2g}): its regrets and gains may be wrong by a factor."
        )
        return (Notice(text, "wrong-arm-shape"),)

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What may mislead in the evaluation and in the tuning."""
        return self.evaluation_notices + tuple(
            notice.replace_message(Message("on the fitted problem: {}", notice.message))
            for notice in self.tuning.notices
        )

    def to_pandas(self) -> Any:
        """Return a pandas data frame with one row per estimate.

        Raises
        ------
        MissingDependency
            If pandas is not installed.
        """
        names = ("regret", "textbook_regret", "gain", "reward", "textbook_reward", "logged_reward", "reward_difference")
        estimates = [getattr(self, name) for name in names if getattr(self, name) is not None]
        columns = {
            column: [getattr(estimate, column) for estimate in estimates] for column in ("mean", "se", "low", "high")
        }
        return make_data_frame({"name": list(names[: len(estimates)])} | columns)
