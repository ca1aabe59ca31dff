"""Binds scalar functions: copies a function and all that it calls, fills the slots, and names the copy by a digest."""

from __future__ import annotations

import dis
import hashlib
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from banditune.core.errors import InvalidRequest
from banditune.core.scalar import Slot, is_package_code
from banditune.simulation.nan_checks import CHECK_NAME, NAN_CHECKS, add_nan_checks, skip_arrays

SlotFillings = Mapping[Any, Any]
"""Scalar functions or constants by the names of slots, and replacements by the functions that they replace."""


BINDING_VERSION = 3
"""A version in every digest. It is increased when functions are bound or compiled in a different way."""


def bind_function(function: Callable[..., Any], slots: SlotFillings | None = None) -> tuple[Callable[..., Any], str]:
    """Copy a function and all that it calls, with the slots filled. Return the copy and its digest.

    The copy is plain Python; `compile_kernel` compiles one.
    """
    return Binder(slots or {}, lambda copy, original: copy).bind(function)


POLICY_SLOTS = ("view", "start", "choose", "update")
"""The slots of a policy's functions."""


class Binder:
    """Binds functions with one set of slot fillings. Each function is bound once."""

    def __init__(
        self, slots: SlotFillings, finish: Callable[[Any, Any], Callable[..., Any]], raises: bool = True
    ) -> None:
        self.slots = slots
        self.finish = finish
        self.bound_copies: dict[tuple[Any, str], tuple[Callable[..., Any], str]] = {}
        self.open_functions: list[Callable[..., Any]] = []
        fillings = [slots.get(name) for name in POLICY_SLOTS]
        self.checks = raises and any(filling is not None and not is_package_code(filling) for filling in fillings)
        self.role = ""
        """The slot of a custom policy that is being bound. In its function, comparisons with NaN are errors."""

    def bind(self, function: Callable[..., Any], compile_it: bool = True) -> tuple[Callable[..., Any], str]:
        """Bind a function. Return the copy and the digest of all that it depends on."""
        compiled = hasattr(function, "py_func")
        function = getattr(function, "py_func", function)
        function = self.slots.get(function, function)
        if not isinstance(function, types.FunctionType):
            raise InvalidRequest(f"scalar code must be plain Python functions, but got {function!r}.", code="own-code")
        marked = compiled or is_package_code(function) or getattr(function, "__scalar__", False)
        if self.open_functions and not marked:
            raise InvalidRequest(
                f"scalar code must be marked, but {function.__qualname__!r}, which is called in a kernel, is not; put "
                "@bt.kernel.scalar above it.",
                code="own-code",
            )
        key = function, self.role if needs_nan_checks(function) else ""
        if key not in self.bound_copies:
            if function in self.open_functions:
                raise InvalidRequest(
                    f"scalar code must not recurse, but {function.__qualname__!r} calls itself.", code="own-code"
                )
            self.open_functions.append(function)
            self.bound_copies[key] = self._copy_function(function, compile_it)
            self.open_functions.pop()
        return self.bound_copies[key]

    def _copy_function(self, function: types.FunctionType, compile_it: bool) -> tuple[Callable[..., Any], str]:
        scope: dict[str, Any] = {"__builtins__": __builtins__, "__name__": __name__}
        code = (add_nan_checks(function) if self.role and needs_nan_checks(function) else None) or function.__code__
        lines = [
            str(BINDING_VERSION),
            digest_code(code),
            str(
                [hasattr(function, mark) for mark in ("__noinline__", "__noinline_on_gpu__", "__optimize_separately__")]
            ),
        ]
        defaults = [self._bind_value(function, "a default", value, ()) for value in function.__defaults__ or ()]
        lines += [digest for _, digest in defaults]
        if function.__kwdefaults__:
            raise InvalidRequest(
                f"scalar code takes no keyword-only arguments, but {function.__qualname__!r} has some.", code="own-code"
            )
        attributes_of = dict(list_global_names(code))
        if CHECK_NAME in attributes_of:
            check, digest = self.bind(NAN_CHECKS[self.role])
            scope[CHECK_NAME] = skip_arrays(check) if isinstance(check, types.FunctionType) else check
            lines.append(f"{CHECK_NAME}={digest}")
        for name, attributes in attributes_of.items():
            if name in function.__globals__ and name not in function.__code__.co_freevars:
                scope[name], digest = self._bind_value(function, name, function.__globals__[name], attributes)
                lines.append(f"{name}={digest}")
        cells = []
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            value, digest = self._bind_value(function, name, cell.cell_contents, attributes_of.get(name, ()))
            cells.append(types.CellType(value))
            lines.append(f"{name}:{digest}")
        digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:20]
        values = tuple(value for value, _ in defaults) or None
        copy = types.FunctionType(code, scope, function.__name__, values, tuple(cells))
        copy.__qualname__ = f"{function.__name__}_{digest}"
        # Code from the cache imports the modules of its functions. This module always exists, unlike a user's.
        copy.__module__ = __name__
        return (self.finish(copy, function) if compile_it else copy), digest

    def _bind_value(
        self, user: types.FunctionType, name: str, value: Any, attributes: tuple[str, ...]
    ) -> tuple[Any, str]:
        """Bind the value of a name. Return the value in the copy, and its digest."""
        if isinstance(value, Slot):
            outer = self.role
            if self.checks and value.name in NAN_CHECKS:
                self.role = value.name
            try:
                return self._bind_value(user, name, self.slots.get(value.name), ())
            finally:
                self.role = outer
        if isinstance(getattr(value, "py_func", value), types.FunctionType):
            return self.bind(value)
        if isinstance(value, types.ModuleType):
            return self._bind_module(user, name, value, attributes)
        if isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields"):
            return value, f"{value.__name__}{value._fields}"
        if isinstance(value, np.ndarray) and value.dtype != object:
            return value, f"{value.dtype}{value.shape}{hashlib.sha256(value.tobytes()).hexdigest()}"
        if value is None or isinstance(value, bool | int | float | str | np.generic):
            return value, f"{type(value).__name__} {value!r}"
        if isinstance(value, tuple):
            items = [self._bind_value(user, name, item, ()) for item in value]
            return tuple(bound for bound, _ in items), str([digest for _, digest in items])
        if isinstance(value, type) and value.__module__ in ("builtins", "numpy"):
            return value, value.__name__
        raise InvalidRequest(
            f"scalar code can use functions, modules, numbers, tuples and arrays, but {user.__qualname__!r} uses "
            f"{name!r}, a {type(value).__name__}; pass it as an option or a parameter instead.",
            code="own-code",
        )

    def _bind_module(
        self, user: types.FunctionType, name: str, module: types.ModuleType, attributes: tuple[str, ...]
    ) -> tuple[Any, str]:
        """Make a copy of a module with bound attributes. Modules that Numba compiles (math, numpy) are not changed."""
        if module.__name__ == "numpy" and "random" in {attribute.split(".")[0] for attribute in attributes}:
            raise InvalidRequest(
                f"random numbers must come from `stream`, so that the same seed gives the same result, but "
                f"{user.__qualname__!r} uses `{name}.random`; use banditune's uniform(stream), normal(stream) and others.",
                code="own-code",
            )
        if module.__name__ in ("math", "numpy", "numba.cuda"):
            return module, f"module {module.__name__}"
        stand_in = types.ModuleType(module.__name__)
        lines = []
        for attribute in sorted({chain.split(".")[0] for chain in attributes}):
            if not hasattr(module, attribute):
                raise InvalidRequest(
                    f"{user.__qualname__!r} uses `{name}.{attribute}`, which does not exist.", code="own-code"
                )
            attribute_chains = tuple(
                chain.partition(".")[2] for chain in attributes if chain.startswith(f"{attribute}.")
            )
            value, digest = self._bind_value(user, f"{name}.{attribute}", getattr(module, attribute), attribute_chains)
            setattr(stand_in, attribute, value)
            lines.append(f"{attribute}={digest}")
        return stand_in, f"module {module.__name__}({', '.join(lines)})"


CHECKED_PACKAGES = (
    "banditune.policies.",
    "banditune.simulation.estimators.",
    "banditune.simulation.gpu.thompson_thinning_f32",
    "banditune.simulation.gpu.warp_",
    "banditune.simulation.shortcuts.",
)
"""Packages with code of policies, whose comparisons are checked for NaN."""


def needs_nan_checks(function: types.FunctionType) -> bool:
    """Return whether a function may compare numbers of a user: in custom code, and in policies of this package.

    Functions marked `optimize_separately` need no checks, because scalar comparisons of the same numbers have them.
    """
    return not is_package_code(function) or (
        function.__module__.startswith(CHECKED_PACKAGES) and not hasattr(function, "__optimize_separately__")
    )


@lru_cache(maxsize=4096)
def digest_code(code: types.CodeType) -> str:
    """Digest bytecode, constants and signature. File, line, comments and docstring have no influence."""
    constants = [_digest_constant(constant) for constant in code.co_consts[_has_docstring(code) :]]
    shape = (code.co_argcount, code.co_kwonlyargcount, code.co_flags, code.co_names, code.co_varnames, code.co_freevars)
    version = sys.version_info[:2]
    return hashlib.sha256(repr((version, code.co_code, constants, shape)).encode()).hexdigest()


def _has_docstring(code: types.CodeType) -> bool:
    """Return whether the first constant is a docstring: a string that no instruction loads."""
    return (
        bool(code.co_consts)
        and isinstance(code.co_consts[0], str)
        and not any(step.arg == 0 and step.opcode in dis.hasconst for step in dis.get_instructions(code))
    )


def _digest_constant(constant: Any) -> str:
    if isinstance(constant, types.CodeType):
        return digest_code(constant)
    # A set of strings has another order in every process.
    return repr(sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant)


@lru_cache(maxsize=4096)
def list_global_names(code: types.CodeType) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """List the global and enclosing names that code uses, each with the attribute chains that it reads from it."""
    attribute_chains: dict[str, set[str]] = {}
    for nested in _walk_code(code):
        last, chain = None, ""
        for step in dis.get_instructions(nested):
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF"):
                last, chain = step.argval, ""
                attribute_chains.setdefault(last, set())
            elif step.opname in ("LOAD_ATTR", "LOAD_METHOD") and last is not None:
                chain = f"{chain}.{step.argval}" if chain else step.argval
                attribute_chains[last].add(chain)
            elif step.opname not in ("PUSH_NULL", "PRECALL", "CACHE"):
                last = None
    return tuple(sorted((name, tuple(sorted(attributes))) for name, attributes in attribute_chains.items()))


def _walk_code(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _walk_code(constant)
