"""Distributions of problem instances. To add one: a file here and a line on the shelf."""

from collections.abc import Callable, Mapping
from typing import Any

from banditune.contracts import BadRequest, Problem
from banditune.descriptions import OWN
from banditune.problems.bernoulli import Bernoulli, Mixture, warm_up
from banditune.problems.beta import BetaRewards
from banditune.problems.campaigns import Campaigns
from banditune.problems.data_set import DataSet
from banditune.problems.gaussian import Gaussian
from banditune.problems.linear import Linear, Logistic
from banditune.problems.own import OwnProblem, arm_problem
from banditune.problems.table import RewardTable, reward_table

SHELF: dict[str, Callable[..., Problem]] = {
    "bernoulli": Bernoulli,
    "beta": BetaRewards,
    "campaigns": Campaigns,
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
    "Campaigns",
    "DataSet",
    "Gaussian",
    "Linear",
    "Logistic",
    "Mixture",
    "OwnProblem",
    "RewardTable",
    "arm_problem",
    "problem_from",
    "reward_table",
    "rewards_in",
    "warm_up",
]


FROM_FILES = {"reward-table"}
"""Problems that are made from a file: what a file holds must not name another one to be opened."""


def rewards_in(made: Mapping[str, Any]) -> str:
    """What rewards of a described problem can be; "real", which is any, where nobody knows."""
    shelved = None if OWN in made else SHELF.get(str(made.get("name")))
    told = made.get("rewards", getattr(shelved, "rewards", None))
    return told if told in ("binary", "unit") else "real"


def problem_from(made: Mapping[str, Any]) -> Problem:
    """A problem from its name and options, as results keep them."""
    options = {key: value for key, value in made.items() if key != "name"}
    name = made.get("name")
    if OWN in made:
        raise BadRequest(f"a problem must be from the shelf to be made again, but {name!r} is your own ({made[OWN]}).")
    known = [each for each in SHELF if each not in FROM_FILES]
    if not isinstance(name, str) or name not in known:
        raise BadRequest(f"the problem must be one of {', '.join(known)}, but got {name!r}.")
    try:
        return SHELF[name](**options)
    except BadRequest:
        raise
    except (TypeError, ValueError, OverflowError, MemoryError) as error:
        raise BadRequest(f"a problem must be made with its own options, but {error}.") from error
