"""What can be computed rather than simulated: indices, optimal values, exact regrets, and bounds for any policy."""

from collections.abc import Callable

from banditune.checks import is_open
from banditune.contracts import Policy, Problem
from banditune.exact.gittins import Gittins, gittins_index
from banditune.exact.mixtures import OptimalMixture
from banditune.exact.optimum import optimal_policy
from banditune.exact.two_arms import Optimal


def made_optimal(policy: Policy, problem: Problem) -> Policy:
    """The optimal policy of a problem, where the policy is to be that; others as they are."""
    open_table = policy.means if isinstance(policy, OptimalMixture) else getattr(policy, "prior", None)
    if isinstance(policy, Optimal | OptimalMixture) and is_open(open_table):
        return optimal_policy(problem)
    return policy


SHELF: dict[str, Callable[..., Policy]] = {
    "gittins": Gittins,
    "optimal": Optimal,
    "optimal-mixture": OptimalMixture,
}
"""Policies that play a table."""

__all__ = ["SHELF", "Gittins", "Optimal", "OptimalMixture", "gittins_index", "made_optimal", "optimal_policy"]
