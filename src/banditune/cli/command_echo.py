"""Records the command line in results that depend on files, such as problems in files or columns of logs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

FILE_PATTERN = re.compile(r"^(.*\.toml|.*?\.py)(?::.*)?$|^.*?file=([^,]*).*$")
"""The pattern of FILE.toml, FILE.py:NAME, and the option file=FILE of a problem."""


WRITTEN_FILE_OPTIONS = ("output", "save", "plot", "markdown", "latex")
"""The options for a file to write."""


RESULT_NEUTRAL_OPTIONS = (
    "output",
    "save",
    "json",
    "quiet",
    "plot",
    "store",
    "workers",
    "executor",
    "time_limit",
    "strict",
)
"""Options that do not change the result."""


def record_command(result: Any, context: typer.Context) -> Any:
    """Return the result with its command line, if that names a file whose content is not in the result."""
    from banditune.results.log_results import Backtest, FittedProblem

    values = {parameter.name: context.params[parameter.name] for parameter in iterate_typed_parameters(context)}
    if not any(
        True for name, value in values.items() if name not in RESULT_NEUTRAL_OPTIONS for _ in iterate_files(value)
    ):
        return result
    parts = ["banditune", *list_command_names(context)]
    parts += [
        word
        for parameter in iterate_typed_parameters(context)
        for word in iterate_command_words(parameter, values[parameter.name])
    ]
    parts += ["--curve"] if values.get("plot") and "curve" in context.params and not values.get("curve") else []
    command = shlex.join(parts)
    if isinstance(result, FittedProblem):
        return replace(result, command=command)
    if isinstance(result, Backtest):
        return replace(result, tuning=replace(result.tuning, setup=replace(result.setup, command=command)))
    return replace(result, setup=replace(result.setup, command=command))


def check_files_distinct(context: typer.Context) -> None:
    """Check that a command does not overwrite a file that it reads, and does not write a file twice."""
    from banditune.core.errors import InvalidRequest

    values = {**dict(context.params), **dict.fromkeys(WRITTEN_FILE_OPTIONS)}
    input_files = {path.resolve() for value in values.values() for path in iterate_files(value)}
    for name in WRITTEN_FILE_OPTIONS:
        path = context.params.get(name)
        if path is None or (path.exists() and not path.is_file()):
            continue
        if path.resolve() in input_files:
            raise InvalidRequest(
                f"--{name} must be another file than those that the command reads or also writes, but got "
                f"{str(path)!r} twice.",
                argument=name,
                code="conflict",
            )
        input_files.add(path.resolve())


def list_command_names(context: Any) -> list[str]:
    """List the names of the command's groups and of the command."""
    return [] if context.parent is None else [*list_command_names(context.parent), str(context.info_name)]


def iterate_typed_parameters(context: typer.Context) -> Iterator[Any]:
    """Yield the parameters that were typed, without defaults."""
    for parameter in context.command.params:
        source = context.get_parameter_source(str(parameter.name))
        if source is not None and source.name == "COMMANDLINE":
            yield parameter


def iterate_files(value: Any) -> Iterator[Path]:
    """Yield the files in the value of an option, such as those of a policy or a problem."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from iterate_files(item)
    elif isinstance(value, Path):
        yield value
    elif FILE_PATTERN.search(text := str(value)):
        yield Path(FILE_PATTERN.sub(r"\1\2", text))


def iterate_command_words(parameter: Any, value: Any) -> Iterator[str]:
    """Yield the words of an option or an argument on the command line."""
    if parameter.name in RESULT_NEUTRAL_OPTIONS:
        return
    flag = next((flag for flag in parameter.opts if flag.startswith("--")), None)
    for item in value if isinstance(value, list | tuple) else [value]:
        if flag is None:
            yield str(item)
        elif item is True:
            yield flag
        elif item is False:
            yield parameter.secondary_opts[0]
        else:
            yield from (flag, str(item))
