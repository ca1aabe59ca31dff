"""Problems of users, defined by functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from banditune.core.checks import check_arms, check_dims, check_names, check_reward_kind, check_scalar_function
from banditune.core.descriptions import make_undescribed_field
from banditune.core.option_types import Names, Option, default_option
from banditune.core.problem import REWARD_ARGUMENTS, Instances, Problem


@dataclass(frozen=True)
class CustomProblem(Problem):
    """A user's problem; see `define_problem`."""

    name: str
    arms: int
    dims: int = 0
    rewards: str = "real"
    names: Option[Names] = default_option(())
    sample_function: Callable[..., Any] = make_undescribed_field()
    reward: Callable[..., Any] = make_undescribed_field()
    option_values: tuple[float, ...] = ()

    def sample(self, size: int, rng: np.random.Generator) -> Instances:
        sample = self.sample_function(size, rng)
        return Instances(*sample) if isinstance(sample, tuple) else Instances(sample)

    def options(self) -> Sequence[float]:
        return self.option_values


def define_problem(
    name: str,
    sample: Callable[[int, np.random.Generator], Any],
    reward: Callable[..., Any],
    *,
    arms: int,
    dims: int = 0,
    rewards: str = "real",
    names: Any = (),
    options: Sequence[float] = (),
) -> CustomProblem:
    """Define a problem of your own by a function that draws mean rewards and one that draws a reward.

    Arms, pulls of an arm and steps are counted from 0. Before the first run up to a million rewards are drawn. If their
    means differ from those that `sample` returns, there is an error, because expected regret is computed from these. If
    `reward` reads `step`, only realised regret can be computed, against one fixed arm. If it reads `pull`, regret is not
    defined.

    Parameters
    ----------
    name : str
        The name of the problem in results.
    sample : callable
        Function `sample(size, rng)` that returns mean rewards of shape (size, arms). It must draw only from the NumPy
        generator `rng`. With features it returns (means, features). Features have shape (size, arms, dims), or (arms,
        dims) if all instances have the same ones.
    reward : callable
        Scalar function `reward(instance, arm, pull, step, stream)` that draws a reward with mean `instance.means[arm]`.
        It must draw only from `stream`.
    arms : int
        Number of arms, 2 or more.
    dims : int
        Number of features of an arm; 0 if arms have none.
    rewards : {"real", "unit", "binary"}
        The kind of rewards: any number, numbers in [0, 1], or 0 and 1.
    names : sequence of str
        Names of the arms, one per arm. None by default.
    options : sequence of float
        Numbers for `reward`, as `instance.options`.

    Returns
    -------
    Problem
        The problem, for functions such as `tune` and `simulate`.

    Raises
    ------
    InvalidRequest
        If `reward` is not a function of these arguments, or if another argument cannot be used.

    Examples
    --------
    >>> import banditune as bt
    >>> @bt.kernel.scalar
    ... def reward(instance, arm, pull, step, stream):
    ...     return instance.means[arm] * bt.kernel.exponential(stream)
    >>> problem = bt.define_problem("waits", lambda size, rng: rng.gamma(2, 1, (size, 3)), reward, arms=3)
    >>> bt.simulate(bt.UCB1(noise=2), problem, [0.2], horizon=50, runs=20).shape
    (1, 20)
    """
    check_reward_kind(rewards)
    check_scalar_function("reward", reward, REWARD_ARGUMENTS, "a number")
    arms = check_arms(arms)
    dims = check_dims(dims, least=0)
    return CustomProblem(
        name, arms, dims, rewards, check_names(names, arms), sample, reward, tuple(map(float, options))
    )
