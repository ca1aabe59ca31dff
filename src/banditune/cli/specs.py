"""Names and numbers on the command line become records."""

from __future__ import annotations

import shlex
from typing import Any

LOG_SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".pq")
"""How the names of logs end."""


def parse_policy(name: str) -> Any:
    """A policy by its name on the shelf, or from a user's file."""
    from banditune.core.errors import InvalidRequest
    from banditune.core.policy import Policy as Kind
    from banditune.registry import collect_policies, make_from_spec

    if "," in name and ":" not in name:
        raise InvalidRequest(
            f"a policy must be one name, but got {name!r}; `banditune compare` takes several, each "
            "with a --policy of its own."
        )
    return make_from_spec("policy", name, collect_policies(), Kind)


def parse_problem_and_horizon(name: str, horizon: int | None, **options: Any) -> tuple[Any, int]:
    """A problem by its name, and the horizon that was told or that stands in the problem's file."""
    from banditune.core.errors import InvalidRequest

    found = parse_problem_file(name, **options)
    steps = found.horizon if horizon is None else horizon
    if steps is None:
        raise InvalidRequest("the number of steps in a run must be told; give it as --horizon.")
    return found.problem, steps


def parse_problem(name: str, **options: Any) -> Any:
    """A problem by its name on the shelf, or from a user's file."""
    return parse_problem_file(name, **options).problem


def parse_problem_file(name: str, **options: Any) -> Any:
    """The same, with the horizon that stands in a problem's file."""
    from banditune.core.errors import InvalidRequest
    from banditune.core.parsing import parse_value, read_matrix
    from banditune.core.problem import Problem as Kind
    from banditune.problems.problem_file import ProblemFile, load_problem
    from banditune.problems.problem_registry import PROBLEMS
    from banditune.registry import make_from_spec

    if options.get("features"):
        options["features"] = read_matrix(options["features"])
    told = {key: parse_value(value) if isinstance(value, str) else value for key, value in options.items()}
    if options.get("names"):
        told["names"] = options["names"].split(",")
    told = {key: value for key, value in told.items() if value is not None}
    if ":" not in name and name.lower().endswith(LOG_SUFFIXES):
        raise InvalidRequest(
            f"a problem must be given, but {name!r} looks like past logs; fit one to them first, by `banditune fit "
            f"{shlex.quote(name)} -o prior.toml`, then give it: --problem prior.toml."
        )
    if ":" not in name and name.endswith(".json"):
        raise InvalidRequest(
            f"a problem must come from the shelf, a FILE.toml or FILE.py:NAME, but got {name!r}; `banditune fit LOGS -o "
            "prior.toml` writes one."
        )
    if not name.endswith(".toml"):
        return ProblemFile(make_from_spec("problem", name, PROBLEMS, Kind, told))
    if told:
        raise InvalidRequest(f"a problem from a file takes no --{next(iter(told))}; write it into {name}.")
    return load_problem(name)


def parse_ranges(told: list[str] | None) -> dict[str, tuple[float, float]] | None:
    """Ranges of parameters, each typed as NAME=LOW:HIGH; of two for one parameter the last one counts."""
    found = {}
    for one in told or ():
        name, _, ends = one.partition("=")
        low, _, high = ends.partition(":")
        try:
            found[name.strip()] = float(low), float(high)
        except ValueError:
            from banditune.core.errors import InvalidRequest

            raise InvalidRequest(f"--range must be NAME=LOW:HIGH, such as gamma=0:3, but got {one!r}.") from None
    return found or None


def parse_tuner(name: str) -> Any:
    """A tuner by its name on the shelf, or from a user's file."""
    from banditune.core.tuner import Tuner as Kind
    from banditune.registry import make_from_spec
    from banditune.tuners.tuner_registry import TUNERS

    return make_from_spec("tuner", name, TUNERS, Kind)
