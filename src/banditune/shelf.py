"""Finds policies, problems and tuners by name, for the command line."""

from __future__ import annotations

import csv
import difflib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from banditune.checks import utf8
from banditune.contracts import BadRequest, Floats, Parameter


class BadOption(BadRequest):
    """Of `name:option=value`: the names in its sentence are those of such options."""


def pick(
    what: str,
    spec: str,
    shelf: Mapping[str, Callable[..., Any]],
    kind: type,
    options: Any = None,
) -> Any:
    """`name`, `name:option=value,option=value` or `file.py:name`."""
    try:
        return _picked(what, spec, shelf, kind, dict(options or {}))
    except BadRequest as error:
        if ":" not in spec:
            raise
        raise BadOption(str(error)) from error


def _picked(
    what: str,
    spec: str,
    shelf: Mapping[str, Callable[..., Any]],
    kind: type,
    options: dict[str, Any],
) -> Any:
    if ".py:" in spec or spec.endswith(".py"):
        return from_file(what, spec, kind, options)
    name, _, told = spec.partition(":")
    name = name.lower()
    if name not in shelf:
        # In Python the same things have other names: Thompson is 'ts' here.
        known = {made.__name__.lower(): key for key, made in shelf.items()} | {key: key for key in shelf}
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"; did you mean {known[near[0]]!r}?" if near else "."
        raise BadRequest(f"the {what} must be one of {', '.join(shelf)}, or FILE.py:NAME, but got {name!r}{hint}")
    own = pairs(spec, told)
    twice = [option for option in own if option in options]
    if twice:
        raise BadRequest(
            f"every option must be told once, but {twice[0]} stands in {spec!r} and as --{twice[0]}; leave one of them out."
        )
    options |= own
    wanted = list(inspect.signature(shelf[name]).parameters)
    for option in options:
        if option not in wanted:
            near = difflib.get_close_matches(option, wanted, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else "."
            raise BadRequest(f"the {what} {name!r} takes {', '.join(wanted) or 'no options'}, but got {option!r}{hint}")
    missing = [
        parameter.name
        for parameter in inspect.signature(shelf[name]).parameters.values()
        if parameter.default is inspect.Parameter.empty and parameter.name not in options
    ]
    if missing:
        raise BadRequest(f"the {what} {name!r} needs {' and '.join(missing)}; give it as --{missing[0]}.")
    return shelf[name](**options)


def pairs(spec: str, told: str) -> dict[str, Any]:
    """`a=1,b=2,3` as {"a": 1, "b": [2, 3]}."""
    found: dict[str, str] = {}
    for piece in filter(None, told.split(",")):
        option, equals, value = piece.partition("=")
        if equals and (not value or option.strip() in found):
            raise BadRequest(f"every option must have one value, but got {spec!r}.")
        if equals:
            found[option.strip()] = value
        elif found:
            found[list(found)[-1]] += f",{piece}"
        else:
            raise BadRequest(f"options must be written as NAME:option=value,option=value, but got {spec!r}.")
    return {option: parsed(value) for option, value in found.items()}


def parsed(text: str) -> Any:
    """`2` as a number, `2,5` as a list, `.6,.4;.4,.6` as a list of lists; words stay words."""
    text = text.strip().strip("()[]")
    if ";" in text:
        return [parsed(row) if "," in row else [parsed(row)] for row in text.split(";") if row.strip()]
    if "," in text:
        return [parsed(piece) for piece in text.split(",") if piece.strip()]
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            return text


def matrix_from(path: Path) -> Floats:
    """A matrix of numbers from a .npy file, or a text file with a row for every arm; a line of names may come first."""
    if path.suffix == ".npy":
        try:
            return np.atleast_2d(np.load(path, allow_pickle=False)).astype(float)
        except (OSError, ValueError) as error:
            raise BadRequest(f"`features` must be a matrix in a .npy file, but {str(path)!r} is not one.") from error
    try:
        lines = utf8(path.read_bytes(), path).splitlines()
    except OSError as error:
        raise BadRequest(f"`features` must be a .csv or .npy file, but {str(path)!r} cannot be read.") from error
    rows = [(number, row) for number, row in enumerate(csv.reader(lines, delimiter=delimiter_of(lines)), 1) if row]
    names = rows[0][1] if rows and all(written_number(cell) is None for cell in rows[0][1]) else []
    if names and not names[0]:
        raise BadRequest(f"the first column of {str(path)!r} has no name and looks like an index; leave it out.")
    rows = rows[1:] if names else rows
    if not rows:
        raise BadRequest(f"`features` must hold a row of numbers for every arm, but {str(path)!r} has none.")
    return np.array([numbers_of(path, number, row, len(rows[0][1])) for number, row in rows])


def delimiter_of(lines: list[str]) -> str:
    """What stands between numbers: commas, or semicolons or tabs where there are no commas."""
    first = lines[0] if lines else ""
    return next((mark for mark in ",;\t" if mark in first), ",")


def numbers_of(path: Path, number: int, row: list[str], width: int) -> list[float]:
    """A line of a text file as so many numbers."""
    if len(row) != width:
        raise BadRequest(f"every row of {str(path)!r} must hold {width} numbers, but line {number} holds {len(row)}.")
    found = []
    for place, cell in enumerate(row, 1):
        value = written_number(cell)
        if value is None:
            raise BadRequest(f"column {place} in line {number} of {str(path)!r} must be a number, but is {cell!r}.")
        found.append(value)
    return found


def written_number(cell: str) -> float | None:
    """The number that a cell holds, and nothing else; None if it does not."""
    try:
        return float(cell)
    except ValueError:
        return None


def from_file(what: str, spec: str, kind: type, options: Any) -> Any:
    """Run a user's file and take a record from it."""
    path, _, name = spec.rpartition(":")
    if not path or not name or not Path(path).is_file():
        raise BadRequest(f"a {what} of your own must be FILE.py:NAME with a file that exists, but got {spec!r}.")
    if options:
        raise BadRequest(f"a {what} of your own takes no --{next(iter(options))}; set it in {path}.")
    module = run_file(Path(path).resolve())
    found = getattr(module, name, None)
    if isinstance(found, type) and issubclass(found, kind):
        found = found()
    if not isinstance(found, kind):
        there = [key for key, value in vars(module).items() if isinstance(value, kind)]
        came = f"it is {found!r}" if hasattr(module, name) else "nothing there has that name"
        raise BadRequest(f"{name!r} in {path} must be a {what}, but {came}; there: {', '.join(there) or 'none'}.")
    return found


@lru_cache(maxsize=8)
def run_file(path: Path) -> ModuleType:
    """Import a file as a script would be: once, with its folder on the path."""
    name = f"banditune_own_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise BadRequest(f"{str(path)!r} must be a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except BadRequest:
        raise
    except (Exception, SystemExit) as error:
        raise BadRequest(f"{path.name} cannot be run: {type(error).__name__}: {error}.") from error
    return module


def shelves() -> dict[str, dict[str, dict[str, Any]]]:
    """Everything on the shelves, in words."""
    from banditune import problems, tuners

    return {
        heading: {name: told(made) for name, made in shelf.items()}
        for heading, shelf in (("policies", every_policy()), ("problems", problems.SHELF), ("tuners", tuners.SHELF))
    }


def every_policy() -> dict[str, Callable[..., Any]]:
    """The policies' shelf, and the policies that play a computed table."""
    from banditune import exact, policies

    return {**policies.SHELF, **exact.SHELF}


def told(made: Callable[..., Any]) -> dict[str, Any]:
    """One shelf entry: its first docstring line, its parameters, its options."""
    return {
        "about": (inspect.getdoc(made) or "").splitlines()[0],
        "parameters": [parameter_words(parameter) for parameter in getattr(made, "parameters", ())],
        "options": {
            option.name: "..." if option.default is inspect.Parameter.empty else value_words(option.default)
            for option in inspect.signature(made).parameters.values()
        },
    }


def value_words(value: Any) -> str:
    """A value as the command line takes it: 1,1."""
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def parameter_words(parameter: Parameter) -> dict[str, Any]:
    """A parameter with its bounds and theory's value, in words where they depend on arms and horizon."""
    bounds = {key: bound_words(getattr(parameter, key)) for key in ("low", "high", "theory")}
    return {"name": parameter.name, **bounds, "integer": parameter.integer}


def bound_words(bound: float | Callable[[int, int], float]) -> str:
    """A number, or the first words of the function that gives it."""
    if not callable(bound):
        return f"{bound:g}"
    return (inspect.getdoc(bound) or "depends on arms and horizon").split(",")[0].splitlines()[0].rstrip(".")
