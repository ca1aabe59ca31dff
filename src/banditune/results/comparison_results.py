"""The result of a comparison of policies."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from banditune.core.notice import Notice
from banditune.results.estimates import Estimate, RegretDistribution, compute_bonferroni_quantile
from banditune.results.exact_results import LowerBound
from banditune.results.result_record import ResultRecord, make_data_frame, register_record
from banditune.results.search_results import SearchPosterior
from banditune.results.study_setup import StudySetup, check_option_sources


@register_record
@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ComparisonEntry(ResultRecord):
    """One policy of a comparison.

    If the tuned value is significantly worse than the textbook policy, the comparison uses the textbook policy instead.

    Attributes
    ----------
    policy : str
        The name of the policy in this comparison.
    policy_config : mapping
        The name and the options of the policy.
    params : mapping of str to float
        The tuned parameters, or the textbook's if the policy was not tuned.
    is_tuned : bool
        Whether the policy was tuned.
    regret : Estimate
        The regret of these parameters.
    difference_to_best : Estimate
        The regret of the recommended policy minus that of the best entry, paired by instance.
    textbook_regret : Estimate
        The regret of the textbook policy with the textbook parameters.
    search_runs : int
        The number of simulated runs of the search.
    distribution : RegretDistribution or None
        The distribution of the regrets of single runs.
    textbook_policy : mapping or None
        The textbook policy. It differs from the tuned policy only in noise and prior that come from the problem.
    from_problem : mapping of str to str
        The options of the policy that were taken from the problem, each with a description of how.
    textbook_params : mapping of str to float
        The textbook parameters.
    gain : Estimate or None
        The textbook regret minus the regret, paired by instance.
    posterior : SearchPosterior or None
        The statements of the search about its answer.
    not_tuned_reason : str
        Why the policy was not tuned; empty if it was.
    not_backtested_reason : str
        Why `backtest` cannot evaluate the policy; empty if it can.
    searched_ranges : mapping of str to (float, float), or None
        Both ends of the range that was searched.
    """

    policy: str
    policy_config: Mapping[str, Any]
    params: Mapping[str, float]
    is_tuned: bool
    regret: Estimate
    difference_to_best: Estimate
    textbook_regret: Estimate
    search_runs: int
    distribution: RegretDistribution | None = None
    textbook_policy: Mapping[str, Any] | None = None
    from_problem: Mapping[str, str] = field(default_factory=dict)
    textbook_params: Mapping[str, float] = field(default_factory=dict)
    gain: Estimate | None = None
    posterior: SearchPosterior | None = None
    not_tuned_reason: str = ""
    not_backtested_reason: str = ""
    searched_ranges: Mapping[str, tuple[float, ...]] | None = None

    def __post_init__(self) -> None:
        check_option_sources(self.policy_config, self.from_problem)

    @property
    def is_worse_than_textbook(self) -> bool:
        """Whether the tuned value is significantly worse than the textbook policy, on fresh instances."""
        return self.gain is not None and self.gain.high < 0

    @property
    def recommended_policy(self) -> Mapping[str, Any]:
        """The policy to use: the tuned one, unless the textbook policy is significantly better."""
        return self.textbook_policy if self.is_worse_than_textbook and self.textbook_policy else self.policy_config

    @property
    def recommended_params(self) -> Mapping[str, float]:
        """The parameters of the recommended policy."""
        return self.textbook_params if self.is_worse_than_textbook else self.params

    @property
    def recommended_regret(self) -> Estimate:
        """The regret of the recommended policy."""
        return self.textbook_regret if self.is_worse_than_textbook else self.regret

    def __repr__(self) -> str:
        return f"{self.policy} {dict(self.params)}: {self.regret!r}"


@register_record
@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Comparison(ResultRecord):
    """Policies that were tuned one by one, then validated on the same fresh instances.

    Attributes
    ----------
    entries : tuple of ComparisonEntry
        The policies, the best first.
    best_policy : str
        The name of the best policy.
    budget : int
        The number of runs that each search could use.
    validation_runs : int
        The number of fresh instances.
    setup : StudySetup
        What is needed to repeat the result.
    lower_bound : LowerBound or None
        A lower bound on the regret of every policy, where it is known.
    notices : tuple of Notice
        Sentences about what may mislead.
    best_rerun : Estimate or None
        The regret of the best policy on as many other instances. It was selected on the first ones, so its regret
        there is biased downwards.
    """

    entries: tuple[ComparisonEntry, ...]
    best_policy: str
    budget: int
    validation_runs: int
    setup: StudySetup
    lower_bound: LowerBound | None = None
    notices: tuple[Notice, ...] = ()
    best_rerun: Estimate | None = None

    @property
    def lowest_regret(self) -> Estimate:
        """The regret of the best policy; if possible, on other instances than those on which it was selected."""
        return self.best_rerun or self.entries[0].recommended_regret

    @property
    def joint_quantile(self) -> float:
        """The half width, in standard errors, at which the intervals of all pairs hold together (Bonferroni)."""
        pairs = len(self.entries) * (len(self.entries) - 1) // 2
        return compute_bonferroni_quantile(pairs, self.entries[0].regret.runs)

    def compute_difference_interval(self, entry: ComparisonEntry) -> tuple[float, float]:
        """Return the interval of the difference between a policy and the best one.

        The intervals of all pairs hold together with 95%.

        Parameters
        ----------
        entry : ComparisonEntry
            The policy.

        Returns
        -------
        tuple of (float, float)
            The lower and the upper end.
        """
        return entry.difference_to_best.widen(self.joint_quantile)

    def to_pandas(self) -> Any:
        """Return a pandas data frame with one row per policy.

        All numbers are from the same instances. The intervals from `difference_to_best_low` to
        `difference_to_best_high` hold for all pairs together. `regret_gap` is that of the search; NaN if there is none.

        Raises
        ------
        MissingDependency
            If pandas is not installed.
        """
        entries, none = self.entries, Estimate.from_standard_error(0.0, 0.0, self.validation_runs)
        gains = [entry.gain or none for entry in entries]
        posteriors = [
            None if entry.posterior is None or entry.posterior.misfit else entry.posterior for entry in entries
        ]
        rows = {
            "policy": [entry.policy for entry in entries],
            "params": [dict(entry.params) for entry in entries],
            "is_tuned": [entry.is_tuned for entry in entries],
            "regret": [entry.regret.mean for entry in entries],
            "se": [entry.regret.se for entry in entries],
            "low": [entry.regret.low for entry in entries],
            "high": [entry.regret.high for entry in entries],
            "difference_to_best": [entry.difference_to_best.mean for entry in entries],
            "difference_to_best_low": [self.compute_difference_interval(entry)[0] for entry in entries],
            "difference_to_best_high": [self.compute_difference_interval(entry)[1] for entry in entries],
            "textbook_regret": [entry.textbook_regret.mean for entry in entries],
            "gain": [gain.mean for gain in gains],
            "gain_low": [gain.low for gain in gains],
            "gain_high": [gain.high for gain in gains],
            "is_worse_than_textbook": [entry.is_worse_than_textbook for entry in entries],
            "regret_gap": [math.nan if posterior is None else posterior.regret_gap for posterior in posteriors],
            "not_tuned_reason": [entry.not_tuned_reason for entry in entries],
            "not_backtested_reason": [entry.not_backtested_reason for entry in entries],
        }
        return make_data_frame(rows)
