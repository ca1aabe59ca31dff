"""The best that any policy can do on a problem, where it can be computed: the yardstick for all others."""

from __future__ import annotations

from typing import NamedTuple

from banditune.checks import check_whole
from banditune.contracts import BadRequest, Policy, Problem
from banditune.exact import mixtures, two_arms
from banditune.exact.beliefs import expected_max
from banditune.exact.room import TooLarge
from banditune.problems import Bernoulli, Mixture


class Optimum(NamedTuple):
    """Expected total rewards: of the optimal policy, and of one that is told the means."""

    reward: float
    known: float

    @property
    def regret(self) -> float:
        """The smallest Bayes regret that a policy can have."""
        return self.known - self.reward


def optimum(
    problem: Problem, horizon: int, free: float | None = None, progress: mixtures.Progress | None = None
) -> Optimum:
    """Expected total reward of the optimal policy, and `horizon` times the expected largest mean.

    `free` is the memory that there is for it, if not all that is free. Of a mixture, steps are told to `progress`.
    """
    horizon = check_whole("horizon", horizon, 1)
    if type(problem) is Mixture:
        reward = mixtures.optimal_reward(problem.means, problem.weights, horizon, free, progress)
        known = horizon * expected_best(problem)
    elif type(problem) is Bernoulli and problem.arms == 2:
        shapes = two_arms.check_shapes(problem.prior)
        reward = two_arms.optimal_reward(shapes, horizon, free=free)
        known = horizon * expected_max(shapes)
    else:
        raise _refusal(problem)
    # Rounding must not make the best policy better than one that is told the means.
    return Optimum(min(reward, known), known)


KINDS = (Bernoulli, Mixture)
"""Problems that may have an optimum which can be computed; of the first only those with two arms."""

QUICK, FAR = 2**26, 20_000
"""An optimum whose tables fit into so many bytes, for such a horizon, is there in a second or two."""


def quick_optimum(problem: Problem, horizon: int) -> Optimum | None:
    """The optimum, where it can be computed in a second or two."""
    if type(problem) not in KINDS or (type(problem) is Bernoulli and problem.arms != 2) or horizon > FAR:
        return None
    try:
        return optimum(problem, horizon, QUICK)
    except TooLarge:
        return None


def expected_best(problem: Mixture) -> float:
    """The expected largest mean."""
    return float(sum(weight * max(row) for weight, row in zip(problem.weights, problem.means, strict=True)))


def optimal_policy(problem: Problem) -> Policy:
    """The policy with the smallest Bayes regret on a problem."""
    if type(problem) is Mixture:
        return mixtures.OptimalMixture(problem.means, problem.weights)
    if type(problem) is Bernoulli and problem.arms == 2:
        return two_arms.Optimal(problem.prior)
    raise _refusal(problem)


def _refusal(problem: Problem) -> BadRequest:
    given = f"{problem.name} with {problem.arms} arms" if isinstance(problem, Problem) else repr(problem)
    return BadRequest(
        f"the problem must be bernoulli with 2 arms, or mixture, for its optimum to be computed, but it is {given}; use "
        "one of these, or compare policies by simulation."
    )
