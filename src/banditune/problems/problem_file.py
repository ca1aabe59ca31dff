"""A problem as a TOML file, to be read, edited and given to every verb."""

from __future__ import annotations

import inspect
import json
import math
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from banditune.core.atomic_files import write_atomically
from banditune.core.checks import check_integer, decode_utf8
from banditune.core.descriptions import OWN_CODE_KEY, describe
from banditune.core.errors import InvalidRequest
from banditune.core.problem import Problem
from banditune.problems.problem_registry import FILE_PROBLEMS, PROBLEMS, build_problem

PROBLEM_FILE_VERSION = 1


MAX_PROBLEM_FILE_BYTES = 1 << 25
"""Bytes that a file may have."""


class ProblemFile(NamedTuple):
    """What is expected: a distribution of problem instances and, where known, a horizon."""

    problem: Problem
    horizon: int | None = None


def save_problem(problem: Problem, path: str | Path, horizon: int | None = None, remarks: tuple[str, ...] = ()) -> None:
    """Write a problem from the shelf, with a horizon and remarks, as a TOML file."""
    write_atomically(path, format_problem_file(problem, horizon, remarks).encode())


def format_problem_file(problem: Problem, horizon: int | None = None, remarks: tuple[str, ...] = ()) -> str:
    """A problem as TOML."""
    told = describe(problem)
    name = told.pop("name")
    if OWN_CODE_KEY in told or name not in PROBLEMS or not isinstance(PROBLEMS[name], type):
        raise InvalidRequest(
            f"a problem must be from the shelf to be written as TOML, but got {name!r}; keep its Python file."
        )
    lines = ["# What to expect, for: banditune tune --problem FILE"]
    lines += [f"# {line}" for remark in remarks for line in _make_printable(remark).splitlines()]
    lines += [f"banditune = {PROBLEM_FILE_VERSION}"]
    lines += [f"horizon = {horizon}"] if horizon is not None else []
    lines += ["", "[problem]", f"name = {_quote_toml(name)}"]
    usual = {p.name: p.default for p in inspect.signature(PROBLEMS[name]).parameters.values()}
    lines += [
        f"{key} = {_format_toml(value)}" for key, value in told.items() if value is not None and value != usual.get(key)
    ]
    return "\n".join(lines) + "\n"


def _make_printable(text: str) -> str:
    """Text without characters that a comment cannot hold."""
    return "".join(mark if mark.isprintable() else " " for mark in text)


def _format_toml(value: Any) -> str:
    """A value as TOML; rows of matrices on lines of their own."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return repr(value)
    if isinstance(value, str):
        return _quote_toml(value)
    if isinstance(value, list | tuple):
        nested = any(isinstance(item, list | tuple) for item in value)
        items = [_format_toml(item).replace("\n", "\n    ") for item in value]
        return "[\n" + "".join(f"    {item},\n" for item in items) + "]" if nested else f"[{', '.join(items)}]"
    raise InvalidRequest(
        f"a problem's options must be numbers, words and lists of them to be written, but got {value!r}."
    )


def _quote_toml(text: str) -> str:
    """A string as TOML."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequest(f"names must be valid text, but got {text!r}.") from error
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def load_problem(path: str | Path) -> ProblemFile:
    """Read a problem that `save_problem`, or a person, wrote as TOML. Nothing in the file is run."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_PROBLEM_FILE_BYTES + 1)
        if len(data) > MAX_PROBLEM_FILE_BYTES:
            raise InvalidRequest(
                f"a problem file must be below {MAX_PROBLEM_FILE_BYTES >> 20} MiB, but {str(path)!r} is larger."
            )
        return _parse_problem_file(tomllib.loads(decode_utf8(data, path)))
    except OSError as error:
        raise InvalidRequest(f"the problem file {str(path)!r} cannot be read: {error.strerror or error}.") from error
    except (tomllib.TOMLDecodeError, RecursionError, ValueError, OverflowError, MemoryError) as error:
        if isinstance(error, InvalidRequest):
            raise InvalidRequest(f"in the problem file {str(path)!r}: {error}") from error
        raise InvalidRequest(f"the problem file {str(path)!r} must be TOML, but: {error}.") from error


def _parse_problem_file(told: Mapping[str, Any]) -> ProblemFile:
    """A problem from what a TOML file holds."""
    unknown = set(told) - {"banditune", "horizon", "problem"}
    if unknown:
        raise InvalidRequest(f"it may hold banditune, horizon and [problem], but holds {', '.join(sorted(unknown))}.")
    if told.get("banditune") != PROBLEM_FILE_VERSION or isinstance(told.get("banditune"), bool):
        raise InvalidRequest(
            f"it must begin with `banditune = {PROBLEM_FILE_VERSION}`, the version of its format, but has {told.get('banditune')!r}."
        )
    table = told.get("problem")
    name = table.get("name") if isinstance(table, dict) else None
    if not isinstance(table, dict) or not isinstance(name, str) or name not in PROBLEMS or name in FILE_PROBLEMS:
        raise InvalidRequest(
            f"[problem] must have a name among {', '.join(n for n in PROBLEMS if n not in FILE_PROBLEMS)}, but has {name!r}."
        )
    horizon = told.get("horizon")
    options = {key: value for key, value in table.items() if key != "name"}
    wanted = inspect.signature(PROBLEMS[name]).parameters
    odd = [key for key in options if key not in wanted] or [
        key for key, value in options.items() if not _is_plain(value)
    ]
    missing = [key for key, p in wanted.items() if p.default is inspect.Parameter.empty and key not in options]
    if odd or missing:
        what = f"{odd[0]!r} cannot be read" if odd else f"{missing[0]!r} is missing"
        raise InvalidRequest(f"the problem {name!r} takes {', '.join(wanted)}, but {what}.")
    return ProblemFile(
        build_problem({"name": name, **options}), None if horizon is None else check_integer("horizon", horizon, 1)
    )


def _is_plain(value: Any) -> bool:
    """Whether a value is made of numbers, words and lists only."""
    return all(isinstance(item, str | int | float) for item in _iterate_leaves(value))


def _iterate_leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for item in value:
            yield from _iterate_leaves(item)
    else:
        yield value
