"""Patches Numba to halve the time to compile a kernel.

Numba optimises every function and compiles it to machine code before it inlines it into its callers. The helpers of a
kernel are never called separately, so both steps are unnecessary for them. With the patch they remain LLVM code until the
whole kernel is optimised. Those marked `optimize_separately` are optimised first. The patch applies only to functions
whose qualified name starts with `INLINED_PREFIX` or `OPTIMIZED_PREFIX`. It does not apply to custom functions: they may
print, for which Numba needs machine code. The patch changes internals of Numba. If a version lacks them, nothing is
changed, and compilation takes longer.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any

INLINED_PREFIX = "banditune_inlined_"


OPTIMIZED_PREFIX = "banditune_optimised_"
"""Prefixes of the qualified names of functions that only compiled code calls."""


@lru_cache(maxsize=1)
def defer_helper_compilation() -> bool:
    """Patch Numba once per process. Return whether this was possible."""
    try:
        codegen: Any = import_module("numba.core.codegen")
        cpu: Any = import_module("numba.core.cpu")
        CPUCodeLibrary, CPUContext = codegen.CPUCodeLibrary, cpu.CPUContext

        optimise = CPUCodeLibrary._optimize_final_module
        finish = CPUCodeLibrary._finalize_final_module
        executable = CPUContext.get_executable
    except (ImportError, AttributeError):
        return False

    def optimize_unless_inlined(library: Any) -> None:
        if not library.name.startswith(INLINED_PREFIX):
            optimise(library)

    def finish_unless_helper(library: Any) -> None:
        if library.name.startswith((INLINED_PREFIX, OPTIMIZED_PREFIX)):
            library._finalized = True
        else:
            finish(library)

    def get_kernel_executable(context: Any, library: Any, function: Any, environment: Any) -> Any:
        if not library.name.startswith((INLINED_PREFIX, OPTIMIZED_PREFIX)):
            return executable(context, library, function, environment)
        library._ensure_finalized()
        # Numba needs a different built-in function as a key for every compiled one; this one is never called.
        return [environment].append

    CPUCodeLibrary._optimize_final_module = optimize_unless_inlined
    CPUCodeLibrary._finalize_final_module = finish_unless_helper
    CPUContext.get_executable = get_kernel_executable
    return True
