"""What can be computed rather than simulated: indices, optimal values, exact regrets, and bounds for any policy."""

from collections.abc import Callable

from banditune.core.checks import is_from_problem
from banditune.core.policy import Policy
from banditune.core.problem import Problem
from banditune.exact.gittins import Gittins
from banditune.exact.optimal_mixture import OptimalMixture
from banditune.exact.optimal_two_arms import Optimal
from banditune.exact.optimal_value import make_optimal_policy


def resolve_optimal_policy(policy: Policy, problem: Problem) -> Policy:
    """The optimal policy of a problem, where the policy is to be that; others as they are."""
    open_table = policy.means if isinstance(policy, OptimalMixture) else getattr(policy, "prior", None)
    if isinstance(policy, Optimal | OptimalMixture) and is_from_problem(open_table):
        return make_optimal_policy(problem)
    return policy


TABLE_POLICIES: dict[str, Callable[..., Policy]] = {
    "gittins": Gittins,
    "optimal": Optimal,
    "optimal-mixture": OptimalMixture,
}
"""Policies that play a table."""
