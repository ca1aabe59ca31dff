"""Deploys policies with given parameters, or with the parameters of a tuning."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from banditune.core.checks import check_choice, check_is_policy, convert_to_array
from banditune.core.descriptions import describe
from banditune.core.errors import InvalidRequest
from banditune.core.messages import Argument
from banditune.core.policy import Policy
from banditune.core.request_errors import make_argument_error
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
from banditune.deployment.policy_restoration import PASS_POLICY_TO_DEPLOY, refuse_external_policy
from banditune.problems.generalized_linear import prepend_ones
from banditune.problems.problem_registry import get_reward_kind
from banditune.registry import collect_policies
from banditune.results.comparison_results import Comparison
from banditune.results.tuning_results import Tuning
from banditune.simulation.spec import SimulationSpec
from banditune.study.parameter_values import make_parameter_rows
from banditune.study.requests import MAX_HORIZON, check_count
from banditune.study.restoration import load_own_policy, restore_policy


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
    """Deploy a policy with given parameters.

    The policy is compiled, or loaded from the cache, before this returns.

    Parameters
    ----------
    policy : Policy
        A policy whose options are all numbers, such as `UCB1(noise=0.5)`.
    params : float, sequence of float or mapping of str to float, optional
        The parameter values, in the policy's order or by name; the textbook values by default.
    horizon : int
        The expected number of pulls.
    arms : int, optional
        The number of arms. They are numbered from 0. One of `arms`, `names` and `features` must be given.
    names : sequence of str or int, optional
        The names of the arms.
    features : array of float, optional
        The features of the arms, one row per arm, for a policy that uses features.
    seed : int
        The seed of the policy's random numbers. Replicas of a service should have different seeds.
    pending : {"ignore", "mean"}, optional
        The treatment of a pull without reward: it does not count, or it counts as a pull with the present mean of its arm.
        By default each policy has the setting that was better in measurements (docs/how-to/deployment.md).
    rewards : {"real", "unit", "binary"}
        The rewards that the parameters are for: any, in [0, 1], or 0 and 1. Except for "real", the first reward outside
        [0, 1] raises a Python warning.
    searched : mapping of str to (float, float), optional
        Both ends of the ranges in which the parameters were tuned. They are stored in the state and not used.

    Returns
    -------
    DeployedPolicy
        The policy, ready for `select_arm()` and `update(arm, reward)`.

    Raises
    ------
    InvalidRequest
        If an argument cannot be used, or the policy cannot be deployed. A policy from `wrap_policy` cannot.
    SimulationError
        If the policy cannot be compiled.

    Examples
    --------
    >>> import banditune as bt
    >>> policy = bt.deploy(bt.UCB1(noise=0.5), 0.3, horizon=1000, names=["red", "blue"], rewards="binary")
    >>> policy.select_arms(2)
    ['red', 'blue']
    >>> policy.update_many([("red", 1), ("blue", 0)])
    """
    check_is_policy(policy)
    if policy.is_external:
        raise refuse_external_policy(policy.name, params if isinstance(params, Mapping) else {})
    horizon = check_count("horizon", horizon, most=MAX_HORIZON)
    table = read_feature_rows(features)
    arm_names = resolve_arm_names(names, arms, table)
    (row,) = make_parameter_rows(
        SimulationSpec(policy, DeployedArms(len(arm_names)), horizon),
        None if params is None else make_params_row(params),
    )
    state = DeploymentState(
        describe(policy),
        {parameter.name: float(value) for parameter, value in zip(policy.parameters, row, strict=False)},
        horizon,
        check_count("seed", seed, 0),
        check_choice("pending", policy.pending_rewards if pending is None else pending, PENDING_MODES),
        (0, 0),
        tuple(
            ArmState(name, features=row) for name, row in zip(arm_names, table or [()] * len(arm_names), strict=True)
        ),
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
    """Deploy the policy of a tuning, or the best policy of a comparison.

    By default, the arms have the names and features of the problem.

    Parameters
    ----------
    tuning : Tuning or Comparison
        The result.
    policy : Policy, optional
        The policy that was tuned. It is needed if it is your own, unless the result names a file that still defines
        it.
    names : sequence of str or int, optional
        The names of the arms.
    features : array of float, optional
        The features of the arms, one row per arm. An intercept of the problem may be left out.
    seed : int
        The seed of the policy's random numbers. Replicas of a service should have different seeds.
    pending : {"ignore", "mean"}, optional
        The treatment of a pull without reward; see `deploy`.

    Returns
    -------
    DeployedPolicy
        The policy, ready for `select_arm()` and `update(arm, reward)`.

    Raises
    ------
    InvalidRequest
        If an argument cannot be used, or the policy cannot be deployed.
    SimulationError
        If the policy cannot be compiled.

    Examples
    --------
    >>> import banditune as bt
    >>> problem, search = bt.Bernoulli(arms=2, names=["red", "blue"]), bt.Search(validate=50)
    >>> result = bt.tune(bt.UCB1(noise=0.5), problem, horizon=100, budget=100, search=search)
    >>> bt.deployment.deploy_result(result).arms
    ('red', 'blue')
    """
    if isinstance(tuning, Comparison):
        best = tuning.entries[0]
        config, params, searched = best.recommended_policy, best.recommended_params, best.searched_ranges
    elif isinstance(tuning, Tuning) and tuning.setup.policy is not None:
        config, params, searched = tuning.setup.policy, tuning.params, tuning.searched_ranges
    else:
        raise InvalidRequest(
            f"a tuning or a comparison must be deployed, but got {type(tuning).__name__}.",
            argument="result",
            code="wrong-type",
        )
    if isinstance(tuning, Tuning):
        warn_of_worse_value(tuning)
    problem = tuning.setup.problem
    if "select_method" in config:  # a policy made by `bt.wrap_policy`
        raise refuse_external_policy(config["name"], params)
    if policy is None and tuning.setup.policy_source is not None:
        policy = load_own_policy(tuning.setup.policy_source)
    restored = restore_policy(
        config, policy, collect_policies().without_plugins(), of="that was tuned", call=PASS_POLICY_TO_DEPLOY
    )
    if features is None and restored.needs_features:
        features = problem.get("features")
    elif features is not None and problem.get("intercept"):
        features = prepend_ones(features)
    return deploy(
        restored,
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


def warn_of_worse_value(tuning: Tuning) -> None:
    """Warn if a tuned value is significantly worse than the textbook policy. A comparison recommends the latter."""
    if tuning.gain.high < 0:
        warnings.warn(
            f"the tuned value has {-tuning.gain.mean:.4g} more regret than the textbook policy (95%: "
            f"{-tuning.gain.high:.4g} to {-tuning.gain.low:.4g}): deploy that one, or search again.",
            stacklevel=3,
        )


def count_arms(problem: Mapping[str, Any]) -> int | None:
    """Count the arms of a described problem; None if its description does not state them."""
    if "arms" in problem:
        return check_count("arms", problem["arms"], 1, MAX_DEPLOYED_ARMS)
    means = convert_to_array(problem.get("means"))
    return means.shape[1] if means.ndim == 2 else None


def resolve_arm_names(names: Any, arms: Any, table: list[Any]) -> list[ArmName]:
    """Return the names of arms as given, or numbers from 0."""
    if names is None and arms is None and not table:
        raise InvalidRequest(
            "{}, {} or {} must be given, because a policy needs arms.",
            *(Argument("arms"), Argument("names"), Argument("features")),
            argument="arms",
            code="missing",
        )
    if isinstance(names, str) or not isinstance(names, Sequence | np.ndarray | None):
        raise make_argument_error(
            "names", "wrong-type", f"must be a list of names, one per arm, but got {names!r:.80}."
        )
    if names is None:
        arm_names: list[ArmName] = list(
            range(check_count("arms", len(table) if arms is None else arms, 1, MAX_DEPLOYED_ARMS))
        )
    else:
        arm_names = [check_arm_name(name) for name in names]
    if (arms is not None and arms != len(arm_names)) or (table and len(table) != len(arm_names)):
        counts = f"{len(arm_names)} names" if names is not None else f"{len(arm_names)} arms"
        raise InvalidRequest(
            f"names, arms and features must have the same number, but got {counts}, arms={arms!r} and {len(table)} "
            "rows of features.",
            argument="names",
            code="conflict",
        )
    return arm_names


def make_params_row(params: Any) -> Any:
    """Convert parameters to the form of `make_parameter_rows`: one row."""
    if isinstance(params, Mapping):
        return dict(params) if params else None
    return [np.atleast_1d(convert_to_array(params))]
