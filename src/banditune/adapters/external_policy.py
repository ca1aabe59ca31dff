"""A policy that is an object of another library."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from banditune.adapters.object_methods import CONTEXT_ARGUMENTS
from banditune.core.checks import check_reward_kind
from banditune.core.descriptions import make_undescribed_field
from banditune.core.errors import InvalidRequest
from banditune.core.policy import Policy
from banditune.core.request_errors import make_argument_error
from banditune.core.space import Parameter


def _refuse_scalar_call(*_: Any) -> Any:
    raise TypeError("the policy is an object of another library and has no scalar functions")


@dataclass(frozen=True)
class ExternalPolicy(Policy):
    """A policy that is an object of another library, made by `wrap_policy`.

    A new object is made for every run.

    Parameters
    ----------
    name : str
        The name of the policy in results.
    parameters : tuple of Parameter
        Its parameters.
    factory : callable
        Returns a new object with methods that select an arm and accept a reward.
    select_method : str, optional
        The name of the method that selects an arm; a usual name by default.
    update_method : str, optional
        The name of the method that accepts an arm and its reward; a usual name by default.
    rewards : {"real", "unit", "binary"}
        The rewards that the object supports: any, in [0, 1], or 0 and 1.
    """

    name: str
    parameters: tuple[Parameter, ...] = make_undescribed_field(())
    factory: Callable[..., Any] = make_undescribed_field()
    select_method: str | None = None
    update_method: str | None = None
    rewards: str = "real"  # type: ignore[misc]

    is_external: ClassVar[bool] = True
    view = start = choose = update = staticmethod(_refuse_scalar_call)

    def memory(self, arms: int, dims: int, horizon: int) -> int:
        return 0

    def make_simulator(self, spec: Any) -> Any:
        """Return the simulator of these objects, which runs in Python.

        Parameters
        ----------
        spec : SimulationSpec
            The spec of the simulation.
        """
        from banditune.adapters.external_simulator import ExternalSimulator

        return ExternalSimulator(spec)


def wrap_policy(
    make: Callable[..., Any],
    parameters: Parameter | Sequence[Parameter],
    *,
    name: str | None = None,
    select: str | None = None,
    update: str | None = None,
    rewards: str = "real",
) -> ExternalPolicy:
    """Wrap a policy of another library, or any object with methods that select an arm and accept its reward.

    Such policies run as Python code, in worker processes. MABWiser's and River's objects need no method names.

    Parameters
    ----------
    make : callable
        Returns a new object for every run. Its arguments are the parameters, by name, and any of `arms`, `horizon` and
        `seed`. An object that draws all its random numbers from the seed repeats its runs exactly.
    parameters : Parameter or sequence of Parameter
        The parameters of the policy, with their ranges.
    name : str, optional
        The name of the policy in results; the name of `make` by default.
    select : str, optional
        The method that returns an arm, a number from 0. By default a usual name is used, such as `select_arm` or
        `predict`.
    update : str, optional
        The method that accepts an arm and its reward. By default a usual name is used, such as `update` or `learn`.
    rewards : {"real", "unit", "binary"}
        The rewards that the object supports: any, in [0, 1], or 0 and 1.

    Returns
    -------
    ExternalPolicy
        A policy for functions such as `tune`, `simulate` and `compare`. It cannot be deployed.

    Raises
    ------
    InvalidRequest
        If `make` or `parameters` cannot be used, or `make` has other arguments.

    Examples
    --------
    >>> import banditune as bt
    >>> class ExploreFirst:
    ...     def __init__(self, arms, pulls):
    ...         self.queue, self.totals = list(range(arms)) * pulls, [0.0] * arms
    ...
    ...     def select_arm(self):
    ...         return self.queue[0] if self.queue else self.totals.index(max(self.totals))
    ...
    ...     def update(self, arm, reward):
    ...         self.queue, self.totals[arm] = self.queue[1:], self.totals[arm] + reward
    >>> policy = bt.wrap_policy(ExploreFirst, bt.Parameter("pulls", 1, 20, textbook=5, integer=True))
    >>> policy.name
    'ExploreFirst'
    """
    params = (parameters,) if isinstance(parameters, Parameter) else tuple(parameters)
    if not callable(make) or not all(isinstance(parameter, Parameter) for parameter in params):
        raise InvalidRequest(
            "`wrap_policy` must be given a function that returns the object, and its parameters such as "
            f"Parameter('alpha', 0, 2, textbook=1), but got {make!r} and {parameters!r}.",
            argument="make",
            code="wrong-type",
        )
    check_reward_kind(rewards)
    names = [parameter.name for parameter in params]
    arguments = inspect.signature(make).parameters
    unknown = [argument for argument in arguments if argument not in (*names, *CONTEXT_ARGUMENTS)]
    missing = [parameter for parameter in names if parameter not in arguments]
    if unknown or missing:
        problem = f"it requires {unknown[0]!r}" if unknown else f"it does not take {missing[0]!r}"
        raise make_argument_error(
            "make", "own-code", f"may have the arguments {', '.join((*names, *CONTEXT_ARGUMENTS))}, but {problem}."
        )
    return ExternalPolicy(
        name or getattr(make, "__name__", "external").strip("<>"), params, make, select, update, rewards
    )
