"""Every test can fail: it asserts something, and the assertion is reached."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import pytest

from helpers.paths import ROOT

TESTS = ROOT / "tests"
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


class Assertion(NamedTuple):
    """An assertion in a function: what decides whether it is reached, and the line."""

    condition: str
    line: int


def get_called_name(node: ast.AST) -> str:
    """The last name of a called function, empty for other nodes."""
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def is_assertion(node: ast.AST, helpers: set[str]) -> bool:
    """Whether a statement or a call fails the test where something does not hold."""
    name = get_called_name(node)
    raises_itself = isinstance(node, ast.Raise) and node.exc is not None and "AssertionError" in ast.dump(node.exc)
    known = name in {"raises", "warns", "fail"} or name.startswith("assert_") or name in helpers
    return isinstance(node, ast.Assert) or raises_itself or known


def find_asserting_helpers(trees: list[ast.Module]) -> set[str]:
    """Names of functions that assert, directly or through others."""
    functions = defaultdict(list)
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, FUNCTION):
                functions[node.name].append(node)
    helpers: set[str] = set()
    while True:
        more = {
            name
            for name, nodes in functions.items()
            if name not in helpers and any(is_assertion(part, helpers) for node in nodes for part in ast.walk(node))
        }
        if not more:
            return helpers
        helpers |= more


def may_be_empty(iterated: ast.expr) -> bool:
    """Whether a loop may have no round: only literals, ranges of literals and combinations of these surely have one."""
    if isinstance(iterated, ast.Tuple | ast.List | ast.Set | ast.Dict):
        return not getattr(iterated, "elts", None) and not getattr(iterated, "keys", None)
    if isinstance(iterated, ast.Call) and get_called_name(iterated) == "range":
        return not all(isinstance(part, ast.Constant) for part in iterated.args)
    if isinstance(iterated, ast.Call) and get_called_name(iterated) in {"enumerate", "zip", "product", "pairwise"}:
        return any(may_be_empty(part) for part in iterated.args)
    return True


def list_assertions(node: ast.AST, helpers: set[str], condition: str = "", names: frozenset[str] = frozenset()):
    """All assertions in a function. `names` are variables that hold literals with at least one element."""
    for child in ast.iter_child_nodes(node):
        inner = condition
        if isinstance(node, ast.If) and child is not node.test:
            inner = "if"
        elif isinstance(node, ast.ExceptHandler):
            inner = "except"
        elif isinstance(node, ast.For) and child in node.body and not condition:
            known = isinstance(node.iter, ast.Name) and node.iter.id in names
            inner = "loop" if may_be_empty(node.iter) and not known else ""
        elif isinstance(node, ast.While) and child is not node.test and not condition:
            inner = "loop"
        if is_assertion(child, helpers):
            yield Assertion(inner, child.lineno)
        yield from list_assertions(child, helpers, inner, names)


def list_nonempty_names(tree: ast.AST) -> frozenset[str]:
    """Variables that are assigned literals with at least one element."""
    return frozenset(
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and not may_be_empty(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    )


def may_return_early(node: ast.AST, line: int) -> bool:
    """Whether a function may return before a line. Functions inside it do not count."""
    return any(
        (isinstance(child, ast.Return) and child.lineno < line) or may_return_early(child, line)
        for child in ast.iter_child_nodes(node)
        if not isinstance(child, FUNCTION | ast.Lambda | ast.ClassDef)
    )


def find_faults(tree: ast.Module, helpers: set[str]) -> Iterator[str]:
    """What may keep the tests of a module from failing."""
    names = list_nonempty_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, FUNCTION) and node.name.startswith("test_"):
            conditions = {assertion.condition for assertion in list_assertions(node, helpers, names=names)}
            if not conditions:
                yield f"{node.lineno}: {node.name} asserts nothing"
            elif may_return_early(node, min(assertion.line for assertion in list_assertions(node, helpers))):
                yield f"{node.lineno}: {node.name} may return before it asserts"
            elif "" not in conditions:
                yield f"{node.lineno}: {node.name} asserts only below: {', '.join(sorted(conditions))}"
        fault = find_fault_of_statement(node)
        if fault:
            yield f"{node.lineno}: {fault}"


def find_fault_of_statement(node: ast.AST) -> str:
    """Why a statement may hide that a test fails, empty if it does not."""
    if get_called_name(node) == "suppress":
        return "`suppress` hides errors"
    if isinstance(node, ast.ExceptHandler) and all(isinstance(part, ast.Pass) for part in node.body):
        return "`except` with nothing but `pass` hides errors"
    if isinstance(node, ast.With) and len(node.body) > 1:
        if any(get_called_name(item.context_expr) == "raises" for item in node.items):
            return "several statements below `pytest.raises`: any of them may raise"
    elif isinstance(node, ast.Assert):
        if isinstance(node.test, ast.Tuple | ast.Constant | ast.JoinedStr):
            return "the asserted value is always the same"
        if isinstance(node.test, ast.Compare):
            sides = [node.test.left, *node.test.comparators]
            if any(ast.dump(left) == ast.dump(right) for left, right in pairwise(sides)):
                return f"{ast.unparse(node.test)!r} compares an expression with itself"
    return ""


PATHS = sorted(TESTS.rglob("*.py"))
TREES = {path: ast.parse(path.read_text()) for path in PATHS}
HELPERS = find_asserting_helpers(list(TREES.values()))


def test_all_modules_of_tests_are_checked():
    assert len(PATHS) > 60
    assert {"assert_same_law", "assert_has_moments"} <= HELPERS


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.relative_to(TESTS).as_posix())
def test_every_test_of_a_module_can_fail(path):
    assert list(find_faults(TREES[path], HELPERS)) == []


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("compute()", "asserts nothing"),
        ("if value:\n  assert value > 1", "asserts only below: if"),
        ("try:\n  compute()\n except ValueError as error:\n  assert error", "asserts only below: except"),
        ("for row in rows:\n  assert row", "asserts only below: loop"),
        ("assert value\n with suppress(ValueError):\n  compute()", "`suppress` hides errors"),
        ("assert value\n try:\n  compute()\n except ValueError:\n  pass", "hides errors"),
        ("with pytest.raises(ValueError):\n  prepare()\n  compute()", "several statements"),
        ("assert compute(1) == compute(1)", "compares an expression with itself"),
        ("if large:\n  return\n assert value", "may return before it asserts"),
        ("assert (value, 'message')", "the asserted value is always the same"),
    ],
)
def test_a_test_that_cannot_fail_is_detected(code, fault):
    (message,) = find_faults(ast.parse(f"def test_it():\n {code}"), set())
    assert fault in message


@pytest.mark.parametrize(
    "code",
    [
        "assert value",
        "for size in (1, 2):\n  assert compute(size)",
        "for size in range(3):\n  assert compute(size)",
        "for row in rows:\n  assert row\n assert len(rows) > 2",
        "with pytest.raises(ValueError):\n  compute()",
        "def compute():\n  return 1\n assert compute() == 1",
        "np.testing.assert_allclose(left, right)",
    ],
)
def test_a_test_that_can_fail_is_accepted(code):
    assert list(find_faults(ast.parse(f"def test_it():\n {code}"), set())) == []
