"""Deploys policies: with parameters, or as a tuning found them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from banditune.checks import array_of
from banditune.contracts import BadRequest, Policy
from banditune.descriptions import described
from banditune.engine.run import Job
from banditune.live.agent import Arms
from banditune.live.policy import Live, row_of
from banditune.live.state import (
    MOST_ARMS,
    PENDING,
    REWARDS,
    Arm,
    Name,
    State,
    check_arms_of,
    check_name,
    ends_of,
    policy_told,
)
from banditune.problems import rewards_in
from banditune.problems.linear import with_ones
from banditune.results import Comparison, Tuning
from banditune.shelf import every_policy
from banditune.study.door import LONGEST, one_of, rows, whole


def deploy(
    policy: Policy,
    params: Any = None,
    *,
    horizon: int,
    arms: int | None = None,
    names: Sequence[Name] | None = None,
    features: Any = None,
    seed: int = 0,
    pending: str | None = None,
    rewards: str = "real",
    searched: Mapping[str, Sequence[float]] | None = None,
) -> Live:
    """Put a policy to work: `names` of the arms, or how many `arms` there are, which are then numbered from 0.

    `params` are numbers, or names with numbers; without them theory's. `features` has a row per arm. `pending` says how
    pulls count whose reward is not there yet: "ignore", or "mean"; without it the policy's own setting counts, which is
    the better one by measurement (see docs/live.md). `rewards` are those that the
    parameters are for, "binary", "unit" for [0, 1], or "real"; after the first two, the first reward outside [0, 1] raises
    a warning. `searched` holds both ends of the ranges in which the parameters were tuned; it is kept for the record.
    Compiles the policy, or loads it from the cache, before it returns.
    """
    if not isinstance(policy, Policy):
        raise BadRequest(f"`policy` must be a policy such as UCB1(), but got {policy!r:.80}.")
    if policy.plays_itself:
        raise not_ours(policy.name, params if isinstance(params, Mapping) else {})
    horizon = whole("horizon", horizon, most=LONGEST)
    table = feature_rows(features)
    known = names_of(names, arms, table)
    (row,) = rows(Job(policy, Arms(len(known)), horizon), None if params is None else one_row(params))
    state = State(
        described(policy),
        {parameter.name: float(value) for parameter, value in zip(policy.parameters, row, strict=False)},
        horizon,
        whole("seed", seed, 0),
        one_of("pending", policy.pending if pending is None else pending, PENDING),
        (0, 0),
        tuple(Arm(name, features=row) for name, row in zip(known, table or [()] * len(known), strict=True)),
        one_of("rewards", rewards, REWARDS),
        ends_of(searched or {}),
    )
    check_arms_of(state.arms)
    return Live(policy, state)


def deploy_tuning(
    tuning: Any,
    policy: Policy | None = None,
    *,
    names: Sequence[Name] | None = None,
    features: Any = None,
    seed: int = 0,
    pending: str | None = None,
) -> Live:
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
        raise BadRequest(f"a tuning or a comparison must be deployed, but got {type(tuning).__name__}.")
    problem = tuning.setup.problem
    if "select_by" in told:  # what a guest is told by; see `bt.foreign`
        raise not_ours(told["name"], params)
    found = policy_told(told, policy, every_policy(), of="that was tuned", call="tuning.policy(mine)")
    if features is None and found.needs_features:
        features = problem.get("features")
    elif features is not None and problem.get("intercept"):
        features = with_ones(features)
    return deploy(
        found,
        dict(params),
        horizon=tuning.setup.horizon,
        arms=arms_in(problem) if features is None else None,
        names=problem.get("names") or None if names is None else names,
        features=features,
        seed=seed,
        pending=pending,
        rewards=rewards_in(problem),
        searched=searched,
    )


def not_ours(name: Any, params: Mapping[str, Any]) -> BadRequest:
    """Why a guest is not deployed, and what to do instead."""
    told = ", ".join(f"{key}={value!r:.40}" for key, value in params.items())
    return BadRequest(
        f"a policy of this library must be deployed, but {name!r:.60} is an object of another one, which selects arms and "
        f"takes rewards by itself: make it there{f' with {told}' if told else ''}, or tune and deploy a policy from the "
        "shelf, such as ucb1-step, the rule of most."
    )


def arms_in(problem: Mapping[str, Any]) -> int | None:
    """How many arms a described problem has."""
    if "arms" in problem:
        return whole("arms", problem["arms"], 1, MOST_ARMS)
    means = array_of(problem.get("means"))
    return means.shape[1] if means.ndim == 2 else None


def feature_rows(features: Any) -> list[tuple[float, ...]]:
    """A row of features per arm; none where there are none."""
    if features is None:
        return []
    table = array_of(features)
    if table.ndim != 2 or 0 in table.shape:
        raise BadRequest(
            f"`features` must have a row of numbers for every arm, but got an array of shape {table.shape}."
        )
    return [row_of(row) for row in table]


def names_of(names: Any, arms: Any, table: list[Any]) -> list[Name]:
    """Names of arms: as told, or numbers from 0."""
    if names is None and arms is None and not table:
        raise BadRequest("either `arms`, `names` or `features` must be given, so that the policy knows its arms.")
    if isinstance(names, str) or not isinstance(names, Sequence | np.ndarray | None):
        raise BadRequest(f"`names` must be a list of names, one per arm, but got {names!r:.80}.")
    if names is None:
        found: list[Name] = list(range(whole("arms", len(table) if arms is None else arms, 1, MOST_ARMS)))
    else:
        found = [check_name(name) for name in names]
    if (arms is not None and arms != len(found)) or (table and len(table) != len(found)):
        told = f"{len(found)} names" if names is not None else f"{len(found)} arms"
        raise BadRequest(
            f"names, arms and features must be of the same number, but got {told}, arms={arms!r} and {len(table)} rows of "
            "features."
        )
    return found


def one_row(params: Any) -> Any:
    """Parameters as the one row that they are."""
    if isinstance(params, Mapping):
        return dict(params) if params else None
    return [np.atleast_1d(array_of(params))]
