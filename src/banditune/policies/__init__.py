"""Bandit algorithms. To add one: a file here and a line on the shelf."""

from collections.abc import Callable

from banditune.contracts import Policy
from banditune.policies.arms import ArmTotals, OwnPolicy, arm_policy, best_mean, random_arm
from banditune.policies.gaussian_thompson import GaussianThompson
from banditune.policies.simple import EpsilonGreedy, ExploreThenCommit, Greedy
from banditune.policies.thompson import Thompson
from banditune.policies.ucb1 import UCB1

SHELF: dict[str, Callable[..., Policy]] = {
    "ucb1": UCB1,
    "ts": Thompson,
    "gaussian-ts": GaussianThompson,
    "epsilon-greedy": EpsilonGreedy,
    "explore-then-commit": ExploreThenCommit,
    "greedy": Greedy,
}

__all__ = [
    "SHELF",
    "UCB1",
    "ArmTotals",
    "EpsilonGreedy",
    "ExploreThenCommit",
    "GaussianThompson",
    "Greedy",
    "OwnPolicy",
    "Thompson",
    "arm_policy",
    "best_mean",
    "random_arm",
]
