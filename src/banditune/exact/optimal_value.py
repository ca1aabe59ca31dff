"""Computes the optimal value of a problem: the largest expected total reward of any policy."""

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
    """Expected total rewards: of the optimal policy, and of an oracle that knows the means."""

    reward: float
    oracle_reward: float

    @property
    def regret(self) -> float:
        """The Bayes regret of the optimal policy."""
        return self.oracle_reward - self.reward


def compute_optimum(
    problem: Problem, horizon: int, free: float | None = None, progress: optimal_mixture.StepProgress | None = None
) -> OptimalReward:
    """Compute the expected total reward of the optimal policy, and `horizon` times the expected largest mean.

    `free` limits the memory for it; by default it is all free memory. For a mixture, `progress` is called after each step.
    """
    horizon = check_integer("horizon", horizon, 1)
    if type(problem) is Mixture:
        reward = optimal_mixture.compute_optimal_reward_mixture(problem.means, problem.weights, horizon, free, progress)
        oracle = horizon * compute_expected_best(problem)
    elif type(problem) is Bernoulli and problem.arms == 2:
        shapes = optimal_two_arms.resolve_two_arm_shapes(problem.prior)
        reward = optimal_two_arms.compute_optimal_reward_two_arms(shapes, horizon, free=free)
        oracle = horizon * compute_expected_max(shapes)
    else:
        raise _make_refusal(problem)
    # Because of rounding, the optimal policy may appear better than an oracle that knows the means.
    return OptimalReward(min(reward, oracle), oracle)


OPTIMUM_PROBLEMS = (Bernoulli, Mixture)
"""The problems whose optimum may be computed. Of the first, only those with two arms."""


QUICK_BYTES, QUICK_HORIZON = 2**26, 20_000
"""Limits of tables and horizon, within which an optimum takes at most a few seconds."""


def compute_quick_optimum(problem: Problem, horizon: int) -> OptimalReward | None:
    """Compute the optimum if this takes at most a few seconds; else return None."""
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
    """Compute the expected largest mean."""
    return float(sum(weight * max(row) for weight, row in zip(problem.weights, problem.means, strict=True)))


def make_optimal_policy(problem: Problem) -> Policy:
    """Make the policy with the smallest Bayes regret on a problem.

    Parameters
    ----------
    problem : Bernoulli or Mixture
        Two Bernoulli arms with Beta priors, or a mixture of a few vectors of means.

    Returns
    -------
    Policy
        `Optimal` or `OptimalMixture`, with the problem's prior.

    Raises
    ------
    InvalidRequest
        If the optimum of the problem cannot be computed.

    Examples
    --------
    >>> import banditune as bt
    >>> bt.exact.make_optimal_policy(bt.Bernoulli(arms=2)).name
    'optimal'
    """
    if type(problem) is Mixture:
        return optimal_mixture.OptimalMixture(problem.means, problem.weights)
    if type(problem) is Bernoulli and problem.arms == 2:
        return optimal_two_arms.Optimal(problem.prior)
    raise _make_refusal(problem)


def _make_refusal(problem: Problem) -> InvalidRequest:
    description = f"{problem.name} with {problem.arms} arms" if isinstance(problem, Problem) else repr(problem)
    return InvalidRequest(
        f"the problem must be bernoulli with 2 arms, or mixture, for its optimum to be computed, but it is {description}; "
        "use one of these, or compare policies by simulation.",
        argument="problem",
        code="unsupported",
    )
