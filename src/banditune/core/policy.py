"""The contract of a policy: scalar functions on a strip of memory, with optional shortcuts and a warp version for GPUs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from numpy.typing import NDArray

from banditune.core.arrays import FloatArray
from banditune.core.errors import InvalidRequest

PRIOR_KINDS = {
    "beta": "(a, b) of the Beta law of an arm's mean",
    "normal": "(mean, standard deviation) of an arm's mean",
    "theta": "(mean, covariance) of theta",
    "": "one of another kind",
}
"""What the priors of policies and problems are."""


FROM_PROBLEM = "problem"
"""The value of a policy's `noise` or `prior` that is to be taken from the problem."""


class Setting(NamedTuple):
    """What the agent may know."""

    arms: int
    dims: int
    horizon: int
    features: FloatArray
    """A row per dimension and a column per arm."""
    options: NDArray[Any]


class Shortcut(NamedTuple):
    """A faster way to play a policy, exact in law: `advance` fills `pulls` from one step to another.

    It returns False where it met a reward that is not finite. `stands_for` are the functions of the policy that it plays:
    a policy that has others is played step by step. `memory` says how many floats and integers it keeps for (arms, dims);
    integers are from 0 to 2^32 - 1. `holds` says whether its proof holds for the policy's options and a row of parameters;
    other rows are played step by step. `exact_bits` says whether it pulls the very arms of the plain loop, so that regrets
    are equal bit by bit; otherwise they are equal in law, or up to the rounding of indices.
    `applies` says whether it is right for this policy and problem; `slots` fills slots of
    its own; `depends_on_argument` says whether it reads rewards one by one. `single` are functions in single precision, by those that
    they replace on a GPU where `precision`, of (policy, problem, horizon), is "float32"; its floats are float32 then.
    `needs_double` says of a row of parameters that it is played in float64 all the same.
    """

    name: str
    advance: Callable[..., Any]
    stands_for: tuple[Callable[..., Any], ...]
    memory: Callable[[int, int], tuple[int, int]]
    holds: Callable[[Any, FloatArray], bool]
    exact_bits: bool
    applies: Callable[[Any, Any], bool] = lambda policy, problem: True
    slots: Callable[[Any], dict[str, Callable[..., Any]]] = lambda problem: {}
    reads: Callable[[Any], bool] = lambda problem: True
    single: Mapping[Callable[..., Any], Callable[..., Any]] = MappingProxyType({})
    precision: Callable[[Any, Any, int], str] = lambda policy, problem, horizon: "float64"
    needs_double: Callable[[FloatArray], bool] = lambda row: False


class WarpVersion(NamedTuple):
    """How a team of threads plays a policy in lock-step on a GPU: the policy's four functions for a team (`policies.team`).

    `view(held, common, setting)`, then as in `Policy`; `stands_for` are the policy's own functions that they replace.
    `held(share, dims)` and `common(arms, dims)` say how many numbers a thread and a team keep; `holds` says whether it is
    right for the policy's options and a row of parameters, as for `Shortcut`; `precision` says which kind of numbers,
    "float64" or "float32", for (policy, features of the first instances, horizon); `needs_double` says of a row that it is
    played in float64 all the same.
    """

    view: Callable[..., Any]
    start: Callable[..., Any]
    choose: Callable[..., Any]
    update: Callable[..., Any]
    held: Callable[[int, int], int]
    common: Callable[[int, int], int]
    stands_for: tuple[Callable[..., Any], ...]
    holds: Callable[[Any, FloatArray], bool]
    precision: Callable[[Any, FloatArray, int], str] = lambda policy, features, horizon: "float64"
    needs_double: Callable[[FloatArray], bool] = lambda row: False


class Policy:
    """A bandit algorithm as scalar functions on a strip of memory.

    `view(memory, setting) -> state` names the parts of the strip, `start(state, setting)` clears them,
    `choose(state, setting, step, params, stream) -> arm` picks (ties go to the lowest arm number) and
    `update(state, setting, arm, reward, stream)` learns. Steps and arms are counted from 0.
    """

    name: Any
    parameters: Any = ()
    plays: ClassVar[tuple[Shortcut, ...]] = ()
    team: ClassVar[WarpVersion | None] = None
    rewards: ClassVar[str] = "real"
    """The rewards it can learn from: "real", "unit" for [0, 1], or "binary" for 0 and 1."""
    pulls_every_arm: ClassVar[bool] = False
    needs_features: ClassVar[bool] = False
    """Whether it knows arms by their features, so that they must have some."""
    plays_itself: ClassVar[bool] = False
    """Whether it is Python that no kernel can hold, and `player(job)` gives who plays it."""
    faults: ClassVar[dict[int, str]] = {}
    """What `choose` means by a negative number: why the policy could not go on."""
    prior_kind: ClassVar[str] = ""
    """What its `prior`, by which it judges arms without rewards, is: a key of `PRIOR_KINDS`; others pull such arms first."""
    textbook_options: ClassVar[Mapping[str, Any]] = {}
    """The textbook's `noise` and `prior`, for rewards in [0, 1]: the baseline's where the policy takes the problem's."""
    least_shape: ClassVar[float] = 0
    """The smallest shape that a Beta prior of it may have."""
    prior_per_arm: ClassVar[bool] = False
    """Whether its prior may differ by arm."""
    pending: ClassVar[str] = "mean"
    """How pulls count, once it is deployed, whose reward has not come yet, unless the caller says otherwise: "mean", as if
    they had paid their arm's mean, or "ignore". The policies of this package have what was measured to be better
    (docs/live.md); "mean" is safe for others, because a rule without chance would pull the same arm again and again."""
    expected_means: Any = None
    """Mean and standard deviation of what it expects an arm without rewards to pay, where it has such a prior."""

    view: Callable[..., Any]
    start: Callable[..., Any]
    choose: Callable[..., Any]
    update: Callable[..., Any]

    recall: Any = None
    """`recall(state, setting, pulls, totals)` writes down all that the memory knows: each arm's pulls and their total."""
    resume: Any = None
    """`resume(state, setting, params, pulls, totals)`, after `start`: the memory after so many pulls. A policy that has
    both can be deployed (`live`): this is how it is saved and how arms come and go."""

    def memory(self, arms: int, dims: int) -> int:
        """How many floats the strip must hold."""
        raise InvalidRequest(f"the policy {type(self).__name__} must define `memory(arms, dims)`.")

    def limits(self, name: str) -> tuple[float, float]:
        """The least and the greatest value of a parameter where its options decide that, beside the `Parameter`'s own."""
        return -math.inf, math.inf

    def check(self, features: FloatArray, horizon: int) -> None:
        """Refuse features (instances, dims, arms) that the policy cannot work with."""

    def player(self, job: Any) -> Any:
        """Plays pieces of a job, as `engine.prepared.Prepared` does, for a policy that plays itself."""
        raise InvalidRequest(f"the policy {type(self).__name__} must define `player(job)`.")

    def options(self, arms: int, dims: int, horizon: int) -> Sequence[float] | NDArray[Any]:
        """Fixed numbers that the scalar functions find in `setting.options`; an array, of any type, is a table."""
        return ()

    def after(self, features: FloatArray, pulls: FloatArray, totals: FloatArray) -> Policy:
        """The policy that has learnt from arms (a row of features each) which it will not see again.

        Where arms are known one by one, they teach nothing about others.
        """
        return self

    def beyond(self, pulls: FloatArray, totals: FloatArray) -> int | None:
        """The arm to pull after the horizon, where a policy's table ends; None: it goes on as before."""
        return None
