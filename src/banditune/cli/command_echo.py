"""A command as it was typed, for results that nobody can tell otherwise: problems in files, columns of logs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

FILE_PATTERN = re.compile(r"^(.*\.toml|.*?\.py)(?::.*)?$|^.*?file=([^,]*).*$")
"""A problem's file, one with code of the user's and the name of something in it, or one that a problem's options name."""


WRITTEN_FILE_OPTIONS = ("output", "save", "plot", "markdown")
"""Options that name a file to write."""


RESULT_NEUTRAL_OPTIONS = ("output", "save", "json", "quiet", "plot", "ledger", "jobs", "cluster", "time_limit")
"""Where it was played and what became of the result; neither changes the result."""


def record_command(result: Any, context: typer.Context) -> Any:
    """The result with the command that gave it, where that names a file which the result does not hold."""
    from banditune.results.log_results import Backtest, FittedProblem

    told = {parameter.name: context.params[parameter.name] for parameter in iterate_typed_parameters(context)}
    if not any(
        True for name, value in told.items() if name not in RESULT_NEUTRAL_OPTIONS for _ in iterate_files(value)
    ):
        return result
    words = ["banditune", *list_command_names(context)]
    words += [
        word
        for parameter in iterate_typed_parameters(context)
        for word in iterate_command_words(parameter, told[parameter.name])
    ]
    words += ["--curve"] if told.get("plot") and "curve" in context.params and not told.get("curve") else []
    command = shlex.join(words)
    if isinstance(result, FittedProblem):
        return replace(result, command=command)
    if isinstance(result, Backtest):
        return replace(result, tuning=replace(result.tuning, setup=replace(result.setup, command=command)))
    return replace(result, setup=replace(result.setup, command=command))


def check_files_distinct(context: typer.Context) -> None:
    """Nothing that a command writes may take the place of what it reads, or of something else that it writes."""
    from banditune.core.errors import InvalidRequest

    told = {**dict(context.params), **dict.fromkeys(WRITTEN_FILE_OPTIONS)}
    taken = {path.resolve() for value in told.values() for path in iterate_files(value)}
    for name in WRITTEN_FILE_OPTIONS:
        path = context.params.get(name)
        if path is None or (path.exists() and not path.is_file()):
            continue
        if path.resolve() in taken:
            raise InvalidRequest(
                f"--{name} must name another file than those that the command reads, or writes besides, but got "
                f"{str(path)!r} twice."
            )
        taken.add(path.resolve())


def list_command_names(context: Any) -> list[str]:
    """The command's name, after that of its group."""
    return [] if context.parent is None else [*list_command_names(context.parent), str(context.info_name)]


def iterate_typed_parameters(context: typer.Context) -> Iterator[Any]:
    """What was typed, not what is usual."""
    for parameter in context.command.params:
        source = context.get_parameter_source(str(parameter.name))
        if source is not None and source.name == "COMMANDLINE":
            yield parameter


def iterate_files(value: Any) -> Iterator[Path]:
    """The file that a value is, or that a policy or a problem comes from; of several all."""
    if isinstance(value, list | tuple):
        for one in value:
            yield from iterate_files(one)
    elif isinstance(value, Path):
        yield value
    elif FILE_PATTERN.search(text := str(value)):
        yield Path(FILE_PATTERN.sub(r"\1\2", text))


def iterate_command_words(parameter: Any, value: Any) -> Iterator[str]:
    """An option or argument as it is typed."""
    if parameter.name in RESULT_NEUTRAL_OPTIONS:
        return
    flag = next((flag for flag in parameter.opts if flag.startswith("--")), None)
    for one in value if isinstance(value, list | tuple) else [value]:
        if flag is None:
            yield str(one)
        elif one is True:
            yield flag
        elif one is False:
            yield parameter.secondary_opts[0]
        else:
            yield from (flag, str(one))
