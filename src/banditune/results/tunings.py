"""What tune, curve and compare return."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from banditune.contracts import BadRequest, Floats
from banditune.results.computed import Floor
from banditune.results.estimates import Belief, Estimate, Spread, TrialResult, Unimodality
from banditune.results.record import Record, frame, kept
from banditune.results.setup import Setup


@kept
@dataclass(frozen=True, repr=False, eq=False)
class Curve(Record):
    """Bayes regret over parameter values, every value on the same instances; `best` has the lowest mean.

    The values were given, or `refined` where the curve bends. `theory` is theory's value (in a `Tuning` it is what that
    value loses). `warnings` are sentences about what may mislead.
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

    def to_pandas(self) -> Any:
        """A row per value."""
        return frame({self.parameter: self.values, "mean": self.mean, "se": self.se, "runs": self.runs})


@kept
@dataclass(frozen=True, repr=False, eq=False)
class Strain(Record):
    """A tuned value where another problem came than was expected, told in `words`.

    `loss` is its `regret` there minus `best_regret`, that of the value tuned for what came, paired; `theory` is theory's,
    and `behind_theory` the paired difference to it.
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

    @property
    def share(self) -> float:
        """The loss as a share of what the best value loses."""
        return self.loss.mean / max(abs(self.best_regret.mean), 1e-300)

    @property
    def most(self) -> float:
        """The upper end of that share's 95% interval (delta method)."""
        return self.share + self.over(self.share).high / max(abs(self.best_regret.mean), 1e-300)

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
        """In a word: fragile where it surely loses a quarter more than the best, and worse if surely more than theory."""
        if self.loss.high <= 0:
            return "fine"  # whatever the best value loses: it may be too uncertain to take a quarter of
        beyond = self.over(0.25)
        if beyond.low > 0:
            return "worse than theory" if self.behind_theory and self.behind_theory.low > 0 else "fragile"
        return "fine" if beyond.high <= 0 else "unclear"

    def __repr__(self) -> str:
        return f"{self.words}: {self.share:+.0%} of {self.best_regret.mean:.4g} ({self.verdict})"


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
        rows |= {"loss_se": [strain.loss.se for strain in self.strains], "share": [s.share for s in self.strains]}
        return frame(rows | {"verdict": [strain.verdict for strain in self.strains]})


@kept
@dataclass(frozen=True, repr=False, eq=False)
class Tuning(Record):
    """A tuned policy. `regret`, `theory` and `gain` come from fresh instances that the search did not see.

    `theory` is what theory's value, `theory_params`, loses. `gain` is theory's regret minus the tuned regret, paired.
    `spent` counts search runs, `validated` the fresh ones. `belief` is what the search itself knows, where the tuner says
    it; `reached` whether a wanted precision was, None if none was wanted; `warnings` are sentences about what may mislead;
    `floor` is what no policy can go below, where known; `spread` and `theory_spread` tell how the regrets of the fresh runs
    are spread; `validate` is how many such runs were asked for, None if it was left to the verb; `stress` tells what is
    lost if the problem is another one, where asked for.
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
    """One policy of a comparison: its parameters and its regret, and how much more it loses than the best policy."""

    policy: str
    made: Mapping[str, Any]
    params: Mapping[str, float]
    tuned: bool
    regret: Estimate
    behind: Estimate
    theory: Estimate
    spent: int
    spread: Spread | None = None

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
        return self.again or self.entries[0].regret

    def to_pandas(self) -> Any:
        """A row per policy; all numbers are by the same instances."""
        rows = {
            "policy": [entry.policy for entry in self.entries],
            "params": [dict(entry.params) for entry in self.entries],
            "regret": [entry.regret.mean for entry in self.entries],
            "se": [entry.regret.se for entry in self.entries],
            "behind": [entry.behind.mean for entry in self.entries],
            "behind_low": [entry.behind.low for entry in self.entries],
            "behind_high": [entry.behind.high for entry in self.entries],
            "theory": [entry.theory.mean for entry in self.entries],
        }
        return frame(rows)
