"""Finds policies, problems and tuners by name, or in a file of the user, and describes what there is."""

from __future__ import annotations

import difflib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from banditune.core.errors import InvalidRequest
from banditune.core.parsing import parse_options
from banditune.core.space import Parameter


class InvalidOption(InvalidRequest):
    """Of `name:option=value`: the names in its sentence are those of such options."""


def make_from_spec(
    what: str,
    spec: str,
    shelf: Mapping[str, Callable[..., Any]],
    kind: type,
    options: Any = None,
) -> Any:
    """`name`, `name:option=value,option=value` or `file.py:name`."""
    try:
        return _make_from_spec(what, spec, shelf, kind, dict(options or {}))
    except InvalidRequest as error:
        if ":" not in spec:
            raise
        raise InvalidOption(str(error)) from error


def _make_from_spec(
    what: str,
    spec: str,
    shelf: Mapping[str, Callable[..., Any]],
    kind: type,
    options: dict[str, Any],
) -> Any:
    if ".py:" in spec or spec.endswith(".py"):
        return load_from_file(what, spec, kind, options)
    name, _, told = spec.partition(":")
    name = name.lower()
    if name not in shelf:
        # In Python the same things have other names: Thompson is 'ts' here.
        known = {made.__name__.lower(): key for key, made in shelf.items()} | {key: key for key in shelf}
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"; did you mean {known[near[0]]!r}?" if near else "."
        raise InvalidRequest(f"the {what} must be one of {', '.join(shelf)}, or FILE.py:NAME, but got {name!r}{hint}")
    own = parse_options(spec, told)
    twice = [option for option in own if option in options]
    if twice:
        raise InvalidRequest(
            f"every option must be told once, but {twice[0]} stands in {spec!r} and as --{twice[0]}; leave one of them out."
        )
    options |= own
    wanted = list(inspect.signature(shelf[name]).parameters)
    for option in options:
        if option not in wanted:
            near = difflib.get_close_matches(option, wanted, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else "."
            raise InvalidRequest(
                f"the {what} {name!r} takes {', '.join(wanted) or 'no options'}, but got {option!r}{hint}"
            )
    missing = [
        parameter.name
        for parameter in inspect.signature(shelf[name]).parameters.values()
        if parameter.default is inspect.Parameter.empty and parameter.name not in options
    ]
    if missing:
        raise InvalidRequest(f"the {what} {name!r} needs {' and '.join(missing)}; give it as --{missing[0]}.")
    return shelf[name](**options)


def load_from_file(what: str, spec: str, kind: type, options: Any) -> Any:
    """Run a user's file and take a record from it."""
    path, _, name = spec.rpartition(":")
    if not path or not name or not Path(path).is_file():
        raise InvalidRequest(f"a {what} of your own must be FILE.py:NAME with a file that exists, but got {spec!r}.")
    if options:
        raise InvalidRequest(f"a {what} of your own takes no --{next(iter(options))}; set it in {path}.")
    module = import_file(Path(path).resolve())
    found = getattr(module, name, None)
    if isinstance(found, type) and issubclass(found, kind):
        found = found()
    if not isinstance(found, kind):
        there = [key for key, value in vars(module).items() if isinstance(value, kind)]
        came = f"it is {found!r}" if hasattr(module, name) else "nothing there has that name"
        raise InvalidRequest(f"{name!r} in {path} must be a {what}, but {came}; there: {', '.join(there) or 'none'}.")
    return found


@lru_cache(maxsize=8)
def import_file(path: Path) -> ModuleType:
    """Import a file as a script would be: once, with its folder on the path."""
    name = f"banditune_own_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InvalidRequest(f"{str(path)!r} must be a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except InvalidRequest:
        raise
    except (Exception, SystemExit) as error:
        raise InvalidRequest(f"{path.name} cannot be run: {type(error).__name__}: {error}.") from error
    return module


def describe_registries() -> dict[str, dict[str, dict[str, Any]]]:
    """Everything on the shelves, in words."""
    from banditune.problems import problem_registry
    from banditune.tuners import tuner_registry

    return {
        heading: {name: describe_entry(made) for name, made in shelf.items()}
        for heading, shelf in (
            ("policies", collect_policies()),
            ("problems", problem_registry.PROBLEMS),
            ("tuners", tuner_registry.TUNERS),
        )
    }


def collect_policies() -> dict[str, Callable[..., Any]]:
    """The policies' shelf, and the policies that play a computed table."""
    from banditune.exact import table_policies
    from banditune.policies import policy_registry

    return {**policy_registry.POLICIES, **table_policies.TABLE_POLICIES}


def describe_entry(made: Callable[..., Any]) -> dict[str, Any]:
    """One shelf entry: its first docstring line, its parameters, its options."""
    return {
        "about": (inspect.getdoc(made) or "").splitlines()[0],
        "parameters": [describe_parameter(parameter) for parameter in getattr(made, "parameters", ())],
        "options": {
            option.name: "..." if option.default is inspect.Parameter.empty else format_default(option.default)
            for option in inspect.signature(made).parameters.values()
        },
    }


def format_default(value: Any) -> str:
    """A value as the command line takes it: 1,1."""
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def describe_parameter(parameter: Parameter) -> dict[str, Any]:
    """A parameter with its bounds and theory's value, in words where they depend on arms and horizon."""
    bounds = {key: describe_bound(getattr(parameter, key)) for key in ("low", "high", "theory")}
    return {"name": parameter.name, **bounds, "integer": parameter.integer}


def describe_bound(bound: float | Callable[[int, int], float]) -> str:
    """A number, or the first words of the function that gives it."""
    if not callable(bound):
        return f"{bound:g}"
    return (inspect.getdoc(bound) or "depends on arms and horizon").split(",")[0].splitlines()[0].rstrip(".")
