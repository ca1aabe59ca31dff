"""Registries of policies, problems and tuners, whose classes are imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

from banditune.core.plugins import Plugin, find_plugins, load_plugin


class Registry(Mapping[str, Callable[..., Any]]):
    """A mapping of names to classes or functions that are imported on first use.

    Entry points of installed packages are read when a name is not built in, or when all names are listed.

    Parameters
    ----------
    names : mapping of str to str
        The location of each built-in name's class, as "package.module:Class".
    group : str, optional
        The group of entry points that add names. A built-in name cannot be replaced.
    """

    def __init__(self, names: Mapping[str, str], group: str | None = None) -> None:
        self.names = dict(names)
        self.group = group

    def __getitem__(self, name: str) -> Callable[..., Any]:
        if name not in self.names:
            return load_plugin(self.plugins[name])
        module, _, attribute = self.names[name].partition(":")
        entry: Callable[..., Any] = getattr(import_module(module), attribute)
        return entry

    def __contains__(self, name: object) -> bool:
        return name in self.names or name in self.plugins

    def __iter__(self) -> Iterator[str]:
        yield from self.names
        yield from self.plugins

    def __len__(self) -> int:
        return len(self.names) + len(self.plugins)

    def __or__(self, other: Registry) -> Registry:
        return Registry(self.names | other.names, self.group or other.group)

    def without_plugins(self) -> Registry:
        """Return the registry of built-in names. It is used for files, because a file must not cause an import."""
        return Registry(self.names)

    @property
    def plugins(self) -> dict[str, Plugin]:
        """The names that installed packages add."""
        found = find_plugins(self.group).plugins if self.group else {}
        return {name: plugin for name, plugin in sorted(found.items()) if name not in self.names}
