"""Groups of command-line options. Each option is declared once, and a group is one argument of a command."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from inspect import Signature, signature
from typing import Any

from banditune.cli.options import (
    ArmsOption,
    CommonRandomNumbersOption,
    ConfidenceOption,
    CurveOption,
    DeviceOption,
    DimsOption,
    ExecutorOption,
    FeaturesOption,
    FixedOption,
    HorizonOption,
    JsonOption,
    LowerBoundOption,
    MaxRunsOption,
    MaxTimeOption,
    MeansOption,
    NamesOption,
    OptionalProblemOption,
    OutputOption,
    PlotOption,
    PrecisionOption,
    PriorOption,
    ProblemOption,
    QuietOption,
    RangesOption,
    RegretOption,
    RobustnessOption,
    ShortcutsOption,
    StoreOption,
    StrictOption,
    TimeLimitOption,
    TunerOption,
    ValidateOption,
    WorkersOption,
)
from banditune.cli.specs import parse_fixed, parse_problem, parse_problem_and_horizon, parse_ranges, parse_tuner
from banditune.core.request_errors import make_unused_error


class OptionGroup:
    """Base of the groups: a record whose fields are options."""


@dataclass(frozen=True, kw_only=True)
class ProblemOptions(OptionGroup):
    """The problem and the horizon."""

    problem: ProblemOption
    horizon: HorizonOption = None
    arms: ArmsOption = None
    dims: DimsOption = None
    features: FeaturesOption = None
    prior: PriorOption = None
    means: MeansOption = None
    names: NamesOption = None

    def parse(self) -> tuple[Any, int]:
        """Return the problem and the horizon."""
        options = {name: value for name, value in vars(self).items() if name not in ("problem", "horizon")}
        return parse_problem_and_horizon(self.problem, self.horizon, **options)


@dataclass(frozen=True, kw_only=True)
class OptionalProblemOptions(ProblemOptions):
    """A problem that a result may determine."""

    problem: OptionalProblemOption = None  # type: ignore[assignment]

    def parse_given(self) -> Any:
        """Return the problem; None if none is given."""
        options = {name: value for name, value in vars(self).items() if name not in ("problem", "horizon")}
        if self.problem is not None:
            return parse_problem(self.problem, **options)
        unused = next((name for name, value in options.items() if value is not None), None)
        if unused:
            raise make_unused_error(unused, options[unused], "because there is no --problem")
        return None


@dataclass(frozen=True, kw_only=True)
class SearchOptions(OptionGroup):
    """Settings of the search."""

    tuner: TunerOption = None
    validate: ValidateOption = None
    ranges: RangesOption = None
    fixed: FixedOption = None

    def parse(self, limits: LimitOptions | None = None) -> Any:
        """Return the settings of a search."""
        from banditune.study.settings import Search

        bounds = {} if limits is None else {name: value for name, value in vars(limits).items() if name != "precision"}
        return Search(
            tuner=None if self.tuner is None else parse_tuner(self.tuner),
            validate=self.validate,
            ranges=parse_ranges(self.ranges),
            fixed=parse_fixed(self.fixed),
            **bounds,
        )


@dataclass(frozen=True, kw_only=True)
class LimitOptions(OptionGroup):
    """Limits of a search, besides its budget."""

    precision: PrecisionOption = None
    confidence: ConfidenceOption = 0.95
    max_runs: MaxRunsOption = None
    max_time: MaxTimeOption = None


@dataclass(frozen=True, kw_only=True)
class SimulationOptions(OptionGroup):
    """Settings of the simulation that change numbers."""

    regret: RegretOption = "expected"
    common_random_numbers: CommonRandomNumbersOption = True
    shortcuts: ShortcutsOption = True

    def parse(self) -> Any:
        """Return the settings of a simulation."""
        from banditune.study.settings import Simulation

        return Simulation(**vars(self))


@dataclass(frozen=True, kw_only=True)
class RunOptions(OptionGroup):
    """Settings of the execution."""

    workers: WorkersOption = None
    executor: ExecutorOption = "threads"
    time_limit: TimeLimitOption = None
    device: DeviceOption = "cpu"
    store: StoreOption = None

    def parse(self, progress: Any) -> Any:
        """Return the settings of a run that reports to a progress bar."""
        from banditune.study.settings import Run

        return Run(**vars(self), progress=progress, announce=progress.announce)


@dataclass(frozen=True, kw_only=True)
class IncludeOptions(OptionGroup):
    """Choices for what a tuning computes besides its answer."""

    curve: CurveOption = False
    lower_bound: LowerBoundOption = None
    robustness: RobustnessOption = False

    def parse(self, *, draws: bool = False) -> tuple[Any, ...]:
        """Return the words for `include`; a figure needs the curve."""
        included = ["curve"] if self.curve or draws else []
        included += ["robustness"] if self.robustness else []
        return (*included, *parse_lower_bound(self.lower_bound))


@dataclass(frozen=True, kw_only=True)
class OutputOptions(OptionGroup):
    """Options for printing and saving the result."""

    json: JsonOption = False
    output: OutputOption = None
    plot: PlotOption = None
    quiet: QuietOption = False
    strict: StrictOption = False

    def select_printing(self) -> dict[str, Any]:
        """Return the arguments for `run_and_print`."""
        return {name: value for name, value in vars(self).items() if name != "strict"}


def parse_lower_bound(requested: bool | None) -> tuple[Any, ...]:
    """Return the words for `include` of --lower-bound or --no-lower-bound."""
    return () if requested is None else ("lower_bound",) if requested else ("no_lower_bound",)


def expand_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Make a command in which groups of options become single options."""
    parameters = signature(command, eval_str=True).parameters
    groups = {
        name: parameter.annotation
        for name, parameter in parameters.items()
        if isinstance(parameter.annotation, type) and issubclass(parameter.annotation, OptionGroup)
    }
    options = {name: signature(group, eval_str=True).parameters for name, group in groups.items()}

    @wraps(command)
    def call_with_groups(**values: Any) -> None:
        built = {name: group(**{key: values.pop(key) for key in options[name]}) for name, group in groups.items()}
        command(**built, **values)

    flat = [
        option
        for name, parameter in parameters.items()
        for option in (options[name].values() if name in groups else [parameter])
    ]
    # Typer reads both attributes.
    call_with_groups.__signature__ = Signature(  # type: ignore[attr-defined]
        [option.replace(kind=option.KEYWORD_ONLY) for option in flat]
    )
    call_with_groups.__annotations__ = {option.name: option.annotation for option in flat}
    return call_with_groups
