"""What each room promises. Read this first.

A **policy** and a **problem** are frozen records of *scalar functions*: plain Python functions that use only `math`,
loops, arrays and each other. The engine binds them into its loop and compiles the whole; run as plain Python, they
are the oracle for the compiled code. Scalar functions receive

`setting`
    what the agent may know: arms and their features, horizon, the policy's options;
`instance`
    what nature knows: mean rewards and the problem's options;
`params`
    one row of tunable numbers;
`stream`
    random numbers with an address (see `streams`).

A **tuner** is a generator that yields a `Trial`, receives the regrets and returns the best value: it never sees the
engine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from banditune.dataflow import reads

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Function = TypeVar("Function", bound=Callable[..., Any])

PULL, STEP, STREAM = 2, 3, 4
"""Places among the arguments of `reward(instance, arm, pull, step, stream)`."""

PRIORS = {
    "beta": "(a, b) of the Beta law of an arm's mean",
    "normal": "(mean, standard deviation) of an arm's mean",
    "theta": "(mean, covariance) of theta",
    "": "one of another kind",
}
"""What the priors of policies and problems are."""


PROBLEM = "problem"
"""The value of a policy's `noise` or `prior` that is to be taken from the problem."""


class BadRequest(ValueError):
    """A request that cannot be served; the message says what must hold, what came and what to do."""


class Fault(RuntimeError):
    """A policy or problem broke its promise while it was played; the message says where, to repeat it."""


class Outage(Fault):
    """What was to play, a worker, a child process or a cluster, broke or took too long; its policy may be innocent."""


def scalar(function: Function) -> Function:
    """Mark a function as scalar code, compiled with the loop that uses it; calling it directly runs plain Python."""
    function.__scalar__ = True  # type: ignore[attr-defined]
    return function


def rare(function: Function) -> Function:
    """Mark scalar code off the hot path: it is compiled as a call, while other scalar code is pasted into its callers."""
    function.__rare__ = True  # type: ignore[attr-defined]
    return scalar(function)


def bulky(function: Function) -> Function:
    """Mark scalar code that is long and used in several places: pasted in on a CPU, but a call on a GPU.

    Code beyond the caches of instructions makes threads wait that have parted.
    """
    function.__bulky__ = True  # type: ignore[attr-defined]
    return scalar(function)


def vector(function: Function) -> Function:
    """Mark scalar code that is optimised on its own before it is pasted into its callers.

    Loops of a short, constant length become vector code then; in a large function they are unrolled first.
    """
    function.__vector__ = True  # type: ignore[attr-defined]
    return scalar(function)


def in_words(words: Callable[..., Any]) -> Callable[[Function], Function]:
    """Mark a scalar `reward` that pays 0 or 1 with the function that draws 32 of the same rewards at once.

    The mark belongs to the function: a problem with another `reward` has no words.
    """

    def mark(function: Function) -> Function:
        function.__words__ = words  # type: ignore[attr-defined]
        return function

    return mark


def with_outcomes(outcomes: Callable[..., Any]) -> Callable[[Function], Function]:
    """Mark a scalar `reward` in [0, 1] with the function that draws 32 pseudo-rewards at once.

    A pseudo-reward is 0 or 1, and 1 with the reward of the same pull as its probability, given that reward.
    """

    def mark(function: Function) -> Function:
        function.__outcomes__ = outcomes  # type: ignore[attr-defined]
        return function

    return mark


def addressed_by(*names: str) -> Callable[[Function], Function]:
    """Mark scalar code in which these arguments only say which random numbers are drawn: the law is the same for all."""

    def mark(function: Function) -> Function:
        function.__addresses__ = names  # type: ignore[attr-defined]
        return function

    return mark


class Slot:
    """A name in scalar code that the engine fills when it binds a loop to a policy and a problem."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *_: Any) -> Any:
        raise TypeError(f"the slot {self.name!r} is empty: only bound code can call it")


class Setting(NamedTuple):
    """What the agent may know."""

    arms: int
    dims: int
    horizon: int
    features: Floats
    """A row per dimension and a column per arm."""
    options: NDArray[Any]


class Instance(NamedTuple):
    """What nature knows; the loop is the only place where both are in reach."""

    means: Floats
    options: Floats


@dataclass(frozen=True)
class Instances:
    """A block of problem instances: `means` has a row per instance and a column per arm.

    `features`, where arms have some, is an array (instances, arms, dims), or (1, arms, dims) for all alike.
    """

    means: Floats
    features: Floats | None = None


@dataclass(frozen=True)
class Parameter:
    """A tunable number: bounds and theory's value are numbers, or functions of (arms, horizon).

    `low` and `high` are the range that is usually searched; a request may give another one. `least` and `most` are hard
    limits: beyond them the parameter has no meaning, as a probability has none above 1.
    Tuners search the unit interval; `at` maps it to values, evenly in the logarithm where the scale is "log".
    Integer parameters are rounded where they are used, so any real value in the range may be asked for.
    """

    name: str
    low: float | Callable[[int, int], float]
    high: float | Callable[[int, int], float]
    theory: float | Callable[[int, int], float]
    integer: bool = False
    scale: str = "linear"
    least: float = -math.inf
    most: float = math.inf

    def __post_init__(self) -> None:
        if self.scale not in ("linear", "log"):
            raise BadRequest(f"`scale` must be 'linear' or 'log', but got {self.scale!r}.")
        for name in ("low", "high", "theory"):
            bound = getattr(self, name)
            if not callable(bound) and not isinstance(bound, Real):
                raise BadRequest(
                    f"`{name}` of the parameter {self.name!r} must be a number or a function of (arms, horizon), but got "
                    f"{bound!r}."
                )

    def within(
        self,
        arms: int,
        horizon: int,
        ends: tuple[float, float] | None = None,
        limits: tuple[float, float] = (-math.inf, math.inf),
    ) -> Range:
        """The parameter's range for this many arms and this horizon, or a range with these `ends` instead.

        `limits` are the policy's own, beside the parameter's `least` and `most`.
        """
        theory = self._bound("theory", arms, horizon)
        low, high = ends or (self._bound("low", arms, horizon), self._bound("high", arms, horizon))
        if not (math.isfinite(low) and math.isfinite(high)):
            raise BadRequest(
                f"the bounds of the parameter {self.name!r} must be finite numbers, but its range is [{low:g}, {high:g}] "
                f"with arms={arms} and horizon={horizon}."
            )
        if not low < high:
            raise BadRequest(
                f"`low < high` must hold for the range of the parameter {self.name!r}, but it is [{low:g}, {high:g}]"
                + (f" with arms={arms} and horizon={horizon}; raise the horizon." if ends is None else ".")
            )
        if self.scale == "log" and low <= 0:
            raise BadRequest(f"`low > 0` must hold for the parameter {self.name!r} on a log scale, but got {low:g}.")
        least, most = max(self.least, limits[0]), min(self.most, limits[1])
        if self.scale == "log":
            least = max(least, SMALLEST)
        rounding = ROUNDING * max(abs(low), abs(high))
        low, high = (clip_rounding(end, least, most, rounding) for end in (low, high))
        if not least <= low < high <= most:
            raise BadRequest(
                f"`{condition(self.name, least, most)}` must hold for the parameter {self.name!r}: its policy is defined "
                f"for no other values. But its range is [{low:g}, {high:g}]."
            )
        # A range that was asked for need not hold theory's value: that is played all the same.
        lowest, highest = (low, high) if ends is None else (least, most)
        theory = clip_rounding(theory, lowest, highest, rounding)
        if not lowest <= theory <= highest:
            raise BadRequest(
                f"theory's value of the parameter {self.name!r} must lie in [{lowest:g}, {highest:g}], but got {theory:g}."
            )
        if self.integer and math.ceil(low) > math.floor(high):
            raise BadRequest(
                f"the range of the parameter {self.name!r} must hold a whole number, but it is [{low:g}, {high:g}]."
            )
        return Range(self.name, low, high, theory, self.integer, self.scale, least, most)

    def _bound(self, name: str, arms: int, horizon: int) -> float:
        """A bound or theory's value as a number."""
        bound = getattr(self, name)
        try:
            return float(bound(arms, horizon) if callable(bound) else bound)
        except (TypeError, ValueError, ArithmeticError) as error:
            raise BadRequest(
                f"`{name}` of the parameter {self.name!r} must be a number or a function of (arms, horizon), but with "
                f"arms={arms} and horizon={horizon} it failed: {type(error).__name__}: {error}."
            ) from error


ROUNDING = 8 * float(np.finfo(np.float64).eps)
"""A value that misses an end of a range by this share of the range's size, or less, is that end: 3 * 0.1 is 0.3."""

SMALLEST = float(np.finfo(np.float64).tiny)
"""The least value on a log scale."""


def clip_rounding(value: float, low: float, high: float, rounding: float) -> float:
    """The nearest value between `low` and `high` where no more than `rounding` is missing, else the value itself."""
    return min(max(value, low), high) if low - rounding <= value <= high + rounding else value


def condition(name: str, least: float, most: float) -> str:
    """What must hold for the values of a parameter: 0 <= gamma <= 3, gamma >= 0, or -inf < gamma < inf."""
    if math.isinf(least) and math.isinf(most):
        return f"-inf < {name} < inf"
    if math.isinf(most):
        return f"{name} >= {least:g}"
    return f"{'' if math.isinf(least) else f'{least:g} <= '}{name} <= {most:g}"


@dataclass(frozen=True)
class Range:
    """A parameter's bounds, resolved for one number of arms and one horizon.

    A search stays between `low` and `high`. Values may be played between `least` and `most`.
    """

    name: str
    low: float
    high: float
    theory: float
    integer: bool
    scale: str
    least: float = -math.inf
    most: float = math.inf

    def clip_rounding(self, value: float, low: float, high: float) -> float:
        """An end that was missed by rounding only."""
        return clip_rounding(value, low, high, ROUNDING * max(abs(self.low), abs(self.high)))

    def at(self, unit: float) -> float:
        """The value at a point of the unit interval."""
        if self.scale == "log":
            value = math.exp(math.log(self.low) + unit * (math.log(self.high) - math.log(self.low)))
        else:
            value = self.low + unit * (self.high - self.low)
        return self.within(value)

    def within(self, value: float) -> float:
        """The nearest value of the range that the parameter can have."""
        value = min(max(value, self.low), self.high)
        return float(min(max(round(value), math.ceil(self.low)), math.floor(self.high))) if self.integer else value

    def nearest(self, value: float) -> float:
        """The nearest value that the parameter can have: one of the range for a value within it."""
        if self.low <= value <= self.high:
            return self.within(value)
        return float(round(value)) if self.integer else value


class Play(NamedTuple):
    """A faster way to play a policy, exact in law: `advance` fills `pulls` from one step to another.

    It returns False where it met a reward that is not finite. `stands_for` are the functions of the policy that it plays:
    a policy that has others is played step by step. `memory` says how many floats and integers it keeps for (arms, dims);
    integers are from 0 to 2^32 - 1. `holds` says whether its proof holds for the policy's options and a row of parameters;
    other rows are played step by step. `exact_bits` says whether it pulls the very arms of the plain loop, so that regrets
    are equal bit by bit; otherwise they are equal in law, or up to the rounding of indices.
    `applies` says whether it is right for this policy and problem; `slots` fills slots of
    its own; `reads` says whether it reads rewards one by one. `single` are functions in single precision, by those that
    they replace on a GPU where `precision`, of (policy, problem, horizon), is "float32"; its floats are float32 then.
    `needs_double` says of a row of parameters that it is played in float64 all the same.
    """

    name: str
    advance: Callable[..., Any]
    stands_for: tuple[Callable[..., Any], ...]
    memory: Callable[[int, int], tuple[int, int]]
    holds: Callable[[Any, Floats], bool]
    exact_bits: bool
    applies: Callable[[Any, Any], bool] = lambda policy, problem: True
    slots: Callable[[Any], dict[str, Callable[..., Any]]] = lambda problem: {}
    reads: Callable[[Any], bool] = lambda problem: True
    single: Mapping[Callable[..., Any], Callable[..., Any]] = MappingProxyType({})
    precision: Callable[[Any, Any, int], str] = lambda policy, problem, horizon: "float64"
    needs_double: Callable[[Floats], bool] = lambda row: False


class Team(NamedTuple):
    """How a team of threads plays a policy in lock-step on a GPU: the policy's four functions for a team (`policies.team`).

    `view(held, common, setting)`, then as in `Policy`; `stands_for` are the policy's own functions that they replace.
    `held(share, dims)` and `common(arms, dims)` say how many numbers a thread and a team keep; `holds` says whether it is
    right for the policy's options and a row of parameters, as for `Play`; `precision` says which kind of numbers,
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
    holds: Callable[[Any, Floats], bool]
    precision: Callable[[Any, Floats, int], str] = lambda policy, features, horizon: "float64"
    needs_double: Callable[[Floats], bool] = lambda row: False


class Policy:
    """A bandit algorithm as scalar functions on a strip of memory.

    `view(memory, setting) -> state` names the parts of the strip, `start(state, setting)` clears them,
    `choose(state, setting, step, params, stream) -> arm` picks (ties go to the lowest arm number) and
    `update(state, setting, arm, reward, stream)` learns. Steps and arms are counted from 0.
    """

    name: Any
    parameters: Any = ()
    plays: ClassVar[tuple[Play, ...]] = ()
    team: ClassVar[Team | None] = None
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
    """What its `prior`, by which it judges arms without rewards, is: a key of `PRIORS`; others pull such arms first."""
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
        raise BadRequest(f"the policy {type(self).__name__} must define `memory(arms, dims)`.")

    def limits(self, name: str) -> tuple[float, float]:
        """The least and the greatest value of a parameter where its options decide that, beside the `Parameter`'s own."""
        return -math.inf, math.inf

    def check(self, features: Floats, horizon: int) -> None:
        """Refuse features (instances, dims, arms) that the policy cannot work with."""

    def player(self, job: Any) -> Any:
        """Plays pieces of a job, as `engine.prepared.Prepared` does, for a policy that plays itself."""
        raise BadRequest(f"the policy {type(self).__name__} must define `player(job)`.")

    def options(self, arms: int, dims: int, horizon: int) -> Sequence[float] | NDArray[Any]:
        """Fixed numbers that the scalar functions find in `setting.options`; an array, of any type, is a table."""
        return ()

    def after(self, features: Floats, pulls: Floats, totals: Floats) -> Policy:
        """The policy that has learnt from arms (a row of features each) which it will not see again.

        Where arms are known one by one, they teach nothing about others.
        """
        return self

    def beyond(self, pulls: Floats, totals: Floats) -> int | None:
        """The arm to pull after the horizon, where a policy's table ends; None: it goes on as before."""
        return None


def is_ours(function: Any) -> bool:
    """Whether a function belongs to this package; others are a user's."""
    return (getattr(function, "__module__", None) or "").partition(".")[0] == "banditune"


def reads_step(reward: Callable[..., Any]) -> bool:
    """Whether a function `reward(instance, arm, pull, step, stream)` may depend on the step."""
    return reads(reward, STEP)


def reads_pull(reward: Callable[..., Any]) -> bool:
    """Whether such a function may depend on the pull other than as the address of its random numbers.

    A stream knows the pull too. Our own functions take only random numbers from it; a user's may look at its cursor.
    """
    trusted = reads(reward, PULL, lambda function, name: name in getattr(function, "__addresses__", ()))
    return trusted or reads(reward, STREAM, lambda function, name: is_ours(function))


class Problem:
    """A distribution of problem instances.

    `sample(size, rng)` draws instances with NumPy; the scalar `reward(instance, arm, pull, step, stream)` draws one
    reward, a function of its address alone. `pull` is how often the arm was pulled before, `step` counts from 0.
    """

    name: Any
    arms: int
    dims: Any = 0
    """Features an arm has; 0 where arms are only known by their number."""
    names: Any = ()
    rewards: Any = "real"
    """What rewards can be: "binary", "unit" for [0, 1], or "real"."""
    noise: Any = None
    """The standard deviation of a reward around its arm's mean, where it is one number and known."""
    prior_kind: ClassVar[str] = ""
    """What its `prior` is, where it has one: a key of `PRIORS`."""
    by_key: ClassVar[bool] = False
    """Whether an instance is a function of its key, which `reward` knows too, so that `sample_at` makes it."""

    reward: Callable[..., Any]

    @property
    def words(self) -> Callable[..., Any] | None:
        """A scalar function that draws 32 pulls of an arm at once, if `reward` has one: see `in_words`."""
        return getattr(self.reward, "__words__", None)

    @property
    def outcomes(self) -> Callable[..., Any] | None:
        """A scalar function that draws 32 pseudo-rewards of an arm at once, if `reward` has one: see `with_outcomes`."""
        return self.words or getattr(self.reward, "__outcomes__", None)

    @property
    def per_pull(self) -> bool:
        """Whether a reward depends on arm and pull only, not on the step: what shortcuts need. Seen in `reward`'s code."""
        return not reads_step(self.reward)

    @property
    def means_by_step(self) -> bool:
        """Whether an arm's mean reward may change with the step; seen in `reward`'s code."""
        return not self.per_pull

    @property
    def means_by_pull(self) -> bool:
        """Whether an arm's mean reward may change with its pulls; seen in `reward`'s code."""
        return reads_pull(self.reward)

    def sample(self, size: int, rng: np.random.Generator) -> Instances:
        """Draw `size` instances."""
        raise BadRequest(f"the problem {type(self).__name__} must define `sample(size, rng)`.")

    def sample_at(self, keys: Integers) -> Instances:
        """The instances with these keys, a row of two numbers each, where instances are functions of their keys."""
        raise BadRequest(f"the problem {type(self).__name__} must define `sample_at(keys)`.")

    @property
    def longest(self) -> int | None:
        """The longest horizon for which it has rewards, None if there is none."""
        return None

    @property
    def only_regret(self) -> str | None:
        """The one regret that makes sense, whichever is asked for; None where both do."""
        return None

    def options(self) -> Sequence[float]:
        """Fixed numbers that `reward` finds in `instance.options`."""
        return ()


class Trial(NamedTuple):
    """A tuner's question: the regrets of parameter values on fresh instances.

    With one size, on so many, the same for all values: it is told an array, a row per value. With a size for each value,
    on so many of its own: it is told a list of arrays.
    """

    values: tuple[float, ...]
    size: int | tuple[int, ...]


class Goal(NamedTuple):
    """How sure a search must be: of its statements with this confidence, and, unless `within` is None, that no other value
    is better by more than this share of the regret, before it stops.
    """

    within: float | None
    confidence: float


SPEND = Goal(None, 0.95)
"""No precision is wanted: the budget is spent."""


class Enough(Exception):
    """Thrown into a search that must answer now: its argument is what the search would have been told."""


Search = Generator[Trial, Any, Any]
"""Yields trials, receives regrets, returns the best value, or a `Found` with what is known about it."""


class Found(NamedTuple):
    """A search's answer and how sure it is of it (`results.Belief`)."""

    value: float
    belief: Any


class Tuner:
    """A search for one parameter under a budget of simulated runs; it never spends more."""

    name: Any
    aims = False
    """Whether `search` takes a `Goal` as its third argument and stops when it is reached, or when `Enough` is thrown."""

    def search(self, among: Range, budget: int) -> Search:
        """Search the range; every complaint about the budget is made before the first trial.

        A tuner that draws random numbers has one more argument, `rng`: a NumPy generator that follows the study's seed.
        With the same seed it gives the same numbers; a tuner must draw from nothing else.
        """
        raise BadRequest(f"the tuner {type(self).__name__} must define `search(among, budget)`.")
