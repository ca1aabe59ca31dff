"""Rebuilds the policy that a saved state describes, from the registry or from the caller, and checks that it can be deployed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from banditune.core.checks import list_options_from_problem
from banditune.core.descriptions import OWN_CODE_KEY, describe
from banditune.core.errors import InvalidRequest
from banditune.core.policy import Policy
from banditune.deployment.deployment_state import MAX_ABS_REWARD, ArmState, DeploymentState
from banditune.simulation.spec import check_options_resolved


def refuse_external_policy(name: Any, params: Mapping[str, Any]) -> InvalidRequest:
    """Why a guest is not deployed, and what to do instead."""
    told = ", ".join(f"{key}={value!r:.40}" for key, value in params.items())
    return InvalidRequest(
        f"a policy of this library must be deployed, but {name!r:.60} is an object of another one, which selects arms and "
        f"takes rewards by itself: make it there{f' with {told}' if told else ''}, or tune and deploy a policy from the "
        "shelf, such as ucb1-step, the rule of most."
    )


def check_deployable(policy: Policy, state: DeploymentState) -> None:
    """A policy that can be saved and rebuilt, with arms that it can know."""
    if not isinstance(policy, Policy):
        raise InvalidRequest(f"`policy` must be a policy such as UCB1(), but got {policy!r:.80}.")
    check_options_resolved(policy)
    if policy.recall is None or policy.resume is None:
        raise InvalidRequest(
            f"a policy must define `recall` and `resume` to be deployed, so that rewards can come late and arms can "
            f"change, but {policy.name} does not; use another, or define them (docs/live.md)."
        )
    if policy.needs_features and not state.arms[0].features:
        raise InvalidRequest(f"{policy.name} knows arms by their features, but they have none; pass `features`.")
    if not policy.needs_features and state.arms[0].features:
        raise InvalidRequest(f"{policy.name} does not know features, but the arms have some; leave them out.")
    check_reward_totals(policy, state.arms)


def check_reward_totals(policy: Policy, arms: tuple[ArmState, ...]) -> None:
    """Totals that so many rewards of the policy's kind can have."""
    for arm in arms:
        within = (
            0 <= arm.total <= arm.pulls if policy.rewards != "real" else abs(arm.total) <= MAX_ABS_REWARD * arm.pulls
        )
        if not within or (policy.rewards == "binary" and arm.total != math.floor(arm.total)):
            raise InvalidRequest(
                f"the total of an arm must be one that {arm.pulls} rewards of {policy.name} can have "
                f"({policy.rewards}), but that of {arm.name!r} is {arm.total!r}."
            )


def check_deployed_params(policy: Policy, params: Mapping[str, float]) -> list[float]:
    """The row of parameters, by their names; they may lie outside of the range that is usually searched."""
    wanted = [parameter.name for parameter in policy.parameters]
    if sorted(params) != sorted(wanted):
        raise InvalidRequest(f"the parameters of {policy.name} are {wanted}, but the state has {sorted(params)!r:.80}.")
    for parameter in policy.parameters:
        least, most = policy.limits(parameter.name)
        low, high = max(parameter.least, least, -MAX_ABS_REWARD), min(parameter.most, most, MAX_ABS_REWARD)
        if not low <= params[parameter.name] <= high:
            raise InvalidRequest(
                f"`{low:g} <= {parameter.name} <= {high:g}` must hold for {policy.name}, but the state has "
                f"{params[parameter.name]!r}."
            )
    return [params[name] for name in wanted] or [0.0]


def restore_state_policy(
    state: DeploymentState, policy: Policy | None, shelf: Mapping[str, Any], tables: Any
) -> Policy:
    """The policy of a state.

    Policies that play a table must be passed, because a state must not decide how long a table takes to make.
    """
    name = state.policy["name"]
    if policy is None and name in tables:
        raise InvalidRequest(
            f"the policy {name!r:.60} plays a table and must be passed again: Live.load(path, policy)."
        )
    return restore_policy(state.policy, policy, shelf, of="of the state", call="Live.load(path, policy)")


def restore_policy(
    told: Mapping[str, Any], policy: Policy | None, shelf: Mapping[str, Any], *, of: str, call: str
) -> Policy:
    """The policy that a file describes: the one passed, if it is that one, or one made again from the shelf."""
    wanted = {key: _convert_to_lists(value) for key, value in told.items()}
    name, own = wanted.pop("name", None), wanted.pop(OWN_CODE_KEY, None)
    if policy is not None:
        policy = _fill_open_options(policy, told)
        given = describe(policy) if isinstance(policy, Policy) else policy
        # A user's code may have moved to another file, and older files do not say that it is a user's.
        same = isinstance(given, dict) and given | {OWN_CODE_KEY: None} == {"name": name, **wanted, OWN_CODE_KEY: None}
        if not same or (own and OWN_CODE_KEY not in given):
            raise InvalidRequest(f"the policy must be the one {of}, {dict(told)!r:.200}, but got {given!r:.200}.")
        return policy
    if own or not isinstance(name, str) or name not in shelf:
        raise InvalidRequest(f"a policy of your own must be passed again, but got none for {name!r:.60}: {call}.")
    try:
        made = shelf[name](**wanted)
    except InvalidRequest:
        raise
    except (TypeError, ValueError, OverflowError, RecursionError, MemoryError, np.linalg.LinAlgError) as error:
        raise InvalidRequest(f"the options of {name!r} cannot be {wanted!r:.200}: {error!s:.200}.") from error
    return made  # type: ignore[no-any-return]


def _fill_open_options(policy: Any, told: Mapping[str, Any]) -> Any:
    """A policy with the numbers that a file has for what it takes from a problem."""
    numbers = {name: told[name] for name in list_options_from_problem(policy) if name in told}
    return replace(policy, **numbers) if numbers else policy


def _convert_to_lists(value: Any) -> Any:
    """Tuples as lists, as JSON has them."""
    return [_convert_to_lists(item) for item in value] if isinstance(value, tuple | list) else value
