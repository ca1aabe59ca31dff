"""A policy that is an object of another library."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from banditune.adapters.object_methods import CONTEXT_ARGUMENTS
from banditune.core.descriptions import make_undescribed_field
from banditune.core.errors import InvalidRequest
from banditune.core.policy import Policy
from banditune.core.space import Parameter


def _refuse_scalar_call(*_: Any) -> Any:
    raise TypeError("the policy is an object of its own and has no scalar functions")


@dataclass(frozen=True)
class ExternalPolicy(Policy):
    """An object with methods that select an arm and take a reward, made anew for every run; see `wrap_policy`."""

    name: str
    parameters: tuple[Parameter, ...] = make_undescribed_field(())
    make: Callable[..., Any] = make_undescribed_field()
    select_by: str | None = None
    update_by: str | None = None
    rewards: str = "real"  # type: ignore[misc]

    plays_itself: ClassVar[bool] = True
    view = start = choose = update = staticmethod(_refuse_scalar_call)

    def memory(self, arms: int, dims: int) -> int:
        return 0

    def player(self, job: Any) -> Any:
        """Plays pieces of a job, run by run, in Python."""
        from banditune.adapters.external_simulator import ExternalSimulator

        return ExternalSimulator(job)


def wrap_policy(
    make: Callable[..., Any],
    parameters: Parameter | Sequence[Parameter],
    *,
    name: str | None = None,
    select: str | None = None,
    update: str | None = None,
    rewards: str = "real",
) -> ExternalPolicy:
    """A policy of another library, or any object with methods that select an arm and take its reward.

    `make` returns such an object, new for every run. Its arguments are the parameters, by their names, and any of `arms`,
    `horizon` and `seed`; who uses the seed plays the same again. Objects of MABWiser and River are known; of others,
    `select` and `update` name the methods where they have no usual names. `rewards` is what they can learn from: "real",
    "unit" for [0, 1] or "binary". Such policies play in processes, at the speed of their own Python.
    """
    told = (parameters,) if isinstance(parameters, Parameter) else tuple(parameters)
    if not callable(make) or not all(isinstance(parameter, Parameter) for parameter in told):
        raise InvalidRequest(
            "`foreign` must be told a function that makes the object, and its parameters such as Parameter('alpha', 0, 2, "
            f"theory=1), but got {make!r} and {parameters!r}."
        )
    if rewards not in ("real", "unit", "binary"):
        raise InvalidRequest(f'`rewards` must be "real", "unit" or "binary", but got {rewards!r}.')
    wanted = [parameter.name for parameter in told]
    found = inspect.signature(make).parameters
    odd = [argument for argument in found if argument not in (*wanted, *CONTEXT_ARGUMENTS)]
    missing = [parameter for parameter in wanted if parameter not in found]
    if odd or missing:
        what = f"it asks for {odd[0]!r}" if odd else f"it does not take {missing[0]!r}"
        raise InvalidRequest(f"`make` may have the arguments {', '.join((*wanted, *CONTEXT_ARGUMENTS))}, but {what}.")
    return ExternalPolicy(name or getattr(make, "__name__", "foreign").strip("<>"), told, make, select, update, rewards)
