"""What is needed to repeat a result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from banditune.contracts import BadRequest
from banditune.results.record import Record, kept


@kept
@dataclass(frozen=True, repr=False, eq=False)
class Setup(Record):
    """Everything that is needed to repeat a result; `command` is how it was asked for, where that named files.

    `from_problem` names the policy's options that were taken from the problem, each with words on how.
    `ranges` are the ends of ranges that were asked for, by the names of parameters; None: the usual ones.
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

    def __post_init__(self) -> None:
        for part in ("policy", "problem", "tuner"):
            made = getattr(self, part)
            if made is not None and "name" not in made:
                raise BadRequest(f"the {part} of a setup must have a name, but got {dict(made)!r:.60}.")
        check_sources(self.policy or {}, self.from_problem)

    @property
    def tuner_name(self) -> str:
        """The tuner's name, if there was one."""
        return str(self.tuner["name"]) if self.tuner else "none"

    def __repr__(self) -> str:
        name = self.policy["name"] if self.policy else "several policies"
        return f"{name} on {self.problem['name']}, horizon {self.horizon}, seed {self.seed}"


def check_sources(policy: Mapping[str, Any], from_problem: Mapping[str, str]) -> None:
    """What was taken from the problem must be an option of the policy."""
    unknown = set(from_problem) - set(policy)
    if unknown:
        raise BadRequest(
            f"`from_problem` must name options of the policy, {sorted(policy)}, but got {sorted(unknown)}."
        )
