"""Restores the policy of a saved state, and checks that policies can be deployed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from banditune.core.checks import check_arguments, check_is_policy, check_scratch
from banditune.core.errors import InvalidRequest
from banditune.core.messages import Argument, Wording
from banditune.core.policy import FUNCTION_ARGUMENTS, SIZE_ARGUMENTS, Policy, list_choose_arguments
from banditune.deployment.deployment_state import MAX_ABS_REWARD, ArmState, DeploymentState
from banditune.simulation.spec import check_options_resolved
from banditune.study.restoration import restore_policy

PASS_POLICY_TO_LOAD = Wording("DeployedPolicy.load(path, policy)", "--policy FILE.py:NAME")
"""The code and the option that pass a policy with a saved state."""


PASS_POLICY_TO_DEPLOY = Wording("result.deploy(mine)", "--policy FILE.py:NAME")
"""The code and the option that pass a policy with a saved result."""


def refuse_external_policy(name: Any, params: Mapping[str, Any]) -> InvalidRequest:
    """Make the error for an external policy, which cannot be deployed, with advice."""
    text = ", ".join(f"{key}={value!r:.40}" for key, value in params.items())
    return InvalidRequest(
        f"only a policy of this library can be deployed, but {name!r:.60} is an object of another one, which selects arms "
        f"and accepts rewards itself: create it there{f' with {text}' if text else ''}, or tune and deploy a policy of "
        "this package, such as ucb1-step.",
        argument="policy",
        code="unsupported",
    )


def check_deployable(policy: Policy, state: DeploymentState) -> None:
    """Check that a policy can be saved and rebuilt, and that it supports its arms."""
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
                f"the total of an arm must be possible for {arm.pulls} rewards of {policy.name} "
                f"({policy.rewards}), but that of {arm.name!r} is {arm.total!r}.",
                code="bad-data",
            )


def check_deployed_params(policy: Policy, params: Mapping[str, float]) -> list[float]:
    """Return the row of parameters. They may be outside the range that is searched by default."""
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

    Policies that compute a table must be passed, because a state could request a table that takes too long.
    """
    name = state.policy["name"]
    if policy is None and name in tables:
        text = "the policy {!r:.60} computes a table and must be passed again: {}."
        raise InvalidRequest(text, name, PASS_POLICY_TO_LOAD, argument="policy", code="missing")
    return restore_policy(state.policy, policy, registry, of="of the state", call=PASS_POLICY_TO_LOAD)
