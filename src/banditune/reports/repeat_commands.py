"""How a result is repeated: its command line, and the call that plays single runs again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import singledispatch
from typing import Any

from banditune.core.descriptions import OWN_CODE_KEY
from banditune.core.policy import FROM_PROBLEM
from banditune.results.comparison_results import Comparison
from banditune.results.exact_results import ExactOptimum, ExactRegret, LowerBoundEstimates
from banditune.results.log_results import FittedProblem
from banditune.results.result_record import ResultRecord
from banditune.results.study_setup import StudySetup
from banditune.results.tuning_results import Curve, Tuning

DEFAULT_SETTINGS = {"seed": 0, "regret": "expected", "noise": "shared", "device": "cpu"}
"""Settings that need not be told."""


def make_command(result: ResultRecord) -> str | None:
    """The command line that gives this result again; None if something in it was made in Python and cannot be told."""
    setup = getattr(result, "setup", None)
    return setup.command if setup is not None and setup.command else compose_command(result)


@singledispatch
def compose_command(result: ResultRecord) -> str | None:
    """A command line made from what a result knows."""
    return None


@compose_command.register
def _(result: Tuning) -> str | None:
    assert result.setup.policy is not None
    assert result.setup.tuner is not None
    within = result.within
    told = {
        "tuner": format_spec(result.setup.tuner),
        "within": within,
        "confidence": result.belief.level if result.belief and result.belief.level != 0.95 else None,
        "max-budget" if within else "budget": result.budget,
        "validate": result.validate,
        "curve": result.curve is not None,
        "floor": result.floor is not None,
        "stress": result.stress is not None,
    }
    return join_command(
        "tune", [format_requested_policy(result.setup.policy, result.setup.from_problem)], result.setup, told
    )


@compose_command.register
def _(result: Curve) -> str | None:
    assert result.setup.policy is not None
    values = None if result.refined else ",".join(repr(value) for value in result.values.tolist())
    policy = format_requested_policy(result.setup.policy, result.setup.from_problem)
    return join_command("curve", [policy], result.setup, {"values": values, "runs": result.runs})


@compose_command.register
def _(result: Comparison) -> str | None:
    assert result.setup.tuner is not None
    # Best first is not the order in which they were given, but that changes nothing unless each has noise of its own.
    if result.setup.noise == "own":
        return None
    told = {"tuner": format_spec(result.setup.tuner), "budget": result.budget, "validate": result.validated}
    told["floor"] = result.floor is not None
    return join_command(
        "compare",
        [format_requested_policy(entry.made, entry.from_problem) for entry in result.entries],
        result.setup,
        told,
    )


@compose_command.register
def _(result: FittedProblem) -> str | None:
    return result.command


@compose_command.register
def _(result: ExactOptimum) -> str | None:
    return join_command("exact optimum", [], result.setup, {})


@compose_command.register
def _(result: ExactRegret) -> str | None:
    assert result.setup.policy is not None
    values = ",".join(repr(value) for value in result.values.tolist())
    return join_command(
        "exact regret",
        [format_requested_policy(result.setup.policy, result.setup.from_problem)],
        result.setup,
        {"values": values},
    )


@compose_command.register
def _(result: LowerBoundEstimates) -> str | None:
    # Where a computed bound is the best, an older result does not say how sure a sampled one had to be to beat it.
    confidence = result.floor.level if result.confidence is None else result.confidence
    if confidence == 1:
        return None
    return join_command("exact bound", [], result.setup, {"runs": max(result.runs), "confidence": confidence})


def join_command(verb: str, policies: Sequence[str | None], setup: StudySetup, told: dict[str, Any]) -> str | None:
    """A whole command line, quoted for a shell."""
    words: list[str | None] = ["banditune", *verb.split()]
    for policy in policies:
        words += ["--policy", policy]
    words += ["--problem", format_spec(setup.problem), "--horizon", str(setup.horizon)]
    for name, value in (told | select_unusual_settings(setup)).items():
        if value is True:
            words.append(f"--{name}")
        elif value not in (None, False):
            words += [f"--{name}", str(value)]
    for name, (low, high) in (setup.ranges or {}).items():
        words += ["--range", f"{name}={format_option_value(low)}:{format_option_value(high)}"]
    words += [] if setup.shortcut else ["--no-shortcut"]
    if None in words:
        return None
    return shlex.join([word for word in words if word is not None])


def select_unusual_settings(setup: StudySetup) -> dict[str, Any]:
    """Settings that are not the usual ones."""
    return {name: getattr(setup, name) for name, usual in DEFAULT_SETTINGS.items() if getattr(setup, name) != usual}


def format_spec(made: Mapping[str, Any]) -> str | None:
    """A policy, problem or tuner as the command line takes it, ucb1:noise=0.5; None if it cannot be told there.

    Of a user's own the file is known, but not which name it has there.
    """
    if OWN_CODE_KEY in made:
        file, _, _ = str(made[OWN_CODE_KEY]).rpartition(":")
        return f"{file}:NAME" if file else None
    if "digest" in made:  # made from a file that nobody knows
        return None
    pieces = []
    for name, value in made.items():
        if name == "name" or value is None or value in ([], ()):
            continue
        words = format_option_value(value)
        if words is None:
            return None
        pieces.append(f"{name}={words}")
    return f"{made['name']}:{','.join(pieces)}" if pieces else str(made["name"])


def format_requested_policy(policy: Mapping[str, Any], from_problem: Mapping[str, str]) -> str | None:
    """The policy as it was asked for: what it took from the problem, it takes from there again."""
    return format_spec({**policy, **dict.fromkeys(from_problem, FROM_PROBLEM)})


def format_option_value(value: Any) -> str | None:
    """A number, a word, 2,5 or .6,.4;.4,.6 for rows; a single row ends in a semicolon so that it stays a row.

    There is no way to tell a list of one number.
    """
    if isinstance(value, str):
        return None if set(value) & set(",;=()[] ") else value
    if isinstance(value, int | float):
        return None if isinstance(value, bool) else repr(value).removesuffix(".0")
    if not isinstance(value, list | tuple):
        return None
    rows = [isinstance(item, list | tuple) for item in value]
    pieces = [format_option_value(item) for item in value]
    # Rows of rows have no way to be told, and a matrix of features is no reading.
    if None in pieces or (any(rows) and not all(rows)) or any(";" in piece for piece in pieces if piece):
        return None
    told = (";" if any(rows) else ",").join(piece for piece in pieces if piece)
    if len(told) > 400:
        return None
    if len(value) == 1:
        return f"{told};" if rows == [True] else None
    return told


def format_simulate_call(setup: StudySetup, values: Sequence[float], run: int) -> str:
    """The call that plays one run again, with these values."""
    told = [
        f"horizon={setup.horizon}",
        *(f"{name}={value!r}" for name, value in select_unusual_settings(setup).items()),
    ]
    told += [] if setup.shortcut else ["shortcut=False"]
    problem = f"problem.split({setup.seed})[1]" if setup.held_out else "problem"
    return f"bt.simulate(policy, {problem}, {list(values)!r}, {', '.join(told)}, first={run}, runs=1)"
