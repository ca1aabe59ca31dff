"""Composes the command line that repeats a result, and the call that simulates a single run again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import singledispatch
from itertools import groupby
from typing import Any

from banditune.core.descriptions import OWN_CODE_KEY
from banditune.core.policy import FROM_PROBLEM
from banditune.results.comparison_results import Comparison
from banditune.results.exact_results import ExactOptimum, ExactRegret, LowerBoundEstimates
from banditune.results.log_results import FittedProblem
from banditune.results.over_time_results import RegretOverTime, RegretSeries, choose_steps
from banditune.results.result_record import ResultRecord
from banditune.results.study_setup import StudySetup
from banditune.results.tuning_results import Curve, Tuning
from banditune.simulation.instances import SEARCH_INSTANCE_LIMIT

DEFAULT_SETTINGS = {"seed": ("seed", 0), "regret": ("regret_kind", "expected"), "device": ("device", "cpu")}
"""Options with a default: the field of a setup, and its default."""


def make_command(result: ResultRecord) -> str | None:
    """Return the command line that repeats a result; None if it depends on objects that exist only in Python."""
    setup = getattr(result, "setup", None)
    return setup.command if setup is not None and setup.command else compose_command(result)


@singledispatch
def compose_command(result: ResultRecord) -> str | None:
    """Compose a command line from the fields of a result; None if that is not possible."""
    return None


@compose_command.register
def _(result: Tuning) -> str | None:
    assert result.setup.policy is not None
    assert result.setup.tuner is not None
    options = {
        "tuner": format_spec(result.setup.tuner),
        "precision": result.precision,
        "confidence": result.posterior.confidence if result.posterior and result.posterior.confidence != 0.95 else None,
        "max-runs" if result.precision else "budget": result.budget,
        "validate": result.requested_validation_runs,
        "curve": bool(result.curves),
        "lower-bound": result.lower_bound is not None,
        "robustness": result.robustness is not None,
    }
    return join_command(
        "tune", [format_requested_policy(result.setup.policy, result.setup.from_problem)], result.setup, options
    )


@compose_command.register
def _(result: Curve) -> str | None:
    assert result.setup.policy is not None
    values = None if result.refined else ",".join(repr(value) for value in result.values.tolist())
    policy = format_requested_policy(result.setup.policy, result.setup.from_problem)
    return join_command("curve", [policy], result.setup, {"values": values, "runs": result.runs})


@compose_command.register
def _(result: Comparison) -> str | None:
    # Entries are sorted, best first. The original order matters only without common random numbers.
    if not result.setup.common_random_numbers:
        return None
    tuner = format_spec(result.setup.tuner) if result.setup.tuner else None
    options = {"tuner": tuner, "budget": result.budget, "validate": result.validation_runs}
    options["lower-bound"] = result.lower_bound is not None
    return join_command(
        "compare",
        [format_requested_policy(entry.policy_config, entry.from_problem) for entry in result.entries],
        result.setup,
        options,
    )


@compose_command.register
def _(result: RegretOverTime) -> str | None:
    # The instances of a tuning's validation may begin elsewhere.
    if result.first_instance != SEARCH_INSTANCE_LIMIT:
        return None
    groups = [
        list(group) for _, group in groupby(result.series, key=lambda series: (series.policy, series.policy_config))
    ]
    options = {
        "values": tuple(format_series_values(group) for group in groups),
        "label": tuple(series.label for series in result.series),
        "checkpoints": None if result.steps == choose_steps(result.setup.horizon) else ",".join(map(str, result.steps)),
        "runs": result.runs,
    }
    policies = [format_spec(group[0].policy_config) for group in groups]
    return join_command("regret-over-time", policies, result.setup, options)


def format_series_values(series: Sequence[RegretSeries]) -> str:
    """Format the parameter values of a policy's series for the command line."""
    rows = [",".join(map(repr, one.params.values())) for one in series]
    if not series[0].params:
        return "textbook"
    return ",".join(rows) if len(series[0].params) == 1 else ";".join([*rows, ""])


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
    # If a computed bound is the highest, an older result does not hold the confidence that was requested.
    confidence = result.lower_bound.confidence if result.confidence is None else result.confidence
    if confidence == 1:
        return None
    return join_command("exact bound", [], result.setup, {"runs": max(result.runs), "confidence": confidence})


def join_command(verb: str, policies: Sequence[str | None], setup: StudySetup, options: dict[str, Any]) -> str | None:
    """Join a command line, quoted for a shell; None if a policy or the problem cannot be written in it."""
    parts: list[str | None] = ["banditune", *verb.split()]
    for policy in policies:
        parts += ["--policy", policy]
    parts += ["--problem", format_spec(setup.problem), "--horizon", str(setup.horizon)]
    for name, value in (options | select_unusual_settings(setup)).items():
        if value is True:
            parts.append(f"--{name}")
        elif value not in (None, False):
            items = value if isinstance(value, tuple) else (value,)
            parts += [word for item in items for word in (f"--{name}", str(item))]
    for name, (low, high) in (setup.ranges or {}).items():
        parts += ["--range", f"{name}={format_option_value(low)}:{format_option_value(high)}"]
    parts += [word for name, value in (setup.fixed or {}).items() for word in ("--fix", f"{name}={value!r}")]
    parts += [] if setup.common_random_numbers else ["--no-common-random-numbers"]
    parts += [] if setup.shortcut else ["--no-shortcuts"]
    if None in parts:
        return None
    return shlex.join([word for word in parts if word is not None])


def select_unusual_settings(setup: StudySetup) -> dict[str, Any]:
    """Select the settings whose values are not the defaults."""
    return {
        option: getattr(setup, name)
        for option, (name, default) in DEFAULT_SETTINGS.items()
        if getattr(setup, name) != default
    }


def format_spec(config: Mapping[str, Any]) -> str | None:
    """Format a policy, problem or tuner for the command line, as ucb1:noise=0.5; None if that is not possible.

    For a user's own code the file is known, but not the name in it.
    """
    if OWN_CODE_KEY in config:
        file, _, _ = str(config[OWN_CODE_KEY]).rpartition(":")
        return f"{file}:NAME" if file else None
    if "digest" in config:  # built from a file whose path is not kept
        return None
    items = []
    for name, value in config.items():
        if name == "name" or value is None or value in ([], ()):
            continue
        parts = format_option_value(value)
        if parts is None:
            return None
        items.append(f"{name}={parts}")
    return f"{config['name']}:{','.join(items)}" if items else str(config["name"])


def format_requested_policy(policy: Mapping[str, Any], from_problem: Mapping[str, str]) -> str | None:
    """Format the policy as it was requested: options from the problem are taken from the problem again."""
    return format_spec({**policy, **dict.fromkeys(from_problem, FROM_PROBLEM)})


def format_option_value(value: Any) -> str | None:
    """Format a value as a number, a word, 2,5 for a list or .6,.4;.4,.6 for rows; None if that is not possible.

    A single row ends in a semicolon. A list of one number cannot be written.
    """
    if isinstance(value, str):
        return None if set(value) & set(",;=()[] ") else value
    if isinstance(value, int | float):
        return None if isinstance(value, bool) else repr(value).removesuffix(".0")
    if not isinstance(value, list | tuple):
        return None
    rows = [isinstance(item, list | tuple) for item in value]
    items = [format_option_value(item) for item in value]
    # Rows of rows cannot be written, and a long matrix is not readable.
    if None in items or (any(rows) and not all(rows)) or any(";" in item for item in items if item):
        return None
    text = (";" if any(rows) else ",").join(item for item in items if item)
    if len(text) > 400:
        return None
    if len(value) == 1:
        return f"{text};" if rows == [True] else None
    return text


def format_simulate_call(setup: StudySetup, values: Sequence[float], run: int) -> str:
    """Format the call that simulates one run again with these values."""
    arguments = [
        f"horizon={setup.horizon}",
        *([f"seed={setup.seed}"] if setup.seed else []),
    ]
    simulation = [
        *([f"regret={setup.regret_kind!r}"] if setup.regret_kind != "expected" else []),
        *([] if setup.common_random_numbers else ["common_random_numbers=False"]),
        *([] if setup.shortcut else ["shortcuts=False"]),
    ]
    arguments += [f"first_instance={run}", "runs=1"]
    arguments += [f"simulation=bt.Simulation({', '.join(simulation)})"] if simulation else []
    arguments += [f"run=bt.Run(device={setup.device!r})"] if setup.device != "cpu" else []
    problem = f"problem.split({setup.seed})[1]" if setup.held_out_data else "problem"
    return f"bt.simulate(policy, {problem}, {list(values)!r}, {', '.join(arguments)})"
