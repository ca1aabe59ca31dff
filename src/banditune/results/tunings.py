"""What tune, curve and compare return."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from banditune.contracts import BadRequest, Floats
from banditune.results.computed import Floor
from banditune.results.estimates import (
    TAIL,
    Belief,
    Estimate,
    Spread,
    TrialResult,
    Unimodality,
    reach_of_all,
    student_quantile,
)
from banditune.results.record import Record, frame, kept
from banditune.results.setup import Setup, check_sources


@kept
@dataclass(frozen=True, repr=False, eq=False)
class Curve(Record):
    """Bayes regret over parameter values, every value on the same instances; `best` has the lowest mean.

    The values were given, or `refined` where the curve bends. `theory` is theory's value (in a `Tuning` it is what that
    value loses). `warnings` are sentences about what may mislead. `units` counts the tables or campaigns over which errors
    are taken; None: over runs.
    """

    parameter: str
    values: Floats
    mean: Floats
    se: Floats
    runs: int
    best: float
    best_regret: Estimate
    theory: float
    log_scale: bool
    unimodality: Unimodality
    setup: Setup
    refined: bool = False
    warnings: tuple[str, ...] = ()
    units: int | None = None

    @property
    def reach(self) -> Floats:
        """Half of each value's 95% interval."""
        return student_quantile(TAIL, (self.units or self.runs) - 1) * self.se

    def to_pandas(self) -> Any:
        """A row per value."""
        return frame({self.parameter: self.values, "mean": self.mean, "se": self.se, "runs": self.runs})


TOLERATED = 0.1
"""A value is fine where it loses at most this share more than the best, and fragile where it loses more."""


@kept
@dataclass(frozen=True, repr=False, eq=False)
class Strain(Record):
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
        return -1.0 if self.best_regret.mean < 0 else _last_share(lambda share: self.over(share).low > 0)

    @property
    def most(self) -> float:
        """The largest share that may be lost: the upper end of that interval, with the gap; infinite where unknown."""
        if self.gap is None or self.doubt or self.best_regret.mean < 0:
            return math.inf
        return _last_share(lambda share: self.over(share).high + (1 + share) * (self.gap or 0.0) > 0)

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
        if self.least > TOLERATED:
            return "worse than theory" if self.behind_theory and self.behind_theory.low > 0 else "fragile"
        return "fine" if self.most <= TOLERATED else "not decided"

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


def _last_share(holds: Callable[[float], bool]) -> float:
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


@kept
@dataclass(frozen=True, repr=False, eq=False)
class Stress(Record):
    """What a tuned value loses where something else comes than was expected: a `Strain` for each such problem.

    The first strain is the expected problem itself. `warnings` are sentences about what may mislead.
    """

    params: Mapping[str, float]
    strains: tuple[Strain, ...]
    budget: int
    validated: int
    setup: Setup
    warnings: tuple[str, ...] = ()

    @property
    def worst(self) -> Strain:
        """The strain with the largest loss, as a share."""
        return max(self.others, key=lambda strain: strain.share)

    @property
    def others(self) -> tuple[Strain, ...]:
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
        return frame(rows)


@kept
@dataclass(frozen=True, repr=False, eq=False)
class Tuning(Record):
    """A tuned policy. `regret`, `theory` and `gain` come from fresh instances that the search did not see.

    `theory` is the regret of the `baseline`, the textbook's policy with the textbook's parameter, `theory_params`. That is
    the tuned policy itself, unless its noise or prior was taken from the problem: then the baseline has the textbook's.
    `gain` is theory's regret minus the tuned regret, paired. `spent` counts search runs, `validated` the fresh ones.
    `belief` is what the search itself knows, where the tuner says it; `reached` whether a wanted precision was, None if
    none was wanted; `warnings` are sentences about what may mislead; `floor` is what no policy can go below, where known;
    `spread` and `theory_spread` tell how the regrets of the fresh runs are spread; `validate` is how many such runs were
    asked for, None if it was left to the verb; `stress` tells what is lost if the problem is another one, where asked for;
    `searched` holds both ends of the range that was searched.
    """

    params: Mapping[str, float]
    regret: Estimate
    theory: Estimate
    gain: Estimate
    theory_params: Mapping[str, float]
    spent: int
    budget: int
    validated: int
    trials: tuple[TrialResult, ...]
    belief: Belief | None
    within: float | None
    reached: bool | None
    warnings: tuple[str, ...]
    curve: Curve | None
    setup: Setup
    floor: Floor | None = None
    spread: Spread | None = None
    theory_spread: Spread | None = None
    validate: int | None = None
    stress: Stress | None = None
    baseline: Mapping[str, Any] | None = None
    searched: Mapping[str, tuple[float, ...]] | None = None

    def __post_init__(self) -> None:
        if len(self.params) != 1 or set(self.params) != set(self.theory_params):
            told = f"{dict(self.params)} and {dict(self.theory_params)}"
            raise BadRequest(f"a tuning must have one parameter, tuned and as theory has it, but got {told}.")

    def export(self, library: str) -> Export:
        """The equal parameter in another library, "mabwiser" or "river", and what is not the same there."""
        import banditune

        found: Export = banditune.exported(self, library)
        return found

    def to_pandas(self) -> Any:
        """A row per trial and value."""
        rows = [
            (number, value, mean, se, runs)
            for number, trial in enumerate(self.trials)
            for value, mean, se, runs in zip(trial.values, trial.mean, trial.se, trial.runs, strict=True)
        ]
        (parameter,) = self.params
        columns = ["trial", parameter, "mean", "se", "runs"]
        return frame(dict(zip(columns, zip(*rows, strict=True), strict=True)))

    def policy(self, policy: Any = None, **told: Any) -> Any:
        """The tuned policy, ready to work: `select_arm()` and `update(arm, reward)`; see `deploy_tuning`.

        Your own policy must be passed again; `names`, `features`, `seed` and `pending` may be told.
        """
        import banditune

        return banditune.deploy_tuning(self, policy, **told)


@kept
@dataclass(frozen=True, repr=False, eq=False)
class Export(Record):
    """A tuned policy in another library: `code` makes it there, with `parameter` = `value` (NaN: it has none).

    `same` says whether it is the same rule, `words` what is not the same, or what to mind.
    """

    library: str
    code: str
    parameter: str
    value: float
    same: bool
    words: str

    def __repr__(self) -> str:
        return f"{self.library}: {self.code}\n{self.words}"


@kept
@dataclass(frozen=True, repr=False, eq=False)
class Entry(Record):
    """One policy of a comparison: its parameters and its regret, and how much more it loses than the best policy.

    `theory` is the regret of the `baseline`, as in a `Tuning`; `from_problem` is as in a `Setup`. `gain` is theory's regret
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
    spread: Spread | None = None
    baseline: Mapping[str, Any] | None = None
    from_problem: Mapping[str, str] = field(default_factory=dict)
    theory_params: Mapping[str, float] = field(default_factory=dict)
    gain: Estimate | None = None
    belief: Belief | None = None
    not_tuned: str = ""
    not_backtested: str = ""
    searched: Mapping[str, tuple[float, ...]] | None = None

    def __post_init__(self) -> None:
        check_sources(self.made, self.from_problem)

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


@kept
@dataclass(frozen=True, repr=False, eq=False)
class Comparison(Record):
    """Policies tuned one by one, then validated on the same fresh instances, best first.

    `warnings` are sentences about what may mislead. `again` is what the best policy loses on as many other instances:
    those on which it was the best flatter it.
    """

    entries: tuple[Entry, ...]
    best: str
    budget: int
    validated: int
    setup: Setup
    floor: Floor | None = None
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
        return reach_of_all(pairs, self.entries[0].regret.runs)

    def behind(self, entry: Entry) -> tuple[float, float]:
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
        return frame(rows)
