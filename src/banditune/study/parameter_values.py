"""Parameter ranges and values of a policy: resolves them, checks them, and makes the rows that are simulated."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.checks import convert_to_number
from banditune.core.errors import InvalidRequest
from banditune.core.messages import Argument, Wording
from banditune.core.request_errors import make_argument_error
from banditune.core.space import Range, Space, format_limits
from banditune.simulation.spec import SimulationSpec


def normalize_ranges(ranges: Any) -> tuple[tuple[str, float, float], ...]:
    """Convert requested ranges, {"gamma": (0, 3)}, to names with both ends."""
    if ranges is None:
        return ()
    normalized: list[tuple[str, float, float]] = []
    for name, ends in ranges.items() if isinstance(ranges, Mapping) else [("", None)]:
        pair = list(ends) if isinstance(ends, Sequence | np.ndarray) and not isinstance(ends, str) else []
        numbers = [convert_to_number(end) for end in pair]
        if not isinstance(name, str) or len(numbers) != 2 or not all(map(math.isfinite, numbers)):
            raise make_argument_error(
                "ranges",
                "wrong-type",
                f'must be names of parameters with two numbers each, such as {{"gamma": (0, 3)}}, but got {ranges!r}.',
            )
        normalized.append((name, numbers[0], numbers[1]))
    return tuple(normalized)


def normalize_fixed(fixed: Any) -> tuple[tuple[str, float], ...]:
    """Convert values of parameters that are not searched, {"gamma": 0.3}, to pairs."""
    if fixed is None:
        return ()
    items = list(fixed.items()) if isinstance(fixed, Mapping) else [("", math.nan)]
    if not all(isinstance(name, str) and math.isfinite(convert_to_number(value)) for name, value in items):
        raise make_argument_error(
            "fixed",
            "wrong-type",
            f'must be names of parameters with a number each, such as {{"gamma": 0.3}}, but got {fixed!r}.',
        )
    return tuple((name, convert_to_number(value)) for name, value in items)


def resolve_fixed(spec: SimulationSpec) -> tuple[tuple[str, float], ...]:
    """Check that fixed parameters exist and are not searched, and resolve values for which the policy is defined."""
    ranges = {search_range.name: search_range for search_range in resolve_ranges(spec)}
    for name, _ in spec.fixed:
        if name not in ranges:
            raise make_unknown_parameter_error(name, list(ranges), "a fixed value")
        if name in {ranged for ranged, _, _ in spec.ranges}:
            raise InvalidRequest(
                "{} must be fixed or searched, but it is in both {} and {}.",
                *(name, Argument("fixed"), Argument("ranges")),
                argument="fixed",
                code="conflict",
            )
    return tuple((name, resolve_defined_value(spec, ranges[name], value)) for name, value in spec.fixed)


def assign_fixed(policies: Sequence[Any], fixed: Any) -> list[dict[str, float]]:
    """Assign to each of several policies the fixed values of its parameters."""
    names = [{p.name for p in getattr(policy, "parameters", ())} for policy in policies]
    for name, _ in normalize_fixed(fixed):
        if not any(name in parameters for parameters in names):
            raise make_unknown_parameter_error(name, sorted(set().union(*names)), "a fixed value")
    return [{name: value for name, value in normalize_fixed(fixed) if name in parameters} for parameters in names]


def assign_ranges(policies: Sequence[Any], ranges: Any) -> list[dict[str, tuple[float, float]]]:
    """Assign to each of several policies the ranges of its parameters."""
    requested = {name: (low, high) for name, low, high in normalize_ranges(ranges)}
    names = [[p.name for p in getattr(policy, "parameters", ())] for policy in policies]
    tuned = {name for parameters in names for name in parameters}
    for name in requested:
        if name not in tuned:
            raise make_unknown_parameter_error(name, tuned)
    return [{name: requested[name] for name in parameters if name in requested} for parameters in names]


def check_parameter_names(spec: SimulationSpec) -> None:
    """Check that parameters have distinct names, and that ranges are for parameters of the policy."""
    names = [parameter.name for parameter in spec.policy.parameters]
    if len(set(names)) < len(names):
        raise InvalidRequest(
            f"the parameters of {spec.policy.name} must have distinct names, but they are {names}.",
            argument="policy",
            code="own-code",
        )
    for name, _, _ in spec.ranges:
        if name not in names:
            raise make_unknown_parameter_error(name, names)


def make_unknown_parameter_error(name: str, names: Collection[str], subject: str = "a range") -> InvalidRequest:
    """Make the error for a range or value of an unknown parameter."""
    return InvalidRequest(
        f"{subject} must be of one of the parameters {', '.join(sorted(names)) or '(there are none)'}, but got one of "
        f"{name!r}.",
        argument=name,
        code="unknown-name",
    )


def resolve_ranges(spec: SimulationSpec) -> tuple[Range, ...]:
    """Resolve the ranges of the policy's parameters for this problem and horizon: requested or default."""
    requested = {name: (low, high) for name, low, high in spec.ranges}
    arms, horizon = spec.problem.arms, spec.horizon
    return tuple(
        parameter.resolve(arms, horizon, requested.get(parameter.name), spec.policy.limits(parameter.name))
        for parameter in spec.policy.parameters
    )


def list_searched_ranges(spec: SimulationSpec) -> list[Range]:
    """List the ranges of the parameters that are not fixed."""
    fixed = dict(spec.fixed)
    return [search_range for search_range in resolve_ranges(spec) if search_range.name not in fixed]


def complete_row(spec: SimulationSpec, searched_row: Sequence[float]) -> FloatArray:
    """Make a row of all parameters from the values of those that are searched. The others have fixed values."""
    values = dict(zip((searched.name for searched in list_searched_ranges(spec)), searched_row, strict=True))
    values |= dict(spec.fixed)
    return np.array([values[search_range.name] for search_range in resolve_ranges(spec)] or [0.0])


def get_searched_values(spec: SimulationSpec, rows: FloatArray) -> FloatArray:
    """Get the columns of the searched parameters from rows of all parameters."""
    names = [search_range.name for search_range in resolve_ranges(spec)]
    return rows[:, [names.index(search_range.name) for search_range in list_searched_ranges(spec)]]


def name_params(spec: SimulationSpec, row: FloatArray) -> dict[str, float]:
    """Name the parameters of a row."""
    return dict(zip((search_range.name for search_range in resolve_ranges(spec)), map(float, row), strict=False))


def resolve_space(spec: SimulationSpec) -> Space:
    """Resolve the ranges of the parameters that are searched: those that are not fixed."""
    ranges = list_searched_ranges(spec)
    if not ranges:
        raise InvalidRequest(
            "a policy must have a parameter to be tuned, but {} has none; {}.",
            spec.policy.name if not spec.fixed else f"{spec.policy.name} with fixed values",
            Wording("compare() or simulate() it", "compare it with others: banditune compare"),
            argument="policy",
            code="unsupported",
        )
    return Space(tuple(ranges))


def resolve_only_range(spec: SimulationSpec, purpose: str) -> Range:
    """Resolve the range of the only parameter that is searched, for what takes one parameter, as in "a curve"."""
    ranges = resolve_space(spec).ranges
    if len(ranges) > 1:
        raise InvalidRequest(
            "{} must be over one parameter, but {} has {} ({}); {}.",
            *(purpose, spec.policy.name, len(ranges), ", ".join(r.name for r in ranges)),
            Wording(
                'fix all but one, as in Search(fixed={"name": 0.5})',
                "fix all but one: --fix name=0.5",
            ),
            argument="policy",
            code="unsupported",
        )
    return ranges[0]


def list_slice_specs(spec: SimulationSpec, row: Sequence[float]) -> list[SimulationSpec]:
    """List a spec for each searched parameter in which all others are fixed at their values in a row."""
    names = [search_range.name for search_range in list_searched_ranges(spec)]
    values = list(zip(names, row, strict=True))
    return [
        replace(
            spec,
            ranges=tuple(ends for ends in spec.ranges if ends[0] == name),
            fixed=(*spec.fixed, *(pair for pair in values if pair[0] != name)),
        )
        for name in names
    ]


def explain_not_tuned(spec: SimulationSpec) -> str:
    """Say why a policy cannot be tuned; empty if it can."""
    if list_searched_ranges(spec):
        return ""
    return "all its parameters are fixed" if spec.fixed else "it has no parameter"


def explain_not_backtested(spec: SimulationSpec) -> str:
    """Explain why `backtest` cannot evaluate a policy on logs to which this problem is fitted; empty if it can.

    A backtest tunes, so the policy must have one parameter. The model "correlated" has unit vectors as features. For this
    model a backtest simulates campaigns, whose arms have no features.
    """
    features = getattr(spec.problem, "features", None)
    if features is not None and spec.policy.needs_features and np.array_equal(features, np.eye(len(features))):
        return "it needs features, and campaigns have none"
    return explain_not_tuned(spec)


def make_textbook_row(spec: SimulationSpec) -> FloatArray:
    """Make the row of textbook values."""
    return np.array([r.textbook for r in resolve_ranges(spec)] or [0.0])


def can_return_textbook(spec: SimulationSpec) -> bool:
    """Return whether the search could return the textbook policy: its options, and fixed values that are the textbook's."""
    return spec.textbook_policy is None and np.array_equal(
        complete_row(spec, resolve_space(spec).textbook), make_textbook_row(spec)
    )


def make_parameter_rows(spec: SimulationSpec, values: Any) -> FloatArray:
    """Make rows from a number or a list of numbers for one parameter, or from rows of numbers for several.

    Values may lie outside of the searched range, but the policy must be defined for them.
    """
    ranges = resolve_ranges(spec)
    if values is None:
        return make_textbook_row(spec)[None, :]
    if isinstance(values, Mapping):
        if set(values) != {r.name for r in ranges}:
            expected = ", ".join(r.name for r in ranges) or "none"
            raise InvalidRequest(
                f"the parameters of {spec.policy.name} are {expected}, but got {', '.join(map(str, values))}.",
                argument="values",
                code="wrong-shape",
            )
        values = [[values.get(r.name, math.nan) for r in ranges] or [0.0]]
    try:
        table = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        table = np.empty(0)
    width = max(1, len(ranges))
    if len(list_searched_ranges(spec)) <= 1 and table.ndim <= 1:
        table = np.asarray(spec.complete_rows(table.reshape(-1, 1)))
    if table.ndim != 2 or table.shape[0] < 1 or table.shape[1] != width:
        expected = " and ".join(r.name for r in ranges) or "any number"
        raise InvalidRequest(
            f"the values for {spec.policy.name} must be numbers, {width} a row ({expected}), but got {values!r}.",
            argument="values",
            code="wrong-shape",
        )
    for column, r in enumerate(ranges):
        table[:, column] = [resolve_defined_value(spec, r, value) for value in table[:, column].tolist()]
    if not np.isfinite(table).all():
        raise InvalidRequest(
            f"parameter values must be finite numbers, but got {values!r}.", argument="values", code="out-of-range"
        )
    return table


def resolve_defined_value(spec: SimulationSpec, search_range: Range, value: float) -> float:
    """Check that the policy is defined for a value, remove rounding errors at limits, and round integer parameters."""
    clipped = search_range.clip_rounding_error(value, search_range.lower_limit, search_range.upper_limit)
    if not (search_range.lower_limit <= clipped <= search_range.upper_limit and math.isfinite(clipped)):
        raise InvalidRequest(
            f"`{format_limits(search_range.name, search_range.lower_limit, search_range.upper_limit)}` must hold for "
            f"{spec.policy.name}, but got "
            f"{search_range.name}={value:g}.",
            argument=search_range.name,
            code="out-of-range",
        )
    return search_range.round_value(clipped)


def describe_searched_ranges(spec: SimulationSpec) -> dict[str, tuple[float, float]]:
    """Return the searched ranges by the parameters' names."""
    return {search_range.name: (search_range.low, search_range.high) for search_range in resolve_space(spec).ranges}
