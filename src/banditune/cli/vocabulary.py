"""The vocabulary of the command line: --max-time for the argument `max_time`, --model campaigns for model='campaigns'."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from banditune.core.messages import Vocabulary, render_message


class CommandLineVocabulary(Vocabulary):
    """Writes arguments as options. Arguments without an option are written as in Python."""

    def write_argument(self, name: str) -> str:
        return find_flag(name) or super().write_argument(name)

    def write_condition(self, before: str, name: str, after: str) -> str:
        return super().write_condition(before, find_flag(name) or name, after)

    def write_setting(self, name: str, value: Any, text: str) -> str:
        flag, opposite = collect_flags().get(name, (None, None))
        if flag is None:
            return super().write_setting(name, value, text)
        if isinstance(value, bool):
            return (flag if value else opposite) or super().write_setting(name, value, text)
        if isinstance(value, str):
            return f"{flag} {shlex.quote(value)}"
        return f"{flag} {text}" if isinstance(value, int | float) else super().write_setting(name, value, text)

    def select(self, python: str, command_line: str) -> str:
        return command_line


def write_for_command_line(message: object) -> str:
    """Write a message or an error with options instead of arguments."""
    return render_message(message, CommandLineVocabulary())


def find_flag(name: str) -> str | None:
    """Return the option of an argument, or None if there is none."""
    return collect_flags().get(name, (None, None))[0]


@lru_cache(maxsize=1)
def collect_flags() -> dict[str, tuple[str, str | None]]:
    """Collect the arguments that are options of some command, with their flags and the opposite flags."""
    import typer

    from banditune.cli.app import app

    return dict(iterate_flags(typer.main.get_command(app)))


def iterate_flags(command: Any) -> Iterator[tuple[str, tuple[str, str | None]]]:
    """Yield the arguments of a command and of the commands below it, with their flags and the opposite flags."""
    for parameter in command.params:
        flags = [flag for flag in parameter.opts if flag.startswith("--")]
        if flags:
            yield parameter.name, (flags[0], next(iter(parameter.secondary_opts), None))
    for subcommand in getattr(command, "commands", {}).values():
        yield from iterate_flags(subcommand)
