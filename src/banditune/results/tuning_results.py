"""Results of tuning and of regret curves, and a tuned policy for another library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from banditune.core.arrays import FloatArray
from banditune.core.errors import InvalidRequest
from banditune.core.notice import Notice
from banditune.results.estimates import UPPER_TAIL_LEVEL, Estimate, RegretDistribution
from banditune.results.exact_results import LowerBound
from banditune.results.result_record import ResultRecord, make_data_frame, register_record
from banditune.results.robustness_results import RobustnessReport
from banditune.results.search_results import SearchPosterior, TrialResult, UnimodalityTest
from banditune.results.student_t import compute_student_quantile
from banditune.results.study_setup import StudySetup


@register_record
@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Curve(ResultRecord):
    """Bayes regret over parameter values, all on the same instances.

    Attributes
    ----------
    parameter : str
        The name of the parameter.
    values : array of float
        The values of the parameter, in order.
    mean : array of float
        The mean regret at each value.
    se : array of float
        The standard error of each mean.
    runs : int
        The number of runs of each value.
    best_value : float
        The value with the lowest mean.
    best_regret : Estimate
        Its regret on fresh instances. The lowest of many means would be biased downwards.
    textbook : float
        The textbook value of the parameter.
    log_scale : bool
        Whether the parameter has a logarithmic scale.
    unimodality : UnimodalityTest
        A test of whether the curve has a single dip.
    setup : StudySetup
        What is needed to repeat the result.
    refined : bool
        Whether the values were chosen where the curve bends, rather than given.
    notices : tuple of Notice
        Sentences about what may mislead.
    unit_count : int or None
        The number of tables or campaigns over which standard errors are taken; None where they are over runs.
    """

    parameter: str
    values: FloatArray
    mean: FloatArray
    se: FloatArray
    runs: int
    best_value: float
    best_regret: Estimate
    textbook: float
    log_scale: bool
    unimodality: UnimodalityTest
    setup: StudySetup
    refined: bool = False
    notices: tuple[Notice, ...] = ()
    unit_count: int | None = None

    @property
    def half_width(self) -> FloatArray:
        """Half of the width of each value's 95% interval."""
        return compute_student_quantile(UPPER_TAIL_LEVEL, (self.unit_count or self.runs) - 1) * self.se

    def to_pandas(self) -> Any:
        """Return a pandas data frame with one row per value.

        Raises
        ------
        MissingDependency
            If pandas is not installed.
        """
        return make_data_frame({self.parameter: self.values, "mean": self.mean, "se": self.se, "runs": self.runs})


@register_record
@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ExportedPolicy(ResultRecord):
    """A tuned policy in another library.

    Attributes
    ----------
    library : str
        The name of the library.
    code : str
        The Python code that makes the policy there.
    parameter : str
        The name of its parameter; empty if it has none.
    value : float
        The value of that parameter; NaN if it has none.
    is_same_rule : bool
        Whether the policy there follows the same rule.
    notes : str
        Sentences on what differs there, or needs attention.
    """

    library: str
    code: str
    parameter: str
    value: float
    is_same_rule: bool
    notes: str

    def __repr__(self) -> str:
        return f"{self.library}: {self.code}\n{self.notes}"


@register_record
@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Tuning(ResultRecord):
    """The result of tuning a policy.

    Regrets and the gain are estimated on fresh instances that the search did not see.

    Attributes
    ----------
    params : mapping of str to float
        The tuned parameters.
    regret : Estimate
        The regret of the tuned parameters.
    textbook_regret : Estimate
        The regret of the textbook policy with the textbook parameters.
    gain : Estimate
        The textbook regret minus the tuned regret, paired by instance.
    textbook_params : mapping of str to float
        The textbook parameters.
    search_runs : int
        The number of simulated runs of the search.
    budget : int
        The number of runs that the search could use.
    validation_runs : int
        The number of fresh instances.
    trials : tuple of TrialResult
        The trials of the search, in order.
    posterior : SearchPosterior or None
        The statements of the search about its answer, if its method makes them and the parameter has an effect.
    precision : float or None
        The precision that was requested.
    precision_reached : bool or None
        Whether it was reached; None if none was requested, or if the search has no posterior.
    notices : tuple of Notice
        Sentences about what may mislead.
    curves : tuple of Curve
        If they were requested: the regret curve of each parameter. The other parameters have their tuned values there.
    setup : StudySetup
        What is needed to repeat the result.
    lower_bound : LowerBound or None
        A lower bound on the regret of every policy, where it is known.
    distribution : RegretDistribution or None
        The distribution of the regrets of the fresh runs with the tuned parameters.
    textbook_distribution : RegretDistribution or None
        The same with the textbook policy.
    requested_validation_runs : int or None
        The number of fresh instances that was requested; None if it was left to `tune`.
    robustness : RobustnessReport or None
        The regret on other problems than the expected one, if it was requested.
    textbook_policy : mapping or None
        The textbook policy. It differs from the tuned policy only in noise and prior that come from the problem.
    searched_ranges : mapping of str to (float, float), or None
        Both ends of each range that was searched.
    importance : mapping of str to Estimate, or None
        With several parameters: the regret that is added if this parameter alone has its textbook value, paired by
        instance.
    """

    params: Mapping[str, float]
    regret: Estimate
    textbook_regret: Estimate
    gain: Estimate
    textbook_params: Mapping[str, float]
    search_runs: int
    budget: int
    validation_runs: int
    trials: tuple[TrialResult, ...]
    posterior: SearchPosterior | None
    precision: float | None
    precision_reached: bool | None
    notices: tuple[Notice, ...]
    curves: tuple[Curve, ...]
    setup: StudySetup
    lower_bound: LowerBound | None = None
    distribution: RegretDistribution | None = None
    textbook_distribution: RegretDistribution | None = None
    requested_validation_runs: int | None = None
    robustness: RobustnessReport | None = None
    textbook_policy: Mapping[str, Any] | None = None
    searched_ranges: Mapping[str, tuple[float, ...]] | None = None
    importance: Mapping[str, Estimate] | None = None

    def __post_init__(self) -> None:
        if not self.params or set(self.params) != set(self.textbook_params):
            received = f"{dict(self.params)} and {dict(self.textbook_params)}"
            raise InvalidRequest(
                f"a tuning must have the same parameters, tuned and of the textbook, but got {received}.",
                code="conflict",
            )

    @property
    def searched_parameters(self) -> tuple[str, ...]:
        """The names of the parameters that were searched; the others were fixed."""
        return tuple(name for name in self.params if name not in (self.setup.fixed or {}))

    @property
    def curve(self) -> Curve | None:
        """The regret curve of the first parameter, if it was requested."""
        return next(iter(self.curves), None)

    def find_curve(self, name: str) -> Curve | None:
        """Return the regret curve of a parameter, if it was requested.

        Parameters
        ----------
        name : str
            The name of the parameter.

        Returns
        -------
        Curve or None
            The curve.
        """
        return next((curve for curve in self.curves if curve.parameter == name), None)

    def export_params(self, library: str) -> ExportedPolicy:
        """Export the tuned parameter to another library; see `adapters.export_params`.

        Parameters
        ----------
        library : {"mabwiser", "river"}
            The other library.

        Returns
        -------
        ExportedPolicy
            The code that makes the policy there, its parameter, and what differs.

        Raises
        ------
        InvalidRequest
            If the library is another one or lacks the policy, or the policy is your own.
        """
        import banditune

        exported: ExportedPolicy = banditune.adapters.export_params(self, library)
        return exported

    def to_pandas(self) -> Any:
        """Return a pandas data frame with one row per trial and simulated row of parameters.

        Raises
        ------
        MissingDependency
            If pandas is not installed.
        """
        rows = [
            (number, *row, mean, se, runs)
            for number, trial in enumerate(self.trials)
            for row, mean, se, runs in zip(trial.rows, trial.mean, trial.se, trial.runs, strict=True)
        ]
        columns = ["trial", *self.searched_parameters, "mean", "se", "runs"]
        return make_data_frame(dict(zip(columns, zip(*rows, strict=True), strict=True)))

    def deploy(self, policy: Any = None, **options: Any) -> Any:
        """Deploy the tuned policy; see `deployment.deploy_result`.

        Parameters
        ----------
        policy : Policy, optional
            The policy that was tuned. It is needed if it is your own, unless the result names a file that still defines
            it.
        **options : object
            `names`, `features`, `seed` and `pending` of `deployment.deploy_result`.

        Returns
        -------
        DeployedPolicy
            The policy, ready for `select_arm()` and `update(arm, reward)`.

        Raises
        ------
        InvalidRequest
            If an argument cannot be used, or the policy cannot be deployed.
        """
        import banditune

        return banditune.deployment.deploy_result(self, policy, **options)
