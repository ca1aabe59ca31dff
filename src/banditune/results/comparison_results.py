"""What a comparison of policies returns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from banditune.results.estimates import Estimate, RegretDistribution, compute_bonferroni_quantile
from banditune.results.exact_results import LowerBound
from banditune.results.result_record import ResultRecord, make_data_frame, register_record
from banditune.results.search_results import SearchPosterior
from banditune.results.study_setup import StudySetup, check_option_sources


@register_record
@dataclass(frozen=True, repr=False, eq=False)
class ComparisonEntry(ResultRecord):
    """One policy of a comparison: its parameters and its regret, and how much more it loses than the best policy.

    `theory` is the regret of the `baseline`, as in a `Tuning`; `describe_problem_options` is as in a `StudySetup`. `gain` is theory's regret
    minus that of the tuned value, paired. Where the tuned value is surely worse, the comparison uses the baseline with
    `theory_params`, and `behind` is that of the baseline. `belief` is what the search itself knows. `not_tuned` and
    `not_backtested` say why the policy was not tuned, and why `backtest` cannot judge it.
    `searched` holds both ends of the range in which it was tuned.
    """

    policy: str
    made: Mapping[str, Any]
    params: Mapping[str, float]
    tuned: bool
    regret: Estimate
    behind: Estimate
    theory: Estimate
    spent: int
    spread: RegretDistribution | None = None
    baseline: Mapping[str, Any] | None = None
    from_problem: Mapping[str, str] = field(default_factory=dict)
    theory_params: Mapping[str, float] = field(default_factory=dict)
    gain: Estimate | None = None
    belief: SearchPosterior | None = None
    not_tuned: str = ""
    not_backtested: str = ""
    searched: Mapping[str, tuple[float, ...]] | None = None

    def __post_init__(self) -> None:
        check_option_sources(self.made, self.from_problem)

    @property
    def worse_than_theory(self) -> bool:
        """Whether the tuned value is surely worse than the baseline, on fresh instances."""
        return self.gain is not None and self.gain.high < 0

    @property
    def recommended_policy(self) -> Mapping[str, Any]:
        """The policy to use: the tuned one, unless the baseline is surely better."""
        return self.baseline if self.worse_than_theory and self.baseline else self.made

    @property
    def recommended(self) -> Mapping[str, float]:
        """Its parameters."""
        return self.theory_params if self.worse_than_theory else self.params

    @property
    def lowest(self) -> Estimate:
        """Its regret."""
        return self.theory if self.worse_than_theory else self.regret

    def __repr__(self) -> str:
        return f"{self.policy} {dict(self.params)}: {self.regret!r}"


@register_record
@dataclass(frozen=True, repr=False, eq=False)
class Comparison(ResultRecord):
    """Policies tuned one by one, then validated on the same fresh instances, best first.

    `warnings` are sentences about what may mislead. `again` is what the best policy loses on as many other instances:
    those on which it was the best flatter it.
    """

    entries: tuple[ComparisonEntry, ...]
    best: str
    budget: int
    validated: int
    setup: StudySetup
    floor: LowerBound | None = None
    warnings: tuple[str, ...] = ()
    again: Estimate | None = None

    @property
    def lowest(self) -> Estimate:
        """What the best policy loses, where it can be said, on instances on which it was not chosen."""
        return self.again or self.entries[0].lowest

    @property
    def joint_reach(self) -> float:
        """Standard errors to each side that hold all differences between two policies together (Bonferroni)."""
        pairs = len(self.entries) * (len(self.entries) - 1) // 2
        return compute_bonferroni_quantile(pairs, self.entries[0].regret.runs)

    def behind(self, entry: ComparisonEntry) -> tuple[float, float]:
        """How far a policy is behind the best at least and at most: intervals that hold with 95% for all pairs together."""
        half = self.joint_reach * entry.behind.se
        return entry.behind.mean - half, entry.behind.mean + half

    def to_pandas(self) -> Any:
        """A row per policy, as printed: `behind_low` and `behind_high` hold for all pairs together.

        All numbers are by the same instances. The gap is what the search states about the tuned value, NaN where nothing.
        """
        entries, none = self.entries, Estimate.told(0.0, 0.0, self.validated)
        gains = [entry.gain or none for entry in entries]
        beliefs = [None if entry.belief is None or entry.belief.misfit else entry.belief for entry in entries]
        rows = {
            "policy": [entry.policy for entry in entries],
            "params": [dict(entry.params) for entry in entries],
            "tuned": [entry.tuned for entry in entries],
            "regret": [entry.regret.mean for entry in entries],
            "se": [entry.regret.se for entry in entries],
            "low": [entry.regret.low for entry in entries],
            "high": [entry.regret.high for entry in entries],
            "behind": [entry.behind.mean for entry in entries],
            "behind_low": [self.behind(entry)[0] for entry in entries],
            "behind_high": [self.behind(entry)[1] for entry in entries],
            "theory": [entry.theory.mean for entry in entries],
            "gain": [gain.mean for gain in gains],
            "gain_low": [gain.low for gain in gains],
            "gain_high": [gain.high for gain in gains],
            "worse_than_theory": [entry.worse_than_theory for entry in entries],
            "gap": [math.nan if belief is None else belief.gap for belief in beliefs],
            "not_tuned": [entry.not_tuned for entry in entries],
            "not_backtested": [entry.not_backtested for entry in entries],
        }
        return make_data_frame(rows)
