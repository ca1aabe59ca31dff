"""Restores the policy and the problem that a result or a state describes."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from banditune.core.checks import list_options_from_problem
from banditune.core.descriptions import OWN_CODE_KEY, describe
from banditune.core.errors import InvalidRequest
from banditune.core.messages import Wording
from banditune.core.policy import Policy
from banditune.core.problem import Problem
from banditune.core.request_errors import make_argument_error
from banditune.problems.problem_registry import build_problem
from banditune.registry import load_from_file


def load_own_policy(source: str) -> Policy | None:
    """Load a user's policy by the file and the name in a result; None if the file does not exist.

    A module that was imported before is not run again.
    """
    path, _, name = source.rpartition(":")
    if not Path(path).is_file():
        return None
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file and Path(file).resolve() == Path(path) and hasattr(module, name):
            record = getattr(module, name)
            return cast(Policy, record() if isinstance(record, type) else record)
    return cast(Policy, load_from_file("policy", source, Policy, {}))


def restore_policy(
    config: Mapping[str, Any], policy: Policy | None, registry: Mapping[str, Any], *, of: str, call: Wording
) -> Policy:
    """Restore the policy that a file describes. Check the given one, or make one from the registry."""
    options = {key: _convert_to_lists(value) for key, value in config.items()}
    name, own_code = options.pop("name", None), options.pop(OWN_CODE_KEY, None)
    if policy is not None:
        policy = _fill_open_options(policy, config)
        description = describe(policy) if isinstance(policy, Policy) else policy
        # A user's code may have moved to another file. Older files do not state that the code is a user's.
        is_same = isinstance(description, dict) and description | {OWN_CODE_KEY: None} == {
            "name": name,
            **options,
            OWN_CODE_KEY: None,
        }
        if not is_same or (own_code and OWN_CODE_KEY not in description):
            raise InvalidRequest(
                f"the policy must be the one {of}, {dict(config)!r:.200}, but got {description!r:.200}.",
                argument="policy",
                code="conflict",
            )
        return policy
    if own_code or not isinstance(name, str) or name not in registry:
        text = "a policy of your own must be passed again, but got none for {!r:.60}: {}."
        raise InvalidRequest(text, name, call, argument="policy", code="missing")
    try:
        restored = registry[name](**options)
    except InvalidRequest:
        raise
    except (TypeError, ValueError, OverflowError, RecursionError, MemoryError, np.linalg.LinAlgError) as error:
        raise InvalidRequest(
            f"the options of {name!r} cannot be {options!r:.200}: {error!s:.200}.", code="bad-data"
        ) from error
    return restored  # type: ignore[no-any-return]


def _fill_open_options(policy: Any, config: Mapping[str, Any]) -> Any:
    """Fill the options that a policy takes from a problem with the numbers of a file."""
    numbers = {name: config[name] for name in list_options_from_problem(policy) if name in config}
    return replace(policy, **numbers) if numbers else policy


def _convert_to_lists(value: Any) -> Any:
    """Convert tuples to lists, as in JSON."""
    return [_convert_to_lists(item) for item in value] if isinstance(value, tuple | list) else value


def restore_problem(config: Mapping[str, Any], problem: Any = None) -> Problem:
    """Restore the problem of a result: check the one passed, or build it from its description."""
    if problem is None:
        try:
            return build_problem({key: _convert_to_lists(value) for key, value in config.items()})
        except InvalidRequest as error:
            text = "must be passed again, because the result does not hold all of it: {}"
            raise make_argument_error("problem", "missing", text, error.message) from error
    if not isinstance(problem, Problem):
        raise make_argument_error("problem", "wrong-type", f"must be a problem, but got {problem!r:.80}.")
    descriptions = describe(problem), dict(config)
    received, expected = (
        {key: key == OWN_CODE_KEY or _convert_to_lists(value) for key, value in description.items()}
        for description in descriptions
    )
    if received != expected:
        text = f"must be the one of the result, {descriptions[1]!r:.200}, but got {descriptions[0]!r:.200}."
        raise make_argument_error("problem", "conflict", text)
    return problem
