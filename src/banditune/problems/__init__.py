"""Distributions of problem instances. To add one: a file here and a line on the shelf."""

from collections.abc import Callable

from banditune.contracts import Problem
from banditune.problems.bernoulli import Bernoulli, Mixture, warm_up
from banditune.problems.beta import BetaRewards
from banditune.problems.gaussian import Gaussian
from banditune.problems.linear import Linear, Logistic
from banditune.problems.own import OwnProblem, arm_problem
from banditune.problems.table import RewardTable, reward_table

SHELF: dict[str, Callable[..., Problem]] = {
    "bernoulli": Bernoulli,
    "beta": BetaRewards,
    "gaussian": Gaussian,
    "linear": Linear,
    "logistic": Logistic,
    "mixture": Mixture,
    "reward-table": reward_table,
    "warm-up": warm_up,
}

__all__ = [
    "SHELF",
    "Bernoulli",
    "BetaRewards",
    "Gaussian",
    "Linear",
    "Logistic",
    "Mixture",
    "OwnProblem",
    "RewardTable",
    "arm_problem",
    "reward_table",
    "warm_up",
]
