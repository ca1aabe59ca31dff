"""The specification of a simulation: everything that decides the regrets of a run, except its number."""

from __future__ import annotations

from dataclasses import dataclass, replace

from banditune.core.checks import list_options_from_problem
from banditune.core.errors import InvalidRequest
from banditune.core.policy import FROM_PROBLEM, Policy
from banditune.core.problem import Problem

STREAM_VERSION = 1
"""Part of every key of a ledger: raised when the same seed draws other instances, rewards or agents' numbers."""


@dataclass(frozen=True)
class SimulationSpec:
    """Everything that decides the regrets of a run, except its number.

    `textbook` is the policy with the textbook's options, where it is another one; `sources` are pairs of an option that was
    taken from the problem and words on how. Neither changes a regret.
    """

    policy: Policy
    problem: Problem
    horizon: int
    seed: int = 0
    regret: str = "expected"
    noise: str = "shared"
    at: tuple[int, ...] = ()
    shortcut: bool = True
    device: str = "cpu"
    textbook: Policy | None = None
    sources: tuple[tuple[str, str], ...] = ()
    ranges: tuple[tuple[str, float, float], ...] = ()
    """Ranges to search that were asked for: names of parameters with both ends. No regret depends on them."""

    def __post_init__(self) -> None:
        check_options_resolved(self.policy)

    @property
    def baseline(self) -> SimulationSpec:
        """The same with the textbook's policy."""
        return self if self.textbook is None else replace(self, policy=self.textbook, textbook=None, sources=())


def check_options_resolved(policy: Policy) -> None:
    """Refuse a policy whose options wait for a problem, where there is none to take them from."""
    missing = list_options_from_problem(policy)
    if missing:
        example = ", ".join(f"{name}=..." for name in missing)
        raise InvalidRequest(
            f"`{missing[0]}` of {policy.name} must be given in numbers, because there is no problem here to take it from, "
            f"but it is {FROM_PROBLEM!r}; make the policy as {type(policy).__name__}({example}), or tune it on a problem first."
        )


def describe_spec(job: SimulationSpec) -> str:
    """A job's name in a complaint."""
    return f"the policy {job.policy.name!r} on the problem {job.problem.name!r}"
