"""The settings that are needed to repeat a result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from banditune.core.errors import InvalidRequest
from banditune.results.result_record import ResultRecord, register_record


@register_record
@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class DataScope(ResultRecord):
    """The data set that a problem is made of, and how it was split.

    Attributes
    ----------
    unit : str
        One unit of the data set: a "table", a "campaign" or a "mean vector".
    count : int
        The number of units.
    searched_count : int
        The number of units that the search used; 0 where nothing was held out.
    held_out_count : int
        The number of other units, on which the answer was validated; 0 where nothing was held out.
    description : str
        The population that the numbers are about, in words.
    """

    unit: str
    count: int
    searched_count: int
    held_out_count: int
    description: str

    def __repr__(self) -> str:
        return self.description


@register_record
@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class StudySetup(ResultRecord):
    """Everything that is needed to repeat a result.

    Attributes
    ----------
    policy : mapping or None
        The name and the options of the policy; None where there are several or none.
    problem : mapping
        The name and the options of the problem.
    horizon : int
        Steps in a run.
    seed : int
        The seed.
    regret_kind : {"expected", "realised"}
        Whether regret compares mean rewards or the rewards that were drawn.
    common_random_numbers : bool
        Whether all parameter values had the same reward noise on an instance.
    shortcut : bool
        Whether faster exact algorithms could replace the step-by-step loop.
    versions : mapping of str to str
        The versions of this package and of those that it depends on.
    tuner : mapping or None
        The name and the options of the search method, if there was one.
    device : {"cpu", "gpu"}
        Where the simulation ran.
    command : str or None
        The command line, if it named files whose content is not in the result.
    from_problem : mapping of str to str
        The options of the policy that were taken from the problem, each with a description of how.
    ranges : mapping of str to (float, float), or None
        The ranges that were requested, by parameter; None for the usual ones.
    data_scope : DataScope or None
        The data set that the problem is made of, if it is made of one.
    fixed : mapping of str to float, or None
        The values of parameters that were not searched.
    policy_source : str or None
        The file and the name of a policy of your own, as "PATH.py:NAME", if they are known.
    compared_with : str or None
        The comparison for regret, if it is not the best arm at each step.
    """

    policy: Mapping[str, Any] | None
    problem: Mapping[str, Any]
    horizon: int
    seed: int
    regret_kind: str
    common_random_numbers: bool
    shortcut: bool
    versions: Mapping[str, str]
    tuner: Mapping[str, Any] | None = None
    device: str = "cpu"
    command: str | None = None
    from_problem: Mapping[str, str] = field(default_factory=dict)
    ranges: Mapping[str, tuple[float, ...]] | None = None
    data_scope: DataScope | None = None
    fixed: Mapping[str, float] | None = None
    policy_source: str | None = None
    compared_with: str | None = None

    def __post_init__(self) -> None:
        for role in ("policy", "problem", "tuner"):
            config = getattr(self, role)
            if config is not None and "name" not in config:
                raise InvalidRequest(
                    f"the {role} of a setup must have a name, but got {dict(config)!r:.60}.", code="bad-data"
                )
        check_option_sources(self.policy or {}, self.from_problem)

    @property
    def held_out_data(self) -> DataScope | None:
        """The data set, if some of it was held out; else None."""
        return self.data_scope if self.data_scope and self.data_scope.held_out_count else None

    @property
    def tuner_name(self) -> str:
        """The name of the search method; "none" where there was none."""
        return str(self.tuner["name"]) if self.tuner else "each policy's default tuner"

    def __repr__(self) -> str:
        name = self.policy["name"] if self.policy else "several policies"
        return f"{name} on {self.problem['name']}, horizon {self.horizon}, seed {self.seed}"


def check_option_sources(policy: Mapping[str, Any], from_problem: Mapping[str, str]) -> None:
    """Check that everything taken from the problem is an option of the policy."""
    unknown = set(from_problem) - set(policy)
    if unknown:
        raise InvalidRequest(
            f"`from_problem` must name options of the policy, {sorted(policy)}, but got {sorted(unknown)}.",
            argument="from_problem",
            code="unknown-name",
        )
