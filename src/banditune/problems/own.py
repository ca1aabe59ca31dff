"""A user's own problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from banditune.checks import check_arms, check_dims, check_names, check_scalar
from banditune.contracts import BadRequest, Instances, Problem
from banditune.descriptions import untold


@dataclass(frozen=True)
class OwnProblem(Problem):
    """A user's problem; see `arm_problem`."""

    name: str
    arms: int
    dims: int = 0
    rewards: str = "real"
    names: Any = ()
    draw: Callable[..., Any] = untold()
    reward: Callable[..., Any] = untold()
    numbers: tuple[float, ...] = ()

    def sample(self, size: int, rng: np.random.Generator) -> Instances:
        drawn = self.draw(size, rng)
        return Instances(*drawn) if isinstance(drawn, tuple) else Instances(drawn)

    def options(self) -> Sequence[float]:
        return self.numbers


def arm_problem(
    name: str,
    sample: Callable[[int, np.random.Generator], Any],
    reward: Callable[..., Any],
    *,
    arms: int,
    dims: int = 0,
    rewards: str = "real",
    names: Any = (),
    options: Sequence[float] = (),
) -> OwnProblem:
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
        raise BadRequest(f'`rewards` must be "binary" (0 or 1), "unit" (in [0, 1]) or "real", but got {rewards!r}.')
    check_scalar("reward", reward, "instance, arm, pull, step, stream", "a number")
    arms = check_arms(arms)
    dims = check_dims(dims, least=0)
    return OwnProblem(name, arms, dims, rewards, check_names(names, arms), sample, reward, tuple(map(float, options)))
