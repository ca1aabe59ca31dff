"""Names and numbers on the command line become records."""

from __future__ import annotations

import shlex
from typing import Any

LOGS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".pq")
"""How the names of logs end."""


def policy_named(name: str) -> Any:
    """A policy by its name on the shelf, or from a user's file."""
    from banditune.contracts import BadRequest
    from banditune.contracts import Policy as Kind
    from banditune.shelf import every_policy, pick

    if "," in name and ":" not in name:
        raise BadRequest(
            f"a policy must be one name, but got {name!r}; `banditune compare` takes several, each "
            "with a --policy of its own."
        )
    return pick("policy", name, every_policy(), Kind)


def expected(name: str, horizon: int | None, **options: Any) -> tuple[Any, int]:
    """A problem by its name, and the horizon that was told or that stands in the problem's file."""
    from banditune.contracts import BadRequest

    found = prior_named(name, **options)
    steps = found.horizon if horizon is None else horizon
    if steps is None:
        raise BadRequest("the number of steps in a run must be told; give it as --horizon.")
    return found.problem, steps


def problem_named(name: str, **options: Any) -> Any:
    """A problem by its name on the shelf, or from a user's file."""
    return prior_named(name, **options).problem


def prior_named(name: str, **options: Any) -> Any:
    """The same, with the horizon that stands in a problem's file."""
    from banditune.contracts import BadRequest
    from banditune.contracts import Problem as Kind
    from banditune.logs import Prior, read_prior
    from banditune.problems import SHELF
    from banditune.shelf import matrix_from, parsed, pick

    if options.get("features"):
        options["features"] = matrix_from(options["features"])
    told = {key: parsed(value) if isinstance(value, str) else value for key, value in options.items()}
    if options.get("names"):
        told["names"] = options["names"].split(",")
    told = {key: value for key, value in told.items() if value is not None}
    if ":" not in name and name.lower().endswith(LOGS):
        raise BadRequest(
            f"a problem must be given, but {name!r} looks like past logs; fit one to them first, by `banditune fit "
            f"{shlex.quote(name)} -o prior.toml`, then give it: --problem prior.toml."
        )
    if ":" not in name and name.endswith(".json"):
        raise BadRequest(
            f"a problem must come from the shelf, a FILE.toml or FILE.py:NAME, but got {name!r}; `banditune fit LOGS -o "
            "prior.toml` writes one."
        )
    if not name.endswith(".toml"):
        return Prior(pick("problem", name, SHELF, Kind, told))
    if told:
        raise BadRequest(f"a problem from a file takes no --{next(iter(told))}; write it into {name}.")
    return read_prior(name)


def ranges_told(told: list[str] | None) -> dict[str, tuple[float, float]] | None:
    """Ranges of parameters, each typed as NAME=LOW:HIGH; of two for one parameter the last one counts."""
    found = {}
    for one in told or ():
        name, _, ends = one.partition("=")
        low, _, high = ends.partition(":")
        try:
            found[name.strip()] = float(low), float(high)
        except ValueError:
            from banditune.contracts import BadRequest

            raise BadRequest(f"--range must be NAME=LOW:HIGH, such as gamma=0:3, but got {one!r}.") from None
    return found or None


def tuner_named(name: str) -> Any:
    """A tuner by its name on the shelf, or from a user's file."""
    from banditune.contracts import Tuner as Kind
    from banditune.shelf import pick
    from banditune.tuners import SHELF

    return pick("tuner", name, SHELF, Kind)
