"""A user's own problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from banditune.core.checks import check_arms, check_dims, check_names, check_scalar_function
from banditune.core.descriptions import make_undescribed_field
from banditune.core.errors import InvalidRequest
from banditune.core.problem import Instances, Problem


@dataclass(frozen=True)
class CustomProblem(Problem):
    """A user's problem; see `define_problem`."""

    name: str
    arms: int
    dims: int = 0
    rewards: str = "real"
    names: Any = ()
    draw: Callable[..., Any] = make_undescribed_field()
    reward: Callable[..., Any] = make_undescribed_field()
    numbers: tuple[float, ...] = ()

    def sample(self, size: int, rng: np.random.Generator) -> Instances:
        drawn = self.draw(size, rng)
        return Instances(*drawn) if isinstance(drawn, tuple) else Instances(drawn)

    def options(self) -> Sequence[float]:
        return self.numbers


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
    """A problem of your own: `sample(size, rng)` returns mean rewards (size, arms), the scalar function
    `reward(instance, arm, pull, step, stream)` draws a reward with mean `instance.means[arm]`.

    Arms, pulls of an arm and steps are counted from 0. All randomness must come from `rng` and `stream`. Expected regret is
    by the means: rewards with other means are refused, as far as a million of them show it. If `reward` reads `step`, only
    realised regret is computed, against one fixed arm; if it reads `pull`, none.
    Where arms have features, `dims` is how many, and `sample` returns (means, features) with features of shape (size, arms,
    dims), or (arms, dims) for all instances alike. `rewards` says what rewards can be: "binary" for 0 and 1, "unit" for
    [0, 1], "real" for any number. `options` are found in `instance.options`.
    """
    if rewards not in ("binary", "unit", "real"):
        raise InvalidRequest(f'`rewards` must be "binary" (0 or 1), "unit" (in [0, 1]) or "real", but got {rewards!r}.')
    check_scalar_function("reward", reward, "instance, arm, pull, step, stream", "a number")
    arms = check_arms(arms)
    dims = check_dims(dims, least=0)
    return CustomProblem(
        name, arms, dims, rewards, check_names(names, arms), sample, reward, tuple(map(float, options))
    )
