"""The best that any policy can do on a problem, where it can be computed: the yardstick for all others."""

from __future__ import annotations

from typing import NamedTuple

from banditune.core.checks import check_integer
from banditune.core.errors import InvalidRequest
from banditune.core.policy import Policy
from banditune.core.problem import Problem
from banditune.exact import optimal_mixture, optimal_two_arms
from banditune.exact.beta_quadrature import compute_expected_max
from banditune.exact.table_cache import TableTooLarge
from banditune.problems.bernoulli_arms import Bernoulli, Mixture


class OptimalReward(NamedTuple):
    """Expected total rewards: of the optimal policy, and of one that is told the means."""

    reward: float
    known: float

    @property
    def regret(self) -> float:
        """The smallest Bayes regret that a policy can have."""
        return self.known - self.reward


def compute_optimum(
    problem: Problem, horizon: int, free: float | None = None, progress: optimal_mixture.StepProgress | None = None
) -> OptimalReward:
    """Expected total reward of the optimal policy, and `horizon` times the expected largest mean.

    `free` is the memory that there is for it, if not all that is free. Of a mixture, steps are told to `progress`.
    """
    horizon = check_integer("horizon", horizon, 1)
    if type(problem) is Mixture:
        reward = optimal_mixture.compute_optimal_reward_mixture(problem.means, problem.weights, horizon, free, progress)
        known = horizon * compute_expected_best(problem)
    elif type(problem) is Bernoulli and problem.arms == 2:
        shapes = optimal_two_arms.resolve_two_arm_shapes(problem.prior)
        reward = optimal_two_arms.compute_optimal_reward_two_arms(shapes, horizon, free=free)
        known = horizon * compute_expected_max(shapes)
    else:
        raise _make_refusal(problem)
    # Rounding must not make the best policy better than one that is told the means.
    return OptimalReward(min(reward, known), known)


OPTIMUM_PROBLEMS = (Bernoulli, Mixture)
"""Problems that may have an optimum which can be computed; of the first only those with two arms."""


QUICK_BYTES, QUICK_HORIZON = 2**26, 20_000
"""An optimum whose tables fit into so many bytes, for such a horizon, is there in a second or two."""


def compute_quick_optimum(problem: Problem, horizon: int) -> OptimalReward | None:
    """The optimum, where it can be computed in a second or two."""
    if (
        type(problem) not in OPTIMUM_PROBLEMS
        or (type(problem) is Bernoulli and problem.arms != 2)
        or horizon > QUICK_HORIZON
    ):
        return None
    try:
        return compute_optimum(problem, horizon, QUICK_BYTES)
    except TableTooLarge:
        return None


def compute_expected_best(problem: Mixture) -> float:
    """The expected largest mean."""
    return float(sum(weight * max(row) for weight, row in zip(problem.weights, problem.means, strict=True)))


def make_optimal_policy(problem: Problem) -> Policy:
    """The policy with the smallest Bayes regret on a problem."""
    if type(problem) is Mixture:
        return optimal_mixture.OptimalMixture(problem.means, problem.weights)
    if type(problem) is Bernoulli and problem.arms == 2:
        return optimal_two_arms.Optimal(problem.prior)
    raise _make_refusal(problem)


def _make_refusal(problem: Problem) -> InvalidRequest:
    given = f"{problem.name} with {problem.arms} arms" if isinstance(problem, Problem) else repr(problem)
    return InvalidRequest(
        f"the problem must be bernoulli with 2 arms, or mixture, for its optimum to be computed, but it is {given}; use "
        "one of these, or compare policies by simulation."
    )
