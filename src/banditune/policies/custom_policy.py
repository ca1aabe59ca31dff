"""Policies of users, with arm totals or with ridge regression."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from banditune.core.checks import check_reward_kind, check_scalar_function, check_scratch
from banditune.core.descriptions import make_undescribed_field
from banditune.core.errors import InvalidRequest
from banditune.core.messages import Argument
from banditune.core.option_types import Noise, Option, RewardKind, WeightPolicyPrior
from banditune.core.policy import FROM_PROBLEM, ScratchShape, list_choose_arguments
from banditune.core.space import Parameter
from banditune.policies.base_policies import RidgePolicy, TotalsPolicy


def make_rewards_field() -> Any:
    """Make the field `rewards`. A policy for any rewards has the same description as before the field existed."""
    return field(default="real", metadata={"described": lambda policy: policy.rewards != "real"})


@dataclass(frozen=True)
class CustomPolicy(TotalsPolicy):
    """A user's policy on arm totals; see `define_policy`."""

    name: str
    choose: Callable[..., Any] = make_undescribed_field()
    parameters: tuple[Parameter, ...] = make_undescribed_field(())
    scratch: tuple[tuple[str, ScratchShape], ...] = make_undescribed_field(())
    rewards: str = make_rewards_field()  # type: ignore[misc]


def define_policy(
    name: str,
    choose: Callable[..., Any],
    *,
    parameters: Any = (),
    rewards: RewardKind = "real",
    scratch: Mapping[str, ScratchShape] | None = None,
) -> CustomPolicy:
    """Define a policy of your own on pulls and total rewards of the arms.

    Steps and arms are counted from 0.

    Parameters
    ----------
    name : str
        The name of the policy in results.
    choose : callable
        Scalar function `choose(state, setting, step, params, stream) -> arm`. `state.pulls` and `state.total` hold each
        arm's pulls and total reward, and `params` the values of the parameters.
    parameters : Parameter or sequence of Parameter
        The parameters that can be tuned. None by default.
    rewards : {"real", "unit", "binary"}
        The rewards that the policy supports: any, in [0, 1], or 0 and 1. Problems with other rewards are refused.
    scratch : mapping of str to shape
        Arrays of floats for intermediate results, such as one probability per arm. They are fields of the last argument
        of `choose`, `scratch`. A shape is "arms", "dims", "horizon", a whole number, or a tuple of these, which are
        multiplied. All arrays are 0 at every call of `choose`. None by default.

    Returns
    -------
    Policy
        The policy, for functions such as `tune` and `simulate`.

    Raises
    ------
    InvalidRequest
        If `choose` is not a function of these arguments, may end without an arm, or another argument cannot be used.

    Examples
    --------
    >>> import banditune as bt
    >>> @bt.kernel.scalar
    ... def choose(state, setting, step, params, stream):
    ...     if bt.kernel.uniform(stream) < params[0]:
    ...         return bt.kernel.draw_arm(state, stream)
    ...     return bt.kernel.argmax_mean(state)
    >>> policy = bt.define_policy("my-greedy", choose, parameters=bt.Parameter("epsilon", 0, 1, textbook=0.1))
    >>> bt.simulate(policy, bt.Bernoulli(arms=3), [0.1, 0.5], horizon=100, runs=50).shape
    (2, 50)
    """
    records, arrays = check_choose_options(choose, parameters, scratch)
    return CustomPolicy(str(name), choose, records, arrays, check_reward_kind(rewards))


def check_choose_options(
    choose: Any, parameters: Any, scratch: Any
) -> tuple[tuple[Parameter, ...], tuple[tuple[str, ScratchShape], ...]]:
    """Check the parameters of a user's policy, one or several, its scratch arrays, and that `choose` takes both."""
    records = check_parameters(parameters)
    if not callable(choose):
        raise InvalidRequest(
            "{} must be a function, but got {!r:.80}.", Argument("choose"), choose, argument="choose", code="own-code"
        )
    arrays = check_scratch(scratch or {})
    check_scalar_function("choose", choose, list_choose_arguments(arrays), "an arm")
    return records, tuple(arrays.items())


def check_parameters(parameters: Any) -> tuple[Parameter, ...]:
    """Check the parameters of a user's policy, one or several."""
    records = (parameters,) if isinstance(parameters, Parameter) else tuple(parameters)
    if not all(isinstance(parameter, Parameter) for parameter in records):
        raise InvalidRequest(
            "{} must be Parameter records, but got {!r:.200}.",
            *(Argument("parameters"), records),
            argument="parameters",
            code="own-code",
        )
    return records


@dataclass(frozen=True)
class CustomRidgePolicy(RidgePolicy):
    """A user's policy on ridge regression; see `define_ridge_policy`."""

    name: str
    prior: Option[WeightPolicyPrior] = FROM_PROBLEM
    noise: Option[Noise] = FROM_PROBLEM
    choose: Callable[..., Any] = make_undescribed_field()
    parameters: tuple[Parameter, ...] = make_undescribed_field(())
    scratch: tuple[tuple[str, ScratchShape], ...] = make_undescribed_field(())


def define_ridge_policy(
    name: str,
    choose: Callable[..., Any],
    *,
    parameters: Any = (),
    prior: Any = FROM_PROBLEM,
    noise: Any = FROM_PROBLEM,
    scratch: Mapping[str, ScratchShape] | None = None,
) -> CustomRidgePolicy:
    """Define a linear policy of your own on ridge regression.

    `state.score[arm]` is the estimated reward x'theta of an arm, and `state.width[arm]` the root of x' G^-1 x. Noise
    times width is the posterior standard deviation of a score. `sample_scores(state, setting, scale, stream)` draws
    theta from N(estimate, scale^2 G^-1), and writes the scores under it into `state.arm_values`.

    Parameters
    ----------
    name : str
        The name of the policy in results.
    choose : callable
        Scalar function `choose(state, setting, step, params, stream) -> arm`. Steps and arms are counted from 0.
    parameters : Parameter or sequence of Parameter
        The parameters that can be tuned. None by default.
    prior : (mean, covariance) or "problem"
        Gaussian prior of theta: the mean as a number or a vector, the covariance as a number or a matrix. By default it
        is taken from the problem.
    noise : float or "problem"
        Standard deviation of a reward around its arm's mean, above 0. By default it is taken from the problem.
    scratch : mapping of str to shape
        Arrays of floats, fields of the last argument of `choose`, as in `define_policy`. None by default.

    Returns
    -------
    Policy
        The policy, for problems whose arms have features.

    Raises
    ------
    InvalidRequest
        If `choose` is not a function of these arguments, or if another argument cannot be used.

    Examples
    --------
    >>> import banditune as bt
    >>> @bt.kernel.scalar
    ... def choose(state, setting, step, params, stream):
    ...     bt.kernel.sample_scores(state, setting, params[0], stream)
    ...     return bt.kernel.argmax_score(state.arm_values)
    >>> policy = bt.kernel.define_ridge_policy(
    ...     "sampling", choose, parameters=bt.Parameter("gamma", 0, 1, textbook=0.5), noise=0.5
    ... )
    >>> bt.simulate(policy, bt.Linear(arms=5, dims=2), [0.1, 0.5], horizon=100, runs=50).shape
    (2, 50)
    """
    return CustomRidgePolicy(str(name), prior, noise, choose, *check_choose_options(choose, parameters, scratch))
