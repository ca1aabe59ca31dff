"""The specification of a simulation. Together with its number, it determines the regrets of a run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from banditune.core.checks import list_options_from_problem
from banditune.core.errors import InvalidRequest
from banditune.core.policy import FROM_PROBLEM, Policy
from banditune.core.problem import Problem

STREAM_VERSION = 1
"""A part of every key of a store. It is increased when the same seed gives other instances, rewards or policy numbers."""


@dataclass(frozen=True)
class SimulationSpec:
    """The specification of a simulation. Together with its number, it determines the regrets of a run.

    `textbook_policy` is the policy with its textbook options, if these differ. `option_sources` are pairs of an option
    that was taken from the problem, and a description of how. `ranges` are the requested search ranges: names of
    parameters with both ends. None of these three changes a regret.
    """

    policy: Policy
    problem: Problem
    horizon: int
    seed: int = 0
    regret: str = "expected"
    common_random_numbers: bool = True
    checkpoints: tuple[int, ...] = ()
    use_shortcut: bool = True
    device: str = "cpu"
    textbook_policy: Policy | None = None
    option_sources: tuple[tuple[str, str], ...] = ()
    ranges: tuple[tuple[str, float, float], ...] = ()
    fixed: tuple[tuple[str, float], ...] = ()

    def complete_rows(self, params: Any) -> Any:
        """Fill in the fixed parameters if rows hold only the searched ones."""
        if not self.fixed:
            return params
        rows = np.asarray(params, np.float64)
        names = [parameter.name for parameter in self.policy.parameters]
        if rows.shape[1] == len(names):
            return rows
        fixed, searched = dict(self.fixed), iter(rows.T)
        return np.stack(
            [np.full(len(rows), fixed[name]) if name in fixed else next(searched) for name in names], axis=1
        )

    def __post_init__(self) -> None:
        check_options_resolved(self.policy)

    @property
    def textbook_spec(self) -> SimulationSpec:
        """The same spec with the textbook policy."""
        return (
            self
            if self.textbook_policy is None
            else replace(self, policy=self.textbook_policy, textbook_policy=None, option_sources=())
        )


def check_options_resolved(policy: Policy) -> None:
    """Raise `InvalidRequest` if options of a policy must be taken from a problem, because there is none."""
    missing = list_options_from_problem(policy)
    if missing:
        example = ", ".join(f"{name}=..." for name in missing)
        raise InvalidRequest(
            f"`{missing[0]}` of {policy.name} must be given in numbers, because there is no problem here to take it from, "
            f"but it is {FROM_PROBLEM!r}; make the policy as {type(policy).__name__}({example}), or tune it on a "
            "problem first.",
            argument=missing[0],
            code="missing",
        )


def describe_spec(spec: SimulationSpec) -> str:
    """Name a spec in an error message."""
    return f"the policy {spec.policy.name!r} on the problem {spec.problem.name!r}"
