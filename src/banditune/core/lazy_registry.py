"""Registries of policies, problems and tuners, whose classes are imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any


class Registry(Mapping[str, Callable[..., Any]]):
    """A mapping of names to classes or functions that are imported on first use.

    Parameters
    ----------
    names : mapping of str to str
        The location of each name's class, as "package.module:Class".
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = dict(names)

    def __getitem__(self, name: str) -> Callable[..., Any]:
        module, _, attribute = self.names[name].partition(":")
        entry: Callable[..., Any] = getattr(import_module(module), attribute)
        return entry

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __or__(self, other: Registry) -> Registry:
        return Registry(self.names | other.names)
