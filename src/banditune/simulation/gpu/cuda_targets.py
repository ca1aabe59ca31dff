"""The targets of kernels for a GPU: signatures, compiler options, and the slots of warps and float types."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numba import cuda, from_dtype, types

from banditune.simulation import compilation, loop
from banditune.simulation.devices import is_cuda_simulated
from banditune.simulation.gpu import cuda_primitives

MAX_REGISTERS = 80
"""The largest number of registers of a thread that simulates a run. More registers and fewer threads were slower."""


GPU_COMPILATION_VERSION = 1
"""A version that is increased when kernels for a GPU are compiled with other options or another choice of inlining."""


NOINLINE_PREFIX = "banditune_noinline_"
"""Prefix of the qualified names of functions that are not inlined."""


INLINED_LOOPS = (loop.simulate_steps, loop.simulate_by_shortcut)
"""Loops that are inlined although they are `noinline`, because the compiler must know which memory they use."""


GPU_COMPILE_LOCK = threading.Lock()


def _make_input_type(ndim: int, dtype: Any = types.float64) -> Any:
    return types.Array(dtype, ndim, "C", readonly=True)


_OUTPUT_TYPE = types.Array(types.float64, 3, "C")


def make_signature(options: str = "float64") -> Any:
    """Make the argument types of a kernel. Inputs of a policy are read-only; its options may have any type."""
    table = _make_input_type(1, from_dtype(np.dtype(options)))
    return (
        _make_input_type(2),
        _make_input_type(3),
        types.int64,
        types.int64,
        _make_input_type(1),
        _make_input_type(2),
        table,
        types.int64,
        types.int64,
        _make_input_type(1, types.int64),
        types.boolean,
        _make_input_type(3),
        _OUTPUT_TYPE,
    )


PREDRAW_SIGNATURE = (_make_input_type(2), types.int64, types.int64, _make_input_type(1), _OUTPUT_TYPE)
"""The types of the arguments of the kernel that predraws rewards."""


WARP_SLOTS: dict[str, Any] = {
    "get_lane": cuda_primitives.get_lane,
    "count_lanes": cuda_primitives.get_warp_size,
    "sync_lanes": cuda_primitives.sync_warp,
    "sum_over_lanes": cuda_primitives.sum_over_warp,
    "argmax_over_lanes": cuda_primitives.find_best_in_warp,
    "vote_any": cuda_primitives.is_true_in_any_lane,
    "shuffle_from_lane": cuda_primitives.read_from_lane,
    "shuffle_xor": cuda_primitives.exchange_between_lanes,
}
"""The slots of a warp."""


DTYPE_SLOTS: dict[str, dict[str, Any]] = {
    "float64": {
        "cast_real": cuda_primitives.cast_float64,
        "compute_reciprocal": cuda_primitives.invert_float64,
        "compute_reciprocal_root": cuda_primitives.invert_root_float64,
    },
    "float32": {
        "cast_real": cuda_primitives.cast_float32,
        "compute_reciprocal": cuda_primitives.invert_float32,
        "compute_reciprocal_root": cuda_primitives.invert_root_float32,
    },
}
"""The slots for the arithmetic of a warp, by float type."""


FLOAT32_SLOTS: dict[Any, Any] = {
    **DTYPE_SLOTS["float32"],
    "compute_log": cuda_primitives.compute_log_float32,
    "compute_exp": cuda_primitives.compute_exp_float32,
}
"""The slots of a shortcut in single precision."""


def _compile_gpu_helper(copy: Any, original: Any, has_custom_code: bool) -> Any:
    is_call = (
        any(hasattr(original, mark) for mark in ("__noinline__", "__noinline_on_gpu__"))
        and original not in INLINED_LOOPS
    )
    if is_call:
        copy.__qualname__ = NOINLINE_PREFIX + copy.__qualname__
    flags = {} if is_cuda_simulated() else {"lto": False, "forceinline": not is_call}
    return cuda.jit(copy, device=True, **flags)


def _make_target(
    name: str, signature: Any, *, exact: bool, small: bool, registers: int | None
) -> compilation.CompileTarget:
    def compile_kernel(copy: Any, cache: bool) -> Any:
        if is_cuda_simulated():
            return cuda.jit(copy)
        with set_nvvm_options(exact, small):
            return cuda.jit(signature, cache=cache, lto=False, max_registers=registers)(copy)

    rounding, size = "exact" if exact else "fused", "" if exact == small else "_small"
    suffix = f"_{rounding}{size}_{registers or 'any'}_rules{GPU_COMPILATION_VERSION}"
    return compilation.CompileTarget(name, _compile_gpu_helper, compile_kernel, suffix)


@contextmanager
def set_nvvm_options(exact: bool, small: bool) -> Iterator[None]:
    """Set compiler options that numba-cuda does not offer.

    `exact` code rounds every product and sum as on the CPU. In `small` code, functions marked `noinline` or
    `noinline_on_gpu` are not inlined, and loops are not unrolled. Larger code exceeds the instruction caches, which delays
    diverging threads. Threads of a warp version do not diverge. Small code that is not exact is in single precision, and
    flushes subnormal numbers to 0.
    """
    from numba.cuda.cudadrv import nvvm

    compile_ir = nvvm.compile_ir

    def compile_with_options(code: Any, **options: Any) -> Any:
        modules = [code] if isinstance(code, str) else code
        if not any("banditune" in module for module in modules):
            return compile_ir(code, **options)  # another thread compiles a kernel of other code
        options |= {"fma": not exact, "ftz": small and not exact}
        return compile_ir([mark_functions(module) if small else module for module in modules], **options)

    def mark_functions(module: str) -> str:
        module = re.sub(rf"^(define [^\n]*{NOINLINE_PREFIX}[^\n]*\))", r"\1 noinline", module, flags=re.M)
        return re.sub(r"^(define [^\n]*\)(?: noinline| alwaysinline)?)", r"\1 optsize", module, flags=re.M)

    nvvm.compile_ir = compile_with_options
    try:
        yield
    finally:
        nvvm.compile_ir = compile_ir


THREAD_TARGETS = {
    "float64": _make_target("gpu threads", make_signature(), exact=True, small=True, registers=MAX_REGISTERS),
    "float32": _make_target(
        "gpu threads in float32", make_signature(), exact=False, small=True, registers=MAX_REGISTERS
    ),
}


WARP_TARGETS = {
    "float64": _make_target("gpu warps", make_signature(), exact=False, small=False, registers=None),
    "float32": _make_target("gpu warps in float32", make_signature(), exact=False, small=False, registers=128),
}


TABLE_TARGETS = {
    options: _make_target(
        f"gpu threads, {options} table", make_signature(options), exact=True, small=True, registers=MAX_REGISTERS
    )
    for options in ("float32", "uint8", "uint16", "int32", "int64")
}
"""Targets for policies whose options are a table of another type than float64; they compute in float64."""


PREDRAW_TARGET = _make_target("gpu rewards", PREDRAW_SIGNATURE, exact=True, small=True, registers=None)
