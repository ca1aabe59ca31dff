"""Parses names and numbers of the command line."""

from __future__ import annotations

import shlex
from typing import Any

LOG_SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".pq")
"""Suffixes of log files."""


def parse_policy(name: str) -> Any:
    """Make a policy from its registered name or from a user's file."""
    from banditune.core.errors import InvalidRequest
    from banditune.core.policy import Policy as Kind
    from banditune.registry import collect_policies, make_from_spec

    if "," in name and ":" not in name:
        raise InvalidRequest(
            f"a policy must be one name, but got {name!r}; for `banditune compare` give --policy once for each policy.",
            argument="policy",
            code="invalid-request",
        )
    return make_from_spec("policy", name, collect_policies(), Kind)


def parse_problem_and_horizon(name: str, horizon: int | None, **options: Any) -> tuple[Any, int]:
    """Make a problem from its name, and return it with the given horizon or that of the problem's file."""
    from banditune.core.errors import InvalidRequest

    problem_file = parse_problem_file(name, **options)
    steps = problem_file.horizon if horizon is None else horizon
    if steps is None:
        raise InvalidRequest(
            "the number of steps in a run is missing; give it as --horizon.", argument="horizon", code="missing"
        )
    return problem_file.problem, steps


def parse_problem(name: str, **options: Any) -> Any:
    """Make a problem from its registered name or from a user's file."""
    return parse_problem_file(name, **options).problem


def parse_problem_file(name: str, **options: Any) -> Any:
    """Make a problem, with the horizon if it comes from a problem's file."""
    from banditune.core.errors import InvalidRequest
    from banditune.core.parsing import parse_value, read_matrix
    from banditune.core.problem import Problem as Kind
    from banditune.problems.problem_file import ProblemFile, load_problem
    from banditune.problems.problem_registry import PROBLEMS
    from banditune.registry import make_from_spec

    if options.get("features"):
        options["features"] = read_matrix(options["features"])
    values = {key: parse_value(value) if isinstance(value, str) else value for key, value in options.items()}
    if options.get("names"):
        values["names"] = options["names"].split(",")
    values = {key: value for key, value in values.items() if value is not None}
    if ":" not in name and name.lower().endswith(LOG_SUFFIXES):
        raise InvalidRequest(
            f"a problem must be given, but {name!r} looks like past logs; fit one to them first, by `banditune fit "
            f"{shlex.quote(name)} -o prior.toml`, then give it: --problem prior.toml.",
            argument="problem",
            code="wrong-type",
        )
    if ":" not in name and name.endswith(".json"):
        raise InvalidRequest(
            f"a problem must be a registered name, FILE.toml or FILE.py:NAME, but got {name!r}; `banditune fit LOGS -o "
            "prior.toml` writes one.",
            argument="problem",
            code="wrong-type",
        )
    if not name.endswith(".toml"):
        return ProblemFile(make_from_spec("problem", name, PROBLEMS, Kind, values))
    if values:
        raise InvalidRequest(
            f"--{next(iter(values))} cannot be given with a problem from a file; write it into {name}.",
            argument=next(iter(values)),
            code="conflict",
        )
    return load_problem(name)


def parse_ranges(values: list[str] | None) -> dict[str, tuple[float, float]] | None:
    """Parse ranges of parameters, each NAME=LOW:HIGH. If a parameter is given twice, the last range wins."""
    ranges = {}
    for text in values or ():
        name, _, ends = text.partition("=")
        low, _, high = ends.partition(":")
        try:
            ranges[name.strip()] = float(low), float(high)
        except ValueError:
            from banditune.core.errors import InvalidRequest

            raise InvalidRequest(
                f"--range must be NAME=LOW:HIGH, such as gamma=0:3, but got {text!r}.",
                argument="ranges",
                code="wrong-type",
            ) from None
    return ranges or None


def parse_fixed(texts: list[str] | None) -> dict[str, float] | None:
    """Parse parameters that are not searched, each NAME=VALUE."""
    fixed = {}
    for text in texts or ():
        name, _, value = text.partition("=")
        try:
            fixed[name.strip()] = float(value)
        except ValueError:
            from banditune.core.errors import InvalidRequest

            raise InvalidRequest(
                f"--fix must be NAME=VALUE, such as epsilon=0.1, but got {text!r}.", argument="fixed", code="wrong-type"
            ) from None
    return fixed or None


def parse_tuner(name: str) -> Any:
    """Make a tuner from its registered name or from a user's file."""
    from banditune.core.tuner import Tuner as Kind
    from banditune.registry import make_from_spec
    from banditune.tuners.tuner_registry import TUNERS

    return make_from_spec("tuner", name, TUNERS, Kind)


def parse_series_values(texts: list[str] | None, policies: int) -> list[Any]:
    """Parse the values of each of several policies; None stands for the textbook values."""
    from banditune.core.errors import InvalidRequest
    from banditune.core.parsing import parse_value

    if not texts:
        return [None] * policies
    if len(texts) != policies:
        raise InvalidRequest(
            f"--values must be given once for each --policy, but got {len(texts)} for {policies}; the word textbook stands "
            "for the textbook values.",
            argument="values",
            code="wrong-shape",
        )
    return [None if text.strip() == "textbook" else parse_value(text) for text in texts]


def parse_steps(text: str | None) -> list[Any] | None:
    """Parse steps, as 10,100,1000."""
    from banditune.core.parsing import parse_value

    if text is None:
        return None
    steps = parse_value(text)
    return steps if isinstance(steps, list) else [steps]


def parse_size(text: str | None) -> Any:
    """Parse the size of a figure: the word column, or two numbers."""
    from banditune.core.parsing import parse_value

    return None if text is None else parse_value(text)
