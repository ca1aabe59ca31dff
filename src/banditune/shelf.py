"""Finds policies, problems and tuners by name, for the command line."""

from __future__ import annotations

import difflib
import importlib.util
import inspect
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from banditune.contracts import BadRequest, Parameter


def pick(what: str, spec: str, shelf: Mapping[str, Callable[..., Any]], kind: type, options: Any = None) -> Any:
    """`name`, `name:option=value,option=value` or `file.py:name`."""
    options = dict(options or {})
    if ".py:" in spec or spec.endswith(".py"):
        return from_file(what, spec, kind, options)
    name, _, told = spec.partition(":")
    if name not in shelf:
        near = difflib.get_close_matches(name, shelf, n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise BadRequest(f"the {what} must be one of {', '.join(shelf)}, or FILE.py:NAME, but got {name!r}{hint}")
    options |= pairs(spec, told)
    wanted = list(inspect.signature(shelf[name]).parameters)
    for option in options:
        if option not in wanted:
            raise BadRequest(f"the {what} {name!r} takes {', '.join(wanted) or 'no options'}, but got {option!r}.")
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
        if equals:
            found[option.strip()] = value
        elif found:
            found[list(found)[-1]] += f",{piece}"
        else:
            raise BadRequest(f"options must be written as NAME:option=value,option=value, but got {spec!r}.")
    return {option: parsed(value) for option, value in found.items()}


def parsed(text: str) -> Any:
    """`2` as a number, `2,5` as a list, `.6,.4;.4,.6` as a list of lists; words stay words."""
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
            return text.strip()


def from_file(what: str, spec: str, kind: type, options: Any) -> Any:
    """Run a user's file and take a record from it."""
    path, _, name = spec.rpartition(":")
    if not path or not name or not Path(path).is_file():
        raise BadRequest(f"a {what} of your own must be FILE.py:NAME with a file that exists, but got {spec!r}.")
    if options:
        raise BadRequest(f"a {what} of your own takes no --{next(iter(options))}; set it in {path}.")
    module_spec = importlib.util.spec_from_file_location(f"_banditune_{Path(path).stem}", path)
    if module_spec is None or module_spec.loader is None:
        raise BadRequest(f"{path!r} must be a Python file.")
    module = importlib.util.module_from_spec(module_spec)
    try:
        module_spec.loader.exec_module(module)
    except BadRequest:
        raise
    except Exception as error:
        raise BadRequest(f"{path} cannot be run: {type(error).__name__}: {error}.") from error
    found = getattr(module, name, None)
    if isinstance(found, type) and issubclass(found, kind):
        found = found()
    if not isinstance(found, kind):
        there = [key for key, value in vars(module).items() if isinstance(value, kind)]
        raise BadRequest(
            f"{name!r} in {path} must be a {what}, but it is {found!r}; there: {', '.join(there) or 'none'}."
        )
    return found


def shelves() -> dict[str, dict[str, dict[str, str]]]:
    """Everything on the shelves, in words."""
    from banditune import policies, problems, tuners

    return {
        heading: {name: told(made) for name, made in shelf.items()}
        for heading, shelf in (("policies", policies.SHELF), ("problems", problems.SHELF), ("tuners", tuners.SHELF))
    }


def told(made: Callable[..., Any]) -> dict[str, str]:
    """One shelf entry: its first docstring line, its parameters, its options."""
    about = (inspect.getdoc(made) or "").splitlines()[0]
    parameters = "; ".join(parameter_words(p) for p in getattr(made, "parameters", ()))
    options = ", ".join(
        p.name if p.default is inspect.Parameter.empty else f"{p.name}={p.default}"
        for p in inspect.signature(made).parameters.values()
    )
    return {
        "about": about,
        "parameters": f"tunes {parameters}" if parameters else "",
        "options": f"options {options}" if options else "",
    }


def parameter_words(parameter: Parameter) -> str:
    """gamma in [0, 1], theory 1."""
    low, high, theory = (bound_words(bound) for bound in (parameter.low, parameter.high, parameter.theory))
    kind = ", a whole number" if parameter.integer else ""
    return f"{parameter.name} in [{low}, {high}]{kind}, theory {theory}"


def bound_words(bound: float | Callable[[int, int], float]) -> str:
    """A number, or what it depends on."""
    if not callable(bound):
        return f"{bound:g}"
    doc = inspect.getdoc(bound)
    return (
        doc.split(",")[0].splitlines()[0]
        if doc
        else "horizon / arms"
        if math.isclose(bound(2, 10), 5)
        else "it depends"
    )
