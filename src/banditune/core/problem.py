"""The contract of a problem: a distribution of instances and a scalar function that draws one reward."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from banditune.core.arrays import FloatArray, IntArray
from banditune.core.dataflow import depends_on_argument
from banditune.core.errors import InvalidRequest
from banditune.core.scalar import is_package_code

PULL_POSITION, STEP_POSITION, STREAM_POSITION = 2, 3, 4
"""Places among the arguments of `reward(instance, arm, pull, step, stream)`."""


class Instance(NamedTuple):
    """What nature knows; the loop is the only place where both are in reach."""

    means: FloatArray
    options: FloatArray


@dataclass(frozen=True)
class Instances:
    """A block of problem instances: `means` has a row per instance and a column per arm.

    `features`, where arms have some, is an array (instances, arms, dims), or (1, arms, dims) for all alike.
    """

    means: FloatArray
    features: FloatArray | None = None


def depends_on_step(reward: Callable[..., Any]) -> bool:
    """Whether a function `reward(instance, arm, pull, step, stream)` may depend on the step."""
    return depends_on_argument(reward, STEP_POSITION)


def depends_on_pull(reward: Callable[..., Any]) -> bool:
    """Whether such a function may depend on the pull other than as the address of its random numbers.

    A stream knows the pull too. Our own functions take only random numbers from it; a user's may look at its cursor.
    """
    trusted = depends_on_argument(
        reward, PULL_POSITION, lambda function, name: name in getattr(function, "__addresses__", ())
    )
    return trusted or depends_on_argument(reward, STREAM_POSITION, lambda function, name: is_package_code(function))


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
    """What its `prior` is, where it has one: a key of `PRIOR_KINDS`."""
    by_key: ClassVar[bool] = False
    """Whether an instance is a function of its key, which `reward` knows too, so that `sample_at` makes it."""

    reward: Callable[..., Any]

    @property
    def words(self) -> Callable[..., Any] | None:
        """A scalar function that draws 32 pulls of an arm at once, if `reward` has one: see `bit_packed`."""
        return getattr(self.reward, "__words__", None)

    @property
    def outcomes(self) -> Callable[..., Any] | None:
        """A scalar function that draws 32 pseudo-rewards of an arm at once, if `reward` has one: see `with_pseudo_rewards`."""
        return self.words or getattr(self.reward, "__outcomes__", None)

    @property
    def per_pull(self) -> bool:
        """Whether a reward depends on arm and pull only, not on the step: what shortcuts need. Seen in `reward`'s code."""
        return not depends_on_step(self.reward)

    @property
    def means_by_step(self) -> bool:
        """Whether an arm's mean reward may change with the step; seen in `reward`'s code."""
        return not self.per_pull

    @property
    def means_by_pull(self) -> bool:
        """Whether an arm's mean reward may change with its pulls; seen in `reward`'s code."""
        return depends_on_pull(self.reward)

    def sample(self, size: int, rng: np.random.Generator) -> Instances:
        """Draw `size` instances."""
        raise InvalidRequest(f"the problem {type(self).__name__} must define `sample(size, rng)`.")

    def sample_at(self, keys: IntArray) -> Instances:
        """The instances with these keys, a row of two numbers each, where instances are functions of their keys."""
        raise InvalidRequest(f"the problem {type(self).__name__} must define `sample_at(keys)`.")

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
