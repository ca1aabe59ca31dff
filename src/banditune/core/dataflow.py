"""Static analysis of scalar functions: whether the result or the side effects may depend on an argument.

The result is derived from the code, so authors need not declare anything. Errors are one-sided: an argument with influence
is always found, but an argument without influence may be reported as having one.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterator
from functools import lru_cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

IndependenceRule = Callable[[Any, str], bool]
"""A function (function, name) that returns whether `function` is known not to depend on the argument of that name."""


def depends_on_argument(
    function: Any, argument: int | str, is_independent: IndependenceRule = lambda function, name: False
) -> bool:
    """Return whether a function may depend on an argument, given by its position or name.

    It does not if the value is only passed to functions that do not use it or for which `is_independent` is true.
    """
    return _depends_on_argument(function, argument, is_independent, ())


def _depends_on_argument(
    function: Any, argument: int | str, is_independent: IndependenceRule, callers: tuple[Any, ...]
) -> bool:
    function = getattr(function, "py_func", function)
    if not isinstance(function, FunctionType) or function in callers:
        return True  # code that cannot be analysed may use the argument
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    name = argument if isinstance(argument, str) else names[argument] if argument < len(names) else ""
    if name not in names:
        return True
    if is_independent(function, name) or not loads_variable(function.__code__, name):
        return False
    try:
        statements = _list_statements(function)
    except Exception:
        return True
    return any(
        _depends_on_argument(callee, position, is_independent, (*callers, function))
        for callee, position in _find_uses(function, statements, name)
    )


@lru_cache(maxsize=256)
def loads_variable(code: CodeType, name: str) -> bool:
    """Return whether code, or code nested in it, loads the variable of that name."""
    # From Python 3.13 on one instruction may load two names; `argval` is then a pair.
    return any(
        "LOAD" in step.opname and name in (step.argval if isinstance(step.argval, tuple) else (step.argval,))
        for step in dis.get_instructions(code)
    ) or any(loads_variable(nested, name) for nested in code.co_consts if isinstance(nested, CodeType))


_analyses: dict[CodeType, tuple[list[Any], list[Any]]] = {}
"""What the names of a function's code meant when it was analysed, and its statements then."""


def _list_statements(function: FunctionType) -> list[Any]:
    """List a function's statements in Numba's representation, which is the same for all versions of Python.

    They hold the values of global names. So they are listed again if one of these has changed.
    """
    from numba.core.compiler import run_frontend

    code = function.__code__
    meaning = [function.__globals__.get(name) for name in code.co_names]
    meaning += [cell.cell_contents for cell in function.__closure__ or ()]
    known, statements = _analyses.get(code, ([], []))
    if not statements or len(known) != len(meaning) or any(a is not b for a, b in zip(known, meaning, strict=True)):
        blocks = run_frontend(function).blocks
        statements = [statement for block in blocks.values() for statement in block.body]
        _analyses[code] = meaning, statements
    return statements


def _find_uses(function: FunctionType, statements: list[Any], name: str) -> Iterator[tuple[Any, int | str]]:
    """Find the uses of an argument: each function that is called with it, and its position or name in that call.

    For any other use, the function is None.
    """
    from numba.core import ir

    assigned = [
        (statement.target.name, statement.value) for statement in statements if isinstance(statement, ir.Assign)
    ]
    values: dict[str, list[Any]] = {}
    for target, value in assigned:
        values.setdefault(target, []).append(value)
    aliases = {target for target, value in assigned if isinstance(value, ir.Arg) and value.name == name}
    while (
        copies := {target for target, value in assigned if isinstance(value, ir.Var) and value.name in aliases}
        - aliases
    ):
        aliases |= copies
    for statement in statements:
        used = [variable.name for variable in statement.list_vars() if variable.name in aliases]
        value = statement.value if isinstance(statement, ir.Assign) else None
        if not used or isinstance(statement, ir.Del) or isinstance(value, ir.Var | ir.Arg):
            continue
        if not isinstance(value, ir.Expr) or value.op != "call" or value.vararg is not None:
            yield None, 0
            continue
        callee = _resolve_callee(value.func, values)
        arguments = [(position, variable.name) for position, variable in enumerate(value.args)]
        arguments += [(key, variable.name) for key, variable in value.kws]
        yield from ((callee, position) for position, variable in arguments if variable in aliases)
        if value.func.name in aliases:
            yield None, 0


def _resolve_callee(variable: Any, values: dict[str, list[Any]], visited: frozenset[str] = frozenset()) -> Any:
    """Return the function that is called if it is the same on every path; else None."""
    if variable.name in visited or variable.name not in values:
        return None
    first, *rest = (_resolve_value(value, values, visited | {variable.name}) for value in values[variable.name])
    return first if all(callee is first for callee in rest) else None


def _resolve_value(value: Any, values: dict[str, list[Any]], visited: frozenset[str]) -> Any:
    """Return a value that is known before the code runs: a global name, or an attribute of a module."""
    from numba.core import ir

    if isinstance(value, ir.Var):
        return _resolve_callee(value, values, visited)
    if isinstance(value, ir.Global | ir.FreeVar):
        return value.value
    if isinstance(value, ir.Expr) and value.op == "getattr":
        module = _resolve_callee(value.value, values, visited)
        return getattr(module, value.attr, None) if isinstance(module, ModuleType) else None
    return None
