"""Rebuilds the policy of a saved state, from the registry or from the caller, and checks that it can be deployed."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from banditune.core.checks import check_arguments, check_is_policy, check_scratch, list_options_from_problem
from banditune.core.descriptions import OWN_CODE_KEY, describe
from banditune.core.errors import InvalidRequest
from banditune.core.messages import Argument, Wording
from banditune.core.policy import FUNCTION_ARGUMENTS, SIZE_ARGUMENTS, Policy, list_choose_arguments
from banditune.deployment.deployment_state import MAX_ABS_REWARD, ArmState, DeploymentState
from banditune.registry import load_from_file
from banditune.simulation.spec import check_options_resolved

PASS_POLICY_TO_LOAD = Wording("DeployedPolicy.load(path, policy)", "--policy FILE.py:NAME")
"""How a policy is passed with a saved state."""


PASS_POLICY_TO_DEPLOY = Wording("result.deploy(mine)", "--policy FILE.py:NAME")
"""How a policy is passed with a saved result."""


def refuse_external_policy(name: Any, params: Mapping[str, Any]) -> InvalidRequest:
    """Make the error for an external policy: why it is not deployed, and what to do instead."""
    text = ", ".join(f"{key}={value!r:.40}" for key, value in params.items())
    return InvalidRequest(
        f"a policy of this library must be deployed, but {name!r:.60} is an object of another one, which selects arms and "
        f"takes rewards by itself: create it there{f' with {text}' if text else ''}, or tune and deploy a policy of this "
        "package, such as ucb1-step.",
        argument="policy",
        code="unsupported",
    )


def check_deployable(policy: Policy, state: DeploymentState) -> None:
    """Check that a policy can be saved and rebuilt, and that its arms fit it."""
    check_is_policy(policy)
    check_options_resolved(policy)
    if policy.recall is None or policy.resume is None:
        raise InvalidRequest(
            f"a policy must define `recall` and `resume` to be deployed, so that rewards can arrive late and arms can "
            f"change, but {policy.name} does not; use another, or define them (docs/how-to/deployment.md).",
            argument="policy",
            code="own-code",
        )
    check_scratch(policy.scratch)
    for name, arguments in {**FUNCTION_ARGUMENTS, "choose": list_choose_arguments(policy.scratch)}.items():
        check_arguments(name, getattr(policy, name, None), arguments)
    check_arguments("memory", policy.memory, SIZE_ARGUMENTS)
    if policy.needs_features and not state.arms[0].features:
        raise InvalidRequest(
            "{} needs the features of arms, but they have none; pass {}.",
            *(policy.name, Argument("features")),
            argument="features",
            code="missing",
        )
    if not policy.needs_features and state.arms[0].features:
        raise InvalidRequest(
            f"{policy.name} does not use features, but the arms have some; leave them out.",
            argument="features",
            code="conflict",
        )
    check_reward_totals(policy, state.arms)


def check_reward_totals(policy: Policy, arms: tuple[ArmState, ...]) -> None:
    """Check that each total is possible for this number of rewards of the policy's kind."""
    for arm in arms:
        is_possible = (
            0 <= arm.total <= arm.pulls if policy.rewards != "real" else abs(arm.total) <= MAX_ABS_REWARD * arm.pulls
        )
        if not is_possible or (policy.rewards == "binary" and arm.total != math.floor(arm.total)):
            raise InvalidRequest(
                f"the total of an arm must be one that {arm.pulls} rewards of {policy.name} can have "
                f"({policy.rewards}), but that of {arm.name!r} is {arm.total!r}.",
                code="bad-data",
            )


def check_deployed_params(policy: Policy, params: Mapping[str, float]) -> list[float]:
    """Return the row of parameters. They may lie outside the range that is searched by default."""
    names = [parameter.name for parameter in policy.parameters]
    if sorted(params) != sorted(names):
        raise InvalidRequest(
            f"the parameters of {policy.name} are {names}, but the state has {sorted(params)!r:.80}.", code="bad-data"
        )
    for parameter in policy.parameters:
        least, most = policy.limits(parameter.name)
        low, high = max(parameter.lower_limit, least, -MAX_ABS_REWARD), min(parameter.upper_limit, most, MAX_ABS_REWARD)
        if not low <= params[parameter.name] <= high:
            raise InvalidRequest(
                f"`{low:g} <= {parameter.name} <= {high:g}` must hold for {policy.name}, but the state has "
                f"{params[parameter.name]!r}.",
                argument=parameter.name,
                code="out-of-range",
            )
    return [params[name] for name in names] or [0.0]


def restore_state_policy(
    state: DeploymentState, policy: Policy | None, registry: Mapping[str, Any], tables: Any
) -> Policy:
    """Restore the policy of a state.

    Policies that compute a table must be passed, because a state must not decide how long that takes.
    """
    name = state.policy["name"]
    if policy is None and name in tables:
        text = "the policy {!r:.60} computes a table and must be passed again: {}."
        raise InvalidRequest(text, name, PASS_POLICY_TO_LOAD, argument="policy", code="missing")
    return restore_policy(state.policy, policy, registry, of="of the state", call=PASS_POLICY_TO_LOAD)


def load_own_policy(source: str) -> Policy | None:
    """Load a user's policy by the file and the name that a result keeps; None if the file does not exist.

    A module that is imported already is not run again.
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
    """Restore the policy that a file describes: check the one passed, or build it from the registry."""
    options = {key: _convert_to_lists(value) for key, value in config.items()}
    name, own_code = options.pop("name", None), options.pop(OWN_CODE_KEY, None)
    if policy is not None:
        policy = _fill_open_options(policy, config)
        description = describe(policy) if isinstance(policy, Policy) else policy
        # A user's code may have moved to another file. Older files do not hold that it is a user's.
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
