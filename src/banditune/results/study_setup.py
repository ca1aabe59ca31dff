"""What is needed to repeat a result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from banditune.core.errors import InvalidRequest
from banditune.results.result_record import ResultRecord, register_record


@register_record
@dataclass(frozen=True, repr=False, eq=False)
class DataScope(ResultRecord):
    """The data set that a problem is made of: `count` units, each a "table", a "campaign" or a "mean vector".

    The search played `searched` of them, and `held_out` others judged its answer; both are 0 where nothing was held out.
    `about` says what the numbers are about.
    """

    unit: str
    count: int
    searched: int
    held_out: int
    about: str

    def __repr__(self) -> str:
        return self.about


@register_record
@dataclass(frozen=True, repr=False, eq=False)
class StudySetup(ResultRecord):
    """Everything that is needed to repeat a result; `command` is how it was asked for, where that named files.

    `describe_problem_options` names the policy's options that were taken from the problem, each with words on how.
    `ranges` are the ends of ranges that were asked for, by the names of parameters; None: the usual ones.
    `sample` says what the numbers are about where the problem is made of a data set.
    `compared_with` says what regret compares with, where it is not the best arm at each step.
    """

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
    from_problem: Mapping[str, str] = field(default_factory=dict)
    ranges: Mapping[str, tuple[float, ...]] | None = None
    sample: DataScope | None = None
    compared_with: str | None = None

    def __post_init__(self) -> None:
        for part in ("policy", "problem", "tuner"):
            made = getattr(self, part)
            if made is not None and "name" not in made:
                raise InvalidRequest(f"the {part} of a setup must have a name, but got {dict(made)!r:.60}.")
        check_option_sources(self.policy or {}, self.from_problem)

    @property
    def held_out(self) -> DataScope | None:
        """The data set, if some of it was held out."""
        return self.sample if self.sample and self.sample.held_out else None

    @property
    def tuner_name(self) -> str:
        """The tuner's name, if there was one."""
        return str(self.tuner["name"]) if self.tuner else "none"

    def __repr__(self) -> str:
        name = self.policy["name"] if self.policy else "several policies"
        return f"{name} on {self.problem['name']}, horizon {self.horizon}, seed {self.seed}"


def check_option_sources(policy: Mapping[str, Any], from_problem: Mapping[str, str]) -> None:
    """What was taken from the problem must be an option of the policy."""
    unknown = set(from_problem) - set(policy)
    if unknown:
        raise InvalidRequest(
            f"`from_problem` must name options of the policy, {sorted(policy)}, but got {sorted(unknown)}."
        )
