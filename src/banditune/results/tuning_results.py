"""What tuning and regret curves return, and a tuned policy written for another library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from banditune.core.arrays import FloatArray
from banditune.core.errors import InvalidRequest
from banditune.results.estimates import UPPER_TAIL_LEVEL, Estimate, RegretDistribution
from banditune.results.exact_results import LowerBound
from banditune.results.result_record import ResultRecord, make_data_frame, register_record
from banditune.results.robustness_results import RobustnessReport
from banditune.results.search_results import SearchPosterior, TrialResult, UnimodalityTest
from banditune.results.student_t import compute_student_quantile
from banditune.results.study_setup import StudySetup


@register_record
@dataclass(frozen=True, repr=False, eq=False)
class Curve(ResultRecord):
    """Bayes regret over parameter values, every value on the same instances; `best` has the lowest mean.

    The values were given, or `refined` where the curve bends. `theory` is theory's value (in a `Tuning` it is what that
    value loses). `warnings` are sentences about what may mislead. `units` counts the tables or campaigns over which errors
    are taken; None: over runs.
    """

    parameter: str
    values: FloatArray
    mean: FloatArray
    se: FloatArray
    runs: int
    best: float
    best_regret: Estimate
    theory: float
    log_scale: bool
    unimodality: UnimodalityTest
    setup: StudySetup
    refined: bool = False
    warnings: tuple[str, ...] = ()
    units: int | None = None

    @property
    def reach(self) -> FloatArray:
        """Half of each value's 95% interval."""
        return compute_student_quantile(UPPER_TAIL_LEVEL, (self.units or self.runs) - 1) * self.se

    def to_pandas(self) -> Any:
        """A row per value."""
        return make_data_frame({self.parameter: self.values, "mean": self.mean, "se": self.se, "runs": self.runs})


@register_record
@dataclass(frozen=True, repr=False, eq=False)
class ExportedPolicy(ResultRecord):
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


@register_record
@dataclass(frozen=True, repr=False, eq=False)
class Tuning(ResultRecord):
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
    belief: SearchPosterior | None
    within: float | None
    reached: bool | None
    warnings: tuple[str, ...]
    curve: Curve | None
    setup: StudySetup
    floor: LowerBound | None = None
    spread: RegretDistribution | None = None
    theory_spread: RegretDistribution | None = None
    validate: int | None = None
    stress: RobustnessReport | None = None
    baseline: Mapping[str, Any] | None = None
    searched: Mapping[str, tuple[float, ...]] | None = None

    def __post_init__(self) -> None:
        if len(self.params) != 1 or set(self.params) != set(self.theory_params):
            told = f"{dict(self.params)} and {dict(self.theory_params)}"
            raise InvalidRequest(f"a tuning must have one parameter, tuned and as theory has it, but got {told}.")

    def export(self, library: str) -> ExportedPolicy:
        """The equal parameter in another library, "mabwiser" or "river", and what is not the same there."""
        import banditune

        found: ExportedPolicy = banditune.adapters.export_params(self, library)
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
        return make_data_frame(dict(zip(columns, zip(*rows, strict=True), strict=True)))

    def policy(self, policy: Any = None, **told: Any) -> Any:
        """The tuned policy, ready to work: `select_arm()` and `update(arm, reward)`; see `deploy_result`.

        Your own policy must be passed again; `names`, `features`, `seed` and `pending` may be told.
        """
        import banditune

        return banditune.deployment.deploy_result(self, policy, **told)
