"""Transforms code so that a comparison with NaN is an error.

NaN is neither less nor greater than any number. A policy that searches the highest index with `index > highest` never
selects an arm whose index is NaN, and may always pull the first arm, without an error. So in policies with custom
functions, both sides of <, <=, > and >=, and the arguments of `max`, `min` and `int`, are checked. Plain Python and
compiled code use the same changed code. == and != are not changed. (In compiled code, the `int` of NaN may be any number.)
"""

from __future__ import annotations

import ast
import linecache
import types
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from banditune.core.nan_errors import NAN_IN_CHOOSE, NAN_IN_UPDATE, reject_nan_in_choose, reject_nan_in_update

CHECK_NAME = "_banditune_check_nan"
"""The name of the check that changed code calls on the values that it compares."""


CHECKED_CODE_ATTRIBUTE = "__nan_checked_code__"
"""An attribute of functions with their code and the changed code. Workers without the source files need it."""


_FUTURE_FLAGS = annotations.compiler_flag
"""A compiler flag that may not be in the source file, because `exec` and prompts inherit it from their caller."""


_ORDER_OPERATORS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


NAN_CHECKS = {"choose": reject_nan_in_choose, "update": reject_nan_in_update}
"""The check of values for each checked function of a policy."""


NAN_ERROR_FUNCTIONS = {NAN_IN_CHOOSE: "choose", NAN_IN_UPDATE: "update"}
"""The function in which an error was raised, by the message of the error."""


def skip_arrays(check: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Make a check for plain Python, in which code may also compare whole arrays."""
    return lambda value: value if isinstance(value, np.ndarray) else check(value)


def add_nan_checks(function: types.FunctionType) -> types.CodeType | None:
    """Add checks to the code of a function; None if its source is missing, or another one was compiled."""
    cached = getattr(function, CHECKED_CODE_ATTRIBUTE, None)
    if cached is None or cached[0] != function.__code__:
        changed = _transform_code(function.__code__, function.__code__.co_filename)
        if changed is None:
            return None
        cached = (function.__code__, changed)
        setattr(function, CHECKED_CODE_ATTRIBUTE, cached)
    return cached[1]


@lru_cache(maxsize=4096)
def _transform_code(code: types.CodeType, file: str) -> types.CodeType | None:
    """Compile the counterpart of some code with checks, from its file.

    The whole file is compiled, so that names and closures are the same. If the compiled file does not contain exactly this
    code, the code has another source.
    """
    linecache.checkcache(file)
    try:
        lines = "".join(linecache.getlines(file))
        plain = _compile_tree(ast.parse(lines), code)
        changed = _compile_tree(ast.fix_missing_locations(_ComparisonTransformer(lines).visit(ast.parse(lines))), code)
    except (SyntaxError, ValueError, RecursionError):
        return None
    originals, counterparts = list(_list_code_objects(plain)), list(_list_code_objects(changed))
    if [_locate_code(original) for original in originals] != [
        _locate_code(counterpart) for counterpart in counterparts
    ]:
        return None
    matches = [
        counterpart
        for original, counterpart in zip(originals, counterparts, strict=True)
        if _is_same_code(original, code)
    ]
    return matches[0] if len(matches) == 1 else None


def _compile_tree(tree: ast.Module, code: types.CodeType) -> types.CodeType:
    return compile(tree, code.co_filename, "exec", code.co_flags & _FUTURE_FLAGS, dont_inherit=True)  # type: ignore[no-any-return]


def _list_code_objects(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _list_code_objects(constant)


def _locate_code(code: types.CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


def _is_same_code(first: types.CodeType, second: types.CodeType) -> bool:
    return _locate_code(first) == _locate_code(second) and first == second


class _ComparisonTransformer(ast.NodeTransformer):
    """Puts a check around values that are compared."""

    def __init__(self, source: str) -> None:
        tree = ast.parse(source)
        bound = {
            name.id for name in ast.walk(tree) if isinstance(name, ast.Name) and not isinstance(name.ctx, ast.Load)
        }
        bound |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        bound |= {argument.arg for argument in ast.walk(tree) if isinstance(argument, ast.arg)}
        bound |= {name.asname or name.name for name in ast.walk(tree) if isinstance(name, ast.alias)}
        self.extremes = set() if "*" in bound else {"max", "min"} - bound
        self.whole = set() if "*" in bound else {"int"} - bound

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        operands = [node.left, *node.comparators]
        for position, operator in enumerate(node.ops):
            if isinstance(operator, _ORDER_OPERATORS):
                operands[position], operands[position + 1] = map(_wrap_in_check, operands[position : position + 2])
        node.left, *node.comparators = operands
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        named = node.func.id if isinstance(node.func, ast.Name) else ""
        many = (named in self.extremes and len(node.args) > 1) or (named in self.whole and len(node.args) == 1)
        if many and not node.keywords:
            node.args = [_wrap_in_check(argument) for argument in node.args]
        return node


def _wrap_in_check(value: ast.expr) -> ast.expr:
    """Wrap a value in its check; literals and wrapped values need none."""
    if isinstance(value, ast.Tuple):
        return ast.copy_location(ast.Tuple([_wrap_in_check(part) for part in value.elts], value.ctx), value)
    operand = value.operand if isinstance(value, ast.UnaryOp) else value
    checked = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == CHECK_NAME
    if checked or isinstance(operand, ast.Constant | ast.Starred):
        return value
    return ast.copy_location(ast.Call(ast.Name(CHECK_NAME, ast.Load()), [value], []), value)
