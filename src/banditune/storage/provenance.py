"""Collects what results depend on besides their arguments: package versions and the Python code that draws instances."""

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
    """What a result depends on."""
    from banditune.core.version import __version__

    versions = {
        "banditune": __version__,
        "numpy": version("numpy"),
        "numba": version("numba"),
        "python": platform.python_version(),
    }
    return versions | ({"numba-cuda": version("numba-cuda")} if device == "gpu" else {})


def digest_numbers(options: Any) -> str:
    """A digest of options as scalar code reads them."""
    table = freeze_options(options)
    return digest_bytes(f"{table.dtype.str}{table.shape}".encode() + np.ascontiguousarray(table).tobytes())


def digest_sampling_code(problem: Problem) -> str:
    """A digest of the Python code that draws instances and of what it reaches: own methods, helpers, numbers.

    That is `sample`, and `sample_at` where instances are functions of their keys; but not this package's own, for which
    the first instances stand: with it, ledgers from before it counted would be lost. Code of the standard library and of
    installed packages is known by its name only.
    """
    reached = _CodeCollector(problem)
    reached.reach("sample", type(problem).sample)
    if problem.by_key and not is_package_code(type(problem).sample_at):
        reached.reach("sample_at", type(problem).sample_at)
    return digest_bytes("\n".join(sorted(reached.told)).encode())


class _CodeCollector:
    """Follows the Python code that a problem's methods reach, each function once; `told` has a line for each thing."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.seen: set[int] = set()
        self.told: list[str] = []

    def reach(self, name: str, value: Any) -> None:
        """Tell what a name stands for, and follow functions."""
        value = _unwrap_function(value)
        if isinstance(value, types.FunctionType):
            if not _is_installed(value):
                self.follow(name, value)
        elif isinstance(value, np.ndarray) and value.dtype != object:
            self.told.append(f"{name} {digest_numbers(value)}")
        elif value is None or isinstance(value, bool | int | float | str | tuple | np.generic):
            self.told.append(f"{name} {_format_constant(value)}")

    def follow(self, name: str, function: types.FunctionType) -> None:
        """Tell a function's code, and all that it uses."""
        if id(function) in self.seen:
            return
        self.seen.add(id(function))
        self.told.append(f"{name} {digest_code(function.__code__)}")
        for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self.reach(f"{name} default", value)
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        scope = {**function.__globals__, **{known: cell.cell_contents for known, cell in cells}}
        for known, attributes in list_global_names(function.__code__):
            if isinstance(scope.get(known), types.ModuleType):
                for chain in attributes:
                    value = scope[known]
                    for attribute in chain.split("."):
                        value = getattr(value, attribute, None) if isinstance(value, types.ModuleType) else value
                    self.reach(f"{known}.{chain}", value)
            elif known in scope:
                self.reach(known, scope[known])
        # Methods and fields of the problem, and what they override: any attribute of that name may be meant.
        holders = [getattr(self.problem, "__dict__", {}), *(vars(kind) for kind in type(self.problem).__mro__[:-1])]
        for attribute in _collect_attributes(function.__code__):
            for holder in holders:
                if attribute in holder:
                    self.reach(attribute, holder[attribute])


def _collect_attributes(code: types.CodeType) -> set[str]:
    """Every name that code, and code within it, may take from an object."""
    inner = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return set(code.co_names).union(*map(_collect_attributes, inner))


def _unwrap_function(value: Any) -> Any:
    """The function behind a method, a property or compiled code."""
    for name in ("py_func", "__func__", "fget", "func"):
        if isinstance(getattr(value, name, None), types.FunctionType):
            return getattr(value, name)
    return value


def _format_constant(value: Any) -> str:
    """Numbers, words and tuples of them; of anything else only the type, because its text may hold an address."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_format_constant, value))})"
    known = value is None or isinstance(value, bool | int | float | str | np.generic)
    return f"{type(value).__name__} {value!r}" if known else type(value).__qualname__


def _is_installed(function: types.FunctionType) -> bool:
    """Whether a function belongs to the standard library or to an installed package other than this one."""
    if is_package_code(function):
        return False
    homes = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return any(home and function.__code__.co_filename.startswith(home) for home in homes)


def digest_bytes(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:20]
