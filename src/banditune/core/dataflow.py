"""What a scalar function reads: whether what it returns, or does, may depend on one of its arguments.

Seen in the code, so no promise of its author is needed. The answer errs on one side only: an argument that matters is
always seen, and one that does not may be taken for one that does.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator
from functools import lru_cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

TrustRule = Callable[[Any, str], bool]
"""Whether a function may be given a value as that argument without its result depending on it."""


def depends_on_argument(function: Any, argument: int | str, trusts: TrustRule = lambda function, name: False) -> bool:
    """Whether a function may depend on an argument, by its place or name.

    It does not where the value goes nowhere but into calls of functions that do not read it, or that are trusted with it.
    """
    return _depends_on_argument(function, argument, trusts, ())


def _depends_on_argument(function: Any, argument: int | str, trusts: TrustRule, callers: tuple[Any, ...]) -> bool:
    function = getattr(function, "py_func", function)
    if not isinstance(function, FunctionType) or function in callers:
        return True  # what cannot be seen may be read
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    name = argument if isinstance(argument, str) else names[argument] if argument < len(names) else ""
    if name not in names:
        return True
    if trusts(function, name) or not loads_variable(function.__code__, name):
        return False
    try:
        statements = _list_statements(function)
    except Exception:
        return True
    return any(
        _depends_on_argument(callee, place, trusts, (*callers, function))
        for callee, place in _find_uses(function, statements, name)
    )


@lru_cache(maxsize=256)
def loads_variable(code: CodeType, name: str) -> bool:
    """Whether code, or code within it, loads the variable of that name."""
    # From Python 3.13 on one instruction may load two names; `argval` is then a pair.
    return any(
        "LOAD" in found.opname and name in (found.argval if isinstance(found.argval, tuple) else (found.argval,))
        for found in dis.get_instructions(code)
    ) or any(loads_variable(inner, name) for inner in code.co_consts if isinstance(inner, CodeType))


def _list_statements(function: FunctionType) -> list[Any]:
    """A function as the compiler's statements, which are the same for all versions of Python."""
    from numba.core.compiler import run_frontend

    blocks = run_frontend(function).blocks
    return [statement for block in blocks.values() for statement in block.body]


def _find_uses(function: FunctionType, statements: list[Any], name: str) -> Iterator[tuple[Any, int | str]]:
    """Where the value of an argument goes: a function that is called with it, and its place or name there.

    Any other use has no function, None.
    """
    from numba.core import ir

    assigned = [(one.target.name, one.value) for one in statements if isinstance(one, ir.Assign)]
    values: dict[str, list[Any]] = {}
    for target, value in assigned:
        values.setdefault(target, []).append(value)
    held = {target for target, value in assigned if isinstance(value, ir.Arg) and value.name == name}
    while copies := {target for target, value in assigned if isinstance(value, ir.Var) and value.name in held} - held:
        held |= copies
    for one in statements:
        used = [variable.name for variable in one.list_vars() if variable.name in held]
        value = one.value if isinstance(one, ir.Assign) else None
        if not used or isinstance(one, ir.Del) or isinstance(value, ir.Var | ir.Arg):
            continue
        if not isinstance(value, ir.Expr) or value.op != "call" or value.vararg is not None:
            yield None, 0
            continue
        callee = _resolve_callee(value.func, values)
        given = [(place, variable.name) for place, variable in enumerate(value.args)]
        given += [(key, variable.name) for key, variable in value.kws]
        yield from ((callee, place) for place, variable in given if variable in held)
        if value.func.name in held:
            yield None, 0


def _resolve_callee(variable: Any, values: dict[str, list[Any]], seen: frozenset[str] = frozenset()) -> Any:
    """The function that is called, where it is the same whichever way the code came; else None."""
    if variable.name in seen or variable.name not in values:
        return None
    first, *others = (_resolve_value(value, values, seen | {variable.name}) for value in values[variable.name])
    return first if all(other is first for other in others) else None


def _resolve_value(value: Any, values: dict[str, list[Any]], seen: frozenset[str]) -> Any:
    """What a value is, where that is known before the code runs: a global name, or an attribute of a module."""
    from numba.core import ir

    if isinstance(value, ir.Var):
        return _resolve_callee(value, values, seen)
    if isinstance(value, ir.Global | ir.FreeVar):
        return value.value
    if isinstance(value, ir.Expr) and value.op == "getattr":
        home = _resolve_callee(value.value, values, seen)
        return getattr(home, value.attr, None) if isinstance(home, ModuleType) else None
    return None
