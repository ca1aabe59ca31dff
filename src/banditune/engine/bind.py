"""Binds scalar functions into one compiled kernel that caches on disk.

Numba caches a function by its file and qualified name and never looks at the functions it calls. So the loop is copied
with everything it reaches as *its own globals*, and the copy's name ends in a digest of all of that: two policies never
share a kernel, an edited helper misses, and a second process hits. Only the outermost function is cached; the helpers
are compiled into it.
"""

from __future__ import annotations

import dis
import hashlib
import os
import re
import sys
import threading
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from banditune.contracts import BadRequest, Fault, Slot, is_ours
from banditune.engine.lean import OPTIMISED, PASTED, leave_helpers_to_their_kernel
from banditune.engine.ordering import CHECK, CHECKS, leave_arrays, ordered_code

Slots = Mapping[Any, Any]
"""What slots, by their names, are filled with: scalar functions, or constants; and functions by those that they replace."""

RULES = 3
"""Part of every digest: raised when functions are bound or compiled in another way."""

_lock = threading.RLock()


@lru_cache(maxsize=1)
def cache_folder() -> Path | None:
    """Where kernels are kept: `$BANDITUNE_CACHE`, else the user's cache folder; None where nothing can be written."""
    try:
        home = os.environ.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
        folder = Path(os.environ.get("BANDITUNE_CACHE") or Path(home) / "banditune")
        probe = folder / f".probe-{os.getpid()}"
        folder.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"")
        probe.unlink()
    except (OSError, RuntimeError):
        return None
    return folder


def bound(function: Callable[..., Any], slots: Slots | None = None) -> tuple[Callable[..., Any], str]:
    """Copy a function and all it reaches, with the slots filled; returns the copy and its digest.

    The copy is plain Python; `kernel` compiles one.
    """
    return _Binder(slots or {}, lambda copy, original: copy).bind(function)


class Target(NamedTuple):
    """What bound code is compiled for: `helper(copy, original, outside)` compiles a function that others call, `whole`
    (copy, cache) the kernel. `outside` says whether a user's function is in it. `mark` ends the name by which a kernel is
    cached: all that decides how it is compiled. `raises` says whether the caller learns of errors raised in the code.
    """

    name: str
    helper: Callable[[Any, Any, bool], Callable[..., Any]]
    whole: Callable[[Any, bool], Callable[..., Any]]
    mark: str = ""
    raises: bool = False


_kernels: dict[str, Callable[..., Any]] = {}
"""Kernels of this process by their digest: a function that was edited, or whose helper was, has another."""


def kernel(
    function: Callable[..., Any], slots: Slots | None = None, target: Target | None = None
) -> Callable[..., Any]:
    """Bind and compile a function, from this process or the disk cache where it is there.

    Where a slot is filled from outside this package, all is compiled with bounds checks: a user's slip becomes an error,
    not a stray write. (Not for a GPU, for which there are none.)
    """
    target = target or CPU
    fillings = (getattr(filling, "py_func", filling) for filling in (function, *(slots or {}).values()))
    outside = any(not is_ours(filling) for filling in fillings if isinstance(filling, types.FunctionType))
    digest = f"{target.name} {bound(function, slots)[1]} {outside}"
    with _lock:
        if digest not in _kernels:
            _kernels[digest] = _compiled(function, slots or {}, outside, target)
        return _kernels[digest]


def _compiled(function: Callable[..., Any], slots: Slots, outside: bool, target: Target) -> Callable[..., Any]:
    import numba

    config: Any = numba.config
    binder = _Binder(slots, lambda copy, original: target.helper(copy, original, outside), target.raises)
    copy, _ = binder.bind(function, compile_it=False)
    # Versions of Numba must not share a name: each writes the index first, and if the disk is full then, it leads to
    # another's code.
    copy.__qualname__ += "_checked" * outside + target.mark + "_numba_" + numba.__version__.replace(".", "_")
    folder = cache_folder()
    before = config.CACHE_DIR
    if folder is not None and not before:
        config.CACHE_DIR = str(folder)
    try:
        return target.whole(copy, bool(folder or before))
    except (RuntimeError, OSError):
        # No folder can be written: compile in every process; it only costs time.
        return target.whole(copy, False)
    finally:
        config.CACHE_DIR = before


# Without the NRT, views of arrays are not counted: scalar code allocates nothing, and calls become twice as fast.
_FLAGS: dict[str, Any] = {"error_model": "numpy", "_nrt": False}

# What only compiled code calls needs no code to be called by Python or C.
_NO_WRAPPERS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def _cpu_helper(copy: Any, original: Any, outside: bool) -> Callable[..., Any]:
    import numba

    lean = leave_helpers_to_their_kernel() and is_ours(original)
    if lean:
        copy.__qualname__ = (OPTIMISED if hasattr(original, "__vector__") else PASTED) + copy.__qualname__
    inline = not hasattr(original, "__rare__")
    flags = _FLAGS | (_NO_WRAPPERS if lean else {})
    return numba.njit(copy, boundscheck=outside, forceinline=inline, **flags)  # type: ignore[no-any-return]


def _cpu_kernel(copy: Any, cache: bool) -> Callable[..., Any]:
    import numba

    return numba.njit(copy, nogil=True, cache=cache, **_FLAGS)  # type: ignore[no-any-return]


CPU = Target("cpu", _cpu_helper, _cpu_kernel, raises=True)

POLICY = ("view", "start", "choose", "update")
"""The slots of a policy's functions."""


class _Binder:
    """Binds functions with one filling of the slots; each function once."""

    def __init__(self, slots: Slots, finish: Callable[[Any, Any], Callable[..., Any]], raises: bool = True) -> None:
        self.slots = slots
        self.finish = finish
        self.done: dict[tuple[Any, str], tuple[Callable[..., Any], str]] = {}
        self.open: list[Callable[..., Any]] = []
        fillings = [slots.get(name) for name in POLICY]
        self.checks = raises and any(filling is not None and not is_ours(filling) for filling in fillings)
        self.role = ""
        """The function of a policy, a user's in part, that is being bound: comparisons with NaN are errors in it."""

    def bind(self, function: Callable[..., Any], compile_it: bool = True) -> tuple[Callable[..., Any], str]:
        """The bound copy of a function and the digest of all it depends on."""
        function = getattr(function, "py_func", function)
        function = self.slots.get(function, function)
        if not isinstance(function, types.FunctionType):
            raise BadRequest(f"scalar code must be plain Python functions, but got {function!r}.")
        key = function, self.role if may_compare(function) else ""
        if key not in self.done:
            if function in self.open:
                raise BadRequest(f"scalar code must not recurse, but {function.__qualname__!r} calls itself.")
            self.open.append(function)
            self.done[key] = self._copy(function, compile_it)
            self.open.pop()
        return self.done[key]

    def _copy(self, function: types.FunctionType, compile_it: bool) -> tuple[Callable[..., Any], str]:
        scope: dict[str, Any] = {"__builtins__": __builtins__, "__name__": __name__}
        code = (ordered_code(function) if self.role and may_compare(function) else None) or function.__code__
        told = [
            str(RULES),
            code_digest(code),
            str([hasattr(function, mark) for mark in ("__rare__", "__bulky__", "__vector__")]),
        ]
        defaults = [self._value(function, "a default", value, ()) for value in function.__defaults__ or ()]
        told += [digest for _, digest in defaults]
        if function.__kwdefaults__:
            raise BadRequest(f"scalar code takes no keyword-only arguments, but {function.__qualname__!r} has some.")
        attributes_of = dict(names_in(code))
        if CHECK in attributes_of:
            check, digest = self.bind(CHECKS[self.role])
            scope[CHECK] = leave_arrays(check) if isinstance(check, types.FunctionType) else check
            told.append(f"{CHECK}={digest}")
        for name, attributes in attributes_of.items():
            if name in function.__globals__ and name not in function.__code__.co_freevars:
                scope[name], digest = self._value(function, name, function.__globals__[name], attributes)
                told.append(f"{name}={digest}")
        cells = []
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            value, digest = self._value(function, name, cell.cell_contents, attributes_of.get(name, ()))
            cells.append(types.CellType(value))
            told.append(f"{name}:{digest}")
        digest = hashlib.sha256("\n".join(told).encode()).hexdigest()[:20]
        values = tuple(value for value, _ in defaults) or None
        copy = types.FunctionType(code, scope, function.__name__, values, tuple(cells))
        copy.__qualname__ = f"{function.__name__}_{digest}"
        # Code from the cache imports the module of every function in it: one that is always there, not a user's.
        copy.__module__ = __name__
        return (self.finish(copy, function) if compile_it else copy), digest

    def _value(self, user: types.FunctionType, name: str, value: Any, attributes: tuple[str, ...]) -> tuple[Any, str]:
        """What a name stands for in the copy, and its digest."""
        if isinstance(value, Slot):
            outer = self.role
            if self.checks and value.name in CHECKS:
                self.role = value.name
            try:
                return self._value(user, name, self.slots.get(value.name), ())
            finally:
                self.role = outer
        if isinstance(getattr(value, "py_func", value), types.FunctionType):
            return self.bind(value)
        if isinstance(value, types.ModuleType):
            return self._module(user, name, value, attributes)
        if isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields"):
            return value, f"{value.__name__}{value._fields}"
        if isinstance(value, np.ndarray) and value.dtype != object:
            return value, f"{value.dtype}{value.shape}{hashlib.sha256(value.tobytes()).hexdigest()}"
        if value is None or isinstance(value, bool | int | float | str | np.generic):
            return value, f"{type(value).__name__} {value!r}"
        if isinstance(value, tuple):
            parts = [self._value(user, name, item, ()) for item in value]
            return tuple(part for part, _ in parts), str([digest for _, digest in parts])
        if isinstance(value, type) and value.__module__ in ("builtins", "numpy"):
            return value, value.__name__
        raise BadRequest(
            f"scalar code can use functions, modules, numbers, tuples and arrays, but {user.__qualname__!r} uses "
            f"{name!r}, a {type(value).__name__}; pass it as an option or a parameter instead."
        )

    def _module(
        self, user: types.FunctionType, name: str, module: types.ModuleType, attributes: tuple[str, ...]
    ) -> tuple[Any, str]:
        """A stand-in that holds the bound attributes; the compiler's own modules (math, numpy) stay as they are."""
        if module.__name__ == "numpy" and "random" in attributes:
            raise BadRequest(
                f"random numbers must come from `stream`, so that the same seed gives the same answer, but "
                f"{user.__qualname__!r} uses `{name}.random`; use banditune's uniform(stream), normal(stream) and others."
            )
        if module.__name__ in ("math", "numpy", "numba.cuda"):
            return module, f"module {module.__name__}"
        stand_in = types.ModuleType(module.__name__)
        told = []
        for attribute in attributes:
            if not hasattr(module, attribute):
                raise BadRequest(f"{user.__qualname__!r} uses `{name}.{attribute}`, which does not exist.")
            if isinstance(getattr(module, attribute), types.ModuleType):
                raise BadRequest(
                    f"{user.__qualname__!r} reaches through `{name}.{attribute}`; import what it needs by name."
                )
            value, digest = self._value(user, f"{name}.{attribute}", getattr(module, attribute), ())
            setattr(stand_in, attribute, value)
            told.append(f"{attribute}={digest}")
        return stand_in, f"module {module.__name__}({', '.join(told)})"


def may_compare(function: types.FunctionType) -> bool:
    """Whether comparisons of a function are of what a user computes: in users' code, and in policies of this package.

    Vectors stay as they are: each is compared with what a scalar comparison sees, too.
    """
    return not is_ours(function) or (
        function.__module__.startswith("banditune.policies.") and not hasattr(function, "__vector__")
    )


@lru_cache(maxsize=4096)
def code_digest(code: types.CodeType) -> str:
    """Bytecode, constants and signature; not file, line or comments."""
    constants = [_constant_digest(constant) for constant in code.co_consts]
    shape = (code.co_argcount, code.co_kwonlyargcount, code.co_flags, code.co_names, code.co_varnames, code.co_freevars)
    version = sys.version_info[:2]
    return hashlib.sha256(repr((version, code.co_code, constants, shape)).encode()).hexdigest()


def _constant_digest(constant: Any) -> str:
    if isinstance(constant, types.CodeType):
        return code_digest(constant)
    # A set of words has another order in every process.
    return repr(sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant)


@lru_cache(maxsize=4096)
def names_in(code: types.CodeType) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The global and enclosing names that code uses, each with the attributes that it takes from it."""
    taken: dict[str, set[str]] = {}
    for part in _parts(code):
        last = None
        for step in dis.get_instructions(part):
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF"):
                last = step.argval
                taken.setdefault(last, set())
            elif step.opname in ("LOAD_ATTR", "LOAD_METHOD") and last is not None:
                taken[last].add(step.argval)
                last = None
            elif step.opname not in ("PUSH_NULL", "PRECALL", "CACHE"):
                last = None
    return tuple(sorted((name, tuple(sorted(attributes))) for name, attributes in taken.items()))


def _parts(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _parts(constant)


def compile_for(compiled: Any, arguments: tuple[Any, ...], who: str) -> None:
    """Compile for these argument types now, so that a complaint names the policy and no thread compiles twice."""
    import numba
    from numba.core.caching import NullCache

    if not hasattr(compiled, "compile"):
        return  # NUMBA_DISABLE_JIT: plain Python
    types_of = tuple(numba.typeof(argument) for argument in arguments)
    with complaints(who), _lock:
        try:
            compiled.compile(types_of)
        except OSError:
            # The cache cannot be read or written (a full disk, lost rights): go on without it.
            compiled._cache = NullCache()
            compiled.compile(types_of)


@contextmanager
def complaints(who: str) -> Iterator[None]:
    """Turn a compiler's complaint into a sentence."""
    from numba.core.errors import NumbaError

    try:
        yield
    except NumbaError as error:
        reason, place = _explained(str(error))
        raise Fault(
            f"{who} cannot be compiled: {reason}{place} (scalar code may use `math`, loops, numbers and 1-D arrays; set "
            "NUMBA_DISABLE_JIT=1 to run it as plain Python)."
        ) from error


def _explained(told: str) -> tuple[str, str]:
    """The first line of a compiler's complaint that says something, and the user's line that it is about."""
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    noise = ("Failed in", "- Resolution", "During:")
    reason = next((line for line in lines if not line.startswith(noise)), lines[0])
    places = re.findall(r'File "([^"]+)", line (\d+)', told)
    users = [(path, line) for path, line in places if "site-packages" not in path and "banditune/engine" not in path]
    return reason, f" in {Path(users[0][0]).name}, line {users[0][1]}" if users else ""
