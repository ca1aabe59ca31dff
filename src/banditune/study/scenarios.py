"""Chooses the scenarios of a robustness check: changed problems and other horizons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from banditune.core.errors import InvalidRequest
from banditune.core.messages import Argument, Message
from banditune.core.notice import Notice
from banditune.core.problem import Problem
from banditune.core.request_errors import make_argument_error
from banditune.core.scalar import is_package_code
from banditune.core.tuner import Tuner
from banditune.problems.problem_variants import list_variants
from banditune.simulation.spec import SimulationSpec
from banditune.study.parameter_values import resolve_only_range, resolve_space
from banditune.study.requests import build_spec
from banditune.study.search import check_search
from banditune.study.settings import Run, Search, Simulation

OTHER_HORIZONS = ((1 / 3, "a third of the horizon"), (3, "three times the horizon"))


def change_spec(spec: SimulationSpec, problem: Problem, horizon: int) -> SimulationSpec:
    """Make the spec with another problem and horizon, and check it.

    The policy keeps the noise and the prior of the expected problem, because in practice the other problem is not expected.
    """
    changed = build_spec(
        spec.policy,
        problem,
        horizon=horizon,
        seed=spec.seed,
        search=Search(ranges={name: (low, high) for name, low, high in spec.ranges}, fixed=dict(spec.fixed)),
        simulation=Simulation(
            regret=cast(Any, spec.regret), common_random_numbers=spec.common_random_numbers, shortcuts=spec.use_shortcut
        ),
        run=Run(device=cast(Any, spec.device)),
    )
    return replace(changed, textbook_policy=spec.textbook_policy)


def list_scenario_specs(
    spec: SimulationSpec, others: Sequence[tuple[str, Problem]] | None = None
) -> tuple[list[tuple[str, SimulationSpec]], tuple[Notice, ...]]:
    """List the expected spec, those with other problems, and those with other horizons, each with a description.

    Variants that the policy does not support are left out, with a notice. A problem in `others` must be supported.
    """
    variants: Any = list_problem_variants(spec.problem) if others is None else others
    pairs = isinstance(variants, list | tuple) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in variants)
    if not pairs or not all(isinstance(problem, Problem) for _, problem in variants):
        raise make_argument_error(
            "others", "wrong-type", f"must be a list of pairs (description, problem), but got {others!r}."
        )
    horizons = [(description, max(1, round(spec.horizon * factor))) for factor, description in OTHER_HORIZONS]
    changed = [
        *((str(description), problem, spec.horizon) for description, problem in variants),
        *(
            (f"{description} ({steps:,})", spec.problem, steps)
            for description, steps in horizons
            if steps != spec.horizon
        ),
    ]
    scenarios, left_out = [("as expected", spec)], []
    for description, problem, horizon in changed:
        try:
            other = change_spec(spec, problem, horizon)
            resolve_only_range(other, "a robustness check")
        except InvalidRequest as refused:
            if others is not None and problem is not spec.problem:
                raise
            left_out.append(Notice(Message("'{}' is left out: {}", description, refused), "scenario-left-out"))
        else:
            scenarios.append((description, other))
    if len(scenarios) == 1:
        raise InvalidRequest(
            "a robustness check must have other problems than the expected one, but there is none for {} that can be "
            "simulated; give {}, a list of pairs (description, problem).",
            *(spec.problem.name, Argument("others")),
            argument="others",
            code="unsupported",
        )
    return scenarios, tuple(left_out)


def list_problem_variants(problem: Problem) -> list[tuple[str, Problem]]:
    """List variants of a problem; none for a user's own `sample`, which may not use the options that variants change."""
    return list(list_variants(problem)) if is_package_code(type(problem).sample) else []


def resolve_scenario_budget(
    tuner: Tuner, scenarios: Sequence[tuple[str, SimulationSpec]], budget: int, fallback: int
) -> int:
    """Return the budget for each scenario: `budget` if it is enough for the tuner, else `fallback`."""
    try:
        for _, other in scenarios:
            check_search(tuner, resolve_space(other), budget)
    except InvalidRequest:
        return fallback
    return budget
