"""Settings that requests share: of the search, of the simulation, and of its execution."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from banditune.core.checks import check_choice, check_integer, check_type
from banditune.core.errors import InvalidRequest
from banditune.core.messages import Argument
from banditune.core.request_errors import make_unused_error
from banditune.core.tuner import Tuner
from banditune.simulation.instances import SEARCH_INSTANCE_LIMIT

Include = Literal["curve", "lower_bound", "no_lower_bound", "robustness"]
"""The choices for what a tuning computes besides its answer."""


@dataclass(frozen=True, kw_only=True)
class Search:
    """Settings of the search for the best parameter value.

    Parameters
    ----------
    tuner : Tuner, optional
        The search method. By default `TwoPart()` searches one parameter, and `CMAES()` several.
    ranges : mapping of str to (float, float), optional
        Ranges that are searched instead of the policy's usual ones, such as `{"gamma": (0, 3)}`.
    fixed : mapping of str to float, optional
        Values of parameters that are not searched. All others are searched together.
    confidence : float
        The probability with which the precision must be reached, from 0.5 to 0.99.
    max_runs : int, optional
        The largest number of runs of a search for a precision; 100,000 by default.
    max_time : float, optional
        The number of seconds after which the search ends.
    validate : int, optional
        Fresh instances on which the answer is validated. By default `tune` uses as many as an error of the gain of a few
        percent needs; `compare`, `robustness` and `backtest` use 1,000.
    """

    tuner: Tuner | None = None
    ranges: Mapping[str, Sequence[float]] | None = None
    fixed: Mapping[str, float] | None = None
    confidence: float = 0.95
    max_runs: int | None = None
    max_time: float | None = None
    validate: int | None = None

    def __post_init__(self) -> None:
        if self.validate is not None:
            object.__setattr__(self, "validate", check_integer("validate", self.validate, 2, SEARCH_INSTANCE_LIMIT - 1))


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """Settings of the simulation that change numbers.

    Parameters
    ----------
    regret : {"expected", "realised"}
        Whether regret compares mean rewards or the rewards that were drawn.
    common_random_numbers : bool
        Whether all parameter values have the same reward noise on an instance. This makes differences between values more
        precise.
    shortcuts : bool
        Whether exact, faster algorithms replace the step-by-step loop where they apply.
    """

    regret: Literal["expected", "realised"] = "expected"
    common_random_numbers: bool = True
    shortcuts: bool = True

    def __post_init__(self) -> None:
        check_choice("regret", self.regret, ("expected", "realised"))
        for name in ("common_random_numbers", "shortcuts"):
            check_type(name, getattr(self, name), bool, "True or False")


@dataclass(frozen=True, kw_only=True)
class Run:
    """Settings of the execution. They do not change numbers.

    Parameters
    ----------
    workers : int, optional
        The number of threads or processes; all cores by default.
    device : {"cpu", "gpu", "auto"}
        "auto" uses a GPU if there is one. Numbers of a GPU agree with those of the CPU except for rounding.
    executor : str or object
        "threads", "processes", "dask://host:8786", "ray://host:10001", a Dask client, or your own executor.
    time_limit : float, optional
        The longest time of one chunk of the work, in seconds. With a limit, chunks run in child processes, which are ended
        if they exceed it.
    store : str or Path, optional
        A file to which every regret is written, rounded to float32. Regrets in it are not simulated again, so that an
        interrupted request can be continued.
    progress : callable, optional
        Called with (runs done, runs in all) during the work.
    announce : callable, optional
        Called before a long task starts, with a line on its estimated time.
    """

    workers: int | None = None
    device: Literal["cpu", "gpu", "auto"] = "cpu"
    executor: Any = "threads"
    time_limit: float | None = None
    store: str | Path | None = None
    progress: Callable[[int, int], None] | None = None
    announce: Callable[[str], None] | None = None


SEARCH, SIMULATION, RUN = Search(), Simulation(), Run()
"""Default settings."""


def check_settings(**settings: Any) -> None:
    """Check the types of settings."""
    kinds = {"search": Search, "simulation": Simulation, "run": Run}
    for name, value in settings.items():
        check_type(name, value, kinds[name], f"a record such as {kinds[name].__name__}()")


def check_unused(verb: str, settings: Search | Run, *names: str) -> None:
    """Reject settings that the function `verb` does not use."""
    for name in names:
        value = getattr(settings, name)
        if value != getattr(type(settings)(), name):
            why = f"because {verb}() does not use it"
            raise make_unused_error(name, value, why, of=f" of {type(settings).__name__}")


def check_include(include: Any, allowed: Sequence[str]) -> frozenset[str]:
    """Check the requested parts of a result besides its answer, and return them as a set of words."""
    requested = {include} if isinstance(include, str) else set(include)
    unknown = sorted(map(str, requested - set(allowed)))
    if unknown:
        allowed_words = ", ".join(map(repr, allowed))
        raise InvalidRequest(
            "{} must be a collection of {}, but got {!r}.",
            *(Argument("include"), allowed_words, unknown[0]),
            argument="include",
            code="unknown-name",
        )
    return frozenset(requested)


def resolve_lower_bound_choice(include: frozenset[str]) -> bool | None:
    """Return True for a lower bound in any case, False for none, None for one that takes seconds only."""
    return True if "lower_bound" in include else False if "no_lower_bound" in include else None
