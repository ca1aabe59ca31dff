"""What a check of a user's problem sees, in words."""

from __future__ import annotations

import math
from typing import Any

from banditune.core.descriptions import find_own_code
from banditune.core.errors import InvalidRequest
from banditune.core.policy import Policy
from banditune.core.problem import Problem
from banditune.simulation.problem_checks import check_custom_problem
from banditune.simulation.spec import SimulationSpec
from banditune.study.requests import check_count, check_problem_and_horizon, check_regret_defined


class NoPolicy(Policy):
    """Stands in a job of which only the problem is looked at."""

    name = "none"


def check_problem(problem: Problem, *, horizon: Any, seed: Any = 0) -> str:
    """Check a problem of your own as before its first run, and say how small a deviation of its means would be seen.

    A problem that breaks its promises is refused, as it is by `simulate` and `tune`.
    """
    problem, horizon = check_problem_and_horizon(problem, horizon)
    if find_own_code(problem) is None:
        raise InvalidRequest(f"`problem` must be one of your own, but {problem.name!r} is part of this package.")
    check_regret_defined(problem, "expected")
    seen = check_custom_problem(SimulationSpec(NoPolicy(), problem, horizon, check_count("seed", seed, 0)))
    if seen is None:
        return f"no rewards of {problem.name!r} could be drawn; simulate() says why."
    arm = "" if math.isnan(seen.visible_arm) else f", and one of {seen.visible_arm:.2g} in a single arm"
    return (
        f"rewards of {problem.name!r} agree with the means that `sample` returns: over {seen.rewards:,} rewards they are "
        f"{seen.paid:.4g} on average, and their means {seen.told:.4g}; a deviation of {seen.visible:.2g} in all of them "
        f"would have been seen{arm} (four standard errors)."
    )
