"""Bandit algorithms. To add one: a file here and a line on the shelf."""

from collections.abc import Callable

from banditune.contracts import Policy
from banditune.policies.arms import ArmTotals, OwnPolicy, arm_policy, best_mean, random_arm
from banditune.policies.gaussian_thompson import GaussianThompson
from banditune.policies.glm import GLMTSL, UCBGLM, GLMEpsilonGreedy, GLMGreedy
from banditune.policies.linear import LinEpsilonGreedy, LinGreedy, LinTS, LinUCB, ridge_policy
from banditune.policies.ridge import best_score, sample_scores
from banditune.policies.simple import EpsilonGreedy, ExploreThenCommit, Greedy
from banditune.policies.thompson import Thompson
from banditune.policies.ucb1 import UCB1
from banditune.policies.ucb1_step import UCB1Step

SHELF: dict[str, Callable[..., Policy]] = {
    "ucb1": UCB1,
    "ucb1-step": UCB1Step,
    "ts": Thompson,
    "gaussian-ts": GaussianThompson,
    "epsilon-greedy": EpsilonGreedy,
    "explore-then-commit": ExploreThenCommit,
    "greedy": Greedy,
    "linucb": LinUCB,
    "lints": LinTS,
    "ucb-glm": UCBGLM,
    "glm-tsl": GLMTSL,
    "lin-epsilon-greedy": LinEpsilonGreedy,
    "lin-greedy": LinGreedy,
    "glm-epsilon-greedy": GLMEpsilonGreedy,
    "glm-greedy": GLMGreedy,
}

__all__ = [
    "GLMTSL",
    "SHELF",
    "UCB1",
    "UCBGLM",
    "ArmTotals",
    "EpsilonGreedy",
    "ExploreThenCommit",
    "GLMEpsilonGreedy",
    "GLMGreedy",
    "GaussianThompson",
    "Greedy",
    "LinEpsilonGreedy",
    "LinGreedy",
    "LinTS",
    "LinUCB",
    "OwnPolicy",
    "Thompson",
    "UCB1Step",
    "arm_policy",
    "best_mean",
    "best_score",
    "random_arm",
    "ridge_policy",
    "sample_scores",
]
