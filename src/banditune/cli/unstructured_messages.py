"""Translates messages of the library, which name Python arguments, to options of the command line.

The library writes `max_time` and model='campaigns'; a user of the command line reads --max-time and --model campaigns.
Calls, UCB1(noise=5), and options of a policy, ucb1:noise=5, are not changed. In a condition in backticks, `budget >= 8`,
only a name at its start is translated. `seed` of a state or `rewards` of a problem is no option either.
"""

from __future__ import annotations

import re
import shlex
from functools import lru_cache
from typing import Any

CALL_TRANSLATIONS = {
    "result.deploy(mine)": "--policy FILE.py:NAME",
    "DeployedPolicy.load(path, policy)": "--policy FILE.py:NAME",
}
"""Calls and the options that replace them on the command line."""


UNTRANSLATED_ARGUMENTS = ("noise", "prior")
"""Options that share their names with fields of policies and problems, which most messages mean."""


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
    """Replace arguments by options in a sentence."""
    return ARGUMENT_PATTERN.sub(_translate_match, sentence)


def translate_result(text: str) -> str:
    """Replace arguments by options in a result as text. Outside of messages, only names in backticks change."""
    lines = text.split("\n")
    return "\n".join(
        translate_message(line)
        if line.startswith(MESSAGE_PREFIXES)
        else QUOTED_NAME_PATTERN.sub(_translate_match, line)
        for line in lines
    )


def _translate_match(found: re.Match[str]) -> str:
    groups = found.groupdict()
    if groups.get("call"):
        return CALL_TRANSLATIONS.get(groups["call"], groups["call"])
    argument = groups["name"] or groups["argument"]
    option = collect_flags().get(argument)
    if option is None or argument in UNTRANSLATED_ARGUMENTS:
        return found[0]
    flag, opposite = option
    if groups.get("condition"):
        return f"`{flag}{groups['condition']}`"
    if groups["name"] or groups["value"] == "True":
        return flag
    if groups["value"] == "False":
        return opposite or found[0]
    return f"{flag} {shlex.quote(groups['value'].strip(QUOTE_CHARACTERS))}"


@lru_cache(maxsize=1)
def collect_flags() -> dict[str, tuple[str, str | None]]:
    """Collect the arguments that are options of some command, with their flags and the opposite flags."""
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
