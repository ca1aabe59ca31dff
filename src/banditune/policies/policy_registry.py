"""Bandit algorithms. To add one: a file here and a line on the shelf."""

from collections.abc import Callable

from banditune.core.policy import Policy
from banditune.policies.epsilon_greedy import EpsilonGreedy
from banditune.policies.explore_then_commit import ExploreThenCommit
from banditune.policies.gaussian_thompson import GaussianThompson
from banditune.policies.glm_greedy import GLMEpsilonGreedy, GLMGreedy
from banditune.policies.glm_tsl import GLMTSL
from banditune.policies.greedy import Greedy
from banditune.policies.linear_greedy import LinEpsilonGreedy, LinGreedy
from banditune.policies.lints import LinTS
from banditune.policies.linucb import LinUCB
from banditune.policies.thompson import Thompson
from banditune.policies.ucb1 import UCB1
from banditune.policies.ucb1_step import UCB1Step
from banditune.policies.ucb_glm import UCBGLM

POLICIES: dict[str, Callable[..., Policy]] = {
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
