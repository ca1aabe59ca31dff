"""A problem as a TOML file, to be read, edited and given to every verb."""

from __future__ import annotations

import inspect
import json
import math
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from banditune.checks import check_whole, utf8
from banditune.contracts import BadRequest, Problem
from banditune.descriptions import OWN, described
from banditune.problems import FROM_FILES, SHELF, problem_from
from banditune.results import write_whole

VERSION = 1
LARGEST = 1 << 25
"""Bytes that a file may have."""


class Prior(NamedTuple):
    """What is expected: a distribution of problem instances and, where known, a horizon."""

    problem: Problem
    horizon: int | None = None


def write_prior(problem: Problem, path: str | Path, horizon: int | None = None, remarks: tuple[str, ...] = ()) -> None:
    """Write a problem from the shelf, with a horizon and remarks, as a TOML file."""
    write_whole(path, prior_text(problem, horizon, remarks).encode())


def prior_text(problem: Problem, horizon: int | None = None, remarks: tuple[str, ...] = ()) -> str:
    """A problem as TOML."""
    told = described(problem)
    name = told.pop("name")
    if OWN in told or name not in SHELF or not isinstance(SHELF[name], type):
        raise BadRequest(
            f"a problem must be from the shelf to be written as TOML, but got {name!r}; keep its Python file."
        )
    lines = ["# What to expect, for: banditune tune --problem FILE"]
    lines += [f"# {line}" for remark in remarks for line in printable(remark).splitlines()]
    lines += [f"banditune = {VERSION}"]
    lines += [f"horizon = {horizon}"] if horizon is not None else []
    lines += ["", "[problem]", f"name = {quoted(name)}"]
    usual = {p.name: p.default for p in inspect.signature(SHELF[name]).parameters.values()}
    lines += [f"{key} = {toml(value)}" for key, value in told.items() if value is not None and value != usual.get(key)]
    return "\n".join(lines) + "\n"


def printable(text: str) -> str:
    """Text without characters that a comment cannot hold."""
    return "".join(mark if mark.isprintable() else " " for mark in text)


def toml(value: Any) -> str:
    """A value as TOML; rows of matrices on lines of their own."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return repr(value)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, list | tuple):
        nested = any(isinstance(item, list | tuple) for item in value)
        items = [toml(item).replace("\n", "\n    ") for item in value]
        return "[\n" + "".join(f"    {item},\n" for item in items) + "]" if nested else f"[{', '.join(items)}]"
    raise BadRequest(f"a problem's options must be numbers, words and lists of them to be written, but got {value!r}.")


def quoted(text: str) -> str:
    """A string as TOML."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadRequest(f"names must be valid text, but got {text!r}.") from error
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def read_prior(path: str | Path) -> Prior:
    """Read a problem that `write_prior`, or a person, wrote as TOML. Nothing in the file is run."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise BadRequest(f"a problem file must be below {LARGEST >> 20} MiB, but {str(path)!r} is larger.")
        return prior_of(tomllib.loads(utf8(data, path)))
    except OSError as error:
        raise BadRequest(f"the problem file {str(path)!r} cannot be read: {error.strerror or error}.") from error
    except (tomllib.TOMLDecodeError, RecursionError, ValueError, OverflowError, MemoryError) as error:
        if isinstance(error, BadRequest):
            raise BadRequest(f"in the problem file {str(path)!r}: {error}") from error
        raise BadRequest(f"the problem file {str(path)!r} must be TOML, but: {error}.") from error


def prior_of(told: Mapping[str, Any]) -> Prior:
    """A problem from what a TOML file holds."""
    unknown = set(told) - {"banditune", "horizon", "problem"}
    if unknown:
        raise BadRequest(f"it may hold banditune, horizon and [problem], but holds {', '.join(sorted(unknown))}.")
    if told.get("banditune") != VERSION or isinstance(told.get("banditune"), bool):
        raise BadRequest(
            f"it must begin with `banditune = {VERSION}`, the version of its format, but has {told.get('banditune')!r}."
        )
    table = told.get("problem")
    name = table.get("name") if isinstance(table, dict) else None
    if not isinstance(table, dict) or not isinstance(name, str) or name not in SHELF or name in FROM_FILES:
        raise BadRequest(
            f"[problem] must have a name among {', '.join(n for n in SHELF if n not in FROM_FILES)}, but has {name!r}."
        )
    horizon = told.get("horizon")
    options = {key: value for key, value in table.items() if key != "name"}
    wanted = inspect.signature(SHELF[name]).parameters
    odd = [key for key in options if key not in wanted] or [key for key, value in options.items() if not _plain(value)]
    missing = [key for key, p in wanted.items() if p.default is inspect.Parameter.empty and key not in options]
    if odd or missing:
        what = f"{odd[0]!r} cannot be read" if odd else f"{missing[0]!r} is missing"
        raise BadRequest(f"the problem {name!r} takes {', '.join(wanted)}, but {what}.")
    return Prior(
        problem_from({"name": name, **options}), None if horizon is None else check_whole("horizon", horizon, 1)
    )


def _plain(value: Any) -> bool:
    """Whether a value is made of numbers, words and lists only."""
    return all(isinstance(item, str | int | float) for item in _leaves(value))


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    else:
        yield value
