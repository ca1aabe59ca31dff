"""Halves the time to compile a kernel.

Numba optimises every function on its own and turns it into machine code, before it pastes it into its callers. The
helpers of a kernel are never called on their own, so for them both are waste: here they stay plain LLVM code until
the kernel that holds them all is optimised as one; those marked `vector` are optimised first. Only functions whose
qualified name starts with `INLINED_PREFIX` or `OPTIMIZED_PREFIX` are treated so; users' functions are not, because they may print,
for which Numba needs the machine code. This reaches into Numba: where a version of it lacks what is replaced here,
nothing is changed and compiling takes longer.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any

INLINED_PREFIX = "banditune_pasted_"


OPTIMIZED_PREFIX = "banditune_optimised_"
"""What the qualified name of a function starts with that is only ever called by compiled code."""


@lru_cache(maxsize=1)
def defer_helper_compilation() -> bool:
    """Teach Numba, once in a process; returns whether that could be done."""
    try:
        codegen: Any = import_module("numba.core.codegen")
        cpu: Any = import_module("numba.core.cpu")
        CPUCodeLibrary, CPUContext = codegen.CPUCodeLibrary, cpu.CPUContext

        optimise = CPUCodeLibrary._optimize_final_module
        finish = CPUCodeLibrary._finalize_final_module
        executable = CPUContext.get_executable
    except (ImportError, AttributeError):
        return False

    def optimised(library: Any) -> None:
        if not library.name.startswith(INLINED_PREFIX):
            optimise(library)

    def finished(library: Any) -> None:
        if library.name.startswith((INLINED_PREFIX, OPTIMIZED_PREFIX)):
            library._finalized = True
        else:
            finish(library)

    def made_executable(context: Any, library: Any, function: Any, environment: Any) -> Any:
        if not library.name.startswith((INLINED_PREFIX, OPTIMIZED_PREFIX)):
            return executable(context, library, function, environment)
        library._ensure_finalized()
        # Numba wants a built-in function of its own as a key for every compiled one; this one is never called.
        return [environment].append

    CPUCodeLibrary._optimize_final_module = optimised
    CPUCodeLibrary._finalize_final_module = finished
    CPUContext.get_executable = made_executable
    return True
