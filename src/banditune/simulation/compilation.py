"""Compiles bound functions into kernels, which are cached on disk by their digest."""

from __future__ import annotations

import os
import re
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from banditune.core.errors import SimulationError
from banditune.core.scalar import is_package_code
from banditune.simulation.bind import Binder, SlotFillings, bind_function
from banditune.simulation.numba_patches import (
    INLINED_PREFIX,
    OPTIMIZED_PREFIX,
    defer_helper_compilation,
    speed_up_compiler,
)

_compile_lock = threading.RLock()


@lru_cache(maxsize=1)
def find_cache_folder() -> Path | None:
    """Find the folder of cached kernels: `$BANDITUNE_CACHE`, else the user's cache folder; None if it is not writable."""
    try:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
        folder = Path(os.environ.get("BANDITUNE_CACHE") or Path(base) / "banditune")
        probe = folder / f".probe-{os.getpid()}"
        folder.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"")
        probe.unlink()
    except (OSError, RuntimeError):
        return None
    return folder


class CompileTarget(NamedTuple):
    """A compiler and its settings for bound code.

    `compile_helper(copy, original, has_custom_code)` compiles a function that other functions call, and
    `compile_kernel(copy, cache)` the kernel. `has_custom_code` is true if code of a user is part of it. `cache_suffix` is
    appended to the name of a cached kernel; it depends on all settings. `raises_errors` is true if the caller receives
    errors of the code.
    """

    name: str
    compile_helper: Callable[[Any, Any, bool], Callable[..., Any]]
    compile_kernel: Callable[[Any, bool], Callable[..., Any]]
    cache_suffix: str = ""
    raises_errors: bool = False


_kernels: dict[str, Callable[..., Any]] = {}
"""Kernels of this process by their digest, which changes with a function and its helpers."""


def compile_kernel(
    function: Callable[..., Any], slots: SlotFillings | None = None, target: CompileTarget | None = None
) -> Callable[..., Any]:
    """Bind and compile a function, or take it from this process or the disk cache.

    If a slot is filled from outside this package, all code is compiled with bounds checks, so that a wrong index is an
    error and not a write to other memory. GPUs have no such checks.
    """
    target = target or CPU_TARGET
    fillings = (getattr(filling, "py_func", filling) for filling in (function, *(slots or {}).values()))
    has_custom_code = any(
        not is_package_code(filling) for filling in fillings if isinstance(filling, types.FunctionType)
    )
    digest = f"{target.name} {bind_function(function, slots)[1]} {has_custom_code}"
    with _compile_lock:
        if digest not in _kernels:
            _kernels[digest] = _compile_bound(function, slots or {}, has_custom_code, target)
        return _kernels[digest]


def _compile_bound(
    function: Callable[..., Any], slots: SlotFillings, has_custom_code: bool, target: CompileTarget
) -> Callable[..., Any]:
    import numba

    config: Any = numba.config
    binder = Binder(
        slots, lambda copy, original: target.compile_helper(copy, original, has_custom_code), target.raises_errors
    )
    copy, _ = binder.bind(function, compile_it=False)
    # Versions of Numba must have different names. Each writes the index first, and if the disk is full afterwards, the
    # index would refer to code of another version.
    copy.__qualname__ += (
        "_checked" * has_custom_code + target.cache_suffix + "_numba_" + numba.__version__.replace(".", "_")
    )
    folder = find_cache_folder()
    before = config.CACHE_DIR
    if folder is not None and not before:
        config.CACHE_DIR = str(folder)
    try:
        return target.compile_kernel(copy, bool(folder or before))
    except (RuntimeError, OSError):
        # No folder is writable, so every process compiles again. This only takes time.
        return target.compile_kernel(copy, False)
    finally:
        config.CACHE_DIR = before


# Without the NRT, views of arrays are not counted: scalar code allocates nothing, and calls become twice as fast.
_FLAGS: dict[str, Any] = {"error_model": "numpy", "_nrt": False}


# Functions that only compiled code calls need no wrappers for Python or C.
_NO_WRAPPERS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


_helpers: dict[tuple[str, bool], Any] = {}
"""Helpers of the kernels of this process by their name, which ends with their digest, and whether bounds are checked."""


def _compile_cpu_helper(copy: Any, original: Any, has_custom_code: bool) -> Callable[..., Any]:
    """Mark a helper for compilation, or take it from another kernel of this process, where its types are known."""
    import numba

    speed_up_compiler()
    deferred = defer_helper_compilation() and is_package_code(original)
    if deferred:
        copy.__qualname__ = (
            OPTIMIZED_PREFIX if hasattr(original, "__optimize_separately__") else INLINED_PREFIX
        ) + copy.__qualname__
    key = copy.__qualname__, has_custom_code
    if key in _helpers:
        return _helpers[key]  # type: ignore[no-any-return]
    inline = not hasattr(original, "__noinline__")
    flags = _FLAGS | (_NO_WRAPPERS if deferred else {})
    helper = numba.njit(copy, boundscheck=has_custom_code, forceinline=inline, **flags)
    if all(_is_shared(value, has_custom_code) for value in _list_values(copy)):
        _helpers[key] = helper
    return helper  # type: ignore[no-any-return]


def _list_values(copy: Any) -> Iterator[Any]:
    """List what a bound copy reaches by name."""
    scope = {name: value for name, value in copy.__globals__.items() if name not in ("__builtins__", "__name__")}
    yield from scope.values()
    yield from (cell.cell_contents for cell in copy.__closure__ or ())


def _is_shared(value: Any, has_custom_code: bool) -> bool:
    """Return whether a value is the same object in all kernels with its digest. A user may define a tuple class twice."""
    if hasattr(value, "py_func"):
        return _helpers.get((value.py_func.__qualname__, has_custom_code)) is value
    if isinstance(value, types.FunctionType):
        return False  # NUMBA_DISABLE_JIT: plain Python
    if isinstance(value, tuple):
        return all(_is_shared(item, has_custom_code) for item in value)
    if isinstance(value, types.ModuleType):
        return value.__name__ in ("math", "numpy")
    return not isinstance(value, type) or value.__module__ in ("builtins", "numpy") or is_package_code(value)


def _compile_cpu_kernel(copy: Any, cache: bool) -> Callable[..., Any]:
    import numba

    return numba.njit(copy, nogil=True, cache=cache, **_FLAGS)  # type: ignore[no-any-return]


CPU_TARGET = CompileTarget("cpu", _compile_cpu_helper, _compile_cpu_kernel, raises_errors=True)


def compile_signature(compiled: Any, arguments: tuple[Any, ...], who: str) -> None:
    """Compile for these argument types now. An error then names the policy, and no thread compiles a second time."""
    import numba
    from numba.core.caching import NullCache

    if not hasattr(compiled, "compile"):
        return  # NUMBA_DISABLE_JIT: plain Python
    types_of = tuple(numba.typeof(argument) for argument in arguments)
    with translate_compile_errors(who), _compile_lock:
        try:
            compiled.compile(types_of)
        except OSError:
            # The cache cannot be read or written (a full disk, lost permissions): continue without it.
            compiled._cache = NullCache()
            compiled.compile(types_of)


@contextmanager
def translate_compile_errors(who: str) -> Iterator[None]:
    """Translate errors of the compiler."""
    from numba.core.errors import NumbaError

    try:
        yield
    except NumbaError as error:
        reason, location = _explain_compile_error(str(error))
        raise SimulationError(
            f"{who} cannot be compiled: {reason}{location} (scalar code may use `math`, loops, numbers and 1-D arrays; set "
            "NUMBA_DISABLE_JIT=1 to run it as plain Python)."
        ) from error


def _explain_compile_error(text: str) -> tuple[str, str]:
    """Extract the reason from a compiler error, and the line of custom code that it is about."""
    plain = re.sub(r"\x1b\[\d*m", "", text)  # Numba writes in colors if colorama is installed
    lines = [line.strip() for line in plain.splitlines() if line.strip()]
    noise = ("Failed in", "- Resolution", "During:")
    reason = next((line for line in lines if not line.startswith(noise)), lines[0])
    locations = re.findall(r'File "([^"]+)", line (\d+)', plain)
    users = [
        (path, line) for path, line in locations if "site-packages" not in path and "banditune/simulation" not in path
    ]
    return reason, f" in {Path(users[0][0]).name}, line {users[0][1]}" if users else ""
