"""Sentences of the library, which name Python's arguments, in the words of the command line.

The library says `max_time` and model='campaigns'; whoever typed a command reads --max-time and --model campaigns. What is
written as a call, UCB1(noise=5), or as an option of a policy, ucb1:noise=5, is left as it is. Of a condition in backticks,
`budget >= 8`, only a name at its start is turned. What is `seed` of a state or `rewards` of a problem is no option either.
"""

from __future__ import annotations

import re
import shlex
from functools import lru_cache
from typing import Any

CALL_TRANSLATIONS = {"tuning.policy(mine)": "--policy FILE.py:NAME", "Live.load(path, policy)": "--policy FILE.py:NAME"}
"""Calls that a command makes when it is told an option."""


UNTRANSLATED_ARGUMENTS = ("noise", "prior")
"""Options that share their names with numbers of policies and problems, which most sentences mean."""


# Possessive, and calls only from the start of a word: sentences may hold words of any length, such as a file's header.
ARGUMENT_PATTERN = re.compile(
    r"(?P<call>(?<![\w.])[\w.]++\((?:[^()]++|\([^()]*+\))*+\))"
    r"|`(?P<name>[a-z_]++)(?P<condition> [<>=][^`]*+)?`(?! of )"
    r"|(?<![\w:.,(`])(?P<argument>[a-z_]++)=(?P<value>'[^']*'|\"[^\"]*\"|True|False|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?![\w(])"
)


QUOTED_NAME_PATTERN = re.compile(r"`(?P<name>[a-z_]+)`(?! of )")


QUOTE_CHARACTERS = "'\""


MESSAGE_PREFIXES = ("note: ", "warning: ", "left out: ")


def translate_message(sentence: str) -> str:
    """A sentence with options in place of arguments."""
    return ARGUMENT_PATTERN.sub(_translate_match, sentence)


def translate_result(text: str) -> str:
    """The same for a result as text: of its numbers and settings only the names in backticks are sentences."""
    lines = text.split("\n")
    return "\n".join(
        translate_message(line)
        if line.startswith(MESSAGE_PREFIXES)
        else QUOTED_NAME_PATTERN.sub(_translate_match, line)
        for line in lines
    )


def _translate_match(found: re.Match[str]) -> str:
    parts = found.groupdict()
    if parts.get("call"):
        return CALL_TRANSLATIONS.get(parts["call"], parts["call"])
    argument = parts["name"] or parts["argument"]
    option = collect_flags().get(argument)
    if option is None or argument in UNTRANSLATED_ARGUMENTS:
        return found[0]
    flag, opposite = option
    if parts.get("condition"):
        return f"`{flag}{parts['condition']}`"
    if parts["name"] or parts["value"] == "True":
        return flag
    if parts["value"] == "False":
        return opposite or found[0]
    return f"{flag} {shlex.quote(parts['value'].strip(QUOTE_CHARACTERS))}"


@lru_cache(maxsize=1)
def collect_flags() -> dict[str, tuple[str, str | None]]:
    """Every argument that is an option of some command: how it is typed, and how its opposite is."""
    import typer

    from banditune.cli.app import app

    return dict(_iterate_flags(typer.main.get_command(app)))


def _iterate_flags(command: Any) -> Any:
    for parameter in command.params:
        flags = [flag for flag in parameter.opts if flag.startswith("--")]
        if flags:
            yield parameter.name, (flags[0], next(iter(parameter.secondary_opts), None))
    for inner in getattr(command, "commands", {}).values():
        yield from _iterate_flags(inner)
