"""Collects the dependencies of results besides arguments: package versions, and the Python code that draws instances."""

from __future__ import annotations

import hashlib
import platform
import sysconfig
import types
from importlib.metadata import version
from typing import Any

import numpy as np

from banditune.core.arrays import freeze_options
from banditune.core.problem import Problem
from banditune.core.scalar import is_package_code
from banditune.simulation.bind import digest_code, list_global_names


def collect_versions(device: str = "cpu") -> dict[str, str]:
    """Collect the versions that a result depends on."""
    from banditune.core.version import __version__

    versions = {
        "banditune": __version__,
        "numpy": version("numpy"),
        "numba": version("numba"),
        "python": platform.python_version(),
    }
    return versions | ({"numba-cuda": version("numba-cuda")} if device == "gpu" else {})


def digest_numbers(options: Any) -> str:
    """Digest options in the form in which scalar code reads them."""
    table = freeze_options(options)
    return digest_bytes(f"{table.dtype.str}{table.shape}".encode() + np.ascontiguousarray(table).tobytes())


def digest_sampling_code(problem: Problem) -> str:
    """Digest the Python code that draws instances, and all that it uses: custom methods, helpers, numbers.

    This code is `sample`, and `sample_keyed` if instances are functions of their keys. The `sample_keyed` of this package
    is left out, because the first instances identify it. Of code of the standard library and of installed packages, only
    names are included.
    """
    reached = _CodeCollector(problem)
    reached.collect("sample", type(problem).sample)
    if problem.is_keyed and not is_package_code(type(problem).sample_keyed):
        reached.collect("sample_at", type(problem).sample_keyed)
    return digest_bytes("\n".join(sorted(reached.lines)).encode())


class _CodeCollector:
    """Collects the functions and values that a problem's methods use. `lines` has a line for each name."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.seen: set[int] = set()
        self.lines: list[str] = []

    def collect(self, name: str, value: Any) -> None:
        """Record the value of a name, and follow functions."""
        value = _unwrap_function(value)
        if isinstance(value, types.FunctionType):
            if not _is_installed(value):
                self.collect_function(name, value)
        elif isinstance(value, np.ndarray) and value.dtype != object:
            self.lines.append(f"{name} {digest_numbers(value)}")
        elif value is None or isinstance(value, bool | int | float | str | tuple | np.generic):
            self.lines.append(f"{name} {_format_constant(value)}")

    def collect_function(self, name: str, function: types.FunctionType) -> None:
        """Record the code of a function, and all that it uses."""
        if id(function) in self.seen:
            return
        self.seen.add(id(function))
        self.lines.append(f"{name} {digest_code(function.__code__)}")
        for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self.collect(f"{name} default", value)
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        scope = {**function.__globals__, **{name: cell.cell_contents for name, cell in cells}}
        for global_name, attributes in list_global_names(function.__code__):
            if isinstance(scope.get(global_name), types.ModuleType):
                for chain in attributes:
                    value = scope[global_name]
                    for attribute in chain.split("."):
                        value = getattr(value, attribute, None) if isinstance(value, types.ModuleType) else value
                    self.collect(f"{global_name}.{chain}", value)
            elif global_name in scope:
                self.collect(global_name, scope[global_name])
        # Methods and fields of the problem and of its base classes. Every attribute of that name is included.
        holders = [getattr(self.problem, "__dict__", {}), *(vars(kind) for kind in type(self.problem).__mro__[:-1])]
        for attribute in _collect_attributes(function.__code__):
            for holder in holders:
                if attribute in holder:
                    self.collect(attribute, holder[attribute])


def _collect_attributes(code: types.CodeType) -> set[str]:
    """Collect every name that code, and code within it, may read from an object."""
    nested_codes = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return set(code.co_names).union(*map(_collect_attributes, nested_codes))


def _unwrap_function(value: Any) -> Any:
    """Unwrap the function behind a method, a property or compiled code."""
    for name in ("py_func", "__func__", "fget", "func"):
        if isinstance(getattr(value, name, None), types.FunctionType):
            return getattr(value, name)
    return value


def _format_constant(value: Any) -> str:
    """Format numbers, strings and tuples of them. For other objects, return the type: their text may have an address."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_format_constant, value))})"
    is_plain = value is None or isinstance(value, bool | int | float | str | np.generic)
    return f"{type(value).__name__} {value!r}" if is_plain else type(value).__qualname__


def _is_installed(function: types.FunctionType) -> bool:
    """Return whether a function belongs to the standard library or to an installed package other than this one."""
    if is_package_code(function):
        return False
    folders = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return any(folder and function.__code__.co_filename.startswith(folder) for folder in folders)


def digest_bytes(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:20]
