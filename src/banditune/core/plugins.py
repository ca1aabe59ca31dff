"""Finds policies, problems and tuners of installed packages by their entry points."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from banditune.core.errors import InvalidRequest
from banditune.core.notice import Notice

NAME_PATTERN = re.compile(r"[a-z0-9][a-z0-9._-]*")
"""The pattern of names for the command line, which ignores case and uses `:` and `,` as separators."""


class Plugin(NamedTuple):
    """A name that an installed package adds to a registry."""

    name: str
    package: str
    """The package with its version."""
    entry: Any


class PluginCatalog(NamedTuple):
    """The plug-ins of a group by their names, and notices on those that cannot be used."""

    plugins: dict[str, Plugin]
    notices: tuple[Notice, ...]


def find_plugins(group: str) -> PluginCatalog:
    """Find the plug-ins of a group among all packages on the path. None of them is imported."""
    return _read_catalog(group, tuple(sys.path))


@lru_cache(maxsize=16)
def _read_catalog(group: str, path: tuple[str, ...]) -> PluginCatalog:
    """Read the entry points of a group, once for each path."""
    plugins: dict[str, Plugin] = {}
    notices = []
    for package, entries in _list_entries(group):
        if isinstance(entries, Exception):
            notices.append(note_broken_plugin(f"of {package}", f"its entry points cannot be read ({entries})"))
            continue
        for entry in entries:
            if not NAME_PATTERN.fullmatch(entry.name):
                reason = "its name must be small letters, digits, '.', '_' and '-'"
                notices.append(note_broken_plugin(f"{entry.name!r} of {package}", reason))
            elif entry.name in plugins:
                reason = f"{plugins[entry.name].package} has the same name"
                notices.append(note_broken_plugin(f"{entry.name!r} of {package}", reason))
            else:
                plugins[entry.name] = Plugin(entry.name, package, entry)
    return PluginCatalog(plugins, tuple(notices))


def _list_entries(group: str) -> Iterator[tuple[str, Any]]:
    """List packages with their entries of a group, or with an error if they cannot be read.

    If several packages have the same name, the first one on the path is used, as for imports.
    """
    from importlib import metadata

    seen = set()
    for distribution in metadata.distributions():
        try:
            text = distribution.read_text("entry_points.txt") or ""
            if f"[{group}]" not in text:
                continue
            name = str(distribution.name)
            package = f"{name} {distribution.version}"
        except Exception:
            continue  # a folder that is not a package
        if name.lower() in seen:
            continue
        seen.add(name.lower())
        try:
            yield package, [entry for entry in distribution.entry_points if entry.group == group]
        except Exception as error:
            yield package, error


def note_broken_plugin(which: str, reason: str) -> Notice:
    """Make the notice on a plug-in that cannot be used."""
    return Notice(f"the plug-in {which} is left out: {reason}.", "broken-plugin")


def load_plugin(plugin: Plugin) -> Callable[..., Any]:
    """Import a plug-in: a class or a function that makes a record, or a record."""
    try:
        loaded = plugin.entry.load()
    except (Exception, SystemExit) as error:
        raise InvalidRequest(
            f"the plug-in {plugin.name!r} of {plugin.package} cannot be imported: {type(error).__name__}: {error}; update, "
            "reinstall or uninstall that package.",
            code="unavailable",
        ) from error
    return loaded if callable(loaded) else _wrap_record(loaded)


def _wrap_record(record: Any) -> Callable[..., Any]:
    """Make a function that returns a record, with the docstring of its own code."""

    def make() -> Any:
        return record

    code = getattr(record, "choose", None) or getattr(record, "reward", None)
    make.__name__ = type(record).__name__
    make.__doc__ = inspect.getdoc(code) or inspect.getdoc(record)
    make.parameters = getattr(record, "parameters", ())  # type: ignore[attr-defined]
    return make
