"""The policies that use a precomputed table."""

from banditune.core.checks import is_from_problem
from banditune.core.lazy_registry import Registry
from banditune.core.policy import Policy
from banditune.core.problem import Problem
from banditune.exact.optimal_mixture import OptimalMixture
from banditune.exact.optimal_two_arms import Optimal
from banditune.exact.optimal_value import make_optimal_policy


def resolve_optimal_policy(policy: Policy, problem: Problem) -> Policy:
    """Resolve the prior of an optimal policy that is taken from the problem. Other policies are returned unchanged."""
    prior = policy.means if isinstance(policy, OptimalMixture) else getattr(policy, "prior", None)
    if isinstance(policy, Optimal | OptimalMixture) and is_from_problem(prior):
        return make_optimal_policy(problem)
    return policy


TABLE_POLICIES = Registry(
    {
        "gittins": "banditune.exact.gittins:Gittins",
        "optimal": "banditune.exact.optimal_two_arms:Optimal",
        "optimal-mixture": "banditune.exact.optimal_mixture:OptimalMixture",
    }
)
"""The names of policies that use a table."""
