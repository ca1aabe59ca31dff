"""Deploys policies: with given parameters, or with those that a tuning found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from banditune.core.checks import convert_to_array
from banditune.core.descriptions import describe
from banditune.core.errors import InvalidRequest
from banditune.core.policy import Policy
from banditune.deployment.agent import DeployedArms
from banditune.deployment.deployed_policy import DeployedPolicy
from banditune.deployment.deployment_state import (
    MAX_DEPLOYED_ARMS,
    PENDING_MODES,
    TUNED_REWARD_KINDS,
    ArmName,
    ArmState,
    DeploymentState,
    check_arm_name,
    check_arm_states,
    parse_range_limits,
)
from banditune.deployment.feature_rows import read_feature_rows
from banditune.deployment.policy_restoration import refuse_external_policy, restore_policy
from banditune.problems.generalized_linear import prepend_ones
from banditune.problems.problem_registry import get_reward_kind
from banditune.registry import collect_policies
from banditune.results.comparison_results import Comparison
from banditune.results.tuning_results import Tuning
from banditune.simulation.spec import SimulationSpec
from banditune.study.parameter_values import make_parameter_rows
from banditune.study.requests import MAX_HORIZON, check_choice, check_count


def deploy(
    policy: Policy,
    params: Any = None,
    *,
    horizon: int,
    arms: int | None = None,
    names: Sequence[ArmName] | None = None,
    features: Any = None,
    seed: int = 0,
    pending: str | None = None,
    rewards: str = "real",
    searched: Mapping[str, Sequence[float]] | None = None,
) -> DeployedPolicy:
    """Put a policy to work: `names` of the arms, or how many `arms` there are, which are then numbered from 0.

    `params` are numbers, or names with numbers; without them theory's. `features` has a row per arm. `pending` says how
    pulls count whose reward is not there yet: "ignore", or "mean"; without it the policy's own setting counts, which is
    the better one by measurement (see docs/live.md). `rewards` are those that the
    parameters are for, "binary", "unit" for [0, 1], or "real"; after the first two, the first reward outside [0, 1] raises
    a warning. `searched` holds both ends of the ranges in which the parameters were tuned; it is kept for the record.
    Compiles the policy, or loads it from the cache, before it returns.
    """
    if not isinstance(policy, Policy):
        raise InvalidRequest(f"`policy` must be a policy such as UCB1(), but got {policy!r:.80}.")
    if policy.plays_itself:
        raise refuse_external_policy(policy.name, params if isinstance(params, Mapping) else {})
    horizon = check_count("horizon", horizon, most=MAX_HORIZON)
    table = read_feature_rows(features)
    known = resolve_arm_names(names, arms, table)
    (row,) = make_parameter_rows(
        SimulationSpec(policy, DeployedArms(len(known)), horizon), None if params is None else make_params_row(params)
    )
    state = DeploymentState(
        describe(policy),
        {parameter.name: float(value) for parameter, value in zip(policy.parameters, row, strict=False)},
        horizon,
        check_count("seed", seed, 0),
        check_choice("pending", policy.pending if pending is None else pending, PENDING_MODES),
        (0, 0),
        tuple(ArmState(name, features=row) for name, row in zip(known, table or [()] * len(known), strict=True)),
        check_choice("rewards", rewards, TUNED_REWARD_KINDS),
        parse_range_limits(searched or {}),
    )
    check_arm_states(state.arms)
    return DeployedPolicy(policy, state)


def deploy_result(
    tuning: Any,
    policy: Policy | None = None,
    *,
    names: Sequence[ArmName] | None = None,
    features: Any = None,
    seed: int = 0,
    pending: str | None = None,
) -> DeployedPolicy:
    """Put to work what a tuning found, or the best policy of a comparison; your own policy must be passed again.

    Arms have the names and features of the problem, unless told otherwise; where the problem has an intercept, features
    need not hold it.
    """
    if isinstance(tuning, Comparison):
        best = tuning.entries[0]
        told, params, searched = best.recommended_policy, best.recommended, best.searched
    elif isinstance(tuning, Tuning) and tuning.setup.policy is not None:
        told, params, searched = tuning.setup.policy, tuning.params, tuning.searched
    else:
        raise InvalidRequest(f"a tuning or a comparison must be deployed, but got {type(tuning).__name__}.")
    problem = tuning.setup.problem
    if "select_by" in told:  # what a guest is told by; see `bt.wrap_policy`
        raise refuse_external_policy(told["name"], params)
    found = restore_policy(told, policy, collect_policies(), of="that was tuned", call="tuning.policy(mine)")
    if features is None and found.needs_features:
        features = problem.get("features")
    elif features is not None and problem.get("intercept"):
        features = prepend_ones(features)
    return deploy(
        found,
        dict(params),
        horizon=tuning.setup.horizon,
        arms=count_arms(problem) if features is None else None,
        names=problem.get("names") or None if names is None else names,
        features=features,
        seed=seed,
        pending=pending,
        rewards=get_reward_kind(problem),
        searched=searched,
    )


def count_arms(problem: Mapping[str, Any]) -> int | None:
    """How many arms a described problem has."""
    if "arms" in problem:
        return check_count("arms", problem["arms"], 1, MAX_DEPLOYED_ARMS)
    means = convert_to_array(problem.get("means"))
    return means.shape[1] if means.ndim == 2 else None


def resolve_arm_names(names: Any, arms: Any, table: list[Any]) -> list[ArmName]:
    """Names of arms: as told, or numbers from 0."""
    if names is None and arms is None and not table:
        raise InvalidRequest("either `arms`, `names` or `features` must be given, so that the policy knows its arms.")
    if isinstance(names, str) or not isinstance(names, Sequence | np.ndarray | None):
        raise InvalidRequest(f"`names` must be a list of names, one per arm, but got {names!r:.80}.")
    if names is None:
        found: list[ArmName] = list(
            range(check_count("arms", len(table) if arms is None else arms, 1, MAX_DEPLOYED_ARMS))
        )
    else:
        found = [check_arm_name(name) for name in names]
    if (arms is not None and arms != len(found)) or (table and len(table) != len(found)):
        told = f"{len(found)} names" if names is not None else f"{len(found)} arms"
        raise InvalidRequest(
            f"names, arms and features must be of the same number, but got {told}, arms={arms!r} and {len(table)} rows of "
            "features."
        )
    return found


def make_params_row(params: Any) -> Any:
    """Parameters as the one row that they are."""
    if isinstance(params, Mapping):
        return dict(params) if params else None
    return [np.atleast_1d(convert_to_array(params))]
