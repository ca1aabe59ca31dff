"""The regret of policies over the steps of their runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from banditune.core.arrays import FloatArray
from banditune.core.errors import InvalidRequest
from banditune.core.notice import Notice
from banditune.core.request_errors import make_name_error
from banditune.results.estimates import Estimate
from banditune.results.result_record import ResultRecord, freeze_floats, make_data_frame, register_record
from banditune.results.study_setup import StudySetup

EVEN_STEPS, STEPS_PER_DECADE = 40, 10
"""Default steps: this many at even distances, and this many for each factor of ten, for a logarithmic axis."""


def choose_steps(horizon: int) -> tuple[int, ...]:
    """Choose steps that show the regret on even and on logarithmic axes, with 1, 2, 5, 10, 20, 50 among them."""
    even = {round(horizon * number / EVEN_STEPS) for number in range(1, EVEN_STEPS + 1)}
    decades = len(str(horizon))
    round_steps = {digit * 10**power for power in range(decades) for digit in (1, 2, 5)}
    dense = {round(10 ** (number / STEPS_PER_DECADE)) for number in range(STEPS_PER_DECADE * decades)}
    return tuple(sorted(step for step in {*even, *round_steps, *dense, horizon} if 1 <= step <= horizon))


@register_record
@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class StepEstimates(ResultRecord):
    """Means after several steps, with standard errors and 95% intervals. Each interval holds for its step alone.

    Attributes
    ----------
    mean : array of float
        The mean after each step.
    se : array of float
        The standard error of each mean.
    low : array of float
        The lower end of each interval.
    high : array of float
        The upper end of each interval.
    """

    mean: FloatArray
    se: FloatArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def from_estimates(cls, estimates: list[Estimate]) -> StepEstimates:
        """Collect one estimate for each step.

        Parameters
        ----------
        estimates : list of Estimate
            The estimates, in the order of the steps.
        """
        names = ("mean", "se", "low", "high")
        return cls(**{name: freeze_floats([getattr(estimate, name) for estimate in estimates]) for name in names})

    def list_rows(self) -> list[tuple[float, float, float, float]]:
        """Return mean, standard error and both ends of the interval of each step."""
        return list(zip(*(part.tolist() for part in (self.mean, self.se, self.low, self.high)), strict=True))

    def __repr__(self) -> str:
        return f"{len(self.mean)} means, the last one {self.mean[-1]:.4g} +- {self.se[-1]:.2g}"


@register_record
@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class RegretSeries(ResultRecord):
    """The regret of one policy with one row of parameters, over the steps of its runs.

    Attributes
    ----------
    label : str
        The name of the series.
    policy : str
        The name of the policy. Series of one policy have the same colour in a figure.
    policy_config : mapping
        The name and the options of the policy.
    params : mapping of str to float
        The parameters; empty if the policy has none.
    is_textbook : bool
        Whether policy and parameters are those of the textbook.
    regret : StepEstimates
        The regret from the first step to each step.
    difference_to_reference : StepEstimates
        The regret minus that of the reference series, paired by instance.
    """

    label: str
    policy: str
    policy_config: Mapping[str, Any]
    params: Mapping[str, float]
    is_textbook: bool
    regret: StepEstimates
    difference_to_reference: StepEstimates

    def __repr__(self) -> str:
        return f"{self.label}: {self.regret!r}"


@register_record
@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class RegretOverTime(ResultRecord):
    """Bayes regret over the steps of runs, for several policies or parameters on the same instances.

    Attributes
    ----------
    series : tuple of RegretSeries
        The policies with their parameters.
    steps : tuple of int
        The steps after which the regret is known, in order.
    reference : str
        The label of the series with which the others are compared.
    runs : int
        The number of runs of each series.
    first_instance : int
        The number of the first instance. `simulate` with this number, `steps` as its `checkpoints` and the same settings
        gives the regret of every run.
    unit : str
        What is independent: a "run", or the table or campaign that several runs share.
    unit_count : int
        The number of independent values behind each mean.
    setup : StudySetup
        What is needed to repeat the result.
    notices : tuple of Notice
        Sentences about what may mislead.
    """

    series: tuple[RegretSeries, ...]
    steps: tuple[int, ...]
    reference: str
    runs: int
    first_instance: int
    unit: str
    unit_count: int
    setup: StudySetup
    notices: tuple[Notice, ...] = ()

    def __post_init__(self) -> None:
        labels = [series.label for series in self.series]
        sizes = {len(part.mean) for series in self.series for part in (series.regret, series.difference_to_reference)}
        if not labels or len(set(labels)) < len(labels) or sizes != {len(self.steps)}:
            raise InvalidRequest(
                f"regret over time must have series with distinct labels and a mean for each of {len(self.steps)} steps, "
                f"but got {labels} with {sorted(sizes)} means.",
                code="bad-data",
            )

    def __getitem__(self, label: str) -> RegretSeries:
        for series in self.series:
            if series.label == label:
                return series
        raise make_name_error("the label", [series.label for series in self.series], label, argument="label")

    @property
    def policies(self) -> tuple[str, ...]:
        """The names of the policies, each once."""
        return tuple(dict.fromkeys(series.policy for series in self.series))

    def select(self, *labels: str) -> RegretOverTime:
        """Return the result with some of its series, in this order. The reference stays the same, also if it is left out.

        Parameters
        ----------
        *labels : str
            The labels of the series.

        Returns
        -------
        RegretOverTime
            The result with these series.

        Raises
        ------
        InvalidRequest
            If there is no series with a label.
        """
        return replace(self, series=tuple(self[label] for label in labels))

    def get_regret(self, label: str, step: int | None = None) -> Estimate:
        """Return the regret of a series up to a step.

        Parameters
        ----------
        label : str
            The label of the series.
        step : int, optional
            One of `steps`; the last one by default.

        Returns
        -------
        Estimate
            The regret.

        Raises
        ------
        InvalidRequest
            If there is no such series or step.
        """
        return self._get_estimate(self[label].regret, step)

    def get_difference(self, label: str, step: int | None = None) -> Estimate:
        """Return the regret of a series up to a step minus that of the reference, paired by instance.

        Parameters
        ----------
        label : str
            The label of the series.
        step : int, optional
            One of `steps`; the last one by default.

        Returns
        -------
        Estimate
            The difference.

        Raises
        ------
        InvalidRequest
            If there is no such series or step.
        """
        return self._get_estimate(self[label].difference_to_reference, step)

    def _get_estimate(self, estimates: StepEstimates, step: int | None) -> Estimate:
        if step is not None and step not in self.steps:
            raise make_name_error("the step", map(str, self.steps), str(step), argument="step")
        index = -1 if step is None else self.steps.index(step)
        numbers = {name: float(getattr(estimates, name)[index]) for name in ("mean", "se", "low", "high")}
        return Estimate(**numbers, runs=self.unit_count, unit=self.unit)

    def to_pandas(self) -> Any:
        """Return a pandas data frame with one row per series and step.

        Raises
        ------
        MissingDependency
            If pandas is not installed.
        """
        rows = [
            (series.label, series.policy, step, *regret, *difference)
            for series in self.series
            for step, regret, difference in zip(
                self.steps, series.regret.list_rows(), series.difference_to_reference.list_rows(), strict=True
            )
        ]
        columns = ["label", "policy", "step", "regret", "se", "low", "high", "difference", "difference_se"]
        columns += ["difference_low", "difference_high"]
        return make_data_frame(dict(zip(columns, zip(*rows, strict=True), strict=True)))
