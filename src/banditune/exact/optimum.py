"""The best that any policy can do on a problem, where it can be computed: the yardstick for all others."""

from __future__ import annotations

from typing import NamedTuple

from banditune.contracts import BadRequest, Policy, Problem
from banditune.exact import mixtures, two_arms
from banditune.exact.beliefs import expected_max
from banditune.problems import Bernoulli, Mixture


class Optimum(NamedTuple):
    """Expected total rewards: of the optimal policy, and of one that is told the means."""

    reward: float
    known: float

    @property
    def regret(self) -> float:
        """The smallest Bayes regret that a policy can have."""
        return self.known - self.reward


def optimum(problem: Problem, horizon: int) -> Optimum:
    """Expected total reward of the optimal policy, and `horizon` times the expected largest mean."""
    horizon = two_arms.check_horizon(horizon)
    if type(problem) is Mixture:
        known = sum(weight * max(row) for weight, row in zip(problem.weights, problem.means, strict=True))
        return Optimum(mixtures.optimal_reward(problem.means, problem.weights, horizon), horizon * known)
    if type(problem) is Bernoulli and problem.arms == 2:
        shapes = two_arms.check_shapes(problem.prior)
        known = expected_max(shapes)
        return Optimum(two_arms.optimal_reward(shapes, horizon), horizon * known)
    raise _refusal(problem)


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
