"""Chooses the scenarios of a robustness check: changed problems and other horizons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from banditune.core.errors import InvalidRequest
from banditune.core.problem import Problem
from banditune.core.scalar import is_package_code
from banditune.core.tuner import Tuner
from banditune.problems.problem_variants import list_variants
from banditune.simulation.spec import SimulationSpec
from banditune.study.parameter_values import resolve_only_range
from banditune.study.requests import build_spec
from banditune.study.search import check_search

OTHER_HORIZONS = ((1 / 3, "a third of the horizon"), (3, "three times the horizon"))


def change_spec(job: SimulationSpec, problem: Problem, horizon: int) -> SimulationSpec:
    """The same request with another problem and horizon, checked at the door.

    Noise and prior stay those of the expected problem: that another one comes is what nobody knows beforehand.
    """
    other = build_spec(
        job.policy, problem, horizon=horizon, seed=job.seed, regret=job.regret, noise=job.noise, shortcut=job.shortcut,
        device=job.device, ranges={name: (low, high) for name, low, high in job.ranges},
    )  # fmt: skip
    return replace(other, textbook=job.textbook)


def list_scenario_specs(
    job: SimulationSpec, others: Sequence[tuple[str, Problem]] | None = None
) -> tuple[list[tuple[str, SimulationSpec]], tuple[str, ...]]:
    """The expected job, those with problems beside it, and those with other horizons, each in words.

    Beside it go only those that the policy can play; sentences say which cannot be played, and why. A user's own must.
    """
    beside: Any = list_problem_variants(job.problem) if others is None else others
    pairs = isinstance(beside, list | tuple) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in beside)
    if not pairs or not all(isinstance(problem, Problem) for _, problem in beside):
        raise InvalidRequest(f"`others` must be a list of pairs (words, problem), but got {others!r}.")
    horizons = [(words, max(1, round(job.horizon * factor))) for factor, words in OTHER_HORIZONS]
    changed = [
        *((str(words), problem, job.horizon) for words, problem in beside),
        *((f"{words} ({steps:,})", job.problem, steps) for words, steps in horizons if steps != job.horizon),
    ]
    asked, left_out = [("as expected", job)], []
    for words, problem, horizon in changed:
        try:
            other = change_spec(job, problem, horizon)
            resolve_only_range(other)
        except InvalidRequest as refused:
            if others is not None and problem is not job.problem:
                raise
            left_out.append(f"'{words}' is left out: {refused}")
        else:
            asked.append((words, other))
    if len(asked) == 1:
        raise InvalidRequest(
            f"a stress test must have other problems than the expected one, but nothing beside {job.problem.name} can be "
            "played; give `others`, a list of pairs (words, problem)."
        )
    return asked, tuple(left_out)


def list_problem_variants(problem: Problem) -> list[tuple[str, Problem]]:
    """Problems beside one whose means are drawn as we know it: a user's own `sample` may not look at what is changed."""
    return list(list_variants(problem)) if is_package_code(type(problem).sample) else []


def resolve_scenario_budget(
    tuner: Tuner, asked: Sequence[tuple[str, SimulationSpec]], budget: int, granted: int
) -> int:
    """Runs to tune each job with: the budget, or what the tuner was granted before, where it needs more."""
    try:
        for _, other in asked:
            check_search(tuner, resolve_only_range(other), budget)
    except InvalidRequest:
        return granted
    return budget
