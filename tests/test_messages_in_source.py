"""How the source makes errors and messages: with codes, with references to arguments, and with as many values as slots."""

from __future__ import annotations

import ast
import re
from string import Formatter
from typing import get_args

import pytest

from banditune.cli.vocabulary import collect_flags
from banditune.core.errors import ERROR_CODES, ErrorCode
from helpers.paths import ROOT

SOURCE = ROOT / "src" / "banditune"
TREES = {path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text()) for path in SOURCE.rglob("*.py")}
ERRORS = {"InvalidRequest", "SimulationError", "WorkerLost", "MissingDependency", "StoreError"}
LEADING_ARGUMENTS = {"make_argument_error": 2, "Message": 0, **dict.fromkeys(ERRORS, 0)}
"""What makes messages, and the number of arguments before the text."""

FIELDS = {
    "means": "of the problem of `optimal-mixture`",
    "prior": "of a policy",
    "reward": "a function of a problem",
    "rewards": "of a policy or a problem",
    "seed": "an argument of a user's object",
    "confidence": "of `linucb`",
}
"""Fields of policies, problems and users' objects that share their name with an option of the command line."""


def list_calls():
    """Calls that make messages, with the module and the position of the text."""
    for module, tree in TREES.items():
        for node in ast.walk(tree):
            name = getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
            if name in LEADING_ARGUMENTS and len(node.args) > LEADING_ARGUMENTS[name]:
                yield module, node, LEADING_ARGUMENTS[name]


def test_every_invalid_request_has_a_code():
    calls = [(module, call) for module, call, _ in list_calls() if getattr(call.func, "id", "") == "InvalidRequest"]
    assert len(calls) > 150
    missing = [
        f"{module}:{call.lineno}"
        for module, call in calls
        if not any(keyword.arg == "code" for keyword in call.keywords)
    ]
    assert missing == []


def test_every_code_is_documented_and_used():
    assert get_args(ErrorCode) == tuple(ERROR_CODES)
    assert all(meaning.endswith(".") for meaning in ERROR_CODES.values())
    words = {
        node.value
        for module, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and module != "core/errors.py"
    }
    defaults = {"invalid-request", "simulation-failed", "worker-lost", "missing-dependency", "store"}
    assert set(ERROR_CODES) - words <= defaults


def test_messages_have_a_slot_for_each_value():
    checked = 0
    for module, call, first in list_calls():
        text, values = call.args[first], call.args[first + 1 :]
        if not values:
            continue
        place = f"{module}:{call.lineno}"
        assert not isinstance(text, ast.JoinedStr), f"{place}: an f-string with values may hold braces of a user"
        unpacked = [value.value if isinstance(value, ast.Starred) else value for value in values]
        sizes = [
            len(value.elts) if isinstance(value, ast.Tuple) and isinstance(values[number], ast.Starred) else 1
            for number, value in enumerate(unpacked)
        ]
        if isinstance(text, ast.Constant) and all(
            isinstance(value, ast.Tuple)
            for value, star in zip(unpacked, values, strict=True)
            if isinstance(star, ast.Starred)
        ):
            slots = [slot for _, slot, _, _ in Formatter().parse(text.value) if slot is not None]
            assert len(slots) == sum(sizes), place
            checked += 1
    assert checked > 60


def list_texts():
    """Texts in the source without docstrings, with the module. Parts of an f-string are texts too."""
    for module, tree in TREES.items():
        notes = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in notes:
                yield module, node


@pytest.mark.parametrize("pattern", [r"`(\w+)`", r"`(\w+) [<>=]+ [^`]*`", r"\btry (\w+)=", r"leave out (\w+)="])
def test_messages_refer_to_options_instead_of_naming_arguments(pattern):
    flags, named = set(collect_flags()), []
    for module, node in list_texts():
        if not module.startswith(("cli/", "testing/")):
            found = flags & set(re.findall(pattern, node.value)) - set(FIELDS)
            named += [f"{module}:{node.lineno} {name}" for name in found]
    allowed = {"study/notices.py curve"}  # the function, and not the option
    assert [one for one in named if re.sub(r":\d+", "", one) not in allowed] == []


def test_the_command_line_rewrites_no_messages():
    using = [module for module, tree in TREES.items() if module.startswith("cli/") and imports_re(tree)]
    assert using == ["cli/command_echo.py"]  # finds files in a command


def imports_re(tree):
    return any(alias.name == "re" for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names)
