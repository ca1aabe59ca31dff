"""What can be computed rather than simulated: indices, optimal values, exact regrets, and bounds for any policy."""

from collections.abc import Callable

from banditune.contracts import Policy
from banditune.exact.gittins import Gittins, gittins_index
from banditune.exact.mixtures import OptimalMixture
from banditune.exact.optimum import optimal_policy
from banditune.exact.two_arms import Optimal

SHELF: dict[str, Callable[..., Policy]] = {
    "gittins": Gittins,
    "optimal": Optimal,
    "optimal-mixture": OptimalMixture,
}
"""Policies that play a table."""

__all__ = ["SHELF", "Gittins", "Optimal", "OptimalMixture", "gittins_index", "optimal_policy"]
