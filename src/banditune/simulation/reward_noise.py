"""Measures the noise of rewards of problems that do not state it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from banditune.core.arrays import copy_read_only
from banditune.core.errors import InvalidRequest
from banditune.core.problem import Instance, Problem
from banditune.core.streams import REWARD_STREAM, Stream, seek
from banditune.simulation.instances import BLOCK_SIZE, check_instance_memory, draw_instances
from banditune.simulation.loop import compute_instance_key


def measure_reward_noise(problem: Problem, count: int, horizon: int | None = None) -> float:
    """Measure the standard deviation of `count` rewards around their means, in plain Python, without a compiler.

    They are drawn on the first instances in turn, with random arms and pulls from 0 on. If rewards depend on the step,
    steps are random numbers below the horizon. Without a horizon, all earlier pulls are assumed to be of the same arm.
    """
    check_instance_memory(problem)
    means = draw_instances(problem, 0, 0).means
    function: Any = getattr(problem.reward, "py_func", problem.reward)
    options, cursor = copy_read_only(problem.options()), np.zeros(4, np.int64)
    rng = np.random.default_rng(0)
    arms = rng.integers(problem.arms, size=count).tolist()
    steps = rng.integers(horizon, size=count).tolist() if horizon and not problem.has_step_free_rewards else None
    squares = 0.0
    try:
        for position, arm in enumerate(arms):
            run, pull = position % BLOCK_SIZE, min(position // BLOCK_SIZE, (problem.max_horizon or count) - 1)
            cursor[3] = REWARD_STREAM
            stream = Stream(*compute_instance_key(0, run), cursor)  # type: ignore[call-arg,no-untyped-call]
            seek(stream, arm, pull)  # type: ignore[no-untyped-call]
            step = pull if steps is None else steps[position]
            squares += (function(Instance(means[run], options), arm, pull, step, stream) - means[run, arm]) ** 2
    except Exception as error:
        raise _make_refusal(problem, f"{type(error).__name__}: {error}") from error
    if not math.isfinite(squares):
        raise _make_refusal(problem, "some are not finite")
    return math.sqrt(squares / count)


def _make_refusal(problem: Problem, why: str) -> InvalidRequest:
    return InvalidRequest(
        f"`reward` of {problem.name!r} must return finite numbers, but {why}; correct `reward`. It was called to measure "
        "the noise that the policy takes from the problem.",
        argument="problem",
        code="own-code",
    )
