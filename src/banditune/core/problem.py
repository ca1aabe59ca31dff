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

REWARD_ARGUMENTS = "instance, arm, pull, step, stream"
"""The arguments of `reward`."""


PULL_POSITION, STEP_POSITION, STREAM_POSITION = 2, 3, 4
"""Positions of its arguments."""


class Instance(NamedTuple):
    """The mean rewards and the options of one instance. They are unknown to the policy."""

    means: FloatArray
    options: FloatArray


@dataclass(frozen=True)
class Instances:
    """A block of problem instances, as `Problem.sample` returns it.

    Parameters
    ----------
    means : ndarray
        Mean rewards, a row per instance and a column per arm.
    features : ndarray, optional
        Features of shape (instances, arms, dims), or (1, arms, dims) if all instances have the same ones.
    """

    means: FloatArray
    features: FloatArray | None = None


def depends_on_step(reward: Callable[..., Any]) -> bool:
    """Return whether a function `reward(instance, arm, pull, step, stream)` may depend on the step."""
    return depends_on_argument(reward, STEP_POSITION)


def depends_on_pull(reward: Callable[..., Any]) -> bool:
    """Return whether such a function may depend on the pull, except for the address of its random numbers.

    A stream contains the pull, too. Functions of this package only draw random numbers from it. A user's function may read
    its cursor.
    """
    reads_pull = depends_on_argument(
        reward, PULL_POSITION, lambda function, name: name in getattr(function, "__addressed_by__", ())
    )
    return reads_pull or depends_on_argument(reward, STREAM_POSITION, lambda function, name: is_package_code(function))


class Problem:
    """A distribution of problem instances.

    `sample(size, rng)` draws instances with NumPy. The scalar `reward(instance, arm, pull, step, stream)` draws one
    reward, which depends only on its address. `pull` is the number of earlier pulls of the arm; `step` starts at 0.
    """

    name: Any
    arms: int
    dims: Any = 0
    """Number of features of an arm; 0 if arms have none."""
    names: Any = ()
    rewards: Any = "real"
    """The possible rewards: "binary", "unit" for [0, 1], or "real"."""
    noise: Any = None
    """The standard deviation of a reward around its arm's mean, if it is one known number."""
    prior_kind: ClassVar[str] = ""
    """The kind of its `prior`, if it has one: a key of `PRIOR_KINDS`."""
    is_keyed: ClassVar[bool] = False
    """Whether an instance is a function of its key, which `reward` receives. `sample_keyed` returns such instances."""

    reward: Callable[..., Any]

    @property
    def bit_packed_reward(self) -> Callable[..., Any] | None:
        """The scalar function that draws 32 pulls of an arm at once, if `reward` has one: see `bit_packed`."""
        return getattr(self.reward, "__bit_packed__", None)

    @property
    def bit_packed_pseudo_reward(self) -> Callable[..., Any] | None:
        """The scalar function that draws 32 pseudo-rewards of an arm at once, if any: see `with_pseudo_rewards`."""
        return self.bit_packed_reward or getattr(self.reward, "__pseudo_rewards__", None)

    @property
    def has_step_free_rewards(self) -> bool:
        """Whether a reward depends only on arm and pull, not on the step. Shortcuts need this.

        Derived from `reward`'s code.
        """
        return not depends_on_step(self.reward)

    @property
    def has_step_dependent_means(self) -> bool:
        """Whether an arm's mean reward may change with the step. Derived from `reward`'s code."""
        return not self.has_step_free_rewards

    @property
    def has_pull_dependent_means(self) -> bool:
        """Whether an arm's mean reward may change with its pulls. Derived from `reward`'s code."""
        return depends_on_pull(self.reward)

    def sample(self, size: int, rng: np.random.Generator) -> Instances:
        """Draw `size` instances."""
        raise InvalidRequest(f"the problem {type(self).__name__} must define `sample(size, rng)`.", code="own-code")

    def sample_keyed(self, keys: IntArray) -> Instances:
        """Return the instances with these keys, a row of two numbers each, if instances are functions of their keys."""
        raise InvalidRequest(f"the problem {type(self).__name__} must define `sample_keyed(keys)`.", code="own-code")

    @property
    def max_horizon(self) -> int | None:
        """The longest horizon for which the problem has rewards; None if there is no limit."""
        return None

    @property
    def required_regret(self) -> str | None:
        """The only kind of regret that is defined; None if both are."""
        return None

    def options(self) -> Sequence[float]:
        """Return the fixed numbers `instance.options` for `reward`."""
        return ()
