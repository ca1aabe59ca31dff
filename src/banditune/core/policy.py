"""The contract of a policy: scalar functions on an array of floats, with optional shortcuts and a GPU version."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from numpy.typing import NDArray

from banditune.core.arrays import FloatArray
from banditune.core.errors import InvalidRequest

PRIOR_KINDS = {
    "beta": "(a, b) of the Beta distribution of an arm's mean",
    "normal": "(mean, standard deviation) of an arm's mean",
    "theta": "(mean, covariance) of theta",
    "": "one of another kind",
}
"""The kinds of priors of policies and problems, with their meaning."""


FROM_PROBLEM: Any = "problem"
"""The value of a policy's `noise` or `prior` that is taken from the problem."""


class Setting(NamedTuple):
    """The information about a problem that a policy has: the argument `setting` of its functions.

    Parameters
    ----------
    arms : int
        Number of arms.
    dims : int
        Number of features of an arm; 0 if arms have none.
    horizon : int
        Steps in a run.
    features : ndarray
        Features of the arms, a row per dimension and a column per arm.
    options : ndarray
        The return value of the policy's `options`.
    """

    arms: int
    dims: int
    horizon: int
    features: FloatArray
    """A row per dimension and a column per arm."""
    options: NDArray[Any]


class Shortcut(NamedTuple):
    """A faster way to simulate a policy, with the same distribution of regrets.

    Parameters
    ----------
    name : str
        The shortcut's name.
    advance : callable
        Scalar function that simulates from one step to another and fills `pulls`. Its arguments are `(instance, setting,
        params, agent, rewards, floats, integers, pulls, first, last)`. It returns False if a reward is not finite.
    replaces : tuple of callable
        The policy's `view`, `start`, `choose` and `update`. A policy with another function is simulated step by step.
    memory : callable
        Function of (arms, dims, horizon) that returns the numbers of its floats and integers. Integers are from 0 to
        2^32 - 1.
    is_valid : callable
        Function of (options, row): whether its proof holds for the policy's options and a row of parameters. Other rows
        are simulated step by step.
    is_bitwise_exact : bool
        Whether it pulls exactly the arms of the plain loop, so that regrets are equal bit by bit. Otherwise they have the
        same distribution, or are equal except for rounding of indices.
    is_applicable : callable
        Function of (policy, problem): whether it may be used for both. By default it always may.
    fill_slots : callable
        Function of (problem) that returns functions for the shortcut's own slots, by the names of the slots.
    reads_rewards : callable
        Function of (problem): whether it reads rewards one by one. By default it does.
    float32_functions : mapping of callable to callable
        Functions in single precision, by the functions that they replace on a GPU if `select_dtype` returns "float32".
    select_dtype : callable
        Function of (policy, problem, horizon) that returns "float32" or "float64", the type of its floats on a GPU.
    needs_float64 : callable
        Function of (row): whether a row of parameters is simulated in float64 in any case.
    """

    name: str
    advance: Callable[..., Any]
    replaces: tuple[Callable[..., Any], ...]
    memory: Callable[[int, int, int], tuple[int, int]]
    is_valid: Callable[[Any, FloatArray], bool]
    is_bitwise_exact: bool
    is_applicable: Callable[[Any, Any], bool] = lambda policy, problem: True
    fill_slots: Callable[[Any], dict[str, Callable[..., Any]]] = lambda problem: {}
    reads_rewards: Callable[[Any], bool] = lambda problem: True
    float32_functions: Mapping[Callable[..., Any], Callable[..., Any]] = MappingProxyType({})
    select_dtype: Callable[[Any, Any, int], str] = lambda policy, problem, horizon: "float64"
    needs_float64: Callable[[FloatArray], bool] = lambda row: False


class WarpVersion(NamedTuple):
    """Functions with which the threads of a warp simulate a policy on a GPU, in lock-step.

    The fields `view(registers, shared, setting)`, `start`, `choose` and `update` are as in `Policy`, written for a warp
    (`banditune.simulation.gpu`). They replace the functions in `replaces`. `count_registers(share, dims)` and
    `count_shared(arms, dims)` count the numbers that a thread and a warp keep. `is_valid` is as in `Shortcut`.
    `select_dtype` is a function of (policy, features of the first instances, horizon) that returns "float64" or
    "float32". `needs_float64` returns whether a row of parameters is simulated in float64 in any case.
    """

    view: Callable[..., Any]
    start: Callable[..., Any]
    choose: Callable[..., Any]
    update: Callable[..., Any]
    count_registers: Callable[[int, int], int]
    count_shared: Callable[[int, int], int]
    replaces: tuple[Callable[..., Any], ...]
    is_valid: Callable[[Any, FloatArray], bool]
    select_dtype: Callable[[Any, FloatArray, int], str] = lambda policy, features, horizon: "float64"
    needs_float64: Callable[[FloatArray], bool] = lambda row: False


ScratchShape = str | int | tuple[str | int, ...]
"""The size of a scratch array: "arms", "dims", "horizon", a whole number, or a tuple of these, which are multiplied."""


FUNCTION_ARGUMENTS = MappingProxyType(
    {
        "view": "memory, setting",
        "start": "state, setting",
        "choose": "state, setting, step, params, stream",
        "update": "state, setting, step, params, arm, reward, stream",
        "recall": "state, setting, pulls, totals",
        "resume": "state, setting, params, pulls, totals",
    }
)
"""The arguments of a policy's scalar functions."""


def list_choose_arguments(scratch: Any) -> str:
    """List the arguments of `choose`, for a policy with these scratch arrays."""
    return FUNCTION_ARGUMENTS["choose"] + (", scratch" if scratch else "")


SIZE_ARGUMENTS = "arms, dims, horizon"
"""The arguments of functions that return an amount of memory."""


class Policy:
    """A bandit algorithm as scalar functions on an array of floats, its memory.

    `view(memory, setting) -> state` returns named parts of the memory, and `start(state, setting)` resets them.
    `choose(state, setting, step, params, stream) -> arm` selects an arm; ties go to the lowest number. `update(state,
    setting, step, params, arm, reward, stream)` updates the state after a reward. Steps and arms are counted from 0.
    """

    name: Any
    parameters: Any = ()
    shortcuts: ClassVar[tuple[Shortcut, ...]] = ()
    warp_version: ClassVar[WarpVersion | None] = None
    rewards: ClassVar[str] = "real"
    """The rewards that the policy accepts: "real", "unit" for [0, 1], or "binary" for 0 and 1."""
    pulls_every_arm: ClassVar[bool] = False
    scratch: Any = MappingProxyType({})
    """Scratch arrays by name, with their sizes: `choose` takes a record of them as its last argument.

    All are 0 at every call of `choose`. See `ScratchShape`.
    """
    needs_features: ClassVar[bool] = False
    """Whether arms must have features."""
    is_external: ClassVar[bool] = False
    """Whether the policy is Python code that cannot be compiled. `make_simulator(spec)` then returns its simulator."""
    failure_messages: ClassVar[dict[int, str]] = {}
    """Messages for the negative numbers that `choose` may return: the reasons why the policy could not continue."""
    prior_kind: ClassVar[str] = ""
    """The kind of its `prior`, a key of `PRIOR_KINDS`. A policy without a prior pulls arms without rewards first."""
    textbook_options: ClassVar[Mapping[str, Any]] = {}
    """The textbook's `noise` and `prior`, for rewards in [0, 1].

    They are those of the baseline if the policy takes them from the problem.
    """
    smallest_prior_shape: ClassVar[float] = 0
    """The smallest shape of a Beta prior that the policy accepts."""
    has_prior_per_arm: ClassVar[bool] = False
    """Whether the prior may differ between arms."""
    pending_rewards: ClassVar[str] = "mean"
    """The default treatment of pulls without reward in a deployed policy: "mean" or "ignore".

    With "mean" they count as pulls with the mean reward of their arm. The policies of this package have the value that was
    better in measurements (docs/how-to/deployment.md). For other policies "mean" is safe. With "ignore" a deterministic
    rule would pull the same arm again and again.
    """
    prior_moments: Any = None
    """Mean and standard deviation of the reward that the prior predicts for an arm without rewards, if it has such a prior.
    """

    view: Callable[..., Any]
    start: Callable[..., Any]
    choose: Callable[..., Any]
    update: Callable[..., Any]

    recall: Any = None
    """`recall(state, setting, pulls, totals)` copies each arm's pulls and total reward from the memory to two arrays.
    """
    resume: Any = None
    """`resume(state, setting, params, pulls, totals)`, called after `start`, restores the memory after those pulls.

    A policy with both functions can be deployed. They are used to save it, and to add and remove arms.
    """

    def memory(self, arms: int, dims: int, horizon: int) -> int:
        """Return the number of floats of the memory."""
        raise InvalidRequest(
            f"the policy {type(self).__name__} must define `memory(arms, dims, horizon)`.", code="own-code"
        )

    def limits(self, name: str) -> tuple[float, float]:
        """Return the smallest and the largest value of a parameter that the policy's options allow.

        These limits are additional to those of the `Parameter`.
        """
        return -math.inf, math.inf

    def check(self, features: FloatArray, horizon: int) -> None:
        """Raise an error for features (instances, dims, arms) that the policy does not support."""

    def make_simulator(self, spec: Any) -> Any:
        """Return the object that simulates chunks of a spec, for a policy that cannot be compiled (`is_external`)."""
        raise InvalidRequest(f"the policy {type(self).__name__} must define `make_simulator(spec)`.", code="own-code")

    def options(self, arms: int, dims: int, horizon: int) -> Sequence[float] | NDArray[Any]:
        """Return the fixed numbers `setting.options` of scalar functions. An array, of any type, is a table."""
        return ()

    def learn_from_retired_arms(self, features: FloatArray, pulls: FloatArray, totals: FloatArray) -> Policy:
        """Return the policy with a prior updated for arms that were removed. Each has a row of features.

        Without features, arms have no information about other arms.
        """
        return self

    def choose_after_horizon(self, pulls: FloatArray, totals: FloatArray) -> int | None:
        """Return the arm to pull after the horizon if a policy's table ends there; None if it continues as before."""
        return None
