"""A user's own policy, on arm totals or on ridge regression."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from banditune.core.checks import check_scalar_function
from banditune.core.descriptions import make_undescribed_field
from banditune.core.errors import InvalidRequest
from banditune.core.policy import FROM_PROBLEM
from banditune.core.space import Parameter
from banditune.policies.base_policies import RidgePolicy, TotalsPolicy


@dataclass(frozen=True)
class CustomPolicy(TotalsPolicy):
    """A user's policy on arm totals; see `define_policy`."""

    name: str
    choose: Callable[..., Any] = make_undescribed_field()
    parameters: tuple[Parameter, ...] = make_undescribed_field(())


def define_policy(name: str, choose: Callable[..., Any], *, parameters: Any = ()) -> CustomPolicy:
    """A policy of your own: `choose(state, setting, step, params, stream) -> arm` on `state.pulls` and `state.total`.

    Steps and arms are counted from 0.
    """
    return CustomPolicy(str(name), choose, check_policy_parameters(choose, parameters))


def check_policy_parameters(choose: Any, parameters: Any) -> tuple[Parameter, ...]:
    """The parameters of a user's policy, one or several."""
    found = (parameters,) if isinstance(parameters, Parameter) else tuple(parameters)
    if not callable(choose) or not all(isinstance(parameter, Parameter) for parameter in found):
        raise InvalidRequest(
            f"`choose` must be a function and `parameters` Parameter records, but got {choose!r}, {found!r}."
        )
    check_scalar_function("choose", choose, "state, setting, step, params, stream", "an arm")
    return found


@dataclass(frozen=True)
class CustomRidgePolicy(RidgePolicy):
    """A user's policy on ridge regression; see `define_ridge_policy`."""

    name: str
    prior: Any = FROM_PROBLEM
    noise: Any = FROM_PROBLEM
    choose: Callable[..., Any] = make_undescribed_field()
    parameters: tuple[Parameter, ...] = make_undescribed_field(())


def define_ridge_policy(
    name: str, choose: Callable[..., Any], *, parameters: Any = (), prior: Any = FROM_PROBLEM, noise: Any = FROM_PROBLEM
) -> CustomRidgePolicy:
    """A linear policy of your own: `choose(state, setting, step, params, stream) -> arm`, with `state.score[arm]` the
    estimated reward x'theta of an arm and `state.width[arm]` the root of x' G^-1 x, by ridge regression.

    `prior` is the Gaussian (mean, covariance) of theta and `noise` the standard deviation of rewards, so that noise times
    width is the posterior standard deviation of a score. `sample_scores(state, setting, scale, stream)` draws theta from
    N(estimate, scale^2 G^-1) and puts the scores under it into `state.shift`.
    """
    return CustomRidgePolicy(str(name), prior, noise, choose, check_policy_parameters(choose, parameters))
