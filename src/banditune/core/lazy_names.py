"""Loads public names on first use. The stub that type checkers read is their only list."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def attach_stub(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package, from the imports in the stub beside its `__init__.py`."""
    modules: dict[str, str] = {}

    def read_modules() -> dict[str, str]:
        if not modules:
            for line in Path(file).with_suffix(".pyi").read_text(encoding="utf-8").splitlines():
                parts = line.split()
                if len(parts) == 6 and parts[0] == "from":
                    modules[parts[3]] = parts[1]
        return modules

    def load_name(name: str) -> Any:
        if name == "__all__":
            return list_names()
        if name.startswith("_") or name not in read_modules():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = read_modules()[name]
        if module == package:
            return import_module(f"{package}.{name}")
        value = getattr(import_module(module), name)
        # A module of the same name that is imported later must not replace it.
        setattr(sys.modules[package], name, value)
        return value

    def list_names() -> list[str]:
        return sorted(read_modules())

    return load_name, list_names
