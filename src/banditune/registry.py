"""Finds policies, problems and tuners by name or in a user's file, and describes what there is."""

from __future__ import annotations

import difflib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from banditune.core.errors import InvalidRequest, MissingDependency
from banditune.core.lazy_registry import Registry
from banditune.core.messages import Argument
from banditune.core.notice import Notice
from banditune.core.parsing import parse_options
from banditune.core.plugins import Plugin, find_plugins, load_plugin, note_broken_plugin
from banditune.core.request_errors import make_name_error, suggest_name
from banditune.core.space import Parameter


def make_from_spec(
    category: str,
    spec: str,
    registry: Registry,
    kind: type,
    options: Any = None,
) -> Any:
    """Make a record from `name`, `name:option=value,option=value` or `file.py:name`.

    `options` are those that are arguments of their own. In an error, other options are named as the spec has them.
    """
    options = dict(options or {})
    try:
        return _make_from_spec(category, spec, registry, kind, options)
    except InvalidRequest as error:
        if ":" not in spec or error.argument in options:
            raise
        raise error.quote() from error


def _make_from_spec(
    category: str,
    spec: str,
    registry: Registry,
    kind: type,
    options: dict[str, Any],
) -> Any:
    if ".py:" in spec or spec.endswith(".py"):
        return load_from_file(category, spec, kind, options)
    name, _, text = spec.partition(":")
    name = name.lower()
    if name not in registry:
        close = find_close_name(name, registry)
        raise make_name_error(
            f"the {category}", registry, name, argument=category, more=", or FILE.py:NAME", close=close
        )
    make = registry[name]
    parsed_options = parse_options(spec, text)
    repeated = next((option for option in parsed_options if option in options), None)
    if repeated:
        raise InvalidRequest(
            "every option must be given once, but {} stands in {!r} and as {}; leave one of them out.",
            *(repeated, spec, Argument(repeated)),
            argument=repeated,
            code="conflict",
        )
    options = options | parsed_options
    parameters = inspect.signature(make).parameters
    for option in options:
        if option not in parameters:
            accepted = ", ".join(parameters) or "no options"
            text = f"the {category} {name!r} takes {accepted}, but got {option!r}{suggest_name(option, parameters)}"
            raise InvalidRequest(text, argument=option, code="unknown-name")
    missing = [
        parameter.name
        for parameter in parameters.values()
        if parameter.default is inspect.Parameter.empty and parameter.name not in options
    ]
    if missing:
        raise InvalidRequest(
            "the {} {!r} needs {}; give it as {}.",
            *(category, name, " and ".join(missing), Argument(missing[0])),
            argument=missing[0],
            code="missing",
        )
    record = make(**options) if name in registry.names else _make_from_plugin(make, options, registry.plugins[name])
    if not isinstance(record, kind):
        raise InvalidRequest(
            f"{name!r} must be a {category}, but it is {record!r:.80}; correct the entry point of its package.",
            argument=category,
            code="own-code",
        )
    return record


def _make_from_plugin(make: Callable[..., Any], options: dict[str, Any], plugin: Plugin) -> Any:
    """Make a record by the code of an installed package. Its errors name the package."""
    try:
        return make(**options)
    except (InvalidRequest, MissingDependency):
        raise
    except Exception as error:
        raise InvalidRequest(
            f"the plug-in {plugin.name!r} of {plugin.package} failed with {options!r:.200}: {type(error).__name__}: "
            f"{error}.",
            code="own-code",
        ) from error


def find_close_name(word: str, registry: Registry) -> str | None:
    """Find the registered name that is most like a word, which may be the name of a class: Thompson is registered as 'ts'.

    Of two that are equally like it, it is a registered name rather than that of a class.
    """
    names_by_word = {registry[key].__name__.lower(): key for key in registry.names} | {key: key for key in registry}

    def rate(name: str) -> tuple[float, bool]:
        return difflib.SequenceMatcher(None, name, word).ratio(), name in registry

    best = max(names_by_word, key=rate)
    return names_by_word[best] if rate(best)[0] >= 0.5 else None


def load_from_file(category: str, spec: str, kind: type, options: Any) -> Any:
    """Run a user's file and return a record from it."""
    path, _, name = spec.rpartition(":")
    if not path or not name or not Path(path).is_file():
        text = f"a {category} of your own must be FILE.py:NAME with a file that exists, but got {spec!r}."
        raise InvalidRequest(text, argument=category, code="cannot-read")
    for option in options:
        text = "a {} of your own takes no {}; set it in {}."
        raise InvalidRequest(text, category, Argument(option), path, argument=option, code="conflict")
    module = import_file(Path(path).resolve())
    record = getattr(module, name, None)
    if isinstance(record, type) and issubclass(record, kind):
        record = record()
    if not isinstance(record, kind):
        candidates = [key for key, value in vars(module).items() if isinstance(value, kind)]
        problem = f"it is {record!r}" if hasattr(module, name) else "nothing there has that name"
        raise InvalidRequest(
            f"{name!r} in {path} must be a {category}, but {problem}; candidates: {', '.join(candidates) or 'none'}.",
            argument=category,
            code="unknown-name",
        )
    return record


@lru_cache(maxsize=8)
def import_file(path: Path) -> ModuleType:
    """Import a file as a script would be: once, with its folder on the path."""
    name = f"banditune_own_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InvalidRequest(f"{str(path)!r} must be a Python file.", code="file-format")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except (InvalidRequest, MissingDependency):
        raise
    except (Exception, SystemExit) as error:
        text = f"{path.name} cannot be run: {type(error).__name__}: {error}."
        raise InvalidRequest(text, code="own-code") from error
    return module


def describe_registries() -> dict[str, dict[str, dict[str, Any]]]:
    """Describe all policies, problems and tuners, ready for JSON. Plug-ins that cannot be used are left out."""
    return {heading: _describe_registry(registry)[0] for heading, registry in collect_registries().items()}


def list_plugin_notices() -> list[Notice]:
    """List notices on plug-ins that cannot be used. This imports all plug-ins."""
    return [notice for registry in collect_registries().values() for notice in _describe_registry(registry)[1]]


def _describe_registry(registry: Registry) -> tuple[dict[str, dict[str, Any]], list[Notice]]:
    """Describe the entries of a registry, with notices on those that cannot be used."""
    entries = {name: describe_entry(registry[name]) for name in registry.names}
    plugins = find_plugins(registry.group or "")
    notices = list(plugins.notices)
    for name, plugin in sorted(plugins.plugins.items()):
        which = f"{name!r} of {plugin.package}"
        if name in registry.names:
            notices.append(note_broken_plugin(which, "banditune has the same name"))
            continue
        try:
            entries[name] = describe_entry(load_plugin(plugin)) | {"package": plugin.package}
        except InvalidRequest as error:
            cause = error.__cause__
            notices.append(note_broken_plugin(which, f"it cannot be imported ({type(cause).__name__}: {cause})"))
        except Exception as error:
            notices.append(note_broken_plugin(which, f"it cannot be described ({type(error).__name__}: {error})"))
    return entries, notices


def collect_registries() -> dict[str, Registry]:
    """Return the registries of policies, problems and tuners."""
    from banditune.problems import problem_registry
    from banditune.tuners import tuner_registry

    return {"policies": collect_policies(), "problems": problem_registry.PROBLEMS, "tuners": tuner_registry.TUNERS}


def collect_policies() -> Registry:
    """Return the registered policies, including those that follow a computed table."""
    from banditune.exact import table_policies
    from banditune.policies import policy_registry

    return policy_registry.POLICIES | table_policies.TABLE_POLICIES


def describe_entry(make: Callable[..., Any]) -> dict[str, Any]:
    """Describe one entry: the first line of its docstring, its parameters, its options, and its package if installed."""
    return {
        "about": (inspect.getdoc(make) or "").partition("\n")[0],
        "parameters": [describe_parameter(parameter) for parameter in getattr(make, "parameters", ())],
        "options": {
            option.name: "..." if option.default is inspect.Parameter.empty else format_default(option.default)
            for option in inspect.signature(make).parameters.values()
        },
        "package": None,
    }


def format_default(value: Any) -> str:
    """Format a value as the command line takes it: 1,1."""
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def describe_parameter(parameter: Parameter) -> dict[str, Any]:
    """Describe a parameter with its bounds and its textbook value; bounds may be functions of arms and horizon."""
    bounds = {key: describe_bound(getattr(parameter, key)) for key in ("low", "high", "textbook")}
    return {"name": parameter.name, **bounds, "integer": parameter.integer}


def describe_bound(bound: float | Callable[[int, int], float]) -> str:
    """Format a number, or return the first words of the function that computes it."""
    if not callable(bound):
        return f"{bound:g}"
    return (inspect.getdoc(bound) or "depends on arms and horizon").split(",")[0].splitlines()[0].rstrip(".")
