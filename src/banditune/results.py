"""What the verbs return: frozen records that go to JSON and back without loss."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any, TypeVar

import numpy as np

from banditune.contracts import BadRequest, Floats, plain

LEVEL = 0.95
TAIL = 0.5 + LEVEL / 2


def student_quantile(level: float, degrees: int) -> float:
    """A quantile of Student's t: in closed form for 1 and 2 degrees, else by its expansion (Abramowitz, Stegun 26.7.5)."""
    if degrees <= 1:
        return math.tan(math.pi * (level - 0.5))
    if degrees == 2:
        return (2 * level - 1) * math.sqrt(2 / (4 * level * (1 - level)))
    z = NormalDist().inv_cdf(level)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / degrees + second / degrees**2 + third / degrees**3


KINDS: dict[str, type] = {}
"""Records that can be read back, by name."""

INFINITE = ("-infinity", "infinity")
"""How open ends of intervals are written."""

Kind = TypeVar("Kind", bound=type)


def _kept(kind: Kind) -> Kind:
    KINDS[kind.__name__] = kind
    return kind


class Record:
    """JSON out and in; equality is that of the JSON."""

    def to_json(self, indent: int | None = None) -> str:
        """The record as one JSON object; numbers keep every bit."""
        return json.dumps(encoded(self), indent=indent, allow_nan=False)

    def save(self, path: str | Path) -> None:
        """Write the JSON to a file, whole or not at all."""
        write_whole(path, (self.to_json(indent=1) + "\n").encode())

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw the result with matplotlib; returns the figure, or writes it to a file."""
        import banditune  # through the front door: records know nothing of drawing

        return banditune.plot(self, path)

    def report(self, path: str | Path) -> Any:
        """Write the result as a report, one HTML file; returns the path."""
        import banditune

        return banditune.report(self, path)

    def __repr__(self) -> str:
        import banditune

        return str(banditune.text(self))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and encoded(self) == encoded(other)

    def __hash__(self) -> int:
        return hash(self.to_json())


@_kept
@dataclass(frozen=True, repr=False, eq=False)
class Estimate(Record):
    """A mean with its standard error and 95% interval (Student's t: as far as the central limit theorem holds)."""

    mean: float
    se: float
    low: float
    high: float
    runs: int

    @classmethod
    def of(cls, sample: Floats) -> Estimate:
        """The mean of a sample, one number per run."""
        se = float(np.std(sample, ddof=1) / math.sqrt(len(sample))) if len(sample) > 1 else math.nan
        return cls.told(float(np.mean(sample)), se, len(sample))

    @classmethod
    def told(cls, mean: float, se: float, runs: int) -> Estimate:
        """The interval of a mean of so many runs whose standard error is known."""
        reach = student_quantile(TAIL, runs - 1) * se
        return cls(mean, se, mean - reach, mean + reach, runs)

    def __repr__(self) -> str:
        return f"{self.mean:.4g} +- {self.se:.2g} (95%: {self.low:.4g} to {self.high:.4g}, {self.runs} runs)"


@_kept
@dataclass(frozen=True, repr=False, eq=False)
class Setup(Record):
    """Everything that is needed to repeat a result; `command` is how it was asked for, where that named files."""

    policy: Mapping[str, Any] | None
    problem: Mapping[str, Any]
    horizon: int
    seed: int
    regret: str
    noise: str
    shortcut: bool
    versions: Mapping[str, str]
    tuner: Mapping[str, Any] | None = None
    device: str = "cpu"
    command: str | None = None

    @property
    def tuner_name(self) -> str:
        """The tuner's name, if there was one."""
        return str(self.tuner["name"]) if self.tuner else "none"

    def __repr__(self) -> str:
        name = self.policy["name"] if self.policy else "several policies"
        return f"{name} on {self.problem['name']}, horizon {self.horizon}, seed {self.seed}"


@_kept
@dataclass(frozen=True, repr=False, eq=False)
class Unimodality(Record):
    """A test of "the curve falls, then rises": rejected where a value in between is surely above both sides.

    `alarm` bounds the probability to reject a unimodal curve. `peak` names the three values where it was rejected.
    """

    rejected: bool
    statistic: float
    critical: float
    alarm: float
    peak: tuple[float, ...]

    def __repr__(self) -> str:
        if not self.rejected:
            return f"no sign against one dip (statistic {self.statistic:.2f}, critical {self.critical:.2f})"
        left, top, right = self.peak
        return (
            f"more than one dip: {top:.4g} is above both {left:.4g} and {right:.4g} (false alarms <= {self.alarm:.0%})"
        )


@_kept
@dataclass(frozen=True, repr=False, eq=False)
class Curve(Record):
    """Bayes regret over parameter values, every value on the same instances; `best` has the lowest mean.

    The values were given, or `refined` where the curve bends.
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

    def to_pandas(self) -> Any:
        """A row per value."""
        return frame({self.parameter: self.values, "mean": self.mean, "se": self.se, "runs": self.runs})


@_kept
@dataclass(frozen=True, repr=False, eq=False)
class TrialResult(Record):
    """What a tuner asked and what it was told."""

    values: Floats
    mean: Floats
    se: Floats
    runs: tuple[int, ...]

    @classmethod
    def of(cls, values: Sequence[float], regrets: Sequence[Floats]) -> TrialResult:
        """The means of each value's regrets; a single run has no standard error."""
        se = [np.std(row, ddof=1) / math.sqrt(len(row)) if len(row) > 1 else math.nan for row in regrets]
        return cls(frozen(values), frozen([row.mean() for row in regrets]), frozen(se), tuple(map(len, regrets)))

    @property
    def spent(self) -> int:
        """Runs played: all values together."""
        return sum(self.runs)

    def __repr__(self) -> str:
        rows = zip(self.values, self.mean, self.runs, strict=True)
        return ", ".join(f"{value:.4g}: {mean:.4g} ({runs})" for value, mean, runs in rows)


@_kept
@dataclass(frozen=True, repr=False, eq=False)
class Belief(Record):
    """What a search knows about its answer. Each statement holds with probability `level`, as far as its curves fit.

    The answer loses `mean` (`low` to `high`) on average; the best value is between `best_low` and `best_high`; nothing
    beats the answer by more than `gap`; `flat` holds two values and a share: every value between them is within that share
    of the lowest regret (it is empty where that cannot be said). `peak` names three values of which the middle one is
    surely the worst, if the curve has more than one dip; with a `misfit`, runs are surely off the curves, and nothing of
    this is to be trusted.
    """

    mean: float
    low: float
    high: float
    best_low: float
    best_high: float
    gap: float
    flat: tuple[float, ...]
    peak: tuple[float, ...]
    misfit: bool
    level: float

    def keeps(self, within: float) -> bool:
        """Whether nothing is better than the answer by more than this share of its regret, and the runs speak for that."""
        return not self.misfit and self.gap <= within * abs(self.mean)

    def __repr__(self) -> str:
        return f"{self.mean:.4g} ({100 * self.level:g}%: {self.low:.4g} to {self.high:.4g}), gap {self.gap:.3g}"


QUANTILES = (
    0,
    0.01,
    0.02,
    0.05,
    *(place / 10 for place in range(1, 10)),
    0.25,
    0.75,
    0.95,
    0.98,
    0.99,
    0.995,
    0.999,
    1,
)
"""Levels of the quantiles that a result keeps: more of them at the ends."""

WORST = 10
"""So many of the runs that lost most are kept by number."""


@_kept
@dataclass(frozen=True, repr=False, eq=False)
class Spread(Record):
    """How the regrets of single runs are spread, which their mean does not show.

    `values` are the quantiles at `levels`, each the regret of a run: the lowest that a share `level` of the runs does not
    exceed. `worst` are the numbers of the runs that lost most, `losses` their regrets, worst first;
    `simulate(..., first=number, runs=1)` plays such a run again.
    """

    levels: Floats
    values: Floats
    mean: float
    runs: int
    worst: tuple[int, ...]
    losses: Floats

    @classmethod
    def of(cls, sample: Floats, first: int) -> Spread:
        """Of regrets of runs that are numbered from `first` on; of equal ones, the first run is the worst."""
        worst = np.argsort(-sample, kind="stable")[:WORST]
        levels = sorted(QUANTILES)
        values = np.quantile(sample, levels, method="inverted_cdf")
        return cls(
            frozen(levels),
            frozen(values),
            float(np.mean(sample)),
            len(sample),
            tuple(first + int(place) for place in worst),
            frozen(sample[worst]),
        )

    def at(self, level: float) -> float:
        """The quantile at one of the levels."""
        return float(self.values[self.levels.tolist().index(level)])

    def __repr__(self) -> str:
        return f"mean {self.mean:.4g}, median {self.at(0.5):.4g}, 99% {self.at(0.99):.4g}, worst {self.values[-1]:.4g}"


@_kept
@dataclass(frozen=True, repr=False, eq=False)
class Floor(Record):
    """A Bayes regret that no policy can go below: the optimum itself (`exact`), or a bound that holds with probability
    `level` (1 where it is computed, not sampled). `how` it is known: "dynamic programming", or the kind of bound.
    """

    regret: float
    exact: bool
    level: float
    how: str

    def __repr__(self) -> str:
        sure = "exact" if self.exact else "computed" if self.level == 1 else f"{100 * self.level:g}% sure"
        return f"no policy loses less than {self.regret:.4g} ({sure}, {self.how})"


@_kept
@dataclass(frozen=True, repr=False, eq=False)
class Optimum(Record):
    """The best that any policy can do: its expected total `reward` and Bayes `regret`, computed, not simulated.

    `known` is the reward of one who knows the best arm.
    """

    reward: float
    known: float
    regret: float
    setup: Setup


@_kept
@dataclass(frozen=True, repr=False, eq=False)
class ExactRegret(Record):
    """The Bayes regret of a policy at parameter values, computed, not simulated; `floor` is the optimum, where known."""

    parameter: str
    values: Floats
    regret: Floats
    theory: float
    setup: Setup
    floor: Floor | None = None

    def to_pandas(self) -> Any:
        """A row per value."""
        return frame({self.parameter: self.values, "regret": self.regret})


@_kept
@dataclass(frozen=True, repr=False, eq=False)
class Bound(Record):
    """Lower bounds on the Bayes regret of every policy, one for each `kind`, with standard errors (0: computed).

    `floor` is the best of them, at its lower confidence limit; `confidence` is how sure a sampled one had to be.
    """

    kinds: tuple[str, ...]
    mean: Floats
    se: Floats
    runs: tuple[int, ...]
    floor: Floor
    setup: Setup
    confidence: float | None = None

    def to_pandas(self) -> Any:
        """A row per kind of bound."""
        return frame({"kind": list(self.kinds), "mean": self.mean, "se": self.se})


@_kept
@dataclass(frozen=True, repr=False, eq=False)
class Strain(Record):
    """A tuned value where another problem came than was expected, told in `words`.

    `loss` is its `regret` there minus `best_regret`, that of the value tuned for what came, paired; `theory` is theory's.
    """

    words: str
    problem: Mapping[str, Any]
    horizon: int
    regret: Estimate
    best: float
    best_regret: Estimate
    loss: Estimate
    theory: Estimate

    @property
    def share(self) -> float:
        """The loss as a share of what the best value loses."""
        return self.loss.mean / max(abs(self.best_regret.mean), 1e-300)

    @property
    def verdict(self) -> str:
        """In a word: fragile where it surely loses a quarter more than the best, and then perhaps more than theory too."""
        if self.regret.mean > self.theory.mean and self.loss.low > 0.25 * self.best_regret.mean:
            return "worse than theory"
        if self.loss.low > 0.25 * self.best_regret.mean:
            return "fragile"
        return "fine" if self.loss.high < 0.25 * self.best_regret.mean else "unclear"

    def __repr__(self) -> str:
        return f"{self.words}: {self.share:+.0%} of {self.best_regret.mean:.4g} ({self.verdict})"


@_kept
@dataclass(frozen=True, repr=False, eq=False)
class Stress(Record):
    """What a tuned value loses where something else comes than was expected: a `Strain` for each such problem.

    The first strain is the expected problem itself.
    """

    params: Mapping[str, float]
    strains: tuple[Strain, ...]
    budget: int
    validated: int
    setup: Setup

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


@_kept
@dataclass(frozen=True, repr=False, eq=False)
class Tuning(Record):
    """A tuned policy. `regret`, `theory` and `gain` come from fresh instances that the search did not see.

    `gain` is theory's regret minus the tuned regret, paired. `spent` counts search runs, `validated` the fresh ones.
    `belief` is what the search itself knows, where the tuner says it; `reached` whether a wanted precision was, None if
    none was wanted; `warnings` are sentences about what may mislead; `floor` is what no policy can go below, where known;
    `spread` and `theory_spread` tell how the regrets of the fresh runs are spread; `validate` is how many such runs were
    asked for, None if it was left to the verb; `stress` tells what is lost if the problem is another one, where asked for.
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


@_kept
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


@_kept
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


@_kept
@dataclass(frozen=True, repr=False, eq=False)
class Comparison(Record):
    """Policies tuned one by one, then validated on the same fresh instances, best first.

    `warnings` are sentences about what may mislead.
    """

    entries: tuple[Entry, ...]
    best: str
    budget: int
    validated: int
    setup: Setup
    floor: Floor | None = None
    warnings: tuple[str, ...] = ()

    def to_pandas(self) -> Any:
        """A row per policy."""
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


@_kept
@dataclass(frozen=True, repr=False, eq=False)
class PaperCell(Record):
    """One number of the paper's tables beside ours; what the paper does not have is NaN there.

    `se` holds all that is uncertain about ours, `paper_se` about the paper's. `other` is ours by another reading, where the
    paper leaves open what it did; all readings together span `low` to `high`. `apart` is the difference in joint standard
    errors, `beyond` what is left of it when the written tolerance, whose `reasons` stand beside it, is taken off. `known`
    is what was found out about why the two differ.
    """

    table: str
    row: str
    tuner: str
    budget: int
    ours: float
    se: float
    other: float
    low: float
    high: float
    paper: float
    paper_se: float
    apart: float
    beyond: float
    reasons: tuple[str, ...]
    known: str = ""

    @property
    def mark(self) -> str:
        """! where a difference is beyond 3 joint standard errors, !! beyond 4; ~ where a written tolerance covers it."""
        if abs(self.beyond) > 3:
            return "!!" if abs(self.beyond) > 4 else "!"
        return "~" if abs(self.apart) > 3 else ""

    def __repr__(self) -> str:
        tuned = f", {self.tuner} with {self.budget:,} runs" if self.tuner else ""
        return f"{self.table}, {self.row}{tuned}: {self.ours:.4g} +- {self.se:.2g}, paper {self.paper:g}"


@_kept
@dataclass(frozen=True, repr=False, eq=False)
class PaperCurve(Record):
    """A row's Bayes regret over all widths of its pool; `best` is the lowest point of a smooth curve through it."""

    row: str
    parameter: str
    values: Floats
    mean: Floats
    se: Floats
    best: float
    best_of_tenths: float

    def __repr__(self) -> str:
        return f"{self.row}: {self.parameter} = {self.best:.4g} is best"


@_kept
@dataclass(frozen=True, repr=False, eq=False)
class Reproduction(Record):
    """The paper's experiments played again: `cells` beside its published numbers, `curves` of its rows.

    Each row was played `runs` times at every width; tunings, so many for each tuner, drew from these runs. `notes` say what
    the paper leaves open and what was done.
    """

    cells: tuple[PaperCell, ...]
    curves: tuple[PaperCurve, ...]
    runs: int
    tunings: Mapping[str, int]
    seed: int
    device: str
    notes: tuple[str, ...]
    versions: Mapping[str, str]

    @property
    def published(self) -> tuple[PaperCell, ...]:
        """The cells that have a number in the paper and one of ours."""
        return tuple(cell for cell in self.cells if not math.isnan(cell.apart))

    @property
    def agrees(self) -> bool:
        """Whether no cell is beyond 4 joint standard errors and its written tolerance."""
        return all(cell.mark != "!!" for cell in self.published)

    def to_pandas(self) -> Any:
        """A row per cell."""
        names = [f.name for f in fields(PaperCell)]
        return frame({name: [getattr(cell, name) for cell in self.cells] for name in names})


@_kept
@dataclass(frozen=True, repr=False, eq=False)
class Tally(Record):
    """What a ledger knows about a row of parameters after `step` steps, on `fresh` instances or on those of searches.

    `noise` is the number of its noise, 0 where noise is shared. The `spread` names no single runs.
    """

    params: tuple[float, ...]
    noise: int
    fresh: bool
    step: int
    regret: Estimate
    spread: Spread

    def __repr__(self) -> str:
        return f"{self.params}: {self.regret!r}"


@_kept
@dataclass(frozen=True, repr=False, eq=False)
class Account(Record):
    """What a ledger holds of one setup, which is known by its `number` there, as `tallies`.

    Policy, problem and `versions` (of who played first) are words; `play` names the shortcut, or is "plain".
    """

    number: int
    policy: str
    problem: str
    horizon: int
    seed: int
    regret: str
    noise: str
    play: str
    device: str
    precision: str
    versions: str
    parameters: tuple[str, ...]
    tallies: tuple[Tally, ...]

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps after which regret was counted."""
        return tuple(sorted({tally.step for tally in self.tallies}))

    def ended(self, *, fresh: bool) -> tuple[Tally, ...]:
        """The tallies after the last step, of fresh instances or of those of searches."""
        last = self.steps[-1]
        return tuple(tally for tally in self.tallies if tally.step == last and tally.fresh == fresh)

    def to_pandas(self) -> Any:
        """A row per tally."""
        columns = {name: [tally.params[place] for tally in self.tallies] for place, name in enumerate(self.parameters)}
        columns |= {name: [getattr(tally, name) for tally in self.tallies] for name in ("noise", "fresh", "step")}
        columns |= {name: [getattr(tally.regret, name) for tally in self.tallies] for name in ("runs", "mean", "se")}
        return frame(columns)


@_kept
@dataclass(frozen=True, repr=False, eq=False)
class Fitted(Record):
    """A number of a fitted prior with its interval; an end may be infinite where the logs do not bound it."""

    name: str
    value: float
    low: float
    high: float

    def __repr__(self) -> str:
        return f"{self.name} = {self.value:.4g} ({self.low:.4g} to {self.high:.4g})"


@_kept
@dataclass(frozen=True, repr=False, eq=False)
class Check(Record):
    """A statistic of the logs beside the same of logs replayed from the fit: 95% of those are from `low` to `high`.

    `above` is the share of replayed logs at or above what was observed: the posterior predictive p-value.
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
        return f"{self.statistic}: {self.observed:.4g}, replayed {self.low:.4g} to {self.high:.4g} (p {self.above:.3f})"


@_kept
@dataclass(frozen=True, repr=False, eq=False)
class Fit(Record):
    """A distribution of problem instances fitted to past logs: `made` is what the problem is made with.

    `estimates` have intervals of the wanted `confidence`. `checks` compare the logs with logs replayed from the fit, with
    the same pulls; so do quantiles of cell means at `levels`: `observed`, and the middle, `low` and `high` (95%) of the
    replayed ones. `notes` are sentences about what was decided and what may mislead.
    """

    model: str
    made: Mapping[str, Any]
    estimates: tuple[Fitted, ...]
    campaigns: int
    decisions: int
    arms: int
    horizon: int
    confidence: float
    checks: tuple[Check, ...]
    levels: Floats
    observed: Floats
    replayed: Floats
    low: Floats
    high: Floats
    notes: tuple[str, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What may mislead: the notes."""
        return self.notes

    @property
    def problem(self) -> Any:
        """The fitted problem, ready to be tuned on."""
        import banditune

        return banditune.problem_from(self.made)

    def __getitem__(self, name: str) -> Fitted:
        for estimate in self.estimates:
            if estimate.name == name:
                return estimate
        raise BadRequest(f"the fit has {', '.join(e.name for e in self.estimates)}, but got {name!r}.")

    def to_pandas(self) -> Any:
        """A row per estimate."""
        names = [f.name for f in fields(Fitted)]
        return frame({name: [getattr(estimate, name) for estimate in self.estimates] for name in names})


@_kept
@dataclass(frozen=True, repr=False, eq=False)
class Backtest(Record):
    """A policy tuned on some past campaigns (`fit`, `tuning`) and played on the others, of which there are `campaigns`.

    `regret`, `theory` and `gain` are those of a campaign, `reward`, `theory_reward` and `logged`, what the logs say was
    paid, those of a decision; all are means over the campaigns that were left out.
    """

    fit: Fit
    tuning: Tuning
    campaigns: int
    regret: Estimate
    theory: Estimate
    gain: Estimate
    reward: Estimate
    theory_reward: Estimate
    logged: Estimate

    @property
    def setup(self) -> Setup:
        """How the policy was tuned."""
        return self.tuning.setup

    @property
    def warnings(self) -> tuple[str, ...]:
        """What may mislead in the fit and in the tuning."""
        return (*self.fit.notes, *self.tuning.warnings)

    def to_pandas(self) -> Any:
        """A row per number."""
        names = ("regret", "theory", "gain", "reward", "theory_reward", "logged")
        found = [getattr(self, name) for name in names]
        columns = {column: [getattr(one, column) for one in found] for column in ("mean", "se", "low", "high")}
        return frame({"name": list(names)} | columns)


def frame(columns: Mapping[str, Any]) -> Any:
    """A pandas data frame."""
    try:
        import pandas
    except ImportError as error:
        raise BadRequest('to_pandas() needs pandas; install it with: pip install "banditune[pandas]"') from error
    return pandas.DataFrame(dict(columns))


def encoded(value: Any) -> Any:
    """Records as objects with their kind, arrays and tuples as lists."""
    if is_dataclass(value) and not isinstance(value, type):
        return {"kind": type(value).__name__} | {f.name: encoded(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {key: encoded(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [encoded(item) for item in value]
    if isinstance(value, np.ndarray):
        return encoded(value.tolist())
    # JSON has no NaN and no infinity: the standard error of a single run is null, an open end a word.
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else INFINITE[value > 0]
    return plain(value)


def decoded(value: Any) -> Any:
    """The inverse of `encoded`."""
    if isinstance(value, list):
        return tuple(decoded(item) for item in value)
    if not isinstance(value, dict):
        return value
    if "kind" not in value:
        return {key: decoded(item) for key, item in value.items()}
    kind = KINDS.get(str(value["kind"]))
    if kind is None:
        raise BadRequest(f"a result must be one of {sorted(KINDS)}, but got {value['kind']!r}.")
    wanted = [f.name for f in fields(kind)]
    # What a result did not have yet when it was saved.
    usual = {f.name: f.default for f in fields(kind) if f.default is not MISSING}
    given = usual | {key: decoded(item) for key, item in value.items() if key != "kind"}
    if sorted(wanted) != sorted(given):
        raise BadRequest(f"a {kind.__name__} must hold the fields {wanted}, but got {sorted(given)}.")
    for f in fields(kind):
        _check_type(kind, f.name, str(f.type), given[f.name])
        if f.type == "Floats":
            given[f.name] = frozen([math.nan if number is None else number for number in given[f.name]])
        elif f.type == "float" and given[f.name] is None:
            given[f.name] = math.nan
        elif f.type == "float" and given[f.name] in INFINITE:
            given[f.name] = math.inf if INFINITE.index(given[f.name]) else -math.inf
    return kind(**given)


def _check_type(kind: type, name: str, wanted: str, value: Any) -> None:
    """A field of the type that the record declares."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    good = {
        "int": isinstance(value, int) and not isinstance(value, bool),
        "float": number or value is None or value in INFINITE,
        "str": isinstance(value, str),
        "bool": isinstance(value, bool),
        "Floats": isinstance(value, tuple) and all(isinstance(item, int | float | None) for item in value),
    }
    if wanted.endswith(" | None"):
        if value is None:
            return
        wanted = wanted.removesuffix(" | None")
    good |= dict.fromkeys(("tuple[float, ...]", "tuple[int, ...]", "tuple[str, ...]"), isinstance(value, tuple))
    record = KINDS.get(wanted)
    if not good.get(wanted, record is None or isinstance(value, record)):
        raise BadRequest(f"the field {name!r} of a {kind.__name__} must be of type {wanted}, but got {value!r:.60}.")


def frozen(numbers: Any) -> Floats:
    """A read-only array of floats."""
    array = np.array(numbers, np.float64)
    array.setflags(write=False)
    return array


def from_json(text: str) -> Any:
    """Read a result that `to_json` wrote."""
    try:
        found = decoded(json.loads(text))
        if not isinstance(found, Record):
            raise BadRequest(f"a result must be one of {sorted(KINDS)}, but got {type(found).__name__}.")
        return found
    except (json.JSONDecodeError, TypeError, ValueError, RecursionError) as error:
        if isinstance(error, BadRequest):
            raise
        raise BadRequest(f"a result must be JSON as `to_json` writes it, but: {error}.") from error


def load(path: str | Path) -> Any:
    """Read a result from a file that `save` wrote."""
    try:
        text = Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise BadRequest(f"the result file {str(path)!r} cannot be read: {error}.") from error
    return from_json(text)


def write_whole(path: str | Path, content: bytes | Iterable[bytes]) -> None:
    """Write a file, whole or not at all; links are followed, modes kept, devices and pipes written to as they are."""
    target = Path(path).resolve()
    parts = [content] if isinstance(content, bytes) else content
    try:
        if target.exists() and not target.is_file():
            with target.open("wb") as file:
                file.writelines(parts)
            return
        mode = target.stat().st_mode & 0o7777 if target.exists() else 0o666 & ~_umask()
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.writelines(parts)
            os.chmod(name, mode)
            os.replace(name, target)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise BadRequest(f"the file {str(path)!r} cannot be written: {error.strerror or error}.") from error


def _umask() -> int:
    """The mask of new files' modes, which can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def check_writable(path: str | Path) -> None:
    """Complain before the work, not after it, about a path that cannot be written."""
    folder = Path(path).resolve().parent
    if not folder.is_dir():
        raise BadRequest(f"the file {str(path)!r} cannot be written: there is no folder {str(folder)!r}.")
    if Path(path).is_dir():
        raise BadRequest(f"the file {str(path)!r} cannot be written: it is a folder.")
    try:
        if Path(path).exists():
            with open(path, "ab"):
                return
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise BadRequest(f"the file {str(path)!r} cannot be written: {error.strerror or error}.") from error
