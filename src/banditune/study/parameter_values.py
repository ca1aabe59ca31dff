"""Parameter ranges and values of a policy: resolves them, checks them, and makes the rows that are simulated."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.checks import convert_to_number
from banditune.core.errors import InvalidRequest
from banditune.core.space import Range, format_limits
from banditune.simulation.spec import SimulationSpec


def normalize_ranges(ranges: Any) -> tuple[tuple[str, float, float], ...]:
    """Ranges that were asked for, {"gamma": (0, 3)}, as names with both ends."""
    if ranges is None:
        return ()
    found: list[tuple[str, float, float]] = []
    for name, ends in ranges.items() if isinstance(ranges, Mapping) else [("", None)]:
        pair = list(ends) if isinstance(ends, Sequence | np.ndarray) and not isinstance(ends, str) else []
        numbers = [convert_to_number(end) for end in pair]
        if not isinstance(name, str) or len(numbers) != 2 or not all(map(math.isfinite, numbers)):
            raise InvalidRequest(
                '`ranges` must be names of parameters with two numbers each, such as {"gamma": (0, 3)}, but got '
                f"{ranges!r}."
            )
        found.append((name, numbers[0], numbers[1]))
    return tuple(found)


def assign_ranges(policies: Sequence[Any], ranges: Any) -> list[dict[str, tuple[float, float]]]:
    """For each of several policies the ranges of its parameters; a range must be of a parameter that is tuned."""
    asked = {name: (low, high) for name, low, high in normalize_ranges(ranges)}
    names = [[p.name for p in getattr(policy, "parameters", ())] for policy in policies]
    tuned = {name for found in names if len(found) == 1 for name in found}
    for name in asked:
        if name not in tuned:
            raise make_unknown_parameter_error(name, tuned)
    return [{name: asked[name] for name in found if name in asked} for found in names]


def check_parameter_names(job: SimulationSpec) -> None:
    """Refuse parameters of the same name, and ranges of parameters that the policy does not have."""
    names = [parameter.name for parameter in job.policy.parameters]
    if len(set(names)) < len(names):
        raise InvalidRequest(f"the parameters of {job.policy.name} must have names of their own, but they are {names}.")
    for name, _, _ in job.ranges:
        if name not in names:
            raise make_unknown_parameter_error(name, names)


def make_unknown_parameter_error(name: str, names: Collection[str]) -> InvalidRequest:
    """What is wrong with a range of a parameter that there is not."""
    return InvalidRequest(
        f"a range must be of one of the parameters {', '.join(sorted(names)) or '(there are none)'}, but got one of "
        f"{name!r}."
    )


def resolve_ranges(job: SimulationSpec) -> tuple[Range, ...]:
    """The policy's parameters with their bounds for this problem and horizon: those asked for, or the usual ones."""
    asked = {name: (low, high) for name, low, high in job.ranges}
    arms, horizon = job.problem.arms, job.horizon
    return tuple(
        parameter.within(arms, horizon, asked.get(parameter.name), job.policy.limits(parameter.name))
        for parameter in job.policy.parameters
    )


def resolve_only_range(job: SimulationSpec) -> Range:
    """The range of the one parameter that a one-parameter tuner can search."""
    found = resolve_ranges(job)
    if len(found) != 1:
        names = ", ".join(r.name for r in found) or "none"
        raise InvalidRequest(
            f"a policy must have exactly one parameter to be tuned, but {job.policy.name} has {len(found)} ({names}); "
            "compare it, or simulate() it in Python."
        )
    return found[0]


def explain_not_tuned(job: SimulationSpec) -> str:
    """Why a tuner cannot search a policy's parameters; empty where it can."""
    names = [found.name for found in resolve_ranges(job)]
    if len(names) == 1:
        return ""
    return (
        f"it has {len(names)} parameters ({', '.join(names)}), a search takes one" if names else "it has no parameter"
    )


def explain_not_backtested(job: SimulationSpec) -> str:
    """Why `backtest` cannot judge a policy on logs to which this problem is fitted; empty where it can.

    It tunes, so that the policy must have one parameter. Where arms have an effect each ("correlated": features are unit
    vectors), it plays campaigns, whose arms have no features.
    """
    features = getattr(job.problem, "features", None)
    if features is not None and job.policy.needs_features and np.array_equal(features, np.eye(len(features))):
        return "it needs features, and campaigns have none"
    return explain_not_tuned(job)


def make_textbook_row(job: SimulationSpec) -> FloatArray:
    """Theory's parameters."""
    return np.array([r.theory for r in resolve_ranges(job)] or [0.0])


def make_parameter_rows(job: SimulationSpec, values: Any) -> FloatArray:
    """Parameter values as rows: a number or a list of numbers for one parameter, rows of numbers for several.

    They may lie outside of the range that is searched, but not where the policy is not defined.
    """
    found = resolve_ranges(job)
    if values is None:
        return make_textbook_row(job)[None, :]
    if isinstance(values, Mapping):
        if set(values) != {r.name for r in found}:
            wanted = ", ".join(r.name for r in found) or "none"
            raise InvalidRequest(
                f"the parameters of {job.policy.name} are {wanted}, but got {', '.join(map(str, values))}."
            )
        values = [[values.get(r.name, math.nan) for r in found] or [0.0]]
    try:
        table = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        table = np.empty(0)
    width = max(1, len(found))
    if width == 1 and table.ndim <= 1:
        table = table.reshape(-1, 1)
    if table.ndim != 2 or table.shape[0] < 1 or table.shape[1] != width:
        wanted = " and ".join(r.name for r in found) or "any number"
        raise InvalidRequest(
            f"the values for {job.policy.name} must be numbers, {width} a row ({wanted}), but got {values!r}."
        )
    for place, r in enumerate(found):
        table[:, place] = [resolve_defined_value(job, r, value) for value in table[:, place].tolist()]
    if not np.isfinite(table).all():
        raise InvalidRequest(f"parameter values must be finite numbers, but got {values!r}.")
    return table


def resolve_defined_value(job: SimulationSpec, among: Range, value: float) -> float:
    """A value that the policy is defined for; whole where the parameter is, and a limit where only rounding misses it."""
    found = among.clip_rounding(value, among.least, among.most)
    if not (among.least <= found <= among.most and math.isfinite(found)):
        raise InvalidRequest(
            f"`{format_limits(among.name, among.least, among.most)}` must hold for {job.policy.name}, but got "
            f"{among.name}={value:g}."
        )
    return among.nearest(found)


def describe_searched_range(job: SimulationSpec) -> dict[str, tuple[float, float]]:
    """The range that was searched."""
    among = resolve_only_range(job)
    return {among.name: (among.low, among.high)}
