"""The registry of problems. To add one: write a module in this package and add it to `PROBLEMS`."""

from collections.abc import Mapping
from typing import Any

from banditune.core.descriptions import OWN_CODE_KEY
from banditune.core.errors import InvalidRequest
from banditune.core.lazy_registry import Registry
from banditune.core.problem import Problem
from banditune.core.request_errors import make_name_error

PROBLEMS = Registry(
    {
        "bernoulli": "banditune.problems.bernoulli_arms:Bernoulli",
        "beta": "banditune.problems.beta_arms:BetaRewards",
        "campaigns": "banditune.problems.campaigns:Campaigns",
        "gaussian": "banditune.problems.gaussian_arms:Gaussian",
        "linear": "banditune.problems.generalized_linear:Linear",
        "logistic": "banditune.problems.generalized_linear:Logistic",
        "mixture": "banditune.problems.bernoulli_arms:Mixture",
        "reward-table": "banditune.problems.reward_table:read_reward_table",
        "warm-up": "banditune.problems.bernoulli_arms:two_point_mixture",
    },
    group="banditune.problems",
)


FILE_PROBLEMS = {"reward-table"}
"""Problems that are read from a file. They are not allowed in a problem file, because it must not open another file."""


def list_buildable_problems() -> list[str]:
    """List the problems that are allowed in a file: those of this package that do not read another file."""
    return [name for name in PROBLEMS.names if name not in FILE_PROBLEMS]


def get_reward_kind(description: Mapping[str, Any]) -> str:
    """Return the kind of rewards of a described problem; "real", the most general kind, if it is unknown."""
    registered = None if OWN_CODE_KEY in description else PROBLEMS.get(str(description.get("name")))
    rewards = description.get("rewards", getattr(registered, "rewards", None))
    return rewards if rewards in ("binary", "unit") else "real"


def build_problem(description: Mapping[str, Any]) -> Problem:
    """Build a problem from its name and options, as results store them.

    Parameters
    ----------
    description : mapping
        The problem's `name` and its options, such as `{"name": "bernoulli", "arms": 3}`.

    Returns
    -------
    Problem
        The problem.

    Raises
    ------
    InvalidRequest
        If the name or an option is unknown, or if the problem is your own or is made from a file.

    Examples
    --------
    >>> import banditune as bt
    >>> bt.problems.build_problem({"name": "bernoulli", "arms": 3}).arms
    3
    """
    options = {key: value for key, value in description.items() if key != "name"}
    name = description.get("name")
    if OWN_CODE_KEY in description:
        raise InvalidRequest(
            f"only problems of this package can be built from a description, but {name!r} is your own "
            f"({description[OWN_CODE_KEY]}).",
            code="unsupported",
        )
    names = list_buildable_problems()
    if not isinstance(name, str) or name not in names:
        raise make_name_error("the problem", names, name, argument="name")
    try:
        problem: Problem = PROBLEMS[name](**options)
        return problem
    except InvalidRequest:
        raise
    except (TypeError, ValueError, OverflowError, MemoryError) as error:
        raise InvalidRequest(f"the options of {name!r} must be valid, but {error}.", code="wrong-type") from error
