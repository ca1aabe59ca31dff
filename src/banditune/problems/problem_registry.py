"""Distributions of problem instances. To add one: a file here and a line on the shelf."""

from collections.abc import Callable, Mapping
from typing import Any

from banditune.core.descriptions import OWN_CODE_KEY
from banditune.core.errors import InvalidRequest
from banditune.core.problem import Problem
from banditune.problems.bernoulli_arms import Bernoulli, Mixture, two_point_mixture
from banditune.problems.beta_arms import BetaRewards
from banditune.problems.campaigns import Campaigns
from banditune.problems.gaussian_arms import Gaussian
from banditune.problems.generalized_linear import Linear, Logistic
from banditune.problems.reward_table import read_reward_table

PROBLEMS: dict[str, Callable[..., Problem]] = {
    "bernoulli": Bernoulli,
    "beta": BetaRewards,
    "campaigns": Campaigns,
    "gaussian": Gaussian,
    "linear": Linear,
    "logistic": Logistic,
    "mixture": Mixture,
    "reward-table": read_reward_table,
    "warm-up": two_point_mixture,
}


FILE_PROBLEMS = {"reward-table"}
"""Problems that are made from a file: what a file holds must not name another one to be opened."""


def get_reward_kind(made: Mapping[str, Any]) -> str:
    """What rewards of a described problem can be; "real", which is any, where nobody knows."""
    shelved = None if OWN_CODE_KEY in made else PROBLEMS.get(str(made.get("name")))
    told = made.get("rewards", getattr(shelved, "rewards", None))
    return told if told in ("binary", "unit") else "real"


def build_problem(made: Mapping[str, Any]) -> Problem:
    """A problem from its name and options, as results keep them."""
    options = {key: value for key, value in made.items() if key != "name"}
    name = made.get("name")
    if OWN_CODE_KEY in made:
        raise InvalidRequest(
            f"a problem must be from the shelf to be made again, but {name!r} is your own ({made[OWN_CODE_KEY]})."
        )
    known = [each for each in PROBLEMS if each not in FILE_PROBLEMS]
    if not isinstance(name, str) or name not in known:
        raise InvalidRequest(f"the problem must be one of {', '.join(known)}, but got {name!r}.")
    try:
        return PROBLEMS[name](**options)
    except InvalidRequest:
        raise
    except (TypeError, ValueError, OverflowError, MemoryError) as error:
        raise InvalidRequest(f"a problem must be made with its own options, but {error}.") from error
