"""Checks a user's own problem."""

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
    """Fills the place of the policy in a spec of which only the problem is read."""

    name = "none"


def check_problem(problem: Problem, *, horizon: Any, seed: Any = 0) -> str:
    """Check a custom problem, as it is checked before its first run.

    The same seed must give the same instances, and rewards must have the means that `sample` returns. A problem that
    fails is refused, as it is by `simulate` and `tune`.

    Parameters
    ----------
    problem : Problem
        A custom problem, such as one from `define_problem`.
    horizon : int
        Steps in a run.
    seed : int
        The seed of the instances that are checked.

    Returns
    -------
    str
        What was compared, and the smallest deviation of the means that would have been detected.

    Raises
    ------
    InvalidRequest
        If the problem fails the check, is part of this package, or an argument cannot be used.
    SimulationError
        If its functions fail.

    Examples
    --------
    >>> from functools import partial
    >>> import banditune as bt
    >>> def sample(size, rng, arms):
    ...     return rng.beta(2, 8, (size, arms))
    >>> @bt.kernel.scalar
    ... def reward(instance, arm, pull, step, stream):
    ...     return bt.kernel.bernoulli(stream, instance.means[arm])
    >>> problem = bt.define_problem("mine", partial(sample, arms=3), reward, arms=3, rewards="binary")
    >>> print(bt.testing.check_problem(problem, horizon=100)[:60])
    rewards of 'mine' agree with the means that `sample` returns
    """
    problem, horizon = check_problem_and_horizon(problem, horizon)
    if find_own_code(problem) is None:
        raise InvalidRequest(f"`problem` must be a custom problem, but {problem.name!r} is part of this package.")
    check_regret_defined(problem, "expected")
    check = check_custom_problem(SimulationSpec(NoPolicy(), problem, horizon, check_count("seed", seed, 0)))
    if check is None:
        return f"no rewards of {problem.name!r} could be drawn; simulate() reports why."
    arm = "" if math.isnan(check.detectable_per_arm) else f", and one of {check.detectable_per_arm:.2g} in a single arm"
    return (
        f"rewards of {problem.name!r} agree with the means that `sample` returns: over {check.reward_count:,} "
        f"rewards they are {check.drawn_mean:.4g} on average, and their means {check.stated_mean:.4g}; a deviation of "
        f"{check.detectable:.2g} in all of them would have been detected{arm} (four standard errors)."
    )
