"""Plans regret over time: which policies are simulated, with which parameters, and on which instances."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.descriptions import make_label
from banditune.core.errors import InvalidRequest
from banditune.core.messages import Wording
from banditune.core.policy import Policy
from banditune.core.problem import Problem
from banditune.core.request_errors import make_argument_error, make_type_error
from banditune.registry import collect_policies
from banditune.results.comparison_results import Comparison, ComparisonEntry
from banditune.results.study_setup import StudySetup
from banditune.results.tuning_results import Tuning
from banditune.simulation.spec import SimulationSpec
from banditune.study.parameter_values import make_parameter_rows, make_textbook_row, name_params
from banditune.study.policy_names import number_duplicates
from banditune.study.requests import build_spec, check_count, make_study_setup
from banditune.study.restoration import load_own_policy, restore_policy
from banditune.study.search import FIRST_VALIDATION_INSTANCE
from banditune.study.settings import Run, Simulation
from banditune.study.validation import PILOT_RUNS

PASS_POLICIES = Wording(
    "regret_over_time([policy, ...], problem, [params, ...], horizon=...)",
    "banditune regret-over-time --policy FILE.py:NAME --values A,B",
)
"""How policies are simulated that a result does not hold."""


@dataclass(frozen=True, kw_only=True)
class PlannedRow:
    """A row of parameters that is simulated with a spec. Rows of one policy stand together and share their spec."""

    label: str
    policy: str
    spec: SimulationSpec
    params: FloatArray
    is_textbook: bool


@dataclass(frozen=True, kw_only=True)
class OverTimePlan:
    """The rows that are simulated on the same instances, and the number of the row with which others are compared."""

    rows: tuple[PlannedRow, ...]
    runs: range
    reference: int
    setup: StudySetup


def plan_policies(policies: Any, problem: Any, params: Any, runs: Any, settings: Mapping[str, Any]) -> OverTimePlan:
    """Plan the simulation of policies that are given, with their parameters. `settings` are those of a spec."""
    several = isinstance(policies, Sequence)
    records = list(policies) if several else [policies]
    if not records:
        raise make_type_error("policies", "a policy, a sequence of policies, a tuning or a comparison", policies)
    specs = [build_spec(policy, problem, **settings) for policy in records]
    sources = [[name for name, _ in spec.option_sources] for spec in specs]
    names = number_duplicates(
        [make_label(spec.policy, hidden=hidden) for spec, hidden in zip(specs, sources, strict=True)]
    )
    values = assign_values(params, len(specs)) if several else [params]
    rows = [
        row
        for spec, name, value in zip(specs, names, values, strict=True)
        for row in plan_values(spec, name, value, several=several)
    ]
    labels = number_duplicates([row.label for row in rows])
    first = FIRST_VALIDATION_INSTANCE
    return OverTimePlan(
        rows=tuple(replace(row, label=label) for row, label in zip(rows, labels, strict=True)),
        runs=range(first, first + check_count("runs", runs, 2)),
        reference=0,
        setup=make_study_setup(specs[0], several=len(specs) > 1),
    )


def assign_values(params: Any, count: int) -> Sequence[Any]:
    """Assign parameter values to each of several policies; None stands for the textbook values."""
    if params is None:
        return [None] * count
    if isinstance(params, str | Mapping) or not isinstance(params, Sequence) or len(params) != count:
        text = f"must have one element for each of {count} policies, but got {params!r:.80}."
        raise make_argument_error("params", "wrong-shape", text)
    return params


def plan_values(spec: SimulationSpec, name: str, values: Any, *, several: bool) -> Iterator[PlannedRow]:
    """Plan the rows of one policy. Its name is part of their labels if there are several policies."""
    textbook = make_textbook_row(spec)
    for row in make_parameter_rows(spec, values):
        params = "" if values is None else describe_row(spec, row)
        yield PlannedRow(
            label=", ".join(filter(None, [name if several or not params else "", params])),
            policy=name,
            spec=spec,
            params=row,
            is_textbook=spec.textbook_policy is None and np.array_equal(row, textbook),
        )


def describe_row(spec: SimulationSpec, row: FloatArray) -> str:
    """Describe a row of parameters as gamma = 0.2; empty if the policy has none."""
    return ", ".join(f"{name} = {value:.4g}" for name, value in name_params(spec, row).items())


def plan_result(result: Tuning | Comparison, problem: Problem, runs: Any, checkpoints: Any, run: Run) -> OverTimePlan:
    """Plan the simulation of the policies of a result, tuned and textbook, on the instances of its validation."""
    setup, first, own_policy, reference = result.setup, FIRST_VALIDATION_INSTANCE, None, 0
    simulation = Simulation(
        regret=setup.regret_kind,  # type: ignore[arg-type]
        common_random_numbers=setup.common_random_numbers,
        shortcuts=setup.shortcut,
    )
    if isinstance(result, Tuning):
        assert setup.policy is not None
        own_policy = None if setup.policy_source is None else load_own_policy(setup.policy_source)
        candidates: list[tuple[str, Mapping[str, Any], Tuning | ComparisonEntry]] = [
            (str(setup.policy["name"]), setup.policy, result)
        ]
        first += PILOT_RUNS if result.requested_validation_runs is None else 0
    else:
        candidates = [(entry.policy, entry.policy_config, entry) for entry in result.entries]
        reference = int(result.entries[0].is_worse_than_textbook)

    def restore_spec(config: Mapping[str, Any]) -> SimulationSpec:
        policy = restore_simulated_policy(config, own_policy)
        settings = {"horizon": setup.horizon, "seed": setup.seed, "checkpoints": checkpoints}
        return build_spec(policy, problem, **settings, simulation=simulation, run=run)

    rows: list[PlannedRow] = []
    for name, config, entry in candidates:
        baseline = entry.textbook_policy or config
        spec = restore_spec(config)
        rows += plan_tuned_and_textbook(name, entry, spec, spec if baseline == config else restore_spec(baseline))
    return OverTimePlan(
        rows=tuple(rows),
        runs=range(first, first + check_count("runs", result.validation_runs if runs is None else runs, 2)),
        reference=reference,
        setup=replace(make_study_setup(rows[0].spec, several=len(candidates) > 1), from_problem=setup.from_problem),
    )


def restore_simulated_policy(config: Mapping[str, Any], own_policy: Policy | None) -> Policy:
    """Restore a policy of a result. An object of another library must be passed again."""
    if "select_method" in config:  # a policy made by `bt.wrap_policy`
        raise InvalidRequest(
            "a policy of this package must be simulated from a result, but {!r:.60} is an object of another library: {}.",
            *(config["name"], PASS_POLICIES),
            argument="policies",
            code="unsupported",
        )
    registry = collect_policies().without_plugins()
    return restore_policy(config, own_policy, registry, of="of the result", call=PASS_POLICIES)


def plan_tuned_and_textbook(
    name: str, entry: Tuning | ComparisonEntry, spec: SimulationSpec, textbook_spec: SimulationSpec
) -> Iterator[PlannedRow]:
    """Plan the tuned and the textbook row of a policy; one row if they are the same policy of a comparison."""
    tuned, textbook = (
        make_parameter_rows(one, dict(params) if params else None)[0]
        for one, params in ((spec, entry.params), (textbook_spec, entry.textbook_params))
    )
    is_same = spec is textbook_spec and np.array_equal(tuned, textbook)
    labels = ("tuned", "textbook")
    if isinstance(entry, ComparisonEntry):
        labels = (f"tuned {name}" if entry.is_tuned else name, f"textbook {name}")
    yield PlannedRow(label=labels[0], policy=name, spec=spec, params=tuned, is_textbook=is_same)
    if not is_same or isinstance(entry, Tuning):
        yield PlannedRow(label=labels[1], policy=name, spec=textbook_spec, params=textbook, is_textbook=True)
