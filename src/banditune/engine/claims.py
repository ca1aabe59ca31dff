"""Whether rewards are what a user's problem says of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from banditune.contracts import Fault, Instance, Instances, Problem, is_ours
from banditune.engine.loop import instance_key
from banditune.streams import REWARDS, Stream, aim

CLAIMS: dict[str, tuple[str, Callable[[float], bool]]] = {
    "unit": ("in [0, 1]", lambda paid: 0 <= paid <= 1),
    "binary": ("0 or 1", lambda paid: paid in (0, 1)),
}
"""What rewards must be where a problem says so; `real` ones may be anything."""

FEW = 4
"""So many instances, arms and pulls are looked at."""


def check_claim(problem: Problem, seed: int, drawn: Callable[[int], Instances]) -> None:
    """Draw a few rewards of a user's own problem: policies take what it says for granted."""
    told, holds = CLAIMS.get(problem.rewards, ("", None))
    reward: Any = getattr(problem.reward, "py_func", problem.reward)
    if holds is None or is_ours(reward):
        return
    means, options = drawn(0).means, np.array(problem.options())
    for run, arm, pull in product(range(min(FEW, len(means))), range(min(FEW, problem.arms)), range(FEW)):
        stream = Stream(*instance_key(seed, run), np.array([0, 0, 0, REWARDS]))  # type: ignore[call-arg, no-untyped-call]
        aim(stream, arm, pull)  # type: ignore[no-untyped-call]
        try:
            paid = float(reward(Instance(means[run], options), arm, pull, 0, stream))
        except Exception:
            return  # what is wrong is said with run and step where it is played
        if math.isfinite(paid) and not holds(paid):
            raise Fault(
                f"rewards of {problem.name!r} must be {told}, as it says by rewards={problem.rewards!r}, but arm {arm} of "
                f"run {run} pays {paid:g}; mend its reward function, or say what it pays."
            )
