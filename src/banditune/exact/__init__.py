"""What can be computed rather than simulated: indices, optimal values, exact regrets, and bounds for any policy."""

from collections.abc import Callable

from banditune.contracts import Policy, Problem
from banditune.exact.gittins import Gittins, gittins_index
from banditune.exact.mixtures import OptimalMixture
from banditune.exact.optimum import KINDS, optimal_policy
from banditune.exact.two_arms import Optimal
from banditune.problems import Bernoulli


def suited(policy: Policy, problem: Problem) -> Policy:
    """A policy that plays a table, made for the prior of a problem; others as they are."""
    if isinstance(policy, Gittins) and type(problem) is Bernoulli:
        return Gittins(problem.prior)
    if isinstance(policy, Optimal | OptimalMixture) and type(problem) in KINDS:
        return optimal_policy(problem)
    return policy


SHELF: dict[str, Callable[..., Policy]] = {
    "gittins": Gittins,
    "optimal": Optimal,
    "optimal-mixture": OptimalMixture,
}
"""Policies that play a table."""

__all__ = ["SHELF", "Gittins", "Optimal", "OptimalMixture", "gittins_index", "optimal_policy", "suited"]
