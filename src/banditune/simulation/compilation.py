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
from banditune.simulation.numba_patches import INLINED_PREFIX, OPTIMIZED_PREFIX, defer_helper_compilation

_compile_lock = threading.RLock()


@lru_cache(maxsize=1)
def find_cache_folder() -> Path | None:
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


class CompileTarget(NamedTuple):
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


def compile_kernel(
    function: Callable[..., Any], slots: SlotFillings | None = None, target: CompileTarget | None = None
) -> Callable[..., Any]:
    """Bind and compile a function, from this process or the disk cache where it is there.

    Where a slot is filled from outside this package, all is compiled with bounds checks: a user's slip becomes an error,
    not a stray write. (Not for a GPU, for which there are none.)
    """
    target = target or CPU_TARGET
    fillings = (getattr(filling, "py_func", filling) for filling in (function, *(slots or {}).values()))
    outside = any(not is_package_code(filling) for filling in fillings if isinstance(filling, types.FunctionType))
    digest = f"{target.name} {bind_function(function, slots)[1]} {outside}"
    with _compile_lock:
        if digest not in _kernels:
            _kernels[digest] = _compile_bound(function, slots or {}, outside, target)
        return _kernels[digest]


def _compile_bound(
    function: Callable[..., Any], slots: SlotFillings, outside: bool, target: CompileTarget
) -> Callable[..., Any]:
    import numba

    config: Any = numba.config
    binder = Binder(slots, lambda copy, original: target.helper(copy, original, outside), target.raises)
    copy, _ = binder.bind(function, compile_it=False)
    # Versions of Numba must not share a name: each writes the index first, and if the disk is full then, it leads to
    # another's code.
    copy.__qualname__ += "_checked" * outside + target.mark + "_numba_" + numba.__version__.replace(".", "_")
    folder = find_cache_folder()
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


def _compile_cpu_helper(copy: Any, original: Any, outside: bool) -> Callable[..., Any]:
    import numba

    lean = defer_helper_compilation() and is_package_code(original)
    if lean:
        copy.__qualname__ = (
            OPTIMIZED_PREFIX if hasattr(original, "__vector__") else INLINED_PREFIX
        ) + copy.__qualname__
    inline = not hasattr(original, "__rare__")
    flags = _FLAGS | (_NO_WRAPPERS if lean else {})
    return numba.njit(copy, boundscheck=outside, forceinline=inline, **flags)  # type: ignore[no-any-return]


def _compile_cpu_kernel(copy: Any, cache: bool) -> Callable[..., Any]:
    import numba

    return numba.njit(copy, nogil=True, cache=cache, **_FLAGS)  # type: ignore[no-any-return]


CPU_TARGET = CompileTarget("cpu", _compile_cpu_helper, _compile_cpu_kernel, raises=True)


def compile_signature(compiled: Any, arguments: tuple[Any, ...], who: str) -> None:
    """Compile for these argument types now, so that a complaint names the policy and no thread compiles twice."""
    import numba
    from numba.core.caching import NullCache

    if not hasattr(compiled, "compile"):
        return  # NUMBA_DISABLE_JIT: plain Python
    types_of = tuple(numba.typeof(argument) for argument in arguments)
    with translate_compile_errors(who), _compile_lock:
        try:
            compiled.compile(types_of)
        except OSError:
            # The cache cannot be read or written (a full disk, lost rights): go on without it.
            compiled._cache = NullCache()
            compiled.compile(types_of)


@contextmanager
def translate_compile_errors(who: str) -> Iterator[None]:
    """Turn a compiler's complaint into a sentence."""
    from numba.core.errors import NumbaError

    try:
        yield
    except NumbaError as error:
        reason, place = _explain_compile_error(str(error))
        raise SimulationError(
            f"{who} cannot be compiled: {reason}{place} (scalar code may use `math`, loops, numbers and 1-D arrays; set "
            "NUMBA_DISABLE_JIT=1 to run it as plain Python)."
        ) from error


def _explain_compile_error(told: str) -> tuple[str, str]:
    """The first line of a compiler's complaint that says something, and the user's line that it is about."""
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    noise = ("Failed in", "- Resolution", "During:")
    reason = next((line for line in lines if not line.startswith(noise)), lines[0])
    places = re.findall(r'File "([^"]+)", line (\d+)', told)
    users = [
        (path, line) for path, line in places if "site-packages" not in path and "banditune/simulation" not in path
    ]
    return reason, f" in {Path(users[0][0]).name}, line {users[0][1]}" if users else ""
