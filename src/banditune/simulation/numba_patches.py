"""Patches Numba to reduce the time to compile a kernel to less than half.

Numba optimises every function and compiles it to machine code, before it inlines it into its callers. The helpers of a
kernel are never called alone, so for them both steps are waste. Here they remain LLVM code until the whole kernel is
optimised; those marked `optimize_separately` are optimised first. Only functions whose qualified name starts with
`INLINED_PREFIX` or `OPTIMIZED_PREFIX` are treated like this. Custom functions are not, because they may print, for which
Numba needs the machine code.

Three parts of the compiler are slow in ways that have nothing to do with the result, and get faster versions: the type of
`a + b` is resolved anew, through dozens of templates, at each of thousands of places; comparing two sets of compiler flags
makes two dictionaries; and the variables of an instruction are listed by a chain of `isinstance`.

These are internals of Numba: if a version lacks them, nothing is changed, and compilation takes longer.
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


@lru_cache(maxsize=1)
def speed_up_compiler() -> bool:
    """Patch the slow parts of Numba, once per process; returns whether that was possible."""
    try:
        targetconfig: Any = import_module("numba.core.targetconfig")
        ir: Any = import_module("numba.core.ir")
        functions: Any = import_module("numba.core.types.functions")

        flags, top_flags = targetconfig.TargetConfig, targetconfig.ConfigStack.top_or_none
        function_type, resolve = functions.BaseFunction, functions.BaseFunction.get_call_type
        known = hasattr(flags(), "_values") and hasattr(flags, "values") and hasattr(ir.Inst, "_rec_list_vars")
    except (ImportError, AttributeError, TypeError):
        return False
    if not known:
        return False
    _speed_up_flags(flags)
    _speed_up_lists_of_variables(ir)
    _remember_types_of_calls(function_type, resolve, top_flags)
    return True


def _speed_up_flags(flags: Any) -> None:
    """Compare compiler flags by what is set; only if that differs, compare all values, defaults included."""

    def equal(one: Any, other: Any) -> Any:
        if one is other:
            return True
        if not isinstance(other, flags):
            return NotImplemented
        return (type(one) is type(other) and one._values == other._values) or one.values() == other.values()

    # Numba computes the hash from the names of all flags, which are the same for all objects of a class.
    flags.__eq__ = equal
    flags.__hash__ = lambda one: hash(type(one))


def _speed_up_lists_of_variables(ir: Any) -> None:
    """List the variables of an instruction with one look-up per value."""
    kinds: dict[type, type | None] = {}

    def classify(cls: type) -> type | None:
        bases = (ir.Var, ir.Inst, list, tuple, dict)
        kinds[cls] = next((base for base in bases if issubclass(cls, base)), None)
        return kinds[cls]

    def extend(variables: list[Any], value: Any) -> None:
        cls = type(value)
        kind = kinds[cls] if cls in kinds else classify(cls)
        if kind is None:
            return
        if kind is ir.Var:
            variables.append(value)
        elif kind is ir.Inst:
            variables.extend(value.list_vars())
        else:
            for item in value.values() if kind is dict else value:
                extend(variables, item)

    def list_variables(instruction: Any, value: Any) -> list[Any]:
        variables: list[Any] = []
        extend(variables, value)
        return variables

    ir.Inst._rec_list_vars = list_variables


def _remember_types_of_calls(function_type: Any, resolve: Any, top_flags: Any) -> None:
    """Remember the signatures of built-in functions and operators, by the types of arguments and the flags."""
    signatures: dict[Any, Any] = {}

    def resolve_once(function: Any, context: Any, args: Any, kws: Any) -> Any:
        if kws or not all(arg.is_precise() for arg in args):
            return resolve(function, context, args, kws)
        key = function, context, tuple(args), top_flags()
        signature = signatures.get(key)
        if signature is None:
            signature = resolve(function, context, args, kws)
            signatures[key] = signature
        return signature

    function_type.get_call_type = resolve_once
